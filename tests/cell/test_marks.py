"""Marks: attributes that many machines get or lose at once."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.cell import Cell
from argosy.cell.bitmaps import to_bitmap, to_mask
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, RelabelMachine, Transaction

MACHINES = 130


@pytest.fixture
def cell() -> Cell:
    cell = Cell(("cpu", "memory"), {"zone": ["odd", "even"]})
    machines = [
        Machine(
            f"m{at}", Resources(1000, 1), {"disk": "ssd"}, {"zone": ("odd" if at % 2 else "even",)}
        )
        for at in range(MACHINES)
    ]
    cell.commit(Transaction(OPERATOR, machines=tuple(map(AddMachine, machines))))
    return cell


def marked(cell: Cell, **more: str) -> list[int]:
    mask = to_mask(cell.where({"fits": "true", **more}), MACHINES)
    return np.flatnonzero(mask).tolist()


def test_a_mark_is_an_attribute_of_exactly_the_machines_that_got_it(cell: Cell) -> None:
    cell.mark("fits", cell.members("zone", "odd"))
    assert marked(cell) == list(range(1, MACHINES, 2))
    assert marked(cell, disk="ssd") == list(range(1, MACHINES, 2))


def test_marks_add_up_and_are_taken_from_single_machines(cell: Cell) -> None:
    cell.mark("fits", cell.members("machine", "m2"))
    cell.mark("fits", cell.members("machine", "m129"))
    cell.mark("fits", cell.members("machine", "m2"), is_given=False)
    assert marked(cell) == [129]


def test_a_mark_stays_when_a_machine_is_relabelled(cell: Cell) -> None:
    cell.mark("fits", cell.members("machine", "m5"))
    cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(5, {}, {"zone": ("odd",)}),)))
    assert marked(cell) == [5]
    assert marked(cell, disk="ssd") == []


def test_a_snapshot_keeps_the_marks_it_was_taken_with(cell: Cell) -> None:
    cell.mark("fits", cell.members("machine", "m5"))
    snapshot = cell.snapshot()
    labels = snapshot.labels_version
    cell.mark("fits", cell.members("machine", "m6"))
    assert (snapshot.labels_version, cell.labels_version) == (labels, labels + 1)
    assert np.flatnonzero(to_mask(snapshot.where({"fits": "true"}), MACHINES)).tolist() == [5]
    assert marked(cell) == [5, 6]


def test_marking_changes_what_is_derived_from_labels_but_no_version(cell: Cell) -> None:
    labels, versions = cell.labels_version, cell.versions(np.array([5], np.int32)).tolist()
    cell.mark("fits", cell.members("machine", "m5"))
    assert cell.labels_version == labels + 1
    assert cell.versions(np.array([5], np.int32)).tolist() == versions


def test_a_machine_that_joins_later_has_no_mark(cell: Cell) -> None:
    cell.mark("fits", to_bitmap(np.ones(MACHINES, np.bool_)))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(Machine("late", Resources(1000, 1))),)))
    mask = to_mask(cell.where({"fits": "true"}), MACHINES + 1)
    assert mask.tolist() == [True] * MACHINES + [False]


def test_a_mark_beyond_the_last_machine_is_an_error(cell: Cell) -> None:
    with pytest.raises(ValueError, match="beyond the last machine"):
        cell.mark("fits", to_bitmap(np.ones(MACHINES + 64, np.bool_)))
