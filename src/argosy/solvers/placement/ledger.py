"""The constraint manager's memory: active constraints, running containers, and counts of both.

Everything that a decision needs of what runs already is kept up to date as containers start and stop,
so that making a problem does not depend on how many applications there are. Constraints that say the
same of different subjects (each application about its own containers) share one `_Rule`, whose arrays
hold how many subjects of any of them are on each machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.constraint_parts import APP, atoms, leaves, tags_of
from argosy.model.constraints import Constraint, PlacementConstraint, SpreadConstraint
from argosy.model.errors import ModelError
from argosy.model.machines import MACHINE_GROUP
from argosy.solvers.placement.cluster import Cluster, Family, Kind, Running
from argosy.solvers.placement.forms import Term, alternatives
from argosy.solvers.placement.problem import (
    Choice,
    ChoiceAtom,
    ChoiceTerm,
    Counter,
    Item,
    Problem,
    Spread,
)

Tags = frozenset[str]
Counts = NDArray[np.int32]


class _Demand(msgspec.Struct, frozen=True):
    """What a tag constraint asks for, whoever its subjects are."""

    group: str
    counted: Tags
    least: int
    most: int | None
    weight: float
    hard: bool
    is_spread: bool
    #: Whether this is the tag constraint that pays for machines outside of all sets.
    is_first: bool


def _rarest(tags: Tags) -> str:
    """The tag that probably fewest others have: an application's own, if there is one."""
    return max(tags, key=lambda tag: (tag.startswith(APP), tag))


class _Rule:
    """The subjects of one demand, and how many of them run on each machine."""

    def __init__(self, machines: int, number: int) -> None:
        self.number = number
        #: How many constraints have these subjects.
        self.subjects: dict[Tags, int] = {}
        #: Subjects by one of their tags, to find those that a container's tags hold.
        self.by_tag: dict[str, set[Tags]] = {}
        self.both = np.zeros(machines, np.int32)
        self.other = np.zeros(machines, np.int32)

    def add(self, subject: Tags, times: int) -> None:
        left = self.subjects.get(subject, 0) + times
        name = _rarest(subject)
        if left:
            self.subjects[subject] = left
            self.by_tag.setdefault(name, set()).add(subject)
        else:
            del self.subjects[subject]
            self.by_tag[name].discard(subject)
            if not self.by_tag[name]:
                del self.by_tag[name]

    def times(self, tags: Tags) -> int:
        """How many constraints a container with these tags is a subject of."""
        return sum(
            self.subjects[subject]
            for tag in tags
            for subject in self.by_tag.get(tag, ())
            if subject <= tags
        )


