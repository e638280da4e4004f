"""Drafts that send tasks round the machines: each goes to the one that was visited longest ago."""

from __future__ import annotations

import numpy as np
from test_draft import cell_of, only, tasks

from argosy.cell.draft import Draft
from argosy.cell.search import Rule
from argosy.model.random import Random
from argosy.model.resources import Resources

SMALL = Resources(1, 1)


def visits(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


def test_tasks_go_round_from_the_machine_that_is_next_whatever_the_rule() -> None:
    cell, keys = cell_of(9, 4, 9), visits(1, 2, 0)
    draft = Draft(cell.view(), visits=keys)
    found, left = draft.place(tasks(1, 2, 3, 4), cell.shape(SMALL), Rule.BEST, Random(1))
    assert (found.machines.tolist(), left.tolist()) == ([2, 0, 1, 2], [])
    assert keys.tolist() == [4, 5, 6]
    # The next tasks of the same draft go on from there, and so does another draft.
    found, _ = draft.place(tasks(5), cell.shape(SMALL), Rule.BEST, Random(1))
    assert found.machines.tolist() == [0]
    found, _ = Draft(cell.view(), visits=keys).place(
        tasks(6, 7), cell.shape(SMALL), Rule.WORST, Random(1)
    )
    assert found.machines.tolist() == [1, 2]
    assert keys.tolist() == [7, 8, 9]


def test_a_full_machine_is_passed_over_and_stays_next() -> None:
    cell, keys = cell_of(1, 9), visits(0, 1)
    draft = Draft(cell.view(), visits=keys)
    found, left = draft.place(tasks(1, 2, 3, 4), cell.shape(SMALL), Rule.FIRST, Random(1))
    assert (found.machines.tolist(), left.tolist()) == ([0, 1, 1, 1], [])
    assert keys.tolist() == [2, 7]
    found, _ = draft.place(tasks(5), cell.shape(SMALL), Rule.FIRST, Random(1))
    assert found.machines.tolist() == [1]


def test_tasks_apart_visit_each_machine_once_though_one_is_far_behind() -> None:
    cell, keys = cell_of(9, 9, 9), visits(0, 100, 200)
    draft = Draft(cell.view(), visits=keys)
    found, left = draft.place(
        tasks(1, 2, 3, 4), cell.shape(SMALL), Rule.FIRST, Random(1), apart=True
    )
    assert (found.machines.tolist(), left.tolist()) == ([0, 1, 2], [4])
    assert keys.tolist() == [3, 103, 203]
    together = Draft(cell.view(), visits=visits(0, 100, 200))
    found, _ = together.place(tasks(1, 2, 3), cell.shape(SMALL), Rule.FIRST, Random(1))
    assert found.machines.tolist() == [0, 0, 0]


def test_only_machines_that_are_allowed_are_visited_and_corrections_count() -> None:
    cell, keys = cell_of(4, 4, 4), visits(0, 1, 2)
    taken = np.array([[0, 0], [-3, 0], [0, 0]], np.int64)
    draft = Draft(cell.view(), taken, keys)
    found, left = draft.place(
        tasks(1, 2, 3, 4, 5, 6),
        cell.shape(SMALL),
        Rule.FIRST,
        Random(1),
        within=only(cell, 1, 2),
    )
    assert (sorted(found.machines.tolist()), left.tolist()) == ([1, 2, 2, 2, 2], [6])
    assert keys.tolist() == [0, 4, 14]
