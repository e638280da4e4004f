"""What the twin of the cell refuses as a mistake, each beside what is nearly the same and right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.cell.cell import Cell
from argosy.model.errors import ModelError
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.resources import MOST_DIMENSIONS, Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    ResizeMachine,
    Transaction,
)
from argosy.testing.twin import TwinCell


def machine(name: str, joins: dict[str, tuple[str, ...]] | None = None) -> AddMachine:
    return AddMachine(Machine(name, Resources(4_000, 100), {}, joins or {}))


def claims(
    tasks: Sequence[int] = (1,),
    machines: Sequence[int] = (0,),
    shapes: Sequence[int] = (0,),
    versions: Sequence[int] = (0,),
    gangs: Sequence[int] | None = None,
    alternatives: Sequence[Sequence[int]] | None = None,
) -> dict[str, Any]:
    made = Claims(
        np.array(tasks, np.int64),
        np.array(machines, np.int32),
        np.array(shapes, np.int32),
        np.array(versions, np.uint32),
        None if gangs is None else np.array(gangs, np.int32),
        None if alternatives is None else np.array(alternatives, np.int32),
    )
    return {"claims": made}


def several(count: int, **more: Any) -> dict[str, Any]:
    return claims(range(count), (0,) * count, (0,) * count, (0,) * count, **more)


def tasks(**named: Sequence[int]) -> dict[str, Any]:
    return {name: np.array(each, np.int64) for name, each in named.items()}


def changes(*made: MachineChange, **more: Any) -> dict[str, Any]:
    return {"machines": made, **more}


def with_resources(count: int) -> Resources:
    return Resources(1, 1, {f"x{number}": 1 for number in range(count)})


#: Resources that the cell below does not have yet.
LEFT = MOST_DIMENSIONS - 2
RIGHT = (
    changes(machine("c"), DrainMachine(2)),
    changes(DrainMachine(1), atomic=False),
    changes(machine("c", {"rack": ("machine",)})),
    changes(ResizeMachine(0, with_resources(LEFT))),
    changes(RelabelMachine(0, {}, {"machines": ("a",)})),
    tasks(confirms=[0], forgets=[0], releases=[0]),
    several(3, gangs=(-1, 1, 1)),
    several(4, gangs=(-1, 1, -1, 2)),
    several(3, gangs=(0, 0, 0)),
    several(2, alternatives=((1,), (-1,))),
    claims(tasks=(0,)),
    claims(machines=(2,)),
    claims(machines=(-1,)),
    several(2, gangs=(5, 5)) | {"atomic": True},
)
WRONG = (
    (changes(DrainMachine(1), atomic=True), "machine changes in an atomic transaction"),
    (changes(ResizeMachine(0, with_resources(LEFT + 1))), "too many resources"),
    (
        changes(
            ResizeMachine(0, with_resources(LEFT)),
            AddMachine(Machine("c", Resources(1, 1, {"y": 1}))),
        ),
        "too many resources",
    ),
    (changes(machine("c", {MACHINE_GROUP: ("c",)})), "the group of machines themselves"),
    (changes(RelabelMachine(0, {}, {MACHINE_GROUP: ()})), "the group of machines themselves"),
    (changes(machine("b")), "a second machine of that name"),
    (changes(machine("c"), machine("c")), "a second machine of that name"),
    (changes(DrainMachine(2)), "an unknown machine"),
    (changes(DrainMachine(2), machine("c")), "an unknown machine"),
    (changes(DrainMachine(-1)), "an unknown machine"),
    *(
        (tasks(**{name: [3, -1]}), "a negative task")
        for name in ("confirms", "forgets", "releases")
    ),
    (claims(machines=(0, 0)), "arrays of different length"),
    (claims(shapes=(0, 0)), "arrays of different length"),
    (claims(versions=()), "arrays of different length"),
    (claims(tasks=(-1,)), "a negative task"),
    (claims(shapes=(-1,)), "an unknown shape"),
    (claims(shapes=(1,)), "an unknown shape"),
    (several(2, alternatives=((1,),)), "arrays of different length"),
    (several(2, gangs=(1,)), "arrays of different length"),
    (several(3, gangs=(1, 2, 1)), "a gang in two places"),
    (several(3, gangs=(0, -1, 0)), "a gang in two places"),
)


def pair() -> tuple[Cell, TwinCell]:
    both = Cell(("cpu", "memory"), {}), TwinCell(("cpu", "memory"), {})
    for each in both:
        each.commit(Transaction(OPERATOR, machines=(machine("a"), machine("b"))))
        assert each.shape(Resources(1_000, 10)) == 0
    return both


@pytest.mark.parametrize(("given", "told"), WRONG, ids=str)
def test_a_mistake_is_told_and_changes_nothing(given: dict[str, Any], told: str) -> None:
    cell, twin = pair()
    before = [(each.version, each.is_draining) for each in twin.state.machines]
    with pytest.raises(ModelError) as caught:
        twin.commit(Transaction("anna", **given))
    assert caught.value.problem == told
    assert [(each.version, each.is_draining) for each in twin.state.machines] == before
    assert (twin.dimensions, twin.groups, twin.state.claims) == (("cpu", "memory"), {}, {})
    with pytest.raises(ModelError):
        cell.commit(Transaction("anna", **given))


@pytest.mark.parametrize("given", RIGHT, ids=str)
def test_what_is_nearly_a_mistake_is_judged_as_by_the_cell(given: dict[str, Any]) -> None:
    cell, twin = pair()
    ours, theirs = (each.commit(Transaction("anna", **given)) for each in (cell, twin))
    assert theirs.accepted == ours.accepted.tolist()
    assert theirs.whys == ours.whys.tolist()
    assert theirs.added == tuple(ours.added)
    assert [each.version for each in twin.state.machines] == cell.view().versions().tolist()
