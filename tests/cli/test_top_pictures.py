"""Pictures of `argosy top`, line by line, and its keys."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import termios
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Call
from stand_in_client import NOON, ScriptedClient, made_up_job

from argosy.api.values import (
    FleetInfo,
    Health,
    JobEvent,
    MachineInfo,
    SchedulerInfo,
    TaskCounts,
    TaskEvent,
)
from argosy.cli import top
from argosy.cli.live import ServerChoice
from argosy.client.server_sent import StreamedEvent
from argosy.model.errors import ServerUnreachable

MACHINES = (
    MachineInfo(
        name="b", capacity={"cpu": 1_000, "memory": 2**30}, used={"cpu": 500}, running=1_200
    ),
    MachineInfo(
        name="a", capacity={"cpu": 2_000, "gpu": 4}, used={"gpu": 4}, queued=3, draining=True
    ),
)


def client(**answers: Any) -> ScriptedClient:
    health = Health(
        status="ok",
        version="1",
        cluster="c",
        started=NOON,
        open_jobs=3,
        running_tasks=1,
        machines=2,
    )
    counts = {"running": 1_000, "queued": 2, "pending": 3, "finished": 4, "failed": 5}
    known: dict[str, Any] = {
        "health": health,
        "machines": MACHINES,
        "fleet": FleetInfo(
            version=1, fleet=(), schedulers=(SchedulerInfo(name="s", engine="omega", jobs=7),)
        ),
        "jobs": [made_up_job("j", name="n", tasks=counts), made_up_job("k", state="pending")],
    }
    return ScriptedClient(**known | answers)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Draws the picture of a cluster, a minute after it was started."""
    monkeypatch.setattr(top, "elapsed", lambda since: 60_000_000)

    def draw(source: ScriptedClient, rates: Any = None, height: int | None = None) -> list[str]:
        from rich.console import Console

        stream = io.StringIO()
        asked: Any = source
        Console(file=stream, width=160).print(top.Picture(asked).drawn(rates, height))
        return [" ".join(line.split()) for line in stream.getvalue().splitlines() if line.strip()]

    return draw


def test_a_picture_has_machines_jobs_and_schedulers(lines: Any) -> None:
    source = client()
    full, half, empty = "█" * 12, "█" * 6 + "░" * 6, "░" * 12
    assert lines(source) == [
        "c at unix:/somewhere, up 1 min; 3 open jobs, 1 running task",
        "machine running queued cpu memory gpu",
        f"a (draining) 0 3 {empty} 0 cores {full} 4 gpu",
        f"b 1,200 0 {half} 0.5 cores {empty} 0 B",
        "job state running queued pending finished failed scheduler since",
        "j n running 1,000 2 3 4 5 s 1 min",
        "k pending 1 0 0 0 0 s 1 min",
        "and 1 more open job",
        "scheduler engine jobs busy",
        "s omega 7 0 %",
    ]
    assert ("jobs", {"is_open": True, "limit": 200}) in source.asked


def test_a_cluster_that_is_not_well_says_why(lines: Any) -> None:
    ill = Health(
        status="paused",
        detail="no space",
        version="1",
        cluster="c",
        started=NOON,
        open_jobs=1,
        running_tasks=0,
        machines=0,
    )
    heading = lines(client(health=ill))[0]
    assert heading.endswith("up 1 min, paused: no space; 1 open job, 0 running tasks")


@pytest.mark.parametrize(("height", "shown"), [(21, 4), (22, 4), (23, 5), (24, 5), (25, 6), (0, 4)])
def test_a_terminal_shows_as_many_lines_as_fit(lines: Any, height: int, shown: int) -> None:
    machines = [MachineInfo(name=f"m{n}", capacity={"cpu": 1}, used={}) for n in range(9)]
    found = lines(client(machines=machines), height=height)
    assert f"and {9 - shown} more machines" in found


def test_rates_are_shown_below_the_heading(lines: Any) -> None:
    rates = SimpleNamespace(text=lambda: "tasks a second: many")
    assert lines(client(), rates)[1] == "tasks a second: many"


def test_the_busiest_resource_of_a_machine_counts() -> None:
    def load(capacity: dict[str, int], used: dict[str, int]) -> float:
        return top._load(MachineInfo(name="m", capacity=capacity, used=used))

    assert load({"cpu": 4, "memory": 10}, {"cpu": 1, "memory": 5}) == 0.5
    assert load({"cpu": 4, "gpu": 0}, {"cpu": 1, "gpu": 0}) == 0.25
    assert load({}, {}) == 0.0


