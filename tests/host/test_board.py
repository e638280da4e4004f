"""The job board: whose tasks are where, and when jobs reached their milestones."""

from __future__ import annotations

import pytest
from runtime_bench import SLOTS, Bench, ints, longs

from argosy._core import NEVER, QueueOrder, QueueRules, TaskState
from argosy.model.jobs import job_of


def test_only_jobs_with_something_pending_are_found_for_their_owner() -> None:
    bench = Bench()
    running, waiting, others = bench.job(2), bench.job(2), bench.job()
    bench.board.set_owner(job_of(int(others[0])), 1)
    bench.launch(running)
    bench.launch(waiting[:1], machine=1)
    assert bench.board.jobs_with_pending(0).tolist() == [1]
    assert bench.board.jobs_with_pending(1).tolist() == [2]
    bench.enqueue(waiting[1:], 0)
    assert not bench.board.jobs_with_pending(0).size, "what is queued is not pending"


def test_the_first_task_of_somebody_else_is_found() -> None:
    bench = Bench()
    mine, theirs = bench.job(2), bench.job()
    bench.board.set_owner(1, 3)
    assert bench.board.first_foreign(mine, 0) == -1
    assert bench.board.first_foreign(longs(mine[0], theirs[0], mine[1]), 0) == 1
    assert bench.board.first_foreign(longs(mine[1] + 1), 0) == 0, "there is no such task"
    assert bench.board.first_misplaced(longs(mine[0], theirs[0]), 0, False) == 1
    bench.launch(mine[:1])
    assert bench.board.first_misplaced(mine, 0, False) == 0
    assert bench.board.first_misplaced(mine, 0, True) == -1, "a running task may be moved"


def test_a_job_was_all_placed_when_it_was_so_first() -> None:
    bench = Bench()
    tasks = bench.job(2)
    bench.runtime.advance(5)
    bench.launch(tasks[:1])
    bench.runtime.advance(10)
    bench.launch(tasks[1:])
    bench.runtime.advance(20)
    task = int(tasks[0])
    bench.runtime.stop_task(task, bench.runtime.incarnation(task), TaskState.PENDING)
    bench.launch(tasks[:1])
    _, _, placed, done = bench.board.job_columns()
    assert (placed.tolist(), done.tolist()) == ([10], [-1])
    bench.runtime.advance(30)
    assert all(bench.end(each) for each in tasks)
    assert bench.board.job_columns()[3].tolist() == [30]
    assert bench.board.is_over(0)


def test_a_job_is_first_attempted_once_and_thought_about_each_time() -> None:
    bench = Bench()
    bench.job()
    bench.runtime.advance(5)
    bench.runtime.attempt(0, 0, 3)
    bench.runtime.advance(9)
    bench.runtime.attempt(0, 0, 4)
    assert bench.board.job_columns()[1].tolist() == [5]
    assert bench.board.thought_by_job().tolist() == [7]


def test_a_cancelled_task_that_is_wanted_again_is_not_counted_as_cancelled() -> None:
    bench = Bench()
    tasks = bench.job(2)
    assert all(bench.runtime.cancel_task(int(task)) for task in tasks)
    assert bench.board.is_over(0)
    bench.runtime.set_pending(tasks[:1])
    assert bench.board.cancelled_by_job().tolist() == [1]
    assert not bench.board.is_over(0)


def test_tasks_that_a_job_gets_later_are_work_that_remains() -> None:
    bench = Bench(QueueRules(order=QueueOrder.SHORTEST_REMAINING))
    busy, small, other = bench.job(SLOTS), bench.job(), bench.job()
    bench.launch(busy)
    for tasks, estimate in ((small, 5), (other, 10)):
        bench.know(tasks, [-1], [estimate])
        bench.runtime.enqueue(bench.runtime.now, bench.scheduler, tasks, ints(0))
    assert bench.runtime.next(NEVER) is None
    # Of the first, three times 5 remain.
    bench.board.grow_job(1, 3)
    assert bench.end(busy[0])
    assert bench.state(other[0]) is TaskState.RUNNING


def test_columns_that_are_lent_show_what_the_board_says_and_keep_it() -> None:
    bench = Bench()
    bench.runtime.expect_jobs(2)
    first, _ = bench.job(2), bench.job()
    lent = bench.board.lend_job_columns()
    bench.runtime.advance(10)
    bench.launch(first)
    assert [column.tolist() for column in lent] == [c.tolist() for c in bench.board.job_columns()]
    assert lent[2].tolist() == [10, -1]
    assert not any(column.flags.writeable or column.flags.owndata for column in lent)
    del bench
    assert lent[2].tolist() == [10, -1]


def test_there_may_be_more_jobs_than_were_expected() -> None:
    bench = Bench()
    bench.runtime.expect_jobs(1)
    tasks = [bench.job() for _ in range(100)]
    bench.launch(tasks[99])
    assert bench.board.jobs == 100
    assert bench.board.job_columns()[2].tolist() == [-1] * 99 + [0]
    for wrong in (-1, 2**31):
        with pytest.raises(ValueError, match="not a number of jobs"):
            bench.runtime.expect_jobs(wrong)


def test_jobs_that_come_and_go_leave_those_that_stay_as_they_are() -> None:
    """More jobs than are kept together, one after the other, and one among them that stays."""
    bench = Bench()
    over = []
    stays = -1
    for number in range(700):
        tasks = bench.job()
        if number == 300:
            stays = int(tasks[0])
            continue
        bench.launch(tasks)
        assert bench.end(tasks[0])
        over.append(int(tasks[0]))
    assert {bench.board.state(task) for task in over} == {TaskState.FINISHED}
    assert bench.board.state(stays) == TaskState.PENDING
    assert bench.board.jobs_with_pending(0).tolist() == [300]
    bench.runtime.forget_jobs([job_of(task) for task in over])
    bench.launch(longs(stays))
    assert bench.end(stays)
    assert bench.board.state(stays) == TaskState.FINISHED
    assert not bench.board.jobs_with_pending(0).size