class Ledger:
    """Node groups and machines are given once; room comes with each question."""

    def __init__(
        self,
        machines: int,
        families: Mapping[str, Family] | None = None,
        static: Sequence[tuple[Tags, NDArray[np.bool_]]] = (),
    ) -> None:
        self.machines = machines
        self.families = {**(families or {}), MACHINE_GROUP: Family.machines(machines)}
        self.static = static
        self._rules: dict[_Demand, _Rule] = {}
        self._made = 0
        #: Demands by one of the tags they count, and by one tag of each of their subjects.
        self._by_counted: dict[str, set[_Demand]] = {}
        self._by_subject: dict[str, dict[_Demand, int]] = {}
        #: Constraints with alternatives, and how many times each is active.
        self._choices: dict[Constraint, int] = {}
        self._popularity: dict[str, int] = {}
        #: Where containers with exactly these tags run.
        self._running: dict[Tags, dict[int, int]] = {}
        self._by_tag: dict[str, set[Tags]] = {}
        #: Running containers that carry all of some tags, per machine; of tags somebody asked for.
        self._counts: dict[Tags, Counts] = {}
        self._counts_by_tag: dict[str, set[Tags]] = {}

    def add(self, constraint: Constraint) -> None:
        """From now on the constraint is active; a node group that is not there is an error."""
        self._change(constraint, 1)

    def remove(self, constraint: Constraint) -> None:
        self._change(constraint, -1)

    def start(self, tags: Tags, machine: int, count: int = 1) -> None:
        self._move(tags, machine, count)

    def stop(self, tags: Tags, machine: int, count: int = 1) -> None:
        self._move(tags, machine, -count)

    def count(self, tags: Tags) -> Counts:
        """How many running containers on each machine carry all of the tags."""
        known = self._counts.get(tags)
        if known is None:
            known = self._counts[tags] = np.zeros(self.machines, np.int32)
            self._counts_by_tag.setdefault(_rarest(tags), set()).add(tags)
            for kind in self._holding(tags):
                for machine, count in self._running[kind].items():
                    known[machine] += count
        return known

    def _holding(self, tags: Tags) -> list[Tags]:
        """Kinds of running containers that carry all of the tags."""
        sets = [self._by_tag.get(tag, set()) for tag in tags]
        smallest = min(sets, key=len, default=set())
        return [kind for kind in smallest if kind >= tags]

    def _change(self, constraint: Constraint, times: int) -> None:
        for leaf in leaves(constraint.rule):
            if leaf.group not in self.families:
                raise ModelError(f"there is no node group {leaf.group!r}")
        for tag in tags_of(constraint.rule):
            self._popularity[tag] = self._popularity.get(tag, 0) + times
        terms = self._without_choice(constraint)
        if terms is None:
            left = self._choices.get(constraint, 0) + times
            if left:
                self._choices[constraint] = left
            else:
                del self._choices[constraint]
            return
        for subject, demand in _demands(constraint, terms):
            rule = self._rules.get(demand)
            if rule is None:
                self._made += 1
                rule = self._rules[demand] = _Rule(self.machines, self._made)
                self._by_counted.setdefault(_rarest(demand.counted), set()).add(demand)
            rule.add(subject, times)
            named = self._by_subject.setdefault(_rarest(subject), {})
            named[demand] = named.get(demand, 0) + times
            if not named[demand]:
                del named[demand]
            for kind in self._holding(subject):
                array = rule.both if kind >= demand.counted else rule.other
                for machine, count in self._running[kind].items():
                    array[machine] += times * count
            if not rule.subjects:
                self._forget(demand)

    def _forget(self, demand: _Demand) -> None:
        del self._rules[demand]
        self._by_counted[_rarest(demand.counted)].discard(demand)
        if any(other.counted == demand.counted for other in self._rules_counting(demand.counted)):
            return
        if self._counts.pop(demand.counted, None) is not None:
            self._counts_by_tag[_rarest(demand.counted)].discard(demand.counted)

    def _rules_counting(self, tags: Tags) -> list[_Demand]:
        return [d for tag in tags for d in self._by_counted.get(tag, ()) if d.counted <= tags]

    def _rules_about(self, tags: Tags) -> list[_Demand]:
        """Demands that some subject with these tags may make."""
        return [demand for tag in tags for demand in self._by_subject.get(tag, ())]

    def _without_choice(self, constraint: Constraint) -> list[tuple[Tags, Term]] | None:
        """The terms of all leaves, if nobody has alternatives and no sets overlap."""
        found: list[tuple[Tags, Term]] = []
        for leaf in leaves(constraint.rule):
            subject = frozenset(leaf.subject)
            ways = alternatives(leaf, subject)
            if len(ways) > 1 or any(term.never for term in ways[0]):
                return None
            if self.families[leaf.group].overlaps and not isinstance(leaf, SpreadConstraint):
                return None
            found.extend((subject, term) for term in ways[0])
        everyone = frozenset().union(*(subject for subject, _ in found))
        return found if len(alternatives(constraint.rule, everyone)) == 1 else None

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

    def problem(
        self,
        free: NDArray[np.int64],
        capacity: NDArray[np.int64],
        kinds: Sequence[Kind],
        smallest: Sequence[int] | None = None,
    ) -> Problem:
        """Where to put `kinds`, given what is active and what runs."""
        cluster = Cluster(free, capacity, self.families, self.static)
        return _Maker(self, cluster, tuple(kinds)).problem(smallest)

    def touched_by(self, kinds: Sequence[Kind]) -> list[tuple[_Demand, _Rule]]:
        """Demands that a container of some kind makes or is counted by, oldest first."""
        found: set[_Demand] = set()
        for kind in kinds:
            found.update(self._rules_counting(kind.tags))
            found.update(self._rules_about(kind.tags))
        rules = [(demand, self._rules[demand]) for demand in found]
        return sorted(rules, key=lambda pair: pair[1].number)

    def choices(self) -> Iterator[tuple[Constraint, int]]:
        yield from self._choices.items()

    def running(self, constraint: Constraint) -> Iterator[Running]:
        """Running containers that the constraint concerns, per kind."""
        found: dict[Tags, Counts] = {}
        for kind, machine, count in self.concerned(constraint):
            if kind not in found:
                found[kind] = np.zeros(self.machines, np.int32)
            found[kind][machine] = count
        for kind, counts in found.items():
            yield Running(kind, counts)

    def concerned(self, constraint: Constraint) -> Iterator[tuple[Tags, int, int]]:
        """The kinds of running containers that the constraint concerns, with machine and count."""
        kinds: set[Tags] = set()
        for leaf in leaves(constraint.rule):
            kinds.update(self._holding(frozenset(leaf.subject)))
        for kind in sorted(kinds, key=sorted):
            for machine, count in self._running[kind].items():
                yield kind, machine, count

    def popularity(self) -> dict[str, int]:
        return self._popularity


