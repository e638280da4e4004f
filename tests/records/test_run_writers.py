"""The directory of a run that begins: what it holds, who may have it, and what failures leave."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.model.errors import CommandError
from argosy.records import directory
from argosy.records.directory import RUNNING, SCENARIO, RunMark, RunStatus, RunWriter, _unfinished
from argosy.testing.builders import job, scenario

MARK = RunMark(command=["argosy", "run"], started="today", process=7)
SPEC = scenario("omega", [job("a")])


def test_a_run_that_begins_is_marked_locked_and_has_its_scenario(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    writer = RunWriter(path, MARK, SPEC)
    assert sorted(file.name for file in path.iterdir()) == sorted((RUNNING, SCENARIO))
    assert msgspec.json.decode((path / RUNNING).read_bytes(), type=RunMark) == MARK
    assert writer.scenario_digest
    assert _unfinished(path / RUNNING) is RunStatus.RUNNING
    # Nobody else can even read along with a lock of his own.
    with (
        open(path / RUNNING, "rb") as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    writer._mark.close()
    assert _unfinished(path / RUNNING) is RunStatus.CUT_SHORT
    writer.abandon()
    assert not path.exists()


def test_a_directory_that_exists_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(CommandError) as caught:
        RunWriter(tmp_path, MARK, SPEC)
    assert str(caught.value).startswith(f"{tmp_path} already exists;")
    assert caught.value.hint == "name another directory with --out"
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError) as caught:
        RunWriter(tmp_path / "file" / "run", MARK, SPEC)
    assert str(caught.value) == (
        f"cannot write to {tmp_path / 'file'}: Not a directory; name another directory"
    )
    assert caught.value.hint == "name another directory"


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt(), ValueError("x")])
def test_a_run_that_cannot_begin_leaves_nothing(
    tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(scenario: Any, file: Any) -> str:
        file.write(b"some")
        raise error

    monkeypatch.setattr(directory, "write_scenario", fail)
    with pytest.raises(type(error)) as caught:
        RunWriter(tmp_path / "run", MARK, SPEC)
    assert caught.value is error
    assert list(tmp_path.iterdir()) == []
