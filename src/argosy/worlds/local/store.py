"""What a server must not forget, in one SQLite database.

Everything that happens between two commits is a *turn*. A turn's commit holds the journal's lines and
what follows from them (the state of jobs, tasks, tries and machines), so that the database is either
before the turn or after it. Nothing is acted on, and nobody gets an answer, before its turn is
committed: no process starts without a try in the database, and no job is acknowledged that could be
lost.

    lives      each start of a host, with the header of its journal
    turns      the lines of the journal, and what they changed, for those who watch
    job_turns  which turns speak of a job, to answer `why` without reading all; job 0: of machines
    jobs       every job, with how many of its tasks are in each state
    tasks      tasks that have left the state *pending* at least once
    tries      each start of a task as a process
    stops      tries that have to stop and are not known to have stopped
    machines   the machines there are
    keys       idempotency keys of submissions
    meta       format, origin of time, settings

Times are microseconds since the cluster was made (`origin`, in microseconds since 1970).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from argosy.model.errors import ArgosyError

FORMAT: Final = 1
DATABASE: Final = "argosy.db"
LOCK: Final = "lock"

#: Seconds to wait for another program that holds the database, before the server pauses: it answers
#: nobody meanwhile.
_PATIENCE: Final = 0.25
_HAS_TABLES: Final = "SELECT 1 FROM sqlite_master LIMIT 1"
_HAS_META: Final = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"

_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE lives (life INTEGER PRIMARY KEY, began INTEGER NOT NULL, header BLOB NOT NULL);
CREATE TABLE turns (turn INTEGER PRIMARY KEY, life INTEGER NOT NULL, at INTEGER NOT NULL,
  lines BLOB NOT NULL, changes BLOB NOT NULL);
CREATE INDEX turns_by_life ON turns (life);
CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, spec BLOB NOT NULL,
  kind TEXT NOT NULL, owner TEXT NOT NULL, precedence INTEGER NOT NULL, scheduler TEXT NOT NULL,
  submitted INTEGER NOT NULL, ended INTEGER, state TEXT NOT NULL, version INTEGER NOT NULL,
  pending INTEGER NOT NULL, queued INTEGER NOT NULL, running INTEGER NOT NULL,
  finished INTEGER NOT NULL, failed INTEGER NOT NULL, cancelled INTEGER NOT NULL,
  abandoned INTEGER NOT NULL);
CREATE INDEX open_jobs ON jobs (seq) WHERE ended IS NULL;
CREATE INDEX jobs_by_state ON jobs (state, seq);
CREATE TABLE tasks (job INTEGER NOT NULL, idx INTEGER NOT NULL, state TEXT NOT NULL,
  machine TEXT NOT NULL, try INTEGER, failures INTEGER NOT NULL, exit_status INTEGER,
  reason TEXT NOT NULL, started INTEGER, ended INTEGER, PRIMARY KEY (job, idx)) WITHOUT ROWID;
CREATE TABLE tries (try INTEGER PRIMARY KEY, job INTEGER NOT NULL, idx INTEGER NOT NULL,
  machine TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER, exit_status INTEGER,
  outcome TEXT NOT NULL);
CREATE INDEX tries_by_task ON tries (job, idx);
CREATE INDEX open_tries ON tries (try) WHERE ended IS NULL;
CREATE TABLE stops (try INTEGER PRIMARY KEY);
CREATE TABLE job_turns (job INTEGER NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (job, turn))
  WITHOUT ROWID;
CREATE TABLE machines (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, spec BLOB NOT NULL,
  is_draining INTEGER NOT NULL);
CREATE TABLE keys (key TEXT PRIMARY KEY, digest BLOB NOT NULL, job TEXT NOT NULL,
  at INTEGER NOT NULL) WITHOUT ROWID;
"""


class StoreError(ArgosyError):
    """The database cannot be used. `is_passing` where trying again may help, as with a full disk."""

    code = "store"

    def __init__(self, problem: str, *, is_passing: bool = False, **place: Any) -> None:
        super().__init__(problem, **place)
        self.is_passing = is_passing


