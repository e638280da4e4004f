"""What an application that finds no place is told: whose hard constraints to relax, in which words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.engines.families.lra.relaxing import concerns, remedy
from argosy.model.constraints import Constraint
from argosy.model.constraints.text import parse_constraint
from argosy.solvers.placement import ContainerKind
from argosy.testing.builders import job

OWN = parse_constraint("a -> {a, 0, 0} in machine hard")
SOFT = parse_constraint("a -> {b, 0, 0} in machine")
OPERATORS = parse_constraint("a -> {a, 0, 1} in rack hard")
THEIRS = parse_constraint("b -> {a, 0, 0} in rack hard")
OTHERS = parse_constraint("c -> {c, 0, 0} in rack hard")


class Asked:
    """An application of three containers that finds a place without these constraints."""

    def __init__(self, *needed: Constraint, room: bool = True, never: bool = False) -> None:
        self._needed, self._room, self._never = needed, room, never
        self._out: Sequence[Constraint] = ()
        kind = ContainerKind(0, frozenset({"a"}), np.array([1]), 2)
        self.kinds = [kind, ContainerKind(0, frozenset({"a", "x"}), np.array([1]), 1)]

    def has_room(self) -> bool:
        return self._room

    def has_place(self) -> bool:
        return not self._never and all(each in self._out for each in self._needed)

    @contextmanager
    def without(self, constraints: Sequence[Constraint]) -> Iterator[None]:
        self._out = constraints
        yield
        self._out = ()


def told(asked: Asked, **names: Any) -> tuple[str, tuple[str, ...]]:
    """Of application 5, beside 3, which has a job, and 4, which is not known any more."""
    active = {5: (OWN, SOFT), 3: (THEIRS, OTHERS, SOFT), 4: (THEIRS,)}
    manager: Any = SimpleNamespace(
        active=lambda number: active.get(number, ()),
        operator_seen=(OPERATORS, SOFT, OTHERS),
        numbers=lambda: [3, 4, 5],
    )
    return remedy(asked, manager, 5, {3: job("web").job})  # type: ignore[arg-type]


OWN_TEXT = "'a -> {a, 0, 0} in machine hard'"
OPERATORS_TEXT = "'a -> {a, 0, 1} in rack hard', the operator's"
THEIRS_TEXT = "'b -> {a, 0, 0} in rack hard'"


def test_without_room_it_asks_for_room_for_all_containers() -> None:
    assert told(Asked(OWN, room=False)) == ("room for all 3 containers at once", ())


@pytest.mark.parametrize(
    ("needed", "name"), [(OWN, OWN_TEXT), (OPERATORS, OPERATORS_TEXT)], ids=["own", "operator's"]
)
def test_a_single_constraint_is_named_with_its_owner(needed: Constraint, name: str) -> None:
    assert told(Asked(needed)) == (f"relax the hard constraint {name}", (name,))


def test_several_are_to_be_relaxed_together_its_own_first() -> None:
    names = (OWN_TEXT, OPERATORS_TEXT, f"{THEIRS_TEXT}, of web", f"{THEIRS_TEXT}, of 4")
    asked = Asked(OWN, OPERATORS, THEIRS)
    asked.has_place = lambda: len(asked._out) == 4  # type: ignore[method-assign]
    assert told(asked) == (
        f"relax these 4 hard constraints together: {'; '.join(names)}",
        names,
    )


def test_constraints_that_do_not_stand_in_the_way_are_not_named() -> None:
    beside = "another attempt: alone it has room, beside the others of its interval it had not"
    assert told(Asked()) == (beside, ())
    nothing = "another attempt: there is room, but the heuristics found no placement"
    assert told(Asked(never=True)) == (nothing, ())
    # Soft ones, and those about other containers, are never tried.
    assert told(Asked(SOFT)) == (nothing, ())
    assert told(Asked(OTHERS)) == (nothing, ())


@pytest.mark.parametrize(
    ("text", "is_concerned"),
    [
        ("a -> {z, 0, 0} in rack", True),
        ("z -> {a, 0, 0} in rack", True),
        ("z -> {a & x, 0, 0} in rack", True),
        ("z -> {a & y, 0, 0} in rack", False),
        ("z -> {y, 0, 0} in rack", False),
        ("z -> {y, 0, 0} in rack and y -> {x, 0, 0} in rack", True),
    ],
)
def test_a_constraint_concerns_its_subjects_and_those_it_counts(
    text: str, is_concerned: bool
) -> None:
    assert concerns(parse_constraint(text), Asked().kinds) is is_concerned
