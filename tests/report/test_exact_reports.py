"""Metrics, overall places, placement and crossings: exact values for made-up summaries."""

from __future__ import annotations

from typing import Any

import pytest
from made_up import summary
from msgspec.structs import replace

from argosy.model.errors import UnknownName
from argosy.records.summary import Counts, Distribution, Placement, SpeedUp, Use
from argosy.report.comparison import EngineRank, Ranking, compare
from argosy.report.metrics import METRICS, find_metric, related_metrics
from argosy.report.overall import Overall, OverallRank, overall, overall_lines
from argosy.report.summaries import counts, flat, placement, schedulers, times, totals
from argosy.report.sweeps import SweepResult, SweepRow, sweep_figure, sweep_lines, sweep_table
from argosy.report.tables import Unit

USE = Use(
    concerned=10.0,
    violating=2.0,
    extent=0.7,
    machines_used=40.0,
    fragmented=3.0,
    imbalance={"cpu": 0.5, "memory": 0.8},
    clusters={"north": {"cpu": 0.25}, "south": {"cpu": 0.5}},
)
END = Use(
    machines_used=41.0, fragmented=4.0, imbalance={"cpu": 0.6}, clusters={"north": {"cpu": 0.1}}
)
FULL = replace(
    summary(),
    wait_time=Distribution(7, 11.0, 12.0, 13.0, 14.0, 15.0),
    placement_latency=Distribution(7, 21.0, 22.0, 23.0, 24.0, 25.0),
    jct=Distribution(7, 31.0, 32.0, 33.0, 34.0, 35.0),
    response_time=Distribution(7, 41.0, 42.0, 43.0, 44.0, 45.0),
    placement=Placement(looks=33, mean=USE, end=END),
)
EMPTY = replace(
    FULL, **dict.fromkeys(("wait_time", "placement_latency", "jct", "response_time"), Distribution()),
    placement=Placement(),
)  # fmt: skip
PLACES = {"": 2, "mean": 1, "p50": 2, "p90": 3, "p99": 4, "largest": 5}
WORDS = {
    "": "median", "mean": "mean", "p50": "median", "p90": "p90", "p99": "p99", "largest": "largest",
}  # fmt: skip
TIMES = {
    "jct": ("JCT", "faster", 30),
    "wait": ("wait time", "shorter", 10),
    "placement": ("placement latency", "faster", 20),
    "response": ("response time", "faster", 40),
}
OTHERS: dict[str, tuple[str, Unit, str, float, float | None]] = {
    "end": ("end of the run", Unit.TIME, "earlier", 3_600_000_000.0, 3_600_000_000.0),
    "conflicts": ("conflict fraction", Unit.NUMBER, "lower", 0.25, 0.25),
    "violations": ("violating containers", Unit.SHARE, "lower", 0.2, None),
    "extent": ("extent of violations", Unit.NUMBER, "lower", 0.7, None),
    "fragmented": ("fragmented machines", Unit.NUMBER, "lower", 3.0, 0.0),
    "imbalance": ("load imbalance", Unit.NUMBER, "lower", 0.8, None),
    "machines": ("machines used", Unit.NUMBER, "lower", 40.0, 0.0),
}


class TestMetrics:
    @pytest.mark.parametrize("family", TIMES)
    @pytest.mark.parametrize("statistic", PLACES)
    def test_times(self, family: str, statistic: str) -> None:
        title, better, base = TIMES[family]
        metric = find_metric(f"{family}.{statistic}".rstrip("."))
        assert metric.title == f"{WORDS[statistic]} {title}"
        assert (metric.unit, metric.better) == (Unit.TIME, better)
        assert metric.value(FULL) == base + PLACES[statistic]
        assert metric.value(EMPTY) is None
        related = [f"{family}.mean", f"{family}.p50", f"{family}.p99"]
        assert [each.name for each in related_metrics(metric)] == related

    @pytest.mark.parametrize("name", OTHERS)
    def test_others(self, name: str) -> None:
        metric = find_metric(name)
        told = (metric.title, metric.unit, metric.better, metric.value(FULL), metric.value(EMPTY))
        assert told == OTHERS[name]
        assert related_metrics(metric) == []

    def test_there_are_no_more(self) -> None:
        assert len(METRICS) == len(TIMES) * len(PLACES) + len(OTHERS)
        with pytest.raises(UnknownName, match="jtc"):
            find_metric("jtc")


