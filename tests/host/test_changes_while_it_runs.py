"""Changes to jobs that run, of which some tasks are over, wait for their next try, or have nobody: who
is told what, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from host_bench import Bench, open_jobs, web
from msgspec.structs import replace
from scripted_engine import Scripted, scripted
from test_host import at_once

from argosy.cell import View
from argosy.host import TaskState
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Effect, Enqueue
from argosy.model.errors import ModelError
from argosy.model.events import Event, JobCancelled, JobChanged, JobSubmitted, TaskFailed
from argosy.model.jobs import TaskGroup, index_of
from argosy.model.resources import Resources
from argosy.model.scenario import Network, PairLatency
from argosy.model.tasks import indices_of, task_numbers
from argosy.testing.builders import GIB, SECOND, job, scenario
from argosy.worlds.sim import SimulatedWorld

APART = parse_constraint("w -> {w, 0, 0} in machine")


def failed(bench: Bench) -> list[tuple[int, list[int]]]:
    """When schedulers were told of failures, and of which tasks."""
    return [
        (at // SECOND, indices_of(event.tasks).tolist())
        for at, _, event in bench.heard
        if isinstance(event, TaskFailed)
    ]


def fail(bench: Bench, number: int, index: int) -> bool:
    [task] = task_numbers(number, [index]).tolist()
    return bench.host.fail_task(task, bench.machines.running.pop(task)[1], 1, "no luck")


def end(bench: Bench, number: int, index: int) -> bool:
    [task] = task_numbers(number, [index]).tolist()
    return bench.host.end_task(task, bench.machines.running.pop(task)[1])


def waiting(retries: int = 9) -> Any:
    """A job whose tasks wait for ten seconds after a failure."""
    return job("web", 2, cpu=500, seconds=None, retries=retries, backoff=10 * SECOND).job


class TestScaling:
    def test_tasks_that_were_over_are_not_said_to_be_removed(self) -> None:
        bench = Bench(at_once)
        number = bench.host.submit(web(4))
        bench.go(1)
        assert end(bench, number, 3)
        bench.host.scale(number, web(1))
        bench.go(2)
        [event] = bench.told(JobChanged)
        assert isinstance(event, JobChanged)
        assert indices_of(event.removed).tolist() == [1, 2]
        assert event.added.tolist() == []
        states = [bench.host.board.state(task) for task in task_numbers(number, [0, 1, 2, 3])]
        assert states == [
            TaskState.RUNNING,
            TaskState.CANCELLED,
            TaskState.CANCELLED,
            TaskState.FINISHED,
        ]
        bench.replay()

    def test_constraints_that_a_job_gets_are_readable_for_everyone(self) -> None:
        bench = Bench(at_once)
        number = bench.host.submit(web(1))
        bench.go(1)
        assert bench.host.cell.applications() == {}
        bench.host.scale(number, replace(web(2), constraints=(APART,)))
        assert {key: each.tasks for key, each in bench.host.cell.applications().items()} == {
            number: 2
        }

    def test_tasks_of_a_new_group_ask_for_what_that_group_does(self) -> None:
        def queueing(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
            match event:
                case JobChanged(added=added):
                    return [Enqueue(added, np.full(len(added), 3, np.int32))]
            return ()

        bench = Bench(queueing)
        number = bench.host.submit(web(1))
        more = TaskGroup(count=2, request=Resources(1_100, GIB), endless=True)
        before = web(1)
        free = bench.host.cell.view().free(np.array([3], np.int32)).copy()
        bench.host.scale(number, replace(before, groups=(*before.groups, more)))
        bench.go(1)
        assert [index_of(task) for task in bench.machines.running] == [1, 2]
        left = bench.host.cell.view().free(np.array([3], np.int32))
        assert (free - left).ravel()[:2].tolist() == [2_200, 2 * GIB]


class TestFailures:
    def test_a_failure_is_that_of_the_present_try_of_a_task_that_runs(self) -> None:
        bench = Bench(at_once)
        number = bench.host.submit(web(1, retries=1))
        control, [task] = bench.host.job_control, task_numbers(number, [0]).tolist()
        assert not control.fail(task, bench.host.runtime.incarnation(task), 1, "it is pending")
        bench.go(1)
        current = bench.machines.running[task][1]
        assert not control.fail(task, current + 1, 1, "another")
        assert bench.host.board.state(task) is TaskState.RUNNING
        assert control.fail(task, current, 1, "this one")
        bench.replay()

    def test_who_has_failed_for_good_is_counted_no_longer(self) -> None:
        bench = Bench(at_once)
        number = bench.host.submit(web(2, retries=1))
        bench.go(1)
        assert fail(bench, number, 0)
        bench.go(2)
        [(_, left)] = open_jobs(bench.host)
        assert left.failures == {0: 1}
        assert fail(bench, number, 0)
        [(_, left)] = open_jobs(bench.host)
        assert (left.failures, left.failed) == ({}, (0,))

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_an_application_of_which_one_has_failed_for_good_is_over_with_the_others(
        self, order: tuple[int, int]
    ) -> None:
        bench = Bench(at_once)
        number = bench.host.submit(replace(web(2), constraints=(APART,)))
        bench.go(1)
        for index in order:
            bench.host.retire_done()
            assert list(bench.host.cell.applications()) == [number]
            assert fail(bench, number, index) if index else end(bench, number, index)
        bench.host.retire_done()
        assert bench.host.cell.applications() == {}

    def test_only_the_last_failure_is_told_of_if_the_task_ran_in_between(self) -> None:
        """Its scheduler starts anew while it waits, and places it at once."""
        bench = Bench(at_once)
        number = bench.host.submit(waiting())
        bench.go(1)
        assert fail(bench, number, 1)
        bench.go(2)
        [scheduler] = bench.host.schedulers
        bench.host.crash(scheduler)
        bench.host.restart(scheduler)
        bench.go(3)
        assert len(bench.machines.running) == 2
        assert fail(bench, number, 1)
        bench.go(60)
        assert failed(bench) == [(3 + 20, [1])]
        assert len(bench.machines.running) == 2

    def test_a_failure_before_a_task_was_removed_is_not_told_after_it_came_back(self) -> None:
        bench = Bench(at_once)
        number = bench.host.submit(waiting())
        bench.go(1)
        assert fail(bench, number, 1)
        for second, count in ((2, 1), (3, 2)):
            bench.go(second)
            bench.host.scale(number, replace_count(count))
        bench.go(4)
        assert fail(bench, number, 1)
        bench.go(60)
        assert failed(bench) == [(4 + 10, [1])]
        bench.replay()

    @pytest.mark.parametrize("retries", [0, 1])
    def test_tasks_that_fail_while_nobody_cares_for_them_go_to_a_peer_if_they_are_tried_again(
        self, retries: int
    ) -> None:
        bench = Bench(at_once, replicas=2)
        number = bench.host.submit(web(2, retries=retries))
        bench.go(1)
        owner = bench.host.schedulers[bench.host.board.owner(number)]
        heir = next(each for each in bench.host.schedulers if each is not owner)
        bench.host.crash(owner)
        failover = bench.host.setup.failover / SECOND
        assert fail(bench, number, 0)
        bench.heard.clear()
        assert bench.host.board.owner(number) == owner.index, "it may come back"
        bench.go(2 + failover)
        told = [(name, event) for _, name, event in bench.heard if isinstance(event, JobSubmitted)]
        assert [(name, indices_of(event.tasks).tolist()) for name, event in told] == (
            [(heir.name, [0])] if retries else []
        )

    @pytest.mark.parametrize("retries", [0, 1])
    def test_tasks_of_a_scheduler_that_was_given_up_find_another_when_they_fail(
        self, retries: int
    ) -> None:
        bench = Bench(at_once, replicas=2)
        number = bench.host.submit(web(2, retries=retries))
        bench.go(1)
        owner = bench.host.schedulers[bench.host.board.owner(number)]
        bench.host.crash(owner)
        failover = bench.host.setup.failover / SECOND
        bench.go(2 + failover)
        assert owner.is_given_up
        bench.heard.clear()
        assert fail(bench, number, 0)
        bench.go(3 + failover)
        told = [event for _, _, event in bench.heard if isinstance(event, JobSubmitted)]
        assert [indices_of(event.tasks).tolist() for event in told] == ([[0]] if retries else [])
        assert (bench.host.board.owner(number) == owner.index) is not bool(retries)


def replace_count(count: int) -> Any:
    made = waiting()
    return replace(made, groups=(replace(made.groups[0], count=count),))


@pytest.mark.parametrize("number", [-1, 1])
def test_only_jobs_that_there_are_can_be_changed(number: int) -> None:
    bench = Bench(at_once)
    bench.host.submit(web(1))
    for change in (bench.host.cancel, lambda it: bench.host.scale(it, web(2))):
        with pytest.raises(ModelError, match=f"job {number}") as caught:
            change(number)
        assert caught.value.expected == "the number of a job that is not over"


def test_what_users_do_is_told_by_the_cell_and_failures_by_machines() -> None:
    engine = scripted(at_once)
    latency = PairLatency(default=0, delays={"cell>s": 3_000, "machines>s": 5_000})
    spec = scenario(
        "scripted",
        [job("web", 3, seconds=None, retries=3), job("other", 1, seconds=None)],
        replicas=1,
        network=Network(latency=latency),
        horizon=60 * SECOND,
    )
    world = SimulatedWorld(spec, {"scripted": engine})
    host = world.host

    def fail_first() -> None:
        [task] = task_numbers(0, [0]).tolist()
        assert host.job_control.fail(task, host.runtime.incarnation(task), 1, "no luck")

    world.inject(10 * SECOND, lambda: host.scale(0, spec_of(host, 2)))
    world.inject(20 * SECOND, fail_first)
    world.inject(30 * SECOND, lambda: assert_cancelled(host))
    world.run()
    kinds = (JobChanged, TaskFailed, JobCancelled)
    assert [(at, type(event)) for at, _, event in engine.heard if isinstance(event, kinds)] == [
        (10 * SECOND + 3_000, JobChanged),
        (20 * SECOND + 5_000, TaskFailed),
        (30 * SECOND + 3_000, JobCancelled),
    ]


def spec_of(host: Any, count: int) -> Any:
    made = host.jobs.job(0)
    return replace(made, groups=(replace(made.groups[0], count=count),))


def assert_cancelled(host: Any) -> None:
    assert indices_of(host.cancel(0)).tolist() == [0, 1]
