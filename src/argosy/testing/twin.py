"""The cell's twin: slow, simple and obviously right.

Dictionaries and lists, no native code, no cached counts. All-or-nothing is done by copying the whole
state before, and restoring the copy. Tests drive a `Cell` and its `TwinCell`
with the same transactions and compare every outcome and the whole state.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from argosy.model.errors import ModelError
from argosy.model.explanations import CONFLICTS, Refusal, Why
from argosy.model.jobs import job_of
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.resources import MOST_DIMENSIONS, Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
    Transaction,
)

_VERSIONS = 2**32


class TwinMachine(msgspec.Struct):
    description: Machine
    capacity: dict[str, int]
    version: int = 0
    is_draining: bool = False
    is_gone: bool = False


class TwinClaim(msgspec.Struct, frozen=True):
    task: int
    machine: int
    shape: int
    scheduler: str
    sequence: int
    is_assumed: bool = False


class TwinShape(msgspec.Struct, frozen=True):
    #: Nonzero amounts by name, in the order of names.
    request: tuple[tuple[str, int], ...]
    tags: frozenset[str]
    precedence: int

    def asks(self, name: str) -> int:
        return dict(self.request).get(name, 0)


class TwinOutcome(msgspec.Struct, frozen=True):
    """Like `Outcome`, in lists."""

    accepted: list[bool]
    whys: list[int]
    #: Names of dimensions; empty if there is none.
    details: list[str]
    amounts: list[int]
    machines: list[int]
    evicted: list[int]
    evicted_from: list[int]
    unconfirmed: tuple[Refusal, ...]
    unforgotten: tuple[Refusal, ...]
    unreleased: tuple[Refusal, ...]
    added: tuple[int, ...]


class _State(msgspec.Struct):
    """The state that a failed all-or-nothing group restores."""

    machines: list[TwinMachine]
    claims: dict[int, TwinClaim]
    last_sequence: int
    changed: set[int]
    evicted: list[tuple[int, int]]


class TwinCell:
    def __init__(self, dimensions: tuple[str, ...], groups: Mapping[str, Sequence[str]]) -> None:
        self.dimensions = dimensions
        self.groups = {group: list(sets) for group, sets in groups.items()}
        #: Resources that requests named before any machine had them, in order of mention.
        self.apart: list[str] = []
        self.shapes: list[TwinShape] = []
        self.limits: dict[str, tuple[dict[str, int], int | None, int | None]] = {}
        self.state = _State([], {}, 0, set(), [])
        #: Transactions that claimed something on each machine, and where the current one has; never
        #: undone.
        self.sequences: Counter[int] = Counter()
        self._claimed: set[int] = set()

    def shape(self, request: Resources, tags: Iterable[str] = (), precedence: int = 0) -> int:
        amounts = tuple(sorted((name, amount) for name, amount in request.items() if amount))
        self.apart.extend(
            name
            for name, amount in request.items()
            if amount and name not in (*self.dimensions, *self.apart)
        )
        shape = TwinShape(amounts, frozenset(tags), precedence)
        if shape not in self.shapes:
            self.shapes.append(shape)
        return self.shapes.index(shape)

    def set_limits(
        self,
        scheduler: str,
        resources: Resources | None,
        jobs: int | None,
        precedence: int | None = None,
    ) -> None:
        amounts = {} if resources is None else dict(resources.items())
        most = {name: amount for name, amount in amounts.items() if amount}
        self.limits[scheduler] = (most, jobs, precedence)

    # Counting.

    def on(self, machine: int) -> list[TwinClaim]:
        """Oldest first."""
        mine = [claim for claim in self.state.claims.values() if claim.machine == machine]
        return sorted(mine, key=lambda claim: claim.sequence)

    def of(self, scheduler: str) -> list[TwinClaim]:
        return [claim for claim in self.state.claims.values() if claim.scheduler == scheduler]

    def used(self, claims: Iterable[TwinClaim]) -> list[int]:
        held = [self.shapes[claim.shape] for claim in claims]
        return [sum(shape.asks(name) for shape in held) for name in self.dimensions]

    def capacity(self, machine: int) -> list[int]:
        capacity = self.state.machines[machine].capacity
        return [capacity.get(name, 0) for name in self.dimensions]

    def assumed(self) -> list[int]:
        """Oldest first."""
        mine = [claim for claim in self.state.claims.values() if claim.is_assumed]
        return [claim.task for claim in sorted(mine, key=lambda claim: claim.sequence)]

    def free(self, machine: int) -> list[int]:
        used = self.used(self.on(machine))
        return [whole - part for whole, part in zip(self.capacity(machine), used, strict=True)]

    def capacity_total(self) -> list[int]:
        up = [machine.capacity for machine in self.state.machines if not machine.is_gone]
        return [sum(amounts.get(name, 0) for amounts in up) for name in self.dimensions]

    def tag_count(self, tag: str, machine: int) -> int:
        return sum(tag in self.shapes[claim.shape].tags for claim in self.on(machine))

    def tag_count_in(self, tag: str, group: str, set_name: str) -> int:
        return sum(
            self.tag_count(tag, number)
            for number, machine in enumerate(self.state.machines)
            if set_name in machine.description.joins.get(group, ())
        )

    # Judging.

    def commit(self, transaction: Transaction) -> TwinOutcome:
        self._check(transaction)
        state = self.state
        state.changed, state.evicted = set(), []
        self._claimed = set()
        first = len(state.machines)
        for change in transaction.machines:
            self._change(change)
        added = tuple(range(first, len(state.machines)))

        beginning = copy.deepcopy(self.state)
        asked = transaction.confirms, transaction.forgets, transaction.releases
        settled = [[] if tasks is None else tasks.tolist() for tasks in asked]
        unsettled = [
            self._settle(tasks, transaction.scheduler, kind) for kind, tasks in enumerate(settled)
        ]
        claims = transaction.claims
        machines = [] if claims is None else claims.machines.tolist()
        verdicts: list[Refusal] = []
        for group in self._groups(transaction):
            before = copy.deepcopy(self.state)
            judged = [Refusal(Why.TOGETHER)] * len(group)
            for at, row in enumerate(group):
                assert claims is not None
                judged[at], machines[row] = self._claim_any(claims, row, transaction)
                if judged[at].why != Why.NONE:
                    judged = [Refusal(Why.TOGETHER)] * at + judged[at : at + 1] + judged[at + 1 :]
                    for other in group:
                        if other != row:
                            machines[other] = int(claims.machines[other])
                    self.state = beginning if transaction.atomic else before
                    if transaction.atomic:
                        unsettled = [
                            [Refusal(Why.TOGETHER, task=task) for task in tasks]
                            for tasks in settled
                        ]
                    break
            verdicts.extend(judged)
        return TwinOutcome(
            [verdict.why == Why.NONE for verdict in verdicts],
            [int(verdict.why) for verdict in verdicts],
            [verdict.dimension for verdict in verdicts],
            [verdict.lacking for verdict in verdicts],
            machines,
            [task for task, _ in self.state.evicted],
            [machine for _, machine in self.state.evicted],
            tuple(unsettled[0]),
            tuple(unsettled[1]),
            tuple(unsettled[2]),
            added,
        )

    def end(self, tasks: Iterable[int]) -> list[int]:
        """Returns the tasks without a claim."""
        self.state.changed = set()
        unknown = []
        for task in tasks:
            if task in self.state.claims:
                self._remove(task)
            else:
                unknown.append(task)
        return unknown

    @staticmethod
    def _groups(transaction: Transaction) -> list[list[int]]:
        """The rows of the claims, grouped by what stands or falls together."""
        claims = transaction.claims
        if claims is None or not len(claims):
            return []
        if transaction.atomic:
            return [list(range(len(claims)))]
        groups: list[list[int]] = []
        for row in range(len(claims)):
            gangs = claims.gangs
            if gangs is not None and row and gangs[row] >= 0 and gangs[row] == gangs[row - 1]:
                groups[-1].append(row)
            else:
                groups.append([row])
        return groups

    def _check(self, transaction: Transaction) -> None:
        if transaction.atomic and transaction.machines:
            raise ModelError("machine changes in an atomic transaction")
        names = {machine.description.name for machine in self.state.machines}
        machines = len(self.state.machines)
        dimensions = set(self.dimensions)
        for change in transaction.machines:
            dimensions.update(self._resources_of(change))
            if len(dimensions) > MOST_DIMENSIONS:
                raise ModelError("too many resources")
            if isinstance(change, AddMachine | RelabelMachine):
                joins = change.machine.joins if isinstance(change, AddMachine) else change.joins
                if MACHINE_GROUP in joins:
                    raise ModelError("the group of machines themselves")
            if isinstance(change, AddMachine):
                if change.machine.name in names:
                    raise ModelError("a second machine of that name")
                names.add(change.machine.name)
                machines += 1
            elif not 0 <= change.machine < machines:
                raise ModelError("an unknown machine")
        for tasks in (transaction.confirms, transaction.forgets, transaction.releases):
            if tasks is not None and any(task < 0 for task in tasks):
                raise ModelError("a negative task")
        claims = transaction.claims
        if claims is None:
            return
        columns = (claims.machines, claims.shapes, claims.versions)
        if any(len(column) != len(claims.tasks) for column in columns):
            raise ModelError("arrays of different length")
        if any(task < 0 for task in claims.tasks):
            raise ModelError("a negative task")
        if any(not 0 <= shape < len(self.shapes) for shape in claims.shapes):
            raise ModelError("an unknown shape")
        if claims.alternatives is not None and len(claims.alternatives) != len(claims):
            raise ModelError("arrays of different length")
        if claims.gangs is not None:
            if len(claims.gangs) != len(claims):
                raise ModelError("arrays of different length")
            firsts = [
                gang
                for row, gang in enumerate(claims.gangs)
                if gang >= 0 and (row == 0 or claims.gangs[row - 1] != gang)
            ]
            if len(set(firsts)) < len(firsts):
                raise ModelError("a gang in two places")

    def _touch(self, machine: int) -> None:
        if machine not in self.state.changed:
            self.state.changed.add(machine)
            changed = self.state.machines[machine]
            changed.version = (changed.version + 1) % _VERSIONS

    def _remove(self, task: int) -> None:
        self._touch(self.state.claims[task].machine)
        del self.state.claims[task]

    def _evict(self, claim: TwinClaim) -> None:
        self.state.evicted.append((claim.task, claim.machine))
        self._remove(claim.task)

    def _victims(self, machine: int) -> list[TwinClaim]:
        """Lowest precedence first; among equals, youngest first."""
        return sorted(
            self.on(machine), key=lambda c: (self.shapes[c.shape].precedence, -c.sequence)
        )

    @staticmethod
    def _resources_of(change: MachineChange) -> list[str]:
        if isinstance(change, AddMachine):
            return [name for name, amount in change.machine.capacity.items() if amount]
        if isinstance(change, ResizeMachine):
            return [name for name, amount in change.capacity.items() if amount]
        return []

    def _join(self, joins: Mapping[str, Sequence[str]]) -> None:
        for group, sets in joins.items():
            known = self.groups.setdefault(group, [])
            known.extend(name for name in dict.fromkeys(sets) if name not in known)

    def _change(self, change: MachineChange) -> None:
        machines = self.state.machines
        for name in self._resources_of(change):
            if name not in self.dimensions:
                self.dimensions = (*self.dimensions, name)
        if isinstance(change, AddMachine):
            added = change.machine
            self._join(added.joins)
            machines.append(TwinMachine(added, dict(added.capacity.items())))
            self._touch(len(machines) - 1)
            return
        number = change.machine
        machine = machines[number]
        match change:
            case DrainMachine(draining=draining):
                if machine.is_gone or machine.is_draining == draining:
                    return
                machine.is_draining = draining
            case RemoveMachine():
                if machine.is_gone:
                    return
                for claim in self._victims(number):
                    self._evict(claim)
                machine.is_gone, machine.is_draining = True, False
            case ReviveMachine():
                if not machine.is_gone:
                    return
                machine.is_gone = False
            case ResizeMachine(capacity=capacity):
                before = self.capacity(number)
                machine.capacity = dict(capacity.items())
                if self.capacity(number) == before:
                    return
                for claim in self._victims(number):
                    if min(self.free(number)) < 0:
                        self._evict(claim)
            case RelabelMachine(attributes=attributes, joins=joins):
                self._join(joins)
                old = machine.description
                if old.attributes == attributes and _sets(old.joins) == _sets(joins):
                    return
                machine.description = Machine(old.name, old.capacity, attributes, joins)
        self._touch(number)

    def _settle(self, tasks: Iterable[int], scheduler: str, kind: int) -> list[Refusal]:
        """Kind 0 confirms, 1 forgets, 2 releases."""
        refused = []
        for task in tasks:
            claim = self.state.claims.get(task)
            if claim is None:
                refused.append(Refusal(Why.NOT_CLAIMED, task=task))
            elif scheduler not in (OPERATOR, claim.scheduler):
                refused.append(Refusal(Why.NOT_YOURS, task=task))
            elif kind < 2 and not claim.is_assumed:
                refused.append(Refusal(Why.NOT_ASSUMED, task=task))
            elif kind == 0:
                self.state.claims[task] = msgspec.structs.replace(claim, is_assumed=False)
            else:
                self._remove(task)
        return refused

    def _claim_any(self, claims: Claims, row: int, transaction: Transaction) -> tuple[Refusal, int]:
        """The verdict, and the machine it refers to."""
        own = int(claims.machines[row])
        first = self._claim(claims, row, own, transaction)
        if first.why in CONFLICTS and claims.alternatives is not None:
            fine = msgspec.structs.replace(transaction, coarse=False)
            for other in claims.alternatives[row].tolist():
                if other < 0:
                    continue
                refusal = self._claim(claims, row, other, fine)
                if refusal.why not in CONFLICTS:
                    return refusal, other
        return first, own

    def _claim(self, claims: Claims, row: int, number: int, transaction: Transaction) -> Refusal:
        before = copy.deepcopy(self.state)
        refusal = self._judge(claims, row, number, transaction)
        if refusal.why != Why.NONE:
            self.state = before
        return refusal

    def _judge(self, claims: Claims, row: int, number: int, transaction: Transaction) -> Refusal:
        task, shape_number = int(claims.tasks[row]), int(claims.shapes[row])
        scheduler = transaction.scheduler
        if not 0 <= number < len(self.state.machines):
            return Refusal(Why.MACHINE_UNKNOWN)
        machine = self.state.machines[number]
        if machine.is_gone:
            return Refusal(Why.MACHINE_GONE)
        if machine.is_draining:
            return Refusal(Why.MACHINE_DRAINING)
        held = self.state.claims.get(task)
        if held is not None and not transaction.move:
            return Refusal(Why.DUPLICATE)
        if held is not None and held.scheduler != scheduler:
            return Refusal(Why.NOT_YOURS)
        found = machine.version - (number in self.state.changed)
        if transaction.by_claims:
            found = self.sequences[number] - (number in self._claimed)
        if transaction.coarse and (moved := (found - int(claims.versions[row])) % _VERSIONS):
            return Refusal(Why.STALE, lacking=moved)
        if held is not None:
            self._remove(task)

        shape = self.shapes[shape_number]
        if scheduler != OPERATOR:
            resources, most_jobs, highest = self.limits.get(scheduler, ({}, None, None))
            if highest is not None and shape.precedence > highest:
                return Refusal(Why.PRECEDENCE_LIMIT, lacking=shape.precedence - highest)
            jobs = {job_of(claim.task) for claim in self.of(scheduler)}
            if most_jobs is not None and len(jobs | {job_of(task)}) > max(most_jobs, len(jobs)):
                return Refusal(Why.JOB_LIMIT)
            used = self.used(self.of(scheduler))
            for d, name in enumerate(self.dimensions):
                over = used[d] + shape.asks(name) - resources.get(name, 2**62)
                if over > 0:
                    return Refusal(Why.RESOURCE_LIMIT, dimension=name, lacking=over)

        lower = [
            claim
            for claim in self._victims(number)
            if self.shapes[claim.shape].precedence < shape.precedence
            and claim.task not in claims.tasks
        ]
        chosen: list[TwinClaim] = []
        while self._lacking(number, shape, chosen) and transaction.preempt and lower:
            chosen.append(lower.pop(0))
        if (lacking := self._lacking(number, shape, chosen)) is not None:
            return lacking
        for claim in reversed(list(chosen)):
            others = [other for other in chosen if other is not claim]
            if self._lacking(number, shape, others) is None:
                chosen = others
        for claim in chosen:
            self._evict(claim)
        self._touch(number)
        self.sequences[number] += number not in self._claimed
        self._claimed.add(number)
        self.state.last_sequence += 1
        self.state.claims[task] = TwinClaim(
            task,
            number,
            shape_number,
            scheduler,
            self.state.last_sequence,
            transaction.assume,
        )
        return Refusal(Why.NONE)

    def _lacking(
        self, machine: int, shape: TwinShape, without: Sequence[TwinClaim]
    ) -> Refusal | None:
        """What the machine would lack for the shape if `without` were not there."""
        room = self.free(machine)
        freed = self.used(without)
        for d, name in enumerate(self.dimensions):
            lacking = shape.asks(name) - room[d] - freed[d]
            if lacking > 0:
                return Refusal(Why.NO_ROOM, dimension=name, lacking=lacking)
        for name in self.apart:
            if name not in self.dimensions and shape.asks(name):
                return Refusal(Why.NO_ROOM, dimension=name, lacking=shape.asks(name))
        return None

    def sets_of(self, machine: int, group: str) -> tuple[str, ...]:
        description = self.state.machines[machine].description
        if group == MACHINE_GROUP:
            return (description.name,)
        return tuple(dict.fromkeys(description.joins.get(group, ())))


def _sets(joins: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    return {(group, name) for group, sets in joins.items() for name in sets}
