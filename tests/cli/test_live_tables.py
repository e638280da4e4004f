"""What commands about a live cluster make of a server's answers, without a server."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from argosy import cli
from argosy.api.values import (
    FleetInfo,
    Health,
    JobDetails,
    JobSummary,
    MachineInfo,
    SchedulerInfo,
    TaskCounts,
    TaskSummary,
)
from argosy.cli import live, output, top
from argosy.cli.job_arguments import _document, _given
from argosy.cli.job_tables import JOB_COLUMNS, TASK_COLUMNS, job_row, task_row
from argosy.cli.serving import address
from argosy.cli.up import DEFAULT_LISTEN, _cluster
from argosy.model.errors import CommandError, ServerError

NOON = "2026-05-01T12:00:00.000000+00:00"
LATER = "2026-05-01T12:00:01.500000+00:00"


def summary(job: str, state: str = "running", **fields: Any) -> JobSummary:
    known = {"kind": "batch", "scheduler": "s", "version": 1, "submitted": NOON}
    counts = TaskCounts(**fields.pop("tasks", {}))
    return JobSummary(**{"id": job, "state": state, "tasks": counts, **known, **fields})


def machine(name: str, used: int, has: int = 1_000, **fields: Any) -> MachineInfo:
    return MachineInfo(name=name, capacity={"cpu": has}, used={"cpu": used}, **fields)


class StandIn:
    """A client of a cluster that is all in its attributes."""

    endpoint = "unix:/somewhere"

    def __init__(self, **fields: Any) -> None:
        self.asked: list[Any] = []
        self.machine_list: list[MachineInfo] = fields.get("machines", [])
        self.job_list: list[JobSummary] = fields.get("jobs", [])
        self.task_list: list[TaskSummary] = fields.get("tasks", [])
        self.open_jobs = fields.get("open_jobs", len(self.job_list))

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def health(self) -> Health:
        return Health(
            status="ok",
            version="1",
            cluster="c",
            started=NOON,
            open_jobs=self.open_jobs,
            running_tasks=1,
            machines=len(self.machine_list),
        )

    def machines(self) -> list[MachineInfo]:
        return self.machine_list

    def fleet(self) -> FleetInfo:
        known = (
            SchedulerInfo(name="one", engine="omega", jobs=1_234, busyness=0.5),
            SchedulerInfo(name="two", engine="omega", is_alive=False),
        )
        return FleetInfo(version=1, fleet=(), schedulers=known)

    def jobs(self, **query: Any) -> list[JobSummary]:
        self.asked.append(query)
        return self.job_list[: query["limit"]]

    def job(self, name: str) -> JobDetails:
        found = next(job for job in self.job_list if job.id == name)
        fields = {field: getattr(found, field) for field in found.__struct_fields__}
        return JobDetails(**fields, document={})

    def open_tasks(self, *, state: str | None, limit: int | None) -> list[TaskSummary]:
        return self.task_list[:limit]

    def tasks(self, job: str, *, state: str, limit: int | None) -> list[TaskSummary]:
        self.asked.append(state)
        return [task for task in self.task_list if (task.job, task.state) == (job, state)][:limit]

    def plan(self, documents: list[dict[str, Any]]) -> None:
        self.asked.append(("plan", [document["id"] for document in documents]))

    def submit(self, document: dict[str, Any], *, key: str | None) -> JobDetails:
        self.asked.append((document["id"], key))
        if document["id"] == "refused":
            raise ServerError("no", status=400, field="request.cpu")
        found = summary(document["id"])
        fields = {field: getattr(found, field) for field in found.__struct_fields__}
        notes = (f"{document['id']} is late", "the same")
        return JobDetails(**fields, document=document, notes=notes)

    def add_machine(self, document: dict[str, Any]) -> MachineInfo:
        self.asked.append(document)
        return machine("m", 0)


Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls a command; returns what it printed as its result, and as remarks."""

    def call(client: StandIn, *arguments: str, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(live.ServerChoice, "client", lambda self: client)
        with pytest.raises(SystemExit) as stop:
            cli.main(list(arguments))
        shown = capsys.readouterr()
        assert stop.value.code == code, shown.err
        return shown.out, shown.err

    return call


def test_a_job_is_done_as_far_as_its_tasks_are_over_and_waits_in_queues_too() -> None:
    states = ("pending", "queued", "running", "finished", "failed", "cancelled", "abandoned")
    counts = {state: 10**place for place, state in enumerate(states)}
    row = job_row(summary("a", tasks=counts, ended=LATER, precedence=0))
    found = dict(zip((column.name for column in JOB_COLUMNS), row, strict=True))
    assert (found["done"], found["running"], found["waiting"]) == (1_111_000, 100, 11)
    assert (found["tasks"], found["took"], found["precedence"]) == (1_111_111, 1_500_000, None)


def test_a_task_that_never_failed_shows_no_number_of_failures() -> None:
    task = TaskSummary(job="a", index=3, state="finished", started=NOON, ended=LATER)
    found = dict(zip((column.name for column in TASK_COLUMNS), task_row(task), strict=True))
    assert (found["task"], found["for"], found["failures"]) == ("a/3", 1_500_000, None)


def test_time_that_has_passed_is_never_negative() -> None:
    assert live.elapsed(NOON, LATER) == 1_500_000
    assert live.elapsed(LATER, NOON) == 0
    assert live.elapsed(None, NOON) is None


class TestTop:
    def drawn(self, client: StandIn, height: int | None = None) -> list[str]:
        from rich.console import Console

        stream = io.StringIO()
        console = Console(file=stream, width=120)
        console.print(top.Picture(client).drawn(None, height))  # type: ignore[arg-type]
        return stream.getvalue().splitlines()

    def test_the_busiest_machines_come_first(self) -> None:
        full = MachineInfo(
            name="full", capacity={"cpu": 1_000, "memory": 100}, used={"cpu": 10, "memory": 99}
        )
        machines = [machine("idle", 0), machine("half", 500), full, machine("also", 500)]
        lines = self.drawn(StandIn(machines=machines))
        known = {each.name for each in machines}
        names = [word for line in lines for word in line.split()[:1] if word in known]
        assert names == ["full", "also", "half", "idle"]

    def test_what_does_not_fit_is_counted_and_a_small_terminal_shows_some(self) -> None:
        machines = [machine(f"m{n}", 0) for n in range(9)]
        jobs = [summary(f"j{n}") for n in range(9)]
        client = StandIn(machines=machines, jobs=jobs, open_jobs=500)
        whole = "\n".join(self.drawn(client))
        assert "more machines" not in whole
        assert "and 491 more open jobs" in whole
        # Two schedulers and twelve other lines leave room for five of each.
        assert "and 4 more machines" in "\n".join(self.drawn(client, 24))
        assert "and 5 more machines" in "\n".join(self.drawn(client, 3))

    def test_schedulers_that_are_down_are_not_busy(self) -> None:
        lines = [line.split() for line in self.drawn(StandIn())]
        assert ["one", "omega", "1,234", "50", "%"] in lines
        assert ["two", "omega", "0", "down"] in lines

    def test_a_bar_is_full_and_no_longer_if_more_is_used_than_there_is(self) -> None:
        assert top._bar("cpu", 500, 1_000).count("█") == 6
        assert top._bar("cpu", 3_000, 1_000).count("█") == 12
        assert top._bar("cpu", 0, 0) == ""

    def test_rates_are_those_of_the_last_seconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = SimpleNamespace(now=0.0)
        monkeypatch.setattr("argosy.cli.top.time.monotonic", lambda: clock.now)
        rates = top.Rates()
        rates.count("running")
        assert rates.text() == "tasks a second: 1 started, 0 finished, 0 failed"
        clock.now = 5.0
        rates.count("finished")
        assert rates.text() == "tasks a second: 0.2 started, 0.2 finished, 0 failed"
        clock.now = 12.0
        assert rates.text() == "tasks a second: 0 started, 0.1 finished, 0 failed"


class TestLists:
    def test_one_more_job_than_wanted_shows_that_there_are_more(self, run: Run) -> None:
        client = StandIn(jobs=[summary(f"j{n}") for n in range(3)])
        out, err = run(client, "jobs", "--limit", "3", "-o", "csv")
        assert (out.count("\n"), err) == (4, "")
        out, err = run(client, "jobs", "--limit", "2", "-o", "csv")
        assert [row["id"] for row in csv.DictReader(io.StringIO(out))] == ["j0", "j1"]
        assert "there are more than 2 jobs; --all lists them" in err
        assert run(client, "jobs", "--all", "-o", "csv")[0].count("\n") == 4
        assert client.asked[-1]["limit"] is None

    def test_columns_that_say_nothing_about_any_job_are_left_out(self, run: Run) -> None:
        plain = run(StandIn(jobs=[summary("a")]), "jobs")[0].splitlines()[0].split()
        assert not {"kind", "name", "owner", "precedence"} & set(plain)
        jobs = [summary("a"), summary("b", kind="service", name="n", owner="o", precedence=1)]
        full = run(StandIn(jobs=jobs), "jobs")[0].splitlines()[0].split()
        assert {"kind", "name", "owner", "precedence"} <= set(full)

    def test_only_states_that_tasks_of_the_job_are_in_are_asked_for(self, run: Run) -> None:
        tasks = [TaskSummary(job="a", index=n, state="running") for n in range(2)]
        tasks.append(TaskSummary(job="a", index=2, state="finished"))
        client = StandIn(jobs=[summary("a", tasks={"running": 2, "finished": 1})], tasks=tasks)
        out, err = run(client, "ps", "a", "--limit", "2", "-o", "csv")
        assert [row["task"] for row in csv.DictReader(io.StringIO(out))] == ["a/0", "a/1"]
        assert (client.asked, err) == (["running"], "")

    def test_attributes_have_a_column_if_a_machine_has_some(self, run: Run) -> None:
        plain, with_disk = machine("a", 0), machine("b", 250, attributes={"disk": "ssd"})
        assert "attributes" not in run(StandIn(machines=[plain]), "machines")[0]
        out, _ = run(StandIn(machines=[plain, with_disk]), "machines")
        assert "disk=ssd" in out
        assert "0.25 cores of 1 core" in out

    def test_a_machine_joins_several_sets_of_a_group(self, run: Run) -> None:
        client = StandIn()
        options = (
            "--cpu 1 --capacity gpu=2 --join zone=a --join zone=b --join rack=r --attribute k=v"
        )
        run(client, "machines", "add", "m", *options.split())
        [document] = client.asked
        assert document["joins"] == {"zone": ["a", "b"], "rack": ["r"]}
        assert document["attributes"] == {"k": "v"}
        assert document["capacity"] == {"cpu": "1", "gpu": 2}
        for wrong in (["--join", "=a"], ["--attribute", "k"], ["--capacity", "gpu=-1"]):
            run(client, "machines", "add", "m", "--cpu", "1", *wrong, code=2)
        assert "without resources" in run(client, "machines", "add", "m", code=2)[1]

    @pytest.mark.parametrize("option", [("--token-file", "t"), ("--dir", "d"), ("--server", "s")])
    def test_no_option_before_a_subcommand_is_lost(self, run: Run, option: tuple[str, str]) -> None:
        _, err = run(StandIn(), "machines", *option, "remove", "m", code=2)
        assert "options before the subcommand" in err


class TestSubmit:
    def file(self, directory: Path, *names: str) -> Path:
        path = directory / "jobs.toml"
        path.write_text(
            "".join(
                f'[[jobs]]\nid = "{name}"\ncommand = "true"\nrequest = {{cpu = "1", memory = "1MiB"}}\n'
                for name in names
            )
        )
        return path

    def test_notes_of_every_job_are_told(self, run: Run, tmp_path: Path) -> None:
        client = StandIn()
        out, err = run(client, "submit", str(self.file(tmp_path, "a", "b")), "--key", "k")
        assert out == "a\nb\n"
        assert err == "note: a is late\nnote: the same\nnote: b is late\nnote: the same\n"
        assert client.asked == [("plan", ["a", "b"]), ("a", "k-0"), ("b", "k-1")]

    def test_one_job_needs_no_plan_and_keeps_its_key(self, run: Run, tmp_path: Path) -> None:
        client = StandIn()
        run(client, "submit", str(self.file(tmp_path, "a")), "--key", "k")
        run(client, "submit", str(self.file(tmp_path, "a")))
        assert client.asked == [("a", "k"), ("a", None)]

    def test_what_was_submitted_before_a_refusal_is_told(self, run: Run, tmp_path: Path) -> None:
        path = self.file(tmp_path, "a", "b", "refused", "c")
        client = StandIn()
        out, err = run(client, "submit", str(path), code=2)
        assert out == ""
        assert "submitted before: a b\n" in err
        assert f"{path}:12: no\n" in err
        assert client.asked[-1] == ("refused", None)
        out, err = run(client, "submit", str(self.file(tmp_path, "refused")), code=2)
        assert "submitted before" not in err


class TestJobArguments:
    OPTIONS: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(
            [
                "id",
                "name",
                "kind",
                "owner",
                "count",
                "cpu",
                "memory",
                "precedence",
                "estimate",
                "timeout",
                "retries",
                "backoff",
                "cwd",
                "stdin",
            ]
        ),
        **dict.fromkeys(["request", "tag", "constraint", "requires", "env"], ()),
        **dict.fromkeys(["gang", "service"], False),
    }

    def test_amounts_that_are_numbers_are_sent_as_numbers(self) -> None:
        given = self.OPTIONS | {"request": ("gpu=2", "disk=10GiB"), "requires": ("a=b=c", "d=")}
        document = _document(["true"], given)
        assert document["request"] == {"cpu": "1", "memory": "512MiB", "gpu": 2, "disk": "10GiB"}
        assert document["requires"] == {"a": "b=c", "d": ""}
        assert set(document) == {"command", "request", "requires", "working_directory"}

    @pytest.mark.parametrize("text", ["=b", "a", ""])
    def test_a_pair_has_a_name_and_a_sign(self, text: str) -> None:
        with pytest.raises(CommandError, match="NAME=VALUE"):
            _document(["true"], self.OPTIONS | {"requires": (text,)})

    def test_a_variable_without_a_sign_is_taken_from_here_and_an_empty_one_stays_empty(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("HERE", "EMPTIED"):
            monkeypatch.setenv(name, "of the shell")
        monkeypatch.delenv("NOT_HERE", raising=False)
        texts = ("HERE", "EMPTIED=", "NOT_HERE=", "SUM=1+1=2")
        document = _document(["true"], self.OPTIONS | {"env": texts})
        assert document["environment"] == {
            "HERE": "of the shell",
            "EMPTIED": "",
            "NOT_HERE": "",
            "SUM": "1+1=2",
        }
        with pytest.raises(CommandError, match="--env 'NOT_HERE': it is not set here"):
            _document(["true"], self.OPTIONS | {"env": ("NOT_HERE",)})

    @pytest.mark.parametrize(
        ("name", "value"), [("tag", ("x",)), ("gang", True), ("count", 0), ("cpu", "1")]
    )
    def test_a_file_goes_with_no_option_of_a_job(self, name: str, value: object) -> None:
        with pytest.raises(CommandError, match=f"both a job file and --{name}"):
            _given("jobs.toml", None, None, self.OPTIONS | {name: value})


class TestUp:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("none", (None, 0)),
            ("localhost:80", ("localhost", 80)),
            ("[::1]:65535", ("::1", 65_535)),
            ("0.0.0.0:0", ("0.0.0.0", 0)),
        ],
    )
    def test_an_address_is_a_host_and_a_port(self, text: str, expected: object) -> None:
        assert address(text, DEFAULT_LISTEN) == expected

    @pytest.mark.parametrize("text", ["localhost", ":80", "localhost:65536", "h:-1", "h:٣", ""])
    def test_anything_else_is_no_address(self, text: str) -> None:
        with pytest.raises(CommandError, match="HOST:PORT"):
            address(text, DEFAULT_LISTEN)

    def test_machines_are_equal_shares_of_this_computer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        [whole] = _cluster(None, 1, ("omega",)).cell.machines
        assert (whole.name, whole.capacity.cpu) == ("local", 2_000)
        halves = _cluster(None, 2, ("omega", "sparrow"))
        assert [each.name for each in halves.cell.machines] == ["local-0", "local-1"]
        assert {each.capacity.cpu for each in halves.cell.machines} == {1_000}
        assert halves.cell.machines[0].capacity.memory == whole.capacity.memory // 2
        assert [entry.name for entry in halves.fleet] == ["omega", "sparrow"]
        [tiny, *_] = _cluster(None, 3_000, ("omega",)).cell.machines
        assert tiny.capacity.cpu == 1


class TestOutput:
    def test_infinities_are_null_in_json_however_deep(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        value = {"a": (float("inf"), [float("nan"), 1.5])}
        output.emit("json", sections=lambda _: [], document=lambda: value, csv=str)
        assert json.loads(capsys.readouterr().out) == {"a": [None, [None, 1.5]]}

    def test_the_same_remark_is_made_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        output.tell_unmet(["one", "two", "one"])
        assert capsys.readouterr().err == "note: one\nnote: two\n"
