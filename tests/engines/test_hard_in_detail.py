"""Constraints and containers as schedulers of applications remember them: what needs others, what a
sentence says, and what comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, tasks_of

from argosy.cell import Cell
from argosy.engines.families.lra.hard import hard_rows
from argosy.engines.families.lra.manager import ConstraintManager
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.overrides import Overrides
from argosy.engines.families.lra.relaxing import Asked
from argosy.model.constraints import Constraint
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.errors import ModelError
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Claims, Transaction
from argosy.solvers.placement import ContainerKind, Family, PlacementState
from argosy.testing.builders import GIB

RACKS = {"rack": Family.of("rack", [[0], [0], [1], [1]], 2)}


def claims_of(cell: Cell, number: int, *places: tuple[str, int]) -> Claims:
    """Claims of a job's tasks, each with a tag on a machine."""
    rows = np.array([machine for _, machine in places], np.int32)
    shapes = [cell.shape(Resources(1_000, GIB), frozenset({tag})) for tag, _ in places]
    tasks = tasks_of(number, *range(len(places)))
    return Claims(tasks, rows, np.array(shapes, np.int32), cell.versions(rows))


def rules(*texts: str) -> tuple[Constraint, ...]:
    return tuple(map(parse_constraint, texts))


class TestHardRows:
    @pytest.mark.parametrize(
        ("places", "gangs", "allowed"),
        [
            # A needs a B, and a B needs a D: the last makes room for those before it.
            ([("a", 0), ("b", 0), ("d", 0)], [0, 1, 2], [True, True, True]),
            ([("a", 0), ("b", 0), ("d", 1)], [0, 1, 2], [False, False, True]),
            ([("a", 1), ("a", 0), ("b", 0), ("d", 0)], [0, 1, 2, 3], [False, True, True, True]),
            ([("a", 1), ("a", 0), ("b", 0), ("d", 0)], [0, 0, 1, 2], [False, False, True, True]),
            ([("a", 0), ("a", 0), ("b", 0)], [0, 1, 2], [False, False, False]),
            # Who is no part of a hard constraint is let in, whatever a soft one says.
            ([("e", 0), ("e", 0), ("a", 1)], [5, 4, 3], [True, True, False]),
        ],
    )
    def test_gangs_that_need_others_are_let_in_after_them(
        self, places: list[tuple[str, int]], gangs: list[int], allowed: list[bool]
    ) -> None:
        cell = cell_of(8, 8)
        memory = Memory(
            cell,
            "s",
            rules(
                "a -> {b, 1, inf} in machine hard",
                "b -> {d, 1, inf} in machine hard",
                "e -> {e, 0, 0} in machine",
            ),
        )
        found = hard_rows(memory, cell, claims_of(cell, 1, *places), np.array(gangs, np.int32))
        assert found.tolist() == allowed

    def test_without_hard_constraints_all_are_let_in(self) -> None:
        cell = cell_of(8)
        memory = Memory(cell, "s", rules("a -> {b, 1, inf} in machine"))
        claims = claims_of(cell, 1, ("a", 0), ("a", 0))
        assert hard_rows(memory, cell, claims, np.zeros(2, np.int32)).tolist() == [True, True]

    def test_a_move_must_not_leave_alone_those_that_need_it(self) -> None:
        """The only B of a machine leaves, or one of two."""
        for count, allowed in ((1, False), (2, True)):
            cell = cell_of(8, 8)
            there = [("b", 0)] * count + [("a", 0)]
            assert cell.commit(Transaction("s", claims_of(cell, 0, *there))).all_accepted
            memory = Memory(cell, "s", rules("a -> {b, 1, inf} in machine hard"))
            move = claims_of(cell, 0, ("b", 1))
            assert hard_rows(memory, cell, move, np.zeros(1, np.int32)).tolist() == [allowed]

    def test_a_move_may_break_a_soft_constraint(self) -> None:
        cell = cell_of(8, 8)
        assert cell.commit(Transaction("s", claims_of(cell, 0, ("w", 0), ("w", 1)))).all_accepted
        texts = ("w -> {w, 0, 0} in machine", "w -> {z, 0, 0} in machine hard")
        memory = Memory(cell, "s", rules(*texts))
        move = claims_of(cell, 0, ("w", 1))
        assert hard_rows(memory, cell, move, np.zeros(1, np.int32)).tolist() == [True]

    def test_only_what_this_scheduler_placed_may_leave_its_machine(self) -> None:
        """Another scheduler's container stays where it is, though it has the number."""
        for name, allowed in (("s", True), ("t", False)):
            cell = cell_of(8, 8)
            assert cell.commit(Transaction(name, claims_of(cell, 0, ("w", 0)))).all_accepted
            memory = Memory(cell, "s", rules("w -> {w, 0, 0} in machine hard"))
            both = claims_of(cell, 0, ("w", 1), ("w", 0))
            found = hard_rows(memory, cell, both, np.zeros(2, np.int32))
            assert found.tolist() == [allowed] * 2