class LocalStore:
    """One open database, held by one server at a time. What is committed survives a crash of this
    computer if the store `is_lasting`, and otherwise one of the server."""

    def __init__(self, directory: Path, *, is_lasting: bool = True) -> None:
        self.path = directory / DATABASE
        self._lock = _lock(directory)
        try:
            self._db = _open(self.path, is_lasting=is_lasting)
        except BaseException:
            self._lock.close()
            raise
        #: When the cluster was made, in microseconds since 1970.
        self.origin = int(self.meta("origin") or 0)

    def close(self) -> None:
        self._db.close()
        self._lock.close()

    @contextmanager
    def turn(self) -> Iterator[sqlite3.Cursor]:
        """One transaction: on the disk when the block is left, and not at all if it raises."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db.cursor()
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise _explained(error, self.path) from error

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise _explained(error, self.path) from error

    def meta(self, key: str) -> str | None:
        rows = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None


def holds_cluster(directory: Path) -> bool:
    """Whether a server on this directory goes on with a cluster. A start that was cut short leaves
    none; a database that cannot be read may hold one."""
    path = directory / DATABASE
    if not path.exists():
        return False
    try:
        # To write, too: what a killed server has not finished writing is taken back when it is read.
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as db:
            if db.execute(_HAS_META).fetchone() is None:
                return False
            return db.execute("SELECT 1 FROM meta WHERE key = 'cluster'").fetchone() is not None
    except sqlite3.Error:
        return True


def _lock(directory: Path) -> IO[bytes]:
    """Held as long as the process lives, however it ends."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = open(directory / LOCK, "a+b")  # noqa: SIM115
    except OSError as error:
        raise StoreError(
            f"cannot write to {directory}: {error.strerror}",
            hint="name another directory with --dir",
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read(32).decode(errors="replace").strip()
        lock.close()
        who = f"process {holder}" if holder.isdecimal() else "another process"
        raise StoreError(
            f"{directory} is in use by {who}",
            hint="stop that server with `argosy down`, or name another directory with --dir",
        ) from None
    # Only for whoever is refused; a full disk does not take it.
    with suppress(OSError):
        lock.truncate(0)
        os.write(lock.fileno(), b"%d\n" % os.getpid())
    return lock


def _open(path: Path, *, is_lasting: bool) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE)
    except sqlite3.Error as error:
        raise _explained(error, path) from None
    try:
        # A commit is on the disk when it returns: SQLite syncs the log each time.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if is_lasting else 'OFF'}")
        db.execute("PRAGMA foreign_keys = OFF")
        # Also after a start that was cut short.
        if db.execute(_HAS_TABLES).fetchone() is None:
            origin = time.time_ns() // 1000
            db.executescript(
                f"BEGIN;{_SCHEMA}INSERT INTO meta VALUES ('format', '{FORMAT}'),"
                f" ('origin', '{origin}');COMMIT;"
            )
        found = None
        if db.execute(_HAS_META).fetchone() is not None:
            found = db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    except sqlite3.Error as error:
        db.close()
        raise _explained(error, path) from None
    if found is None or found[0] != str(FORMAT):
        db.close()
        raise StoreError(
            f"the database has format {found[0] if found else 'unknown'}",
            file=str(path),
            expected=f"format {FORMAT}",
            hint="use the version of Argosy that wrote it",
        )
    return db


def _explained(error: sqlite3.Error, path: Path) -> StoreError:
    name = getattr(error, "sqlite_errorname", "")
    reasons = {
        "SQLITE_FULL": (
            "the disk is full",
            "make room: a server that runs goes on by itself",
            True,
        ),
        "SQLITE_IOERR": ("the disk reports an error", "look at the system's log", True),
        "SQLITE_BUSY": ("the database is locked by another program", "close that program", True),
        "SQLITE_LOCKED": ("the database is locked by another program", "close that program", True),
        "SQLITE_READONLY": ("the database cannot be written", "check who may write there", False),
        "SQLITE_CANTOPEN": ("the database cannot be opened", "check who may write there", False),
        "SQLITE_CORRUPT": ("the database is damaged", "restore it from a backup", False),
        "SQLITE_NOTADB": ("not a database of Argosy's", "name another directory with --dir", False),
    }
    for prefix, (problem, hint, is_passing) in reasons.items():
        if name.startswith(prefix):
            return StoreError(problem, file=str(path), hint=hint, is_passing=is_passing)
    return StoreError(f"the database cannot be used: {error}", file=str(path))
