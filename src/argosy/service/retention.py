"""Forgets jobs that are over, so that a server that runs for long does not grow without bound.

With a job go its tasks, tries, output, idempotency keys, and the turns of the journal that speak of no
other job. What is left of a journal still explains the jobs that are left, but cannot be replayed, and
watchers that were away for longer than turns are kept are told so.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from argosy.worlds.local.store import LocalStore

#: Jobs that are forgotten at once: requests wait for as long as that takes.
BATCH: Final = 200
#: Microseconds for which a job is kept in any case, so that who waits for its end can ask how it ended.
SHORTEST: Final = 60_000_000
#: The last turn up to which some are missing, and its life.
_TURN: Final = "forgotten_turn"
_LIFE: Final = "forgotten_life"
_INDEXES: Final = (
    "CREATE INDEX IF NOT EXISTS jobs_by_end ON jobs (ended) WHERE ended IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS job_turns_by_turn ON job_turns (turn)",
    "CREATE INDEX IF NOT EXISTS keys_by_job ON keys (job)",
)
#: The newest job and the newest try stay, so that no number is given twice, and so do jobs whose
#: processes may still be about.
_IS_GONE: Final = (
    "ended IS NOT NULL AND seq < (SELECT max(seq) FROM jobs) AND NOT EXISTS (SELECT 1 FROM tries "
    "WHERE tries.job = jobs.seq AND (tries.ended IS NULL OR tries.try = (SELECT max(try) FROM tries) "
    "OR tries.try IN (SELECT try FROM stops)))"
)


class KeptJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs that are over are kept: the newest so many, and those that ended within so many
    microseconds. 0: no limit."""

    jobs: int = 0
    age: int = 0

    @property
    def is_everything(self) -> bool:
        return not (self.jobs or self.age)


class OldJob(NamedTuple):
    """A job that is over: its number in the database, and its id."""

    seq: int
    id: str


def forgotten_turn(store: LocalStore) -> int:
    """Turns up to this one may be missing."""
    return int(store.meta(_TURN) or 0)


def forgotten_life(store: LocalStore) -> int:
    """Journals of lives up to this one may have gaps."""
    return int(store.meta(_LIFE) or 0)


class Retention:
    """`directory_of` says where a try has written."""

    def __init__(
        self, store: LocalStore, kept: KeptJobs, directory_of: Callable[[int], str]
    ) -> None:
        self._store = store
        self._kept = kept
        self._directory_of = directory_of
        if not kept.is_everything:
            with store.turn() as turn:
                for index in _INDEXES:
                    turn.execute(index)

    def forget(self, found: Sequence[OldJob]) -> None:
        """Their files are to be removed before: what a crash leaves of a job is found again as long as
        it is in the database."""
        jobs = [job.seq for job in found]
        with self._store.turn() as turn:
            self._forget_turns(turn, jobs)
            for table, column in (("tasks", "job"), ("tries", "job"), ("jobs", "seq")):
                turn.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(s,) for s in jobs])
            turn.executemany("DELETE FROM keys WHERE job = ?", [(job.id,) for job in found])

    def directories(self, found: Sequence[OldJob]) -> list[str]:
        """Where the tries of these jobs have written."""
        tries = self._all("SELECT try FROM tries WHERE job = ?", [job.seq for job in found])
        return list(filter(None, map(self._directory_of, tries)))

    def superfluous(self, now: int) -> list[OldJob]:
        """Some jobs that need not be kept at this time, oldest first."""
        limits, values = [], [now - SHORTEST]
        if self._kept.age:
            limits.append("ended < ?")
            values.append(now - self._kept.age)
        if self._kept.jobs:
            limits.append(
                "seq <= (SELECT seq FROM jobs WHERE ended IS NOT NULL "
                "ORDER BY seq DESC LIMIT 1 OFFSET ?)"
            )
            values.append(self._kept.jobs)
        if not limits:
            return []
        query = (
            f"SELECT seq, id FROM jobs WHERE {_IS_GONE} AND ended < ? AND ({' OR '.join(limits)})"
        )
        rows = self._store.rows(f"{query} ORDER BY seq LIMIT {BATCH}", values)
        return [OldJob(seq, name) for seq, name in rows]

    def _forget_turns(self, turn: sqlite3.Cursor, jobs: Sequence[int]) -> None:
        """Those of these jobs that no other job needs, and those in between of no job at all."""
        mentioned = self._all("SELECT turn FROM job_turns WHERE job = ?", jobs)
        turn.executemany("DELETE FROM job_turns WHERE job = ?", [(seq,) for seq in jobs])
        before, last = forgotten_turn(self._store), max(mentioned, default=0)
        # Asked first: of the life whose turns are forgotten, perhaps none is left afterwards.
        found = self._store.rows("SELECT max(life) FROM turns WHERE turn <= ?", (last,))
        life = max(int(found[0][0] or 0), forgotten_life(self._store))
        unwanted = "NOT EXISTS (SELECT 1 FROM job_turns WHERE job_turns.turn = turns.turn)"
        # The last turn tells a server that starts again the time, and which number comes next.
        unwanted += " AND turn < (SELECT max(turn) FROM turns)"
        turn.executemany(
            f"DELETE FROM turns WHERE turn = ? AND {unwanted}", [(each,) for each in mentioned]
        )
        if last > before:
            turn.execute(
                f"DELETE FROM turns WHERE turn > ? AND turn <= ? AND {unwanted}", (before, last)
            )
            turn.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                [(_TURN, str(last)), (_LIFE, str(life))],
            )
            turn.execute(
                "DELETE FROM lives WHERE life < (SELECT max(life) FROM lives) AND NOT EXISTS "
                "(SELECT 1 FROM turns WHERE turns.life = lives.life)"
            )

    def _all(self, query: str, values: Sequence[Any]) -> list[int]:
        return [row[0] for value in values for row in self._store.rows(query, (value,))]


def remove(directories: Sequence[str]) -> None:
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
