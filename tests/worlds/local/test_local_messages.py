"""What is said, word for word, of specifications, records and databases that cannot be used."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from argosy.worlds.local.isolation import CgroupParent, Isolation
from argosy.worlds.local.records import END, parse_lines, read_end
from argosy.worlds.local.spec import (
    CaptureLimits,
    ProcessLimits,
    SupervisorError,
    TrySpec,
    spec_values,
)
from argosy.worlds.local.store import DATABASE, LOCK, LocalStore, StoreError, _explained
from argosy.worlds.local.supervised import SupervisedTry, TryState, TryStatus

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"command": ()}, "command: nothing to execute; expected a program"),
    ({"command": ("", "x")}, "command: nothing to execute; expected a program"),
    ({"name": ""}, "name: name ''; expected one line of text"),
    ({"name": "a\nb"}, r"name: name 'a\nb'; expected one line of text"),
    ({"directory": "d"}, "directory: path 'd'; expected an absolute path"),
    ({"input": ""}, "input: path ''; expected an absolute path"),
    (
        {"environment": {"A": "1", "": "2"}},
        "environment: environment variable ''; expected non-empty names without =",
    ),
    (
        {"environment": {"A=": "1"}},
        "environment: environment variable 'A='; expected non-empty names without =",
    ),
    ({"timeout": -1}, "timeout: -1; expected at least 0"),
    ({"grace": -2}, "grace: -2; expected at least 0"),
    ({"umask": -1}, "umask: -1; expected at least 0"),
    (
        {"capture": CaptureLimits(segment_bytes=0)},
        "capture.segment_bytes: 0; expected at least 1",
    ),
    ({"capture": CaptureLimits(segments=0)}, "capture.segments: 0; expected at least 1"),
    (
        {"limits": ProcessLimits(memory_bytes=-1)},
        "limits.memory_bytes: -1; expected at least 0",
    ),
    ({"limits": ProcessLimits(cpu_milli=-1)}, "limits.cpu_milli: -1; expected at least 0"),
    ({"limits": ProcessLimits(cpu_weight=-1)}, "limits.cpu_weight: -1; expected at least 0"),
    ({"limits": ProcessLimits(processes=-1)}, "limits.processes: -1; expected at least 0"),
    ({"limits": ProcessLimits(open_files=-1)}, "limits.open_files: -1; expected at least 0"),
    ({"limits": ProcessLimits(cpus=(1, -3, 0))}, "limits.cpus: -3; expected at least 0"),
    (
        {"limits": ProcessLimits(cpu_weight=10_001)},
        "limits.cpu_weight: 10001; expected at most 10000",
    ),
]


@pytest.mark.parametrize(("fields", "said"), WRONG)
def test_a_field_that_makes_no_sense_is_named(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SupervisorError) as caught:
        TrySpec(**{"name": "a", "command": ("true",), **fields})
    assert str(caught.value) == said


def test_what_cannot_be_written_into_a_specification_is_named() -> None:
    place = "command or environment"
    for word, said in (
        ("a\0b", f"{place}: a null character; expected no null characters"),
        (
            "\ud800",
            f"{place}: character '\\ud800'; expected text that this system can encode",
        ),
    ):
        for fields in ({"command": ("x", word)}, {"environment": {"A": word}}):
            with pytest.raises(SupervisorError) as caught:
                TrySpec(**{"name": "a", "command": ("true",), **fields}).encode()
            assert str(caught.value) == said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"format=1\0name\0", "record 'name'; expected key=value"),
        (b"format=2\0name=a\0", "not a specification; expected format 1 and a name"),
        (b"format=1\0name=\0", "not a specification; expected format 1 and a name"),
        (b"format=1\0name=a", "not a specification; expected format 1 and a name"),
    ],
)
def test_what_is_no_specification_is_told(data: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(SupervisorError) as caught:
        spec_values(data)
    assert str(caught.value) == said
    directory = tmp_path / "try"
    directory.mkdir(mode=0o700)
    (directory / "spec").write_bytes(data)
    with pytest.raises(SupervisorError) as caught:
        SupervisedTry.adopt(directory)
    assert str(caught.value) == f"{directory}/spec: {said}"


def test_a_specification_has_its_last_word_on_keys_that_stand_once() -> None:
    data = b"format=1\0name=a=b\0arg=x\0env=A=1\0cpu=0\0umask=\0"
    assert spec_values(data) == {"format": "1", "name": "a=b", "umask": ""}


def test_a_directory_without_a_specification_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "try"
    with pytest.raises(SupervisorError) as caught:
        SupervisedTry.adopt(directory)
    said = f"{directory}: no try was launched here; expected a directory with a file spec"
    assert str(caught.value) == said
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "supervisor").exists(), "and nobody will launch one"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "f: the record is cut short; expected whole lines"),
        (b"format=1\na=1", "f: the record is cut short; expected whole lines"),
        (b"format=1\n\xff=1\n", "f: not text; expected lines key=value"),
        (b"format=1\na\n", "f:2: line 'a'; expected key=value, every key once"),
        (b"format=1\n=1\n", "f:2: line '=1'; expected key=value, every key once"),
        (b"format=1\na=1\na=2\n", "f:3: line 'a=2'; expected key=value, every key once"),
        (b"a=1\n", "f: unknown format; expected format 1"),
        (b"format=2\n", "f: unknown format; expected format 1"),
    ],
)
def test_a_record_that_cannot_be_read_is_told(data: bytes, said: str) -> None:
    with pytest.raises(SupervisorError) as caught:
        parse_lines(data, "f")
    assert str(caught.value) == said


def test_values_may_be_empty_and_have_equals_signs() -> None:
    assert parse_lines(b"format=1\na=\nb=c=d\n", "f") == {"a": "", "b": "c=d"}


def test_a_key_or_value_of_an_end_that_nobody_knows_is_told(tmp_path: Path) -> None:
    path = tmp_path / END
    for text, said in (
        ("out_of_memory=maybe", "out_of_memory maybe; expected yes, no or unknown"),
        ("code=0", "out_of_memory None; expected yes, no or unknown"),
        ("out_of_memory=no\nzebra=1\nyak=2", "unknown key yak"),
    ):
        path.write_text(f"format=1\n{text}\n")
        with pytest.raises(SupervisorError) as caught:
            read_end(str(tmp_path))
        assert str(caught.value) == f"{path}: {said}"


def test_each_state_of_a_try_has_a_sentence() -> None:
    assert {state: TryStatus(state=state).sentence() for state in set(TryState) - {"ended"}} == {
        "launched": "its supervisor is starting",
        "starting": "it is starting",
        "running": "it is running",
        "withdrawn": "stopped before it started",
        "lost": "its supervisor died, so how it ended is unknown",
    }
    assert [state for state in TryState if state.is_over] == ["ended", "withdrawn", "lost"]


def test_cgroups_that_cannot_be_had_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.worlds.local.isolation.own_cgroup", lambda: None)
    with pytest.raises(SupervisorError) as caught:
        CgroupParent("a")
    assert str(caught.value) == "there are no cgroups (v2) here; launch without a cgroup"
    with pytest.raises(SupervisorError) as caught:
        CgroupParent("a", tmp_path / "none")
    said = "No such file or directory; expected a cgroup that can be made"
    assert str(caught.value) == f"{tmp_path}/none/a: {said}"


@pytest.mark.parametrize(
    ("controllers", "said"),
    [
        (
            ("cpu",),
            "Cgroups limit CPU of each task; memory is limited per process (RLIMIT_DATA); the number"
            " of processes is not limited; processes left behind are killed by cgroup.",
        ),
        (
            ("memory",),
            "Cgroups limit memory of each task; CPU and the number of processes are not limited;"
            " processes left behind are killed by cgroup.",
        ),
        (
            ("pids", "cpu"),
            "Cgroups limit CPU and the number of processes of each task; memory is limited per"
            " process (RLIMIT_DATA); processes left behind are killed by cgroup.",
        ),
    ],
)
def test_limits_that_only_some_controllers_keep(controllers: tuple[str, ...], said: str) -> None:
    isolation = Isolation(platform="linux", parent="/cgroup", controllers=controllers)
    assert isolation.sentence() == said


@pytest.mark.parametrize(
    ("name", "said", "is_passing"),
    [
        ("SQLITE_FULL", "the disk is full; make room: a server that runs goes on by itself", True),
        ("SQLITE_IOERR", "the disk reports an error; look at the system's log", True),
        ("SQLITE_BUSY", "the database is locked by another program; close that program", True),
        ("SQLITE_LOCKED", "the database is locked by another program; close that program", True),
        ("SQLITE_READONLY", "the database cannot be written; check who may write there", False),
        ("SQLITE_CANTOPEN", "the database cannot be opened; check who may write there", False),
        ("SQLITE_CORRUPT", "the database is damaged; restore it from a backup", False),
        ("SQLITE_NOTADB", "not a database of Argosy's; name another directory with --dir", False),
        ("", "the database cannot be used: odd", False),
    ],
)
def test_every_trouble_of_a_database_says_what_to_do(
    name: str, said: str, is_passing: bool
) -> None:
    error = sqlite3.OperationalError("odd")
    error.sqlite_errorname = name
    told = _explained(error, Path("/db"))
    assert (str(told), told.is_passing) == (f"/db: {said}", is_passing)


def test_who_cannot_have_a_store_is_told_what_to_do(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    stop = "stop that server with `argosy down`, or name another directory with --dir"
    for text, who in (("12\n", "process 12"), ("me", "another process"), ("", "another process")):
        (tmp_path / LOCK).write_text(text)
        with pytest.raises(StoreError) as caught:
            LocalStore(tmp_path)
        assert str(caught.value) == f"{tmp_path} is in use by {who}; {stop}"
    store.close()
    with sqlite3.connect(tmp_path / DATABASE) as db:
        db.execute("UPDATE meta SET value = '2' WHERE key = 'format'")
    db.close()
    with pytest.raises(StoreError) as caught:
        LocalStore(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/{DATABASE}: the database has format 2; expected format 1; use the version of"
        " Argosy that wrote it"
    )
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        LocalStore(tmp_path / "file")
    assert str(caught.value) == (
        f"cannot write to {tmp_path}/file: File exists; name another directory with --dir"
    )
