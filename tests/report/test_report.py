"""Tables, plots, comparisons and their sentences, from summaries made up for the purpose."""

from __future__ import annotations

import csv
import io
from typing import Annotated, ClassVar, Literal

import msgspec
import pytest

from argosy.engines.api import Capabilities, Engine, Finishes, Settings
from argosy.engines.registry import ENGINES
from argosy.measures.statistics import Ratio
from argosy.model.answers import WhyAnswer
from argosy.model.errors import CommandError, UnknownName
from argosy.model.units import Micros, Time
from argosy.records.summary import (
    Counts,
    Distribution,
    KindSummary,
    Placement,
    SchedulerSummary,
    Summary,
    Timeline,
    Use,
)
from argosy.report import comparison, plots, summaries
from argosy.report.answers import sentences
from argosy.report.catalogue import capabilities, settings
from argosy.report.comparison import RankingRule, compare
from argosy.report.metrics import METRICS, find_metric
from argosy.report.overall import overall, overall_lines, overall_table
from argosy.report.tables import Column, Table, Unit, plain
from argosy.report.verdicts import reasons, verdict
from argosy.scenarios.ignored_demands import IgnoredDemand


def spread(mean: float) -> Distribution:
    return Distribution(100, mean, 0.8 * mean, 2 * mean, 4 * mean, 5 * mean)


def summary(
    fleet: str = "omega x2",
    *,
    seed: int = 1,
    jct: float = 10e6,
    wait: float = 1e6,
    finished: int = 100,
) -> Summary:
    return Summary(
        scenario="made-up",
        seed=seed,
        fleet=fleet,
        ended_at=3_600_000_000,
        counts=Counts(
            jobs=100,
            jobs_finished=finished,
            tasks=1000,
            tasks_finished=10 * finished,
            tasks_running=0,
            tasks_queued=0,
            tasks_pending=1000 - 10 * finished,
            tasks_abandoned=0,
            preemptions=0,
            losses=0,
        ),
        wait_time=spread(wait),
        placement_latency=spread(2 * wait),
        jct=spread(jct) if finished else Distribution(),
        response_time=spread(jct / 2),
        breakdown={"waiting": wait, "placing": wait, "running": jct - 2 * wait} if finished else {},
        utilisation={"cpu": 0.61, "memory": 0.4},
        placement=Placement(
            looks=33, mean=Use(concerned=10.0, violating=2.0, imbalance={"cpu": 0.5}), end=Use()
        ),
        conflict_fraction=0.25,
        network={"sent": 1500, "lost": 7},
        schedulers=tuple(
            SchedulerSummary(
                name=f"omega-{number}",
                engine="omega",
                jobs=50,
                busyness=0.3,
                transactions=60,
                conflicts=12,
                refused={"no_room": 30},
                messages_sent=600,
                crashes=0,
            )
            for number in range(2)
        ),
        events=5000,
        log_digest="0" * 64,
        series={},
    )


def runs_of(**jcts: list[float]) -> dict[str, list[Summary]]:
    return {
        engine: [summary(engine, seed=seed, jct=value) for seed, value in enumerate(values)]
        for engine, values in jcts.items()
    }


JCT = METRICS["jct"]


