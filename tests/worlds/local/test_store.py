"""The local database: one holder, whole turns, and one clear error for each way it can be unusable."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from argosy.worlds.local.store import (
    DATABASE,
    LOCK,
    LocalStore,
    StoreError,
    _explained,
    holds_cluster,
)


def test_a_turn_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with store.turn() as turn:
        turn.execute("INSERT INTO meta VALUES ('a', '1')")

    def write(key: str, then: str) -> None:
        with store.turn() as turn:
            turn.execute("INSERT INTO meta VALUES (?, '2')", (key,))
            turn.execute(then)
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        write("b", "SELECT 1")
    assert (store.meta("a"), store.meta("b")) == ("1", None)
    with pytest.raises(StoreError, match="the database cannot be used"):
        write("c", "INSERT INTO nowhere VALUES (1)")
    assert store.meta("c") is None
    with pytest.raises(StoreError, match="no such table: nowhere"):
        store.rows("SELECT * FROM nowhere")
    store.close()
    again = LocalStore(tmp_path)
    assert (again.meta("a"), again.meta("format")) == ("1", "1")
    again.close()


def test_who_holds_it_is_named_and_nobody_holds_it_for_longer_than_needed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "deep" / "dir")
    assert (tmp_path / "deep" / "dir").stat().st_mode & 0o777 == 0o700
    with pytest.raises(StoreError, match=f"is in use by process {os.getpid()}; stop that server"):
        LocalStore(tmp_path / "deep" / "dir")
    (tmp_path / "deep" / "dir" / LOCK).write_text("garbage")
    with pytest.raises(StoreError, match="is in use by another process"):
        LocalStore(tmp_path / "deep" / "dir")
    store.close()
    LocalStore(tmp_path / "deep" / "dir").close()


@pytest.mark.parametrize("found", ["99", None])
def test_another_format_is_refused_and_left_alone(tmp_path: Path, found: str | None) -> None:
    LocalStore(tmp_path).close()
    with sqlite3.connect(tmp_path / DATABASE) as db:
        db.execute("DELETE FROM meta")
        if found is not None:
            db.execute("INSERT INTO meta VALUES ('format', ?)", (found,))
    db.close()
    said = f"the database has format {found or 'unknown'}; expected format 1; use the version"
    for _ in range(2):
        # The lock is free again after each refusal.
        with pytest.raises(StoreError, match=said):
            LocalStore(tmp_path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_text("something else, and long enough to be looked at" * 50)
    with pytest.raises(StoreError, match=r"argosy\.db: not a database of Argosy's") as caught:
        LocalStore(tmp_path)
    assert not caught.value.is_passing


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write to .*; name another directory with --dir"):
        LocalStore(tmp_path / "file" / "dir")


@pytest.mark.parametrize(
    ("name", "says", "is_passing"),
    [
        ("SQLITE_FULL", "the disk is full", True),
        ("SQLITE_IOERR_WRITE", "the disk reports an error", True),
        ("SQLITE_BUSY", "the database is locked by another program", True),
        ("SQLITE_LOCKED_SHAREDCACHE", "the database is locked by another program", True),
        ("SQLITE_READONLY", "the database cannot be written", False),
        ("SQLITE_CANTOPEN", "the database cannot be opened", False),
        ("SQLITE_CORRUPT", "the database is damaged", False),
        ("SQLITE_MISUSE", "the database cannot be used: it", False),
    ],
)
def test_every_trouble_says_whether_it_may_pass(name: str, says: str, is_passing: bool) -> None:
    error = sqlite3.OperationalError("it")
    error.sqlite_errorname = name
    told = _explained(error, Path("d"))
    assert (told.problem, told.is_passing, told.file) == (says, is_passing, "d")


def test_a_start_that_was_killed_while_the_database_was_made_leaves_no_cluster(
    tmp_path: Path,
) -> None:
    """What such a server leaves: a database with pages of its first transaction, and the journal that
    takes them back."""
    making, left = tmp_path / "making", tmp_path / "left"
    making.mkdir()
    with closing(sqlite3.connect(making / DATABASE, isolation_level=None)) as database:
        database.execute("CREATE TABLE earlier (key)")
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN")
        database.execute("CREATE TABLE meta (key, value)")
        database.execute("INSERT INTO meta VALUES ('cluster', zeroblob(1000000))")
        shutil.copytree(making, left)
    assert {path.name for path in left.iterdir()} == {DATABASE, f"{DATABASE}-journal"}
    assert not holds_cluster(left)


def test_a_database_that_cannot_be_read_may_hold_a_cluster(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_text("something else, and long enough to be looked at" * 50)
    assert holds_cluster(tmp_path)


def test_what_an_earlier_holder_left_in_the_lock_is_not_read(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("1234567\n")
    store = LocalStore(tmp_path)
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()};"):
        LocalStore(tmp_path)
    assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"
    store.close()


@pytest.mark.parametrize(("is_lasting", "synchronous"), [(True, 2), (False, 0)])
def test_only_a_lasting_store_waits_for_the_disk(
    tmp_path: Path, is_lasting: bool, synchronous: int
) -> None:
    store = LocalStore(tmp_path, is_lasting=is_lasting)
    assert store.rows("PRAGMA synchronous") == [(synchronous,)]
    assert store.rows("PRAGMA journal_mode") == [("wal",)]
    assert store.meta("origin") == str(store.origin)
    store.close()
