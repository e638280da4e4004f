"""Programs of the Vela paper's live part: which answers count."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.model.errors import CommandError
from argosy.papers.vela import processes
from argosy.papers.vela.processes import LiveProcess


@pytest.mark.parametrize("status", [200, 201, 202, 204, 302, 400, 409, 500])
def test_only_what_a_server_grants_counts_as_done(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Connection:
        def __init__(self, place: str, timeout: float) -> None:
            self.status = status

        def request(self, *asked: Any) -> None:
            pass

        def getresponse(self) -> Connection:
            return self

        def read(self) -> bytes:
            return b"{}"

        def close(self) -> None:
            pass

    monkeypatch.setattr(processes, "HTTPConnection", Connection)
    process = LiveProcess.__new__(LiveProcess)
    process.url, process._what = "http://127.0.0.1:9", "argosy agent"
    if status in (200, 201):
        assert process.get("/v1/jobs") == b"{}"
    else:
        with pytest.raises(CommandError, match=f"argosy agent answers GET /v1/jobs with {status}"):
            process.get("/v1/jobs")


class Process:
    """Ends within the time that is given if it is not stuck, or once it is killed."""

    def __init__(self, *, is_stuck: bool) -> None:
        self.is_stuck = is_stuck
        self.calls: list[Any] = []
        self.stdin, self.stdout = io.StringIO(), io.StringIO()

    def wait(self, timeout: float | None = None) -> None:
        self.calls.append(("wait", timeout))
        if self.is_stuck and timeout is not None:
            raise subprocess.TimeoutExpired("argosy", timeout)

    def kill(self) -> None:
        self.calls.append("kill")

    def terminate(self) -> None:
        self.calls.append("terminate")


@pytest.mark.parametrize(
    ("is_stuck", "calls"),
    [(False, [("wait", 20.0)]), (True, [("wait", 20.0), "kill", ("wait", None)])],
)
def test_a_process_that_does_not_end_is_killed(is_stuck: bool, calls: list[Any]) -> None:
    process = LiveProcess.__new__(LiveProcess)
    process._process = started = Process(is_stuck=is_stuck)  # type: ignore[assignment]
    process.wait()
    assert started.calls == calls
    assert started.stdin.closed
    assert started.stdout.closed
    process.tell_to_stop()
    assert started.calls[-1] == "terminate"


def test_a_process_runs_the_command_line_and_writes_to_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []

    def popen(arguments: list[str], **options: Any) -> Any:
        asked.append((arguments, options))
        return SimpleNamespace(pid=7, stdout=io.StringIO('{"url": "http://x:1"}\n'))

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setenv("SOME", "thing")
    process = LiveProcess(tmp_path, "agent", "--name", "a")
    ((arguments, options),) = asked
    assert arguments == [
        sys.executable,
        "-c",
        processes._STARTER,
        "agent",
        "--name",
        "a",
        "-o",
        "json",
    ]
    assert (options["env"]["TMPDIR"], options["env"]["SOME"]) == (str(tmp_path), "thing")
    assert options["start_new_session"] is True
    assert Path(options["stderr"].name).parent == tmp_path
    assert process.pid == 7
    process.ready()
    assert process.url == "http://x:1"


def test_the_last_words_of_a_process_that_does_not_start_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def popen(arguments: list[str], **options: Any) -> Any:
        options["stderr"].write(b"argosy: error: no\n")
        return SimpleNamespace(stdout=io.StringIO(""))

    monkeypatch.setattr(subprocess, "Popen", popen)
    process = LiveProcess(tmp_path, "scheduler")
    with pytest.raises(CommandError) as caught:
        process.ready()
    assert caught.value.problem == "argosy scheduler did not start: argosy: error: no"


@pytest.mark.parametrize("delay", [0.0, 12.5])
def test_a_federation_is_started_agents_first_and_ended_scheduler_first(
    delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[tuple[str, ...]] = []

    class Noted:
        def __init__(self, folder: Path, *arguments: str) -> None:
            self.name = arguments[2] if arguments[0] == "agent" else arguments[0]
            self.url = f"http://{self.name}"
            log.append(("begin", *arguments))

        def ready(self) -> None:
            log.append(("ready", self.name))

        def tell_to_stop(self) -> None:
            log.append(("stop", self.name))

        def wait(self) -> None:
            log.append(("wait", self.name))

    monkeypatch.setattr(processes, "LiveProcess", Noted)
    plans = [
        processes.AgentPlan(name=name, mix="edge", machines=3, delay=delay) for name in ("a", "b")
    ]
    told = "12.5ms" if delay else "0"
    with processes.started(plans, "--x", "y") as live:
        assert [each.url for each in live.agents] == ["http://a", "http://b"]
        assert live.scheduler.url == "http://scheduler"
        log.append(("inside",))
    agents = [
        ("begin", "agent", "--name", name, "--mix", "edge", "--machines", "3", "--delay", told)
        for name in ("a", "b")
    ]
    assert log == [
        *agents,
        ("ready", "a"),
        ("ready", "b"),
        ("begin", "scheduler", "--agent", "http://a", "--agent", "http://b", "--x", "y"),
        ("ready", "scheduler"),
        ("inside",),
        ("stop", "scheduler"),
        ("stop", "b"),
        ("stop", "a"),
        ("wait", "a"),
        ("wait", "b"),
        ("wait", "scheduler"),
    ]
