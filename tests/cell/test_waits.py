"""Wait views: the smallest key at any time, reports in any order and number, and the ledger's join."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_bench import MACHINES, SLOTS, Bench, ints

from argosy._core import PlacementNews
from argosy.cell.waits import WaitState, WaitView
from argosy.model.random import Random
from argosy.model.tasks import first_tasks

ONE_SLOT = np.array([1000], np.int64)


def a_view(machines: int, capacity: int = 1000, **options: Any) -> WaitView:
    view = WaitView(**options)
    view.learn(np.full(machines, capacity, np.int64), np.ones(machines, np.uint8))
    view.know_shape(0, ONE_SLOT)
    return view


def tasks_of(job: int, count: int) -> np.ndarray:
    return first_tasks(job, count)


def choose(view: WaitView, job: int, count: int, estimate: int = 100, now: int = 0, seed: int = 1):
    return view.choose(tasks_of(job, count), count, 0, estimate, now, Random(seed))


def end(view: WaitView, tasks: np.ndarray, machines: np.ndarray, estimate: int = 100) -> None:
    n = len(tasks)
    view.post_ended(
        0, 0, tasks, machines, np.full(n, estimate, np.int64), np.zeros(n, np.int32),
        np.zeros(n, np.int64),
    )  # fmt: skip


def test_ties_fall_evenly_on_all_machines() -> None:
    random = Random(5)
    picked: Counter[int] = Counter()
    for job in range(4000):
        view = a_view(20)
        machines, *_ = view.choose(tasks_of(job, 1), 1, 0, 100, 0, random)
        picked[int(machines[0])] += 1
    assert len(picked) == 20
    assert min(picked.values()) > 140
    assert max(picked.values()) < 260


@given(st.integers(1, 70), st.lists(st.tuples(st.integers(1, 9), st.integers(1, 50)), max_size=12))
@settings(derandomize=True, deadline=None)
def test_every_task_goes_where_the_sum_of_estimates_is_least(
    machines: int, jobs: list[tuple[int, int]]
) -> None:
    view, sums = a_view(machines), [0] * machines
    for job, (count, estimate) in enumerate(jobs):
        chosen, _, feasible, score, *_ = choose(view, job, count, estimate, seed=job)
        assert feasible == machines
        assert score == min(sums)
        for machine in chosen.tolist():
            assert sums[machine] == min(sums)
            sums[machine] += estimate
        assert view.work().tolist() == sums


def test_a_machine_with_several_slots_has_no_wait_until_it_is_full() -> None:
    view = a_view(2, capacity=3000)
    machines, *_ = choose(view, 0, 6, estimate=30)
    assert sorted(machines.tolist()) == [0, 0, 0, 1, 1, 1]
    # A third of the machine for 30 is work of 10.
    assert view.work().tolist() == [30, 30]
    assert view.held().tolist() == [[3000], [3000]]


def test_closed_blocked_and_unwanted_machines_are_not_chosen() -> None:
    view = a_view(4)
    view.learn(np.full(4, 1000, np.int64), np.array([1, 1, 1, 0], np.uint8))
    view.block(0)
    members = np.array([1, 0, 1, 1], np.uint8)
    machines, *_ = view.choose(tasks_of(0, 3), 3, 0, 100, 0, Random(1), 7, members)
    assert machines.tolist() == [2, 2, 2]
    assert view.blocked == 1
    end(view, tasks_of(9, 1), np.array([0], np.int32))
    machines, *_ = view.choose(tasks_of(1, 1), 1, 0, 100, 0, Random(1), 7, members)
    assert machines.tolist() == [0]


def test_machines_elsewhere_are_worth_a_wait() -> None:
    near = np.array([0, 1, 0], np.uint8)
    view = a_view(3)
    machines, *_ = view.choose(tasks_of(0, 4), 4, 0, 100, 0, Random(1), 3, None, near, 250)
    # Waits of 0, 100 and 200 near by are less than 250 elsewhere; then the two are even.
    assert machines.tolist()[:3] == [1, 1, 1]
    assert machines.tolist()[3] in (0, 2)


def test_reports_take_effect_when_they_are_due() -> None:
    view = a_view(1, lag=1000)
    tasks, machine = tasks_of(0, 1), np.zeros(1, np.int32)
    view.post_placed(500, 0, tasks, np.array([2], np.uint8), machine, 70, 0, 0)
    view.settle(1499)
    assert view.work().tolist() == [0]
    view.settle(1500)
    assert view.work().tolist() == [70]


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], list[int]]:
    """Lives of a few tasks as reports, and the order in which they come: any, some of them twice."""
    reports: list[tuple[Any, ...]] = []
    for task in range(draw(st.integers(1, 6))):
        moves = draw(st.integers(1, 3))
        for move in range(1, moves + 1):
            reports.append(("placed", task, 2 * move, draw(st.integers(0, 4))))
            if move < moves:
                reports.append(("undone", task, 2 * move + 1, -1))
        if draw(st.booleans()):
            reports.append(("ended", task, 255, reports[-1][3]))
    order = draw(st.permutations(range(len(reports))))
    twice = draw(st.lists(st.sampled_from(order), max_size=4))
    return reports, [*order, *twice]


def post(view: WaitView, report: tuple[Any, ...]) -> None:
    what, task, version, machine = report
    tasks, machines = np.array([task], np.int64), np.array([machine], np.int32)
    if what == "ended":
        end(view, tasks, machines)
    else:
        view.post_placed(0, 0, tasks, np.array([version], np.uint8), machines, 100, 0, 0)


@given(stories())
@settings(derandomize=True, deadline=None, max_examples=200)
def test_the_order_and_number_of_reports_do_not_matter(
    story: tuple[list[tuple[Any, ...]], list[int]],
) -> None:
    reports, order = story
    straight, shuffled = a_view(5), a_view(5)
    for report in reports:
        post(straight, report)
    for place in order:
        post(shuffled, reports[place])
    straight.settle(0)
    shuffled.settle(0)
    assert straight.work().tolist() == shuffled.work().tolist()
    assert straight.held().tolist() == shuffled.held().tolist()
    assert straight.digest == shuffled.digest


@given(stories(), st.data())
@settings(derandomize=True, deadline=None, max_examples=200)
def test_views_that_lost_reports_agree_once_they_are_joined(
    story: tuple[list[tuple[Any, ...]], list[int]], data: st.DataObject
) -> None:
    reports, _ = story
    views = [a_view(5), a_view(5)]
    whole = a_view(5)
    for report in reports:
        heard_by = data.draw(st.sampled_from([(0,), (1,), (0, 1)]))
        for side in heard_by:
            post(views[side], report)
        post(whole, report)
    for view in (*views, whole):
        view.settle(0)
    views[0].join(views[1].state())
    views[1].join(views[0].state())
    for view in views:
        assert view.work().tolist() == whole.work().tolist()
        assert view.held().tolist() == whole.held().tolist()
        assert view.digest == whole.digest


def test_an_emptied_machine_is_not_taken_off_twice() -> None:
    view = a_view(2)
    machines, *_ = choose(view, 0, 2)
    view.empty(0)
    end(view, tasks_of(0, 2), machines)
    view.settle(0)
    assert view.work().tolist() == [0, 0]


def test_an_emptied_machine_holds_nothing() -> None:
    view = a_view(2, capacity=3000)
    choose(view, 0, 6, estimate=30)
    view.empty(0)
    assert view.work().tolist() == [0, 30]
    assert view.held().tolist() == [[0], [3000]]


def test_a_job_that_is_over_is_told_as_such() -> None:
    mine, theirs = a_view(3), a_view(3)
    machines, versions, *_ = choose(mine, 4, 2)
    theirs.post_placed(0, 0, tasks_of(4, 2), versions, machines, 100, 0, 0)
    theirs.settle(0)
    end(mine, tasks_of(4, 2), machines)
    mine.settle(0)
    jobs, digests = theirs.digests()
    assert jobs.tolist() == [4]
    assert mine.differing(jobs, digests).tolist() == [4]
    theirs.join(mine.state(np.array([4], np.int64)))
    assert theirs.work().tolist() == [0, 0, 0]
    assert theirs.digest == mine.digest


def test_a_view_as_published_counts_from_the_later_of_now_and_busy_until() -> None:
    view = a_view(2, published=True)
    machines, *_ = choose(view, 0, 3, estimate=10, now=100)
    assert sorted(view.work().tolist()) == [110, 120]
    # It had started at 300, after all that was known: what follows starts from there.
    n = 1
    view.post_ended(
        0, 0, tasks_of(0, n), machines[:n], np.full(n, 10, np.int64), np.zeros(n, np.int32),
        np.full(n, 300, np.int64),
    )  # fmt: skip
    view.settle(400)
    assert view.work()[machines[0]] == 290


def test_of_two_views_as_published_the_later_time_counts_at_each_machine() -> None:
    views = [a_view(2, published=True), a_view(2, published=True)]
    for view, untils in zip(views, ([150, 110], [120, 300]), strict=True):
        for machine, until in enumerate(untils):
            only = np.arange(2) == machine
            members = only.astype(np.uint8)
            view.choose(
                tasks_of(machine, 1), 1, 0, until - 100, 100, Random(1), machine + 1, members
            )
        assert view.work().tolist() == untils
    mine, theirs = views
    mine.join(theirs.state())
    assert mine.work().tolist() == [150, 300]
    # What is later elsewhere by now is not chosen first.
    assert choose(mine, 5, 1, now=100)[0].tolist() == [0]


def test_what_makes_no_sense_is_refused() -> None:
    view = a_view(2)
    with pytest.raises(ValueError, match="never made known"):
        view.choose(tasks_of(0, 1), 1, 5, 100, 0, Random(1))
    with pytest.raises(ValueError, match="unknown machine"):
        view.empty(9)
    with pytest.raises(ValueError, match="a row of"):
        view.learn(np.zeros(3, np.int64), np.ones(2, np.uint8))


@given(st.integers(0, 2**32), st.booleans())
@settings(derandomize=True, deadline=None)
def test_a_state_is_the_same_after_it_was_plain_values(seed: int, published: bool) -> None:
    random = Random(seed)
    view, other = a_view(6, published=published), a_view(6, published=published)
    for job in range(1 + random.below(5)):
        count = 1 + random.below(4)
        machines, *_ = choose(view, job, count, 1 + random.below(99), seed=seed)
        ended = random.below(count + 1)
        end(view, tasks_of(job, count)[:ended], machines[:ended])
    view.settle(10)
    if not published and random.below(2):
        view.undo(tasks_of(0, 1))
    state = view.state()
    columns = tuple(np.array(column.tolist(), column.dtype) for column in state.columns())
    again = WaitState.from_columns(columns)  # type: ignore[arg-type]
    assert again == state
    other.join(again)
    assert other.digest == view.digest
    if not published:
        assert other.state() == state
        assert other.work().tolist() == view.work().tolist()
        assert view.state(np.array([], np.int64)) != state


def test_inconsistent_columns_are_not_a_state() -> None:
    view = a_view(3)
    choose(view, 0, 2)
    columns = view.state().columns()
    requests, busy = 1, 11
    for row, column in enumerate(columns):
        changed = list(columns)
        changed[row] = np.append(column, column[-1:])
        if row not in (requests, busy):
            with pytest.raises(ValueError, match="no state"):
                WaitState.from_columns(tuple(changed))  # type: ignore[arg-type]
    nine = np.zeros(9 * len(columns[0]), np.int64)
    with pytest.raises(ValueError, match="1 to 8 amounts"):
        a_view(3).join(WaitState.from_columns((columns[0] + 1, nine, *columns[2:])))


def test_a_choice_says_how_many_could_take_it_and_who_came_second() -> None:
    view = a_view(4)
    machines, _, feasible, score, second, second_score = choose(view, 0, 1, estimate=50)
    assert (feasible, score, second_score) == (4, 0, 0)
    assert second in {0, 1, 2, 3} - set(machines.tolist())
    view.block(int(second))
    assert choose(view, 1, 2)[2] == 3
    # Of the two that are left, one has a wait of 50 and all others are blocked or longer.
    machines, _, feasible, score, second, second_score = choose(view, 2, 1, estimate=7)
    assert (feasible, score, second_score) == (3, 50, 100)
    end(view, tasks_of(9, 1), np.array([int(np.argmin(view.work()))], np.int32))
    assert choose(view, 3, 1)[2] == 4
    assert a_view(1).choose(tasks_of(0, 1), 1, 0, 1, 0, Random(1))[4] == -1, "there is no second"


def test_what_is_learnt_of_machines_counts_at_once() -> None:
    view = a_view(2)
    assert set(choose(view, 0, 2)[0].tolist()) == {0, 1}
    view.learn(np.full(2, 1000, np.int64), np.array([0, 1], np.uint8))
    assert choose(view, 1, 4)[0].tolist() == [1] * 4
    view.learn(np.full(3, 4000, np.int64), np.array([0, 0, 1], np.uint8))
    assert choose(view, 2, 2)[0].tolist() == [2, 2]


def test_any_number_of_sets_of_machines_can_be_asked_for_in_turn() -> None:
    view, random, sums = a_view(6), Random(3), [0] * 6
    sets = [np.array([(s >> m) & 1 for m in range(6)], np.uint8) for s in range(1, 41)]
    for step in range(400):
        number, estimate = random.below(len(sets)), 1 + random.below(50)
        task = tasks_of(step, 1)
        machines, *_ = view.choose(task, 1, 0, estimate, 0, Random(step), number, sets[number])
        members = np.flatnonzero(sets[number]).tolist()
        assert machines[0] in members
        assert sums[machines[0]] == min(sums[m] for m in members)
        sums[machines[0]] += estimate
    assert view.work().tolist() == sums


def test_how_far_other_machines_are_may_change_from_one_question_to_the_next() -> None:
    near, view = np.array([0, 1], np.uint8), a_view(2)
    for job, far in ((0, 250), (1, 0), (2, 250)):
        ask = (tasks_of(job, 1), 1, 0, 100, 0, Random(1), 3, None, near, far)
        assert view.choose(*ask)[0].tolist() == [0 if far == 0 else 1]


def test_a_placement_that_is_undone_and_made_again_is_newer_each_time() -> None:
    view, task = a_view(1), tasks_of(0, 1)
    versions = []
    for _ in range(130):
        versions += view.choose(task, 1, 0, 100, 0, Random(1))[1].tolist()
        versions += view.undo(task).tolist()
    assert versions[:6] == [2, 3, 4, 5, 6, 7]
    assert max(versions) < 255, "that would be the end"
    assert view.work().tolist() == [0]


def test_the_time_that_a_task_took_is_told_once_and_without_the_lag() -> None:
    view = a_view(1, lag=1000)
    view.record_times()
    machines, *_ = choose(view, 0, 1)
    for due in (500, 700):
        view.post_ended(
            due, 0, tasks_of(0, 1), machines, np.full(1, 100, np.int64), np.zeros(1, np.int32),
            np.full(1, 40, np.int64),
        )  # fmt: skip
    view.settle(2000)
    tasks, times = view.take_times()
    assert (tasks.tolist(), times.tolist()) == ([0], [460])
    assert len(view.take_times()[0]) == 0


@pytest.mark.parametrize("as_published", [False, True])
def test_times_to_come_are_those_that_will_be_told_and_asking_for_them_changes_nothing(
    as_published: bool,
) -> None:
    asked, other = (a_view(3, published=as_published, lag=1000, cost=10) for _ in range(2))
    for view in (asked, other):
        view.record_times()
        machines, *_ = choose(view, 0, 3)
        # Out of order, one of them twice; the first is applied before the others are.
        for task, due in ((0, 100), (2, 900), (1, 800), (1, 850)):
            view.post_ended(
                due, 0, tasks_of(0, 3)[task : task + 1], machines[task : task + 1],
                np.full(1, 100, np.int64), np.zeros(1, np.int32), np.full(1, 40, np.int64),
            )  # fmt: skip
        view.settle(1200)
    to_come = [column.tolist() for column in asked.times_to_come()]
    assert [column.tolist() for column in asked.times_to_come()] == to_come
    for now in (1810, 1900, 1920):
        for view in (asked, other):
            view.settle(now)
        assert asked.work().tolist() == other.work().tolist()
        assert asked.digest == other.digest
        asked.times_to_come()
    assert [column.tolist() for column in asked.take_times()] == to_come
    assert [column.tolist() for column in other.take_times()] == to_come
    assert len(to_come[0]) == (4 if as_published else 3)


@pytest.mark.parametrize(
    ("reports", "until"),
    [
        # What is due first counts first, also if it is heard of later.
        ([(20, 0), (10, 50)], 70),
        ([(10, 0), (20, 50)], 60),
        # Of those due at once, what was heard of first.
        ([(10, 0), (20, 0), (10, 50)], 70),
        ([(20, 0), (10, 50), (10, 0)], 80),
        ([(20, 0), (10, 0), (10, 50)], 70),
    ],
)
def test_reports_count_in_the_order_in_which_they_are_due(
    reports: list[tuple[int, int]], until: int
) -> None:
    """As published, each report makes the machine busy for ten more, from its own time on at least."""
    view = a_view(1, published=True)
    for number, (due, since) in enumerate(reports):
        task, version = tasks_of(number, 1), np.array([2], np.uint8)
        view.post_placed(due, 0, task, version, np.zeros(1, np.int32), 10, 0, since)
    view.settle(20)
    assert view.work().tolist() == [until]


def test_a_view_that_does_not_know_the_number_of_tasks_is_told_that_the_job_is_over() -> None:
    mine, theirs = a_view(3), a_view(3)
    machines, versions, *_ = choose(mine, 4, 2)
    theirs.post_placed(0, 0, tasks_of(4, 2), versions, machines, 100, 0, 0)
    for view in (mine, theirs):
        end(view, tasks_of(4, 2), machines)
        view.settle(0)
    jobs, digests = theirs.digests()
    assert (jobs.tolist(), theirs.digest == mine.digest) == ([4], True)
    assert mine.differing(jobs, digests).tolist() == [4]
    theirs.join(mine.state(np.array([4], np.int64)))
    assert theirs.digests()[0].tolist() == []


def test_a_task_that_just_fits_does_not_wait() -> None:
    view = a_view(1, capacity=2000)
    assert [choose(view, job, 1)[3] for job in range(3)] == [0, 0, 100]


def test_a_view_that_joins_another_knows_when_a_job_is_over() -> None:
    mine, theirs = a_view(2), a_view(2)
    machines, *_ = choose(mine, 4, 2)
    theirs.join(mine.state())
    end(theirs, tasks_of(4, 2), machines)
    theirs.settle(0)
    assert theirs.digests()[0].tolist() == []


def test_views_may_know_shapes_in_another_order() -> None:
    mine, theirs = a_view(2, capacity=4000), WaitView()
    theirs.learn(np.full(2, 4000, np.int64), np.ones(2, np.uint8))
    for view in (theirs, mine):
        view.know_shape(5, np.array([3000], np.int64))
    for job, shape in enumerate((0, 5, 0)):
        mine.choose(tasks_of(job, 1), 1, shape, 100, 0, Random(job))
    theirs.join(mine.state())
    assert theirs.held().tolist() == mine.held().tolist()
    theirs.undo(tasks_of(1, 1))
    mine.undo(tasks_of(1, 1))
    assert theirs.held().tolist() == mine.held().tolist()
    assert mine.held().sum() == 2000


def test_what_runs_on_a_machine_that_is_not_known_yet_counts_once_it_is() -> None:
    mine, theirs = a_view(3), a_view(2)
    last = np.array([0, 0, 1], np.uint8)
    mine.choose(tasks_of(4, 1), 1, 0, 100, 0, Random(1), 1, last)
    theirs.join(mine.state())
    theirs.learn(np.full(3, 1000, np.int64), np.ones(3, np.uint8))
    assert theirs.work().tolist() == [0, 0, 0]
    assert theirs.differing(*mine.digests()).tolist() == [4]
    theirs.join(mine.state())
    assert theirs.work().tolist() == [0, 0, 100]
    end(theirs, tasks_of(4, 1), np.array([2], np.int32))
    theirs.settle(0)
    assert (theirs.work().tolist(), theirs.held().tolist()) == ([0, 0, 0], [[0], [0], [0]])


def test_a_job_has_as_many_tasks_as_the_most_that_were_told() -> None:
    view = a_view(2)
    machines, *_ = choose(view, 0, 5)
    view.expect(0, 2)
    end(view, tasks_of(0, 5)[:2], machines[:2])
    view.settle(0)
    assert view.digests()[0].tolist() == [0], "three are not over"
    end(view, tasks_of(0, 5)[2:], machines[2:])
    view.settle(0)
    assert (view.digests()[0].tolist(), view.work().tolist()) == ([], [0, 0])


def test_who_is_busy_is_not_free_earlier_because_of_something_shorter() -> None:
    view = a_view(1, cost=10)
    view.occupy(100)
    view.occupy(50)
    view.post_placed(0, 0, tasks_of(0, 1), np.array([2], np.uint8), np.zeros(1, np.int32), 70, 0, 0)
    for now, work in ((109, 0), (110, 70)):
        view.settle(now)
        assert view.work().tolist() == [work]


def test_reading_a_message_of_several_updates_takes_as_long_as_one() -> None:
    bench = Bench()
    view = a_view(MACHINES, SLOTS, cost=10)
    view.know_shape(bench.shape, np.ones(1, np.int64))
    bench.runtime.listen(0, view)
    for machine, begins in enumerate((True, False, True)):
        news = PlacementNews(
            bench.job(),
            np.array([2], np.uint8),
            ints(machine),
            9_000,
            bench.shape,
            1,
            0,
            begins=begins,
        )
        bench.runtime.gossip([0], 100, news)
    view.settle(110)
    assert (view.work()[:3] > 0).tolist() == [True, True, False]
    view.settle(120)
    assert view.work()[2] > 0
