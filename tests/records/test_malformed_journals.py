"""A journal that was changed by hand: an error that names the line, from every command that reads it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy import cli
from argosy.experiments.execute import execute
from argosy.host.journal import Journal
from argosy.host.records import AttemptRecord, PhaseEndedRecord, SubmittedRecord
from argosy.host.setup import HostSetup
from argosy.model.errors import RunDirectoryError
from argosy.model.scenario import MachineDrain, SchedulerCrash
from argosy.records import directory
from argosy.records.journal_file import JournalFile
from argosy.records.steps import read_steps
from argosy.testing.builders import SECOND, job, scenario

SPEC = scenario(
    "yaq-d",
    [job("a", 3, seconds=10), job("b", 1, seconds=None, submit=1)],
    replicas=2,
    horizon=60 * SECOND,
    faults=(
        MachineDrain(at=2 * SECOND, machine="m3"),
        SchedulerCrash(at=3 * SECOND, scheduler="s-1", down=SECOND),
    ),
)
COMMANDS = {
    "summary": ["summary"],
    "audit": ["audit", "--run"],
    "another engine": ["replay", "--engine", "omega"],
}
Damage = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    path = tmp_path_factory.mktemp("kept") / "run"
    execute(SPEC, path)
    return (path / directory.JOURNAL).read_bytes().splitlines(keepends=True)


@pytest.fixture
def damaged(lines: list[bytes], tmp_path: Path) -> Callable[..., tuple[Path, int]]:
    def damage(what: str, **changes: Any) -> tuple[Path, int]:
        """The journal with these changes in its first line of this kind, and that line's number."""
        number = next(n for n, line in enumerate(lines) if line.startswith(b'{"what":"%b"' % what))
        changed = json.dumps(json.loads(lines[number]) | changes, separators=(",", ":"))
        path = tmp_path / "changed.jsonl"
        path.write_bytes(
            b"".join([*lines[:number], changed.encode() + b"\n", *lines[number + 1 :]])
        )
        return path, number + 1

    return lambda what, **changes: damage(what.encode(), **changes)  # type: ignore[arg-type]


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main([str(argument) for argument in arguments])
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("what", "changes", "says"),
    [
        ("enqueued", {"machines": [0, 1, 800]}, "machine 800; expected 0 to 7"),
        ("enqueued", {"machines": [0, 1, 8]}, "machine 8; expected 0 to 7"),
        ("enqueued", {"indices": [0, 1, 2**33]}, f"task index {2**33}; expected 0 to 2^32 - 1"),
        ("enqueued", {"machines": [-7, 1, 2]}, "machine -7; expected 0 to 7"),
        ("enqueued", {"machines": [0, 1]}, "2 machines; expected 3, one per task"),
        ("enqueued", {"indices": [-1, 0, 1]}, "task index -1; expected 0 to 2^32 - 1"),
        ("enqueued", {"job": "nobody"}, "job 'nobody'; expected one that was submitted"),
        ("enqueued", {"scheduler": "nobody"}, "scheduler 'nobody'; expected s-0, s-1"),
        ("submitted", {"number": 7}, "job number 7; expected 0"),
        ("started", {"tasks": [2**40]}, f"task number {2**40}; expected a task of a job"),
        ("started", {"tasks": [2 * 2**32]}, f"task number {2 * 2**32}; expected a task of a job"),
        ("machine", {"change": {"type": "DrainMachine", "machine": 8}}, "machine 8; expected"),
        ("machine", {"change": {"type": "DrainMachine", "machine": -1}}, "machine -1; expected"),
        ("ended", {"tasks": [-1]}, "task number -1; expected a task of a job"),
        ("ended", {"at": 2**60}, f"time {2**60}; expected "),
        ("machine", {"change": {"type": "DrainMachine", "machine": 90}}, "machine 90; expected"),
        ("crashed", {"scheduler": "nobody"}, "scheduler 'nobody'; expected s-0, s-1"),
        ("restarted", {"scheduler": "nobody"}, "scheduler 'nobody'; expected s-0, s-1"),
    ],
)
def test_the_line_that_contradicts_the_others_is_named(
    damaged: Callable[..., tuple[Path, int]],
    capsys: pytest.CaptureFixture[str],
    command: str,
    what: str,
    changes: dict[str, Any],
    says: str,
) -> None:
    path, line = damaged(what, **changes)
    told = complaint(capsys, *COMMANDS[command], path)
    assert told.startswith("argosy: error[run-directory]: ")
    assert f"changed.jsonl:{line}: {says}" in told


