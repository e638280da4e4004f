"""`argosy demo` without engines that run and without a server."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import QUICKSTART, Call
from stand_in_client import LATER, ScriptedClient, made_up_job

from argosy import library
from argosy.api.values import MachineInfo, PlannedTask, PlanResult
from argosy.cli import demo


class Cluster:
    """A live cluster that runs what it is given, and what it was asked for."""

    def __init__(self) -> None:
        self.directory = Path()
        self.told: list[float] = []
        self.client = ScriptedClient(
            machines=[
                MachineInfo(name="a", capacity={"cpu": 900}, used={}),
                MachineInfo(name="b", capacity={"cpu": 1_500}, used={}),
            ],
            submit=None,
            plan=PlanResult(
                fits=False,
                tasks=(
                    PlannedTask(
                        job="x", index=0, state="pending", sentence="No room.", remedy="more."
                    ),
                ),
            ),
            watch=self.watch,
            job=self.job,
            shutdown=self.shutdown,
        )

    def watch(self, job_id: str) -> Any:
        half = {"finished": 20, "running": 20} if job_id == "render" else {"failed": 1}
        yield made_up_job(job_id, tasks=half)
        yield self.job(job_id)

    def job(self, job_id: str) -> Any:
        counts = {"render": {"finished": 40}, "report": {"finished": 4}, "flaky": {"failed": 1}}
        return made_up_job(job_id, tasks=counts[job_id], ended=LATER)

    def shutdown(self, *, stop_tasks: bool) -> None:
        (self.directory / "argosy.sock").unlink()


def test_jobs_are_small_and_progress_is_the_share_of_their_tasks() -> None:
    cluster = Cluster()
    client: Any = cluster.client
    jobs, why = demo._use(client, cluster.told.append)
    assert [job.id for job in jobs] == ["render", "report", "flaky"]
    assert why == ["No room.", "more."]
    submitted = [call[1] for call in client.asked if call[0] == "submit"]
    # Half of the smallest machine.
    assert [each["id"] for each in submitted] == ["render", "report", "flaky"]
    assert all(each["request"] == {"cpu": 450, "memory": "32MiB"} for each in submitted)
    [(_, [planned])] = [call for call in client.asked if call[0] == "plan"]
    assert (planned["id"], planned["request"]) == ("too-large", {"cpu": 4_000})
    parts = (20, 40, 40 + 1, 40 + 4, 44 + 1, 44 + 1)
    assert cluster.told == [part / 45 for part in parts]


def test_the_smallest_machine_still_runs_something() -> None:
    cluster = Cluster()
    client: Any = cluster.client
    client._answers["machines"] = [MachineInfo(name="a", capacity={"cpu": 1}, used={})]
    demo._use(client, cluster.told.append)
    assert client.asked[1][1]["request"]["cpu"] == 1


class TestCommand:
    @pytest.fixture
    def given(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        seen = SimpleNamespace(
            compared=[], started=[], titles=[], best="sparrow", cluster=Cluster()
        )

        def compare(scenario: Any, engines: Any, *, seeds: int, progress: Any) -> Any:
            progress(0.5)
            seen.compared.append((scenario, engines, seeds))
            return SimpleNamespace(
                best=lambda: seen.best, verdict=lambda: ["it won"], ranking=lambda: "ranking"
            )

        def start_server(arguments: list[str], directory: Path) -> str:
            seen.started.append(arguments)
            seen.cluster.directory = directory
            (directory / "argosy.sock").touch()
            return "up"

        @contextmanager
        def progress(title: str) -> Any:
            seen.titles.append(title)
            yield lambda share: None

        monkeypatch.setattr(library, "compare", compare)
        monkeypatch.setattr("argosy.cli.server_start.start_server", start_server)
        monkeypatch.setattr("argosy.client.Client", lambda directory: seen.cluster.client)
        monkeypatch.setattr("argosy.cli.compare.sections", lambda ranked, width: [["compared"]])
        monkeypatch.setattr(demo, "progress", progress)
        return seen

    def test_the_best_engine_runs_real_tasks(self, argosy: Call, given: SimpleNamespace) -> None:
        told = argosy("demo", QUICKSTART)
        assert (told.code, told.err) == (0, "\n")
        assert given.compared == [(QUICKSTART, ["omega", "murmuration"], 3)]
        [arguments] = given.started
        folder = arguments[2]
        assert arguments == [
            *("up", "--dir", folder, "--listen", "none", "--machines", "4", "--engine", "sparrow"),
        ]
        assert not Path(folder).exists()
        assert given.titles == [
            "comparing 2 engines x 3 seeds",
            "sparrow runs real tasks on 4 slices of this computer",
        ]
        lines = [" ".join(line.split()) for line in told.out.splitlines() if line]
        assert lines == [
            "compared",
            "sparrow for real: what ran",
            "job state done running waiting tasks scheduler took exit",
            "render running 40 0 0 40 s 1.5 s",
            "report running 4 0 0 4 s 1.5 s",
            "flaky running 1 0 0 1 s 1.5 s",
            "a job that is too large, planned but not submitted",
            "No room.",
            "more.",
        ]

    def test_programs_get_the_second_half_alone(self, argosy: Call, given: SimpleNamespace) -> None:
        given.best = None
        some = ("--engine", "kube", "--engine", "omega", "--seeds", "7")
        document = json.loads(argosy("demo", QUICKSTART, *some, "-o", "json").out)
        assert given.compared == [(QUICKSTART, ["kube", "omega"], 7)]
        # Nobody finished anything, so the first engine has to do.
        assert given.started[0][-1] == "kube"
        assert list(document) == ["best", "verdict", "jobs", "plan"]
        assert (document["best"], document["verdict"]) == ("kube", ["it won"])
        assert [each["id"] for each in document["jobs"]] == ["render", "report", "flaky"]
        assert document["plan"] == ["No room.", "more."]

    def test_everything_is_taken_down_after_a_failure(
        self, argosy: Call, given: SimpleNamespace
    ) -> None:
        given.cluster.client._answers["watch"] = RuntimeError("odd")
        assert argosy("demo", QUICKSTART, "-o", "json").code == 1
        assert given.cluster.client.asked[-1] == ("shutdown", {"stop_tasks": True})
        assert not given.cluster.directory.exists()
