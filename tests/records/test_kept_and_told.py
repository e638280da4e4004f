"""What a run has kept and what its journal tells are the same; who caused which conflict."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from argosy.experiments.execute import execute
from argosy.host.records import AttemptRecord, LostRecord, PlacedRecord, RefusedRecord
from argosy.model.errors import RunDirectoryError
from argosy.model.explanations import Why
from argosy.model.scenario import MachineCrash, Output, Scenario
from argosy.records import directory
from argosy.records.answers import TaskAnswers
from argosy.records.audit import _Quarrels
from argosy.records.directory import default_directory, open_run
from argosy.records.files import write_whole
from argosy.records.in_memory import RunInMemory
from argosy.records.journal_run import JournalRun, open_recording
from argosy.records.task_history import TaskHistory
from argosy.testing.builders import SECOND, cell, job, scenario


def eventful(engine: str) -> Scenario:
    jobs = [job("a", 3, seconds=10), job("b", 2, seconds=5, submit=1), job("c", 1, submit=3)]
    crash = MachineCrash(at=4 * SECOND, machine="m0", down=2 * SECOND)
    return scenario(engine, jobs, cell=cell(2), faults=(crash,))


@pytest.fixture(params=["omega", "sparrow"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    execute(eventful(request.param), tmp_path / "run")
    return tmp_path / "run"


def rows(columns: dict[str, Any]) -> list[tuple[int, ...]]:
    return sorted(zip(*(column.tolist() for column in columns.values()), strict=True))


@pytest.mark.parametrize("engine", ["omega", "sparrow"])
def test_a_task_that_still_runs_has_no_end_in_a_journal_of_decisions(
    engine: str, tmp_path: Path
) -> None:
    jobs = [job("a", 2, seconds=100), job("b", seconds=1)]
    output = Output(log="decisions")
    execute(scenario(engine, jobs, horizon=10 * SECOND, output=output), tmp_path / "run")
    run = open_run(tmp_path / "run")
    for task, state in (("a/0", "running"), ("a/1", "running"), ("b/0", "finished")):
        history = TaskHistory(run, task)
        assert history.state() == state
        assert (history.last_end() is None) is (state == "running")
        ends = [line.text for line in TaskAnswers(run, task).story() if line.what == "finished"]
        assert ends == (["finished after running for 1 s"] if task == "b/0" else [])


def test_columns_that_were_kept_are_those_that_the_journal_tells(kept: Path) -> None:
    run, journal = open_run(kept), open_recording(kept / directory.JOURNAL)
    assert isinstance(journal, JournalRun)
    assert (run.is_finished, journal.is_finished) == (True, False)
    for told, saved in (
        (journal.task_rows(), run.task_rows()),
        (journal.job_rows(), run.job_rows()),
    ):
        assert list(told) == list(saved)
        assert rows(told) == rows(saved)
    assert len(run.task_rows()["task"]) == 6
    assert len(run.job_rows()["submitted"]) == 3
    assert (run.note, journal.note) == ("", "")
    assert isinstance(open_recording(kept), type(run))


def test_a_journal_alone_says_what_it_has_not(kept: Path) -> None:
    journal = open_recording(kept / directory.JOURNAL)
    for ask, what in (
        (journal.summary, "summary"),
        (journal.kept_tasks, "columns of tasks"),
        (journal.kept_jobs, "columns of jobs"),
    ):
        with pytest.raises(RunDirectoryError, match=f"a journal has no {what}") as caught:
            ask()
        assert caught.value.file == str(kept / directory.JOURNAL)
    # Tasks run as long as they were seen to.
    assert [each.id for each in journal.scenario().jobs] == ["a", "b", "c"]


def test_a_run_in_memory_gives_back_what_it_was_given(kept: Path) -> None:
    run = open_run(kept)
    tasks, jobs = {"task": np.arange(2)}, {"submitted": np.arange(3)}
    data = (kept / directory.JOURNAL).read_bytes()
    held = RunInMemory(run.scenario(), run.summary(), data, tasks, jobs)
    assert held.scenario() == run.scenario()
    assert held.summary() == run.summary()
    assert (held.kept_tasks(), held.kept_jobs()) == (tasks, jobs)
    assert len(list(held.read_journal().records())) == len(list(run.journal.records()))
    without = RunInMemory(run.scenario(), run.summary(), None, tasks, jobs)
    with pytest.raises(RunDirectoryError, match="this run has no journal") as caught:
        without.read_journal()
    assert caught.value.hint


def test_directories_are_numbered_from_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_directory("a b/c") == Path("runs/a-b-c-1")
    assert default_directory("a", "x") == Path("runs/a-x-1")
    for number in (1, 2, 4):
        Path(f"runs/a-{number}").mkdir(parents=True)
    assert default_directory("a") == Path("runs/a-3")


def test_what_is_no_run_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="no such run directory"):
        open_run(tmp_path / "none")
    with pytest.raises(RunDirectoryError, match="not a run directory") as caught:
        open_run(tmp_path)
    assert caught.value.expected == f"a {directory.MANIFEST} in it"


def test_files_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a" / "b"
    for text in (b"one", b"two"):
        write_whole(path, text)
        assert path.read_bytes() == text
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert list(path.parent.iterdir()) == [path]

    def fail(part: str, target: Path) -> None:
        # On the same file system, or it could not be replaced in one step.
        assert Path(part).parent == target.parent == path.parent
        raise OSError("no")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no"):
        write_whole(path, b"three")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def attempt(at: int, who: str, job: str) -> AttemptRecord:
    return AttemptRecord(at, job, who, 1)


def placed(at: int, who: str, *machines: int) -> PlacedRecord:
    return PlacedRecord(at, "x", list(range(len(machines))), list(machines), who)


def refused(at: int, who: str, job: str, *machines: int, why: Why = Why.NO_ROOM) -> RefusedRecord:
    count = len(machines)
    zeros = [0] * count
    return RefusedRecord(
        at, job, [*range(count)], [*machines], who, [int(why)] * count, zeros, zeros
    )


def quarrels(*facts: Any) -> _Quarrels:
    found = _Quarrels()
    for fact in facts:
        found.read(fact)
    return found


def test_who_claimed_a_machine_since_one_began_to_decide_caused_its_conflict() -> None:
    found = quarrels(
        placed(1, "early", 0),
        attempt(2, "loser", "j"),
        placed(3, "one", 1, 2),
        placed(3, "two", 3),
        # Machine 0 was claimed before it looked, and 9 by nobody: the room went otherwise.
        refused(4, "loser", "j", 0, 1, 2, 3, 9),
        # The same transaction, another job; then another transaction.
        refused(4, "loser", "j", 1),
        refused(5, "loser", "j", 1),
        refused(5, "loser", "j", 4, why=Why.JOB_LIMIT),
        refused(5, "loser", "j", 4, 4, why=Why.RESOURCE_LIMIT),
        refused(5, "other", "j", 4, why=Why.FILTERED),
    )
    assert found.conflicts_lost == {"loser": 2}
    assert found.claims_lost == {"loser": 7}
    assert found.claims_caused == {"one": 4, "two": 1}
    assert found.conflicts_caused == {"one": 2, "two": 1}
    assert found.lost_to_nobody == 2
    assert found.limit_refusals == {"loser": {Why.JOB_LIMIT: 1, Why.RESOURCE_LIMIT: 2}}


def test_who_claims_a_machine_at_the_instant_of_a_loss_has_preempted() -> None:
    lost = LostRecord(7, "v", [0, 1, 2], [0, 0, 1], "preempted")
    found = quarrels(
        LostRecord(7, "v", [3], [2], "machine_gone"),
        lost,
        placed(7, "one", 0, 0),
        placed(7, "two", 0, 2),
        # An instant later it is somebody else's luck.
        placed(8, "three", 1),
    )
    assert found.preempted_by == {"one": 2, "two": 0}