class TestTables:
    table = Table(
        (Column("name", "engine"), Column("took", "took", Unit.TIME), Column("n", "n", Unit.COUNT)),
        (("omega", 1_500_000, 12_000), ("murmuration", None, 3)),
    )

    def test_text_json_and_csv_come_from_the_same_rows(self) -> None:
        assert self.table.lines() == [
            "engine        took       n",
            "omega        1.5 s  12,000",
            "murmuration              3",
        ]
        assert self.table.records()[0] == {"name": "omega", "took": 1_500_000, "n": 12_000}
        assert self.table.csv().splitlines() == [
            "name,took,n",
            "omega,1500000,12000",
            "murmuration,,3",
        ]

    def test_a_narrow_terminal_cuts_text_but_never_numbers(self) -> None:
        table = Table(
            (Column("name", "name"), Column("n", "n", Unit.COUNT)), (("a" * 60, 123_456_789),)
        )
        (_, row) = table.lines(40)
        assert len(row) == 40
        assert row.endswith("…  123,456,789")

    def test_a_narrow_terminal_wraps_the_last_text_where_asked(self) -> None:
        told = " ".join(["looked"] * 20)
        table = Table(
            (Column("at", "at", Unit.TIME), Column("text", "")),
            ((1_000_000, told), (2_000_000, "x")),
        )
        lines = table.wrapped(40)
        assert max(map(len, lines)) <= 40
        assert " ".join(" ".join(lines[1:-1]).split()) == f"1 s {told}"
        assert lines[-1] == "2 s  x"
        assert table.wrapped() == table.lines()

    def test_only_the_last_column_is_wrapped(self) -> None:
        columns = (Column("a", "first"), Column("b", "second"), Column("c", "third"))
        table = Table(columns, (("x", "y", "some words that are too wide"), ("z", "w", "")))
        assert table.wrapped(30) == [
            "first  second  third",
            "x      y       some words that",
            "               are too wide",
            "z      w",
        ]

    @pytest.mark.parametrize(
        ("unit", "value", "text"),
        [
            (Unit.SHARE, 0.0, "0 %"),
            (Unit.SHARE, 0.00123, "0.12 %"),
            (Unit.SHARE, 0.00999, "1 %"),
            (Unit.SHARE, 0.01234, "1.23 %"),
            (Unit.SHARE, 0.5, "50 %"),
            (Unit.SHARE, 0.9994, "99.9 %"),
            (Unit.SHARE, 0.9996, "100 %"),
            (Unit.SHARE, 1.2345, "123 %"),
            (Unit.SHARE, 12.345, "1234 %"),
            (Unit.NUMBER, 0.12345, "0.123"),
            (Unit.NUMBER, 999.4, "999"),
            (Unit.NUMBER, -1_234.5, "-1,234"),
            (Unit.COUNT, 12_345, "12,345"),
            (Unit.TIME, None, ""),
        ],
    )
    def test_values_are_written_as_people_read_them(
        self, unit: Unit, value: float | None, text: str
    ) -> None:
        assert Column("x", "x", unit).text(value) == text

    def test_every_glyph_has_an_ascii_counterpart(self) -> None:
        drawn = "µ±…" + plots.SHADES + plots.MARKS + "├─┤"
        assert "?" not in plain(drawn)
        assert plain("1.5 µs ± 2") == "1.5 us +/- 2"


class TestSummaries:
    def test_a_summary_fits_eighty_columns(self) -> None:
        lines = [line for section in summaries.sections(summary(), 80) for line in section]
        assert max(map(len, lines)) <= 80
        text = "\n".join(lines)
        for word in ("wait time", "placement latency", "JCT", "response time", "cpu used", "busy"):
            assert word in text

    def test_a_run_that_finished_nothing_leaves_its_times_empty(self) -> None:
        row = next(r for r in summaries.times(summary(finished=0)).rows if r[0] == "JCT")
        assert set(row[1:]) == {None}

    def test_the_lives_of_tasks_are_shown_in_parts_with_their_drift(self) -> None:
        assert summaries.lives(summary()).rows == (), "not kept"
        one = Distribution(count=2, mean=3.0, p50=3.0, p90=3.0, p99=3.0, largest=3.0)
        kept = msgspec.structs.replace(
            summary(), timeline=Timeline(w2x=one, tct=one, spread={"started": one})
        )
        parts = [row[0] for row in summaries.lives(kept).rows]
        assert parts == [
            "w2x, waiting at the machine",
            "TCT, total",
            "spread of a job when started",
        ]
        assert any("life of tasks" in section[0] for section in summaries.sections(kept))

    def test_states_without_tasks_are_not_listed(self) -> None:
        states = [row[0] for row in summaries.counts(summary(finished=90)).rows]
        assert states == ["submitted", "finished", "pending"]

    def test_what_all_schedulers_share_is_not_a_column(self) -> None:
        names = [column.name for column in summaries.schedulers(summary()).columns]
        assert "engine" not in names
        assert "crashes" not in names

    def test_the_flat_row_is_plain_values(self) -> None:
        row = summaries.flat(summary())
        assert row["jct_p50"] == 8e6
        assert row["utilisation_cpu"] == 0.61
        assert all(isinstance(value, str | int | float) for value in row.values())

    def test_messages_are_counted_alike_in_every_form(self) -> None:
        row, document = summaries.flat(summary()), summaries.document(summary())
        compared = compare({"omega": [summary()]}, JCT)
        (cause,) = comparison.causes(compared.standings).records()
        for counted in (row, document, cause):
            assert (counted["messages"], counted["notices"]) == (1200, 300)
        assert row["network_lost"] == document["network"]["lost"] == 7
        assert "messages_sent" not in row
        shown = dict(summaries.totals(summary()).rows)["messages"]
        assert shown == "by schedulers 1,200, notices from machines 300, lost 7"


