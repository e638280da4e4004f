"""What is measured of applications that were placed: on placements that are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import group_with_truth, simulated_job
from argosy.papers.experiment import DONE, ExperimentPoint
from argosy.papers.medea import applications, deployment, latency, resilience, trial, violations
from argosy.papers.medea.deployment import (
    Deployed,
    Site,
    WantedApplication,
    deploy,
    engine_of,
    site_of,
)
from argosy.papers.medea.trial import MB, PlacementTrial, sized
from argosy.papers.paper import Parameter

MEBI = 2**20


def point(figure: str, scale: str = "smoke", **parameters: Parameter) -> ExperimentPoint:
    return ExperimentPoint(paper="medea", figure=figure, parameters=parameters, seed=1, scale=scale)


def application(name: str, *roles: tuple[str, int, int], constraints: Sequence[str] = ()) -> Job:
    """Of roles with tags, memory and number."""
    groups = [
        group_with_truth(count, Resources(0, memory * MEBI), tags=tuple(tags.split()))
        for tags, memory, count in roles
    ]
    parsed = tuple(map(parse_constraint, constraints))
    return simulated_job(name, *groups, constraints=parsed).job


def deployed(
    site: Site,
    placed: Sequence[tuple[Job, list[int], int]],
    task_times: Sequence[float] = (),
    refused: int = 0,
) -> Deployed:
    """Jobs, the machine of each container, and when the last was placed."""
    return Deployed(
        site,
        [job for job, _, _ in placed],
        [np.array(rows, np.int32) for _, rows, _ in placed],
        [moment for _, _, moment in placed],
        np.zeros(site.machines, np.int64),
        refused,
        np.array(task_times, np.float64),
    )


THREE = (
    (application("a0", ("w one", MB, 2), ("m", 3 * MB, 1)), [0, 1, 0], 30),
    (application("a1", ("w", 2 * MB, 3)), [-1, -1, -1], -1),
    (application("a2", ("w", 4 * MB, 2)), [3, -1], 20),
)


def test_applications_are_in_the_order_in_which_they_were_placed() -> None:
    done = deployed(Site(4, 2), THREE)
    assert done.order == [2, 0]
    assert done.set_of.tolist() == [0, 0, 1, 1]
    assert done.machines_of(0).tolist() == [0, 1, 0]
    assert done.machines_of(0, "w").tolist() == done.machines_of(0, "one").tolist() == [0, 1]
    assert done.machines_of(0, "m").tolist() == [0]
    assert done.machines_of(2).tolist() == [3]
    assert done.machines_of(1).tolist() == []
    assert done.placed == 4 / 8


def test_machines_that_cannot_be_divided_evenly_make_sets_that_differ_by_one() -> None:
    assert deployed(Site(7, 3), THREE[:1]).set_of.tolist() == [0, 0, 0, 1, 1, 2, 2]
    cell = deployment._cell(Site(7, 3, "unit", memory=5))
    assert [machine.joins["unit"][0] for machine in cell.machines] == [
        *("s0", "s0", "s0", "s1", "s1", "s2", "s2"),
    ]
    assert [machine.name for machine in cell.machines][:2] == ["m0", "m1"]
    assert cell.machines[0].capacity == Resources(1_000, 5 * MEBI)
    assert [(group.name, group.sets) for group in cell.groups] == [("unit", ("s0", "s1", "s2"))]


def test_memory_in_use_is_that_of_the_first_applications() -> None:
    done = deployed(Site(4, 2), THREE)
    assert done.used_after(0).tolist() == [0, 0, 0, 0]
    assert done.used_after(1).tolist() == [0, 0, 0, 4 * MB]
    assert done.used_after(2).tolist() == [4 * MB, MB, 0, 4 * MB]
    assert done.used_after(9).tolist() == done.used_after(2).tolist()


def test_a_machine_is_fragmented_if_it_has_room_but_less_than_a_container_wants() -> None:
    done = deployed(Site(5, 1, memory=10 * MB), THREE)
    used = np.array([10 * MB, 10 * MB - 1, 8 * MB + 1, 8 * MB, 0])
    assert done.fragmented(used) == 2 / 5


def test_load_is_balanced_if_all_machines_have_as_much() -> None:
    done = deployed(Site(4, 2), THREE)
    assert done.imbalance(np.array([0, 0, 0, 0])) == 0.0
    assert done.imbalance(np.array([5, 5, 5, 5])) == 0.0
    assert done.imbalance(np.array([0, 10, 0, 10])) == 1.0


def test_violations_are_counted_among_the_first_applications() -> None:
    apart = "w -> {w, 0, 0} in machine"
    placed = (
        (application("a0", ("w", MB, 2), ("calm", MB, 2), constraints=(apart,)), [0, 1, 0, 1], 1),
        (application("a1", ("w", MB, 2)), [1, -1], 2),
        (application("a2", ("calm", MB, 1)), [2], 3),
    )
    done = deployed(Site(4, 2), placed)
    assert done.violating(0) == (0.0, 0.0)
    assert done.violating(1) == (0.0, 0.0)
    # Of five containers, two are together on machine 1, where none may be beside another.
    assert done.violating(2)[0] == 2 / 5
    assert done.violating()[0] == done.violating(3)[0] == 2 / 6
    assert done.violating(2)[1] == pytest.approx(2 / 5)


def test_groups_of_machines_are_those_of_the_site() -> None:
    apart = ("w -> {w, 0, 0} in unit",)
    for machines, share in (([0, 1], 1.0), ([1, 2], 0.0), ([2, 3], 1.0)):
        placed = ((application("a", ("w", MB, 2), constraints=apart), machines, 1),)
        assert deployed(Site(4, 2, "unit"), placed).violating()[0] == share


@pytest.mark.parametrize(
    ("site", "share", "count"),
    [
        (Site(10, 2), 0.5, 5),
        (Site(10, 2), 0.51, 6),
        (Site(10, 2, memory=8 * MB), 0.5, 3),
        (Site(10, 2), 0.0, 1),
    ],
)
def test_so_many_applications_fill_a_share_of_the_memory(
    site: Site, share: float, count: int
) -> None:
    """Of 16 GB each."""
    wanted = WantedApplication([("w", 2 * MB, 6), ("m", 4 * MB, 1)], ())
    assert site.filled_by(wanted, share) == count


def test_tasks_that_run_at_any_time_fill_their_share() -> None:
    assert Site(10, 2, tasks=0.5).running == 80
    assert Site(10, 2, tasks=0.5, task=4 * MB).running == 20
    assert Site(10, 2).running == 0


def test_the_smallest_scale_has_a_tenth_of_the_machines_and_a_fifth_of_the_sets() -> None:
    assert site_of(point("9a")) == Site(50, 2, "rack", 16 * MB, 0.0, MB)
    assert site_of(point("8"), 1_000, 25, "unit") == Site(100, 5, "unit")
    assert site_of(point("8", "quick"), 1_000, 25, "unit", 3, 0.5, 2) == Site(
        1_000, 25, "unit", 3, 0.5, 2
    )
    assert (sized(point("8"), 256), sized(point("8", "full"), 256)) == (25, 256)


def test_engines_of_algorithms_and_their_settings() -> None:
    both = {
        "t_job": 1_000, "t_task": 100, "attempts": 4, "long_running": ["lra"],
        "interval": 10_000_000, "smallest": {"memory": 2**31},
    }  # fmt: skip
    assert engine_of("yarn") == ("yarn", {"t_job": 1_000, "t_task": 100, "attempts": 1_000})
    for name in ("jkube", "jkube++", "kube-modern"):
        assert engine_of(name) == (name, both)
    assert engine_of("jkube-plain") == ("jkube", {**both, "reading": "plain"})
    assert engine_of("serial", 5) == (
        "medea",
        {**both, "interval": 5, "algorithm": "serial", "budget": 600_000_000},
    )
    assert engine_of("ilp-printed") == (
        "medea",
        {**both, "algorithm": "ilp-printed", "budget": 10_000_000},
    )


@pytest.mark.parametrize(("period", "interval"), [(1, 10), (2, 10), (3, 30)])
def test_applications_come_right_after_intervals_began(period: int, interval: int) -> None:
    wanted = WantedApplication([("w x", 3, 2), ("m", 4, 1)], ("w -> {w, 0, 0} in machine",))
    seconds = interval * 1_000_000
    jobs = [deployment._application(n, wanted, period, seconds) for n in range(7)]
    assert [job.id for job in jobs] == [f"a{n}" for n in range(7)]
    for number, job in enumerate(jobs):
        begun, place = divmod(number, period)
        assert job.submit == 30_000_000 + begun * seconds + 1_000 * (place + 1)
    (job, *_) = jobs
    assert job.kind == "lra"
    assert [(group.count, group.tags, group.request) for group in job.groups] == [
        (2, ("w", "x"), Resources(0, 3 * MEBI)),
        (1, ("m",), Resources(0, 4 * MEBI)),
    ]
    assert job.job.constraints == (parse_constraint("w -> {w, 0, 0} in machine"),)
    assert all(group.endless for group in job.groups)


def test_tasks_are_there_before_and_come_as_often_as_they_end() -> None:
    site = Site(50, 2, tasks=0.25)
    there = list(deployment._running(site, 3))
    assert [task.submit for task in there] == [n * 20_000_000 // 200 for n in range(200)]
    assert [task.id for task in there[:2]] == ["r0", "r1"]
    lasts = np.array([task.truth[0].durations[0] for task in there]) / 1e6
    assert lasts.mean() == pytest.approx(100, rel=0.15)
    end = 400_000_000
    coming = list(deployment._arriving(site, 3, end))
    assert coming[0].id == "t0"
    moments = [task.submit for task in coming]
    assert moments == sorted(moments)
    assert moments[0] > 10_000_000
    assert moments[-1] < end
    # 200 tasks of 100 s: two a second.
    assert len(moments) == pytest.approx(2 * (400 - 10), rel=0.1)
    for task in (*there[:5], *coming[:5]):
        assert (task.job.tasks, task.groups[0].request) == (1, Resources(0, MB * MEBI))
    assert [task.truth for task in coming[:9]] != [task.truth for task in there[:9]]
    assert list(deployment._arriving(Site(50, 2), 3, end)) == []
    assert list(deployment._running(Site(50, 2), 3)) == []
    assert [t.submit for t in deployment._arriving(site, 4, end)] != moments


def test_times_of_tasks_are_those_of_tasks_that_came_with_applications() -> None:
    """Two tasks of 4 GB come to a machine of which an application leaves 4 GB."""
    big = WantedApplication([("w", 12 * MB, 1)], ())
    later = WantedApplication([("w", MB, 1)], ())

    def come(site: Site, *given: Any) -> Any:
        for number, (at, seconds) in enumerate(
            ((29.0, 1.0), (31.0, 8.0), (32.0, 5.0), (70.1, 1.0))
        ):
            group = group_with_truth(1, Resources(0, 4 * MB * MEBI), (int(seconds * 1e6),))
            yield simulated_job(f"t{number}", group, submit=int(at * 1e6))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deployment, "_arriving", come)
        # The third finds no place before the second has ended.
        done = deploy(point("9a"), Site(1, 1), [big, later, later], "yarn", period=1)
    assert done.placed == 1
    assert len(done.task_times) == 2
    assert done.task_times[0] == pytest.approx(8.0, abs=0.1)
    assert done.task_times[1] == pytest.approx(8 - 1 + 5, abs=0.1)


def test_percentiles_leave_out_tasks_without_a_place() -> None:
    times = np.array([*range(101), np.inf], np.float64)
    assert applications._percentiles(times) == pytest.approx([float(n) for n in range(101)])


def captured(patch: pytest.MonkeyPatch, module: Any, done: Deployed) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    def stand_in(asked: Any, site: Site, wanted: Any, algorithm: str = "", **more: Any) -> Deployed:
        calls.append((site, wanted, algorithm, more))
        return done

    patch.setattr(module, "deploy", stand_in)
    return calls


def test_steps_of_figure_9a_are_reached_by_pairs_of_applications(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten applications that fill a tenth of the cell each; the last finds no place."""
    placed = [(application(f"a{n}", ("w", 16 * MB, 1)), [n], n) for n in range(9)]
    site = Site(10, 2)
    monkeypatch.setattr(violations, "site_of", lambda asked: site)
    calls = captured(monkeypatch, violations, deployed(site, placed))
    result = violations.filling(point("9a", algorithm="serial"))
    assert [result[f"used.{step}"] for step in range(10, 100, 10)] == [
        *(0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 0.9),
    ]
    assert result[DONE] == 1.0
    assert result["fragmented.90"] == 0.0
    assert result["imbalance.90"] == pytest.approx(1 / 3)
    assert result["violating.10"] == result["extent.10"] == 0.0
    (site_asked, wanted, algorithm, _) = calls[0]
    assert (site_asked, algorithm) == (site, "serial")
    assert len(wanted) == site.filled_by(wanted[0], 0.9) + 1
    violations.filling(point("9a", algorithm="ilp-small"))
    violations.filling(point("9a", algorithm="ilp-printed"))
    assert [(asked, name) for asked, _, name, _ in calls[1:]] == [
        (Site(20, 2), "ilp"),
        (Site(20, 2), "ilp-printed"),
    ]