@pytest.mark.parametrize(("room", "has_room", "has_place"), [(1, False, False), (2, True, False)])
def test_all_containers_of_an_application_are_to_find_a_place_together(
    room: int, has_room: bool, has_place: bool
) -> None:
    """Two that may not be on one machine, however they are numbered; there is one machine."""
    ledger = PlacementState(1, {})
    [apart] = rules("w -> {w, 0, 0} in machine hard")
    ledger.add(apart)
    kinds = [ContainerKind(app, frozenset("w"), np.array([1], np.int64), 1) for app in range(2)]
    free = np.array([[room]], np.int64)
    asked = Asked(ledger, kinds, free, free, (1,))
    assert (asked.has_room(), asked.has_place()) == (has_room, has_place)
    with asked.without([apart]):
        assert asked.has_place() is has_room
    assert asked.has_place() is has_place


class TestMemory:
    def test_containers_are_read_by_machine_with_who_placed_them(self) -> None:
        cell = cell_of(8, 8, 8)
        first = claims_of(cell, 0, ("w", 2), ("w", 1))
        assert cell.commit(Transaction("s", first)).all_accepted
        memory = Memory(cell, "s")
        assert [row[:2] for row in memory.own_containers()] == [
            (int(first.tasks[1]), 1),
            (int(first.tasks[0]), 2),
        ]
        others = claims_of(cell, 1, ("w", 0))
        assert cell.commit(Transaction("t", others)).all_accepted
        more = claims_of(cell, 2, ("w", 0), ("x", 1))
        assert cell.commit(Transaction("s", more)).all_accepted
        memory.refresh(cell)
        own = [(task, machine) for task, machine, _ in memory.own_containers()]
        # Read again from machines that have changed, in the order of machines.
        assert [machine for _, machine in own] == [0, 1, 1, 2]
        assert {task for task, _ in own} == {*first.tasks.tolist(), *more.tasks.tolist()}
        assert memory.is_running(int(others.tasks[0]), 0)
        assert not memory.is_running(int(others.tasks[0]), 1)
        assert not memory.is_running(int(first.tasks[0]), 1)
        cell.commit(Transaction(OPERATOR, releases=first.tasks[:1]))
        assert memory.is_running(int(first.tasks[0]), 2)
        memory.refresh(cell)
        assert not memory.is_running(int(first.tasks[0]), 2)
        assert len(list(memory.own_containers())) == 3

    def test_constraints_come_and_go_with_applications(self) -> None:
        cell = cell_of(8)
        memory = Memory(cell, "s", rules("z -> {z, 0, 0} in machine"))
        group = TaskGroup(1, Resources(1_000, GIB), tags=("w",))
        texts = ("w -> {w, 0, 1} in machine", "w -> {w, 0, 2} in machine hard")
        for number, text in enumerate(texts):
            cell.admit(number, Job(f"j{number}", (group,), constraints=rules(text)))
        assert memory.manager.numbers() == []
        memory.refresh(cell)
        assert memory.manager.numbers() == [0, 1]
        assert [format_constraint(each) for each in memory.manager.everything()] == [
            "z -> {z, 0, 0} in machine",
            *texts,
        ]
        assert memory.manager.has_hard
        cell.retire(1)
        memory.refresh(cell)
        assert memory.manager.numbers() == [0]
        assert not memory.manager.has_hard

    def test_containers_that_are_named_from_now_on_are_counted_by_name(self) -> None:
        """Two of application `db` run, on m0 and m1; then somebody keeps off the second."""
        cell = cell_of(8, 8)
        tags = frozenset({"db", "appID:db"})
        rows = np.array([0, 1], np.int32)
        shapes = np.full(2, cell.shape(Resources(1_000, GIB), tags), np.int32)
        claims = Claims(tasks_of(0, 0, 1), rows, shapes, cell.versions(rows))
        assert cell.commit(Transaction("s", claims)).all_accepted
        memory = Memory(cell, "s")
        group = TaskGroup(1, Resources(1_000, GIB), tags=("w",))
        apart = rules("w -> {containerID:db/1, 0, 0} in machine hard")

        def allowed() -> list[bool]:
            claims = claims_of(cell, 1, ("w", 0), ("w", 1))
            found: list[bool] = hard_rows(memory, cell, claims, np.array([0, 1], np.int32)).tolist()
            return found

        for _ in range(2):
            assert allowed() == [True, True]
            cell.admit(1, Job("web", (group,), constraints=apart))
            memory.refresh(cell)
            assert memory.names == {"containerID:db/1"}
            assert allowed() == [True, False]
            cell.retire(1)
            memory.refresh(cell)
            assert memory.names == frozenset()


