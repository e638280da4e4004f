from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, PaperPreset, Settings
from argosy.engines.shared.machine_queues import MachineQueueScheduler
from argosy.engines.shared.probing import Stuck, draw
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, update
from argosy.model.effects import Effect, Probe, Think
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
        #: Jobs to be decided on; a decision on the first is under way.
        self._queue: deque[WaitingTasks] = deque()

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case DecisionDue():
                effects = self._probe(*self._queue.popleft(), view)
                return [*effects, *self._decide()]
            case MachineJoined() | MachineChanged():
                effects = super().handle(event, view, now)
                again = self._stuck.take()
                return [*effects, *(e for stuck in again for e in self._probe(*stuck, view))]
        return super().handle(event, view, now)

    def withdraw(self, event: Withdrawal) -> None:
        super().withdraw(event)
        self._stuck.withdraw(event)
        self._queue = deque(update(work, event) for work in self._queue)

    def begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        if not self._settings.t_job and not self._settings.t_task:
            return self._probe(job, number, tasks, view)
        self._queue.append((job, number, tasks))
        return self._decide() if len(self._queue) == 1 else ()

    def _decide(self) -> Sequence[Effect]:
        """Begins to decide on the first job, if there is one."""
        if not self._queue:
            return ()
        _, number, tasks = self._queue[0]
        duration = self._settings.t_job + self._settings.t_task * len(tasks)
        return (Think(duration, number, number),)

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