def test_a_cell_that_was_not_filled_is_done_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = [(application(f"a{n}", ("w", 16 * MB, 1)), [n], n) for n in range(3)]
    site = Site(10, 2)
    monkeypatch.setattr(violations, "site_of", lambda asked: site)
    captured(monkeypatch, violations, deployed(site, placed))
    result = violations.filling(point("9a", algorithm="serial"))
    assert result["used.20"] == 0.2
    assert result["used.30"] == result["used.90"] == pytest.approx(0.3)
    assert result[DONE] == pytest.approx(1 / 3)


def test_families_want_each_other_and_arrive_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    done = deployed(Site(4, 2), THREE, refused=7)
    calls = captured(monkeypatch, violations, done)
    result = violations.complexity(point("9d", "quick", complexity=4, between="cardinality"))
    assert result.values == {
        "violating": 0.0, "extent": 0.0, DONE: 0.5, "conflicts": 7.0,
    }  # fmt: skip
    (site, wanted, _, more) = calls[0]
    assert more == {"period": 2, "interval": 10_000_000}
    assert site == Site(500, 10, tasks=0.4)
    # A tenth of 8,000 GB is filled by 35 instances of 23 GB; nine families of four come nearest.
    assert len(wanted) == 36
    marks = [role.split()[1:] for each in wanted for role, _, _ in each.roles[:1]]
    assert sorted(marks) == sorted(
        [f"family:{family}", f"member:{member}"] for family in range(9) for member in range(4)
    )
    assert marks != sorted(marks)
    (first,) = (each for each in wanted if each.roles[0][0] == "worker family:3 member:1")
    assert list(first.constraints[len(trial.HBASE_AS_PRINTED) :]) == [
        f"appID:self & worker -> {{family:3 & member:{other} & worker, 0, 4}} in rack"
        for other in (0, 2, 3)
    ]
    assert [count for _, _, count in first.roles] == [10, 1, 1, 1]
    violations.complexity(point("9d", "quick", complexity=1, between="affinity"))
    (alone, *_) = calls[1][1]
    assert tuple(alone.constraints) == trial.HBASE_AS_PRINTED