def ranking(metric: str, **places: tuple[int | None, float | None]) -> Ranking:
    """Engines with their place and median in a comparison by this metric."""
    runs = {engine: [summary(engine, seed=seed, jct=1e6) for seed in (1, 2)] for engine in places}
    found = compare(runs, find_metric(metric))
    standings: list[EngineRank] = []
    for engine, (place, value) in places.items():
        standing = next(each for each in found.standings if each.engine == engine)
        estimate = standing.estimate
        assert estimate is not None
        told = (
            None if value is None else replace(estimate, value=value, low=value - 2, high=value + 4)
        )
        standings.append(replace(standing, place=place, estimate=told))
    leaders = tuple(each.engine for each in standings if each.place == 1)
    return replace(
        found, standings=tuple(standings), leaders=leaders, best=next(iter(leaders), None)
    )


class TestOverall:
    def test_engines_that_are_ranked_by_every_objective_take_part(self) -> None:
        found = overall(
            [
                ranking("jct", a=(1, 5.0), b=(2, 6.0), c=(2, 6.0), d=(4, 9.0), e=(5, 9.5)),
                ranking("wait", a=(3, 8.0), b=(2, 7.0), c=(2, 7.0), d=(4, 9.0), e=(None, None)),
            ]
        )
        assert found.objectives == ("jct", "wait")

        def rank(engine: str, place: int, jct: int, wait: int, beaten: str = "") -> OverallRank:
            values = {"a": (5.0, 8.0), "b": (6.0, 7.0), "c": (6.0, 7.0), "d": (9.0, 9.0)}[engine]
            return OverallRank(
                engine=engine,
                place=place,
                places={"jct": jct, "wait": wait},
                values={"jct": values[0], "wait": values[1]},
                beaten_by=beaten,
            )

        assert found.ranks == (
            rank("a", 1, 1, 3),
            rank("b", 2, 2, 2),
            rank("c", 2, 2, 2),
            rank("d", 3, 4, 4, "a"),
        )
        assert overall_lines(found) == [
            "a is best in this order of objectives.",
            "With another order, one of these may be: b, c.",
        ]

    def test_two_may_be_best(self) -> None:
        found = overall([ranking("jct", a=(1, 5.0), b=(1, 5.0))])
        assert overall_lines(found) == ["a, b are best in this order of objectives."]
        assert overall_lines(Overall(("jct",), ())) == ["No engine is ranked by all objectives."]


