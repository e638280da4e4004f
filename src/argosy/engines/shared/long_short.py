"""Shared by `hawk` and `eagle`: long jobs are placed centrally, short jobs by probes.

Jobs whose estimate is above a cut-off are long. Their tasks go, one at a time, to the machine of
the long partition with the least work in long tasks. Short jobs probe. Both first ask machines
about their long tasks. The engines differ in where short jobs probe, and in whether probes are
sticky.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.api import Context, Settings
from argosy.engines.shared.machine_queues import MachineQueueScheduler
from argosy.engines.shared.probing import Candidates, Stuck, draw
from argosy.engines.shared.withdrawal import Withdrawal
from argosy.model.effects import Effect, Enqueue, Probe
from argosy.model.events import Event, MachineChanged, MachineJoined, MachineLost
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.units import Micros


class HybridSettings(Settings, frozen=True):
    """Settings of every hybrid scheduler."""

    #: Jobs with a larger estimate are long. Set `long_above` of `[machines]` to the same value.
    cutoff: Annotated[Micros, Meta(ge=1)] = Micros(90_581_100)
    #: The share of the machines, counted from the last, for long jobs; short jobs may use all.
    long_share: Annotated[float, Meta(gt=0, le=1)] = 0.98
    #: Probes per task of a short job; smallest number of probes per job.
    ratio: Annotated[int, Meta(ge=1, le=100)] = 2
    least: Annotated[int, Meta(ge=1, le=1_000)] = 2


class HybridScheduler(MachineQueueScheduler):
    """Engines define `probed` and `is_sticky`."""

    is_sticky = False
    #: Whether short jobs ask which machines have long tasks.
    asks_for_short = False

    def __init__(self, settings: HybridSettings, context: Context) -> None:
        super().__init__(context)
        self._hybrid = settings
        self._everywhere = Candidates()
        self._apart = Candidates(but_last=settings.long_share)
        self._stuck = Stuck()

    def probed(
        self, machines: MachineArray, apart: MachineArray, count: int, lengths: NDArray[np.int64]
    ) -> MachineArray:
        """The machines that a short job probes. `lengths` counts long tasks, if machines were asked;
        `apart` are the machines outside the long partition."""
        return draw(machines, count, self._context.random, repeated=False)

    def placed_long(self, machines: MachineArray, lengths: NDArray[np.int64]) -> None:
        """Called after long tasks were placed; `lengths` are from before."""

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case MachineLost():
                self._forget_machines()
                return ()
            case MachineJoined() | MachineChanged():
                self._forget_machines()
                again = self._stuck.take()
                return [effect for stuck in again for effect in self.begin(*stuck, view)]
        return super().handle(event, view, now)

    def withdraw(self, event: Withdrawal) -> None:
        super().withdraw(event)
        self._stuck.withdraw(event)

    def _forget_machines(self) -> None:
        self._everywhere.forget()
        self._apart.forget()

    def _is_long(self, group: TaskGroup) -> bool:
        return (group.estimate or 0) > self._hybrid.cutoff

    def begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        if self.asks_for_short or any(map(self._is_long, job.groups)):
            return self.ask(job, number, tasks, which="long")
        nothing = np.zeros(view.machines, np.int64)
        return self._place(job, number, tasks, view, nothing, nothing)

    def place(
        self,
        job: Job,
        number: int,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        waits: NDArray[np.int64],
        now: int,
    ) -> Sequence[Effect]:
        return self._place(job, number, tasks, view, lengths, waits)

    def _place(
        self,
        job: Job,
        number: int,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        waits: NDArray[np.int64],
    ) -> Sequence[Effect]:
        effects: list[Effect] = []
        for group, mine in job.tasks_by_group(tasks):
            machines = self._everywhere.of(job, group, view)
            if not len(machines):
                random = self._context.random
                effects.append(self._stuck.add(job, number, group, mine, view, random))
            elif self._is_long(group):
                effects.append(self._enqueue(job, group, mine, view, lengths, waits))
            else:
                count = max(self._hybrid.ratio * len(mine), self._hybrid.least)
                apart = self._apart.of(job, group, view)
                probed = self.probed(machines, apart, count, lengths)
                effects.append(
                    Probe(
                        number,
                        probed,
                        group.request,
                        group.estimate or 0,
                        mine,
                        sticky=self.is_sticky,
                        cancel=True,
                    )
                )
        return effects

    def _enqueue(
        self,
        job: Job,
        group: TaskGroup,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        waits: NDArray[np.int64],
    ) -> Enqueue:
        found = self.least_busy(job, group, len(tasks), waits, self._hybrid.long_share, view)
        if not len(found.machines):
            # Only machines outside the partition could take them.
            machines = self._everywhere.of(job, group, view)
            chosen = draw(machines, len(tasks), self._context.random, repeated=False)
            return Enqueue(tasks, chosen)
        self.placed_long(found.machines, lengths)
        return Enqueue(tasks, found.machines, found.explanation())