class TestPlots:
    def test_bars_are_proportional_and_carry_whiskers(self) -> None:
        rows = [plots.Bar("a", 50, 40, 60, "50"), plots.Bar("b", 100, 100, 100, "100")]
        assert plots.bars(rows, 28) == [
            "a  ████████├───┤         50",
            "b  ████████████████████  100",
        ]

    def test_bars_of_nothing_are_empty(self) -> None:
        assert plots.bars([plots.Bar("a", 0, 0, 0, "0")], 30)[0].split() == ["a", "0"]
        assert plots.bars([], 30) == []

    def test_stacked_parts_fill_the_longest_bar(self) -> None:
        long, short, legend = plots.stacked(
            {"a": (10, 20, 70), "b": (10, 0, 0)}, ("x", "y", "z"), "{:g}".format, 60
        )
        drawn = long.split()[1]
        assert drawn.count("░") == pytest.approx(len(drawn) / 10, abs=1)
        assert drawn.count("▓") == pytest.approx(len(drawn) / 5, abs=1)
        assert set(short.split()[1]) == {"░"}
        assert legend.split() == ["░", "x", "▓", "y", "█", "z"]

    def test_quantiles_far_apart_are_drawn_on_a_log_scale(self) -> None:
        near = plots.quantiles({"a": (1, 2, 3, 4)}, ("m",), "{:g}".format, 60)
        far = plots.quantiles({"a": (1, 2, 30, 4000)}, ("m",), "{:g}".format, 60)
        assert "log scale" not in "\n".join(near)
        assert "log scale" in "\n".join(far)
        assert max(map(len, far)) <= 60

    def test_quantiles_of_zeros_draw_nothing(self) -> None:
        assert plots.quantiles({"a": (0, 0, 0, 0)}, ("m",), "{:g}".format, 60) == []


