"""What is measured of a run of the Murmuration paper's experiments, and of which jobs they are made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.papers.experiment import (
    ExperimentPoint,
    Findings,
    Parameter,
    PointResult,
    digest,
)
from argosy.papers.murmuration import jobs as jobs_module
from argosy.papers.murmuration import measures
from argosy.papers.murmuration import world as world_module
from argosy.papers.murmuration.cluster import claims_11
from argosy.papers.murmuration.jobs import POD, is_one_by_one, jobs_of, machines_for
from argosy.papers.murmuration.reading import cumulative, one
from argosy.papers.murmuration.world import run_point
from argosy.testing.builders import job
from argosy.workloads import eagle, fanout
from argosy.workloads.synthetic import Estimates

SECOND = 1_000_000


def point(**parameters: Parameter) -> ExperimentPoint:
    return ExperimentPoint(
        paper="murmuration", figure="A", parameters=parameters, seed=3, scale="smoke"
    )


def test_pods_belong_to_the_job_that_they_are_from() -> None:
    pods = [job(f"p{n}", owner=owner) for n, owner in enumerate("aabbba")]
    world: Any = SimpleNamespace(scenario=SimpleNamespace(jobs=pods))
    assert measures._jobs(world, point(pattern="A", system="kube-1s")).tolist() == [
        *(0, 0, 1, 1, 1, 2),
    ]
    for whole in (point(system="sparrow"), point(pattern="C", system="flood")):
        assert measures._jobs(world, whole).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"pattern": "A", "system": "kube-1s"}, True),
        ({"pattern": "C", "system": "flood"}, False),
        ({"system": "sparrow"}, False),
    ],
)
def test_pods_come_one_by_one_at_the_rates_of_a_pattern(
    told: dict[str, Parameter], expected: bool
) -> None:
    assert is_one_by_one(point(**told)) is expected


def test_a_job_lasts_from_its_first_task_to_the_end_of_its_last() -> None:
    arrived, ended = measures._first_and_last(
        np.array([5, 3, 9, 7]), np.array([10, 30, 20, 8]), np.array([0, 0, 1, 1])
    )
    assert arrived.tolist() == [3, 7]
    assert ended.tolist() == [30, 20]


def world_of(*machines: Machine, request: Resources = POD) -> Any:
    """As far as slots are concerned."""
    dimensions = ("cpu", "memory", "pods")
    capacity = np.array([each.capacity.vector(dimensions) for each in machines])
    view = SimpleNamespace(dimensions=dimensions, capacity=lambda: capacity)
    return SimpleNamespace(
        scenario=SimpleNamespace(jobs=[job("j", request=request)]), host=SimpleNamespace(view=view)
    )


def test_machines_hold_as_many_pods_as_the_scarcest_resource_allows() -> None:
    world = world_of(
        Machine("cores", Resources(850, 0, {"pods": 110})),
        Machine("pods", Resources(16_000, 0, {"pods": 110})),
    )
    assert measures._slots(world).tolist() == [8, 110]


def steady(started: list[int], finished: list[int], submit: list[int]) -> tuple[int, float]:
    """In a cluster of 20 slots, of which 19 are enough."""
    world = world_of(Machine("m", Resources(2_000, 0, {"pods": 110})))
    return measures._steady(world, np.array(started), np.array(finished), np.array(submit))


def test_a_cluster_is_full_from_when_nearly_all_slots_are_taken() -> None:
    """19 pods run from second 19 on; one ends at 30 and another follows at 40."""
    started = [*range(1, 20), 40]
    finished = [30, *[100] * 18, 90]
    assert steady(started, finished, [0, 59]) == (19, (40 - 10 - 10) / 40 + 10 / 40)
    # From then until the last job arrives.
    assert steady(started, finished, [0, 35]) == (19, 11 / 16)
    # A pod that follows at once leaves no gap.
    assert steady([*range(1, 20), 30], finished, [0, 59]) == (19, 1.0)


def test_time_counts_from_the_start_if_a_cluster_is_never_full_in_time() -> None:
    started = [*range(1, 20)]
    assert steady(started[:18], [100] * 18, [0, 59]) == (0, 0.0)
    assert steady([*started[:18], 30], [30, *[100] * 18], [0, 59]) == (0, 0.0)
    assert steady(started, [100] * 19, [0, 19]) == (0, 0.0)
    assert steady(started, [100] * 19, [0, 20]) == (19, 1.0)


def test_quantiles_go_from_the_smallest_to_the_largest() -> None:
    found = measures._quantiles(np.array([3.0, 1.0, 2.0]))
    assert len(found) == 101
    assert (found[0], found[25], found[50], found[100]) == (1.0, 1.5, 2.0, 3.0)
    assert measures._quantiles(np.array([])) == []


def test_parts_of_tasks_lives_are_told_by_job() -> None:
    """Job 0 has tasks 0 and 1, job 1 task 3; task 2 does not count."""
    ones = np.array([1, 3, 100, 5]) * SECOND
    times: Any = SimpleNamespace(
        submitted=np.array([50, 52, 0, 60]) * SECOND,
        tst=ones,
        w2x=2 * ones,
        x=3 * ones,
        tct=6 * ones,
    )
    rows = np.array([True, True, False, True])
    found = measures._of_jobs(times, np.array([4, 4, 5, 6]), rows)
    assert {name: values.tolist() for name, values in found.items()} == {
        "mean_w2x": [4, 10],
        "mean_x": [6, 15],
        "mean_tst": [2, 5],
        "tail_tst": [3, 5],
        "mean_tct": [12, 30],
        "tail_tct": [18, 30],
        # Half of the distance between the two: of submission, and of the ends of each stage.
        "spread_added": [1, 0],
        "spread_scheduled": [2, 0],
        "spread_started": [4, 0],
        "spread_finished": [7, 0],
        "spread_wait": [3, 0],
    }


def test_jobs_are_chosen_until_there_are_enough_pods() -> None:
    many = [job(f"j{n}", 4) for n in range(5)]
    for pods, count in ((1, 1), (4, 1), (5, 2), (8, 2), (99, 5)):
        assert list(jobs_module._until(many, pods)) == many[:count]


class Drawn:
    """Random numbers that are given."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = iter(numbers)

    def normal(self) -> float:
        return next(self._numbers)


