"""Demands of constraints. Constraints that differ only in their subjects share one demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import APP
from argosy.solvers.placement.cluster import ContainerKind
from argosy.solvers.placement.forms import Term

Tags = frozenset[str]


class Demand(msgspec.Struct, frozen=True):
    """What a tag constraint demands, regardless of its subjects."""

    group: str
    counted: Tags
    least: int
    most: int | None
    weight: float
    hard: bool
    is_spread: bool
    #: Whether this tag constraint accounts for the cost of machines outside all sets.
    is_first: bool


def rarest(tags: Tags) -> str:
    """The tag that probably fewest others have: an application's own, if there is one."""
    return max(tags, key=lambda tag: (tag.startswith(APP), tag))


class Demanders:
    """The subjects of one demand, and the number of them running on each machine."""

    def __init__(self, machines: int, number: int) -> None:
        self.number = number
        #: Number of constraints per subject.
        self.subjects: dict[Tags, int] = {}
        #: Subjects by one of their tags, to find those matched by a container's tags.
        self.by_tag: dict[str, set[Tags]] = {}
        self.both = np.zeros(machines, np.int32)
        self.other = np.zeros(machines, np.int32)

    def add(self, subject: Tags, times: int) -> None:
        left = self.subjects.get(subject, 0) + times
        name = rarest(subject)
        if left:
            self.subjects[subject] = left
            self.by_tag.setdefault(name, set()).add(subject)
        else:
            del self.subjects[subject]
            self.by_tag[name].discard(subject)
            if not self.by_tag[name]:
                del self.by_tag[name]

    def times_of(
        self, kinds: Sequence[ContainerKind], having: Mapping[str, Sequence[int]]
    ) -> list[int]:
        """As `times`, for several kinds of containers; `having` maps each tag to the kinds that have
        it."""
        times = [0] * len(kinds)
        for tag, members in having.items():
            for subject in self.by_tag.get(tag, ()):
                for number in members:
                    if subject <= kinds[number].tags:
                        times[number] += self.subjects[subject]
        return times

    def times(self, tags: Tags) -> int:
        """The number of constraints that have a container with these tags as a subject."""
        return sum(
            self.subjects[subject]
            for tag in tags
            for subject in self.by_tag.get(tag, ())
            if subject <= tags
        )


def demands_of(
    constraint: Constraint, terms: Sequence[tuple[Tags, Term]]
) -> Iterator[tuple[Tags, Demand]]:
    for subject, term in terms:
        for position, atom in enumerate(term.atoms):
            yield (
                subject,
                Demand(
                    term.group,
                    frozenset(atom.tags),
                    atom.least,
                    atom.most,
                    constraint.weight,
                    constraint.hard,
                    term.is_spread,
                    position == 0,
                ),
            )
