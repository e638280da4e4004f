"""A live cluster as a workload: its machines and fleet, and every job with the times its tasks ran.

    {"cluster": {"name": ..., "seed": ..., "cell": {...}, "fleet": [...]}}
    {"id": "job-1", "submit": 0, "count": 2, "durations": [...], ...}

The lines after the first are those of a trace. A task that failed, was cancelled or lost counts with its
last try; one that still runs with its estimate, or with the time it has run if that is longer. Times
begin with the first submission.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from argosy.model.jobs import Job
from argosy.model.truth import GroupTruth, SimulatedJob
from argosy.scenarios.scenario_tables import cluster_tables
from argosy.workloads.job_tables import job_table
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.world import LocalWorld

#: Jobs that are read at once.
_BATCH: Final = 200
_JOB: Final = msgspec.json.Decoder(Job)


def recorded_lines(store: LocalStore, world: LocalWorld) -> Iterator[bytes]:
    machines = [machine for machine, _ in world.present_machines()]
    tables = cluster_tables(world.cluster.cell, machines, world.cluster.fleet)
    yield _line({"cluster": {"name": world.cluster.name, "seed": world.cluster.seed, **tables}})
    first = store.rows("SELECT min(submitted) FROM jobs")[0][0] or 0
    now, last = world.now, 0
    while True:
        rows = store.rows(
            "SELECT seq, spec, submitted FROM jobs WHERE seq > ? ORDER BY seq LIMIT ?",
            (last, _BATCH),
        )
        if not rows:
            return
        last = rows[-1][0]
        lines = bytearray()
        for seq, spec, submitted in rows:
            job = _JOB.decode(spec)
            made = SimulatedJob(job, submitted - first, _truth(store, seq, job, now))
            lines += _line(_readable(job_table(made)))
        yield bytes(lines)


def _truth(store: LocalStore, seq: int, job: Job, now: int) -> tuple[GroupTruth, ...]:
    """How long each task ran."""
    tries = store.rows("SELECT idx, started, ended FROM tries WHERE job = ? ORDER BY try", (seq,))
    ran: dict[int, tuple[int, bool]] = {
        index: (max(0, (now if ended is None else ended) - started), ended is not None)
        for index, started, ended in tries
    }
    truth = []
    for start, group in zip(job.group_starts(), job.groups, strict=True):
        if group.endless:
            truth.append(GroupTruth())
            continue
        times = []
        for index in range(start, start + group.count):
            took, is_over = ran.get(index, (0, False))
            times.append(took if is_over else max(took, group.estimate or 0))
        alike = len(set(times)) == 1
        truth.append(GroupTruth(tuple(times[:1] if alike else times)))
    return tuple(truth)


def _readable(table: dict[str, Any]) -> dict[str, Any]:
    """In a trace, an estimate is the mean of the durations by default, and cannot be absent."""
    for each in (table, *table.get("groups", ())):
        if each.get("estimate", 0) is None:
            del each["estimate"]
    return table


def _line(table: dict[str, Any]) -> bytes:
    return msgspec.json.encode(table) + b"\n"
