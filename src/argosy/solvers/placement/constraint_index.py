"""Active constraints, running containers, and counts of both.

Everything that a decision needs to know about running containers is kept up to date as they start and
stop, so that the cost of making a problem does not depend on the number of applications. Constraints
that differ only in their subjects (each application about its own containers) share one `Demand`, whose
`Demanders` count these subjects on each machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import conjuncts, leaves, names_of, tags_of
from argosy.model.errors import ModelError
from argosy.model.machines import MACHINE_GROUP
from argosy.solvers.placement.cluster import ContainerKind, Family, Running
from argosy.solvers.placement.demands import Demand, Demanders, Tags, demands_of, rarest
from argosy.solvers.placement.forms import without_choice
from argosy.solvers.placement.problem import TagCounts


class ConstraintIndex:
    """Node groups and machines are given once; free room is given with each question."""

    def __init__(
        self,
        machines: int,
        families: Mapping[str, Family] | None = None,
        static: Sequence[tuple[Tags, NDArray[np.bool_]]] = (),
    ) -> None:
        self.machines = machines
        self.families = {**(families or {}), MACHINE_GROUP: Family.machines(machines)}
        self._overlapping = frozenset(n for n, family in self.families.items() if family.overlaps)
        self.static = static
        self._rules: dict[Demand, Demanders] = {}
        self._made = 0
        #: Demands by one of the tags they count, and by one tag of each of their subjects.
        self._by_counted: dict[str, set[Demand]] = {}
        self._by_subject: dict[str, dict[Demand, int]] = {}
        #: Constraints with alternatives, and how many times each is active.
        self._choices: dict[Constraint, int] = {}
        self._popularity: dict[str, int] = {}
        #: The machines on which containers with exactly these tags run.
        self._running: dict[Tags, dict[int, int]] = {}
        self._by_tag: dict[str, set[Tags]] = {}
        #: Running containers with all of certain tags, per machine; only for tags that were asked for.
        self._counts: dict[Tags, TagCounts] = {}
        self._counts_by_tag: dict[str, set[Tags]] = {}

    def add(self, constraint: Constraint) -> None:
        """Activates the constraint; an unknown node group is an error."""
        self._change(constraint, 1)

    def remove(self, constraint: Constraint) -> None:
        self._change(constraint, -1)

    def start(self, tags: Tags, machine: int, count: int = 1) -> None:
        self._move(tags, machine, count)

    def stop(self, tags: Tags, machine: int, count: int = 1) -> None:
        self._move(tags, machine, -count)

    def count(self, tags: Tags) -> TagCounts:
        """Number of running containers with all of the tags, per machine."""
        known = self._counts.get(tags)
        if known is None:
            known = self._counts[tags] = np.zeros(self.machines, np.int32)
            self._counts_by_tag.setdefault(rarest(tags), set()).add(tags)
            for kind in self._holding(tags):
                for machine, count in self._running[kind].items():
                    known[machine] += count
        return known

    def _holding(self, tags: Tags) -> list[Tags]:
        """Kinds of running containers with all of the tags."""
        sets = [self._by_tag.get(tag, set()) for tag in tags]
        smallest = min(sets, key=len, default=set())
        return [kind for kind in smallest if kind >= tags]

    def _change(self, constraint: Constraint, times: int) -> None:
        for leaf in leaves(constraint.rule):
            if leaf.group not in self.families:
                raise ModelError(f"there is no node group {leaf.group!r}")
        for tag in tags_of(constraint.rule):
            self._popularity[tag] = self._popularity.get(tag, 0) + times
        for part in conjuncts(constraint):
            self._change_part(part, times)

    def _change_part(self, constraint: Constraint, times: int) -> None:
        terms = without_choice(constraint, self._overlapping)
        if terms is None:
            left = self._choices.get(constraint, 0) + times
            if left:
                self._choices[constraint] = left
            else:
                del self._choices[constraint]
            return
        for subject, demand in demands_of(constraint, terms):
            rule = self._rules.get(demand)
            if rule is None:
                self._made += 1
                rule = self._rules[demand] = Demanders(self.machines, self._made)
                self._by_counted.setdefault(rarest(demand.counted), set()).add(demand)
            rule.add(subject, times)
            named = self._by_subject.setdefault(rarest(subject), {})
            named[demand] = named.get(demand, 0) + times
            if not named[demand]:
                del named[demand]
            for kind in self._holding(subject):
                array = rule.both if kind >= demand.counted else rule.other
                for machine, count in self._running[kind].items():
                    array[machine] += times * count
            if not rule.subjects:
                self._forget(demand)

    def _forget(self, demand: Demand) -> None:
        del self._rules[demand]
        self._by_counted[rarest(demand.counted)].discard(demand)
        if any(other.counted == demand.counted for other in self._rules_counting(demand.counted)):
            return
        if self._counts.pop(demand.counted, None) is not None:
            self._counts_by_tag[rarest(demand.counted)].discard(demand.counted)

    def _rules_counting(self, tags: Tags) -> list[Demand]:
        return [d for tag in tags for d in self._by_counted.get(tag, ()) if d.counted <= tags]

    def _rules_about(self, tags: Tags) -> list[Demand]:
        """Demands that may have a subject with these tags."""
        return [demand for tag in tags for demand in self._by_subject.get(tag, ())]

    def _move(self, tags: Tags, machine: int, count: int) -> None:
        where = self._running.get(tags)
        if where is None:
            where = self._running[tags] = {}
            for tag in tags:
                self._by_tag.setdefault(tag, set()).add(tags)
        left = where.get(machine, 0) + count
        if left < 0:
            raise ModelError(f"a container with {sorted(tags)} stops that is not there")
        if left:
            where[machine] = left
        else:
            where.pop(machine, None)
        if not where:
            del self._running[tags]
            for tag in tags:
                self._by_tag[tag].discard(tags)
                if not self._by_tag[tag]:
                    del self._by_tag[tag]
        for tag in tags:
            for known in self._counts_by_tag.get(tag, ()):
                if known <= tags:
                    self._counts[known][machine] += count
        for demand in dict.fromkeys(self._rules_about(tags)):
            rule = self._rules[demand]
            if times := rule.times(tags):
                array = rule.both if demand.counted <= tags else rule.other
                array[machine] += times * count

    def touched_by(self, kinds: Sequence[ContainerKind]) -> list[tuple[Demand, Demanders]]:
        """Demands that a container of some kind is a subject of or is counted by, oldest first."""
        found: set[Demand] = set()
        for kind in kinds:
            found.update(self._rules_counting(kind.tags))
            found.update(self._rules_about(kind.tags))
        rules = [(demand, self._rules[demand]) for demand in found]
        return sorted(rules, key=lambda pair: pair[1].number)

    def names(self, tags: Tags) -> bool:
        """Whether a container with these tags is a subject of an active constraint, or counted by
        one."""
        if self._rules_counting(tags):
            return True
        if any(self._rules[demand].times(tags) for demand in self._rules_about(tags)):
            return True
        return any(named <= tags for choice in self._choices for named in names_of(choice.rule))

    def choices(self) -> Iterator[tuple[Constraint, int]]:
        yield from self._choices.items()

    def running(self, constraint: Constraint) -> Iterator[Running]:
        """Running containers that the constraint concerns, by kind."""
        found: dict[Tags, TagCounts] = {}
        for kind, machine, count in self.concerned(constraint):
            if kind not in found:
                found[kind] = np.zeros(self.machines, np.int32)
            found[kind][machine] = count
        for kind, counts in found.items():
            yield Running(kind, counts)

    def concerned(self, constraint: Constraint) -> Iterator[tuple[Tags, int, int]]:
        """The kinds of running containers that the constraint concerns, each with machine and count."""
        kinds: set[Tags] = set()
        for leaf in leaves(constraint.rule):
            kinds.update(self._holding(frozenset(leaf.subject)))
        for kind in sorted(kinds, key=sorted):
            for machine, count in self._running[kind].items():
                yield kind, machine, count

    def popularity(self) -> dict[str, int]:
        return self._popularity
