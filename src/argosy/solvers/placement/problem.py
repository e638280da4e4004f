"""Machines, containers and constraints as the arrays that algorithms work on.

Constraints that concern no new container, neither as subject nor by what they count, cannot be kept or
broken by the decision and are left out. The others become

    items    one tag constraint of a constraint without alternatives, over sets that do not overlap
    spreads  a bound on the number of sets in use
    choices  everything else: constraints with alternatives, or over sets that overlap

with the counts of what runs already. `core/place/problem.hpp` states the mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy._core import Placer
from argosy.model.constraint_parts import atoms, leaves
from argosy.model.constraints import Constraint, PlacementConstraint, SpreadConstraint
from argosy.model.errors import ModelError
from argosy.model.machines import MACHINE_GROUP
from argosy.solvers.placement.cluster import Cluster, Family, Kind, Running
from argosy.solvers.placement.forms import Term, alternatives

Counts = NDArray[np.int32]
Bits = NDArray[np.uint8]


class Item(msgspec.Struct, frozen=True):
    """See `core/place/problem.hpp`; arrays have one more set, for machines outside of all."""

    constraint: int
    family: int
    least: int
    most: int | None
    weight: float
    outside: float
    hard: bool
    subject: Bits
    match: Bits
    gamma: Counts
    both: Counts
    other: Counts


class Spread(msgspec.Struct, frozen=True):
    constraint: int
    family: int
    least: int
    most: int | None
    weight: float
    hard: bool
    subject: Bits
    inside: Counts
    subjects: int


class Counter(msgspec.Struct, frozen=True):
    """How many containers with some tags are in each set; a bit per kind, running ones too."""

    family: int
    is_spread: bool
    match: Bits
    count: Counts


class ChoiceAtom(msgspec.Struct, frozen=True):
    counter: int
    least: int
    most: int | None
    self: bool


class ChoiceTerm(msgspec.Struct, frozen=True):
    family: int
    is_spread: bool
    never: int
    atoms: tuple[ChoiceAtom, ...]


class Choice(msgspec.Struct, frozen=True):
    """Per kind, running ones behind the new: its alternatives (none: not concerned), and for running
    ones how many are on each machine."""

    constraint: int
    weight: float
    hard: bool
    alternatives: tuple[tuple[tuple[ChoiceTerm, ...], ...], ...]
    here: tuple[Counts, ...]


class Problem(msgspec.Struct, frozen=True):
    cluster: Cluster
    kinds: tuple[Kind, ...]
    apps: int
    #: The smallest room that is of use: a machine with less in some dimension is fragmented.
    smallest: NDArray[np.int64]
    constraints: tuple[Constraint, ...]
    families: tuple[Family, ...]
    items: tuple[Item, ...]
    spreads: tuple[Spread, ...]
    counters: tuple[Counter, ...]
    choices: tuple[Choice, ...]
    #: Weights of the pairs of a constraint and a new container that it concerns, summed up; a
    #: constraint that new containers are merely counted by has one.
    concerned: float

    @property
    def containers(self) -> int:
        return sum(kind.count for kind in self.kinds)

    @staticmethod
    def of(
        cluster: Cluster,
        kinds: Sequence[Kind],
        running: Sequence[Running] = (),
        constraints: Sequence[Constraint] = (),
        smallest: Sequence[int] | None = None,
    ) -> Problem:
        """Compiles; a group that no family has is an error."""
        compiler = _Compiler(cluster, tuple(kinds), running)
        for number, constraint in enumerate(constraints):
            compiler.add(number, constraint)
        dimensions = cluster.free.shape[1]
        least = np.zeros(dimensions, np.int64) if smallest is None else np.array(smallest, np.int64)
        return Problem(
            cluster,
            tuple(kinds),
            max((kind.app for kind in kinds), default=-1) + 1,
            least,
            tuple(constraints),
            tuple(compiler.families),
            tuple(compiler.items),
            tuple(compiler.spreads),
            tuple(compiler.counters),
            tuple(compiler.choices),
            compiler.concerned,
        )

    def placer(self) -> Placer:
        """The native twin of this problem."""
        kinds, cluster = self.kinds, self.cluster
        requests = np.array([kind.request for kind in kinds], np.int64).reshape(-1)
        native = Placer(
            np.ascontiguousarray(cluster.free).reshape(-1),
            np.ascontiguousarray(cluster.capacity).reshape(-1),
            self.smallest,
            requests,
            np.array([kind.count for kind in kinds], np.int32),
            np.array([kind.app for kind in kinds], np.int32),
            self.apps,
            len(kinds) + (len(self.choices[0].here) - len(kinds) if self.choices else 0),
        )
        for number, kind in enumerate(kinds):
            if kind.allowed is not None:
                native.allow(number, kind.allowed.astype(np.uint8))
        for family in self.families:
            native.add_family(family.first_set, family.sets_of, family.sets)
        for item in self.items:
            native.add_item(
                item.family,
                item.least,
                -1 if item.most is None else item.most,
                item.weight,
                item.outside,
                item.hard,
                item.subject,
                item.match,
                item.gamma,
                item.both,
                item.other,
            )
        for spread in self.spreads:
            native.add_spread(
                spread.family,
                spread.least,
                -1 if spread.most is None else spread.most,
                spread.weight,
                spread.hard,
                spread.subject,
                spread.inside,
                spread.subjects,
            )
        for counter in self.counters:
            native.add_counter(counter.family, counter.is_spread, counter.match, counter.count)
        for choice in self.choices:
            raw = [[[_raw(term) for term in way] for way in ways] for ways in choice.alternatives]
            native.add_choice(choice.weight, choice.hard, raw, list(choice.here))
        return native


def _raw(term: ChoiceTerm) -> tuple[int, bool, int, list[tuple[int, int, int, bool]]]:
    inside = [(a.counter, a.least, -1 if a.most is None else a.most, a.self) for a in term.atoms]
    return term.family, term.is_spread, term.never, inside


class _Compiler:
    def __init__(
        self, cluster: Cluster, kinds: tuple[Kind, ...], running: Sequence[Running]
    ) -> None:
        self.cluster = cluster
        self.kinds = kinds
        self.running = running
        self.families: list[Family] = [
            cluster.families.get(MACHINE_GROUP) or Family.machines(cluster.machines)
        ]
        self.numbers = {MACHINE_GROUP: 0}
        self.items: list[Item] = []
        self.spreads: list[Spread] = []
        self.counters: list[Counter] = []
        self.choices: list[Choice] = []
        self.concerned = 0.0
        self._totals: dict[tuple[frozenset[str], frozenset[str]], Counts] = {}
        self._known: dict[tuple[frozenset[str], int, bool], int] = {}
        self._nothing = np.zeros(cluster.machines, np.int32)
        self._empty: dict[int, Counts] = {}

    def add(self, number: int, constraint: Constraint) -> None:
        if not self._is_touched(constraint):
            return
        forms = [alternatives(constraint.rule, kind.tags) for kind in self.kinds]
        subjects = sum(k.count for k, ways in zip(self.kinds, forms, strict=True) if ways)
        self.concerned += constraint.weight * max(1, subjects)
        terms = self._without_choice(constraint, forms)
        if terms is None:
            self._choice(number, constraint, forms)
            return
        for subject, term in terms:
            if term.is_spread:
                self._spread(number, constraint, subject, term)
            else:
                self._items(number, constraint, subject, term)

    def _is_touched(self, constraint: Constraint) -> bool:
        for leaf in leaves(constraint.rule):
            named = [leaf.subject]
            if isinstance(leaf, PlacementConstraint):
                named += [atom.tags for atom in atoms(leaf.expression)]
            if any(kind.tags.issuperset(tags) for tags in named for kind in self.kinds):
                return True
        return False

    def _without_choice(
        self, constraint: Constraint, forms: list[list[tuple[Term, ...]]]
    ) -> list[tuple[frozenset[str], Term]] | None:
        """The terms of all leaves, if nobody has alternatives and no sets overlap."""
        found: list[tuple[frozenset[str], Term]] = []
        for leaf in leaves(constraint.rule):
            subject = frozenset(leaf.subject)
            ways = alternatives(leaf, subject)
            if len(ways) > 1 or any(term.never for term in ways[0]):
                return None
            overlaps = self.families[self._family(leaf.group)].overlaps
            if overlaps and not isinstance(leaf, SpreadConstraint):
                return None
            found.extend((subject, term) for term in ways[0])
        whole = alternatives(constraint.rule, frozenset().union(*(s for s, _ in found)))
        return found if len(whole) == 1 else None

    def _family(self, group: str) -> int:
        number = self.numbers.get(group)
        if number is None:
            family = self.cluster.families.get(group)
            if family is None:
                raise ModelError(f"there is no node group {group!r}")
            number = self.numbers[group] = len(self.families)
            self.families.append(family)
        return number

    def _count(
        self, tags: frozenset[str], without: frozenset[str] = frozenset(), *, static: bool
    ) -> Counts:
        """Running containers with all of `tags`, and machines if `static`, per machine. With
        `without`, only containers that do not have all of those."""
        key = (tags, without)
        total = self._totals.get(key)
        if total is None:
            total = self._nothing
            for kind in self.running:
                if kind.tags >= tags and not (without and kind.tags >= without):
                    total = total + kind.counts
            self._totals[key] = total
        if static:
            for having, where in self.cluster.static:
                if having >= tags:
                    total = total + where.astype(np.int32)
        return total

    def _sum(self, family: int, per_machine: Counts) -> Counts:
        if per_machine is not self._nothing:
            return self.families[family].sum(per_machine)
        # A new application's own tags are nowhere yet: most counts are empty.
        empty = self._empty.get(family)
        if empty is None:
            empty = self._empty[family] = np.zeros(self.families[family].sets + 1, np.int32)
        return empty

    def _bits(self, tags: frozenset[str]) -> Bits:
        return np.array([kind.tags >= tags for kind in self.kinds], np.uint8)

    def _items(
        self, number: int, constraint: Constraint, subject: frozenset[str], term: Term
    ) -> None:
        index = self._family(term.group)
        for position, atom in enumerate(term.atoms):
            counted = frozenset(atom.tags)
            subjects, match = self._bits(subject), self._bits(counted)
            if not (subjects.any() or match.any()):
                continue
            self.items.append(
                Item(
                    number,
                    index,
                    atom.least,
                    atom.most,
                    constraint.weight,
                    0.0 if position else 1.0,
                    constraint.hard,
                    subjects,
                    match,
                    self._sum(index, self._count(counted, static=True)),
                    self._sum(index, self._count(subject | counted, static=False)),
                    self._sum(index, self._count(subject, counted, static=False)),
                )
            )

    def _spread(
        self, number: int, constraint: Constraint, subject: frozenset[str], term: Term
    ) -> None:
        index, bits = self._family(term.group), self._bits(subject)
        if not bits.any():
            return
        here = self._count(subject, static=False)
        (atom,) = term.atoms
        self.spreads.append(
            Spread(
                number,
                index,
                atom.least,
                atom.most,
                constraint.weight,
                constraint.hard,
                bits,
                self.families[index].sum(here)[:-1].copy(),
                int(here.sum()),
            )
        )

    def _choice(
        self, number: int, constraint: Constraint, forms: list[list[tuple[Term, ...]]]
    ) -> None:
        everyone = [(kind.tags, forms[at], self._nothing) for at, kind in enumerate(self.kinds)]
        everyone += [
            (kind.tags, alternatives(constraint.rule, kind.tags), kind.counts)
            for kind in self.running
        ]
        self.choices.append(
            Choice(
                number,
                constraint.weight,
                constraint.hard,
                tuple(
                    tuple(tuple(self._term(term, tags) for term in way) for way in ways)
                    for tags, ways, _ in everyone
                ),
                tuple(counts for _, _, counts in everyone),
            )
        )

    def _term(self, term: Term, tags: frozenset[str]) -> ChoiceTerm:
        return ChoiceTerm(
            self._family(term.group),
            term.is_spread,
            term.never,
            tuple(
                ChoiceAtom(
                    self._counter(frozenset(atom.tags), self._family(term.group), term.is_spread),
                    atom.least,
                    atom.most,
                    not term.is_spread and tags.issuperset(atom.tags),
                )
                for atom in term.atoms
            ),
        )

    def _counter(self, tags: frozenset[str], family: int, is_spread: bool) -> int:
        key = (tags, family, is_spread)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.counters)
            kinds = [kind.tags for kind in self.kinds] + [kind.tags for kind in self.running]
            here = self._count(tags, static=not is_spread)
            self.counters.append(
                Counter(
                    family,
                    is_spread,
                    np.array([mine >= tags for mine in kinds], np.uint8),
                    self.families[family].sum(here)[: self.families[family].sets].copy(),
                )
            )
        return number