@pytest.mark.parametrize(("longer", "interval"), [("queue", 10_000_000), ("interval", 40_000_000)])
def test_more_applications_per_interval_or_longer_intervals(
    longer: str, interval: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = captured(monkeypatch, violations, deployed(Site(4, 2), THREE))
    violations.intervals(point("9c", "quick", period=4, longer=longer))
    (_, wanted, _, more) = calls[0]
    assert more == {"period": 4, "interval": interval}
    assert "{family:" in wanted[0].constraints[-1]
    assert wanted[0].constraints[-1].endswith("& worker, 1, inf} in rack")


def test_unavailability_is_that_of_the_worst_application_in_each_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One application is in two units, the other in the second alone; half of the first is down in the
    first hour, and a fifth of the second in the second."""
    placed = (
        (application("a0", ("part", MB, 4)), [0, 1, 1, 3], 1),
        (application("a1", ("part", MB, 2)), [2, 3], 2),
        (application("a2", ("part", MB, 2)), [-1, -1], -1),
    )
    site = Site(4, 2, "unit")
    monkeypatch.setattr(resilience, "site_of", lambda *given, **more: site)
    captured(monkeypatch, resilience, deployed(site, placed))
    down = np.array([[0.5, 0.0], [0.0, 0.2], [0.0, 0.0]])
    monkeypatch.setattr(resilience, "unavailability", lambda units, seed: down)
    result = resilience.resilience(point("8", said="limit", algorithm="ilp"))
    assert result.series["worst"] == pytest.approx([0.0, 0.2, 0.375])
    assert result["median"] == pytest.approx(0.2)
    assert result["largest"] == pytest.approx(0.375)
    assert result["crowded"] == 1.0
    assert result[DONE] == 6 / 8


def test_units_are_down_for_as_long_as_drawn() -> None:
    """Usually at most 3 %, in spikes 5 to 25 % for some hours, seldom all for some hours."""
    down = resilience.unavailability(400, 2)
    assert down.shape == (360, 400)
    calm, spikes, all_down = down <= 0.03, (down >= 0.05) & (down <= 0.25), down == 1.0
    assert (calm | spikes | all_down).all()
    changes = np.diff(down, axis=0, prepend=-1) != 0
    begun = {name: int((changes & part).sum()) for name, part in (("s", spikes), ("a", all_down))}
    draws = int((changes | calm).sum())
    assert begun["a"] / draws == pytest.approx(0.003, rel=0.25)
    assert begun["s"] / draws == pytest.approx(0.017, rel=0.1)
    # The whole hours of exponential times of 3 and of 4 hours, and one more.
    assert all_down.sum() / begun["a"] == pytest.approx(1 + 1 / (np.exp(1 / 3) - 1), rel=0.15)
    assert spikes.sum() / begun["s"] == pytest.approx(1 + 1 / (np.exp(1 / 4) - 1), rel=0.1)
    assert resilience.unavailability(3, 2).tolist() == down[:, :3].tolist()
    assert resilience.unavailability(3, 5).tolist() != down[:, :3].tolist()


def test_instances_are_slowed_down_by_all_workers_on_their_machines() -> None:
    placed = (
        (application("a0", ("worker", MB, 3), ("m", MB, 1)), [0, 0, 1, 3], 1),
        (application("a1", ("worker", MB, 1)), [1], 2),
        (application("a2", ("m", MB, 1)), [1], 3),
        (application("a3", ("worker", MB, 1)), [-1], -1),
    )
    found = applications.Placed(deployed(Site(4, 2), placed), "worker")
    assert [rows.tolist() for rows in found.instances] == [[0, 0, 1], [1]]
    assert found.crowd.tolist() == [2, 2, 0, 0]
    # The mean over workers: each of the four has one neighbour.
    assert applications._cubes(found) == 1.0
    one, other = found.runtimes(2.0, 0.5)
    assert other == 1 + 2.0
    assert one == pytest.approx(np.mean(found.slowdowns(2.0, 0.5)[0]))


def test_the_task_scheduler_fills_the_emptiest_machines() -> None:
    cell = PlacementTrial(4, 2, "serial", 1)
    cell.free[:, 0] = [3 * MB, MB - 1, 2 * MB, 3 * MB]
    latency._take(cell, 3)
    assert cell.free[:, 0].tolist() == [2 * MB, MB - 1, MB, 2 * MB]
    latency._take(cell, 1)
    assert cell.free[:, 0].tolist() == [MB, MB - 1, MB, 2 * MB]
    latency._take(cell, 9)
    assert cell.free[:, 0].tolist() == [0, MB - 1, 0, 0]


class Counted(PlacementTrial):
    """Places nothing by itself, but says that each batch used an eighth of the memory in a second."""

    made: ClassVar[list[Counted]] = []

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.given = given
        self.batches = 0
        self.most = 99
        Counted.made.append(self)

    def batch(self, texts: Sequence[str] = ()) -> int:
        self.batches += 1
        self.applications += 2
        self.spent += 1.0
        if self.batches <= self.most:
            self.free[: len(self.free) // 8 * self.batches] = 0
        return self.batches <= self.most


def test_a_cell_is_filled_to_a_fifth_to_time_a_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "PlacementTrial", Counted)
    monkeypatch.setattr(Counted, "made", [])
    result = latency.growing(point("11a", machines=80, algorithm="serial"))
    assert result.values == {"milliseconds": 500.0, DONE: 1.0}
    assert Counted.made[0].batches == 2
    assert Counted.made[0].given == (80, 2, "serial", 1)
    latency.growing(point("11a", machines=500, algorithm="ilp"))
    assert Counted.made[1].given == (500, 10, "ilp", 1)


def test_a_cell_that_cannot_be_filled_is_done_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    class Few(Counted):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.most = 1

    monkeypatch.setattr(latency, "PlacementTrial", Few)
    result = latency.growing(point("11a", machines=80, algorithm="serial"))
    assert result[DONE] == pytest.approx(0.125 / 0.2)


def test_a_trial_places_batches_of_two_and_keeps_count() -> None:
    cell = PlacementTrial(40, 2, "serial", 1)
    assert cell.used == 0
    assert cell.batch() == 2
    assert (cell.applications, cell.containers) == (2, 26)
    assert cell.used == pytest.approx(2 * 23 / (40 * 16))
    assert cell.spent > 0
    kinds = cell.submit([("a b", 5, 3)], (), 4)
    assert [(kind.app, kind.tags, kind.request.tolist(), kind.count) for kind in kinds] == [
        (4, frozenset({"appID:a2", "a", "b"}), [5], 3)
    ]


def test_a_unit_s_failures_do_not_depend_on_the_rest_of_the_run() -> None:
    """The stream has a name of its own."""
    random = Random(1).child("unavailability")
    first = random.uniform()
    assert first >= 0.02
    assert resilience.unavailability(1, 1)[0, 0] == min(0.03, 0.01 * random.exponential())