def test_estimates_are_wrong_by_a_fifth_and_never_by_all() -> None:
    many = [job(f"j{n}", 2, seconds=10) for n in range(5)]
    many[4] = job("short", seconds=0.000_001)
    drawn: Any = Drawn(0.0, 1.0, 9.0, -9.0, -1.0)
    mistaken = list(jobs_module._mistaken(many, drawn))
    assert [each.groups[0].estimate for each in mistaken] == [
        *(10_000_000, 12_100_000, 19_000_000, 1_000_000, 1),
    ]
    assert [each.truth for each in mistaken] == [each.truth for each in many]
    assert [each.id for each in mistaken] == [each.id for each in many]


def test_simulations_take_drawn_jobs_a_thousand_times_as_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def generate(shape: Any, count: int, random: Random, **more: Any) -> Any:
        asked.append((shape, count, random.uniform(), more))
        return iter([job("j")])

    monkeypatch.setattr(fanout, "generate", generate)
    uniform = Random(3).child("workload").uniform()
    told: dict[str, Parameter] = {"system": "sparrow", "jobs": 70, "workload": "cloudera"}
    assert jobs_of(point(**told)) == (job("j"),)
    jobs_of(point(**told, error=0.0))
    jobs_of(point(**told, error=0.5))
    plain = {"speedup": 1_000.0, "estimates": None}
    wrong = {"speedup": 1_000.0, "estimates": Estimates(low=0.5, high=1.5)}
    shape = fanout.shape("cloudera")
    assert asked == [(shape, 70, uniform, more) for more in (plain, plain, wrong)]


def test_simulations_on_a_trace_take_its_first_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def read(path: Any, random: Random, **more: Any) -> Any:
        asked.append((str(path), more))
        return iter([job("j")])

    monkeypatch.setattr(eagle, "read", read)
    jobs_of(point(system="sparrow", jobs=70, workload="yahoo", trace="t.csv", error=0.25))
    wrong = Estimates(low=0.75, high=1.25)
    assert asked == [("t.csv", {"speedup": 1_000.0, "most": 70, "estimates": wrong})]


