"""A host whose clock the test moves, with machines that record what they are asked to do."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from scripted_engine import Script, Scripted

from argosy.engines.api import Engine
from argosy.engines.registry import ENGINES
from argosy.host import TaskState
from argosy.host.host import Host
from argosy.host.job_state import JobState
from argosy.host.journal import Journal
from argosy.host.protocols import DirectLinks
from argosy.host.setup import HostSetup
from argosy.model.events import Event
from argosy.model.explanations import Why
from argosy.model.jobs import Job, index_of, job_of
from argosy.model.scenario import SchedulerLimits, Takes
from argosy.model.tasks import indices_of
from argosy.model.transactions import MachineArray, TaskArray
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.testing.builders import SECOND, job, scenario


class RecordingMachines:
    """Records what it is asked to do: running tasks, and why attempts were stopped."""

    acts = True

    def __init__(self) -> None:
        self.running: dict[int, tuple[int, int]] = {}
        self.stopped: list[tuple[int, int, Why]] = []

    def start(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None:
        tries = zip(machines.tolist(), incarnations.tolist(), strict=True)
        self.running.update(zip(tasks.tolist(), tries, strict=True))

    def stop(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64], why: Why
    ) -> None:
        for task, incarnation in zip(tasks.tolist(), incarnations.tolist(), strict=True):
            assert self.running.pop(task)[1] == incarnation
            self.stopped.append((task, incarnation, why))


class Bench:
    """A host whose clock the test moves."""

    def __init__(
        self,
        engine: Script | str,
        *,
        is_resumed: bool = False,
        takes: Takes | None = None,
        limits: SchedulerLimits | None = None,
        replicas: int = 1,
    ) -> None:
        self.heard: list[tuple[int, str, Event]] = []
        self.engines: dict[str, type[Engine]] = ENGINES
        if not isinstance(engine, str):
            parts = {"script": staticmethod(engine), "heard": self.heard}
            self.engines = {"scripted": type("Scripted", (Scripted,), parts)}
        name = engine if isinstance(engine, str) else "scripted"
        setup = HostSetup.of(scenario(name, [], replicas=replicas))
        given = {"takes": takes, "limits": limits}
        changes = {name: value for name, value in given.items() if value is not None}
        fleet = tuple(structs.replace(entry, **changes) for entry in setup.fleet)
        setup = structs.replace(setup, fleet=fleet)
        self.machines, self.stream = RecordingMachines(), io.BytesIO()
        self.journal = Journal(self.stream)
        self.host = Host(
            structs.replace(setup, network=None, is_resumed=is_resumed),
            self.engines,
            self.machines,
            DirectLinks(),
            self.journal,
        )
        self.host.start()

    def go(self, seconds: float) -> None:
        at = int(seconds * SECOND)
        assert self.host.run_until(at) is None
        self.host.runtime.advance(at)

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for _, _, event in self.heard if isinstance(event, kind)]

    def replay(self) -> JournalFile:
        """The journal, which must lead to the same decisions again."""
        self.journal.flush()
        journal = JournalFile(self.stream.getvalue())
        Replay(journal, self.engines).run()
        return journal


def web(count: int, retries: int = 0) -> Job:
    return job("web", count, cpu=500, seconds=None, retries=retries).job


KEPT = {
    TaskState.RUNNING: "running",
    TaskState.FINISHED: "finished",
    TaskState.FAILED: "failed",
    TaskState.CANCELLED: "cancelled",
    TaskState.ABANDONED: "abandoned",
}


def open_jobs(host: Host) -> Iterator[tuple[Job, JobState]]:
    """Every job that is not over, as another host can restore it."""
    submitted = host.board.job_columns()[0].tolist()
    for number in range(len(host.jobs)):
        if host.jobs.is_done(number) or host.board.is_over(number):
            continue
        tasks = {state: host.board.tasks_in(number, state) for state in KEPT}
        lists = {name: tuple(indices_of(tasks[state]).tolist()) for state, name in KEPT.items()}
        machines = map(host.cell.machine_of, tasks[TaskState.RUNNING].tolist())
        failures = host.job_control._failures.items()
        yield (
            host.jobs.job(number),
            JobState(
                submitted=submitted[number],
                scheduler=host.schedulers[host.board.owner(number)].name,
                machines=tuple(machine for machine in machines if machine is not None),
                failures={index_of(task): n for task, n in failures if job_of(task) == number},
                **lists,
            ),
        )
