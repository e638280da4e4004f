"""The tables of a cluster's database, in memory, filled by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from argosy.testing.builders import job
from argosy.worlds.local import store as local_store

STATES = ("pending", "queued", "running", "finished", "failed", "cancelled", "abandoned")


class Database:
    """The tables of a store, in memory."""

    origin = 0

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.executescript(local_store._SCHEMA)

    def rows(self, question: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(question, values).fetchall()

    @contextmanager
    def turn(self) -> Iterator[sqlite3.Cursor]:
        yield self._connection.cursor()

    def meta(self, key: str) -> str | None:
        rows = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def close(self) -> None:
        self._connection.close()

    def add_job(
        self,
        seq: int,
        name: str,
        state: str = "running",
        *,
        ended: int | None = None,
        **counts: int,
    ) -> None:
        tasks = sum(counts.values())
        made = job(name, tasks, owner=f"o{seq}", kind=f"k{seq % 2}").job
        made = msgspec.structs.replace(made, name=f"the {name}")
        columns = [counts.get(each, 0) for each in STATES]
        row = [seq, name, msgspec.json.encode(made), made.kind, made.owner, seq * 10, f"s{seq}"]
        row += [seq * 1_000, ended, state, seq + 5, *columns]
        self.rows(f"INSERT INTO jobs VALUES ({','.join('?' * len(row))})", row)

    def add_task(self, seq: int, index: int, state: str, **fields: Any) -> None:
        known = {"machine": "m", "try": None, "failures": 0, "exit_status": None, "reason": ""}
        known |= {"started": None, "ended": None} | fields
        row = [seq, index, state, *known.values()]
        self.rows(f"INSERT INTO tasks VALUES ({','.join('?' * len(row))})", row)

    def add_try(self, number: int, seq: int, index: int, *rest: Any) -> None:
        self.rows("INSERT INTO tries VALUES (?,?,?,?,?,?,?,?)", [number, seq, index, *rest])

    def add_turn(self, number: int, life: int, *jobs: int) -> None:
        """A turn that speaks of these jobs."""
        self.rows("INSERT INTO turns VALUES (?, ?, 0, ?, ?)", [number, life, b"x", b"[]"])
        for seq in jobs:
            self.rows("INSERT INTO job_turns VALUES (?, ?)", [seq, number])

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.rows(query)]
