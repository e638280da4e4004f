"""The host with machines that act: users' changes, failures, late reports, and replays of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from host_bench import Bench, web
from scripted_engine import Scripted, claim

from argosy.cell import View
from argosy.host import TaskState
from argosy.host.records import EnqueuedRecord, RetriedRecord
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Effect, Enqueue, WakeMe
from argosy.model.errors import ModelError
from argosy.model.events import (
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    TaskFailed,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.transactions import RemoveMachine
from argosy.testing.builders import SECOND, job


def at_once(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    """Claims a machine for all tasks it is given."""
    match event:
        case JobSubmitted():
            return [claim(view, event, 0, engine.context.name)]
        case TaskFailed(job, number, tasks, again=True):
            return [claim(view, JobSubmitted(job, number, tasks), 1, engine.context.name)]
        case JobChanged(job, number, added) if len(added):
            return [claim(view, JobSubmitted(job, number, added), 2, engine.context.name)]
    return ()


def test_machines_are_told_of_starts_and_report_ends() -> None:
    bench = Bench(at_once)
    number = bench.host.submit(web(2))
    bench.go(1)
    assert [machine for machine, _ in bench.machines.running.values()] == [0, 0]
    (first, (_, incarnation)), _ = bench.machines.running.items()
    assert not bench.host.end_task(first, incarnation + 1)
    assert bench.host.end_task(first, incarnation)
    assert not bench.host.end_task(first, incarnation), "the report came twice"
    assert bench.host.board.state(first) is TaskState.FINISHED
    assert len(bench.host.board.tasks_in(number, TaskState.RUNNING)) == 1
    bench.replay()


def test_a_failed_task_is_tried_as_often_as_its_job_allows() -> None:
    bench = Bench(at_once)
    bench.host.submit(web(1, retries=1))
    bench.go(1)
    ((task, (_, first)),) = bench.machines.running.items()
    assert bench.host.fail_task(task, first, 1, "out of memory")
    bench.go(2)
    machine, second = bench.machines.running[task]
    assert (machine, second == first) == (1, False)
    assert not bench.host.fail_task(task, first, 1, "too late")
    assert bench.host.fail_task(task, second, -9, "killed")
    bench.go(3)
    assert bench.host.board.state(task) is TaskState.FAILED
    told = [event for event in bench.told(TaskFailed) if isinstance(event, TaskFailed)]
    assert [event.again for event in told] == [True, False]
    assert [event.incarnations.tolist() for event in told] == [[first], [second]]
    retried = [r for r in bench.replay().facts() if isinstance(r, RetriedRecord)]
    assert [(r.exit_status, r.for_good) for r in retried] == [(1, False), (-9, True)]


def test_a_task_that_was_removed_and_added_again_has_all_its_retries() -> None:
    bench = Bench(at_once)
    number = bench.host.submit(web(2, retries=1))
    bench.go(1)
    assert bench.host.fail_task(1, bench.machines.running.pop(1)[1], 1, "no luck")
    bench.go(2)
    bench.host.scale(number, web(1, retries=1))
    bench.go(3)
    bench.host.scale(number, web(2, retries=1))
    bench.go(4)
    assert bench.host.fail_task(1, bench.machines.running.pop(1)[1], 1, "no luck again")
    bench.go(5)
    assert bench.host.board.state(1) is TaskState.RUNNING
    bench.replay()


def test_a_failed_task_is_tried_again_after_a_wait_that_doubles() -> None:
    bench = Bench(at_once)
    again = job("web", 1, cpu=500, seconds=None, retries=2, backoff=2 * SECOND).job
    bench.host.submit(again)
    bench.go(1)
    for failed_at, back_at in ((1, 3), (10, 14)):
        bench.go(failed_at)
        assert bench.host.fail_task(0, bench.machines.running.pop(0)[1], 1, "no luck")
        bench.go(back_at - 0.001)
        assert bench.machines.running == {}
        bench.go(back_at)
        assert list(bench.machines.running) == [0]
    bench.replay()


def test_a_task_that_is_cancelled_while_it_waits_for_its_next_try_stays_cancelled() -> None:
    bench = Bench(at_once)
    number = bench.host.submit(
        job("web", 1, cpu=500, seconds=None, retries=2, backoff=2 * SECOND).job
    )
    bench.go(1)
    assert bench.host.fail_task(0, bench.machines.running.pop(0)[1], 1, "no luck")
    bench.host.cancel(number)
    bench.go(10)
    assert bench.told(TaskFailed) == []
    assert bench.host.board.state(0) is TaskState.CANCELLED
    bench.replay()


def test_a_cancelled_task_is_stopped_and_its_scheduler_told() -> None:
    bench = Bench(at_once)
    number = bench.host.submit(web(3))
    bench.go(1)
    gone = bench.host.cancel(number, np.array([1], np.int64))
    assert gone.tolist() == [1]
    bench.go(2)
    assert [(task, why) for task, _, why in bench.machines.stopped] == [(1, Why.CANCELLED)]
    assert sorted(bench.machines.running) == [0, 2]
    (told,) = bench.told(JobCancelled)
    assert told.tasks.tolist() == [1]  # type: ignore[union-attr]
    bench.replay()


def test_the_constraints_of_a_cancelled_job_go_with_it() -> None:
    bench = Bench(at_once)
    apart = parse_constraint("appID:self -> {appID:self, 0, 0} in machine")
    number = bench.host.submit(job("a", 2, constraints=(apart,)).job)
    bench.go(1)
    bench.host.retire_done()
    assert [*bench.host.cell.applications()] == [number]
    bench.host.cancel(number)
    bench.host.retire_done()
    assert [*bench.host.cell.applications()] == []


def test_what_is_enqueued_after_it_was_cancelled_is_not_recorded_as_enqueued() -> None:
    def later(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted():
                return [WakeMe(SECOND, "enqueue")]
            case TimerFired():
                return [Enqueue(np.arange(3, dtype=np.int64), np.zeros(3, np.int32))]
        return ()

    bench = Bench(later)
    number = bench.host.submit(web(3))
    bench.go(0.5)
    bench.host.cancel(number, np.array([1], np.int64))
    bench.go(2)
    assert sorted(bench.machines.running) == [0, 2]
    (enqueued,) = [r for r in bench.replay().facts() if isinstance(r, EnqueuedRecord)]
    assert enqueued.indices == [0, 2]


def test_a_job_grows_and_shrinks_and_an_index_names_the_same_task() -> None:
    bench = Bench(at_once)
    number = bench.host.submit(web(2))
    bench.go(1)
    for second, size in ((2, 4), (3, 1), (4, 3)):
        bench.host.scale(number, web(size))
        bench.go(second)
    assert sorted(bench.machines.running) == [0, 1, 2]
    assert bench.host.board.tasks(number) == 4
    assert bench.host.board.state(3) is TaskState.CANCELLED
    bench.replay()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (job("other", 2, cpu=500, seconds=None).job, "becomes other"),
        (job("web", 3, cpu=900, seconds=None).job, "asks for something else"),
    ],
)
def test_only_the_size_of_a_job_can_change(changed: Job, says: str) -> None:
    bench = Bench(at_once)
    number = bench.host.submit(web(2))
    bench.go(1)
    with pytest.raises(ModelError, match=says):
        bench.host.scale(number, changed)
    with pytest.raises(ModelError, match="not over"):
        bench.host.cancel(7)
    bench.replay()


def test_tasks_of_a_lost_machine_are_stopped() -> None:
    bench = Bench(at_once)
    bench.host.submit(web(2))
    bench.go(1)
    bench.host.change_machine(RemoveMachine(0))
    stopped = {task: why for task, _, why in bench.machines.stopped}
    assert stopped == {0: Why.MACHINE_GONE, 1: Why.MACHINE_GONE}
    bench.replay()


def test_a_task_that_fails_after_its_scheduler_was_given_up_goes_to_a_peer() -> None:
    bench = Bench("omega", replicas=2)
    bench.host.submit(web(1, retries=1))
    bench.go(1)
    owner, peer = bench.host.schedulers
    if bench.host.board.owner(0) != owner.index:
        owner, peer = peer, owner
    bench.host.crash(owner)
    bench.go(100)
    # It ran on, and is not pending: nobody has taken it over.
    assert (owner.is_given_up, bench.host.board.owner(0)) == (True, owner.index)
    assert bench.host.fail_task(0, bench.machines.running.pop(0)[1], 1, "no luck")
    bench.go(110)
    assert bench.host.board.owner(0) == peer.index
    assert list(bench.machines.running) == [0]
    assert (owner.jobs, peer.jobs) == (1, 1)
    bench.replay()


def test_a_task_that_fails_for_good_is_not_taken_over() -> None:
    bench = Bench("omega", replicas=2)
    bench.host.submit(web(1))
    bench.go(1)
    owner = bench.host.schedulers[bench.host.board.owner(0)]
    bench.host.crash(owner)
    bench.go(100)
    assert bench.host.fail_task(0, bench.machines.running.pop(0)[1], 1, "no luck")
    bench.go(110)
    assert bench.host.board.owner(0) == owner.index
    assert bench.host.board.state(0) is TaskState.FAILED
    bench.replay()


def test_a_wait_for_the_next_try_doubles_up_to_five_minutes_or_its_own_length() -> None:
    for backoff, waits in ((100, (100, 200, 300, 300)), (400, (400, 400))):
        bench = Bench(at_once)
        made = job("web", 1, cpu=500, seconds=None, retries=9, backoff=backoff * SECOND).job
        bench.host.submit(made)
        now = 1
        bench.go(now)
        for wait in waits:
            assert bench.host.fail_task(0, bench.machines.running.pop(0)[1], 1, "no luck")
            bench.go(now + wait - 0.001)
            assert bench.machines.running == {}
            now += wait
            bench.go(now)
            assert list(bench.machines.running) == [0]
