"""Passes reports of machines on to the schedulers concerned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy._core import RuntimeEvent
from argosy.cell.waits import feed
from argosy.engines.api import Finishes
from argosy.host import records
from argosy.host.protocols import MACHINES
from argosy.host.room_watch import RoomWatch
from argosy.model.events import PhaseFinished, ProbeReady, TaskFinished
from argosy.model.explanations import Why
from argosy.model.jobs import job_of
from argosy.model.messages import EndsReported
from argosy.model.tasks import jobs_of

if TYPE_CHECKING:
    from argosy.host.host import Host

#: Plain integers, because they are compared once per event.
_FINISHED: Final = int(RuntimeEvent.FINISHED)
_LOST: Final = int(RuntimeEvent.LOST)
_PROBES: Final = int(RuntimeEvent.PROBES)
_PHASES: Final = int(RuntimeEvent.PHASES)
_ROOM: Final = int(RuntimeEvent.ROOM)
#: By the name that a journal gives the kind of report.
REPORT_EVENTS: Final[Mapping[records.ReportKind, int]] = {
    "finished": _FINISHED,
    "lost": _LOST,
    "probes": _PROBES,
    "phases": _PHASES,
    "room": _ROOM,
}


class Reports:
    def __init__(self, host: Host, room_watch: RoomWatch) -> None:
        self._host = host
        self._room_watch = room_watch
        self._runtime = host.runtime
        self._links = host.links
        self._listeners = [scheduler for scheduler in host.schedulers if scheduler.hears_all]
        self._keepers = [
            scheduler
            for scheduler in host.schedulers
            if scheduler.capabilities.finishes is Finishes.WAITS
        ]
        self._any_hears_own = any(
            scheduler.capabilities.finishes is Finishes.OWN for scheduler in host.schedulers
        )

    def pass_on(self, kind: int, now: int) -> bool:
        """Passes on the reports of this kind; returns false if it is not a report."""
        if kind == _FINISHED:
            self._finished(now)
        elif kind == _LOST:
            self._lost(now)
        elif kind == _PROBES:
            self._ready(now)
        elif kind == _PHASES:
            self._phases(now)
        elif kind == _ROOM:
            self._room_watch.pass_on(now)
        else:
            return False
        return True

    def _lost(self, now: int) -> None:
        """Tasks that came to a full queue, or to a machine that is gone, draining or too small."""
        lose = self._host.membership.lose
        tasks, machines, *_ = self._runtime.take_refused()
        lose(tasks, machines, Why.QUEUE_FULL, now)
        tasks, machines, *_ = self._runtime.take_lost()
        whys = np.array([self._why_lost(machine) for machine in machines.tolist()], np.uint8)
        for why in (Why.MACHINE_GONE, Why.MACHINE_DRAINING, Why.NO_ROOM):
            which = whys == int(why)
            lose(tasks[which], machines[which], why, now)

    def _why_lost(self, machine: int) -> Why:
        view = self._host.view
        if not view.is_up(machine):
            return Why.MACHINE_GONE
        return Why.MACHINE_DRAINING if view.is_draining(machine) else Why.NO_ROOM

    def _finished(self, now: int) -> None:
        host = self._host
        tasks, machines, estimates, shapes, started = self._runtime.take_finished()
        if self._keepers and self._links.plain_hop < 0:
            self._tell_keepers(now, (tasks, machines, estimates, shapes, started))
        if self._listeners:
            event = TaskFinished(tasks, machines, estimates, shapes)
            for scheduler in self._listeners:
                if scheduler.is_alive:
                    host.deliver(MACHINES, scheduler, event, now)
        if not self._any_hears_own:
            return
        if len(tasks) == 1 or len(host.schedulers) == 1:
            scheduler = host.schedulers[host.board.owner(job_of(int(tasks[0])))]
            if scheduler.capabilities.finishes is Finishes.OWN and scheduler.is_alive:
                event = TaskFinished(tasks, machines, estimates, shapes)
                host.tell_now(scheduler, event, now)
            return
        owners = self._owners(tasks)
        for index in np.unique(owners).tolist():
            scheduler = host.schedulers[index]
            if scheduler.capabilities.finishes is Finishes.OWN and scheduler.is_alive:
                mine = owners == index
                event = TaskFinished(tasks[mine], machines[mine], estimates[mine], shapes[mine])
                host.post(now, scheduler, event)

    def _owners(self, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        owner = self._host.board.owner
        return np.fromiter((owner(job) for job in jobs_of(tasks).tolist()), np.int64, len(tasks))

    def _phases(self, now: int) -> None:
        host = self._host
        for number, phase, duration in self._runtime.take_phases():
            owner = host.schedulers[host.board.owner(number)]
            if owner.is_alive and owner.capabilities.malleable:
                host.post(now, owner, PhaseFinished(number, phase, duration))

    def _ready(self, now: int) -> None:
        """Forwards ready probes to their schedulers; probes of dead schedulers are cancelled."""
        host = self._host
        for probe, job, machine, owner in self._runtime.take_ready():
            scheduler = host.schedulers[owner]
            if not self._runtime.is_held(probe):
                continue
            if scheduler.is_alive:
                hop = self._links.reliable_delay(MACHINES, scheduler.name, now)
                host.post(now + hop, scheduler, ProbeReady(probe, job, machine))
            else:
                self._runtime.cancel(probe)

    def _tell_keepers(self, now: int, ends: tuple[NDArray[Any], ...]) -> None:
        """Feeds task ends into each wait view over the network; ends of a scheduler's own tasks are
        never lost."""
        owners = self._owners(ends[0])
        for keeper in self._keepers:
            if keeper.waits is None:
                continue
            for is_own in (True, False):
                rows = (owners == keeper.index) == is_own
                if not rows.any():
                    continue
                part = EndsReported(*(column[rows] for column in ends))
                delays: tuple[int, ...] = (self._links.reliable_delay(MACHINES, keeper.name, now),)
                if not is_own:
                    delays = self._links.deliveries(MACHINES, keeper.name, now)
                for delay in delays:
                    feed(keeper.waits, part, now + delay, now)
