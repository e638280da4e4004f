"""Builds a placement problem: arrays of what the active constraints mean for some new containers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argosy.model.constraints import Constraint, PlacementConstraint
from argosy.model.constraints.parts import atoms, leaves, names_of
from argosy.model.machines import MACHINE_GROUP
from argosy.solvers.placement.cluster import ContainerKind, Family, PlacementCluster, Running
from argosy.solvers.placement.constraint_index import ConstraintIndex
from argosy.solvers.placement.demands import Demand, Demanders, Tags, rarest
from argosy.solvers.placement.forms import Term, alternatives
from argosy.solvers.placement.problem import (
    Choice,
    ChoiceAtom,
    ChoiceTerm,
    Counter,
    Item,
    PlacementProblem,
    SpreadRows,
    TagCounts,
    importance_of,
)


class ProblemBuilder:
    """Makes one problem."""

    def __init__(
        self, book: ConstraintIndex, cluster: PlacementCluster, kinds: tuple[ContainerKind, ...]
    ) -> None:
        self.book = book
        self.cluster = cluster
        self.kinds = kinds
        self.families: list[Family] = [book.families[MACHINE_GROUP]]
        self.numbers = {MACHINE_GROUP: 0}
        self.items: list[Item] = []
        self.spreads: list[SpreadRows] = []
        self.counters: list[Counter] = []
        self.choices: list[Choice] = []
        self.concerned = 0.0
        self._known: dict[tuple[Tags, int, bool], int] = {}
        #: The kinds that have each tag.
        self._having: dict[str, list[int]] = {}
        for number, kind in enumerate(kinds):
            for tag in kind.tags:
                self._having.setdefault(tag, []).append(number)
        self._running: list[Running] = []
        self._empty: dict[int, TagCounts] = {}

    def problem(self, smallest: Sequence[int] | None) -> PlacementProblem:
        for demand, rule in self.book.touched_by(self.kinds):
            times = rule.times_of(self.kinds, self._having)
            match = [False] * len(self.kinds)
            for number in self._having.get(rarest(demand.counted), ()):
                match[number] = demand.counted <= self.kinds[number].tags
            if any(times) or any(match):
                self._rule(demand, rule, times, match)
        touched = [
            (constraint, active)
            for constraint, active in self.book.choices()
            if self._is_touched(constraint)
        ]
        for constraint, _ in touched:
            known = {kind.tags for kind in self._running}
            self._running += [r for r in self.book.running(constraint) if r.tags not in known]
        for constraint, active in touched:
            self._choice(constraint, active)
        dimensions = self.cluster.free.shape[1]
        least = np.zeros(dimensions, np.int64) if smallest is None else np.array(smallest, np.int64)
        apps = max((kind.app for kind in self.kinds), default=-1) + 1
        return PlacementProblem(
            self.cluster,
            self.kinds,
            apps,
            least,
            self.book.popularity(),
            tuple(self.families),
            tuple(self.items),
            tuple(self.spreads),
            tuple(self.counters),
            tuple(self.choices),
            self.concerned,
            importance_of(self.kinds, apps),
        )

    def _family(self, group: str) -> int:
        number = self.numbers.get(group)
        if number is None:
            number = self.numbers[group] = len(self.families)
            self.families.append(self.book.families[group])
        return number

    def _sum(self, family: int, per_machine: TagCounts) -> TagCounts:
        if per_machine.any():
            return self.families[family].sum(per_machine)
        # A new application's own tags are nowhere yet, so most counts are empty.
        empty = self._empty.get(family)
        if empty is None:
            empty = self._empty[family] = np.zeros(self.families[family].sets + 1, np.int32)
        return empty

    def _counted(self, tags: Tags) -> TagCounts:
        """Running containers and machines with the tags, per machine."""
        total = self.book.count(tags)
        for having, where in self.cluster.static:
            if having >= tags:
                total = total + where.astype(np.int32)
        return total

    def _rule(self, demand: Demand, rule: Demanders, times: list[int], match: list[bool]) -> None:
        index = self._family(demand.group)
        subjects = sum(t * kind.count for t, kind in zip(times, self.kinds, strict=True))
        self.concerned += demand.weight * max(1, subjects)
        bits = np.array(match, np.uint8)
        # A kind that several of the constraints concern is in as many items.
        for layer in range(max(1, *times)):
            concerned = np.array([t > layer for t in times], np.uint8)
            both, other = (rule.both, rule.other) if layer == 0 else (rule.both * 0, rule.both * 0)
            if demand.is_spread:
                if concerned.any():
                    self._spread(demand, index, concerned, both)
                continue
            self.items.append(
                Item(
                    index,
                    demand.least,
                    demand.most,
                    demand.weight,
                    1.0 if demand.is_first else 0.0,
                    demand.hard,
                    concerned,
                    bits,
                    self._sum(index, self._counted(demand.counted)),
                    self._sum(index, both),
                    self._sum(index, other),
                )
            )

    def _spread(
        self, demand: Demand, index: int, concerned: NDArray[np.uint8], here: TagCounts
    ) -> None:
        inside = self._sum(index, self.book.count(demand.counted))[: self.families[index].sets]
        self.spreads.append(
            SpreadRows(
                index,
                demand.least,
                demand.most,
                demand.weight,
                demand.hard,
                concerned,
                inside.copy(),
                int(here.sum()),
            )
        )

    def _is_touched(self, constraint: Constraint) -> bool:
        return any(kind.tags >= tags for tags in names_of(constraint.rule) for kind in self.kinds)

    def _pairs(self, constraint: Constraint) -> int:
        """Tag constraints times new subjects of each; 1 if new containers are only counted."""
        total = 0
        for leaf in leaves(constraint.rule):
            mine = sum(kind.count for kind in self.kinds if kind.tags.issuperset(leaf.subject))
            named = [leaf.subject]
            if isinstance(leaf, PlacementConstraint):
                named = [atom.tags for atom in atoms(leaf.expression)]
            for tags in named:
                if mine or any(kind.tags.issuperset(tags) for kind in self.kinds):
                    total += max(1, mine)
        return total

    def _choice(self, constraint: Constraint, times: int) -> None:
        forms = [alternatives(constraint.rule, kind.tags) for kind in self.kinds]
        self.concerned += times * constraint.weight * self._pairs(constraint)
        nothing = np.zeros(self.cluster.machines, np.int32)
        everyone = [(kind.tags, forms[at], nothing) for at, kind in enumerate(self.kinds)]
        everyone += [
            (kind.tags, alternatives(constraint.rule, kind.tags), kind.counts)
            for kind in self._running
        ]
        self.choices.append(
            Choice(
                times * constraint.weight,
                constraint.hard,
                tuple(
                    tuple(tuple(self._term(term, tags) for term in way) for way in ways)
                    for tags, ways, _ in everyone
                ),
                tuple(counts for _, _, counts in everyone),
            )
        )

    def _term(self, term: Term, tags: Tags) -> ChoiceTerm:
        family = self._family(term.group)
        return ChoiceTerm(
            family,
            term.is_spread,
            term.never,
            tuple(
                ChoiceAtom(
                    self._counter(frozenset(atom.tags), family, term.is_spread),
                    atom.least,
                    atom.most,
                    not term.is_spread and tags.issuperset(atom.tags),
                )
                for atom in term.atoms
            ),
        )

    def _counter(self, tags: Tags, family: int, is_spread: bool) -> int:
        key = (tags, family, is_spread)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.counters)
            everyone = [kind.tags for kind in self.kinds] + [kind.tags for kind in self._running]
            here = self.book.count(tags) if is_spread else self._counted(tags)
            self.counters.append(
                Counter(
                    family,
                    is_spread,
                    np.array([mine >= tags for mine in everyone], np.uint8),
                    self._sum(family, here)[: self.families[family].sets].copy(),
                )
            )
        return number
