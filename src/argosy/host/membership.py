"""Machines that join, leave and change, and the tasks that lose their places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from argosy.cell.bitmaps import to_mask
from argosy.host import records
from argosy.host.protocols import CELL
from argosy.model.events import (
    MachineChanged,
    MachineJoined,
    MachineLost,
    TasksLost,
    UsageObserved,
)
from argosy.model.explanations import Why
from argosy.model.tasks import by_job
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    DrainMachine,
    MachineArray,
    MachineChange,
    Outcome,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
    TaskArray,
    Transaction,
)

if TYPE_CHECKING:
    from argosy.host.host import Host


class Membership:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._runtime = host.runtime
        self._links = host.links
        #: Number of tasks that were preempted, and that lost their machines for other reasons.
        self.preemptions = 0
        self.losses = 0
        #: Number of changes of machines so far.
        self.changes = 0

    def change(self, change: MachineChange) -> None:
        """Commits a change of one machine and notifies those concerned."""
        host, now = self._host, self._runtime.now
        # A change that the cell refuses has not happened.
        outcome = host.cell.commit(Transaction(OPERATOR, machines=(change,)))
        self.changes += 1
        host.decisions.input(records.MachineRecord(now, change))
        machine = outcome.added[0] if isinstance(change, AddMachine) else change.machine
        is_resized, is_gone = isinstance(change, ResizeMachine), isinstance(change, RemoveMachine)
        why = Why.NO_ROOM if is_resized else Why.MACHINE_GONE
        if is_resized or is_gone:
            queued = self._runtime.lose_queue(machine)
            self.lose(queued, np.full(len(queued), machine, np.int32), why, now)
        if isinstance(change, DrainMachine) and change.draining:
            self._runtime.lose_probes(machine)
        self.evict(outcome, why, now)
        event: MachineJoined | MachineLost | MachineChanged
        if is_gone:
            event = MachineLost(machine)
        elif isinstance(change, AddMachine | ReviveMachine):
            event = MachineJoined(machine)
        else:
            event = MachineChanged(machine)
        self._tell(event, now)

    def _tell(self, event: MachineJoined | MachineLost | MachineChanged, now: int) -> None:
        host = self._host
        for scheduler in host.schedulers:
            if scheduler.capabilities.machine_events and scheduler.is_alive:
                hop = self._links.reliable_delay(CELL, scheduler.name, now)
                host.post(now + hop, scheduler, event)

    def mark(self, attribute: str, group: str, sets: Sequence[str], *, is_given: bool) -> None:
        """The machines in these sets get the attribute, or lose it. Engines that hear of machines are
        told of the first machine that gets it, since more than one task may fit now."""
        host, now = self._host, self._runtime.now
        bitmap = reduce(or_, (host.view.members(group, name) for name in sets))
        host.cell.mark(attribute, bitmap, is_given=is_given)
        host.decisions.input(records.MarkedRecord(now, attribute, group, list(sets), is_given))
        machines = np.flatnonzero(to_mask(bitmap, host.view.machines))
        if is_given and len(machines):
            self._tell(MachineChanged(int(machines[0])), now)

    def observe(self, resource: str, machines: Sequence[int], used: Sequence[int]) -> None:
        """So much of a resource is in use on these machines: engines that take observations hear of
        it."""
        host, now = self._host, self._runtime.now
        host.decisions.input(records.ObservedRecord(now, resource, [*machines], [*used]))
        where, amounts = np.array(machines, np.int32), np.array(used, np.int64)
        event = UsageObserved(resource, where, amounts)
        for scheduler in host.schedulers:
            if scheduler.capabilities.observations and scheduler.is_alive:
                hop = self._links.reliable_delay(CELL, scheduler.name, now)
                host.post(now + hop, scheduler, event)

    def evict(self, outcome: Outcome, why: Why, now: int) -> None:
        """Evicted tasks are pending again; slots held by probes are simply released."""
        if not len(outcome.evicted):
            return
        is_task = np.fromiter(
            (not self._runtime.is_hold(task) for task in outcome.evicted.tolist()),
            np.bool_,
            len(outcome.evicted),
        )
        evicted, machines = outcome.evicted[is_task], outcome.evicted_from[is_task]
        self._host.stop(evicted, why)
        self._runtime.set_pending(evicted)
        for machine in set(outcome.evicted_from.tolist()):
            self._runtime.pump(machine)
        # Where another system has the last word, it decides whether such a task ever runs again.
        self.lose(evicted, machines, why, now, is_told=not self._host.setup.is_overruled)

    def lose(
        self,
        tasks: TaskArray,
        machines: MachineArray,
        why: Why,
        now: int,
        *,
        is_told: bool = True,
    ) -> None:
        """Tasks have lost their machines: their schedulers learn of it a hop later, if they are told."""
        host = self._host
        if why is Why.PREEMPTED:
            self.preemptions += len(tasks)
        else:
            self.losses += len(tasks)
        for number, where in by_job(tasks):
            lost, where_from = tasks[where], machines[where]
            host.decisions.lost(now, number, lost, where_from, why)
            if not is_told or host.jobs.is_done(number):
                continue
            job, owner = host.jobs.job(number), host.schedulers[host.board.owner(number)]
            if job.activities and not (owner.is_alive and owner.capabilities.malleable):
                # Extra workers need not be placed again.
                is_own = job.is_own(lost)
                lost, where_from = lost[is_own], where_from[is_own]
            if not len(lost):
                continue
            if owner.is_alive:
                event = TasksLost(job, number, lost, where_from, why)
                delay = self._links.reliable_delay(CELL, owner.name, now)
                host.post(now + delay, owner, event)
            elif owner.is_given_up:
                host.inherit(number, now)
