"""Demands that no scheduler can ever meet: tasks larger than every machine, gangs and services larger
than the empty cluster, and hard constraints that keep apart more tasks than there are places.

Only what is certain is found. Tasks that end may take turns, so their number never matters unless they
have to start together. Machines count at the largest size they have during a run, and with every label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.constraints import (
    AllTags,
    Constraint,
    PlacementConstraint,
    TagConstraint,
)
from argosy.model.constraints.parts import conjuncts, container_tags, of_job
from argosy.model.constraints.text import format_constraint
from argosy.model.devices import empty_slots
from argosy.model.jobs import SERVICE, Job, TaskGroup
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.resources import Resources, dimensions_of
from argosy.model.units import format_amount, format_count
from argosy.model.wording import format_request, format_requires, listed, listed_names

_SlotCounts = NDArray[np.int64]
#: A machine that a request of nothing fits has room for this many.
_PLENTY: Final = 2**40


class UnmeetableDemand(msgspec.Struct, frozen=True):
    """A demand of one job that can never be met."""

    code: Literal["too-large", "no-machine", "gang", "service", "apart"]
    job: str
    #: A sentence without the job's name and without a full stop.
    problem: str
    #: What would make it possible.
    remedy: str
    #: The group of tasks concerned; -1: several.
    group: int = -1
    #: How many of the tasks concerned can run at once.
    most: int = 0

    def __str__(self) -> str:
        return f"{self.job} {self.problem}"


class Feasibility:
    """What fits on given machines when they are empty. `devices` is the resource that consists of
    devices."""

    def __init__(
        self,
        machines: Sequence[Machine],
        constraints: Iterable[Constraint] = (),
        devices: str | None = None,
    ) -> None:
        self._machines = machines
        self._devices = devices
        self._operator = [part for c in constraints if c.hard for part in conjuncts(c)]
        self._dimensions = dimensions_of(machine.capacity for machine in machines)
        self._capacity = np.array(
            [machine.capacity.vector(self._dimensions) for machine in machines], np.int64
        ).reshape(len(machines), len(self._dimensions))
        self._slots: dict[
            tuple[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]], _SlotCounts
        ]
        self._slots = {}
        self._sets: dict[str, list[list[int]] | None] = {}

    def of(self, job: Job) -> list[UnmeetableDemand]:
        """What the job asks for in vain; the first reason for each group of tasks."""
        found = []
        for number, group in enumerate(job.groups):
            demand = self._of_group(job, number, group)
            if demand is not None:
                found.append(demand)
        if found:
            return found
        own = [part for c in of_job(job.id, job.constraints) if c.hard for part in conjuncts(c)]
        judged = (self._apart(job, constraint) for constraint in (*own, *self._operator))
        return [demand for demand in judged if demand is not None]

    def slots(self, group: TaskGroup) -> _SlotCounts:
        """How many tasks of the group each machine holds if it is empty."""
        key = (tuple(group.request.items()), tuple(sorted(group.requires.items())))
        known = self._slots.get(key)
        if known is None:
            known = self._slots[key] = self._count(group.request, group.requires)
        return known

    def having(self, requires: Mapping[str, str]) -> list[int]:
        """The machines with these attributes."""
        wanted = requires.items()
        return [
            number
            for number, machine in enumerate(self._machines)
            if all(machine.attributes.get(key) == value for key, value in wanted)
        ]

    def _count(self, request: Resources, requires: Mapping[str, str]) -> _SlotCounts:
        counts = np.zeros(len(self._machines), np.int64)
        amounts = dict(request.items())
        if any(amounts[name] for name in amounts if name not in self._dimensions):
            return counts
        asked = np.array([amounts.get(name, 0) for name in self._dimensions], np.int64)
        wanted = asked > 0
        fits = np.full(len(counts), _PLENTY, np.int64)
        if wanted.any():
            fits = (self._capacity[:, wanted] // asked[wanted]).min(axis=1)
        if self._devices in self._dimensions and amounts.get(self._devices):
            there = self._capacity[:, self._dimensions.index(self._devices)].tolist()
            known = {each: empty_slots(each, amounts[self._devices]) for each in set(there)}
            fits = np.minimum(fits, np.array([known[each] for each in there], np.int64))
        if requires:
            mine = self.having(requires)
            counts[mine] = fits[mine]
            return counts
        return fits

    def _of_group(self, job: Job, number: int, group: TaskGroup) -> UnmeetableDemand | None:
        slots = self.slots(group)
        if not slots.any():
            code, problem, remedy = self._no_machine(group)
            return UnmeetableDemand(code, job.id, problem, remedy, number)
        most = int(slots.sum())
        if most >= group.count or not (job.gang or group.endless):
            return None
        where = listed_names(self._machines[at].name for at in np.flatnonzero(slots).tolist())
        on = f" on machines with {format_requires(group.requires)}" if group.requires else ""
        if len(job.groups) > 1:
            on += f" (group {number + 1})"
        verb = "is a gang of" if job.gang else "has"
        until = "" if job.gang else " that run until stopped"
        problem = (
            f"{verb} {format_count(group.count, 'task')}{until}, each asking for "
            f"{format_request(group.request)}{on}: even if empty, the cluster holds {most:,} of them,"
            f" on {where}"
        )
        more = group.count - most
        remedy = f"{format_count(more, 'task')} fewer, or machines for {more:,} more"
        return UnmeetableDemand(
            "gang" if job.gang else "service", job.id, problem, remedy, number, most
        )

    def _no_machine(self, group: TaskGroup) -> tuple[Literal["too-large", "no-machine"], str, str]:
        """Why not one task of the group fits an empty machine."""
        having = self.having(group.requires)
        if not having:
            wanted = format_requires(group.requires)
            return (
                "no-machine",
                f"requires {wanted}, which no machine has",
                f"a machine with {wanted}, or no such requirement",
            )
        among = f" of those with {format_requires(group.requires)}" if group.requires else ""
        lacking: list[tuple[str, int, int]] = []
        for name, amount in group.request.items():
            largest = 0
            if name in self._dimensions:
                largest = int(self._capacity[having, self._dimensions.index(name)].max())
            if amount > largest:
                lacking.append((name, amount, largest))
        if not lacking:
            asked = format_request(group.request)
            problem = f"has tasks that ask for {asked} together, which no one machine{among} has"
            return "too-large", problem, f"a machine with {asked}, or smaller tasks"
        asked = listed([format_amount(name, amount) for name, amount, _ in lacking])
        have = listed(
            [
                f"{format_amount(name, largest)}" if largest else f"no {name}"
                for name, _, largest in lacking
            ]
        )
        problem = f"has tasks that ask for {asked}; the largest machine{among} has {have}"
        if not any(largest for _, _, largest in lacking):
            problem = f"has tasks that ask for {asked}; no machine{among} has any"
        less = listed([format_amount(name, amount - largest) for name, amount, largest in lacking])
        return "too-large", problem, f"ask for {less} less, or add a machine with {asked}"

    def _apart(self, job: Job, constraint: Constraint) -> UnmeetableDemand | None:
        """Tasks that a constraint allows only so often in a node set, and that must all run at once."""
        rule = constraint.rule
        if not isinstance(rule, PlacementConstraint) or not (job.gang or _stands(job)):
            return None
        sets = self._sets_of(rule.group)
        if sets is None:
            return None
        for atom in _upper_bounds(rule):
            counted = {*rule.subject, *atom.tags}
            mine = [g for g in job.groups if counted.issubset(container_tags(job, g))]
            count = sum(group.count for group in mine)
            if not mine:
                continue
            assert atom.most is not None
            slots = np.sum([self.slots(group) for group in mine], axis=0)
            usable = [int(slots[members].sum()) for members in sets]
            most = sum(min(atom.most + 1, room) for room in usable)
            if most >= count:
                continue
            places = sum(room > 0 for room in usable)
            noun = rule.group
            each = format_count(atom.most + 1, "task")
            problem = (
                f"has {format_count(count, 'task')} that must run at once, but "
                f"'{format_constraint(constraint)}' allows {each} per {noun}, so "
                f"{format_count(places, noun)} with room can take only {most:,}"
            )
            more = format_count(count - most, "task")
            remedy = f"{more} fewer, another {noun}, or a constraint that is not hard"
            return UnmeetableDemand("apart", job.id, problem, remedy, most=most)
        return None

    def _sets_of(self, group: str) -> list[list[int]] | None:
        """The machines of each set; None if a machine is in several, because then it may use any."""
        if group not in self._sets:
            self._sets[group] = self._find_sets(group)
        return self._sets[group]

    def _find_sets(self, group: str) -> list[list[int]] | None:
        if group == MACHINE_GROUP:
            return [[number] for number in range(len(self._machines))]
        members: dict[str, list[int]] = {}
        for number, machine in enumerate(self._machines):
            names = machine.joins.get(group, ())
            if len(names) > 1:
                return None
            for name in names:
                members.setdefault(name, []).append(number)
        return list(members.values())


def _stands(job: Job) -> bool:
    """Whether its tasks run beside each other: they never end, or form a long-running application."""
    return job.kind == SERVICE or all(group.endless for group in job.groups)


def _upper_bounds(rule: PlacementConstraint) -> Iterator[TagConstraint]:
    """The bounds that hold wherever the rule does."""
    inside = rule.expression
    for part in inside.parts if isinstance(inside, AllTags) else (inside,):
        if isinstance(part, TagConstraint) and part.most is not None:
            yield part
