"""Where tasks of a queue may go that prefer machines, attempt by attempt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.cell import Cell
from argosy.cell.bitmaps import to_mask
from argosy.engines.api import Context
from argosy.engines.shared.serial import PendingJob
from argosy.engines.yarn.engine import Yarn, YarnSettings
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Transaction

#: Of five machines, the first two are in a rack, and the next two in another; the last is in none.
RACKS = ("r0", "r0", "r1", "r1", "")


def cell_of(*data: int, racks: bool = True) -> Cell:
    """The input of tasks is on these machines."""
    cell = Cell(("cpu", "memory"))
    machines = [
        Machine(
            f"m{at}",
            Resources(4_000, 4),
            {"data": "x"} if at in data else {},
            {"rack": (rack,)} if racks and rack else {},
        )
        for at, rack in enumerate(RACKS)
    ]
    cell.commit(Transaction(OPERATOR, machines=tuple(map(AddMachine, machines))))
    return cell


def near(
    cell: Cell, attempts: int, delay: int, **fields: Any
) -> tuple[list[int] | None, list[list[int]]]:
    """The only machines in this attempt, and those to try first."""
    engine = Yarn(YarnSettings(locality_delay=delay), Context("s", (), Random(1)))
    group = TaskGroup(1, Resources(1_000, 1), **{"prefers": {"data": "x"}, **fields})
    work = PendingJob(Job("j", (group,)), 0, np.array([0]), attempts)
    only, first = engine.near(work, group, cell)
    shown = [np.flatnonzero(to_mask(each, 5)).tolist() for each in first]
    return None if only is None else np.flatnonzero(to_mask(only, 5)).tolist(), shown


@pytest.mark.parametrize(
    ("attempts", "only", "first"),
    [
        (1, [0], []),
        (2, [0], []),
        (3, [0, 1], [[0]]),
        (4, [0, 1], [[0]]),
        (5, None, [[0], [0, 1]]),
        (99, None, [[0], [0, 1]]),
    ],
)
def test_tasks_wait_for_their_machine_then_for_its_rack_and_then_no_longer(
    attempts: int, only: list[int] | None, first: list[list[int]]
) -> None:
    assert near(cell_of(0), attempts, 2) == (only, first)


def test_without_a_delay_what_is_preferred_is_only_tried_first() -> None:
    assert near(cell_of(0), 1, 0) == (None, [[0], [0, 1]])
    assert near(cell_of(0), 1, 1) == ([0], [])


def test_every_rack_with_some_of_the_input_counts() -> None:
    assert near(cell_of(1, 3, 4), 2, 1) == ([0, 1, 2, 3, 4], [[1, 3, 4]])
    assert near(cell_of(3), 2, 1) == ([2, 3], [[3]])
    assert near(cell_of(4), 2, 1) == ([4], [[4]])
    assert near(cell_of(0, racks=False), 2, 1) == ([0], [[0]])


def test_tasks_without_preferences_or_with_vain_ones_go_anywhere() -> None:
    assert near(cell_of(0), 1, 9, prefers={}) == (None, [])
    assert near(cell_of(), 1, 9) == (None, [])
    assert near(cell_of(0), 1, 9, prefers={"data": "y"}) == (None, [])