class TestSummaries:
    def test_placement_over_the_run_and_at_its_end(self) -> None:
        assert placement(FULL).rows == (
            ("containers under constraints", 10.0, 0.0),
            ("violating containers", 2.0, 0.0),
            ("extent of violations", 0.7, 0.0),
            ("machines used", 40.0, 41.0),
            ("fragmented machines", 3.0, 4.0),
            ("imbalance of cpu", 0.5, 0.6),
            ("imbalance of memory", 0.8, 0.0),
            ("cpu used in north", 0.25, 0.1),
            ("cpu used in south", 0.5, 0.0),
        )
        only_end = replace(FULL, placement=Placement(looks=1, end=Use(concerned=1.0)))
        assert len(placement(only_end).rows) == 5
        assert len(placement(EMPTY).rows) == 2

    def test_times_are_there_if_something_was_timed(self) -> None:
        assert times(FULL).rows[0] == ("wait time", 11.0, 12.0, 13.0, 14.0, 15.0)
        assert times(EMPTY).rows[0] == ("wait time", None, None, None, None, None)
        assert len(times(FULL).rows) == 4
        constrained = Placement(latency=Distribution(1, 1.0, 2.0, 3.0, 4.0, 5.0))
        last = times(replace(FULL, placement=constrained)).rows[4]
        assert last == ("placing under constraints", 1.0, 2.0, 3.0, 4.0, 5.0)

    def test_states_with_tasks_are_counted(self) -> None:
        told = Counts(
            jobs=9, jobs_finished=8, jobs_endless=7, jobs_abandoned=6, tasks=99, tasks_finished=50,
            tasks_running=11, tasks_queued=12, tasks_pending=13, tasks_abandoned=14, tasks_failed=15,
            tasks_cancelled=16, preemptions=17, losses=18, jobs_passed_over=5,
        )  # fmt: skip
        assert counts(replace(FULL, counts=told)).rows == (
            ("submitted", 9, 99), ("finished", 8, 50), ("run until stopped", 7, None),
            ("passed over", 5, None), ("running", None, 11), ("queued", None, 12),
            ("pending", None, 13), ("abandoned", 6, 14), ("failed", None, 15),
            ("cancelled", None, 16), ("preemptions", None, 17), ("losses", None, 18),
        )  # fmt: skip
        assert counts(FULL).rows == (("submitted", 100, 1000), ("finished", 100, 1000))

    def test_totals(self) -> None:
        fast = SpeedUp(jobs=1, faster=0.5, p50=1.5, p80=2.5, p90=3.0, largest=12.34, quantiles=[])
        rows = dict(totals(replace(FULL, speed_up=fast)).rows)
        assert rows == {
            "virtual time": "1 h",
            "cpu used": "61 %",
            "memory used": "40 %",
            "conflicts": "0.25 per successful transaction",
            "speed-up": "50% of 1 job with phases are faster than with the workers asked for; "
            "median 1.50x, p80 2.50x, largest 12.3x",
            "refused claims": "no room 60",
            "messages": "by schedulers 1,200, notices from machines 300, lost 7",
        }
        few = replace(FULL, network={"sent": 1100})
        assert dict(totals(few).rows)["messages"] == "by schedulers 1,200"
        assert "messages" not in dict(totals(replace(FULL, network={})).rows)

    def test_columns_in_which_schedulers_are_equal_are_hidden(self) -> None:
        one, two = FULL.schedulers
        names = [
            "name",
            "jobs",
            "busyness",
            "transactions",
            "conflicts",
            "refused",
            "messages_sent",
        ]
        assert [column.name for column in schedulers(FULL).columns] == names
        assert schedulers(FULL).rows[0] == ("omega-0", 50, 0.3, 60, 12, 30, 600)
        alone = replace(FULL, network={}, schedulers=(one, replace(two, engine="kube", crashes=1)))
        shown = [column.name for column in schedulers(alone).columns]
        assert shown == ["name", "engine", *names[1:-1], "crashes"]

    def test_a_flat_row(self) -> None:
        one, two = FULL.schedulers
        row = flat(replace(FULL, schedulers=(one, replace(two, busyness=0.7, transactions=5))))
        expected = {
            "scenario": "made-up", "fleet": "omega x2", "seed": 1, "ended_at": 3_600_000_000,
            "jobs": 100, "tasks_finished": 1000, "wait_time_mean": 11.0, "jct_largest": 35.0,
            "utilisation_cpu": 0.61, "concerned": 10.0, "concerned_at_end": 0.0, "extent": 0.7,
            "machines_used": 40.0, "machines_used_at_end": 41.0, "fragmented_at_end": 4.0,
            "imbalance_memory": 0.8, "constrained_latency_p50": 0.0, "conflict_fraction": 0.25,
            "transactions": 65, "conflicts": 24, "busyness_largest": 0.7, "messages": 1200,
            "notices": 300, "network_lost": 7, "events": 5000,
        }  # fmt: skip
        assert {name: row[name] for name in expected} == expected


def sweep(*rows: tuple[Any, Ranking], varied: str = "load") -> SweepResult:
    made = tuple(SweepRow(value, found) for value, found in rows)
    return SweepResult(scenario="s", varied=varied, metric="jct", rows=made)


