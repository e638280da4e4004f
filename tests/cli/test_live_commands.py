"""Commands about a live cluster, against a real server with real tasks."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
from command_line import shown_on
from live_server import PATIENCE, LiveServer, live_server

from argosy import cli
from argosy.api.values import JobStateName
from argosy.cli.jobs import STATES


class Called(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Called]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("state"), "--machines", "2") as started:
        yield started


@pytest.fixture
def argosy(
    server: LiveServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Call:
    """Calls the command line in an empty directory, in this process."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("ARGOSY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ARGOSY_DIR", str(server.directory))

    def call(*arguments: str | Path) -> Called:
        with pytest.raises(SystemExit) as stop:
            cli.main([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        assert isinstance(stop.value.code, int)
        return Called(stop.value.code, out.decode(), err.decode())

    return call


def submitted(argosy: Call, *arguments: str) -> str:
    result = argosy("submit", "--cpu", "100m", "--memory", "64MiB", *arguments)
    assert result.code == 0, result.err
    return result.out.strip()


def document(argosy: Call, *arguments: str | Path) -> dict[str, object]:
    read: dict[str, object] = json.loads(argosy(*arguments, "-o", "json").out)
    return read


def process(server: LiveServer, *arguments: str, **settings: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "argosy.cli", *arguments],
        env=server.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,  # type: ignore[call-overload]
    )


class TestSubmit:
    def test_a_command_is_submitted_and_its_id_printed(self, argosy: Call) -> None:
        job = submitted(argosy, "--name", "hello", "--wait", "--", "echo", "--wait", "hello world")
        assert argosy("logs", job).out == "--wait hello world\n"
        assert document(argosy, "jobs", job)["name"] == "hello"

    def test_waiting_ends_with_the_exit_code_of_the_job(self, argosy: Call) -> None:
        result = argosy("submit", "--wait", "--cpu", "1m", "--", "sh", "-c", "exit 7")
        assert result.code == 7
        assert "failed after" in result.err
        assert "exit code 7" in result.err

    def test_every_option_becomes_a_key(self, argosy: Call, tmp_path: Path) -> None:
        (tmp_path / "in.txt").write_text("input\n")
        texts = (
            "--id all --name n --kind nightly --owner ann --count 2 --cpu 1500m --memory 1GiB",
            "--precedence 3 --estimate 1min --timeout 2min --retries 1 --backoff 1s --tag web",
            "--env A=b=c --env HOME --gang --stdin in.txt --constraint",
        )
        options = [word for text in texts for word in text.split()]
        options.append("web -> {web, 0, 9} in machine")
        result = argosy("plan", *options, "--", "cat")
        assert result.code in (0, 1), result.err
        result = argosy("submit", *options, "-o", "json", "--", "cat")
        assert result.code == 0, result.err
        [job] = json.loads(result.out)
        assert job["document"] == {
            "id": "all",
            "name": "n",
            "kind": "nightly",
            "owner": "ann",
            "count": 2,
            "request": {"cpu": 1500, "memory": 2**30},
            "precedence": 3,
            "estimate": 60_000_000,
            "timeout": 120_000_000,
            "retries": 1,
            "backoff": 1_000_000,
            "tags": ["web"],
            "constraints": ["web -> {web, 0, 9} in machine"],
            "environment": {"A": "b=c", "HOME": os.environ["HOME"]},
            "gang": True,
            "stdin": "input\n",
            "command": ["cat"],
            "working_directory": str(tmp_path),
        }
        argosy("cancel", "all")

    def test_a_service_runs_until_it_is_cancelled(self, argosy: Call) -> None:
        job = submitted(argosy, "--service", "--", "sleep", "600")
        assert document(argosy, "jobs", job)["kind"] == "service"
        assert argosy("cancel", job).out == f"{job}: 1 task cancelled\n"

    def test_a_service_may_be_of_another_kind(self, argosy: Call) -> None:
        job = submitted(argosy, "--service", "--kind", "web", "--", "sleep", "600")
        assert document(argosy, "jobs", job)["kind"] == "web"
        argosy("cancel", job)

    def test_jobs_come_from_files_and_standard_input(
        self, argosy: Call, server: LiveServer, tmp_path: Path
    ) -> None:
        text = '[[jobs]]\ncommand = "echo {}"\nrequest = {{ cpu = 1 }}\n'
        (tmp_path / "two.toml").write_text(text.format("a") + text.format("b"))
        first, second = argosy("submit", "two.toml", "--wait").out.split()
        assert [argosy("logs", job).out for job in (first, second)] == ["a\n", "b\n"]
        given = process(server, "submit", "-", "--format", "yaml", "--wait", stdin=subprocess.PIPE)
        out, err = given.communicate("command: echo c\nrequest: {cpu: 1}\n", timeout=PATIENCE)
        assert given.returncode == 0, err
        assert argosy("logs", out.strip()).out == "c\n"

    def test_nothing_is_submitted_if_one_job_is_wrong(self, argosy: Call, tmp_path: Path) -> None:
        before = argosy("jobs", "--all", "-o", "csv").out.count("\n")
        good = '[[jobs]]\ncommand = "true"\nrequest = { cpu = 1 }\n'
        for wrong, told in (
            (good.replace("cpu", "cup"), ":6: jobs[1].request.cup: unknown resource 'cup'"),
            (good + 'duration = "1s"', ":7: jobs[1].duration: duration is only for simulated"),
            (good + 'requires = { disk = "ssd" }', ":7: jobs[1].requires.disk: no machine has"),
        ):
            (tmp_path / "jobs.toml").write_text(good + wrong)
            result = argosy("submit", "jobs.toml")
            assert result.code == 2
            assert f"jobs.toml{told}" in result.err
            assert result.out == ""
        assert argosy("jobs", "--all", "-o", "csv").out.count("\n") == before

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ([], "no job; expected a job file, or -- and a command"),
            (["--"], "no command after --"),
            (["f.toml", "--", "true"], "both a job file and a command"),
            (["f.toml", "--count", "3"], "both a job file and --count"),
            (["none.toml"], "none.toml: cannot be read: No such file"),
            (["--cpu", "much", "--", "true"], "--cpu: 'much' is not an amount of cpu"),
            (["--estimate", "5", "--", "true"], "--estimate: '5' has no unit"),
            (["--request", "gpu", "--", "true"], "--request 'gpu'; expected NAME=VALUE"),
            (["--request", "gpu=1", "--", "true"], "request.gpu: unknown resource 'gpu'"),
            (["--env", "NOT_SET_HERE", "--", "true"], "it is not set here"),
            (["--stdin", "nothing", "--", "true"], "--stdin nothing: No such file"),
            (["--count", "0", "--", "true"], "--count: 0 tasks in a group"),
            (["--service", "--estimate", "1s", "--", "true"], "--service: endless tasks with an"),
            (["--constraint", "odd", "--", "true"], "--constraint"),
            (["f.toml", "--format", "yaml"], "--format with a file"),
        ],
    )
    def test_a_mistake_is_one_line(self, argosy: Call, arguments: list[str], told: str) -> None:
        result = argosy("submit", *arguments)
        assert result.code == 2
        assert told in result.err
        assert len(result.err.splitlines()) == 1
        assert result.out == ""

    def test_the_same_key_submits_once(self, argosy: Call) -> None:
        once = submitted(argosy, "--key", "k1", "--", "true")
        assert submitted(argosy, "--key", "k1", "--", "true") == once

    def test_ctrl_c_leaves_the_job_running_and_says_how_to_cancel_it(
        self, argosy: Call, server: LiveServer
    ) -> None:
        waiting = process(server, "submit", "--cpu", "1m", "--wait", "--", "sleep", "600")
        assert waiting.stdout is not None
        job = waiting.stdout.readline().strip()
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=PATIENCE)
        assert waiting.returncode == 130
        assert f"`argosy cancel {job}` cancels it" in err
        assert document(argosy, "jobs", job)["state"] in ("pending", "running")
        argosy("cancel", job)

    def test_progress_is_shown_on_a_terminal(self, server: LiveServer) -> None:
        mine, theirs = pty.openpty()
        waiting = subprocess.Popen(
            [sys.executable, "-m", "argosy.cli", "submit", "--cpu", "1m", "--wait", "--", "true"],
            env=server.environment,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        try:
            shown = shown_on(mine)
            assert waiting.wait(PATIENCE) == 0
        finally:
            os.close(mine)
            waiting.kill()
        assert b"1 finished" in shown
        assert b"finished after" in shown


class TestPlan:
    def test_what_fits_ends_with_0_and_what_does_not_with_1(self, argosy: Call) -> None:
        fits = argosy("plan", "--cpu", "1m", "--", "true")
        assert (fits.code, fits.out.splitlines()[0]) == (0, "fits")
        large = argosy("plan", "--cpu", "999", "--", "true")
        assert large.code == 1
        assert large.out.startswith("does not fit: 1 of 1 tasks would wait")
        assert "What would help" in large.out

    def test_a_refused_job_has_its_line(self, argosy: Call, tmp_path: Path) -> None:
        (tmp_path / "j.toml").write_text('command = "true"\nrequest = { gpu = 1 }\n')
        result = argosy("plan", "j.toml")
        assert result.code == 2
        assert "j.toml:2: jobs[0].request.gpu: unknown resource 'gpu'" in result.err


class TestLists:
    def test_ps_lists_what_runs_or_waits(self, argosy: Call) -> None:
        job = submitted(argosy, "--count", "3", "--", "sleep", "600")
        large = submitted(argosy, "--cpu", "999", "--", "true")
        document(argosy, "ps")
        rows = list(csv.DictReader(io.StringIO(argosy("ps", "-o", "csv").out)))
        assert [row["task"] for row in rows] == [f"{large}/0", *(f"{job}/{i}" for i in range(3))]
        assert rows[0]["state"] == "pending"
        only = argosy("ps", job, "--limit", "2")
        assert only.out.count(f"{job}/") == 2
        assert "more than 2 tasks" in only.err
        assert argosy("ps", "--state", "pending").out.count("/") == 1
        argosy("cancel", job, large)

    def test_jobs_are_filtered(self, argosy: Call) -> None:
        result = argosy("submit", "--owner", "eve", "--cpu", "1m", "--wait", "--", "false")
        name = result.out.strip()
        listed = argosy("jobs", "--owner", "eve", "--state", "failed", "--over")
        assert name in listed.out
        assert "owner" in listed.out.splitlines()[0]
        assert name not in argosy("jobs", "--open").out
        assert argosy("jobs", "--limit", "1", "-o", "csv").out.count("\n") == 2

    def test_the_states_to_choose_from_are_those_of_the_api(self) -> None:
        assert get_args(JobStateName) == STATES

    def test_one_job_is_described(self, argosy: Call) -> None:
        job = submitted(argosy, "--wait", "--", "true")
        text = argosy("jobs", job).out
        assert "state      finished" in text
        assert 'command = ["true"]' in text
        assert argosy("jobs", job, "-o", "csv").out.splitlines()[0].startswith("id,name,kind")

    def test_machines_are_listed_and_changed(self, argosy: Call) -> None:
        assert "local-1" in argosy("machines").out
        added = argosy(
            "machines", "add", "m", "--cpu", "2", "--memory", "1GiB", "--attribute", "a=b"
        )
        assert "0 cores of 2 cores" in added.out
        assert "a=b" in added.out
        assert "of 3 cores" in argosy("machines", "resize", "m", "--cpu", "3").out
        assert "draining" in argosy("drain", "m").out
        assert "up" in argosy("drain", "m", "--undo").out
        assert argosy("machines", "remove", "m").err == "machine m is removed\n"
        assert argosy("drain", "m").code == 2
        columns = argosy("machines", "-o", "csv").out.splitlines()[0]
        assert columns == "name,draining,running,queued,cpu,memory,cpu_used,memory_used"

    def test_the_fleet_is_shown_and_replaced(self, argosy: Call, tmp_path: Path) -> None:
        before = document(argosy, "fleet")
        changed = argosy("fleet", "set", "--engine", "murmuration")
        assert changed.out.splitlines()[1].startswith("murmuration")
        (tmp_path / "fleet.toml").write_text('[[fleet]]\nname = "o"\nengine = "omgea"\n')
        wrong = argosy("fleet", "set", "fleet.toml")
        assert wrong.code == 2
        assert "did you mean 'omega'?" in wrong.err
        (tmp_path / "fleet.toml").write_text('[[fleet]]\nname = "omega"\nengine = "omega"\n')
        assert argosy("fleet", "set", "fleet.toml").code == 0
        assert document(argosy, "fleet")["fleet"] == before["fleet"]

    def test_a_job_is_scaled(self, argosy: Call) -> None:
        job = submitted(argosy, "--service", "--", "sleep", "600")
        assert argosy("scale", job, "3").out == f"{job}: 3 tasks\n"
        assert argosy("cancel", f"{job}/2", f"{job}/0").out == f"{job}: 2 tasks cancelled\n"
        argosy("cancel", job)

    def test_top_prints_one_picture_into_a_pipe(self, argosy: Call) -> None:
        job = submitted(argosy, "--name", "shown", "--", "sleep", "600")
        text = argosy("top").out
        assert f"{job} shown" in text
        assert "local-0" in text
        assert "\x1b" not in text
        assert document(argosy, "top")["health"]
        argosy("cancel", job)

    def test_top_ends_with_q(self, server: LiveServer) -> None:
        mine, theirs = pty.openpty()
        watching = subprocess.Popen(
            [sys.executable, "-m", "argosy.cli", "top"],
            env={**server.environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        try:
            shown = shown_on(mine, b"scheduler")
            os.write(mine, b"q")
            shown_on(mine)
            assert watching.wait(PATIENCE) == 0
        finally:
            os.close(mine)
            watching.kill()
        assert b"tasks a second" in shown


class TestQuestions:
    def test_a_live_cluster_answers_first(self, argosy: Call) -> None:
        job = submitted(argosy, "--wait", "--", "true")
        why = argosy("why", f"{job}/0")
        assert why.code == 0
        assert why.out.startswith(f"{job}/0: finished")
        assert "answered by the live cluster" in why.err
        story = argosy("story", job)
        assert story.out.startswith(f"{job}/0 at unix:")
        assert "submitted" in story.out
        assert document(argosy, "why", job)["state"] == "finished"

    def test_a_saved_run_answers_if_it_is_named_or_the_cluster_does_not_know_the_job(
        self, argosy: Call
    ) -> None:
        scenario = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"
        assert argosy("run", scenario).code == 0
        fallen = argosy("why", "crawl/199")
        assert fallen.code == 0
        assert "note: answered by a saved run; the live cluster at unix:" in fallen.err
        [run] = Path("runs").iterdir()
        assert argosy("why", "crawl/199", "--run", run) == Called(0, fallen.out, "")
        assert "in runs" in argosy("story", "crawl/199").out
        both = argosy("why", "crawl/199", "--run", run, "--dir", ".")
        assert (both.code, "both --run and a live server" in both.err) == (2, True)

    def test_if_nobody_can_answer_both_are_named(self, argosy: Call) -> None:
        result = argosy("why", "nothing/0")
        assert result.code == 2
        assert "no run found, and the live cluster at unix:" in result.err
        assert "--run DIR for a saved run, or --server or --dir for a live cluster" in result.err
        assert len(result.err.splitlines()) == 1
        named = argosy("why", "nothing/0", "--dir", os.environ["ARGOSY_DIR"])
        assert "error[not-found]: unknown job 'nothing'" in named.err

    def test_a_task_that_a_known_job_lacks_is_not_looked_for_elsewhere(self, argosy: Call) -> None:
        job = submitted(argosy, "--wait", "--", "true")
        told = argosy("story", f"{job}/7").err
        assert told.startswith(f"argosy: error[not-found]: job {job} has no task 7")

    def test_the_only_task_of_a_job_needs_no_index(self, argosy: Call) -> None:
        job = submitted(argosy, "--count", "2", "--wait", "--", "true")
        assert (
            f"job {job} has 2 tasks; expected one of {job}/0 to {job}/1" in argosy("logs", job).err
        )
        assert "expected JOB/INDEX" in argosy("logs", f"{job}/x").err


class TestLogs:
    def test_output_is_followed_to_its_end(self, argosy: Call) -> None:
        job = submitted(argosy, "--", "sh", "-c", "echo a; sleep 0.2; echo b; echo c >&2")
        assert argosy("logs", "-f", job).out == "a\nb\n"
        assert argosy("logs", "--stderr", job).out == "c\n"
        assert argosy("logs", "--tail", "2", job).out == "b\n"
        assert document(argosy, "logs", job)["text"] == "a\nb\n"

    def test_a_task_that_has_not_run_says_why(self, argosy: Call) -> None:
        job = argosy("submit", "--cpu", "999", "--", "true").out.strip()
        assert f"has not run yet; `argosy why {job}/0` says why" in argosy("logs", job).err
        argosy("cancel", job)

    def test_what_contradicts_itself_is_refused(self, argosy: Call) -> None:
        assert "both -f and -o json" in argosy("logs", "x", "-f", "-o", "json").err


class TestRecord:
    def test_a_recording_is_a_scenario(self, argosy: Call, tmp_path: Path) -> None:
        submitted(argosy, "--id", "rec", "--wait", "--", "true")
        result = argosy("record", "-o", "recorded", "--journal", "live.journal")
        assert result.code == 0, result.err
        scenario = tomllib.loads((tmp_path / "recorded" / "scenario.toml").read_text())
        assert [entry["engine"] for entry in scenario["fleet"]] == ["omega"]
        ran = argosy("run", "recorded/scenario.toml", "--engine", "murmuration", "--out", "ran")
        assert ran.code == 0, ran.err
        assert "rec/0" in argosy("story", "rec/0", "--run", "ran").out
        replayed = argosy("replay", "live.journal")
        assert replayed.code == 0, replayed.err
        assert "same decisions" in replayed.out

    def test_nothing_to_write_is_a_mistake(self, argosy: Call) -> None:
        assert "expected -o DIR, --journal FILE, or both" in argosy("record").err
        assert "--life without --journal" in argosy("record", "-o", "x", "--life", "1").err


class TestServers:
    def test_a_server_can_be_named(self, argosy: Call, server: LiveServer) -> None:
        assert argosy("machines", "--server", server.url).code == 0
        assert argosy("machines", "--server", f"unix:{server.directory}/argosy.sock").code == 0

    def test_nobody_there_is_one_line_with_a_hint(self, argosy: Call, tmp_path: Path) -> None:
        for command in (["ps"], ["submit", "--", "true"], ["down"], ["top"], ["fleet"]):
            at = command.index("--") if "--" in command else len(command)
            result = argosy(*command[:at], "--dir", tmp_path, *command[at:])
            assert result.code == 2
            assert result.err == (
                f"argosy: error[unreachable]: no server answers at unix:{tmp_path}/argosy.sock; "
                "start one with `argosy up`, or name another with --server or ARGOSY_URL\n"
            )

    def test_options_before_a_subcommand_are_not_lost(self, argosy: Call, tmp_path: Path) -> None:
        result = argosy("machines", "--dir", tmp_path, "remove", "m")
        assert (result.code, "options before the subcommand" in result.err) == (2, True)

    def test_down_stops_the_server_and_leaves_its_tasks(self, argosy: Call, tmp_path: Path) -> None:
        with live_server(tmp_path / "state") as server:
            there = ("--dir", server.directory)
            job = argosy("submit", *there, "--cpu", "1m", "--", "sleep", "600").out.strip()
            stopped = argosy("down", *there)
            assert stopped.out.endswith("is down; its tasks were left running\n")
            assert argosy("ps", *there).code == 2
            server.stop()
            server.start()
            assert f"{job}/0  running" in argosy("ps", *there).out
            assert argosy("down", *there, "--stop-tasks").out.endswith("tasks were stopped\n")


class TestCompletion:
    def complete(self, server: LiveServer, words: str) -> list[str]:
        environment = {
            **server.environment,
            "_ARGOSY_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        done = subprocess.run(
            [sys.executable, "-c", "from argosy.cli import process; process()"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return [line.partition(",")[2] for line in done.stdout.split()]

    def test_commands_options_and_names_are_completed(
        self, argosy: Call, server: LiveServer
    ) -> None:
        job = submitted(argosy, "--id", "completed", "--wait", "--", "true")
        assert self.complete(server, "argosy sub") == ["submit"]
        assert "--once" in self.complete(server, "argosy top --")
        assert job in self.complete(server, "argosy logs ")
        assert self.complete(server, f"argosy logs {job}/") == [f"{job}/0"]
        assert self.complete(server, "argosy drain local-") == ["local-0", "local-1"]

    def test_without_a_server_nothing_is_completed(
        self, server: LiveServer, tmp_path: Path
    ) -> None:
        assert self.complete(LiveServer(tmp_path), "argosy logs ") == []