@pytest.mark.parametrize("command", ["why", "story"])
def test_answers_about_a_task_name_the_line_too(
    damaged: Callable[..., tuple[Path, int]], capsys: pytest.CaptureFixture[str], command: str
) -> None:
    path, line = damaged("started", machines=[])
    told = complaint(capsys, command, "a/0", "--run", path)
    assert f"changed.jsonl:{line}: 0 machines; expected " in told


@pytest.mark.parametrize("time", [-1, 2**53 + 1])
def test_a_decision_at_an_impossible_time_is_named(tmp_path: Path, time: int) -> None:
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(SPEC))
    journal.write(SubmittedRecord(0, 0, job("a").job, "s-0"))
    journal.write(AttemptRecord(time, "a", "s-0", 1))
    journal.flush()
    with pytest.raises(RunDirectoryError, match=f"journal:3: time {time}; expected 0 to "):
        read_steps(JournalFile(stream.getvalue()))


@pytest.mark.parametrize("number", [-1, 1])
def test_a_phase_of_a_job_that_was_never_submitted_is_named(number: int) -> None:
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(SPEC))
    journal.write(SubmittedRecord(0, 0, job("a").job, "s-0"))
    journal.write(PhaseEndedRecord(1, number, 0, 5))
    journal.flush()
    with pytest.raises(RunDirectoryError, match=f"journal:3: job number {number}; expected 0"):
        read_steps(JournalFile(stream.getvalue()))


@pytest.mark.parametrize(
    ("what", "changes", "told"),
    [
        ("due", {"ticket": -1}, "the replay decided otherwise"),
        ("due", {"ticket": 2**53 + 1}, "the replay decided otherwise"),
        ("ended", {"tasks": []}, "the replay decided otherwise"),
    ],
)
def test_a_replay_names_a_line_that_says_what_never_happens(
    damaged: Callable[..., tuple[Path, int]],
    capsys: pytest.CaptureFixture[str],
    what: str,
    changes: dict[str, Any],
    told: str,
) -> None:
    path, line = damaged(what, **changes)
    with pytest.raises(SystemExit) as stop:
        cli.main(["replay", str(path)])
    assert stop.value.code == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"{path}:{line}: decisions differ from here on\n")
    assert told in out


def test_a_replay_names_a_report_of_tasks_that_do_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The engine hears of its own tasks, of which none has ended yet.
    execute(scenario("spread", [job("a", 3, seconds=10)], replicas=1), tmp_path / "run")
    first, *rest = (tmp_path / "run" / directory.JOURNAL).read_bytes().splitlines(keepends=True)
    path = tmp_path / "early.jsonl"
    report = b'{"what":"report","at":0,"kind":"finished"}\n'
    path.write_bytes(b"".join([first, report, *rest]))
    with pytest.raises(SystemExit) as stop:
        cli.main(["replay", str(path)])
    assert stop.value.code == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"{path}:2: decisions differ from here on\nreplayed: the replay failed: ")


def test_a_scheduler_elsewhere_that_has_placed_a_task_contradicts_nothing(
    lines: list[bytes], tmp_path: Path
) -> None:
    number = next(at for at, line in enumerate(lines) if b'"what":"submitted"' in line)
    placed = json.loads(lines[number]) | {"number": 0, "machine": 1, "by": "elsewhere"}
    told = {
        "what": "placed",
        "at": placed["at"],
        "job": placed["job"]["id"],
        "indices": [0],
        "machines": [1],
        "scheduler": "elsewhere",
    }
    path = tmp_path / "placed.jsonl"

    def with_lines(*changed: dict[str, Any]) -> JournalFile:
        path.write_bytes(lines[0] + b"".join(json.dumps(each).encode() + b"\n" for each in changed))
        return JournalFile.read(path)

    assert set(read_steps(with_lines(placed, told)).schedulers) >= {"elsewhere", "s-0", "s-1"}
    with pytest.raises(RunDirectoryError, match=r"scheduler 'elsewhere'; expected s-0, s-1"):
        read_steps(with_lines(placed | {"by": ""}, told))
    # Of a journal with another mistake, it is that which is named.
    with pytest.raises(RunDirectoryError, match="machine 99"):
        read_steps(with_lines(placed, told | {"machines": [99]}))
