"""Runs and journals that cannot be read or written: each error in all its parts, and which run is the
latest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.experiments.execute import execute
from argosy.host.records import VERSION
from argosy.model.errors import ArgosyError, CommandError
from argosy.model.scenario import Output
from argosy.records import directory
from argosy.records.directory import RunMark, RunWriter, latest_directory, open_run
from argosy.records.in_memory import RunInMemory
from argosy.records.journal_file import JournalFile
from argosy.records.journal_run import JournalRun, open_recording
from argosy.records.record import RunStatus
from argosy.testing.builders import job, scenario

AGAIN = "run the scenario again to get a whole directory"
KEEP = 'run it with output.log = "replayable", which is the default'
MARK = RunMark(command=["argosy", "run"], started="today", process=1)


def parts(error: ArgosyError) -> dict[str, Any]:
    """All parts of an error that it has."""
    names = ("problem", "file", "line", "field", "expected", "hint")
    return {name: value for name in names if (value := getattr(error, name)) is not None}


def refusal(action: Callable[[], object]) -> dict[str, Any]:
    with pytest.raises(ArgosyError) as caught:
        action()
    assert caught.value.code == "run-directory"
    return parts(caught.value)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("kept") / "run"
    execute(scenario("omega", [job("a")]), path)
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.fixture
def kept(whole: dict[str, bytes], tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    for name, data in whole.items():
        (run / name).write_bytes(data)
    return run


class TestDirectories:
    def test_what_is_no_run_says_what_was_looked_for(self, tmp_path: Path) -> None:
        gone, empty = tmp_path / "gone", tmp_path / "empty"
        empty.mkdir()
        assert refusal(lambda: open_run(gone)) == {
            "problem": "no such run directory",
            "file": str(gone),
        }
        assert refusal(lambda: open_run(empty)) == {
            "problem": "not a run directory",
            "file": str(empty),
            "expected": "a manifest.json in it",
            "hint": AGAIN,
        }

    def test_a_run_of_an_older_version_says_who_can_read_it(
        self, kept: Path, whole: dict[str, bytes]
    ) -> None:
        entries = msgspec.json.decode(whole[directory.MANIFEST])
        manifest = kept / directory.MANIFEST
        both = {**entries, "decisions.jsonl": entries[directory.JOURNAL]}
        old = {name: entry for name, entry in both.items() if name != directory.JOURNAL}
        manifest.write_bytes(msgspec.json.encode(old))
        assert refusal(lambda: open_run(kept)) == {
            "problem": "a run of an older version, with a decisions.jsonl",
            "file": str(kept),
            "expected": "a journal.jsonl",
            "hint": "run the scenario again, or read it with the version of Argosy that wrote it",
        }
        # A file of that name beside a journal is a file like any other.
        manifest.write_bytes(msgspec.json.encode(both))
        assert refusal(lambda: open_run(kept))["problem"] == "missing"

    def test_a_file_that_is_missing_shorter_or_changed_is_told_apart(
        self, kept: Path, whole: dict[str, bytes]
    ) -> None:
        file, data = kept / directory.SUMMARY, whole[directory.SUMMARY]
        size = len(data)
        for damaged, told in (
            (data[:-1], {"problem": f"{size - 1} bytes long", "expected": f"{size} bytes"}),
            (data[:-1] + b"x", {"problem": "changed since the run was saved"}),
        ):
            file.write_bytes(damaged)
            assert refusal(lambda: open_run(kept)) == {"file": str(file), "hint": AGAIN, **told}
        file.write_bytes(data)
        assert open_run(kept).status is RunStatus.FINISHED
        file.unlink()
        missing = {"problem": "missing", "file": str(file), "hint": AGAIN}
        assert refusal(lambda: open_run(kept)) == missing
        file.mkdir()
        assert refusal(lambda: open_run(kept)) == missing

    def test_files_that_break_after_the_run_was_opened_are_named(self, kept: Path) -> None:
        run = open_run(kept)
        for name in (directory.SCENARIO, directory.PROVENANCE, directory.MANIFEST):
            (kept / name).write_bytes(b"{")
        for name in (directory.TASKS, directory.JOBS):
            (kept / name).write_bytes(b"x")
        actions: dict[str, Callable[[], object]] = {
            directory.SCENARIO: run.scenario,
            directory.PROVENANCE: run.provenance,
            directory.TASKS: run.kept_tasks,
            directory.JOBS: run.kept_jobs,
            directory.MANIFEST: lambda: open_run(kept),
        }
        for name, action in actions.items():
            told = refusal(action)
            assert told.pop("problem")
            assert told == {"file": str(kept / name), "hint": AGAIN}
        (kept / directory.JOURNAL).unlink()
        assert refusal(lambda: open_run(kept).journal)["file"] == str(kept / directory.MANIFEST)
        assert refusal(lambda: run.journal) == {
            "problem": "No such file or directory",
            "file": str(kept / directory.JOURNAL),
        }

    @pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
    def test_columns_that_are_cut_off_after_the_run_was_opened_are_named(
        self, kept: Path, share: float
    ) -> None:
        run = open_run(kept)
        for name, action in ((directory.TASKS, run.kept_tasks), (directory.JOBS, run.kept_jobs)):
            data = (kept / name).read_bytes()
            (kept / name).write_bytes(data[: int(share * len(data))])
            told = refusal(action)
            assert told.pop("problem")
            assert told == {"file": str(kept / name), "hint": AGAIN}

    def test_a_mark_that_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        mark = tmp_path / directory.RUNNING
        mark.mkdir()
        assert refusal(lambda: open_run(tmp_path)) == {
            "problem": "Is a directory",
            "file": str(mark),
        }

    def test_a_run_that_was_cut_short_has_what_is_there(self, tmp_path: Path) -> None:
        (tmp_path / directory.RUNNING).touch()
        run = open_run(tmp_path)
        assert run.status is RunStatus.CUT_SHORT
        assert refusal(lambda: run.journal) == {
            "problem": "this run has no journal",
            "file": str(tmp_path),
            "hint": KEEP,
        }

    def test_a_directory_that_cannot_be_made_is_refused(self, tmp_path: Path) -> None:
        spec = scenario("omega", [])
        (tmp_path / "file").touch()
        for path, expected in (
            (
                tmp_path,
                {
                    "problem": f"{tmp_path} already exists",
                    "hint": "name another directory with --out",
                },
            ),
            (
                tmp_path / "file" / "run",
                {
                    "problem": f"cannot write to {tmp_path / 'file'}: Not a directory",
                    "hint": "name another directory",
                },
            ),
        ):
            with pytest.raises(CommandError) as caught:
                RunWriter(path, MARK, spec)
            assert parts(caught.value) == expected

    def test_a_run_in_progress_is_marked_and_leaves_nothing_if_it_is_abandoned(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "deep" / "run"
        spec = scenario("omega", [job("a")])
        writer = RunWriter(path, MARK, spec)
        assert sorted(file.name for file in path.iterdir()) == ["running.json", "scenario.json"]
        assert msgspec.json.decode((path / directory.RUNNING).read_bytes(), type=RunMark) == MARK
        run = open_run(path)
        assert (run.status, run.is_finished) == (RunStatus.RUNNING, False)
        assert run.scenario() == spec
        writer.abandon()
        assert list(path.parent.iterdir()) == []

    def test_what_people_may_look_at_is_laid_out_for_them(self, whole: dict[str, bytes]) -> None:
        assert sorted(whole) == [
            "jobs.npz", "journal.jsonl", "manifest.json", "provenance.json", "scenario.json",
            "summary.json", "tasks.npz",
        ]  # fmt: skip
        for name in ("manifest.json", "provenance.json", "summary.json"):
            value = msgspec.json.encode(msgspec.json.decode(whole[name]))
            assert whole[name] == msgspec.json.format(value, indent=2)
        assert sorted(msgspec.json.decode(whole["manifest.json"])) == sorted(
            name for name in whole if name != "manifest.json"
        )


@pytest.mark.parametrize(
    ("made", "latest"),
    [
        ([("a", "manifest.json", 1), ("b", "manifest.json", 2)], "b"),
        ([("a", "manifest.json", 3), ("b", "manifest.json", 2)], "a"),
        ([("a", "manifest.json", 3), ("b", "running.json", 2)], "a"),
        ([("a", "manifest.json", 3), ("b", "running.json", 4)], "b"),
        ([("a", "running.json", 5), ("b", "running.json", 4)], "a"),
        # Other files do not make a run.
        ([("a", "manifest.json", 1), ("b", "summary.json", 2)], "a"),
    ],
)
def test_the_latest_run_was_finished_or_started_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[Any], latest: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for run, name, at in made:
        file = Path("runs") / run / name
        file.parent.mkdir(parents=True)
        file.touch()
        os.utime(file, (at, at))
    assert latest_directory() == Path("runs") / latest


def test_without_any_run_the_latest_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(latest_directory) == {
        "problem": "no run found",
        "file": "runs",
        "hint": "run a scenario first, or name one with --run",
    }


class TestJournals:
    @pytest.mark.parametrize(
        ("data", "hint"),
        [
            (b"", "a run that has just started may not have written its first line yet"),
            (
                b'{"what":"journal","ver',
                "a run that has just started may not have written its first line yet",
            ),
            (b"{}\n", None),
            (b'{"what":"journal"}\n', None),
        ],
    )
    def test_what_is_no_journal_is_refused(self, data: bytes, hint: str | None) -> None:
        told = refusal(JournalFile(data, "there").header)
        assert told.pop("hint", None) == hint
        assert told == {
            "problem": "not a journal",
            "file": "there",
            "line": 1,
            "expected": '{"what":"journal","version":...',
        }

    @pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
    def test_a_journal_of_another_version_is_for_another_argosy(self, version: int) -> None:
        data = b'{"what":"journal","version":%d}\n' % version
        assert refusal(JournalFile(data, "there").header) == {
            "problem": f"a journal of version {version}",
            "file": "there",
            "line": 1,
            "expected": f"version {VERSION}",
            "hint": "read it with the version of Argosy that wrote it",
        }

    def test_a_line_that_cannot_be_decoded_has_its_number(self, whole: dict[str, bytes]) -> None:
        lines = whole[directory.JOURNAL].splitlines(keepends=True)
        for number in (2, 3):
            broken = [*lines[: number - 1], b'{"what":"submitted","at":0}\n', *lines[number:]]
            journal = JournalFile(b"".join(broken), "there")
            for read in (journal.records, journal.facts):
                told = refusal(lambda read=read: list(read()))  # type: ignore[misc]
                assert "missing required field" in told.pop("problem")
                assert told == {"file": "there", "line": number}

    def test_a_journal_alone_has_nothing_that_was_saved_beside_it(
        self, tmp_path: Path, whole: dict[str, bytes]
    ) -> None:
        path = tmp_path / "j.jsonl"
        path.write_bytes(whole[directory.JOURNAL])
        run = open_recording(path)
        assert isinstance(run, JournalRun)
        assert (run.path, run.status, run.note) == (path, RunStatus.JOURNAL, "")
        actions = {
            "summary": run.summary,
            "columns of tasks": run.kept_tasks,
            "columns of jobs": run.kept_jobs,
        }
        for what, action in actions.items():
            assert refusal(action) == {"problem": f"a journal has no {what}", "file": str(path)}

    def test_a_run_in_memory_without_a_journal_says_how_to_get_one(self) -> None:
        run = RunInMemory(scenario("omega", []), None, None, {}, {})  # type: ignore[arg-type]
        assert refusal(lambda: run.journal) == {"problem": "this run has no journal", "hint": KEEP}

    def test_decisions_alone_do_not_tell_where_tasks_are(self, tmp_path: Path) -> None:
        spec = scenario("omega", [job("a")], output=Output(log="decisions", tasks=False))
        execute(spec, tmp_path / "run")
        for run in (open_run(tmp_path / "run"), open_recording(tmp_path / "run/journal.jsonl")):
            assert refusal(lambda run=run: run.state) == {  # type: ignore[misc]
                "problem": "this run kept no starts and ends of tasks",
                "file": str(tmp_path / "run/journal.jsonl"),
                "hint": KEEP,
            }
