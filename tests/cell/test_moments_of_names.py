"""Names as they were at a moment: what a snapshot suggests, lists and counts after the cell has gone
on."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.cell.bitmaps import to_bitmap
from argosy.cell.cell import Cell
from argosy.cell.names import Names
from argosy.model.errors import ModelError
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    Transaction,
    Wants,
)
from argosy.testing.builders import job


def change(cell: Cell, *changes: MachineChange) -> None:
    cell.commit(Transaction(OPERATOR, machines=changes))


def cell_of(*names: str) -> Cell:
    cell = Cell(("cpu", "memory"), {"rack": ["r0"]}, audited=True)
    change(cell, *(AddMachine(Machine(name, Resources(4, 4))) for name in names))
    return cell


class TestSnapshots:
    def test_a_snapshot_suggests_no_machine_that_came_later(self) -> None:
        cell = cell_of("node-a")
        old = cell.snapshot()
        change(cell, AddMachine(Machine("later", Resources(1, 1))))
        for view, hint in ((cell, "did you mean 'later'?"), (old, None)):
            with pytest.raises(ModelError) as caught:
                view.machine_number("laters")
            assert caught.value.hint == hint
        with pytest.raises(ModelError, match="no machine 1; expected 0 to 0"):
            old.machine_name(1)
        assert cell.machine_name(1) == "later"
        with pytest.raises(ModelError, match="no machine 'later'"):
            old.members("machine", "later")
        assert cell.members("machine", "later").tolist() == [0b10]

    def test_every_snapshot_keeps_its_own_moment(self) -> None:
        cell = cell_of("a")
        moments = [cell.snapshot()]
        for step in range(1, 4):
            cell.admit(step, job(f"j{step}").job)
            cell.commit(Transaction("s", wants=Wants(1.0, (step, 0), step)))
            change(cell, RelabelMachine(0, {"step": str(step)}, {"rack": (f"r{step}",)}))
            moments.append(cell.snapshot())
        for step, seen in enumerate(moments):
            assert list(seen.applications()) == list(range(1, step + 1))
            assert seen.applications_version == seen.labels_version == step
            assert {name: wants.until for name, wants in seen.wants().items()} == (
                {"s": step} if step else {}
            )
            assert seen.attributes == tuple(("step", str(at)) for at in range(1, step + 1))
            assert seen.sets_in("rack") == tuple(f"r{at}" for at in range(step + 1))
            assert seen.sets_of(0, "rack") == ((f"r{step}",) if step else ())

    def test_marks_are_labels_and_a_job_that_was_never_there_is_not_retired(self) -> None:
        cell = cell_of("a", "b")
        cell.retire(7)
        assert cell.applications_version == 0
        old = cell.snapshot()
        cell.mark("gpu", to_bitmap(np.array([False, True])))
        assert (old.labels_version, cell.labels_version) == (0, 1)
        assert cell.where({"gpu": "true"}).tolist() == [0b10]
        assert old.where({"gpu": "true"}).tolist() == [0]
        cell.mark("gpu", to_bitmap(np.array([True, True])), is_given=False)
        assert (cell.labels_version, cell.where({"gpu": "true"}).tolist()) == (2, [0])


class TestChanges:
    def refusal(self, cell: Cell, *changes: MachineChange) -> ModelError:
        before = cell.machines, cell.dimensions, cell.groups, cell.versions().tolist()
        with pytest.raises(ModelError) as caught:
            change(cell, *changes)
        assert (cell.machines, cell.dimensions, cell.groups, cell.versions().tolist()) == before
        return caught.value

    def test_names_are_unique_among_machines_there_and_to_come(self) -> None:
        cell = cell_of("a")
        new = [AddMachine(Machine(name, Resources(1, 1, {"gpu": 1}))) for name in ("b", "b", "a")]
        for changes, name in (((new[0], new[1]), "b"), ((new[0], new[2]), "a")):
            error = self.refusal(cell, *changes)
            assert (
                error.problem == (f"a transaction of operator: there is a machine {name!r} already")
                or error.problem == f"there is a machine {name!r} already"
            )
        change(cell, RemoveMachine(0), new[0])
        # One that was removed still has its name.
        self.refusal(cell, new[2])

    def test_changes_are_of_machines_there_are_by_then(self) -> None:
        cell = cell_of("a")
        late = AddMachine(Machine("b", Resources(1, 1)))
        change(cell, late, ResizeMachine(1, Resources(2, 2)), RelabelMachine(1, {"x": "y"}))
        assert cell.capacity().tolist() == [[4, 4], [2, 2]]
        assert cell.where({"x": "y"}).tolist() == [0b10]
        another = AddMachine(Machine("c", Resources(1, 1)))
        for wrong in (
            ResizeMachine(3, Resources(1, 1)),
            RelabelMachine(3, {}),
            RemoveMachine(3),
            RemoveMachine(-1),
            RelabelMachine(-1, {}),
        ):
            # Nothing is made of those before it either.
            assert "there is no machine" in self.refusal(cell, another, wrong).problem
        empty = Cell(("cpu", "memory"))
        assert self.refusal(empty, RemoveMachine(0)).expected == "none yet: the cell is empty"

    def test_new_sets_are_numbered_once_whoever_names_them(self) -> None:
        cell = cell_of("a")
        joins = ({"rack": ("r1", "r0"), "zone": ("z",)}, {"zone": ("z", "y"), "rack": ("r1",)})
        change(
            cell,
            AddMachine(Machine("b", Resources(1, 1), joins=joins[0])),
            RelabelMachine(0, {}, joins[1]),
            AddMachine(Machine("c", Resources(1, 1), joins={"hall": ()})),
        )
        assert (cell.groups, cell.sets_in("rack")) == (("rack", "zone", "hall"), ("r0", "r1"))
        assert (cell.sets_in("zone"), cell.sets_in("hall")) == (("z", "y"), ())
        assert [cell.members("zone", name).tolist() for name in "zy"] == [[0b11], [0b01]]
        assert [cell.members("rack", name).tolist() for name in ("r0", "r1")] == [[0b10], [0b11]]
        # A set that is known stays what it was, with whoever is in it.
        change(cell, AddMachine(Machine("d", Resources(1, 1), joins={"rack": ("r2", "r0")})))
        assert cell.sets_in("rack") == ("r0", "r1", "r2")
        assert cell.members("rack", "r0").tolist() == [0b1010]


def test_names_are_copied_before_the_first_change_after_they_were_shared() -> None:
    names = Names(("cpu", "memory"))
    names.change().labels_version = 3
    seen = names.share()
    assert seen is names.known
    first = names.change()
    assert first is not seen
    assert names.change() is first, "once is enough"
    first.labels_version = 4
    first.wants["s"] = Wants(1.0, (0, 0), 1)
    assert (seen.labels_version, seen.wants) == (3, {})
    # Resources that no machine has are numbered apart, and stay so once one has them.
    asked = Resources(1, 2, {"gpu": 3, "net": 0, "disk": 4})
    assert names.amounts(asked) == ((1, 2), [(0, 3), (1, 4)])
    assert names.add_dimensions(["disk", "tape"]) == [1, 2]
    assert names.known.dimensions == ("cpu", "memory", "disk", "tape")
    assert names.known.ruled_out == ("cpu", "memory", "disk", "tape", "filtered", "down")
    assert seen.dimensions == ("cpu", "memory")
    assert names.amounts(asked) == ((1, 2, 4, 0), [(0, 3)])
    assert [names.resource(number) for number in range(3)] == ["gpu", "disk", "tape"]