def test_programs_get_all_of_it(argosy: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    source = client()
    monkeypatch.setattr(ServerChoice, "client", lambda self: source)
    document = json.loads(argosy("top", "-o", "json").out)
    assert list(document) == ["server", "health", "machines", "jobs", "fleet"]
    assert document["server"] == "unix:/somewhere"
    assert [each["name"] for each in document["machines"]] == ["b", "a"]
    assert [each["id"] for each in document["jobs"]] == ["j", "k"]
    assert document["fleet"]["schedulers"][0]["jobs"] == 7
    [row] = csv.DictReader(io.StringIO(argosy("top", "-o", "csv").out))
    assert (row["cluster"], row["open_jobs"], row["running_tasks"]) == ("c", "3", "1")


class TestWatching:
    def test_tasks_are_counted_until_the_stream_breaks(self) -> None:
        counted: list[str] = []
        rates: Any = SimpleNamespace(count=counted.append)

        def events() -> Any:
            for state in ("running", "finished"):
                yield StreamedEvent("1", TaskEvent(at=NOON, job="j", index=0, state=state))  # type: ignore[arg-type]
                job = JobEvent(at=NOON, job="j", state="running", version=1, tasks=TaskCounts())
                yield StreamedEvent("2", job)
            raise ServerUnreachable("gone")

        source: Any = SimpleNamespace(events=events)
        top._listen(source, rates)
        assert counted == ["running", "finished"]

    @pytest.mark.parametrize("last", ["q", "Q"])
    def test_pictures_follow_each_other_until_q_is_pressed(
        self, monkeypatch: pytest.MonkeyPatch, last: str
    ) -> None:
        from contextlib import contextmanager

        pressed, waited, drawn = iter(["", "x", last]), [], []

        @contextmanager
        def keys() -> Any:
            yield lambda seconds: waited.append(seconds) or next(pressed)

        class Live:
            def __init__(self, **options: Any) -> None: ...
            def __enter__(self) -> Live:
                return self

            def __exit__(self, *_: object) -> None: ...
            def update(self, picture: Any, *, refresh: bool) -> None:
                drawn.append(refresh)

        monkeypatch.setattr(top, "_keys", keys)
        monkeypatch.setattr("rich.live.Live", Live)
        source: Any = client(events=())
        top._watch(source, 2.5)
        assert (waited, drawn) == ([2.5] * 3, [True] * 3)

    def test_pictures_are_as_high_as_the_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        heights: list[int | None] = []
        monkeypatch.setenv("COLUMNS", "150")
        monkeypatch.setenv("LINES", "31")
        monkeypatch.setattr(
            top.Picture, "drawn", lambda self, rates, height: heights.append(height) or ""
        )
        monkeypatch.setattr(top, "_keys", lambda: nullcontext(lambda seconds: "q"))
        monkeypatch.setattr("rich.live.Live.__enter__", lambda self: self)
        monkeypatch.setattr("rich.live.Live.__exit__", lambda self, *error: None)
        monkeypatch.setattr("rich.live.Live.update", lambda self, picture, refresh: None)
        top._watch(client(events=()), 1.0)
        assert heights == [31]

    def test_rates_of_a_long_watch_are_those_of_ten_seconds(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = SimpleNamespace(now=0.0)
        monkeypatch.setattr("argosy.cli.top.time.monotonic", lambda: clock.now)
        rates = top.Rates()
        for at, state in ((15.0, "running"), (16.0, "failed"), (20.0, "failed"), (25.0, "queued")):
            clock.now = at
            rates.count(state)
        assert rates.text() == "tasks a second: 0.1 started, 0 finished, 0.2 failed"
        clock.now = 25.1
        assert rates.text() == "tasks a second: 0 started, 0 finished, 0.2 failed"

    def test_what_is_no_terminal_gets_lines_of_120_letters(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "33")
        assert top._console().width == 120
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        assert top._console().width == 33

    def test_without_a_terminal_a_key_is_only_waited_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slept: list[float] = []
        monkeypatch.setattr(top.time, "sleep", slept.append)
        monkeypatch.setattr("sys.stdin", io.StringIO("q"))
        with top._keys() as key:
            assert key(0.5) is None
        assert slept == [0.5]

    def test_a_terminal_shows_no_keys_and_is_given_back_as_it_was(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "r") as terminal:
            monkeypatch.setattr("sys.stdin", terminal)
            before = termios.tcgetattr(theirs)
            assert before[3] & termios.ECHO

            def watch() -> None:
                with top._keys() as key:
                    assert not termios.tcgetattr(theirs)[3] & (termios.ECHO | termios.ICANON)
                    assert key(0) == ""
                    os.write(ours, b"q")
                    assert key(60) == "q"
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                watch()
            assert termios.tcgetattr(theirs) == before
        os.close(ours)