def test_the_flood_has_as_many_tasks_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def generate(shape: Any, count: int, random: Random, **more: Any) -> Any:
        asked.append((shape, count, more))
        return iter([job("a", 30), job("b", 10)])

    monkeypatch.setattr(fanout, "generate", generate)
    assert len(jobs_of(point(system="flood", pattern="C", pods=2_000))) == 2
    yahoo = fanout.shape("yahoo")
    assert asked == [
        (yahoo, 500, {"scale": 1.0}),
        (yahoo, 500, {"pattern": "C", "speedup": 100.0, "scale": 50.0, "request": POD}),
    ]


def test_machines_are_to_the_work_what_fifty_are_to_the_trace() -> None:
    """A second of arrivals at least, and one machine at least."""
    a_second = fanout.PATTERNS["A"].mean * 702.1
    many = (job("a", seconds=a_second * 10 * 0.5), job("b", seconds=a_second * 5, submit=10))
    assert machines_for(many, "A") == 50
    assert machines_for((job("a", seconds=a_second, submit=0.5),), "A") == 50
    assert machines_for((job("a", seconds=1, submit=0.5),), "A") == 1


def test_jobs_of_a_scheduler_that_starts_late_are_told_apart() -> None:
    """Of three schedulers with ten machines; the first is down for the first second."""
    result = run_with(
        [job(f"j{n}", 2, cpu=1_000, memory=0, seconds=1, submit=n / 2) for n in range(24)],
        system="murmuration-fcfs", machines=30, schedulers=0.1, restart=1.0, workload="yahoo",
    )  # fmt: skip
    assert result["schedulers"] == 3
    assert len(result.series["new"]) == len(result.series["others"]) == 101
    assert result["jobs"] == 24
    assert "arrivals.p50" not in result.values
    assert "full" not in result.values


def test_jobs_count_from_when_the_late_scheduler_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "_quantiles", lambda values: values.tolist())
    result = run_with(
        [job(f"j{n}", 2, cpu=1_000, memory=0, seconds=1, submit=n / 2) for n in range(24)],
        system="murmuration-fcfs", machines=30, schedulers=0.1, restart=1.0, workload="yahoo",
    )  # fmt: skip
    # All but those of second 0 and half a second later.
    assert len(result.series["new"]) + len(result.series["others"]) == 22
    assert min(len(result.series[name]) for name in ("new", "others")) >= 5
    assert len(result.series["jct"]) == 24


def test_updates_tell_of_placements_and_of_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = measures.summarise

    def summarise(*given: Any) -> Any:
        seen.append(real(*given))
        return seen[-1]

    monkeypatch.setattr(measures, "summarise", summarise)
    result = run_with(
        [job(f"j{n}", 2, cpu=1_000, memory=0, seconds=1, submit=n / 2) for n in range(24)],
        system="murmuration-fcfs", machines=30, schedulers=0.1, workload="yahoo",
    )  # fmt: skip
    # Of 48 tasks, placements are told to two other schedulers, and ends to all three.
    assert (result["schedulers"], result["notices"]) == (3, 3 * 48)
    assert result["bytes"] == 8 * (2 * 48 + 3 * 48)
    flood = run_with([job("a", 4, request=POD, seconds=1)], system="flood", pattern="C", machines=3)
    used = seen[-1].utilisation
    assert flood["utilisation"] == max(used.values()) > min(used.values())
    assert max(used, key=used.__getitem__) != "cpu"


def test_pods_on_a_trace_begin_with_any_job_and_go_round_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = [job(f"t{n}", 2, seconds=5, estimate=9) for n in range(7)]
    monkeypatch.setattr(eagle, "read", lambda path, random, request: iter(known))
    monkeypatch.setattr(fanout, "one_by_one", lambda chosen, pattern, random: chosen)
    first = Random(3).child("workload").child("start").below(7)
    assert first > 0
    order = [f"t{(first + n) % 7}" for n in range(7)]
    for pods, count in ((14, 7), (99, 7), (8, 4), (7, 4)):
        chosen = jobs_of(point(system="kube-1s", pattern="A", pods=pods, trace="somewhere"))
        assert [each.id for each in chosen] == order[:count]


