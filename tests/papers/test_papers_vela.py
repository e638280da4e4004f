"""The Vela paper: its test bed, its points, and how claims are judged."""

from __future__ import annotations

import pytest

from argosy.papers.experiment import ExperimentPoint, Findings, PointResult, digest
from argosy.papers.vela import VELA
from argosy.papers.vela.infrastructure import TIMES, fitted, line_of
from argosy.papers.vela.points import DRAWN_FROM, FIGURES, SCALES, plan
from argosy.papers.vela.trials import run_point
from argosy.papers.vela.world import (
    GIB,
    capacity,
    clusters,
    scheduler_settings,
    sizes_of,
    table_ii,
)


@pytest.mark.parametrize("kind", ["cloud", "edge"])
def test_a_cluster_of_any_size_has_all_its_machines(kind: str) -> None:
    for count in range(1, 250):
        assert len(sizes_of(kind, count)) == count
    cores = [size.cpu // 1_000 for size in sizes_of("cloud", 7)]
    assert cores == [2, 2, 2, 2, 4, 4, 8]


def test_the_clusters_are_those_of_table_ii() -> None:
    cell = table_ii(2_000)
    assert len(clusters()) == 10
    assert len(cell.machines) == 20_000
    assert sum(machine.capacity.cpu for machine in cell.machines) == 78_800_000
    assert sum(machine.capacity.memory for machine in cell.machines) == 89_000 * GIB
    assert [capacity(cell, cores) for cores in (1, 2, 4)] == [60_600, 28_200, 11_200]
    too_small = [m for m in cell.machines if m.capacity.cpu < 4_000 or m.capacity.memory < 4 * GIB]
    assert len(too_small) == 10_000


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_points_for_every_figure(scale: str) -> None:
    points = plan(scale, FIGURES)
    assert {point.figure for point in points} == set(FIGURES) - set(DRAWN_FROM)
    assert len({digest(point) for point in points}) == len(points)
    for figure in FIGURES:
        assert plan(scale, [figure])


def test_the_full_scale_is_that_of_the_paper() -> None:
    settings = {(p.parameters["clusters"], p.parameters["machines"]) for p in plan("full", ["4"])}
    assert len(settings) == 40
    assert len(plan("full", ["6"])) == 2 * 5 * 3
    rates = {point.parameters["rate"] for point in plan("full", ["table 3"])}
    assert rates == {15, 54, 72, 94, 99, 133, 175, 212, 254, 290}


@pytest.mark.parametrize("per_cluster", [100, 200, 2_000])
def test_a_smaller_scheduler_computes_for_as_many_jobs_in_proportion(per_cluster: int) -> None:
    for part in (1.0, 0.25):
        settings = scheduler_settings(per_cluster, part)
        sampled = 5 * 0.04 * per_cluster
        work = sampled * settings["t_read"] + settings["t_commit"] + settings["t_decision"]
        jobs_per_second = 1_000_000 * settings["cores"] / work
        # The paper's 8 processors manage 115 jobs a second at 69.5 ms each.
        assert jobs_per_second == pytest.approx(115 * part * per_cluster / 2_000, rel=0.01)


def test_a_line_is_fitted_by_least_squares() -> None:
    line = fitted([(0, 1), (1, 3), (2, 5)])
    assert (line.intercept, line.slope, line.explained) == pytest.approx((1, 2, 1))
    bent = fitted([(0, 0), (1, 1), (2, 0)])
    assert (bent.slope, bent.explained) == pytest.approx((0, 0))


def test_two_sizes_are_no_line() -> None:
    points = [
        ExperimentPoint(
            paper="vela",
            figure="5",
            parameters={"machines": size, "sample": "share"},
            seed=1,
            scale="smoke",
        )
        for size in (1_000, 2_000, 3_000)
    ]
    for count, is_line in ((2, False), (3, True)):
        made = {
            digest(each): PointResult(dict.fromkeys((name for name, _ in TIMES.values()), 1.0))
            for each in points[:count]
        }
        found = Findings(points[:count], made)
        assert (line_of(found, next(iter(TIMES)), "share") is not None) == is_line


def small(figure: str, seed: int = 1, **parameters: int | float | str) -> dict[str, float]:
    point = ExperimentPoint(
        paper="vela", figure=figure, parameters=parameters, seed=seed, scale="smoke"
    )
    return run_point(point).values


def test_points_of_figures_5_to_8_take_longer_with_more_machines() -> None:
    few, many = (small("5", machines=size, sample="share") for size in (1_000, 10_000))
    assert few["placed"] == many["placed"] == 200
    for name in ("mean sampling ms", "mean end to end ms"):
        assert few[name] < many[name]
    fixed = small("5", machines=10_000, sample="number")
    assert fixed["machines drawn"] == 200 * 5 * 40


def test_a_point_of_table_3_counts_what_the_paper_counts() -> None:
    told = small("9", rate=54, candidates=3, prefer="lowest", ends=0)
    assert told["jobs"] == told["placed"] == 486
    assert told["throughput"] == pytest.approx(54, rel=0.02)
    assert told["decisions per second"] == pytest.approx(54, rel=0.02)
    assert told["rescheduled share"] == 0
    assert 0 < told["busy"] < 1


def test_losing_an_instance_does_not_touch_the_jobs_of_the_other() -> None:
    lost, usual = (small("losses", lost=what) for what in ("instance", "nothing"))
    assert lost["placed of others"] == 1
    # It has twice as much to do meanwhile, and the jobs are others.
    assert lost["ms during of others"] != usual["ms during of others"]
    assert lost["ms during of others"] == pytest.approx(usual["ms during of others"], rel=0.1)


def test_a_scheduler_of_the_whole_state_conflicts_with_others_of_its_kind() -> None:
    rows = {
        count: small("baseline", engine="omega", placement="worst-fit", instances=count, rate=94)
        for count in (1, 8)
    }
    assert rows[1]["conflicting"] == 0
    assert rows[8]["conflicting"] > 0


def test_a_point_of_figure_4_fills_the_clusters() -> None:
    parameters = {"clusters": 50, "machines": 4}
    point = ExperimentPoint(paper="vela", figure="4", parameters=parameters, seed=1, scale="smoke")
    result = run_point(point)
    assert result["jobs"] == result["placed"] + result["abandoned"] == 560
    assert result["machines eligible"] <= result["machines drawn"]


def judged(
    figure: str, cases: list[tuple[dict[str, int | str], dict[str, float]]]
) -> dict[str, bool]:
    return judged_from(figure, figure, cases)


def judged_from(
    figure: str, wanted: str, cases: list[tuple[dict[str, int | str], dict[str, float]]]
) -> dict[str, bool]:
    """The claims of one figure, drawn from the points of another."""
    points = [
        ExperimentPoint(paper="vela", figure=figure, parameters=dict(case), seed=1, scale="quick")
        for case, _ in cases
    ]
    results = {
        digest(point): PointResult(values) for point, (_, values) in zip(points, cases, strict=True)
    }
    found = Findings(points, results)
    assert VELA.draw(found, [wanted])[0].panels
    return {claim.id: claim.holds for claim in VELA.claims(found, [wanted])}


@pytest.mark.parametrize(
    ("failures", "holds"),
    [((0.3, 0.0, 0.0), (True, True, True)), ((0.0, 0.001, 0.001), (False, False, False))],
)
def test_claims_about_failures(failures: tuple[float, ...], holds: tuple[bool, ...]) -> None:
    cases: list[tuple[dict[str, int | str], dict[str, float]]] = [
        ({"clusters": clusters, "machines": 4}, {"failed": failed, "jobs": 1_120.0})
        for clusters, failed in zip((10, 50, 70), failures, strict=True)
    ]
    ids = ("vela-4-zero", "vela-4-falls", "vela-4-none-from-70")
    assert judged("4", cases) == dict(zip(ids, holds, strict=True))


@pytest.mark.parametrize(
    ("with_three", "throughput", "holds"),
    [(0.005, 94.0, (True, True, True)), (0.1, 80.0, (False, False, False))],
)
def test_claims_about_conflicts(
    with_three: float, throughput: float, holds: tuple[bool, ...]
) -> None:
    cases: list[tuple[dict[str, int | str], dict[str, float]]] = [
        (
            {"rate": 94, "candidates": m, "prefer": "lowest", "ends": 0},
            {"conflicting": share, "retried": 0.2, "throughput": speed},
        )
        for m, share, speed in ((1, 0.28, 90.0), (3, with_three, throughput))
    ]
    names = ("factor", "rare", "throughput")
    ids = [f"vela-9-{name}-lowest" for name in names]
    assert judged("9", cases) == dict(zip(ids, holds, strict=True))


@pytest.mark.parametrize(("growth", "fixed", "holds"), [(30, 1, True), (0, 20, False)])
def test_claims_about_times(growth: int, fixed: int, holds: bool) -> None:
    def case(size: int, sample: str, slope: int) -> tuple[dict[str, int | str], dict[str, float]]:
        time = slope * size / 1_000
        values = {
            "mean sampling ms": 210 + time,
            "mean commit ms": 46 + time / 5,
            "mean end to end ms": 256 + 10 * time,
            "mean end to end without queue ms": 260 + 1.3 * time,
        }
        return {"machines": size, "sample": sample}, values

    sizes = (1_000, 5_000, 10_000, 15_000, 20_000)
    cases = [case(size, "share", growth) for size in sizes]
    cases += [case(size, "number", fixed) for size in sizes]
    told = judged("5", cases)
    assert {told[f"vela-5-linear-{name}"] for name in ("sampling", "commit", "e2e")} == {holds}
    assert told["vela-5-constant-sampling"] is holds
    assert judged_from("5", "6", cases)["vela-6-sampling-20k"] is holds
    assert judged_from("5", "8", cases)["vela-8-retry-is-cheaper"] is True


@pytest.mark.parametrize(
    ("ratio", "placed", "holds"),
    [(1.0, 1.0, True), (1.11, 1.0, False), (0.89, 1.0, False), (1.0, 0.99, False)],
)
def test_an_instance_that_is_lost_must_not_make_others_slower_or_faster(
    ratio: float, placed: float, holds: bool
) -> None:
    cases: list[tuple[dict[str, int | str], dict[str, float]]] = [
        (
            {"lost": lost},
            {"placed of others": share, "ms during of others": ms, "ms during": 100.0},
        )
        for lost, ms, share in (("nothing", 100.0, 1.0), ("instance", 100.0 * ratio, placed))
    ]
    assert judged("losses", cases) == {"vela-losses-instance": holds}


@pytest.mark.parametrize(("queue", "loss", "holds"), [(20_000, 0.28, True), (0, 0.01, False)])
def test_claims_of_table_3(queue: int, loss: float, holds: bool) -> None:
    cases: list[tuple[dict[str, int | str], dict[str, float]]] = [
        (
            {"rate": rate, "candidates": m, "prefer": "lowest", "ends": 0},
            {
                "throughput": speed * (1 - loss if m == 1 else 1),
                "mean queueing ms": queue if rate > 99 else 0,
                "rescheduled share": 0.0,
                "decisions per second": speed,
            },
        )
        for rate, speed in ((99, 98.5), (133, 107))
        for m in (1, 3)
    ]
    told = judged_from("9", "table 3", cases)
    assert told["vela-t3-sustains-lowest"]
    assert told["vela-t3-none-rescheduled-lowest"]
    assert told["vela-t3-queue-133-lowest"] is holds
    assert told["vela-t3-loss-133-lowest"] is holds


@pytest.mark.parametrize(
    ("informed", "blind", "holds"), [(0.03, 0.3, True), (0.0, 0.0, False), (0.04, 0.3, False)]
)
def test_informed_sampling_is_better_only_if_jobs_fail_without(
    informed: float, blind: float, holds: bool
) -> None:
    drawn = {"machines drawn": 2.0, "machines eligible": 1.0}
    cases: list[tuple[dict[str, int | str], dict[str, float]]] = [
        ({"asks": "informed"}, {"failed": informed, **drawn}),
        ({"asks": "uninformed"}, {"failed": blind, **drawn}),
    ]
    assert judged("sampling", cases)["vela-sampling-informed"] is holds