class TestComparison:
    def test_jobs_that_never_end_are_no_unfinished_ones(self) -> None:
        made = summary(finished=60)
        counts = msgspec.structs.replace(made.counts, jobs_endless=40)
        (standing,) = compare({"a": [msgspec.structs.replace(made, counts=counts)]}, JCT).standings
        assert standing.finished == 1.0

    def test_the_engine_with_the_smallest_median_is_best(self) -> None:
        compared = compare(runs_of(slow=[30e6, 31e6, 29e6], fast=[10e6, 11e6, 9e6]), JCT)
        assert compared.best == "fast"
        assert [s.engine for s in compared.standings] == ["fast", "slow"]
        first, second = verdict(compared, JCT)
        assert first == "fast is best by median JCT:"
        assert second.startswith("  3.00 ± ")
        assert second.endswith(" times faster than slow")

    def test_an_engine_that_comes_close_leaves_the_best_clearly_ahead_of_others(self) -> None:
        close = {"a": [10e6, 14e6, 12e6], "b": [14e6, 10e6, 12.1e6]}
        compared = compare(runs_of(**close, slow=[30e6, 31e6, 29e6]), JCT)
        first, second = verdict(compared, JCT)
        assert first.startswith("a and b tie for the best place by median JCT (less than 2 % apart")
        assert second.endswith(" times faster than slow")
        assert [s.place for s in compared.standings] == [1, 1, 2]

    def test_a_difference_within_the_noise_is_called_so(self) -> None:
        compared = compare(runs_of(a=[10e6, 14e6, 12e6], b=[14e6, 10e6, 12.1e6]), JCT)
        assert verdict(compared, JCT) == [
            "All engines tie by median JCT (less than 2 % apart, or no further than chance explains)."
        ]
        assert compared.leaders == ("a", "b")

    def test_a_difference_that_is_sure_but_small_is_a_tie(self) -> None:
        runs = runs_of(a=[10e6, 11e6, 12e6], b=[10.1e6, 11.1e6, 12.1e6])
        assert compare(runs, JCT).leaders == ("a", "b")
        assert compare(runs, JCT, rule=RankingRule(threshold=0.005)).leaders == ("a",)

    def test_what_two_engines_would_decide_may_be_chance_among_many(self) -> None:
        # In one of eight seeds `b` is better: sure enough for two engines, not for dozens.
        base = [10e6] * 8
        pair = {"a": base, "b": [*[11e6] * 7, 9e6]}
        crowd = {f"c{n}": [30e6 + n] * 8 for n in range(40)}
        assert compare(runs_of(**pair), JCT).leaders == ("a",)
        assert compare(runs_of(**pair, **crowd), JCT).leaders == ("a", "b")

    def test_equal_engines_are_called_equal(self) -> None:
        compared = compare(runs_of(a=[10e6, 14e6], b=[10e6, 14e6]), JCT)
        assert verdict(compared, JCT) == ["All engines are equal by median JCT."]

    def test_equal_engines_with_different_means_are_distinguished_without_contradiction(
        self,
    ) -> None:
        runs = runs_of(a=[10e6, 10e6], b=[10e6, 10e6])
        slower = msgspec.structs.replace(spread(10e6), mean=12e6)
        runs["b"] = [msgspec.structs.replace(s, jct=slower) for s in runs["b"]]
        assert verdict(compare(runs, JCT), JCT) == [
            "All engines are equal by median JCT; their mean JCT differs, from a 10 s to b 12 s.",
        ]

    def test_some_equal_engines_are_best_together(self) -> None:
        runs = runs_of(a=[10e6, 14e6], b=[10e6, 14e6], c=[30e6, 42e6])
        first, second = verdict(compare(runs, JCT), JCT)
        assert first == "a and b are equal by median JCT, and best:"
        assert second.endswith("times faster than c")

    def test_if_every_engine_ignores_something_all_are_ranked_and_it_is_said(self) -> None:
        ignores = {
            "slow": [IgnoredDemand("slow", "gangs", "1 job asks for one")],
            "fast": [IgnoredDemand("fast", "placement constraints", "2 jobs have some")],
        }
        compared = compare(runs_of(slow=[30e6, 31e6], fast=[10e6, 11e6]), JCT, ignores)
        assert compared.best == "fast"
        assert [line for line in verdict(compared, JCT) if "ignores" in line] == [
            "  fast ignores placement constraints (2 jobs have some)",
            "  slow ignores gangs (1 job asks for one)",
        ]

    def test_a_skewed_ratio_shows_its_interval(self) -> None:
        compared = compare(runs_of(a=[10e6] * 5, b=[20e6, 20e6, 20e6, 20e6, 90e6]), JCT)
        ratio = compared.standing("b").ratio
        assert ratio is not None
        skewed = msgspec.structs.replace(ratio, uncertainty=0.5, low=1.9, high=4.0)
        standing = msgspec.structs.replace(compared.standing("b"), ratio=skewed)
        compared = msgspec.structs.replace(compared, standings=(compared.standing("a"), standing))
        assert "  2.00 ± 0.50 times faster than b (95 % from 1.90 to 4.00)" in verdict(
            compared, JCT
        )

    def test_a_skew_that_two_decimals_do_not_show_is_left_out(self) -> None:
        compared = compare(runs_of(a=[10e6] * 5, b=[20e6] * 5), JCT)
        narrow = Ratio(2.0, 0.002, 1.999, 2.005)
        standing = msgspec.structs.replace(compared.standing("b"), ratio=narrow)
        compared = msgspec.structs.replace(compared, standings=(compared.standing("a"), standing))
        assert "  2.00 ± 0.00 times faster than b" in verdict(compared, JCT)

    def test_an_engine_that_starves_jobs_makes_nobody_clearly_best(self) -> None:
        runs = runs_of(a=[10e6, 14e6, 12e6], b=[14e6, 10e6, 12.1e6])
        runs["starving"] = [summary("starving", seed=s, jct=1e6, finished=60) for s in range(3)]
        lines = verdict(compare(runs, JCT), JCT)
        assert lines[0].startswith("All ranked engines tie by median JCT")

    def test_an_engine_that_ignores_demands_never_wins_unless_asked_to(self) -> None:
        ignores = {"fast": [IgnoredDemand("fast", "gangs", "1 job asks for one")]}
        runs = runs_of(slow=[30e6, 31e6], fast=[10e6, 11e6])
        compared = compare(runs, JCT, ignores)
        assert compared.best == "slow"
        apart = compared.standing("fast")
        assert (apart.place, apart.apart) == (None, "ignores gangs")
        first, second = verdict(compared, JCT)
        assert first == "slow is best by median JCT."
        assert second == (
            "  1 engine is not ranked for ignoring what the scenario asks for:"
            " gangs (1 job asks for one)"
        )
        (row,) = comparison.apart_table(compared, JCT).records()
        assert (row["engine"], row["apart"]) == ("fast", "ignores gangs")
        everyone = compare(runs, JCT, ignores, rule=RankingRule(everyone=True))
        assert everyone.best == "fast"
        assert "  fast ignores gangs (1 job asks for one)" in verdict(everyone, JCT)

    def test_how_often_gangs_were_split_is_shown(self) -> None:
        made = runs_of(a=[10e6], b=[20e6])
        made["b"] = [
            msgspec.structs.replace(
                s, counts=msgspec.structs.replace(s.counts, gangs=4, gangs_split=3)
            )
            for s in made["b"]
        ]
        ignores = {"b": [IgnoredDemand("b", "gangs", "4 jobs ask for one")]}
        (row,) = comparison.apart_table(compare(made, JCT, ignores), JCT).records()
        assert row["split_gangs"] == 0.75

    def test_an_engine_that_failed_is_told_with_its_error(self) -> None:
        compared = compare(runs_of(a=[10e6]), JCT, failures={"b": "with seed 1: no memory"})
        assert "  b failed: with seed 1: no memory" in verdict(compared, JCT)
        (row,) = comparison.apart_table(compared, JCT).records()
        assert (row["engine"], row["apart"]) == ("b", "failed: with seed 1: no memory")

    def test_where_mean_and_tail_name_another_engine_is_told(self) -> None:
        runs = runs_of(a=[10e6, 10e6], b=[20e6, 20e6])
        heavy = Distribution(100, 90e6, 8e6, 100e6, 400e6, 500e6)
        runs["a"] = [msgspec.structs.replace(s, jct=heavy) for s in runs["a"]]
        lines = verdict(compare(runs, JCT), JCT)
        assert lines[0] == "a is best by median JCT:"
        assert lines[2:] == ["  by mean JCT, b is best", "  by p99 JCT, b is best"]

    def test_a_kind_of_job_that_the_best_engine_neglects_is_told(self) -> None:
        def with_kinds(made: Summary, **kinds: tuple[float, int]) -> Summary:
            return msgspec.structs.replace(
                made,
                kinds={
                    kind: KindSummary(
                        jobs=10,
                        jobs_finished=finished,
                        jobs_abandoned=0,
                        wait_time=Distribution(),
                        placement_latency=Distribution(),
                        jct=spread(jct),
                    )
                    for kind, (jct, finished) in kinds.items()
                },
            )

        runs = {
            "a": [
                with_kinds(summary("a", jct=10e6), batch=(10e6, 10), gpu=(5e6, 3), web=(9e6, 10))
            ],
            "b": [
                with_kinds(summary("b", jct=20e6), batch=(20e6, 10), gpu=(5e6, 9), web=(3e6, 10))
            ],
        }
        compared = compare(runs, JCT)
        lines = verdict(compared, JCT)
        assert "  of jobs of kind gpu, a finishes only 30 %, b 90 %" in lines
        assert "  for jobs of kind web, b is 3.00 times faster than a" in lines
        assert not any("batch" in line for line in lines)
        table = comparison.kinds_table(compared.standings, "kinds")
        assert table is not None
        assert table.records()[0]["gpu_finished"] == 0.3

    def test_objectives_decide_in_their_order_and_show_who_is_beaten(self) -> None:
        runs = {
            "quick": [summary("quick", jct=10e6, wait=3e6)],
            "prompt": [summary("prompt", jct=20e6, wait=1e6)],
            "poor": [summary("poor", jct=20e6, wait=3e6)],
        }
        found = overall([compare(runs, JCT), compare(runs, find_metric("wait"))])
        assert [(r.engine, r.place, r.beaten_by) for r in found.ranks] == [
            ("quick", 1, ""),
            ("prompt", 2, ""),
            ("poor", 3, "quick"),
        ]
        assert overall_lines(found) == [
            "quick is best in this order of objectives.",
            "With another order, one of these may be: prompt.",
        ]
        assert overall_table(found).records()[2]["beaten_by"] == "quick"

    def test_one_seed_claims_no_certainty(self) -> None:
        lines = verdict(compare(runs_of(a=[10e6], b=[20e6]), JCT), JCT)
        assert "  2.00 times faster than b" in lines
        assert "±" not in "\n".join(lines)

    def test_an_engine_that_starves_jobs_cannot_be_best(self) -> None:
        runs = runs_of(honest=[20e6, 20e6])
        runs["starving"] = [summary("starving", seed=s, jct=1e6, finished=60) for s in range(2)]
        compared = compare(runs, JCT)
        assert compared.best == "honest"
        text = "\n".join(verdict(compared, JCT))
        assert "starving finished 60 % of all jobs" in text
        (row,) = comparison.apart_table(compared, JCT).records()
        assert (row["engine"], row["apart"]) == ("starving", "finished fewer jobs")
        (ranked,) = comparison.table(compared, JCT).records()
        assert ranked["engines"] == "honest"

    def test_an_engine_can_be_best_although_no_engine_finishes_nearly_all_jobs(self) -> None:
        jcts = {"slow": 20e6, "fast": 10e6}
        runs = {name: [summary(name, jct=jct, finished=60)] for name, jct in jcts.items()}
        assert compare(runs, JCT).best == "fast"

    def test_an_engine_that_finishes_nothing_stands_last(self) -> None:
        runs = runs_of(works=[20e6])
        runs["stuck"] = [summary("stuck", seed=0, finished=0)]
        compared = compare(runs, JCT)
        assert compared.standings[-1].estimate is None
        assert "stuck has no median JCT" in "\n".join(verdict(compared, JCT))
        (row,) = comparison.apart_table(compared, JCT).records()
        assert (row["engine"], row["apart"]) == ("stuck", "no job finished")

    def test_a_comparison_in_which_no_engine_finishes_says_so(self) -> None:
        compared = compare({"stuck": [summary(finished=0)]}, JCT)
        assert compared.best is None
        assert verdict(compared, JCT) == ["No engine has a median JCT: no job finished."]
        assert reasons(compared) == []

    def test_a_zero_median_gives_a_sentence_instead_of_infinity(self) -> None:
        runs = runs_of(a=[10e6], b=[20e6])
        runs["a"] = [summary("a", seed=0, wait=0)]
        metric = find_metric("wait")
        assert "inf" not in "\n".join(verdict(compare(runs, metric), metric))

    def test_the_reasons_account_for_the_whole_difference(self) -> None:
        runs = {
            "a": [summary("a", jct=10e6, wait=1e6)],
            "b": [summary("b", jct=20e6, wait=4e6)],
        }
        text = "\n".join(reasons(compare(runs, JCT)))
        assert "A finished job took 10 s more on average with b than with a: +3 s waiting" in text
        assert "+3 s being placed, +4 s placed and not yet done" in text

    def test_a_job_that_never_ends_is_not_part_of_the_split(self) -> None:
        # A service placed after an hour moves the mean placement latency, but finishes nothing.
        late = msgspec.structs.replace(summary("a"), placement_latency=spread(3600e6))
        (standing,) = compare({"a": [late]}, JCT).standings
        assert standing.breakdown == comparison.Breakdown(1e6, 1e6, 8e6)

    def test_without_finished_jobs_there_is_no_split(self) -> None:
        compared = compare({"stuck": [summary(finished=0)]}, JCT)
        assert comparison.breakdown(compared.standings, 80) == []
        assert comparison.causes(compared.standings).records()[0]["placing"] is None

    def test_a_result_does_not_depend_on_who_else_took_part(self) -> None:
        runs = runs_of(a=[10e6, 12e6, 11e6], b=[20e6, 18e6, 25e6], c=[30e6, 33e6, 31e6])
        both = {name: runs[name] for name in ("b", "a")}
        assert compare(runs, JCT).standing("b") == compare(both, JCT).standing("b")

    def test_engines_under_different_seeds_are_not_compared(self) -> None:
        runs = runs_of(a=[10e6], b=[10e6, 20e6])
        with pytest.raises(CommandError, match="same seeds"):
            compare(runs, JCT)

    def test_an_unknown_metric_offers_the_nearest(self) -> None:
        with pytest.raises(UnknownName, match="unknown metric 'jtc'") as caught:
            find_metric("jtc")
        assert caught.value.hint == "did you mean 'jct'?"

    def test_every_metric_reads_a_summary(self) -> None:
        assert all(metric.value(summary()) is not None for metric in METRICS.values())

    def test_plots_of_a_comparison_fit_their_width(self) -> None:
        compared = compare(runs_of(a=[10e6, 12e6], a_long_name=[500e6, 400e6]), JCT)
        for width in (80, 120):
            for lines in (
                comparison.bars(compared.standings, JCT, width),
                comparison.breakdown(compared.standings, width),
                comparison.spread(compared.standings, width),
            ):
                assert max(map(len, lines)) <= width