class TestSweeps:
    LOW = ranking("jct", a=(1, 4e6), b=(2, 6e6))
    HIGH = ranking("jct", a=(2, 9e6), b=(1, 3e6))
    JCT = find_metric("jct")

    @pytest.mark.parametrize(
        ("values", "crossing"),
        [((1, 5), 2.0), ((0.5, 0.9), 0.6), (("x", "y"), None), ((False, True), None)],
    )
    def test_lines_cross_where_the_medians_do(
        self, values: tuple[Any, Any], crossing: float | None
    ) -> None:
        (change,) = sweep((values[0], self.LOW), (values[1], self.HIGH)).changes()
        assert (change.after, change.before) == values
        assert (change.was, change.now) == (("a",), ("b",))
        assert change.crossing == (None if crossing is None else pytest.approx(crossing))

    def test_sentences(self) -> None:
        found = sweep((1, self.LOW), (5, self.HIGH))
        assert sweep_lines(found, self.JCT) == [
            "The best engine by median JCT changes at about load = 2, from a to b."
        ]
        found = sweep(("one", self.LOW), ("two", self.HIGH), varied="mode")
        assert sweep_lines(found, self.JCT) == [
            "The best engine by median JCT changes between mode = one and two, from a to b."
        ]
        assert sweep_lines(sweep((1, self.LOW), (5, self.LOW)), self.JCT) == [
            "Best by median JCT at every value: a."
        ]

    def test_the_table_and_the_figure(self) -> None:
        found = sweep((1_000, self.LOW), (5_000, self.HIGH))
        assert sweep_table(found, self.JCT).rows == (
            ("1,000", 4e6, 6e6, "a"),
            ("5,000", 9e6, 3e6, "b"),
        )
        (chart,) = sweep_figure(found, self.JCT).panels
        assert chart.title == "median JCT (s)"
        marks = {line.label: [(m.x, m.y, m.error) for m in line.marks] for line in chart.lines}  # type: ignore[union-attr]
        assert marks == {
            "a": [(1_000.0, 4.0, 3e-6), (5_000.0, 9.0, 3e-6)],
            "b": [(1_000.0, 6.0, 3e-6), (5_000.0, 3.0, 3e-6)],
        }
        named = sweep(("x", self.LOW), ("y", self.HIGH))
        (chart,) = sweep_figure(named, self.JCT).panels
        assert [mark.x for mark in chart.lines[0].marks] == [0.0, 1.0]  # type: ignore[union-attr]
        assert chart.x.label == "load, in the order given"  # type: ignore[union-attr]

    def test_the_table_names_all_engines_that_tie_for_the_best(self) -> None:
        tied = ranking("jct", a=(1, 4e6), b=(1, 4e6), c=(3, 6e6))
        assert sweep_table(sweep((1, tied)), self.JCT).rows == (("1", 4e6, 4e6, 6e6, "a, b"),)

    @pytest.mark.parametrize(("most", "is_logarithmic"), [(60e6, False), (60.1e6, True)])
    def test_an_axis_is_logarithmic_from_a_factor_of_twenty(
        self, most: float, is_logarithmic: bool
    ) -> None:
        found = sweep((1, ranking("jct", a=(1, 3e6), b=(2, most))))
        (chart,) = sweep_figure(found, self.JCT).panels
        assert chart.y.logarithmic is is_logarithmic  # type: ignore[union-attr]

    def test_what_took_no_time_does_not_make_an_axis_logarithmic(self) -> None:
        found = sweep((1, ranking("jct", a=(1, 0.0), b=(2, 3e6))))
        (chart,) = sweep_figure(found, self.JCT).panels
        assert not chart.y.logarithmic  # type: ignore[union-attr]
        (chart,) = sweep_figure(sweep((1, ranking("jct", a=(1, 0.0)))), self.JCT).panels
        assert not chart.y.logarithmic  # type: ignore[union-attr]
