"""An engine that follows a script, and worlds of it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from argosy.cell import Draft, Rule, View
from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.model.effects import Commit, Effect, Enqueue
from argosy.model.events import (
    Event,
    JobSubmitted,
    TasksLost,
)
from argosy.model.jobs import job_of
from argosy.model.scenario import (
    ConstantLatency,
    Network,
)
from argosy.model.transactions import Claims, Transaction
from argosy.model.truth import SimulatedJob
from argosy.records.journal_file import Fact, JournalFile
from argosy.testing.builders import scenario
from argosy.worlds.sim import SimulatedWorld

R = TypeVar("R")
#: The token of a release.
RELEASE = 1
NO_LATENCY = Network(latency=ConstantLatency(delay=0))
Script = Callable[["Scripted", Event, View, int], Sequence[Effect]]


class Scripted:
    """An engine that follows a test's script and records the events it gets."""

    name: ClassVar[str] = "scripted"
    summary: ClassVar[str] = "For tests."
    settings_type: ClassVar[type[Settings]] = Settings
    capabilities: ClassVar[Capabilities] = Capabilities(machine_events=True)
    script: ClassVar[Script]
    heard: ClassVar[list[tuple[int, str, Event]]]

    def __init__(self, settings: Settings, context: Context) -> None:
        self.context = context

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        type(self).heard.append((now, self.context.name, event))
        return type(self).script(self, event, view, now)


def scripted(script: Script, capabilities: Capabilities = Scripted.capabilities) -> type[Scripted]:
    """An engine class of its own, which has heard nothing yet."""
    fields = {"script": staticmethod(script), "heard": [], "capabilities": capabilities}
    return type("Scripted", (Scripted,), fields)


def world_of(
    script: Script, jobs: list[SimulatedJob], *, finishes: Finishes = Finishes.NONE, **fields: Any
) -> tuple[SimulatedWorld, list[tuple[int, str, Event]]]:
    engine = scripted(script, Capabilities(machine_events=True, finishes=finishes))
    fields.setdefault("replicas", 1)
    fields.setdefault("network", NO_LATENCY)
    world = SimulatedWorld(scenario("scripted", jobs, **fields), {"scripted": engine})
    world.run()
    return world, engine.heard


def to_machine(machine: int, after_loss: int | None = None) -> Script:
    """Enqueues every task at one machine, and lost ones at another."""
    other = machine if after_loss is None else after_loss

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(_, _, tasks):
                return [Enqueue(tasks, np.full(len(tasks), machine, np.int32))]
            case TasksLost(_, _, tasks):
                return [Enqueue(tasks, np.full(len(tasks), other, np.int32))]
        return ()

    return script


def first_fit(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    if not isinstance(event, JobSubmitted):
        return ()
    draft, group = Draft(view), event.job.groups[0]
    draft.place(event.tasks, view.shape(group.request), Rule.FIRST, engine.context.random)
    return [Commit(0, Transaction(engine.context.name, draft.claims()))]


def claim(view: View, event: JobSubmitted, machine: int, scheduler: str) -> Commit:
    group = event.job.groups[0]
    count = len(event.tasks)
    machines = np.full(count, machine, np.int32)
    shape = view.shape(group.request, group.tags, event.job.precedence)
    claims = Claims(event.tasks, machines, np.full(count, shape, np.int32), view.versions(machines))
    return Commit(0, Transaction(scheduler, claims))


def run_log(spec: Any) -> tuple[SimulatedWorld, list[Fact]]:
    stream = io.BytesIO()
    log = Journal(stream)
    world = SimulatedWorld(spec, ENGINES, log)
    world.run()
    log.flush()
    return world, list(JournalFile(stream.getvalue()).facts())


def of(facts: list[Fact], kind: type[R]) -> list[R]:
    return [fact for fact in facts if isinstance(fact, kind)]


def finish_order(world: SimulatedWorld) -> list[str]:
    tasks = world.host.runtime.task_columns()[0]
    return [world.host.jobs.name(job_of(task)) for task in tasks.tolist()]