class TunedSettings(Settings, frozen=True):
    """Settings for the test."""

    #: How many machines to look at,
    #: at most.
    looks: int = 10
    mode: Annotated[Literal["fine", "coarse"], msgspec.Meta(description="What counts.")] = "fine"
    limit: int | None = None
    names: tuple[str, ...] = ()
    pause: Micros = Micros(1_500_000)
    beat: Time = 0


class Tuned:
    name: ClassVar[str] = "tuned"
    summary: ClassVar[str] = "An engine for the test."
    settings_type: ClassVar[type[Settings]] = TunedSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        gossip=True, machine_events=True, finishes=Finishes.OWN
    )


def test_settings_are_described_by_type_default_and_comment() -> None:
    engine: type[Engine] = Tuned  # type: ignore[assignment]
    described = [(s.name, s.type, s.default_text, s.doc) for s in settings(engine)]
    assert described == [
        ("looks", "int", "10", "How many machines to look at, at most."),
        ("mode", '"fine" | "coarse"', '"fine"', "What counts."),
        ("limit", "int | none", "none", ""),
        ("names", "tuple of str", "[]", ""),
        ("pause", "time", '"1500ms"', ""),
        ("beat", "time", '"0s"', ""),
    ]
    assert [s.default for s in settings(engine)] == [10, "fine", None, (), "1500ms", "0s"]
    assert capabilities(engine) == ["gossip", "finishes: own", "machine events"]


