"""Violations in a placement state: the question that the reference checker answers, for cells too large
for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.constraints import Constraint, ConstraintRule
from argosy.model.constraints.meaning import distance
from argosy.solvers.placement.forms import Term, alternatives
from argosy.solvers.placement.placement_state import PlacementState


class Broken(msgspec.Struct, frozen=True):
    """`count` containers with these tags on this machine violate a constraint by `extent`."""

    constraint: int
    tags: frozenset[str]
    machine: int
    count: int
    extent: float


class Judge:
    """Judges a placement state; invalid once the state changes."""

    def __init__(self, ledger: PlacementState) -> None:
        self._ledger = ledger
        self._counts: dict[tuple[frozenset[str], str, bool], NDArray[np.int32]] = {}
        self._ways: dict[tuple[ConstraintRule, frozenset[str]], list[tuple[Term, ...]]] = {}

    def broken(self, constraints: Sequence[Constraint]) -> Iterator[Broken]:
        for number, constraint in enumerate(constraints):
            for tags, machine, count in self._ledger.concerned(constraint):
                extent = self.extent(constraint, tags, machine)
                if extent > 0:
                    yield Broken(number, tags, machine, count, extent)

    def extent(self, constraint: Constraint, tags: frozenset[str], machine: int) -> float:
        """The extent for a container with these tags that runs on the machine."""
        key = (constraint.rule, tags)
        ways = self._ways.get(key)
        if ways is None:
            ways = self._ways[key] = alternatives(constraint.rule, tags)
        return min((sum(self._term(t, tags, machine) for t in way) for way in ways), default=0.0)

    def _count(self, tags: frozenset[str], group: str, static: bool) -> NDArray[np.int32]:
        key = (tags, group, static)
        counts = self._counts.get(key)
        if counts is None:
            per_machine = self._ledger.count(tags)
            for having, where in self._ledger.static if static else ():
                if having >= tags:
                    per_machine = per_machine + where.astype(np.int32)
            counts = self._counts[key] = self._ledger.families[group].sum(per_machine)
        return counts

    def _term(self, term: Term, tags: frozenset[str], machine: int) -> float:
        family = self._ledger.families[term.group]
        if term.is_spread:
            (atom,) = term.atoms
            used = self._count(frozenset(atom.tags), term.group, False)[: family.sets]
            return distance(int((used > 0).sum()), atom.least, atom.most)
        best = None
        for number in family.sets_with(machine):
            total = float(term.never)
            for atom in term.atoms:
                counted = frozenset(atom.tags)
                count = int(self._count(counted, term.group, True)[number]) - (counted <= tags)
                total += distance(count, atom.least, atom.most)
            best = total if best is None else min(best, total)
        return 1.0 if best is None else best
