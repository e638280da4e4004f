"""Names as they were at a moment: what a snapshot suggests, lists and counts after the cell has gone
on."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.cell.bitmaps import to_bitmap
from argosy.cell.cell import Cell
from argosy.cell.draft import shapes_alike
from argosy.cell.names import Names
from argosy.cell.search import Rule
from argosy.model.errors import ModelError
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
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

    def test_a_resource_that_several_changes_bring_comes_once(self) -> None:
        cell = cell_of("a")
        cell.commit(Transaction("s", wants=Wants(2.0, (1, 2), 9)))
        brought = [{"gpu": 1}, {"gpu": 2, "net": 3}, {"net": 4, "tape": 0}]
        change(
            cell,
            *(
                AddMachine(Machine(f"m{at}", Resources(1, 1, extras)))
                for at, extras in enumerate(brought)
            ),
            ResizeMachine(0, Resources(4, 4, {"net": 5})),
        )
        assert cell.dimensions == ("cpu", "memory", "gpu", "net")
        assert cell.capacity().tolist() == [[4, 4, 0, 5], [1, 1, 1, 0], [1, 1, 2, 3], [1, 1, 0, 4]]
        assert cell.wants() == {"s": Wants(2.0, (1, 2, 0, 0), 9)}
        # Who does not know the latest yet wants none of it.
        cell.commit(Transaction("t", wants=Wants(1.0, (3, 4, 5), 7)))
        assert cell.wants()["t"] == Wants(1.0, (3, 4, 5, 0), 7)

    def test_capacities_of_a_new_resource_have_a_bound_together_too(self) -> None:
        cell = cell_of("a")
        many = [
            AddMachine(Machine(f"g{at}", Resources(1, 1, {"gpu": 2**53}))) for at in range(2**9)
        ]
        one = AddMachine(Machine("one", Resources(1, 1, {"gpu": 1})))
        error = self.refusal(cell, *many, one)
        assert "add up to more than 2^62" in error.problem
        change(cell, *many)
        assert cell.capacity_total()["gpu"] == 2**62
        assert "add up to more than 2^62" in self.refusal(cell, one).problem

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


def claims(*rows: tuple[int, int, int]) -> Claims:
    """Rows of (task, machine, shape)."""
    tasks, machines, shapes = (list(column) for column in zip(*rows, strict=True))
    return Claims(
        np.array(tasks, np.int64),
        np.array(machines, np.int32),
        np.array(shapes, np.int32),
        np.zeros(len(tasks), np.uint32),
    )


class TestClaims:
    def test_tagged_containers_are_told_with_who_placed_them(self) -> None:
        cell = cell_of("a", "b", "c")
        web, bare = cell.shape(Resources(1, 1), ("web",)), cell.shape(Resources(1, 1))
        db = cell.shape(Resources(1, 1), ("db", "web"))
        cell.commit(Transaction("anna", claims((1, 0, web), (2, 1, bare), (3, 2, web))))
        cell.commit(Transaction("bert", claims((4, 0, db), (5, 1, web))))
        for who, mine in (("anna", [1]), ("bert", [4, 5]), ("nobody", [])):
            found = cell.tagged_on(np.array([0, 1], np.int32), who)
            tasks, machines, shapes, is_own = (column.tolist() for column in found)
            rows = sorted(zip(tasks, machines, shapes, is_own, strict=True))
            assert rows == [
                (1, 0, web, 1 in mine),
                (4, 0, db, 4 in mine),
                (5, 1, web, 5 in mine),
            ]
        # In the order in which the cell first heard of them.
        assert [cell.shape_tags(shape) for shape in (web, bare, db)] == [
            ("web",), (), ("web", "db"),
        ]  # fmt: skip

    def test_a_claim_is_assumed_until_it_is_settled(self) -> None:
        cell = cell_of("a")
        shape = cell.shape(Resources(1, 1))
        cell.commit(Transaction("s", claims((1, 0, shape), (2, 0, shape)), assume=True))
        cell.commit(Transaction("s", claims((3, 0, shape))))
        assert [cell.is_assumed(task) for task in (1, 2, 3, 4)] == [True, True, False, False]
        cell.confirm(np.array([1], np.int64))
        cell.forget(np.array([2], np.int64))
        assert not any(cell.is_assumed(task) for task in (1, 2, 3, 4))
        assert cell.tasks_on(0).tolist() == [1, 3]

    @pytest.mark.parametrize(("precedence", "fits"), [(32_767, True), (32_768, False)])
    def test_a_shape_has_a_precedence_within_bounds(self, precedence: int, fits: bool) -> None:
        cell = cell_of("a")
        for each in (precedence, -precedence - 1):
            for extras in ({}, {"gpu": 1}):
                request = Resources(1, 1, extras)
                if fits:
                    assert cell.shape(request, precedence=each) >= 0
                    continue
                with pytest.raises(ModelError, match="precedence must be from -32768 to 32767"):
                    cell.shape(request, precedence=each)

    def test_shapes_that_are_shared_cannot_be_written_to(self) -> None:
        shared = shapes_alike(3, 2)
        assert (shared.tolist(), shared.flags.writeable) == ([3, 3], False)
        assert shapes_alike(3, 2) is shared

    def test_what_each_scheduler_uses_is_told_by_resource(self) -> None:
        cell = cell_of("a", "b")
        shape = cell.shape(Resources(2, 1))
        cell.set_limits("idle", None, 3)
        cell.commit(Transaction("s", claims((1, 0, shape), (2, 1, shape))))
        change(cell, ResizeMachine(1, Resources(4, 4, {"gpu": 1})))
        assert {
            name: (used.resources, used.tasks, used.jobs) for name, used in cell.usage().items()
        } == {
            OPERATOR: ({"cpu": 0, "memory": 0, "gpu": 0}, 0, 0),
            "idle": ({"cpu": 0, "memory": 0, "gpu": 0}, 0, 0),
            "s": ({"cpu": 4, "memory": 2, "gpu": 0}, 2, 1),
        }
        assert cell.used_total() == {"cpu": 4, "memory": 2, "gpu": 0}
        assert (cell.scheduler_of(1), cell.scheduler_of(9)) == ("s", None)

    def test_the_operator_is_a_scheduler_too(self) -> None:
        cell = cell_of("a")
        cell.commit(Transaction(OPERATOR, claims((1, 0, cell.shape(Resources(1, 1))))))
        assert (cell.scheduler_of(1), cell.scheduler_of(2)) == (OPERATOR, None)
        assert (cell.machine_of(1), cell.machine_of(2)) == (0, None)

    def test_the_first_machine_may_be_the_runner_up(self) -> None:
        cell = Cell(("cpu", "memory"))
        sizes = (5, 4, 9)
        change(cell, *(AddMachine(Machine(f"m{at}", Resources(at, 1))) for at in sizes))
        shape = cell.shape(Resources(4, 1))
        for count in (1, 4):
            found = cell.find(shape, count, Rule.BEST, Random(1))
            assert (found.machines.tolist()[0], found.second) == (1, 0)
            assert found.second_score is not None
            assert found.explanation().second == 0
        alone = cell.find(cell.shape(Resources(6, 1)), 1, Rule.BEST, Random(1))
        assert (alone.machines.tolist(), alone.second, alone.second_score) == ([2], None, None)

    def test_answers_without_refusals_share_rows_that_nobody_can_write_to(self) -> None:
        cell = cell_of("a")
        shape = cell.shape(Resources(1, 1))
        outcomes = [
            cell.commit(Transaction("s", claims((task, 0, shape), (task + 1, 0, shape))))
            for task in (1, 3)
        ]
        for outcome in outcomes:
            rows = (outcome.accepted, outcome.whys, outcome.details, outcome.amounts)
            assert [column.tolist() for column in rows] == [
                [True, True], [0, 0], [-1, -1], [0, 0],
            ]  # fmt: skip
            shared = (*rows, outcome.evicted, outcome.evicted_from)
            assert not any(column.flags.writeable for column in shared)
            assert outcome.machines.tolist() == [0, 0]
        assert outcomes[0].details is outcomes[1].details
