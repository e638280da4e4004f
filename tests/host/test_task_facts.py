"""What the runtime knows of tasks, and claims that it commits and launches in one call."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from runtime_bench import SLOTS, Bench, ints, longs

from argosy._core import NEVER, LineBuffer, RuntimeEvent, TaskState
from argosy.model.tasks import first_tasks


def commit(bench: Bench, tasks: NDArray[np.int64], machine: int, **terms: bool) -> Any:
    count = len(tasks)
    return bench.runtime.commit(
        bench.scheduler,
        0,
        False,
        tasks,
        np.full(count, machine, np.int32),
        np.full(count, bench.shape, np.int32),
        np.zeros(count, np.uint32),
        **{"atomic": False, "coarse": False, "preempt": False, **terms},
    )


def test_claims_that_are_all_accepted_run_at_once() -> None:
    bench = Bench()
    tasks = bench.job(SLOTS)
    bench.runtime.set_times(0, [9])
    assert commit(bench, tasks, 1) is True
    assert [bench.state(task) for task in tasks] == [TaskState.RUNNING] * SLOTS
    assert bench.runtime.next(NEVER) == (RuntimeEvent.FINISHED, 9, 0, 0)
    assert bench.runtime.take_finished()[1].tolist() == [1] * SLOTS


def test_the_answer_to_claims_passes_its_turn_unless_something_else_comes_first() -> None:
    bench = Bench()
    first, second, third = bench.job(), bench.job(), bench.job()
    bench.runtime.set_times(1, [0])
    assert commit(bench, first, 1, passes=True) is None
    # The second task ends as soon as it runs, before the answer.
    assert commit(bench, second, 1, passes=True) is True
    assert commit(bench, third, 0, passes=True) is True


def test_a_plain_job_is_one_with_a_single_group_and_a_single_time() -> None:
    bench = Bench()
    job = bench.runtime.add_plain_job(3, 0, 2, bench.shape, 5, 9)
    numbers = first_tasks(job, 3).tolist()
    assert [bench.runtime.facts(task) for task in numbers] == [(bench.shape, 5, 9)] * 3
    assert (bench.board.tasks(job), bench.board.owner(job)) == (2, 0)
    later = bench.runtime.add_plain_job(3, 0, 1, bench.shape, 5)
    assert bench.runtime.facts(later << 32) == (bench.shape, 5, -1)
    for count, shape in ((0, bench.shape), (1, 99)):
        with pytest.raises(ValueError, match=r"tasks|shape"):
            bench.runtime.add_plain_job(0, 0, count, shape, 0)


@pytest.mark.parametrize("atomic", [False, True])
def test_of_claims_that_are_refused_in_part_none_runs_yet(atomic: bool) -> None:
    bench = Bench()
    tasks = bench.job(SLOTS + 1)
    verdicts, evictions, machines, unsettled = commit(bench, tasks, 1, atomic=atomic)
    assert verdicts[0].tolist() == [not atomic] * SLOTS + [False]
    assert evictions is machines is unsettled is None
    assert [bench.state(task) for task in tasks] == [TaskState.PENDING] * (SLOTS + 1)
    assert bench.cell.claims == (0 if atomic else SLOTS)
    assert not bench.cell.audit()
    bench.runtime.launch(tasks[verdicts[0]])
    assert bench.board.counts()[TaskState.RUNNING] == (0 if atomic else SLOTS)


def test_claims_of_tasks_that_are_not_to_be_placed_change_nothing() -> None:
    bench = Bench()
    running, foreign = bench.job(), bench.job()
    bench.launch(running)
    bench.board.set_owner(1, 3)
    for tasks in (running, foreign, longs(7 << 32)):
        assert commit(bench, tasks, 1) is False
    assert bench.cell.claims == 1
    with pytest.raises(ValueError, match="there is no shape 99"):
        bench.runtime.commit(
            bench.scheduler, 0, False, bench.job(), ints(0), ints(99), np.zeros(1, np.uint32),
            False, False, False,
        )  # fmt: skip
    assert bench.cell.claims == 1


def test_facts_about_tasks_follow_their_groups_until_the_job_is_forgotten() -> None:
    bench = Bench()
    other = bench.cell.shape([2], [], 0)
    job = bench.runtime.add_job(0, 0, [(2, bench.shape, 5), (1, other, 6)])
    numbers = first_tasks(job, 4).tolist()

    def facts() -> list[tuple[int, int, int]]:
        return [bench.runtime.facts(task) for task in numbers]

    first, second = (bench.shape, 5, -1), (other, 6, -1)
    assert facts() == [first, first, second, second]
    bench.runtime.set_times(job, [1, 2])
    assert [time for *_, time in facts()] == [1, 2, 2, 2]
    bench.runtime.set_groups(job, [(3, bench.shape, 8)])
    assert facts() == [(bench.shape, 8, time) for time in (1, 2, 2, 2)]
    bench.runtime.forget_jobs([job])
    assert facts() == [(0, 0, 0)] * 4
    with pytest.raises(ValueError, match="unknown shape"):
        bench.runtime.add_job(0, 0, [(1, 99, 5)])
    with pytest.raises(ValueError, match="1 to 2"):
        bench.runtime.add_job(0, 0, [(0, bench.shape, 5)])


def test_tasks_that_are_alike_end_by_one_timer_and_others_by_one_each() -> None:
    bench, lines = Bench(), LineBuffer()
    bench.runtime.record_into(lines)
    alike, apart = bench.job(SLOTS), bench.job(SLOTS)
    bench.runtime.set_times(0, [9])
    bench.runtime.set_times(1, [9, 9])
    assert commit(bench, alike, 0) is True
    assert commit(bench, apart, 1) is True
    assert bench.runtime.next(NEVER) == (RuntimeEvent.FINISHED, 9, 0, 0)
    bench.runtime.record_into(None)
    ended = [json.loads(line) for line in lines.take().splitlines()]
    tasks = [line["tasks"] for line in ended if line["what"] == "ended"]
    assert tasks == [alike.tolist(), *([task] for task in apart.tolist())]


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([7], [7, 7, 7]),
        ([0], [0, 0, 0]),
        ([], [-1, -1, -1]),
        ([-1], [-1, -1, -1]),
        ([3, 4], [3, 4, 4]),
        ([3, 4, 5], [3, 4, 5]),
    ],
)
@pytest.mark.parametrize("before", [[], [5], [1, 2, 3]])
def test_times_that_are_set_again_replace_those_before(
    before: list[int], times: list[int], found: list[int]
) -> None:
    bench = Bench()
    tasks = bench.job(3)
    bench.runtime.set_times(0, before)
    bench.runtime.set_times(0, times)
    assert [bench.runtime.facts(task)[2] for task in tasks.tolist()] == found
    bench.runtime.forget_jobs([0])
    # Of a job that is forgotten, it is still known whether a report ends its tasks.
    forgotten = (0, 0, -1 if found[0] < 0 else 0)
    assert [bench.runtime.facts(task) for task in tasks.tolist()] == [forgotten] * 3


def test_tasks_of_several_jobs_launched_together_run_as_long_as_their_own_jobs_say() -> None:
    bench = Bench()
    short, long = bench.job(), bench.job()
    bench.runtime.set_times(0, [4])
    bench.runtime.set_times(1, [9])
    bench.runtime.launch(np.concatenate([bench.claim(short, 0), bench.claim(long, 0)]))
    for task, now in ((short, 4), (long, 9)):
        assert bench.runtime.next(NEVER) == (RuntimeEvent.FINISHED, now, 0, 0)
        assert bench.runtime.take_finished()[0].tolist() == task.tolist()


def test_a_replay_has_events_left_until_its_last_timer_was_said_to_be_due() -> None:
    bench = Bench(replayed=True)
    assert not bench.runtime.has_events
    bench.runtime.push(5, 16, 1, 2)
    assert bench.runtime.has_events
    assert bench.runtime.next_at == NEVER
    assert bench.runtime.due(1, 5) == (16, 5, 1, 2)
    assert not bench.runtime.has_events
    with pytest.raises(ValueError, match="no timer has that ticket"):
        bench.runtime.due(1, 5)