class TestManager:
    def test_an_unsound_constraint_is_quoted_and_leaves_nothing_behind(self) -> None:
        manager = ConstraintManager(PlacementState(4, RACKS))
        group = TaskGroup(1, Resources(1), tags=("w",))
        texts = ("w -> {w, 0, 1} in machine", "w -> {w, 0, 0} in hall")
        asked = Job("j", (group,), constraints=rules(*texts))
        with pytest.raises(ModelError) as caught:
            manager.submit(1, asked)
        assert str(caught.value).startswith("'w -> {w, 0, 0} in hall': ")
        assert (manager.is_idle, manager.numbers()) == (True, [])
        with pytest.raises(ModelError, match="in hall': "):
            ConstraintManager(PlacementState(4, RACKS), rules(*texts))

    def test_a_constraint_of_the_operator_is_in_force_without_any_application(self) -> None:
        assert not ConstraintManager(
            PlacementState(4, RACKS), rules("w -> {w, 0, 1} in rack")
        ).is_idle
        assert ConstraintManager(PlacementState(4, RACKS)).is_idle

    def test_a_job_that_is_submitted_twice_counts_once(self) -> None:
        manager = ConstraintManager(PlacementState(4, RACKS))
        group = TaskGroup(1, Resources(1), tags=("w",))
        text = "w -> {w, 0, 1} in machine hard"
        asked = Job("j", (group,), constraints=rules(text))
        for _ in range(2):
            manager.submit(1, asked)
        assert [format_constraint(each) for each in manager.everything()] == [text]
        manager.withdraw(1)
        assert (manager.is_idle, manager.has_hard) == (True, False)
        manager.withdraw(1)
        assert manager.is_idle

    def test_operators_override_applications_from_their_first_job_to_their_last(self) -> None:
        """The setting's bound is in force all the time, and that of a job while it is there."""
        setting = rules("w -> {w, 0, 9} in rack")
        manager = ConstraintManager(PlacementState(4, RACKS), setting, operators=("admin",))
        group = TaskGroup(1, Resources(1), tags=("w",))

        def a_job(owner: str, text: str) -> Job:
            return Job(f"{owner}-job", (group,), owner=owner, constraints=rules(text))

        def active(number: int) -> list[str]:
            return [format_constraint(each) for each in manager.active(number)]

        much, several = "w -> {w, 12, inf} in rack hard", "w -> {w, 5, inf} in rack hard"
        manager.submit(1, a_job("ann", much))
        manager.submit(2, a_job("bob", several))
        assert (active(1), active(2)) == (["w -> {w, 9, inf} in rack"], [several])
        assert manager.has_hard
        # Its own constraint is not settled by what it says itself, nor by the setting.
        own = "w -> {w, 11, inf} in rack and x -> {w, 0, 1} in rack"
        manager.submit(3, a_job("admin", own))
        assert active(3) == [own]
        manager.submit(4, a_job("admin", "w -> {w, 0, 3} in rack"))
        assert (active(1), active(2)) == (
            ["w -> {w, 3, inf} in rack"],
            ["w -> {w, 3, inf} in rack"],
        )
        assert active(3) == [own]
        assert not manager.has_hard
        manager.submit(5, a_job("eve", several))
        assert active(5) == ["w -> {w, 3, inf} in rack"]
        manager.withdraw(4)
        assert (active(1), active(2), active(5)) == (
            ["w -> {w, 9, inf} in rack"],
            [several],
            [several],
        )
        assert manager.has_hard
        for number in (2, 5):
            manager.withdraw(number)
        assert not manager.has_hard
        assert sorted(manager.numbers()) == [1, 3]


#: Machines 4 and 5 are in no zone, and 3 to 5 in no cage; the second hut is outside all zones.
ZONES = {
    name: Family.of(name, [[] if at is None else [at] for at in sets], 2)
    for name, sets in (
        ("zone", (0, 0, 1, 1, None, None)),
        ("cage", (0, 0, 1, None, None, None)),
        ("hut", (0, 0, None, None, 1, 1)),
    )
}


