"""What would happen to jobs if they were submitted now. Nothing changes.

The cluster as it is, with its fleet, is built a second time in memory; schedulers there learn from the
cell and from their peers, as after a restart. The jobs are submitted to it, and time moves on as long as
nothing but the schedulers' own timers happens: no task ends meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from argosy.api.values import DisplacedTask, PlannedTask, PlanResult
from argosy.engines.api import Engine
from argosy.host.host import Host
from argosy.host.job_state import JobState
from argosy.host.journal import Journal
from argosy.host.protocols import DirectLinks
from argosy.host.setup import HostSetup
from argosy.model.jobs import Job, task_name
from argosy.model.transactions import DrainMachine
from argosy.records.answers import TaskAnswers
from argosy.records.journal_file import JournalFile
from argosy.records.journal_run import JournalRun
from argosy.worlds.clocks import ClockBudgets
from argosy.worlds.local.projection import JobRow, Projection
from argosy.worlds.local.turn import LocalMachines, TurnStream
from argosy.worlds.local.world import LocalWorld

#: How far ahead a plan looks: some schedulers work in rounds of ten seconds.
AHEAD: Final = 30_000_000
#: Tasks that a plan may have.
MOST_PLANNED: Final = 100_000
#: Tasks that are explained one by one.
MOST_EXPLAINED: Final = 1_000
_SETTLED: Final = ("running", "queued")


class ClusterCopy(msgspec.Struct, frozen=True):
    """All that a plan needs to know of a cluster."""

    setup: HostSetup
    draining: tuple[int, ...]
    rows: tuple[JobRow, ...]
    states: tuple[JobState, ...]


def copy_cluster(world: LocalWorld) -> ClusterCopy:
    """Taken on the loop; `plan` may run elsewhere."""
    machines = world.present_machines()
    numbers = {machine.name: at for at, (machine, _) in enumerate(machines)}
    rows, states = [], []
    for row in world.open_rows():
        copied = replace(
            row,
            counts=dict(row.counts),
            tasks={index: replace(task) for index, task in row.tasks.items()},
            number=-1,
        )
        running = {
            index: numbers[task.machine]
            for index, task in copied.tasks.items()
            if task.state == "running" and task.machine in numbers
        }
        rows.append(copied)
        states.append(
            replace(row.as_left(), running=tuple(running), machines=tuple(running.values()))
        )
    return ClusterCopy(
        setup=world.setup([machine for machine, _ in machines], is_resumed=bool(rows)),
        draining=tuple(at for at, (_, is_draining) in enumerate(machines) if is_draining),
        rows=tuple(rows),
        states=tuple(states),
    )


def plan(
    cluster: ClusterCopy, engines: Mapping[str, type[Engine]], jobs: Sequence[Job]
) -> PlanResult:
    stream = TurnStream()
    journal = Journal(stream)
    host = Host(
        cluster.setup, engines, LocalMachines(), DirectLinks(), journal, budgets=ClockBudgets()
    )
    journal.flush()
    lines = [stream.take()]
    projection = Projection(1 + max((row.seq for row in cluster.rows), default=0))
    for row in cluster.rows:
        projection.load(row)
    machines = cluster.setup.cell.machines
    projection.begin_life(machines, 0, cluster.setup.began)

    def fold() -> None:
        journal.flush()
        lines.append(stream.take())
        projection.fold(lines[-1])

    host.start()
    for row, state in zip(cluster.rows, cluster.states, strict=True):
        host.restore(row.job, state)
    for number in cluster.draining:
        host.change_machine(DrainMachine(number))
    now = cluster.setup.began
    host.run_until(now)
    fold()
    before = _running(cluster.rows)
    for job in jobs:
        host.submit(job)
    fold()
    mine = [projection.by_id[job.id] for job in jobs]
    limit = now + AHEAD
    while not all(_is_settled(row) for row in mine):
        if not host.runtime.has_events or host.runtime.next_at > limit:
            break
        host.run_until(host.runtime.next_at)
        fold()
    run = JournalRun(JournalFile(b"".join(lines), "plan"))
    tasks = [task for row in mine for task in _planned(row, run)]
    return PlanResult(
        fits=all(task.state in _SETTLED for task in tasks),
        tasks=tuple(tasks),
        displaced=tuple(_displaced(before, _running(cluster.rows))),
    )


def _is_settled(row: JobRow) -> bool:
    return not row.counts["pending"]


def _planned(row: JobRow, run: JournalRun) -> list[PlannedTask]:
    planned = []
    for index in range(row.job.tasks):
        task = row.tasks.get(index)
        state = "pending" if task is None else task.state
        sentence = remedy = ""
        if index < MOST_EXPLAINED:
            answer = TaskAnswers(run, task_name(row.job.id, index)).why()
            sentence, remedy = answer.sentence, answer.remedy
        planned.append(
            PlannedTask(
                job=row.job.id,
                index=index,
                state=state,  # type: ignore[arg-type]
                machine="" if task is None else task.machine,
                sentence=sentence,
                remedy=remedy,
            )
        )
    return planned


def _running(rows: Sequence[JobRow]) -> dict[str, str]:
    """The machine of every task that runs."""
    return {
        task_name(row.job.id, index): task.machine
        for row in rows
        for index, task in row.tasks.items()
        if task.state == "running"
    }


def _displaced(before: dict[str, str], after: dict[str, str]) -> list[DisplacedTask]:
    """Tasks that would have to go, in the order of their names."""
    found = []
    for name, machine in sorted(before.items()):
        now = after.get(name, "")
        if now != machine:
            outcome = "moved" if now else "preempted"
            found.append(DisplacedTask(task=name, machine=machine, outcome=outcome, to=now))
    return found
