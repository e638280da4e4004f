"""Runs that still go on, and runs whose process was killed, are read like any other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from scripted_engine import Scripted

import argosy.experiments.execute as execution
from argosy.cell import View
from argosy.cli.app import app
from argosy.experiments.execute import execute
from argosy.host import TaskState
from argosy.model.effects import Effect, WakeMe
from argosy.model.errors import RunDirectoryError
from argosy.model.events import Event, JobSubmitted, TimerFired
from argosy.model.scenario import Scenario
from argosy.records import directory
from argosy.records.answers import TaskAnswers
from argosy.records.audit import audit
from argosy.records.directory import RunStatus, latest_directory, open_run
from argosy.testing.builders import SECOND, job, scenario


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events can be read at once, not within a second."""
    monkeypatch.setattr(execution, "_FLUSH_SECONDS", 0.0)


def spec() -> Scenario:
    jobs = [job("early", 2, seconds=5), job("later", 1, submit=3), job("last", 1, submit=60)]
    return scenario("omega", jobs, replicas=1, settings={"t_job": SECOND})


def while_it_runs(path: Path, look: Callable[[], None]) -> None:
    """Looks when the last job has just been submitted."""
    shares: list[float] = []

    def progress(share: float) -> None:
        shares.append(share)
        if share == 1.0:
            look()

    execute(spec(), path, progress=progress)
    assert shares[-1] == 1.0


def test_a_run_in_progress_answers(tmp_path: Path) -> None:
    def look() -> None:
        run = open_run(tmp_path / "run")
        assert run.status is RunStatus.RUNNING
        assert run.note == "run in progress: this is what had happened at 1 min"
        assert run.state.counts[TaskState.FINISHED] == 3
        assert run.state.counts[TaskState.PENDING] == 1
        assert TaskAnswers(run, "early/1").why().state == "finished"
        assert TaskAnswers(run, "early/1").story()[-1].what == "finished"
        why = TaskAnswers(run, "last").why()
        assert why.state == "pending"
        assert why.remedy.endswith("no attempt had begun so far")
        assert audit(run).ended_at == 60 * SECOND
        assert audit(run).schedulers[0].claims == 3

    while_it_runs(tmp_path / "run", look)
    assert open_run(tmp_path / "run").status is RunStatus.FINISHED
    assert not (tmp_path / "run" / directory.RUNNING).exists()


def test_a_run_whose_process_was_killed_can_be_read_as_far_as_it_came(tmp_path: Path) -> None:
    """A copy of what is left of it: nobody holds the lock there."""

    def look() -> None:
        shutil.copytree(tmp_path / "run", tmp_path / "left")

    while_it_runs(tmp_path / "run", look)
    run = open_run(tmp_path / "left")
    assert run.status is RunStatus.CUT_SHORT
    assert run.note == "the run was cut short: this is what had happened at 1 min"
    assert TaskAnswers(run, "early").why().state == "finished"


def test_a_line_that_is_not_complete_is_not_read(tmp_path: Path) -> None:
    def look() -> None:
        shutil.copytree(tmp_path / "run", tmp_path / "left")

    while_it_runs(tmp_path / "run", look)
    with open(tmp_path / "left" / directory.JOURNAL, "ab") as journal:
        journal.write(b'{"what":"placed","at":99')
    assert open_run(tmp_path / "left").state.until == 60 * SECOND


@pytest.mark.parametrize("command", [["why", "early/0"], ["story", "early/0"], ["audit"]])
def test_commands_say_that_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def look() -> None:
        assert latest_directory() == Path("runs/here")
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert done.stderr == "note: run in progress: this is what had happened at 1 min\n"
        assert "s" in done.stdout

    while_it_runs(Path("runs/here"), look)
    assert CliRunner().invoke(app, command).stderr == ""


def test_lines_that_no_decision_follows_can_be_read_too(tmp_path: Path) -> None:
    """The runtime writes them on its own."""
    journal, seen = tmp_path / "run" / directory.JOURNAL, []

    class Waking(Scripted):
        name = "waking"

        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            if isinstance(event, TimerFired):
                seen.append(journal.read_bytes().count(b'{"what":"due"'))
            return [] if isinstance(event, JobSubmitted) else [WakeMe(now + SECOND, "")]

    execute(
        scenario("waking", [job("a")], replicas=1, horizon=5 * SECOND),
        tmp_path / "run",
        also={"waking": Waking},
    )
    assert seen == [3, 4, 5, 6, 7]


def test_a_finished_run_has_its_journal_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []

    def note(number: int) -> None:
        synced.append(Path(f"/proc/self/fd/{number}").read_bytes())

    monkeypatch.setattr("argosy.host.journal.os.fsync", note)
    execute(spec(), tmp_path / "run")
    assert (tmp_path / "run" / directory.JOURNAL).read_bytes() in synced


def test_a_directory_that_is_being_written_is_taken(tmp_path: Path) -> None:
    def look() -> None:
        with pytest.raises(Exception, match="already exists"):
            execute(spec(), tmp_path / "run")
        assert open_run(tmp_path / "run").status is RunStatus.RUNNING

    while_it_runs(tmp_path / "run", look)


def test_a_run_of_an_older_version_says_so(tmp_path: Path) -> None:
    execute(spec(), tmp_path / "run")
    old, manifest = tmp_path / "run" / "decisions.jsonl", tmp_path / "run" / directory.MANIFEST
    (tmp_path / "run" / directory.JOURNAL).rename(old)
    entries = msgspec.json.decode(manifest.read_bytes())
    entries[old.name] = entries.pop(directory.JOURNAL)
    manifest.write_bytes(msgspec.json.encode(entries))
    with pytest.raises(RunDirectoryError, match="run of an older version") as caught:
        open_run(tmp_path / "run")
    assert "run the scenario again" in str(caught.value)


def test_a_directory_of_something_else_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="not a run directory"):
        open_run(tmp_path)
