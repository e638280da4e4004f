"""Limits that are lifted for a while, drafts whose tasks keep apart, and arguments that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.cell import changes
from argosy.cell.bitmaps import to_bitmap, to_mask
from argosy.cell.cell import Cell
from argosy.cell.draft import Draft, claims_of, room_without, shapes_alike
from argosy.cell.search import Rule
from argosy.model.errors import ModelError
from argosy.model.explanations import Why
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    MachineChange,
    RelabelMachine,
    Transaction,
)


def cell_of(*sizes: int, audited: bool = True) -> Cell:
    """Machines with this much cpu, odd ones fast."""
    cell = Cell(("cpu", "memory"), audited=audited)
    machines = [
        AddMachine(Machine(f"m{n}", Resources(size, 100), {"fast": "true"} if n % 2 else {}))
        for n, size in enumerate(sizes)
    ]
    cell.commit(Transaction(OPERATOR, machines=tuple(machines)))
    return cell


def tasks(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


def claim(
    cell: Cell, scheduler: str, *numbers: int, cpu: int = 1, precedence: int = 0
) -> list[Why]:
    """Claims the first machine with room for these tasks; why some were refused."""
    shape = cell.shape(Resources(cpu, 1), precedence=precedence)
    found = cell.find(shape, len(numbers), Rule.FIRST, Random(1))
    claims = claims_of(tasks(*numbers), shape, found)
    return [each.why for each in cell.commit(Transaction(scheduler, claims)).refusals(claims)]


class TestUnlimited:
    def test_limits_do_not_apply_within_the_block_and_hold_again_after_it(self) -> None:
        cell = cell_of(9)
        cell.set_limits("s", Resources(2, 0), 1, 3)
        assert claim(cell, "s", 1, cpu=3) == [Why.RESOURCE_LIMIT]
        with cell.unlimited("s"):
            assert cell.highest_precedence("s") == 32_767
            assert claim(cell, "s", 1, cpu=3) == []
            assert claim(cell, "s", 2**24 + 1, 2**25, precedence=9) == []
        assert cell.highest_precedence("s") == 3
        assert claim(cell, "s", 2) == [Why.RESOURCE_LIMIT]
        assert claim(cell, "other", 2) == []

    def test_limits_hold_again_after_a_failure(self) -> None:
        cell = cell_of(9)
        cell.set_limits("s", None, 0, -4)
        with pytest.raises(ZeroDivisionError), cell.unlimited("s"):
            raise ZeroDivisionError
        assert cell.highest_precedence("s") == -4
        assert claim(cell, "s", 1, precedence=-4) == [Why.JOB_LIMIT]

    def test_a_scheduler_without_limits_has_none_before_and_after(self) -> None:
        cell = cell_of(9)
        cell.set_limits("s", None, 0)
        with cell.unlimited("other"):
            assert claim(cell, "other", 1) == []
            assert claim(cell, "s", 2) == [Why.JOB_LIMIT]
        assert claim(cell, "other", 3) == []


class TestApart:
    """Tasks of one draft that each get a machine of their own."""

    def place(self, draft: Draft, cell: Cell, *numbers: int, **terms: Any) -> list[int]:
        """The tasks without a machine."""
        shape = cell.shape(Resources(1, 1))
        _, left = draft.place(tasks(*numbers), shape, Rule.FIRST, Random(1), apart=True, **terms)
        return left.tolist()

    def test_later_tasks_stay_away_from_machines_of_earlier_ones(self) -> None:
        cell = cell_of(9, 9, 9, 9)
        draft = Draft(cell.view())
        assert self.place(draft, cell, 1, 2) == []
        assert self.place(draft, cell, 3) == []
        assert self.place(draft, cell, 4, 5) == [5]
        assert sorted(draft.claims().machines.tolist()) == [0, 1, 2, 3]
        assert draft.unplaced().tolist() == [5]

    def test_they_stay_within_what_is_allowed_and_prefer_what_is_left_of_it(self) -> None:
        cell = cell_of(9, 9, 9, 9, 9)
        draft = Draft(cell.view())
        some = to_bitmap(np.array([True, True, False, True, False]))
        assert self.place(draft, cell, 1, within=some, requires={"fast": "true"}) == []
        assert draft.claims().machines.tolist() == [1]
        near = [(to_bitmap(np.array([False, True, False, True, True])), 2)]
        assert self.place(draft, cell, 2, 3, 4, within=some, prefer=near) == [4]
        assert draft.claims().machines.tolist() == [1, 3, 0]

    def test_without_it_a_machine_takes_as_many_as_fit(self) -> None:
        cell = cell_of(2, 9)
        draft = Draft(cell.view())
        shape = cell.shape(Resources(1, 1))
        draft.place(tasks(1, 2, 3), shape, Rule.BEST, Random(1))
        assert draft.claims().machines.tolist() == [0, 0, 1]
        # What is apart is so from all of the draft.
        assert self.place(draft, cell, 4) == [4]


def test_machines_are_visited_in_turn_one_task_at_a_time() -> None:
    cell = cell_of(2, 9, 9)
    visits = np.array([2, 0, 1])
    draft = Draft(cell.view(), visits=visits)
    shape = cell.shape(Resources(1, 1))
    draft.place(tasks(1, 2, 3, 4), shape, Rule.BEST, Random(1))
    assert draft.claims().machines.tolist() == [1, 2, 0, 1]
    # Each visit puts a machine behind all others, for this draft and the next.
    assert visits.tolist() == [5, 6, 4]
    draft.place(tasks(5), shape, Rule.BEST, Random(1))
    assert draft.claims().machines.tolist()[4:] == [2 if visits[2] == 7 else 0]


def test_what_claims_would_take_is_missing_from_the_room() -> None:
    cell = cell_of(9, 9)
    small, large = cell.shape(Resources(1, 2)), cell.shape(Resources(4, 8))
    claims = Claims(
        tasks(1, 2, 3, 4),
        np.array([1, 0, 1, 1], np.int32),
        np.array([small, large, large, small], np.int32),
        np.zeros(4, np.uint32),
    )
    assert room_without(claims, cell.view()).tolist() == [[-4, -8], [-6, -12]]
    assert shapes_alike(large, 3).tolist() == [large] * 3
    assert shapes_alike(large, 3).dtype == np.int32
    draft = Draft(cell.view(), room_without(claims, cell.view()))
    draft.place(tasks(5, 6, 7), large, Rule.FIRST, Random(1))
    assert draft.claims().machines.tolist() == [0]
    assert draft.unplaced().tolist() == [6, 7]


def rows(cell: Cell, count: int = 1) -> dict[str, Any]:
    return {
        "tasks": np.arange(1, count + 1),
        "machines": np.zeros(count, np.int32),
        "shapes": np.full(count, cell.shape(Resources(1, 1)), np.int32),
        "versions": cell.versions(np.zeros(count, np.int32)),
    }


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        ("tasks", "an array of int64"),
        ("machines", "an array of int32"),
        ("shapes", "an array of int32"),
        ("versions", "an array of uint32"),
        ("gangs", "an array of int32"),
        ("alternatives", "a table of int32, row by row"),
    ],
)
def test_each_column_of_claims_is_named_with_its_type(column: str, wanted: str) -> None:
    cell = cell_of(9)
    claims = Claims(**{**rows(cell), column: np.zeros((1, 1), np.float32)})
    with pytest.raises(ModelError) as caught:
        cell.commit(Transaction("s", claims))
    assert (caught.value.field, caught.value.problem, caught.value.expected) == (
        "a transaction of s", f"claims.{column} holds float32", wanted,
    )  # fmt: skip
    assert cell.claims() == 0


@pytest.mark.parametrize("column", ["confirms", "forgets", "releases"])
def test_each_list_of_tasks_in_a_transaction_is_named(column: str) -> None:
    cell = cell_of(9)
    for given, problem in (
        (np.zeros(1, np.int32), f"{column} holds int32"),
        (np.zeros((1, 1), np.int64), f"{column} has 2 axes"),
    ):
        with pytest.raises(ModelError) as caught:
            cell.commit(Transaction("s", Claims(**rows(cell)), **{column: given}))
        assert (caught.value.problem, caught.value.expected) == (problem, "an array of int64")
    with pytest.raises(ModelError, match="tasks holds int32; expected an array of int64"):
        cell.end(np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("argument", "given", "told"),
    [
        ("within", np.zeros(1, np.int64), "within holds int64; expected an array of uint64"),
        ("keys", np.zeros(1, np.int32), "keys holds int32; expected an array of int64"),
        ("step", np.zeros(1), "step holds float64; expected an array of int64"),
        (
            "adjust",
            np.zeros(2, np.int64),
            "adjust has 1 axes; expected a table of int64, row by row",
        ),
        ("adjust", np.zeros((1, 2)), "adjust holds float64; expected a table of int64, row by row"),
    ],
)
def test_each_array_that_a_search_takes_is_named(argument: str, given: Any, told: str) -> None:
    cell = cell_of(9)
    with pytest.raises(ModelError) as caught:
        cell.find(cell.shape(Resources(1, 1)), 1, Rule.FIRST, Random(1), **{argument: given})
    assert str(caught.value) == told


@pytest.mark.parametrize("ask", ["free", "capacity", "versions", "sequences"])
def test_each_list_of_machines_is_named(ask: str) -> None:
    cell = cell_of(9)
    with pytest.raises(ModelError, match="machines holds int64; expected an array of int32"):
        getattr(cell.view(), ask)(np.zeros(1, np.int64))


@pytest.mark.parametrize("is_audited", [True, False])
def test_only_an_audited_cell_looks_for_discrepancies_after_each_answer(is_audited: bool) -> None:
    cell = cell_of(9, audited=is_audited)
    found: list[int] = []
    cell.require_sound = lambda: found.append(1)  # type: ignore[method-assign]
    claims = Claims(**rows(cell))
    accepted = cell.accepted(claims)
    assert accepted.accepted.tolist() == [True]
    assert accepted.machines.tolist() == [0]
    assert cell.commit(Transaction("s", claims)).all_accepted
    assert len(found) == 2 * is_audited


def test_outcomes_that_are_shared_cannot_be_changed() -> None:
    cell = cell_of(9)
    outcome = cell.commit(Transaction("s", Claims(**rows(cell))))
    for column in (
        outcome.accepted, outcome.whys, outcome.details, outcome.amounts,
        outcome.evicted, outcome.evicted_from,
    ):  # fmt: skip
        assert not column.flags.writeable
    assert (outcome.whys.tolist(), outcome.details.tolist(), outcome.amounts.tolist()) == (
        [0], [-1], [0],
    )  # fmt: skip


def test_shapes_differ_in_each_of_their_parts() -> None:
    cell = cell_of(9)
    asked: list[tuple[Resources, tuple[str, ...], int]] = [
        (Resources(1, 1), (), 0),
        (Resources(2, 1), (), 0),
        (Resources(1, 2), (), 0),
        (Resources(1, 1), ("a",), 0),
        (Resources(1, 1), ("a", "b"), 0),
        (Resources(1, 1), (), 1),
        (Resources(1, 1), ("a",), 1),
        (Resources(1, 1, {"gpu": 1}), (), 0),
        (Resources(1, 1, {"gpu": 2}), (), 0),
        (Resources(1, 1, {"tpu": 1}), (), 0),
    ]
    shapes = [cell.shape(*each) for each in asked]
    assert len(set(shapes)) == len(asked)
    assert [cell.shape(*each) for each in asked] == shapes
    assert [cell.shape_request(shape) for shape in shapes[:3]] == [(1, 1), (2, 1), (1, 2)]
    assert [cell.shape_tags(shape) for shape in shapes[3:6]] == [("a",), ("a", "b"), ()]
    assert [cell.unknown_resource(shape) for shape in shapes[6:]] == [None, "gpu", "gpu", "tpu"]


def test_a_label_version_counts_every_change() -> None:
    cell = cell_of(9, 9)
    seen = [cell.labels_version]
    for changed in (
        RelabelMachine(0, {"a": "1"}, {}),
        RelabelMachine(0, {"a": "2"}, {}),
        RelabelMachine(0, {"a": "2"}, {}),
        RelabelMachine(1, {}, {"rack": ("r",)}),
    ):
        cell.commit(Transaction(OPERATOR, machines=(changed,)))
        seen.append(cell.labels_version)
    cell.mark("fast", to_bitmap(np.array([True, False])))
    seen.append(cell.labels_version)
    assert np.diff(seen).tolist() == [1, 1, 0, 1, 1]
    assert to_mask(cell.where({"fast": "true"}), 2).tolist() == [True, False]
    cell.mark("fast", to_bitmap(np.array([True, True])), is_given=False)
    assert not cell.where({"fast": "true"}).any()


def refused(cell: Cell, *made: MachineChange) -> ModelError:
    with pytest.raises(ModelError) as caught:
        cell.commit(Transaction(OPERATOR, machines=made))
    return caught.value


def test_a_cell_has_only_so_many_node_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_MOST_SETS", 3)
    cell = cell_of(9)

    def joining(name: str, *sets: str) -> AddMachine:
        return AddMachine(Machine(name, Resources(1, 1), joins={"rack": sets}))

    assert str(refused(cell, joining("a", "r0", "r1"), joining("b", "r2", "r3"))) == (
        "machine b: more than 2^24 node sets"
    )
    cell.commit(
        Transaction(OPERATOR, machines=(joining("a", "r0", "r1"), joining("b", "r1", "r2")))
    )
    assert cell.sets_in("rack") == ("r0", "r1", "r2")
    assert "more than 2^24" in str(refused(cell, joining("c", "r3")))
    cell.commit(Transaction(OPERATOR, machines=(joining("c", "r0"),)))
    own = AddMachine(Machine("d", Resources(1, 1), joins={"machine": ("m0",)}))
    error = refused(cell, own)
    assert error.problem == "machine d: joins sets of the node group 'machine'"
    assert error.hint == "every machine is a set of its own in that group; leave it out"


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (
            {"machine": ["a"]},
            "node group 'machine' is given; every machine is a set of its own in that group; "
            "leave it out",
        ),
        ({"rack": ["a", "b", "c", "b", "a"]}, "node group 'rack' names the set 'b' twice"),
    ],
)
def test_node_groups_are_named_once(groups: dict[str, Sequence[str]], told: str) -> None:
    with pytest.raises(ModelError) as caught:
        Cell(("cpu", "memory"), groups)
    assert str(caught.value) == told


def test_devices_are_one_of_the_resources() -> None:
    with pytest.raises(ModelError, match="devices of 'gpu'; expected one of cpu, memory"):
        Cell(("cpu", "memory"), devices="gpu")