def run_with(jobs: Any, **told: Parameter) -> PointResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world_module, "jobs_of", lambda asked: tuple(jobs))
        return run_point(point(**told))


def test_a_flood_is_measured_second_by_second() -> None:
    """Ten schedulers of 5 ms a decision place four tasks within the first second, and two later."""
    result = run_with(
        [
            job("a", 4, request=POD, seconds=1),
            job("b", 2, request=POD, seconds=1, submit=2.5),
        ],
        system="flood", pattern="C", machines=3,
    )  # fmt: skip
    assert result.series["decisions"] == [4.0, 0.0, 2.0]
    assert result["peak"] == 4.0
    assert result["placed_in"] == pytest.approx(2.51, abs=0.002)
    assert result["schedulers"] == 10
    assert result["machines"] == 3
    assert result["tasks"] == 6
    assert result["tst.p50"] == pytest.approx(0.0125, abs=0.003)


def test_a_throughput_that_is_far_too_high_or_too_low_does_not_hold() -> None:
    """13 minutes for 1.6 million tasks are 78 s for a tenth of them."""
    verdicts = []
    for placed_in, peak in ((38.9, 1_949), (39.0, 1_950), (117.0, 5_850), (117.1, 5_851)):
        asked = ExperimentPoint(
            paper="murmuration", figure="11", parameters={"system": "flood"}, seed=1, scale="smoke"
        )
        result = PointResult({"tasks": 160_000, "placed_in": placed_in, "peak": peak}, {})
        claims = claims_11(Findings([asked], {digest(asked): result}))
        verdicts.append([claim.holds for claim in claims])
    assert verdicts == [[False, False], [True, True], [True, True], [False, False]]


def test_arrivals_are_counted_by_the_second() -> None:
    pods = [
        job(f"p{n}", request=POD, seconds=1, submit=at, owner=owner)
        for n, (at, owner) in enumerate(
            ((0.1, "a"), (0.2, "a"), (0.9, "b"), (2.0, "b"), (3.0, "b"), (3.5, "c"))
        )
    ]
    result = run_with(pods, system="kube-1s", pattern="A", pods=6, machines=1)
    assert result["arrivals.peak"] == 3
    assert result["arrivals.p50"] == 1.5
    assert result.series["arrivals"][0] == 0
    assert result["jobs"] == 3
    # The last job has two tasks: the first half a second before.
    assert result.series["jct"][0] == pytest.approx(1, abs=0.1)
    assert result.series["jct"][100] == pytest.approx(3.1, abs=0.1)


def test_of_several_seeds_each_number_is_the_median() -> None:
    points = [
        ExperimentPoint(paper="m", figure="1", parameters={"n": 1}, seed=seed, scale="t")
        for seed in (1, 2, 3)
    ]
    results = {
        digest(each): PointResult({"a": a, "b": 10 - a}, {"s": series})
        for each, a, series in zip(
            points, (1.0, 5.0, 3.0), ([1.0, 2.0], [7.0, 9.0, 9.0], [4.0, 8.0]), strict=True
        )
    }
    found = Findings(points, results)
    assert one(found, "1", n=1) == PointResult({"a": 3.0, "b": 7.0}, {"s": [4.0, 8.0]})
    assert one(found, "1", n=2) is None
    single = Findings(points[:1], results)
    assert one(single, "1") == PointResult({"a": 1.0, "b": 9.0}, {"s": [1.0, 2.0]})


def test_curves_go_from_nothing_to_all_and_show_short_times_at_a_millisecond() -> None:
    line = cumulative("l", [0.0, 0.001, 5.0], 2, dashed=True)
    assert [(mark.x, mark.y) for mark in line.marks] == [(0.001, 0.0), (0.001, 0.5), (5.0, 1.0)]
    assert (line.label, line.colour, line.dashed, line.stepped) == ("l", 2, True, True)
    assert [(mark.x, mark.y) for mark in cumulative("l", [7.0], 0).marks] == [(7.0, 0.0)]
