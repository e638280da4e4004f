"""Which hard constraints to relax so that an application finds a place.

If there is room without any hard constraint, all are left out and put back one by one, as long as
the application still finds a place. Those that cannot be put back must be relaxed, all of them (this
is exact for at most 64 constraints). The application's own are put back last, so they are named
rather than the operator's or others'. Heuristics decide whether there is a place; they may miss one
in a tight cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.families.lra.manager import ConstraintManager
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import names_of
from argosy.model.constraints.text import format_constraint
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.solvers.placement import (
    ContainerKind,
    PlacementCluster,
    PlacementState,
    place,
    problem_of,
)

_ASKED: Final = ("tag-popularity", "node-candidates")
#: Beyond this number, constraints are not put back one by one: those of other applications go together.
_MOST: Final = 64


class Asked(msgspec.Struct, frozen=True):
    """An application's containers, and the cell to place them in."""

    ledger: PlacementState
    kinds: Sequence[ContainerKind]
    free: NDArray[np.int64]
    capacity: NDArray[np.int64]
    smallest: Sequence[int]

    @property
    def alone(self) -> list[ContainerKind]:
        return [msgspec.structs.replace(kind, app=0) for kind in self.kinds]

    def has_room(self) -> bool:
        bare = problem_of(PlacementCluster(self.free, self.capacity), self.alone)
        return bool(place(bare, "serial", Random(1)).worth.placed)

    def has_place(self) -> bool:
        problem = self.ledger.problem(self.free, self.capacity, self.alone, self.smallest)
        return any(place(problem, name, Random(1)).worth.placed for name in _ASKED)

    @contextmanager
    def without(self, constraints: Sequence[Constraint]) -> Iterator[None]:
        for constraint in constraints:
            self.ledger.remove(constraint)
        try:
            yield
        finally:
            for constraint in constraints:
                self.ledger.add(constraint)


def concerns(constraint: Constraint, kinds: Sequence[ContainerKind]) -> bool:
    """Whether a container is a subject of the constraint, or counted by it."""
    return any(kind.tags >= named for named in names_of(constraint.rule) for kind in kinds)


def remedy(
    asked: Asked, manager: ConstraintManager, number: int, applications: Mapping[int, Job]
) -> tuple[str, tuple[str, ...]]:
    """What would help, and the hard constraints that have to be relaxed for it."""
    if not asked.has_room():
        containers = sum(kind.count for kind in asked.kinds)
        return f"room for all {containers} containers at once", ()
    own = [c for c in manager.active(number) if c.hard]
    operator = [c for c in manager.operator_seen if c.hard and concerns(c, asked.kinds)]
    others = [
        (other, c)
        for other in manager.numbers()
        if other != number
        for c in manager.active(other)
        if c.hard and concerns(c, asked.kinds)
    ]
    whose = [(c, "") for c in own] + [(c, ", the operator's") for c in operator]
    for other, constraint in others:
        name = applications[other].id if other in applications else str(other)
        whose.append((constraint, f", of {name}"))
    found = _smallest(asked, [c for c, _ in whose], len(own) + len(operator))
    if found is None:
        return "another attempt: there is room, but the heuristics found no placement", ()
    if not found:
        told = "another attempt: alone it has room, beside the others of its interval it had not"
        return told, ()
    names = tuple(f"'{format_constraint(whose[at][0])}'{whose[at][1]}" for at in found)
    if len(names) == 1:
        return f"relax the hard constraint {names[0]}", names
    return f"relax these {len(names)} hard constraints together: {'; '.join(names)}", names


def _smallest(asked: Asked, constraints: Sequence[Constraint], near: int) -> list[int] | None:
    """The indices of constraints that cannot be put back; None if there is no place even without any.
    The first `near` are the application's and the operator's."""

    def is_enough(out: Sequence[int]) -> bool:
        with asked.without([constraints[at] for at in out]):
            return asked.has_place()

    out = list(range(len(constraints)))
    if not is_enough(out):
        return None
    if len(out) > _MOST and is_enough(out[:near]):
        out = out[:near]
    for at in [*reversed(out)][:_MOST]:
        fewer = [each for each in out if each != at]
        if is_enough(fewer):
            out = fewer
    return out
