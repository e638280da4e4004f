"""A cluster as it stands in the database: what it was made with, and its open jobs."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec
from msgspec.structs import replace

from argosy.model.errors import ModelError
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.scenario import FleetEntry
from argosy.worlds.local.projection import STATES, JobRow, TaskRow
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster

_KEY: Final = "cluster"
_ENCODE: Final = msgspec.json.Encoder().encode
_CLUSTER: Final = msgspec.json.Decoder(LocalCluster)
_MACHINE: Final = msgspec.json.Decoder(Machine)
_JOB: Final = msgspec.json.Decoder(Job)


def known_cluster(store: LocalStore, cluster: LocalCluster | None) -> LocalCluster:
    """The cluster in the database; a new database gets this one."""
    stored = store.meta(_KEY)
    if stored is not None:
        return _CLUSTER.decode(stored)
    if cluster is None:
        raise ModelError("a new cluster needs machines and a fleet")
    with store.turn() as turn:
        turn.execute("INSERT INTO meta VALUES (?, ?)", (_KEY, _ENCODE(cluster).decode()))
        turn.executemany(
            "INSERT INTO machines (name, spec, is_draining) VALUES (?,?,0)",
            [(machine.name, _ENCODE(machine)) for machine in cluster.cell.machines],
        )
    return cluster


def stored_machines(store: LocalStore) -> list[tuple[Machine, bool]]:
    """The machines there are, and whether each is draining."""
    rows = store.rows("SELECT spec, is_draining FROM machines ORDER BY number")
    return [(_MACHINE.decode(spec), bool(is_draining)) for spec, is_draining in rows]


def store_cluster(turn: sqlite3.Cursor, cluster: LocalCluster) -> None:
    turn.execute("UPDATE meta SET value = ? WHERE key = ?", (_ENCODE(cluster).decode(), _KEY))


def replace_fleet(store: LocalStore, fleet: tuple[FleetEntry, ...]) -> tuple[FleetEntry, ...]:
    """Other schedulers for the next world on this database: for a fleet that cannot run. Returns those
    there were."""
    cluster = _CLUSTER.decode(store.meta(_KEY) or "")
    with store.turn() as turn:
        store_cluster(turn, replace(cluster, fleet=fleet))
    return cluster.fleet


def open_jobs(store: LocalStore) -> list[JobRow]:
    """The jobs that an earlier server left."""
    jobs = store.rows(
        f"SELECT seq, spec, scheduler, submitted, version, {', '.join(STATES)} FROM jobs "
        "WHERE ended IS NULL ORDER BY seq"
    )
    rows = {}
    for seq, spec, scheduler, submitted, version, *counts in jobs:
        by_state = dict(zip(STATES, counts, strict=True))
        rows[seq] = JobRow(
            seq, _JOB.decode(spec), scheduler, submitted, by_state, {}, None, version
        )
    tasks = store.rows(
        "SELECT tasks.* FROM tasks JOIN jobs ON tasks.job = jobs.seq WHERE jobs.ended IS NULL"
    )
    for seq, index, *fields in tasks:
        rows[seq].tasks[index] = TaskRow(*fields)
    return list(rows.values())
