"""The machines of the scripted world by themselves: their work, and the reports that they send."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import tasks_of

from argosy.engines.registry import ENGINES
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.model.scenario import MachineCrash, SchedulerCrash
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import SECOND, job, scenario, shared_job
from argosy.testing.scripted_world import (
    AGAIN,
    FAILING,
    LATE,
    LOST,
    RETRIES,
    ScriptedMachines,
    ScriptedWorld,
    SharedWork,
    with_retries,
)


class Draws:
    """Random numbers as they are given; the rest are in the middle."""

    def __init__(self, *uniform: float) -> None:
        self.given = list(uniform)

    def uniform(self) -> float:
        return self.given.pop(0) if self.given else 0.5

    def below(self, bound: int) -> int:
        return bound // 2


class World:
    """Keeps what is planned, and what the host is told."""

    def __init__(self) -> None:
        self.now = 0
        self.planned: list[tuple[int, Any]] = []
        self.told: list[tuple[Any, ...]] = []
        self.host = self

    def at(self, delay: int, action: Any) -> None:
        self.planned.append((self.now + delay, action))

    def end_task(self, task: int, incarnation: int) -> None:
        self.told.append((self.now, "ended", task, incarnation))

    def fail_task(self, task: int, incarnation: int, status: int, reason: str) -> None:
        self.told.append((self.now, "failed", task, incarnation, status, reason))

    def end_phase(self, number: int, phase: int, duration: int) -> None:
        self.told.append((self.now, "phase", number, phase, duration))

    def run(self, until: int = 2**60) -> None:
        while self.planned:
            at, action = min(self.planned, key=lambda each: each[0])
            if at > until:
                break
            self.planned.remove((at, action))
            self.now = at
            action()
        self.now = max(self.now, until if until < 2**60 else 0)


def machines(*uniform: float) -> tuple[ScriptedMachines, World]:
    world: Any = World()
    made = ScriptedMachines(world, 1)
    draws: Any = Draws(*uniform)
    made._random = draws
    return made, world


def start(made: ScriptedMachines, *tasks: int, incarnation: int = 7) -> None:
    numbers = tasks_of(0, *tasks)
    count = len(tasks)
    made.start(numbers, np.zeros(count, np.int32), np.full(count, incarnation, np.int64))


def stop(made: ScriptedMachines, *tasks: int, incarnation: int = 7) -> None:
    numbers = tasks_of(0, *tasks)
    count = len(tasks)
    given = np.zeros(count, np.int32), np.full(count, incarnation, np.int64)
    made.stop(numbers, *given, Why.CANCELLED)


MIDDLE = LATE // 2


class TestTasks:
    def test_a_task_ends_after_its_time_and_is_reported_late_and_twice(self) -> None:
        made, world = machines()
        made.add(0, job("a", 2, seconds=3))
        start(made, 0, 1)
        assert made.running == {0: 7, 1: 7}
        world.run()
        reports = [(3 * SECOND + MIDDLE, "ended"), (3 * SECOND + 2 * MIDDLE, "ended")]
        for task in (0, 1):
            assert [each[:2] for each in world.told if each[2] == task] == reports
        assert made.running == {}

    def test_a_report_that_is_lost_is_sent_again(self) -> None:
        for draw, delay in ((LOST, 0), (LOST - 0.001, AGAIN)):
            made, world = machines(1.0, draw)
            made.add(0, job("a", seconds=3))
            start(made, 0)
            world.run()
            assert [at for at, *_ in world.told] == [
                3 * SECOND + delay + MIDDLE,
                3 * SECOND + delay + 2 * MIDDLE,
            ]

    def test_a_try_fails_before_its_time_and_only_so_often(self) -> None:
        made, world = machines(FAILING, *[0.0, 0.5] * RETRIES, 0.0)
        made.add(0, job("a", 2, seconds=4))
        start(made, 0)
        world.run()
        assert {each[1] for each in world.told} == {"ended"}
        made._random.given = [0.0, 0.5] * (RETRIES + 1)  # type: ignore[attr-defined]
        fates = []
        for incarnation in range(RETRIES + 1):
            world.told.clear()
            began = world.now
            start(made, 1, incarnation=incarnation)
            world.run()
            fates.append(world.told[0][1])
            if fates[-1] == "failed":
                assert world.told[0][0] == began + 2 * SECOND + MIDDLE
                assert world.told[0][2:] == (1, incarnation, 1, "the script says so")
        assert fates == ["failed"] * RETRIES + ["ended"]

    @pytest.mark.parametrize(("index", "fate"), [(2**20 - 1, "failed"), (2**20, "ended")])
    def test_extra_workers_do_not_fail(self, index: int, fate: str) -> None:
        made, world = machines(0.0)
        made.add(0, job("a", seconds=4))
        start(made, index)
        world.run()
        assert [each[1:3] for each in world.told] == [(fate, index)] * 2

    @pytest.mark.parametrize(("seconds", "told"), [(0, ["ended"] * 2), (None, [])])
    def test_what_takes_no_time_or_never_ends_does_not_fail(
        self, seconds: float | None, told: list[str]
    ) -> None:
        made, world = machines(*[0.0] * 4)
        made.add(0, job("a", seconds=seconds))
        start(made, 0)
        if seconds == 0:
            made._random.given = []  # type: ignore[attr-defined]
        world.run()
        assert [each[1] for each in world.told] == told

    def test_each_task_has_its_own_time_and_others_that_of_the_last(self) -> None:
        made, world = machines()
        made.add(0, simulated_job("a", group_with_truth(2, Resources(1), (SECOND, 5 * SECOND))))
        start(made, 0, 1, 4)
        world.run()
        first = {task: at - MIDDLE for at, _, task, _ in reversed(world.told)}
        assert first == {0: SECOND, 1: 5 * SECOND, 4: 5 * SECOND}

    def test_a_process_that_is_stopped_still_reports_its_end(self) -> None:
        made, world = machines()
        made.add(0, job("a", seconds=3))
        start(made, 0)
        world.run(SECOND)
        stop(made, 0)
        assert made.running == {}
        start(made, 0, incarnation=8)
        world.run()
        assert [(at, incarnation) for at, _, _, incarnation in world.told] == [
            (SECOND + MIDDLE, 7),
            (SECOND + 2 * MIDDLE, 7),
            (4 * SECOND + MIDDLE, 8),
            (4 * SECOND + 2 * MIDDLE, 8),
        ]
        # What has ended is stopped by nobody.
        stop(made, 0, incarnation=8)
        assert world.planned == []

    def test_a_task_runs_once_at_a_time(self) -> None:
        made, _ = machines()
        made.add(0, job("a", seconds=3))
        start(made, 0)
        with pytest.raises(AssertionError, match="a task runs twice"):
            start(made, 0, incarnation=8)
        with pytest.raises(AssertionError, match="a try is stopped that does not run"):
            stop(made, 0, incarnation=9)


class TestSharedWork:
    def test_work_is_done_by_as_many_as_there_are_activities(self) -> None:
        work = SharedWork(shared_job("a", 3, (2, 4), (5, 3)))
        assert work.total == 2
        assert work.next_end() is None
        work.workers = dict.fromkeys(range(3), 0)
        # Ten seconds of work by two at a time.
        assert work.next_end() == 5 * SECOND
        work.advance(2 * SECOND)
        assert work.left[0][0] == 6 * SECOND
        assert work.next_end() == 5 * SECOND
        del work.workers[0], work.workers[1]
        assert work.next_end() == 8 * SECOND
        work.advance(99 * SECOND)
        assert (work.left[0][0], work.since) == (0, 99 * SECOND)
        work.left.clear()
        assert work.next_end() is None
        work.advance(100 * SECOND)
        assert work.since == 100 * SECOND

    def test_phases_follow_each_other_and_all_workers_end_with_the_last(self) -> None:
        made, world = machines()
        made.add(0, shared_job("a", 2, (4, 1), (3, 5)))
        start(made, 0)
        world.run(2 * SECOND)
        start(made, 1)
        # Ten seconds are left, for two.
        world.run()
        phases = [each for each in world.told if each[1] == "phase"]
        assert phases == [
            (7 * SECOND, "phase", 0, 0, 3 * SECOND),
            (12 * SECOND, "phase", 0, 1, 5 * SECOND),
        ]
        ends = sorted((at, task) for at, what, task, *_ in world.told if what == "ended")
        assert [at - 12 * SECOND for at, _ in ends] == [MIDDLE] * 2 + [2 * MIDDLE] * 2
        assert {task for _, task in ends} == {0, 1}

    def test_a_worker_that_leaves_does_nothing_more_and_one_that_comes_too_late_ends(self) -> None:
        made, world = machines()
        made.add(0, shared_job("a", 2, (2,), (4,)))
        start(made, 0, 1)
        world.run(SECOND)
        stop(made, 1)
        world.run()
        assert [at for at, what, *_ in world.told if what == "phase"] == [7 * SECOND]
        world.told.clear()
        now = world.now
        start(made, 1, incarnation=8)
        world.run()
        assert [(at - now, what) for at, what, *_ in world.told] == [
            (MIDDLE, "ended"),
            (2 * MIDDLE, "ended"),
        ]


class TestWorlds:
    def world(self, *jobs: Any, **fields: Any) -> ScriptedWorld:
        spec = scenario("omega", [*jobs], **fields)
        return ScriptedWorld(spec, ENGINES)

    def test_faults_strike_when_they_are_due(self) -> None:
        faults = (
            MachineCrash(at=3 * SECOND, machine="m0", down=SECOND),
            SchedulerCrash(at=4 * SECOND, scheduler="s-0", down=SECOND),
        )
        world = self.world(job("a", 8, cpu=4_000, seconds=20), faults=faults)
        world.run()
        assert world.host.membership.losses == 1
        assert world.host.membership.changes == 2
        assert [scheduler.crashes for scheduler in world.host.schedulers] == [1, 0]
        assert world.runtime.open_tasks == 0

    def test_a_script_acts_when_it_says(self) -> None:
        world, seen = self.world(job("a", seconds=9)), list[int]()
        for at in (5, 2, 7):
            world.inject(at * SECOND, lambda: seen.append(world.now))
        world.run()
        assert seen == [2 * SECOND, 5 * SECOND, 7 * SECOND]

    def test_what_is_due_at_the_horizon_still_happens(self) -> None:
        world = self.world(job("a", seconds=9), horizon=5 * SECOND)
        seen: list[int] = []
        for at in (5 * SECOND + 1, 5 * SECOND, 5 * SECOND - 1, 5 * SECOND):
            world.inject(at, lambda: seen.append(world.now))
        world.run()
        assert seen == [5 * SECOND - 1, 5 * SECOND, 5 * SECOND]

    def test_a_run_ends_with_its_last_task_or_at_its_horizon(self) -> None:
        world = self.world(job("a", seconds=9), job("b", seconds=1, submit=30))
        world.run()
        assert world.runtime.open_tasks == 0
        assert 31 * SECOND <= world.now < 40 * SECOND
        cut = self.world(job("a", seconds=9), horizon=5 * SECOND)
        cut.run()
        assert (cut.runtime.open_tasks, cut.now <= 5 * SECOND) == (1, True)
        empty = self.world()
        empty.run()
        assert empty.now == 0


def test_failures_are_retried_whatever_a_job_says() -> None:
    made = simulated_job(
        "a", *(group_with_truth(1, Resources(cpu), (1,), retries=1) for cpu in (1, 2)), owner="ann"
    ).job
    again = with_retries(made)
    assert [group.retries for group in again.groups] == [RETRIES] * 2
    assert (again.id, again.owner, again.tasks) == ("a", "ann", 2)
