"""Machines, containers and constraints as the arrays that algorithms work on.

A `PlacementState` makes problems. Constraints that concern no new container, neither as subject nor by
what they count, cannot be kept or broken by the decision and are left out. The others become

    items    one tag constraint of constraints without alternatives, over sets that do not overlap;
             constraints that differ in their subjects alone share an item
    spreads  a bound on the number of sets in use
    choices  everything else: constraints with alternatives, or over sets that overlap

with the counts of what runs already. `core/place/problem.hpp` states the mathematics.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy._core import Placer
from argosy.solvers.placement.cluster import ContainerKind, Family, PlacementCluster

#: An application is worth at most about this many of the lowest precedence.
_LARGEST_IMPORTANCE: Final = 10_000
TagCounts = NDArray[np.int32]
Bits = NDArray[np.uint8]


class Item(msgspec.Struct, frozen=True):
    """See `core/place/problem.hpp`; arrays have an extra set for machines outside all sets."""

    family: int
    least: int
    most: int | None
    weight: float
    outside: float
    hard: bool
    subject: Bits
    match: Bits
    gamma: TagCounts
    both: TagCounts
    other: TagCounts


class SpreadRows(msgspec.Struct, frozen=True):
    family: int
    least: int
    most: int | None
    weight: float
    hard: bool
    subject: Bits
    inside: TagCounts
    subjects: int


class Counter(msgspec.Struct, frozen=True):
    """Number of containers with certain tags in each set; one bit per kind, running kinds included."""

    family: int
    is_spread: bool
    match: Bits
    count: TagCounts


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
    """For each kind, new ones first and then running ones: its alternatives (empty: not concerned), and
    for running kinds the number on each machine."""

    weight: float
    hard: bool
    alternatives: tuple[tuple[tuple[ChoiceTerm, ...], ...], ...]
    here: tuple[TagCounts, ...]


class PlacementProblem(msgspec.Struct, frozen=True):
    cluster: PlacementCluster
    kinds: tuple[ContainerKind, ...]
    apps: int
    #: The smallest useful room: a machine with less in some dimension is fragmented.
    smallest: NDArray[np.int64]
    #: Number of constraints that name each tag, for the order by popularity.
    popularity: dict[str, int]
    families: tuple[Family, ...]
    items: tuple[Item, ...]
    spreads: tuple[SpreadRows, ...]
    counters: tuple[Counter, ...]
    choices: tuple[Choice, ...]
    #: Total weight of all pairs of a tag constraint and a new container that it concerns; a constraint
    #: that only counts new containers has one pair.
    concerned: float
    #: What placing each application is worth: 1 for the lowest precedence among them, and for each
    #: higher one more than all applications below it together.
    importance: tuple[float, ...]

    @property
    def tiers(self) -> list[int]:
        """Per kind, how many higher precedences there are."""
        known = sorted({kind.precedence for kind in self.kinds}, reverse=True)
        return [known.index(kind.precedence) for kind in self.kinds]

    @property
    def containers(self) -> int:
        return sum(kind.count for kind in self.kinds)

    def fitting(self) -> Iterator[NDArray[np.bool_]]:
        """Per kind, the machines that it may go to and that have room for one container. Kinds that ask
        for the same share an array."""
        known: dict[bytes, NDArray[np.bool_]] = {}
        for kind in self.kinds:
            request = kind.request.tobytes()
            fits = known.get(request)
            if fits is None:
                fits = known[request] = np.all(self.cluster.free >= kind.request, axis=1)
            yield fits if kind.allowed is None else fits & kind.allowed

    def placer(self) -> Placer:
        """The native form of this problem."""
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
        if any(tiers := self.tiers):
            native.rank(np.array(tiers, np.int32))
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


def importance_of(kinds: Sequence[ContainerKind], apps: int) -> tuple[float, ...]:
    """See `PlacementProblem.importance`. With many different precedences the numbers would leave the
    range in which solvers are exact, so the lowest of them count as one."""
    precedence = [0] * apps
    for kind in kinds:
        precedence[kind.app] = kind.precedence
    count = collections.Counter(precedence)
    worth: dict[int, float] = {}
    value, below = 1.0, 0.0
    for level in reversed(_highest(count)):
        worth[level] = value
        below += value * count[level]
        value = 1.0 + below
    return tuple(worth.get(level, 1.0) for level in precedence)


def _highest(count: collections.Counter[int]) -> list[int]:
    """The precedences to tell apart, highest first."""
    levels: list[int] = []
    product = 1
    for level in sorted(count, reverse=True):
        product *= 1 + count[level]
        if levels and product > _LARGEST_IMPORTANCE:
            break
        levels.append(level)
    return levels


def _raw(term: ChoiceTerm) -> tuple[int, bool, int, list[tuple[int, int, int, bool]]]:
    inside = [(a.counter, a.least, -1 if a.most is None else a.most, a.self) for a in term.atoms]
    return term.family, term.is_spread, term.never, inside
