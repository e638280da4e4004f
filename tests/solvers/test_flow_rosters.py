"""The roster of a flow scheduler against its slow twin, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from roster_bench import RosterAndTwin

from argosy.model.tasks import first_tasks
from argosy.solvers.flow import FlowNetwork, Roster


@pytest.mark.parametrize("seed", range(100))
def test_the_roster_agrees_with_its_slow_twin(seed: int) -> None:
    both = RosterAndTwin(seed)
    for _ in range(25):
        both.step()
        both.compare()
    both.sync()
    both.compare()


def longs(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def classes_of(roster: Roster, rows: NDArray[np.int64], **changed: NDArray[Any]) -> list[int]:
    """One group of these tasks of job 0, but for what is changed."""
    columns: dict[str, NDArray[Any]] = {
        "jobs": longs(0),
        "pools": longs(0),
        "owners": longs(0),
        "shapes": longs(0),
        "waiting": longs(9),
        "sizes": longs(len(rows)),
        "each": np.array([False]),
        "rows": rows,
        "pool_costs": np.zeros(len(rows), np.int64),
        **changed,
    }
    made: list[int] = roster.add_classes(*columns.values(), 0, 0).tolist()
    return made


class Small:
    """Two machines, a pool, an owner and a job of three tasks, all of which wait."""

    def __init__(self) -> None:
        self.network = FlowNetwork()
        self.sink, *self.machines = self.network.add_vertices([0] * 3).tolist()
        self.roster = self.network.roster(2, reschedules=True, migration=1)
        self.roster.add_machines(np.array(self.machines, np.int32))
        self.roster.open_pool(0, self.network.add_vertex(), longs(1, 2), False)
        self.roster.add_owner()
        self.roster.add_job(0, 3, self.sink, 0)
        self.rows = self.roster.enter(first_tasks(0, 3), 0)


REFUSED: list[tuple[str, Callable[[Small], object]]] = [
    ("no job's number", lambda s: s.roster.add_job(-1, 1, s.sink, 0)),
    ("no job's number", lambda s: s.roster.add_job(2**31, 1, s.sink, 0)),
    ("a job that is known", lambda s: s.roster.add_job(0, 1, s.sink, 0)),
    ("a job without tasks", lambda s: s.roster.add_job(1, 0, s.sink, 0)),
    ("no such vertex", lambda s: s.roster.add_job(1, 1, 99, 0)),
    ("a job that is not known", lambda s: s.roster.grow_job(1, 4)),
    ("no number of tasks", lambda s: s.roster.grow_job(0, 0)),
    ("no number of tasks", lambda s: s.roster.grow_job(0, 2**32 + 1)),
    ("no such job", lambda s: classes_of(s.roster, s.rows, jobs=longs(1))),
    ("no such pool", lambda s: classes_of(s.roster, s.rows, pools=longs(1))),
    ("no such pool", lambda s: classes_of(s.roster, s.rows, pools=longs(-1))),
    ("no such owner", lambda s: classes_of(s.roster, s.rows, owners=longs(1))),
    ("no such owner", lambda s: classes_of(s.roster, s.rows, owners=longs(-1))),
    ("a group without tasks", lambda s: classes_of(s.roster, s.rows[:0], sizes=longs(0))),
    ("differ in length", lambda s: classes_of(s.roster, s.rows, sizes=longs(2))),
    ("differ in length", lambda s: classes_of(s.roster, s.rows, sizes=longs(4))),
    ("differ in length", lambda s: classes_of(s.roster, s.rows, shapes=longs(0, 0))),
    ("differ in length", lambda s: classes_of(s.roster, s.rows, pool_costs=longs(0, 0))),
    ("no such row", lambda s: classes_of(s.roster, s.rows + 1)),
    ("beyond 2\\^39", lambda s: classes_of(s.roster, s.rows, pool_costs=longs(0, 0, 2**39 + 1))),
    ("beyond 2\\^39", lambda s: classes_of(s.roster, s.rows, pool_costs=longs(0, -(2**39) - 1, 0))),
    ("no pool's number", lambda s: s.roster.open_pool(-1, s.sink, longs(1, 2), False)),
    ("no pool's number", lambda s: s.roster.open_pool(2**24, s.sink, longs(1, 2), False)),
    ("no such vertex", lambda s: s.roster.open_pool(1, 99, longs(1, 2), False)),
    ("not an amount for each", lambda s: s.roster.open_pool(1, s.sink, longs(1), False)),
    ("no such pool", lambda s: s.roster.close_pool(1)),
    (
        "fewer dimensions than",
        lambda s: s.roster.widen(np.zeros((1, 1), np.int64), np.ones(1, bool)),
    ),
    ("not a row for each", lambda s: s.roster.widen(np.zeros((0, 3), np.int64), np.ones(1, bool))),
    ("not a row for each", lambda s: s.roster.widen(np.zeros((1, 3), np.int64), np.ones(0, bool))),
    ("no such vertex", lambda s: s.roster.add_machines(np.array([99], np.int32))),
    ("no such machine", lambda s: s.roster.start(s.rows[:1], longs(2), longs(0), 0)),
    ("no such machine", lambda s: s.roster.start(s.rows[:1], longs(-1), longs(0), 0)),
    ("no such row", lambda s: s.roster.start(longs(3), longs(0), longs(0), 0)),
    ("no such row", lambda s: s.roster.stop(longs(-1), 0)),
    ("no such row", lambda s: s.roster.waiting(longs(3))),
    ("no such row", lambda s: s.roster.named(longs(3))),
    ("differ in length", lambda s: s.roster.start(s.rows, longs(0), longs(0), 0)),
    ("no such pool", lambda s: s.roster.running(longs(1))),
    ("no such job", lambda s: s.roster.job(1)),
]


@pytest.mark.parametrize(("text", "mistake"), REFUSED)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    text: str, mistake: Callable[[Small], object]
) -> None:
    small = Small()
    with pytest.raises(ValueError, match=text):
        mistake(small)
    assert classes_of(small.roster, small.rows) == [0, 0, 0]
    assert small.roster.job(0)[3:] == (3, 3)
    assert small.roster.demands().tolist() == [[3, 6]]
    with pytest.raises(ValueError, match="a task that is there already"):
        classes_of(small.roster, small.rows)
    with pytest.raises(ValueError, match="a pool that has tasks"):
        small.roster.close_pool(0)


def test_the_largest_numbers_that_make_sense_are_taken() -> None:
    small = Small()
    roster = small.roster
    roster.add_job(2**31 - 1, 1, small.sink, 0)
    roster.open_pool(1, small.sink, longs(0, 0), False)
    costs = longs(2**39, -(2**39), 0)
    each = np.array([True])
    assert classes_of(roster, small.rows, pool_costs=costs, each=each) == [0, 1, 2]
    assert roster.classes("pool_cost").tolist() == (costs + 1).tolist()
    roster.start(small.rows[:1], longs(1), longs(0), 0)
    assert roster.own_tasks().tolist() == [0, 1]


def aggregators(small: Small, froms: list[int], tos: list[int]) -> None:
    vertices = small.network.add_vertices([0, 0])
    arcs = small.network.add_arcs([small.sink] * len(froms), vertices[0], 1, 0)
    small.roster.add_aggregators(0, vertices, longs(*froms), longs(*tos), arcs)


@pytest.mark.parametrize(("start", "end"), [(-2, 0), (0, 0), (1, 0), (0, 2), (-1, 2)])
def test_links_lead_to_aggregators_of_higher_numbers(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="leads to no higher number"):
        aggregators(Small(), [-1, start], [0, end])
    aggregators(Small(), [-1, -1, 0], [0, 1, 1])


def test_what_has_ended_leaves_its_rows_to_others_once_it_is_most_of_them() -> None:
    small = Small()
    roster, many = small.roster, 70_000
    roster.add_job(1, many, small.sink, 0)
    roster.enter(first_tasks(1, 5), 0)
    roster.add_job(2, 4, small.sink, 0)
    kept = roster.enter(first_tasks(2, 4), 0)
    assert kept.tolist() == list(range(3 + many, 7 + many))
    [alone] = classes_of(roster, roster.rows(first_tasks(1, 1)), jobs=longs(1))
    others = classes_of(roster, kept, jobs=longs(2))[0]
    roster.start(kept[2:3], longs(1), longs(0), 0)
    small.roster.grow_job(2, 6)
    assert roster.rows(first_tasks(2, 6)).tolist() == list(range(7 + many, 13 + many))
    # Its other tasks never came.
    assert roster.drop(first_tasks(1, 1)) == [1]
    rows = roster.rows(first_tasks(2, 6)).tolist()
    assert rows == list(range(3, 9))
    assert roster.rows(first_tasks(0, 3)).tolist() == [0, 1, 2]
    assert roster.rows(first_tasks(1, 1)).tolist() == [-1]
    assert roster.tasks("state").tolist() == [0] * 3 + [1, 1, 2, 1, 0, 0]
    assert roster.tasks("task_class")[3:7].tolist() == [others] * 4
    assert roster.classes("first")[others] == 3
    classes, begins, waiting = roster.waiting(longs())
    assert (classes, begins, waiting.tolist()) == ([others], [0], [3, 4, 6])
    assert roster.finish(first_tasks(2, 6)) == []
    assert roster.drop(first_tasks(2, 6)) == [2]
    assert roster.drop(first_tasks(0, 3)) == []
    assert alone == 0


def test_jobs_that_are_over_together_are_told_in_order() -> None:
    small = Small()
    roster = small.roster
    tasks = [first_tasks(number, 1) for number in (0, 5, 3)]
    for number in (5, 3):
        roster.add_job(number, 1, small.sink, 0)
        rows = roster.enter(first_tasks(number, 1), 0)
        classes_of(roster, rows, jobs=longs(number))
    classes_of(roster, small.rows[:1])
    assert roster.drop(np.concatenate(tasks[::-1])) == [0, 3, 5]


def test_a_job_that_waits_costs_more_by_whole_seconds_up_to_the_most_that_an_arc_may_cost() -> None:
    small = Small()
    roster = small.roster
    classes_of(roster, small.rows)
    costs = []
    for now, price in [(999_999, 7), (1_000_000, 7), (2_999_999, 7), (3_000_000, 2**39), (0, 5)]:
        roster.age(now, price)
        cost = roster.job(0)[2]
        assert small.network.costs([roster.job(0)[1]]).tolist() == [cost]
        costs.append(cost)
    assert costs == [0, 7, 14, 2**40, 0]
