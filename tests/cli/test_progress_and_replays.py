"""The progress bar, moments of a live story, and what a replay reports."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import QUICKSTART, Call

from argosy.cli import progress as progressing
from argosy.cli.story import _when
from argosy.model.errors import ReplayDiverged
from argosy.records.directory import RUNNING, RunMark
from argosy.records.replay import Replay, ReplaySummary


class Bar:
    """In place of a bar on the terminal."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.task_ids = ["only"]

    def add_task(self, title: str, *, total: float) -> None:
        self.asked.append(("add", title, total))

    def start(self) -> None:
        self.asked.append(("start",))

    def update(self, task: str, *, completed: float) -> None:
        self.asked.append(("update", task, completed))

    def stop(self) -> None:
        self.asked.append(("stop",))


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> Bar:
    made = Bar()
    monkeypatch.setattr(progressing, "_bar", lambda: made)
    return made


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_is_shown_on_a_terminal_after_a_second(
    bar: Bar, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 5.0
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(progressing.time, "monotonic", lambda: now)
    with progressing.progress("working") as tell:
        tell(0.1)
        now = 6.0
        tell(0.2)
        now = 6.1
        tell(0.3)
        tell(0.4)
    expected = [
        ("add", "working", 1.0), ("start",), ("update", "only", 0.3), ("update", "only", 0.4),
        ("stop",),
    ]  # fmt: skip
    assert bar.asked == (expected if is_terminal else [])


def test_the_bar_disappears_and_takes_no_title_for_markup() -> None:
    bar = progressing._bar()
    assert (bar.console.stderr, bar.live.transient) == (True, True)
    bar.add_task("[red]title", total=1.0)
    [task] = bar.tasks
    assert str(bar.columns[0].render(task)) == "[red]title"


def test_moments_of_a_live_story_are_dates() -> None:
    origin = datetime(2026, 5, 1, 12, tzinfo=UTC)
    later = datetime(2026, 5, 1, 12, 0, 1, 500_000, tzinfo=UTC).astimezone()
    assert _when(1_500_000, origin) == f"{later:%Y-%m-%d %H:%M:%S}.500"
    assert _when(1_500_000, None) == 1_500_000


@pytest.fixture
def run(argosy: Call) -> str:
    assert argosy("run", QUICKSTART, "--out", "kept").code == 0
    return "kept"


def test_a_run_in_progress_is_replayed_as_far_as_it_has_come(argosy: Call, run: str) -> None:
    lines = (Path(run) / "journal.jsonl").read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if line.startswith(b'{"what":"placed"'))
    cut = Path("cut")
    cut.mkdir()
    (cut / "scenario.json").write_bytes((Path(run) / "scenario.json").read_bytes())
    (cut / "journal.jsonl").write_bytes(b"".join(lines[:last]))
    mark = RunMark(command=["argosy", "run"], started="today", process=os.getpid())
    (cut / RUNNING).write_bytes(msgspec.json.encode(mark))
    found = argosy("replay", "cut", "-o", "json")
    assert (found.code, json.loads(found.out)["lines"]) == (0, last)


def test_a_replay_that_decides_otherwise_says_where(
    argosy: Call, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(self: Replay, tell: Any) -> ReplaySummary:
        raise ReplayDiverged(
            "it chose m2", line=7, expected="it chose m1", hint="try the other one"
        )

    monkeypatch.setattr(Replay, "run", differs)
    result = argosy("replay", run, "-o", "json")
    assert result.code == 1
    told = json.loads(result.out)
    assert told.pop("journal").endswith("journal.jsonl")
    assert told == {
        "same": False, "line": 7, "problem": "it chose m2", "recorded": "it chose m1",
        "hint": "try the other one",
    }  # fmt: skip
    lines = argosy("replay", run).out.splitlines()
    assert lines[0].endswith("journal.jsonl:7: decisions differ from here on")
    assert lines[1:4] == ["replayed: it chose m2", "recorded: it chose m1", "try the other one"]


def test_a_replay_that_decides_the_same_counts_what_it_read(
    argosy: Call, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ReplaySummary(inputs=1, lines=2, ended_at=3_000_000)
    monkeypatch.setattr(Replay, "run", lambda self, tell: done)
    result = argosy("replay", run, "-o", "json")
    assert result.code == 0
    told = json.loads(result.out)
    assert (told["same"], told["inputs"], told["lines"], told["reached"]) == (True, 1, 2, 3_000_000)
    text = argosy("replay", run).out
    assert "1 input, 2 lines, 3 s of the run's time, replayed in " in text
    assert "same decisions" in text
