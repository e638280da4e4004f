from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, PaperPreset, Settings
from argosy.engines.shared.decision_queue import DecisionQueue
from argosy.engines.shared.machine_queues import MachineQueueScheduler
from argosy.engines.shared.probing import Stuck, draw
from argosy.engines.shared.withdrawal import Withdrawal
from argosy.model.effects import Effect, Probe
from argosy.model.events import DecisionDue, Event, MachineChanged, MachineJoined
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machine_model import MachineModel
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.units import Micros


class SparrowSettings(Settings, frozen=True):
    """How a Sparrow scheduler probes."""

    #: Probes per task; smallest number of probes per job.
    ratio: Annotated[int, Meta(ge=1, le=100)] = 2
    least: Annotated[int, Meta(ge=1, le=1_000)] = 2
    #: Cancel the remaining probes once all tasks of their job are placed.
    cancel: bool = True
    #: Whether a job may probe the same machine several times.
    repeated: bool = False
    #: Decision time is t_job + t_task x tasks; the only decision is where to probe. A scheduler decides
    #: on one job at a time, in order of arrival.
    t_job: Micros = Micros(0)
    t_task: Micros = Micros(0)


class Sparrow(MachineQueueScheduler):
    name: ClassVar[str] = "sparrow"
    summary: ClassVar[str] = (
        "Batch sampling: probes random machines; tasks go to the first that are ready."
    )
    settings_type: ClassVar[type[Settings]] = SparrowSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, queues=True, machine_events=True
    )

    published: ClassVar[Mapping[str, PaperPreset]] = {
        "sparrow": PaperPreset({"cancel": False, "repeated": True}, MachineModel())
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, SparrowSettings)
        super().__init__(context)
        self._settings = settings
        self._stuck = Stuck()
        self._queue = DecisionQueue(settings.t_job, settings.t_task)

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case DecisionDue():
                return [*self._probe(*self._queue.decided(), view), *self._queue.next()]
            case MachineJoined() | MachineChanged():
                effects = super().handle(event, view, now)
                again = self._stuck.take()
                return [*effects, *(e for stuck in again for e in self._probe(*stuck, view))]
        return super().handle(event, view, now)

    def withdraw(self, event: Withdrawal) -> None:
        super().withdraw(event)
        self._stuck.withdraw(event)
        self._queue.withdraw(event)

    def begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        if not self._queue.takes_time:
            return self._probe(job, number, tasks, view)
        return self._queue.add((job, number, tasks))

    def _probe(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        settings, random = self._settings, self._context.random
        effects: list[Effect] = []
        for group, mine in job.tasks_by_group(tasks):
            machines = self.eligible(job, group, view)
            if not len(machines):
                effects.append(self._stuck.add(job, number, group, mine, view, random))
                continue
            count = max(settings.ratio * len(mine), settings.least)
            probed = draw(machines, count, random, repeated=settings.repeated)
            effects.append(self.send(job, number, group, mine, probed))
        return effects

    def send(
        self, job: Job, number: int, group: TaskGroup, tasks: TaskArray, machines: MachineArray
    ) -> Effect:
        estimate, cancel = group.estimate or 0, self._settings.cancel
        return Probe(number, machines, group.request, estimate, tasks, cancel=cancel)