def test_inherited_settings_and_tables_by_name_are_listed_like_others():
    known = {setting.name: setting for setting in settings(ENGINES["mesos"])}
    assert known["frameworks"].type == "tables by name"
    inner = known["frameworks.NAME.refuse"]
    assert (inner.type, inner.default_text) == ("time", "none")
    assert known["frameworks.NAME.t_job"].default == "100ms"
    inherited = {setting.name: setting.doc for setting in settings(ENGINES["omega"])}
    assert "attempts" in inherited["attempts"]


def test_an_unplaced_task_answers_with_the_nearest_miss_and_the_remedy() -> None:
    answer = WhyAnswer(
        task="train/0",
        state="pending",
        sentence="train/0 has no machine: the cell is full.",
        looked_at=1200,
        ruled_out={"filtered": 200, "cpu": 1000},
        nearest_miss="m-7 lacks 2 cores",
        remedy="2 more cores on any machine",
    )
    assert sentences(answer) == [
        "train/0 has no machine: the cell is full.",
        "1,200 machines checked, 0 could take it.",
        "Ruled out: 1,000 lack cpu, 200 do not meet the task's requirements.",
        "Nearest miss: m-7 lacks 2 cores.",
        "What would help: 2 more cores on any machine.",
    ]


def test_a_placed_task_answers_with_what_came_second() -> None:
    answer = WhyAnswer(
        task="web/1",
        state="running",
        sentence="web/1 is on m-3.",
        placed_on="m-3",
        score=4000,
        second="m-9",
        second_score=4200,
    )
    assert sentences(answer)[1] == "Its score was 4,000; m-9 came second with 4,200."


def test_csv_quotes_what_needs_it() -> None:
    table = Table((Column("text", "text"),), (('say "a, b"',),))
    assert list(csv.DictReader(io.StringIO(table.csv()))) == [{"text": 'say "a, b"'}]