class TestOverrides:
    @pytest.mark.parametrize(
        ("inner", "is_within"), [("cage", True), ("hut", False), ("zone", True), ("machine", True)]
    )
    def test_only_machines_in_some_set_count_for_what_lies_within_what(
        self, inner: str, is_within: bool
    ) -> None:
        asked = f"w -> {{w, 4, inf}} in {inner}"
        [found] = Overrides(rules("w -> {w, 0, 3} in zone"), ZONES).settled(rules(asked))
        changed = f"w -> {{w, 3, inf}} in {inner}"
        assert format_constraint(found) == (changed if is_within else asked)

    def test_the_operator_may_allow_none_at_all(self) -> None:
        assert self.settled(["w -> {x, 0, 0} in rack"], "w -> {x, 1, 1} in rack") == [
            "w -> {x, 0, 1} in rack"
        ]
        assert self.settled(["w -> {x, 1, inf} in rack"], "w -> {x, 0, 0} in rack") == [
            "w -> {x, 0, 1} in rack"
        ]

    def settled(self, operator: Any, *asked: str) -> list[str]:
        overrides = Overrides(rules(*operator), RACKS)
        return [format_constraint(each) for each in overrides.settled(rules(*asked))]

    def test_of_a_constraint_of_several_parts_only_what_contradicts_is_changed(self) -> None:
        both = "w -> {w, 4, inf} in rack and w -> {x, 1, inf} in rack weight 5 hard"
        assert self.settled(
            ["w -> {w, 0, 3} in rack weight 2"], both, "w -> {w, 0, 1} in rack"
        ) == [
            "w -> {w, 3, inf} in rack weight 2",
            "w -> {x, 1, inf} in rack weight 5 hard",
            "w -> {w, 0, 1} in rack",
        ]
        other = "w -> {x, 4, inf} in rack and w -> {x, 1, inf} in rack weight 5 hard"
        assert self.settled(["w -> {w, 0, 3} in rack"], other) == [other]

    def test_what_contradicts_several_bounds_weighs_no_more_than_the_least(self) -> None:
        operator = ["w -> {w, 0, 5} in rack weight 3", "w -> {w, 0, 2} in rack weight 8"]
        found = self.settled(operator, "w -> {w, 9, inf} in rack weight 20")
        assert found == ["w -> {w, 2, inf} in rack weight 3"]
        found = self.settled(operator[::-1], "w -> {w, 9, inf} in rack weight 20")
        assert found[0].startswith("w -> {w, 2, inf} in rack")
        # Two share the second bound, of which one is beyond the first as well.
        found = self.settled(
            operator, "w -> {w, 3, inf} in rack weight 20", "w -> {w, 9, inf} in rack weight 20"
        )
        assert found == ["w -> {w, 2, inf} in rack weight 4", "w -> {w, 2, inf} in rack weight 3"]

    def test_a_lower_bound_is_never_left_above_the_upper_one(self) -> None:
        operator = ["w -> {w, 4, inf} in rack"]
        assert self.settled(operator, "w -> {w, 2, 3} in rack") == ["w -> {w, 2, 4} in rack"]
        operator = ["w -> {w, 0, 3} in rack", "w -> {w, 2, inf} in rack"]
        assert self.settled(operator, "w -> {w, 0, 1} in rack", "w -> {w, 5, 5} in rack") == [
            "w -> {w, 0, 2} in rack",
            "w -> {w, 3, 5} in rack",
        ]

    def test_alternatives_are_changed_each_by_itself(self) -> None:
        asked = "w -> {w, 4, inf} in rack or w -> {x, 1, inf} in rack"
        assert self.settled(["w -> {w, 0, 3} in rack"], asked) == [
            "w -> {w, 3, inf} in rack or w -> {x, 1, inf} in rack"
        ]
        asked = "w -> {w, 4, inf} and {x, 1, inf} in rack"
        assert self.settled(["w -> {w, 0, 3} in rack"], asked)[0].startswith("w -> {w, 3, inf}")

    def test_without_bounds_everything_is_as_it_was(self) -> None:
        asked = rules("w -> {w, 4, inf} in rack hard")
        assert Overrides((), RACKS).settled(asked) == asked
        spread = Overrides(rules("w -> spread {0, 1} over rack"), RACKS)
        assert spread.settled(list(asked)) == asked
