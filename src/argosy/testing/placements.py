"""Small random placement problems, all answers to them, and their value according to the reference.

Shares nothing with the algorithms except the description of the problem: containers are listed one by
one and judged by `argosy.model.constraints.meaning`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product

import msgspec
import numpy as np

from argosy.model.constraints import Constraint, PlacementConstraint
from argosy.model.constraints.meaning import Container, Judgement, Meaning
from argosy.model.constraints.parts import atoms, conjuncts, leaves
from argosy.model.constraints.text import parse_constraint
from argosy.model.machines import Machine, static_tags
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.solvers.placement.answer import Objective
from argosy.solvers.placement.cluster import ContainerKind, Family, PlacementCluster, Running
from argosy.solvers.placement.placement_state import problem_of
from argosy.solvers.placement.problem import PlacementProblem

TAGS = ("a", "b", "c")


class PlacementInstance(msgspec.Struct, frozen=True):
    """Machines, running containers, new kinds (application, tags, memory, count), and constraints."""

    machines: tuple[Machine, ...]
    running: tuple[tuple[frozenset[str], int, int], ...]
    kinds: tuple[tuple[int, frozenset[str], int, int], ...]
    constraints: tuple[Constraint, ...]
    smallest: int = 2

    def problem(self) -> PlacementProblem:
        capacity = np.array([[machine.capacity.memory] for machine in self.machines], np.int64)
        free = capacity.copy()
        kinds: dict[frozenset[str], np.ndarray] = {}
        for tags, machine, memory in self.running:
            free[machine] -= memory
            counts = kinds.setdefault(tags, np.zeros(len(self.machines), np.int32))
            counts[machine] += 1
        families = {}
        for group in sorted({name for machine in self.machines for name in machine.joins}):
            names = sorted({s for m in self.machines for s in m.joins.get(group, ())})
            joins = [[names.index(s) for s in m.joins.get(group, ())] for m in self.machines]
            families[group] = Family.of(group, joins, len(names))
        static = [
            (static_tags(machine.attributes), np.arange(len(self.machines)) == number)
            for number, machine in enumerate(self.machines)
            if machine.attributes
        ]
        return problem_of(
            PlacementCluster(free, capacity, families, static),
            [
                ContainerKind(app, tags, np.array([m], np.int64), n)
                for app, tags, m, n in self.kinds
            ],
            [Running(tags, counts) for tags, counts in kinds.items()],
            self.constraints,
            (self.smallest,),
        )

    def containers(self, kinds: Sequence[int], machines: Sequence[int]) -> list[Container]:
        running = [Container(tags, self.machines[at].name) for tags, at, _ in self.running]
        return running + [
            Container(self.kinds[kind][1], self.machines[at].name)
            for kind, at in zip(kinds, machines, strict=True)
        ]

    def judge(self, kinds: Sequence[int], machines: Sequence[int]) -> Judgement:
        return Meaning(self.machines).judge(self.constraints, self.containers(kinds, machines))

    def breaks_hard(self, kinds: Sequence[int], machines: Sequence[int]) -> bool:
        """Whether a new container violates a hard constraint, or a running one is worse off."""
        hard = [part for each in self.constraints if each.hard for part in conjuncts(each)]
        meaning = Meaning(self.machines)
        before = {
            (violation.constraint, violation.container): violation.extent
            for violation in meaning.judge(hard, self.containers((), ())).violations
        }
        return any(
            violation.extent > before.get((violation.constraint, violation.container), 0.0) + 1e-9
            for violation in meaning.judge(hard, self.containers(kinds, machines)).violations
        )

    def value(self, kinds: Sequence[int], machines: Sequence[int], aim: Objective) -> float | None:
        """The objective, computed from its definition; None if the answer is not allowed."""
        room = [machine.capacity.memory for machine in self.machines]
        for _, at, memory in self.running:
            room[at] -= memory
        whole_before = [free >= self.smallest for free in room]
        for kind, at in zip(kinds, machines, strict=True):
            room[at] -= self.kinds[kind][2]
        if min(room) < 0 or self.breaks_hard(kinds, machines):
            return None
        apps = {app for app, *_ in self.kinds}
        placed = 0
        for app in apps:
            mine = [(number, kind[3]) for number, kind in enumerate(self.kinds) if kind[0] == app]
            have = [list(kinds).count(number) == count for number, count in mine]
            if any(list(kinds).count(number) for number, _ in mine) and not all(have):
                return None
            placed += all(have)
        fragmented = sum(
            was and free < self.smallest for was, free in zip(whole_before, room, strict=True)
        )
        added = self.judge(kinds, machines).total - self.judge((), ()).total
        concerned = sum(self._concerned(constraint) for constraint in self.constraints)
        containers = sum(kind[3] for kind in self.kinds)
        return (
            (aim.placed + aim.first) * placed / len(apps)
            - aim.violation * added / max(concerned, 1e-12)
            - aim.fragmented * fragmented / containers
        )

    def _concerned(self, constraint: Constraint) -> float:
        """Its weight for each pair of a tag constraint and a new container that it concerns or
        counts."""
        total = 0
        for leaf in leaves(constraint.rule):
            subjects = sum(kind[3] for kind in self.kinds if kind[1].issuperset(leaf.subject))
            counted = [leaf.subject]
            if isinstance(leaf, PlacementConstraint):
                counted = [atom.tags for atom in atoms(leaf.expression)]
            for tags in counted:
                if subjects or any(kind[1].issuperset(tags) for kind in self.kinds):
                    total += max(1, subjects)
        return constraint.weight * total

    def answers(self) -> Iterator[tuple[list[int], list[int]]]:
        """Every way to place some of the applications completely."""
        apps = sorted({app for app, *_ in self.kinds})
        where = range(len(self.machines))
        for chosen in product((False, True), repeat=len(apps)):
            mine = [n for n, kind in enumerate(self.kinds) if chosen[apps.index(kind[0])]]
            ways = [combinations_with_replacement(where, self.kinds[n][3]) for n in mine]
            for way in product(*ways):
                kinds = [n for n, spots in zip(mine, way, strict=True) for _ in spots]
                yield kinds, [spot for spots in way for spot in spots]


def _some(random: Random, values: Sequence[str], least: int = 1) -> list[str]:
    found = [value for value in values if random.uniform() < 0.5]
    while len(found) < least:
        value = values[random.below(len(values))]
        if value not in found:
            found.append(value)
    return found


def _atom(random: Random, most: int = 3) -> str:
    names = [*TAGS, "gpu"] if random.uniform() < 0.15 else TAGS
    tags = " & ".join(_some(random, names)[:2])
    least = random.below(most)
    bound = "inf" if random.uniform() < 0.4 else str(least + random.below(3))
    return f"{{{tags}, {least}, {bound}}}"


def random_constraint(random: Random, *, plain: bool = False, hard: float = 0.2) -> Constraint:
    """Any form, hard with this probability; with `plain`, one tag constraint in a group whose sets do
    not overlap."""
    groups = ("machine", "rack") if plain else ("machine", "rack", "zone")

    def leaf() -> str:
        subject = " & ".join(_some(random, TAGS)[:2])
        group = groups[random.below(len(groups))]
        shape = 0.0 if plain else random.uniform()
        if shape > 0.85:
            least = random.below(3)
            return f"{subject} -> spread {{{least}, {least + random.below(3)}}} over {group}"
        expression = _atom(random)
        if shape > 0.7:
            expression = f"{expression} or {_atom(random)}"
        elif shape > 0.6:
            expression = f"{expression} and {_atom(random)}"
        elif shape > 0.5:
            expression = f"not {expression}"
        return f"{subject} -> {expression} in {group}"

    text = leaf()
    if not plain and random.uniform() < 0.25:
        text = f"{text} {'or' if random.uniform() < 0.6 else 'and'} {leaf()}"
    text += f" weight {1 + random.below(3)}"
    return parse_constraint(text + (" hard" if random.uniform() < hard else ""))


def random_instance(
    random: Random, *, plain: bool = False, running: int = 3, hard: float = 0.2
) -> PlacementInstance:
    """One or two applications of at most eight containers on three or four machines, beside at most
    `running` containers."""
    count = 3 + random.below(2)
    machines = tuple(
        Machine(
            f"m{n}",
            Resources(memory=4 + random.below(5)),
            {"gpu": "true"} if random.uniform() < 0.3 else {},
            {"rack": (f"r{n // 2}",)} | ({} if n == 0 and not plain else {"zone": zone}),
        )
        for n in range(count)
        for zone in [("z0", "z1")[: 1 + random.below(2)] if n % 2 else ("z1",)]
    )
    room = [machine.capacity.memory for machine in machines]
    there: list[tuple[frozenset[str], int, int]] = []
    for _ in range(random.below(running + 1)):
        tags, at = frozenset(_some(random, TAGS)), random.below(count)
        if room[at]:
            there.append((tags, at, 1))
            room[at] -= 1
    kinds: list[tuple[int, frozenset[str], int, int]] = []
    for app in range(1 + random.below(2)):
        for _ in range(1 + random.below(2)):
            tags = frozenset(_some(random, TAGS))
            kinds.append((app, tags, 1 + random.below(3), 1 + random.below(2)))
    constraints = tuple(
        random_constraint(random, plain=plain, hard=hard) for _ in range(1 + random.below(3))
    )
    return PlacementInstance(machines, tuple(there), tuple(kinds), constraints)
