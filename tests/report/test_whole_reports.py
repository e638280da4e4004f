"""Whole reports, from summaries in which no two numbers are alike: what is shown where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from golden_log import require_golden
from made_up import runs_of, summary
from msgspec.structs import replace

from argosy.campaign.campaign import CampaignFailure, CampaignResult, CampaignRow
from argosy.measures.statistics import Estimate, Ratio
from argosy.records.audit import Audit, Held, SchedulerAudit
from argosy.records.summary import (
    Counts,
    Daily,
    Distribution,
    KindSummary,
    Placement,
    SchedulerSummary,
    SpeedUp,
    Summary,
    Timeline,
    Use,
)
from argosy.report import audits, campaigns, comparison, overall, summaries, sweeps, verdicts
from argosy.report.comparison import Breakdown, EngineRank, KindRank, Ranking, RankingRule, compare
from argosy.report.metrics import METRICS, find_metric, related_metrics
from argosy.report.tables import Table
from argosy.scenarios.ignored_demands import IgnoredDemand

JCT = find_metric("jct")


def numbered() -> Summary:
    """Every number of the summary is another one."""
    numbers = count(1)

    def of(kind: type[Any], **known: Any) -> Any:
        for field in msgspec.structs.fields(kind):
            if field.name in known:
                continue
            if field.type is int:
                known[field.name] = next(numbers)
            elif field.type is float:
                known[field.name] = next(numbers) + 0.5
            elif field.type is Distribution:
                at = 1_000_000 * next(numbers)
                known[field.name] = Distribution(
                    next(numbers), at, at + 1e7, at + 2e7, at + 3e7, at + 4e7
                )
        return kind(**known)

    def scheduler(name: str, engine: str, crashes: int) -> Any:
        days = Daily(0.25, 0.125, [0.5])
        refused = {"no_room": next(numbers), "job_limit": next(numbers)}
        return of(
            SchedulerSummary, name=name, engine=engine, crashes=crashes, busyness=next(numbers) / 1e3,
            refused=refused, daily_busyness=days, daily_conflicts=days, lanes={}, figures={},
        )  # fmt: skip

    def use() -> Any:
        shares = [next(numbers) / 1e3 for _ in range(3)]
        imbalance = {"cpu": shares[0], "memory": shares[1]}
        return of(Use, clusters={"a": {"cpu": shares[2]}}, imbalance=imbalance)

    used = {name: use() for name in ("mean", "end")}
    stages = {stage: of(KindSummary).jct for stage in ("scheduled", "started")}
    return of(
        Summary,
        scenario="numbered",
        fleet="omega + sparrow",
        left_out=[],
        counts=of(Counts),
        breakdown={"waiting": 1.0, "placing": 2.0, "running": 3.0},
        timeline=of(Timeline, spread=stages),
        kinds={},
        owners={},
        speed_up=SpeedUp(
            jobs=1, faster=0.5, p50=1.25, p80=1.5, p90=2.5, largest=3.25, quantiles=[]
        ),
        utilisation={"cpu": 0.123, "memory": 0.456},
        placement=of(Placement, **used),
        network={"sent": 9_000, "lost": 17, "cut": 0},
        schedulers=(scheduler("one", "omega", 2), scheduler("two", "sparrow", 0)),
        log_digest="digest",
        series={},
    )


def empty() -> Summary:
    """A run of one scheduler without anything in it, over a network that is not counted."""
    nothing = Distribution()
    names = ("jobs", "jobs_finished", "tasks", "tasks_finished", "tasks_running", "tasks_queued")
    rest = ("tasks_pending", "tasks_abandoned", "preemptions", "losses")
    one = SchedulerSummary(
        name="s", engine="omega", jobs=0, busyness=0.0, transactions=0, conflicts=0, refused={},
        messages_sent=0, crashes=0,
    )  # fmt: skip
    return Summary(
        scenario="empty", seed=1, fleet="omega", ended_at=0,
        counts=Counts(**dict.fromkeys(names + rest, 0)), wait_time=nothing,
        placement_latency=nothing, jct=nothing, response_time=nothing,
        utilisation={}, conflict_fraction=0.0, network={}, schedulers=(one,), events=0, log_digest="",
        series={},
    )  # fmt: skip


def rank(engine: str, place: int | None, value: float | None, **fields: Any) -> EngineRank:
    estimate = None if value is None else Estimate(value, value - 1e6, value + 3e6)
    known: dict[str, Any] = {
        "ratio": None if place == 1 or value is None else Ratio(value / 1e7, 0.25, 1.5, 4.0),
        "finished": 1.0,
        "mean_jct": 2e7,
        "breakdown": Breakdown(1e6, 2e6, value - 3e6) if value else None,
        "conflict_fraction": 0.25,
        "violating": None,
        "split_gangs": None,
        "passed_over": None,
        "utilisation": {"cpu": 0.5, "memory": 0.25},
        "messages": 1_234.0,
        "notices": 5.0,
        "quantiles": (1e6, 2e6, 4e6, 9e6),
    }
    return EngineRank(engine=engine, fleet=engine, place=place, estimate=estimate, **known | fields)


KINDS = {"batch": KindRank(4e6, 1.0), "service": KindRank(None, None), "web": KindRank(8e6, 0.5)}
FULL = Ranking(
    scenario="s",
    metric="jct",
    seeds=(1, 2, 3),
    best="a",
    leaders=("a", "b"),
    standings=(
        rank("a", 1, 1.00e7, kinds=KINDS, violating=0.1, messages=9.0, notices=70_000.0),
        rank("b", 1, 1.01e7, ratio=Ratio(1.01, 0.1, 0.9, 1.2), finished=0.999, mean_jct=3e7,
            kinds=KINDS | {"web": KindRank(4e6, 1.0)}),
        rank("c", 2, 2e7, conflict_fraction=1.5, kinds=KINDS | {"batch": KindRank(1e6, 0.5)},
            breakdown=Breakdown(1e6, 1e6, 1e6)),
        rank("d", 3, 3e7, ratio=Ratio(3.0, 0.1, 2.9, 3.1), kinds=KINDS | {"batch": KindRank(3e6, 1.0)}),
        rank("e", 4, 5e7, ratio=Ratio(float("inf"), 0.1, 2.9, 3.1), kinds=KINDS),
        rank("f", None, 6e6, apart="finished fewer jobs", finished=0.75, kinds=KINDS),
        rank("g", None, 1e7, apart="ignores gangs", split_gangs=0.125, kinds=KINDS,
            ignores=(IgnoredDemand("g", "gangs", "1 job asks for one"),)),
        rank("h", None, None, apart="no job finished", finished=0.0, kinds=KINDS),
    ),
    elsewhere={"jct.mean": ("c",), "jct.p50": ("c",), "jct.p99": ("b", "c"), "jct.p90": ("c", "d")},
    failures={"i": "it broke"},
)  # fmt: skip
NONE = Ranking(
    scenario="s", metric="jct", seeds=(1,), best=None,
    standings=(rank("h", None, None, apart="no job finished", finished=0.0),), failures={"i": "no"},
)  # fmt: skip


def swept() -> sweeps.SweepResult:
    def at(value: Any, **medians: float) -> sweeps.SweepRow:
        ordered = sorted(medians, key=lambda engine: medians[engine])
        standings = tuple(rank(name, at + 1, medians[name]) for at, name in enumerate(ordered))
        ranking = replace(
            FULL, best=ordered[0], leaders=(ordered[0],), standings=standings, failures={}
        )
        return sweeps.SweepRow(value, ranking)

    nothing = sweeps.SweepRow(3_000, NONE)
    rows = (at(1_000, a=1e7, b=3e7), at(2_000, a=2e7, b=2.5e7), nothing, at(4_000, a=50e7, b=1e7))
    return sweeps.SweepResult(scenario="s & t", varied="cell.count", metric="jct", rows=rows)


def audited() -> Audit:
    def of(name: str, limit: int | None, at: int) -> SchedulerAudit:
        held = {
            "cpu": Held(hours=at + 0.5, share=0.25, peak=1_500 * at, peak_share=0.5, limit=limit,
                peak_of_limit=None if limit is None else 0.75),
            "gpu": Held(hours=2.0 * at, share=0.125, peak=at, peak_share=0.0625, limit=None,
                peak_of_limit=None),
        }  # fmt: skip
        counts = {
            field.name: at + place
            for place, field in enumerate(msgspec.structs.fields(SchedulerAudit))
            if field.type is int
        }
        known: dict[str, Any] = {"name": name, "engine": "omega", "resources": held, "job_limit": 3}
        return SchedulerAudit(**counts | known, limit_refusals={"job_limit": at, "cpu": 1})

    return Audit(
        scenario="s", seed=4, ended_at=5, schedulers=[of("one", 6_000, 10), of("two", None, 50)],
        claims_lost_to_nobody=1_234,
    )  # fmt: skip


def campaign_row(engine: str, runs: int, failed: int, refused: int, **checks: int) -> CampaignRow:
    return CampaignRow(engine=engine, runs=runs, failed=failed, refused=refused, checks=checks)


def campaign() -> CampaignResult:
    rows = [campaign_row("omega", 10, 0, 2), campaign_row("sparrow", 2_000, 3, 0, gang=1, crash=2)]
    known: dict[str, Any] = {"engine": "sparrow", "engines": ("sparrow",), "kind": "k", "number": 7}
    failures = [
        CampaignFailure(
            **known, check="crash", detail="it is wrong\nmore", times=2, command="argosy run x"
        ),
        CampaignFailure(**known, check="gang", detail="split", times=1),
    ]
    return CampaignResult(world="sim", rows=rows, failures=failures, seconds=1.0)


def parts() -> Iterator[tuple[str, list[str]]]:
    def shown(table: Table | None) -> list[str]:
        return [] if table is None else [*table.lines(), table.csv()]

    for made in (numbered(), empty()):
        for at, section in enumerate(summaries.sections(made)):
            yield f"{made.scenario} {at}", section
        yield "flat", [f"{name} = {value}" for name, value in summaries.flat(made).items()]
        built = summaries.document(made)
        yield "document", [f"{name} = {built[name]}" for name in ("messages", "notices", "network")]
        yield "metrics", [f"{name} = {metric.value(made)}" for name, metric in METRICS.items()]
    ranked = FULL.ranked()
    yield "places", shown(comparison.table(FULL, JCT))
    yield "two places", shown(comparison.table(FULL, JCT, most=2))
    yield "apart", shown(comparison.apart_table(FULL, JCT))
    yield "kinds", shown(comparison.kinds_table(ranked, "kinds"))
    yield "owners", shown(comparison.kinds_table(ranked, "owners"))
    yield "causes", shown(comparison.causes(ranked))
    yield "causes without constraints", shown(comparison.causes(ranked[1:]))
    yield "bars", comparison.bars(FULL.standings, JCT, 70)
    yield "breakdown", comparison.breakdown(FULL.standings, 70)
    yield "no breakdown", comparison.breakdown(NONE.standings, 70)
    yield "spread", comparison.spread(ranked[:2], 70)
    for name, ranking in (
        ("all", FULL),
        ("nobody", NONE),
        ("one seed", replace(FULL, seeds=(1,))),
        ("one leader", replace(FULL, leaders=("a",))),
        ("all tie", replace(FULL, standings=FULL.standings[:2])),
        (
            "unranked ignore",
            replace(FULL, standings=tuple(replace(s, place=1) for s in FULL.standings)),
        ),
        (
            "two ignore",
            replace(FULL, standings=(*FULL.standings, replace(FULL.standings[6], engine="g2"))),
        ),
    ):
        yield f"verdict: {name}", verdicts.verdict(ranking, JCT)
    yield "verdict: short", verdicts.verdict(FULL, JCT, most=1, has_seeds=False)
    yield "reasons", verdicts.reasons(FULL)
    yield "few reasons", verdicts.reasons(FULL, most=2)
    yield "no reasons", verdicts.reasons(NONE)
    again = {"a": 2, "b": 1, "c": None, "d": 1, "e": 3}
    others = [replace(s, place=again.get(s.engine, s.place)) for s in FULL.standings]
    found = overall.overall([FULL, replace(FULL, metric="wait", standings=tuple(others))])
    yield "overall", shown(overall.overall_table(found)) + overall.overall_lines(found)
    yield "overall of nobody", overall.overall_lines(overall.overall([NONE]))
    sweep = swept()
    yield "sweep", shown(sweeps.sweep_table(sweep, JCT)) + sweeps.sweep_lines(sweep, JCT)
    (chart,) = sweeps.sweep_figure(sweep, JCT).panels
    yield "sweep as a figure", [chart.title, repr(chart.x), repr(chart.y), *map(repr, chart.lines)]
    words = replace(
        sweep, rows=tuple(replace(row, value=f"v{row.value}") for row in sweep.rows[:2])
    )
    (chart,) = sweeps.sweep_figure(words, METRICS["conflicts"]).panels
    yield "sweep over words", [chart.title, repr(chart.x), repr(chart.y), *map(repr, chart.lines)]
    yield "sweep without changes", sweeps.sweep_lines(words, JCT)
    page = sweeps.sweep_page([(sweep, JCT), (words, JCT)], "argosy <sweep>")
    yield "sweep as a page", re.findall("<h1>.*|<p.*</p>", page)
    for at, section in enumerate(audits.sections(audited(), None)):
        yield f"audit {at}", section
    yield "audit as csv", [audits.csv(audited())]
    unlimited = replace(audited(), schedulers=audited().schedulers[1:], claims_lost_to_nobody=0)
    yield (
        "audit without limits",
        [line for part in audits.sections(unlimited, None) for line in part],
    )
    for width in (None, 50):
        for at, section in enumerate(campaigns.sections(campaign(), width)):
            yield f"campaign {at} in {width}", section
    yield "campaign", [campaigns.verdict(campaign()), str(campaigns.document(campaign())["runs"])]
    good = replace(campaign(), rows=[campaign_row("omega", 10, 0, 0)], failures=[])
    yield "good campaign", [campaigns.verdict(good), *campaigns.table(good).lines()]


def test_reports_are_pinned_number_by_number(request: pytest.FixtureRequest) -> None:
    text = "\n".join(f"== {name}\n" + "\n".join(lines) for name, lines in parts())
    update = request.config.getoption("--update-golden")
    require_golden("reports", text + "\n", update=update, folder=Path(__file__).parent)


def test_medians_are_over_seeds() -> None:
    """What `compare` makes of three runs, of which one stands out."""
    runs = []
    for seed, factor in enumerate((1, 2, 9)):
        made = summary(
            "omega x2", seed=seed, jct=factor * 10e6, wait=factor * 1e6, finished=90 + factor
        )
        one, other = made.schedulers
        counts = replace(made.counts, gangs=4, gangs_split=factor)
        use = replace(made.placement.mean, violating=float(factor))
        kind = KindSummary(
            jobs=10, jobs_finished=factor, jobs_abandoned=0, jobs_endless=1, wait_time=made.jct,
            placement_latency=made.jct, jct=made.jct if factor > 1 else Distribution(),
        )  # fmt: skip
        runs.append(
            replace(
                made,
                counts=counts,
                schedulers=(replace(one, messages_sent=100 * factor), other),
                utilisation={"cpu": 0.1 * factor, "memory": 0.05},
                conflict_fraction=0.3 * factor,
                placement=replace(made.placement, mean=use),
                kinds={"batch": kind, "web": replace(kind, jobs_endless=10)},
            )
        )
    (found,) = compare({"omega": runs}, JCT).standings
    assert found.estimate is not None
    assert found.estimate.value == 16e6
    assert (found.place, found.apart, found.ratio, found.fleet) == (1, "", None, "omega x2")
    assert found.finished == (91 + 92 + 99) / 300
    assert found.mean_jct == 20e6
    assert found.breakdown == Breakdown(4e6, 4e6, 32e6)
    assert found.conflict_fraction == 0.6
    assert found.violating == 0.2
    assert found.split_gangs == 1.0
    assert found.utilisation == {"cpu": 0.2, "memory": 0.05}
    assert (found.messages, found.notices) == (800, 700)
    assert found.quantiles == (16e6, 40e6, 80e6, 100e6)
    assert found.kinds == {
        "batch": KindRank(pytest.approx(44e6), 12 / 27),
        "web": KindRank(pytest.approx(44e6), None),
    }
    assert found.owners == {}


def test_runs_without_constraints_do_not_count_as_kept_ones() -> None:
    none = summary("omega", seed=2)
    none = replace(none, placement=replace(none.placement, mean=Use()))
    (found,) = compare({"omega": [summary("omega"), none]}, JCT).standings
    assert found.violating == 0.2
    (found,) = compare({"omega": [none]}, JCT).standings
    assert (found.violating, found.split_gangs) == (None, None)


@pytest.mark.parametrize(("slower", "places"), [(1.0199, [1, 1]), (1.02, [1, 2]), (1.5, [1, 2])])
def test_medians_that_differ_by_the_threshold_are_no_tie(slower: float, places: list[int]) -> None:
    compared = compare(
        runs_of(a=[100e6], b=[slower * 100e6]), JCT, rule=RankingRule(threshold=0.02)
    )
    assert [standing.place for standing in compared.standings] == places


def test_families_of_metrics_are_the_mean_the_median_and_the_tail() -> None:
    for name in ("jct", "jct.p90", "jct.mean"):
        assert [each.name for each in related_metrics(find_metric(name))] == [
            "jct.mean",
            "jct.p50",
            "jct.p99",
        ]
    assert related_metrics(find_metric("conflicts")) == []


@pytest.mark.parametrize(("finished", "apart"), [(99, ""), (98, "finished fewer jobs")])
def test_an_engine_that_finishes_nearly_all_jobs_is_ranked(finished: int, apart: str) -> None:
    runs = {"a": [summary("a")], "b": [summary("b", finished=finished)]}
    assert compare(runs, JCT).standing("b").apart == apart
