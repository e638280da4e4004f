"""A host that resumes what an earlier one left: as after a crash of the whole server."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from host_bench import Bench, open_jobs, web
from msgspec.structs import replace
from scripted_engine import Script, Scripted, claim

from argosy.cell import View
from argosy.engines.registry import ENGINES
from argosy.host import TaskState
from argosy.host.job_state import JobState
from argosy.model.effects import Effect
from argosy.model.errors import ScenarioError
from argosy.model.events import Committed, Event, JobSubmitted, Started
from argosy.model.explanations import Why
from argosy.model.jobs import task_number
from argosy.model.resources import Resources
from argosy.model.scenario import SchedulerLimits, Takes
from argosy.model.transactions import ResizeMachine
from argosy.testing.builders import job


def two_of_three(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    """Claims a machine for all tasks but the last."""
    if isinstance(event, JobSubmitted) and len(event.tasks) > 1:
        first = JobSubmitted(event.job, event.number, event.tasks[:-1])
        return [claim(view, first, 0, engine.context.name)]
    return ()


def resumed(left: Bench, engine: Script | str = two_of_three) -> Bench:
    """A bench whose host has restored what the other one left, while its tasks ran on."""
    bench = Bench(engine, is_resumed=True)
    for open_job, state in open_jobs(left.host):
        restored = bench.host.restore(open_job, state)
        for index, machine in zip(state.running, state.machines, strict=True):
            if index in restored.incarnations:
                task = task_number(restored.number, index)
                bench.machines.running[task] = (machine, restored.incarnations[index])
    return bench


def test_running_tasks_go_on_and_pending_ones_are_told_to_their_scheduler() -> None:
    left = Bench(two_of_three)
    left.host.submit(web(3))
    left.go(1)
    bench = resumed(left)
    bench.go(2)
    (started,) = bench.told(Started)
    assert started == Started(again=True)
    (told,) = bench.told(JobSubmitted)
    assert isinstance(told, JobSubmitted)
    assert told.tasks.tolist() == [2]
    assert sorted(bench.machines.running) == [0, 1]
    assert bench.host.board.counts()[int(TaskState.RUNNING)] == 2
    machine, incarnation = bench.machines.running[0]
    assert bench.host.cell.machine_of(0) == machine
    assert bench.host.end_task(0, incarnation)
    bench.replay()


def test_what_was_over_stays_over() -> None:
    left = Bench(two_of_three)
    number = left.host.submit(web(4))
    left.go(1)
    running = left.machines.running
    assert left.host.end_task(0, running[0][1])
    assert left.host.fail_task(1, running[1][1], 1, "no luck")
    left.host.cancel(number, np.array([3], np.int64))
    left.go(2)
    bench = resumed(left)
    bench.go(3)
    states = [bench.host.board.state(task) for task in range(4)]
    assert states == [
        TaskState.FINISHED,
        TaskState.FAILED,
        TaskState.RUNNING,
        TaskState.CANCELLED,
    ]
    assert bench.told(JobSubmitted) == []
    bench.replay()


def test_failures_before_the_restart_count() -> None:
    left = Bench(two_of_three)
    left.host.submit(web(2, retries=1))
    left.go(1)
    assert left.host.fail_task(0, left.machines.running[0][1], 1, "first")
    bench = resumed(left)
    ((_, state),) = open_jobs(bench.host)
    assert state.failures == {0: 1}


def test_a_claim_that_no_longer_fits_is_not_restored() -> None:
    left = Bench(two_of_three)
    left.host.submit(web(3))
    left.go(1)
    bench = Bench(two_of_three, is_resumed=True)
    bench.host.change_machine(ResizeMachine(0, Resources(cpu=700, memory=2**34)))
    ((open_job, state),) = open_jobs(left.host)
    restored = bench.host.restore(open_job, state)
    assert list(restored.incarnations) == [0]
    bench.go(2)
    (told,) = bench.told(JobSubmitted)
    assert isinstance(told, JobSubmitted)
    assert told.tasks.tolist() == [1, 2]
    bench.replay()


def test_what_runs_goes_on_though_its_scheduler_is_at_its_limits() -> None:
    limits = SchedulerLimits(jobs=1, resources=Resources(cpu=1), precedence=-1)
    bench = Bench(two_of_three, is_resumed=True, limits=limits)
    for name in ("a", "b"):
        state = JobState(submitted=0, scheduler="s", running=(0,), machines=(0,))
        restored = bench.host.restore(replace(web(1), id=name), state)
        assert list(restored.incarnations) == [0]
    # The limits hold for what comes now.
    bench.host.submit(replace(web(2), id="c"))
    bench.go(1)
    assert sorted(bench.machines.running) == []
    [answer] = bench.told(Committed)
    assert isinstance(answer, Committed)
    assert [Why(why) for why in answer.outcome.whys] == [Why.PRECEDENCE_LIMIT]
    bench.replay()


def test_another_scheduler_takes_the_job_if_its_own_is_gone() -> None:
    bench = Bench(two_of_three, is_resumed=True)
    state = JobState(submitted=0, scheduler="somebody-else")
    bench.host.restore(web(2), state)
    ((_, restored),) = open_jobs(bench.host)
    assert restored.scheduler == "s"


def test_a_job_does_not_go_back_to_a_scheduler_that_no_longer_takes_its_kind() -> None:
    bench = Bench(two_of_three, is_resumed=True, takes=Takes(kinds=("service",)))
    with pytest.raises(ScenarioError, match="no scheduler takes jobs of kind 'batch'"):
        bench.host.restore(web(2), JobState(submitted=0, scheduler="s"))


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_engine_goes_on_after_a_restart_and_runs_each_task_once(engine: str) -> None:
    left, done = Bench(engine), 0
    for number in range(6):
        left.host.submit(job(f"j{number}", 3, cpu=900, seconds=5).job)
    left.host.submit(job("up", 2, cpu=300, seconds=5, kind="service").job)
    left.go(30)
    for task, (_, incarnation) in list(left.machines.running.items())[::2]:
        del left.machines.running[task]
        done += left.host.end_task(task, incarnation)
    left.replay()

    bench = resumed(left, engine)
    assert len(bench.machines.running) == len(left.machines.running)
    for round_ in range(1, 40):
        bench.go(60 * round_)
        for task, (_, incarnation) in list(bench.machines.running.items()):
            del bench.machines.running[task]
            assert bench.host.end_task(task, incarnation)
            done += 1
        if bench.host.runtime.open_tasks == 0:
            break
    assert done == 20
    assert bench.host.runtime.open_tasks == 0
    bench.replay()