def problem_of(
    cluster: Cluster,
    kinds: Sequence[Kind],
    running: Sequence[Running] = (),
    constraints: Sequence[Constraint] = (),
    smallest: Sequence[int] | None = None,
) -> Problem:
    """A problem on its own, without a ledger to keep."""
    ledger = Ledger(cluster.machines, cluster.families, cluster.static)
    for constraint in constraints:
        ledger.add(constraint)
    for kind in running:
        for machine in np.flatnonzero(kind.counts).tolist():
            ledger.start(kind.tags, machine, int(kind.counts[machine]))
    return ledger.problem(cluster.free, cluster.capacity, kinds, smallest)


def _demands(
    constraint: Constraint, terms: Sequence[tuple[Tags, Term]]
) -> Iterator[tuple[Tags, _Demand]]:
    for subject, term in terms:
        for position, atom in enumerate(term.atoms):
            yield (
                subject,
                _Demand(
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


class _Maker:
    """One problem out of a ledger."""

    def __init__(self, ledger: Ledger, cluster: Cluster, kinds: tuple[Kind, ...]) -> None:
        self.ledger = ledger
        self.cluster = cluster
        self.kinds = kinds
        self.families: list[Family] = [ledger.families[MACHINE_GROUP]]
        self.numbers = {MACHINE_GROUP: 0}
        self.items: list[Item] = []
        self.spreads: list[Spread] = []
        self.counters: list[Counter] = []
        self.choices: list[Choice] = []
        self.concerned = 0.0
        self._known: dict[tuple[Tags, int, bool], int] = {}
        self._running: list[Running] = []
        self._empty: dict[int, Counts] = {}

    def problem(self, smallest: Sequence[int] | None) -> Problem:
        for demand, rule in self.ledger.touched_by(self.kinds):
            times = [rule.times(kind.tags) for kind in self.kinds]
            match = [demand.counted <= kind.tags for kind in self.kinds]
            if any(times) or any(match):
                self._rule(demand, rule, times, match)
        touched = [
            (constraint, active)
            for constraint, active in self.ledger.choices()
            if self._is_touched(constraint)
        ]
        for constraint, _ in touched:
            known = {kind.tags for kind in self._running}
            self._running += [r for r in self.ledger.running(constraint) if r.tags not in known]
        for constraint, active in touched:
            self._choice(constraint, active)
        dimensions = self.cluster.free.shape[1]
        least = np.zeros(dimensions, np.int64) if smallest is None else np.array(smallest, np.int64)
        return Problem(
            self.cluster,
            self.kinds,
            max((kind.app for kind in self.kinds), default=-1) + 1,
            least,
            self.ledger.popularity(),
            tuple(self.families),
            tuple(self.items),
            tuple(self.spreads),
            tuple(self.counters),
            tuple(self.choices),
            self.concerned,
        )

    def _family(self, group: str) -> int:
        number = self.numbers.get(group)
        if number is None:
            number = self.numbers[group] = len(self.families)
            self.families.append(self.ledger.families[group])
        return number

    def _sum(self, family: int, per_machine: Counts) -> Counts:
        if per_machine.any():
            return self.families[family].sum(per_machine)
        # A new application's own tags are nowhere yet: most counts are empty.
        empty = self._empty.get(family)
        if empty is None:
            empty = self._empty[family] = np.zeros(self.families[family].sets + 1, np.int32)
        return empty

    def _counted(self, tags: Tags) -> Counts:
        """Running containers and machines that carry the tags, per machine."""
        total = self.ledger.count(tags)
        for having, where in self.cluster.static:
            if having >= tags:
                total = total + where.astype(np.int32)
        return total

    def _rule(self, demand: _Demand, rule: _Rule, times: list[int], match: list[bool]) -> None:
        index = self._family(demand.group)
        subjects = sum(t * kind.count for t, kind in zip(times, self.kinds, strict=True))
        self.concerned += demand.weight * max(1, subjects)
        bits = np.array(match, np.uint8)
        # A kind that several of the constraints concern stands in as many items.
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
        self, demand: _Demand, index: int, concerned: NDArray[np.uint8], here: Counts
    ) -> None:
        inside = self._sum(index, self.ledger.count(demand.counted))[: self.families[index].sets]
        self.spreads.append(
            Spread(
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
        for leaf in leaves(constraint.rule):
            named = [leaf.subject]
            if isinstance(leaf, PlacementConstraint):
                named += [atom.tags for atom in atoms(leaf.expression)]
            if any(kind.tags.issuperset(tags) for tags in named for kind in self.kinds):
                return True
        return False

    def _pairs(self, constraint: Constraint) -> int:
        """Tag constraints times new subjects of each; one if new containers are merely counted."""
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
            here = self.ledger.count(tags) if is_spread else self._counted(tags)
            self.counters.append(
                Counter(
                    family,
                    is_spread,
                    np.array([mine >= tags for mine in everyone], np.uint8),
                    self._sum(family, here)[: self.families[family].sets].copy(),
                )
            )
        return number
