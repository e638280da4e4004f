"""Commands that wait: for jobs, for output, and for a server to start or to stop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from command_line import Call
from stand_in_client import LATER, ScriptedClient, made_up_job

from argosy.api.values import JobDetails
from argosy.cli import down, server_start
from argosy.cli.live import ServerChoice
from argosy.cli.submit import _ended, _ProgressLine
from argosy.model.errors import CommandError, MissingExtra, ServerError, ServerUnreachable


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    def give(**answers: Any) -> ScriptedClient:
        client = ScriptedClient(**answers)
        monkeypatch.setattr(ServerChoice, "client", lambda self: client)
        return client

    return give


def jobs_file(directory: Path, *names: str) -> Path:
    path = directory / "jobs.toml"
    path.write_text(
        "".join(
            f'[[jobs]]\nid = "{name}"\ncommand = "true"\nrequest = {{ cpu = 1 }}\n'
            for name in names
        )
    )
    return path


class TestJobs:
    CODES: ClassVar = {"a": 0, "b": 7, "c": 3}

    def ending(self, given: Any) -> ScriptedClient:
        """Jobs that end, each with its exit code."""

        def submit(document: dict[str, Any], *, key: str | None) -> JobDetails:
            # A job that was submitted before under this key may be over.
            return made_up_job(document["id"], exit_code=9)

        def watch(job_id: str) -> Iterator[JobDetails]:
            yield made_up_job(job_id)
            code = self.CODES[job_id]
            state = "failed" if code else "finished"
            yield made_up_job(job_id, state=state, ended=LATER, exit_code=code)

        client: ScriptedClient = given(submit=submit, watch=watch, plan=None)
        return client

    @pytest.mark.parametrize(
        ("names", "code"), [(("a",), 0), (("b",), 7), (("a", "c", "b"), 3), (("b", "a", "c"), 7)]
    )
    def test_the_first_job_that_failed_gives_the_exit_code(
        self, argosy: Call, given: Any, tmp_path: Path, names: tuple[str, ...], code: int
    ) -> None:
        self.ending(given)
        told = argosy("submit", jobs_file(tmp_path, *names), "--wait")
        assert (told.code, told.out.split()) == (code, list(names))
        assert told.err.splitlines() == [
            f"{name}: finished after 1.5 s"
            if name == "a"
            else f"{name}: failed after 1.5 s, exit code {self.CODES[name]}"
            for name in names
        ]

    def test_without_waiting_nothing_is_watched(
        self, argosy: Call, given: Any, tmp_path: Path
    ) -> None:
        client = self.ending(given)
        told = argosy("submit", jobs_file(tmp_path, "b"))
        assert (told.code, told.out, told.err) == (0, "b\n", "")
        assert [name for name, *_ in client.asked] == ["submit"]

    def test_a_document_has_the_jobs_as_they_ended(
        self, argosy: Call, given: Any, tmp_path: Path
    ) -> None:
        self.ending(given)
        path = jobs_file(tmp_path, "a", "b")
        told = argosy("submit", path, "--wait", "-o", "json")
        assert [(each["id"], each["exit_code"]) for each in json.loads(told.out)] == [
            ("a", 0),
            ("b", 7),
        ]
        assert told.code == 7
        heading, *rows = argosy("submit", path, "-o", "csv").out.splitlines()
        assert heading.startswith("id,name,kind,owner,state,")
        assert [row.split(",")[0] for row in rows] == ["a", "b"]

    def test_ctrl_c_tells_of_all_that_was_submitted(
        self, argosy: Call, given: Any, tmp_path: Path
    ) -> None:
        def watch(job_id: str) -> Iterator[JobDetails]:
            raise KeyboardInterrupt
            yield

        given(submit=lambda document, key: made_up_job(document["id"]), plan=None, watch=watch)
        told = argosy("submit", jobs_file(tmp_path, "a", "b"), "--wait")
        assert (told.code, told.out) == (130, "a\nb\n")
        assert told.err.splitlines() == [
            "what was submitted goes on; `argosy cancel a b` cancels it",
            "argosy: interrupted",
        ]

    def test_a_plan_that_is_refused_names_the_line_of_the_file(
        self, argosy: Call, given: Any, tmp_path: Path
    ) -> None:
        refused = ServerError("no", status=400, field="jobs[1].request.cpu")
        client = given(plan=refused, submit=made_up_job())
        told = argosy("submit", jobs_file(tmp_path, "a", "b"))
        assert told.complaint.startswith(f"argosy: error[server]: {tmp_path / 'jobs.toml'}:")
        assert [name for name, *_ in client.asked] == ["plan"]
        assert argosy("plan", tmp_path / "jobs.toml").complaint == told.complaint

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"state": "finished", "ended": LATER, "exit_code": 0}, "finished after 1.5 s"),
            (
                {"state": "failed", "ended": LATER, "exit_code": 1},
                "failed after 1.5 s, exit code 1",
            ),
            ({"state": "cancelled", "ended": LATER}, "cancelled after 1.5 s"),
        ],
    )
    def test_how_a_job_ended_is_told(self, fields: dict[str, Any], told: str) -> None:
        assert _ended(made_up_job("a", **fields)) == told

    @pytest.mark.parametrize("is_terminal", [True, False])
    def test_progress_is_one_line_that_is_cleared_once(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        is_terminal: bool,
    ) -> None:
        monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
        line = _ProgressLine()
        line.clear()
        line.show(made_up_job("a", tasks={"finished": 1_200, "running": 2, "pending": 3}))
        line.clear()
        line.clear()
        shown = "\r\x1b[Ka: 1,200 finished, 2 running, 3 pending\r\x1b[K"
        assert capsys.readouterr() == ("", shown if is_terminal else "")


class TestDown:
    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """Time that passes only while the command sleeps."""
        clock = SimpleNamespace(now=100.0, slept=[])

        def sleep(seconds: float) -> None:
            clock.slept.append(seconds)
            clock.now += 1.0

        monkeypatch.setattr(down, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
        return clock

    @pytest.mark.parametrize(
        "gone", [ServerUnreachable("nobody there"), ServerError("stopping", status=503)]
    )
    def test_it_waits_until_the_server_is_gone(
        self, argosy: Call, given: Any, clock: SimpleNamespace, gone: Exception
    ) -> None:
        answers = iter([None, None, gone])
        client = given(shutdown=None, health=lambda: next(answers))
        told = argosy("down", "--timeout", "9")
        assert told == (0, "unix:/somewhere is down; its tasks were left running\n", "")
        assert client.asked == [("shutdown", {"stop_tasks": False}), *[("health",)] * 3]
        assert len(clock.slept) == 2

    @pytest.mark.parametrize(("timeout", "looks"), [("0", 1), ("2", 3), ("2.5", 4)])
    def test_it_gives_up_when_the_time_is_over(
        self, argosy: Call, given: Any, timeout: str, looks: int
    ) -> None:
        client = given(shutdown=None, health=None)
        told = argosy("down", "--timeout", timeout).complaint
        assert told.endswith(
            f"unix:/somewhere still answers after {timeout} s; "
            "tasks may need longer to stop; --timeout waits longer"
        )
        assert len(client.asked) == 1 + looks

    def test_what_became_of_the_tasks_is_told(self, argosy: Call, given: Any) -> None:
        client = given(shutdown=None, health=ServerUnreachable("nobody there"))
        table, document, rows = (
            argosy("down", "--stop-tasks", "-o", form).out for form in ("table", "json", "csv")
        )
        assert client.asked[0] == ("shutdown", {"stop_tasks": True})
        assert table == "unix:/somewhere is down; its tasks were stopped\n"
        assert json.loads(document) == {"server": "unix:/somewhere", "tasks": "stopped"}
        assert rows == "server,tasks\nunix:/somewhere,stopped\n"


class TestStart:
    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """A server that would have been started: what it writes at each look, and how it ends."""
        server = SimpleNamespace(called=[], says=[], codes=[], answers=[], now=0.0)

        def popen(arguments: list[str], **options: Any) -> Any:
            server.called.append((arguments, options))
            server.log = Path(options["stdout"].name)
            return SimpleNamespace(poll=poll)

        def poll() -> int | None:
            if server.says:
                with server.log.open("ab") as log:
                    log.write(server.says.pop(0))
            return server.codes.pop(0) if server.codes else None

        def sleep(seconds: float) -> None:
            server.now += 20.0

        clock = SimpleNamespace(monotonic=lambda: server.now, sleep=sleep)
        monkeypatch.setattr(server_start, "time", clock)
        monkeypatch.setattr(server_start.subprocess, "Popen", popen)
        monkeypatch.setattr(server_start, "_answers", lambda directory: server.answers.pop(0))
        return server

    def test_a_server_is_up_when_it_says_so_and_answers(
        self, started: SimpleNamespace, tmp_path: Path
    ) -> None:
        home = tmp_path / "a" / "b"
        started.says = [b"argosy: hello\n", b"argosy: up: 1 machine\nmore\n", b""]
        started.answers = [False, True]
        assert server_start.start_server(["up", "--dir", "d"], home) == "argosy: up: 1 machine"
        [(arguments, options)] = started.called
        assert arguments == [sys.executable, "-m", "argosy.cli", "up", "--dir", "d"]
        assert (options["stdin"], options["start_new_session"]) == (subprocess.DEVNULL, True)
        assert options["stderr"] is options["stdout"]
        assert home.stat().st_mode & 0o777 == 0o700
        assert started.answers == []

    def test_what_servers_before_it_wrote_does_not_count(
        self, started: SimpleNamespace, tmp_path: Path
    ) -> None:
        log = tmp_path / "server.log"
        log.write_text('argosy: up: before\n{"directory": "before"}\n')
        started.says, started.answers = [b'{"directory": "now"}\n'], [True]
        assert (
            server_start.start_server([], tmp_path, ready='{"directory"') == '{"directory": "now"}'
        )
        assert log.read_text().startswith("argosy: up: before\n")

    def test_a_server_that_ends_says_why(self, started: SimpleNamespace, tmp_path: Path) -> None:
        started.says, started.codes = [b"", b"argosy: error[x]: taken\n"], [None, 2]
        with pytest.raises(CommandError, match=r"^the server could not start: error.x.: taken$"):
            server_start.start_server([], tmp_path)
        started.codes = [0]
        with pytest.raises(
            CommandError, match=r"^the server could not start: it ended with code 0$"
        ):
            server_start.start_server([], tmp_path)

    def test_a_server_that_stays_silent_is_waited_for_a_minute(
        self, started: SimpleNamespace, tmp_path: Path
    ) -> None:
        with pytest.raises(CommandError) as caught:
            server_start.start_server([], tmp_path)
        assert caught.value.problem == (
            f"the server does not answer; its log is {tmp_path / 'server.log'}"
        )
        assert started.now == 60.0

    def test_a_server_in_the_background_needs_a_directory(self) -> None:
        with pytest.raises(CommandError, match="--detach without --dir; expected both"):
            server_start.detached(["up", "-d"], None, as_json=False)

    def test_without_the_library_of_servers_its_extra_is_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server_start.require_serve()
        looked: list[str] = []
        monkeypatch.setattr(server_start.importlib.util, "find_spec", looked.append)
        with pytest.raises(MissingExtra, match=r"argosy up.*serve"):
            server_start.require_serve()
        with pytest.raises(MissingExtra, match=r"argosy agent.*serve"):
            server_start.require_serve("argosy agent")
        assert looked == ["aiohttp", "aiohttp"]
