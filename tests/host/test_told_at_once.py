"""What happens within a call of the host, and what only when the clock moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from host_bench import Bench, web
from msgspec.structs import replace
from scripted_engine import NO_LATENCY, Scripted, claim, first_fit, scripted
from test_assumed_claims import assumed

from argosy.cell import View
from argosy.host.host import Host
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Effect, Enqueue
from argosy.model.events import Event, JobSubmitted
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.resources import Resources
from argosy.model.tasks import indices_of, task_numbers
from argosy.model.transactions import RemoveMachine
from argosy.testing.builders import GIB, SECOND, job, scenario
from argosy.worlds.sim import SimulatedWorld

APART = parse_constraint("w -> {w, 0, 0} in machine")
FULL = Resources(4_000, GIB)


def large(name: str, count: int) -> Job:
    """Each task fills a machine."""
    return job(name, count, request=FULL, seconds=None).job


def queueing(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    """The last task of every job waits at the last machine, the others at the first ones."""
    match event:
        case JobSubmitted(tasks=tasks):
            machines = np.arange(len(tasks), dtype=np.int32)
            machines[-1] = 3
            return [Enqueue(tasks, machines)]
    return ()


class Queue:
    """A machine on which the second task of job 0 runs, and that of job 1 waits."""

    def __init__(self) -> None:
        self.bench = Bench(queueing)
        self.host: Host = self.bench.host
        for name in ("first", "second"):
            self.host.submit(large(name, 2 if name == "first" else 1))
        self.bench.go(1)
        [self.running] = task_numbers(0, [1]).tolist()
        [self.waits] = task_numbers(1, [0]).tolist()
        assert self.running in self.bench.machines.running
        assert self.waits not in self.bench.machines.running
        self.incarnation = self.bench.machines.running[self.running][1]

    def end(self) -> None:
        del self.bench.machines.running[self.running]
        assert self.host.end_task(self.running, self.incarnation)

    def fail(self) -> None:
        del self.bench.machines.running[self.running]
        assert self.host.fail_task(self.running, self.incarnation, 1, "no luck")

    def cancel(self) -> None:
        assert self.host.cancel(0, task_numbers(0, [1])).tolist() == [self.running]

    def scale(self) -> None:
        self.host.scale(0, large("first", 1))


@pytest.mark.parametrize("change", [Queue.end, Queue.fail, Queue.cancel, Queue.scale])
def test_who_waits_at_a_machine_starts_as_soon_as_it_can(change: Callable[[Queue], None]) -> None:
    queue = Queue()
    change(queue)
    assert queue.bench.machines.running[queue.waits][0] == 3
    assert queue.running not in queue.bench.machines.running


def test_a_job_that_comes_with_a_machine_starts_at_once() -> None:
    bench = Bench(lambda *_: ())
    assert bench.host.place(large("a", 1), 2, "far", "Bind") is None
    assert [machine for machine, _ in bench.machines.running.values()] == [2]
    refusal = bench.host.place(large("b", 1), 2, "far", "Bind")
    assert refusal is not None
    assert len(bench.machines.running) == 1


def test_a_scheduler_is_given_the_tasks_of_all_groups() -> None:
    bench = Bench(lambda *_: ())
    plain = web(2)
    more = replace(plain.groups[0], count=3, request=Resources(100, GIB))
    number = bench.host.submit(replace(plain, groups=(*plain.groups, more)))
    bench.go(1)
    [event] = bench.told(JobSubmitted)
    assert isinstance(event, JobSubmitted)
    assert event.tasks.tolist() == task_numbers(number, [0, 1, 2, 3, 4]).tolist()
    assert bench.host.jobs.counts.tolist() == [5]


@pytest.mark.parametrize("says", [False, True])
def test_a_scheduler_hears_of_a_job_at_once_only_if_its_number_was_told_before(says: bool) -> None:
    engine = scripted(first_fit)
    spec = scenario(
        "scripted",
        [job("last", 1, submit=30)],
        replicas=1,
        network=NO_LATENCY,
        horizon=60 * SECOND,
    )
    world = SimulatedWorld(spec, {"scripted": engine})
    order: list[Any] = []

    def submitted() -> list[int]:
        return [event.number for _, _, event in engine.heard if isinstance(event, JobSubmitted)]

    def submit() -> None:
        entered = (lambda number: order.append((number, submitted()))) if says else None
        order.append(world.host.submit(web(1), entered))
        order.append(submitted())

    world.inject(10 * SECOND, submit)
    world.run()
    assert order == ([(0, []), 0, [0]] if says else [0, []])
    assert submitted() == [0, 1]


def test_finished_jobs_are_forgotten_once_and_their_constraints_with_them() -> None:
    def placing(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [claim(view, event, event.number, engine.context.name)]
        return ()

    bench = Bench(placing)
    for name in ("a", "b"):
        bench.host.submit(replace(web(2), id=name, constraints=(APART,)))
    bench.go(1)
    for task in task_numbers(0, [0, 1]).tolist():
        assert sorted(bench.host.cell.applications()) == [0, 1]
        assert bench.host.end_task(task, bench.machines.running.pop(task)[1])
        bench.host.retire_done()
    assert sorted(bench.host.cell.applications()) == [1]
    for _ in range(2):
        bench.host.forget_done()
        assert (bench.host.jobs.is_done(0), bench.host.jobs.is_done(1)) == (True, False)
    assert [bench.host.jobs.name(number) for number in (0, 1)] == ["a", "b"]
    assert indices_of(bench.host.cancel(1)).tolist() == [0, 1]


def test_a_machine_that_leaves_stops_what_ran_there_at_once() -> None:
    queue = Queue()
    queue.host.change_machine(RemoveMachine(3))
    assert queue.running not in queue.bench.machines.running
    assert [task for task, _, _ in queue.bench.machines.stopped] == [queue.running]


def test_who_waits_for_what_was_only_assumed_starts_as_soon_as_that_is_forgotten() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(number=0):
                return [assumed(view, event, 3, engine.context.name)]
            case JobSubmitted(tasks=tasks):
                return [Enqueue(tasks, np.full(len(tasks), 3, np.int32))]
        return ()

    bench = Bench(script)
    for name in ("first", "second"):
        bench.host.submit(large(name, 1))
    bench.go(1)
    first, second = task_numbers(0, [0]), task_numbers(1, [0])
    [(_, incarnation)] = bench.machines.running.values()
    assert bench.host.forget(first, np.array([incarnation], np.int64), Why.NO_ROOM).tolist() == (
        first.tolist()
    )
    assert list(bench.machines.running) == second.tolist()
