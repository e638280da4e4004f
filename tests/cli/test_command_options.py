"""What commands do with their options: what they ask others for, without running it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from command_line import Call

from argosy.api.values import (
    CancelResult,
    DisplacedTask,
    FleetInfo,
    JobSummary,
    MachineInfo,
    MachinePatch,
    PlannedTask,
    PlanResult,
    TaskCounts,
    TaskSummary,
)
from argosy.cli import live, record
from argosy.cli.live import ServerChoice, find_task, split_task
from argosy.cli.live_answers import answered
from argosy.model.errors import CommandError, RunDirectoryError, ServerError, ServerUnreachable

NOON = "2026-05-01T12:00:00+00:00"


def job(name: str, tasks: int = 2) -> JobSummary:
    return JobSummary(
        id=name, kind="batch", scheduler="s", version=1, submitted=NOON, state="running",
        tasks=TaskCounts(running=tasks),
    )  # fmt: skip


class RecordingClient:
    """Remembers what it is asked, and answers something fitting."""

    endpoint = "unix:/somewhere"

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __enter__(self) -> RecordingClient:
        return self

    def __exit__(self, *_: object) -> None: ...

    def _ask(self, *question: Any) -> None:
        self.asked.append(question)

    def job(self, name: str) -> JobSummary:
        return job(name, 1 if name == "one" else 3)

    def logs(self, name: str, index: int, **how: Any) -> bytes:
        self._ask("logs", name, index, how)
        return b"text \xff\n"

    def follow_logs(self, name: str, index: int, **how: Any) -> list[bytes]:
        self._ask("follow", name, index, how)
        return [b"a", b"b\n"]

    def cancel(self, name: str, tasks: list[int] | None) -> CancelResult:
        self._ask("cancel", name, tasks)
        return CancelResult(cancelled=1 if tasks is None else len(tasks), job=job(name))

    def scale(self, name: str, tasks: int) -> JobSummary:
        self._ask("scale", name, tasks)
        return job(name)

    def drain(self, name: str, *, undo: bool) -> MachineInfo:
        self._ask("drain", name, undo)
        return self.machine(name)

    def machine(self, name: str) -> MachineInfo:
        return MachineInfo(name=name, capacity={"cpu": 500, "gpu": 1}, used={"cpu": 250})

    def machines(self) -> list[MachineInfo]:
        return [self.machine("m")]

    def change_machine(self, name: str, patch: MachinePatch) -> MachineInfo:
        self._ask("change", name, patch.capacity, patch.draining)
        return self.machine(name)

    def remove_machine(self, name: str) -> None:
        self._ask("remove", name)

    def set_fleet(self, entries: Any) -> FleetInfo:
        self._ask("fleet", entries)
        return FleetInfo(version=1, fleet=tuple(entries), schedulers=())

    def plan(self, documents: Any) -> PlanResult:
        self._ask("plan", len(documents))
        return PlanResult(
            fits=False,
            tasks=(
                PlannedTask(job="a", index=0, state="running", machine="m", sentence="It fits."),
                PlannedTask(job="a", index=1, state="pending", sentence="No room.", remedy="more."),
            ),
            displaced=(DisplacedTask(task="b/0", machine="m", outcome="moved", to="n"),),
            notes=("a note",),
        )  # fmt: skip

    def jobs(self, *, limit: int) -> list[JobSummary]:
        self._ask("jobs", limit)
        return [job("crawl"), job("crash"), job("other")]

    def tasks(self, name: str, *, limit: int) -> list[TaskSummary]:
        self._ask("tasks", name, limit)
        return [TaskSummary(job=name, index=index, state="running") for index in (1, 10, 2)]

    def recording(self) -> list[bytes]:
        return [
            b'{"cluster": {"name": "n", "seed": 3}}\n{"id": "a", "sub',
            b'mit": 5, "duration": 7}\n',
        ]

    def journal(self, life: int | None) -> list[bytes]:
        self._ask("journal", life)
        return [b"one\n", b"two\n"]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> RecordingClient:
    made = RecordingClient()
    monkeypatch.setattr(ServerChoice, "client", lambda self: made)
    return made


class TestLiveCommands:
    @pytest.mark.parametrize(
        ("options", "how"),
        [
            ([], {"stream": "stdout", "try_number": None, "tail": None}),
            (["--stderr", "--try", "2"], {"stream": "stderr", "try_number": 2, "tail": None}),
            (["--tail", "0"], {"stream": "stdout", "try_number": None, "tail": 0}),
        ],
    )
    def test_logs(
        self, argosy: Call, client: RecordingClient, options: list[str], how: dict[str, Any]
    ) -> None:
        result = argosy("logs", "a/3", *options, "-o", "json")
        assert client.asked == [("logs", "a", 3, how)]
        assert json.loads(result.out) == {
            "task": "a/3",
            "stream": how["stream"],
            "text": "text \ufffd\n",
        }

    def test_logs_are_followed(self, argosy: Call, client: RecordingClient) -> None:
        result = argosy("logs", "one", "-f", "--stderr", "--tail", "9")
        assert result.out == "ab\n"
        assert client.asked == [("follow", "one", 0, {"stream": "stderr", "tail": 9})]
        for options, other in ((["--try", "1"], "--try"), (["-o", "json"], "-o json")):
            assert f"both -f and {other}" in argosy("logs", "one", "-f", *options).complaint

    def test_jobs_and_single_tasks_are_cancelled_once_each(
        self, argosy: Call, client: RecordingClient
    ) -> None:
        result = argosy("cancel", "a/3", "b", "a/1", "b/2", "c/0", "c")
        assert client.asked == [
            ("cancel", "a", [3, 1]),
            ("cancel", "b", None),
            ("cancel", "c", None),
        ]
        assert result.out == "a: 2 tasks cancelled\nb: 1 task cancelled\nc: 1 task cancelled\n"

    def test_machines_are_drained_resized_and_removed(
        self, argosy: Call, client: RecordingClient
    ) -> None:
        argosy("drain", "m", "n")
        argosy("drain", "m", "--undo")
        argosy("machines", "resize", "m", "--cpu", "2", "--capacity", "tpu=3")
        assert argosy("machines", "remove", "m").err == "machine m is removed\n"
        assert client.asked == [
            ("drain", "m", False),
            ("drain", "n", False),
            ("drain", "m", True),
            ("change", "m", {"cpu": "2", "gpu": 1, "tpu": 3}, None),
            ("remove", "m"),
        ]
        assert "nothing to change" in argosy("machines", "resize", "m").complaint
        listed = argosy("machines", "-o", "csv").out.splitlines()
        assert listed == [
            "name,draining,running,queued,cpu,gpu,cpu_used,gpu_used",
            "m,false,0,0,500,1,250,0",
        ]

    def test_a_job_is_scaled(self, argosy: Call, client: RecordingClient) -> None:
        assert argosy("scale", "web", "5").out == "web: 5 tasks\n"
        assert client.asked == [("scale", "web", 5)]
        assert argosy("scale", "web", "0").code == 2

    def test_a_job_is_scaled_to_a_single_task(self, argosy: Call, client: RecordingClient) -> None:
        assert argosy("scale", "web", "1").out == "web: 1 task\n"
        assert client.asked == [("scale", "web", 1)]

    def test_a_fleet_comes_from_options_or_a_file(
        self, argosy: Call, client: RecordingClient, tmp_path: Path
    ) -> None:
        argosy("fleet", "set", "--engine", "omega", "--engine", "sparrow")
        (tmp_path / "f.toml").write_text(
            'x = 1\n[[fleet]]\nname = "a"\nengine = "omega"\nreplicas = 2\n'
        )
        argosy("fleet", "set", "f.toml")
        assert client.asked == [
            (
                "fleet",
                [{"name": "omega", "engine": "omega"}, {"name": "sparrow", "engine": "sparrow"}],
            ),
            ("fleet", [{"name": "a", "engine": "omega", "replicas": 2}]),
        ]
        assert "no fleet; expected one of them" in argosy("fleet", "set").complaint
        both = argosy("fleet", "set", "f.toml", "--engine", "omega")
        assert "both a file and --engine" in both.complaint
        for text in ("fleet = 3\n", "fleet = [3]\n", ""):
            (tmp_path / "f.toml").write_text(text)
            assert (
                "f.toml: no fleet; expected a file in TOML"
                in argosy("fleet", "set", "f.toml").complaint
            )

    def test_a_plan_that_does_not_fit_ends_with_1(
        self, argosy: Call, client: RecordingClient
    ) -> None:
        result = argosy("plan", "--", "true")
        assert (result.code, result.err) == (1, "note: a note\n")
        lines = result.out.splitlines()
        assert lines[0] == "does not fit: 1 of 2 tasks would wait"
        assert any(line.endswith("No room. What would help: more.") for line in lines)
        assert any(line.split() == ["b/0", "m", "moved", "n"] for line in lines)

    def test_a_recording_is_written_whole(
        self, argosy: Call, client: RecordingClient, tmp_path: Path
    ) -> None:
        result = argosy("record", "-o", "r", "--journal", "j", "--life", "4")
        assert result.err == "r/scenario.toml: 1 job\nj: 8 bytes\n"
        assert client.asked == [("journal", 4)]
        assert (tmp_path / "j").read_text() == "one\ntwo\n"
        assert (
            tmp_path / "r/jobs.jsonl"
        ).read_text() == '{"id": "a", "submit": 5, "duration": 7}\n'
        text = (tmp_path / "r/scenario.toml").read_text()
        assert "horizon" not in text
        assert sorted(path.name for path in (tmp_path / "r").iterdir()) == [
            "jobs.jsonl",
            "scenario.toml",
        ]
        assert "nothing to write" in argosy("record").complaint
        assert "--life without --journal" in argosy("record", "-o", "r", "--life", "1").complaint


class TestRecording:
    def test_lines_are_found_however_they_were_cut(self) -> None:
        assert list(record._lines([b"a", b"b\nc", b"\n", b"d"])) == [b"ab", b"c", b"d"]
        assert list(record._lines([b"a\n"])) == [b"a"]

    @pytest.mark.parametrize(
        ("table", "expected"),
        [
            ({"submit": 5, "duration": 7}, (12, False)),
            ({"submit": 5, "durations": [7, 9]}, (14, False)),
            ({"submit": 5}, (5, True)),
            ({"submit": 1, "groups": [{"duration": 3}, {}]}, (4, True)),
            ({"submit": 1, "groups": [{"duration": 3}, {"durations": [1, 2]}]}, (4, False)),
        ],
    )
    def test_a_job_ends_with_its_longest_task(self, table: Any, expected: Any) -> None:
        assert record._extent(table) == expected

    def test_a_simulation_with_services_ends_at_twice_the_recorded_time(
        self, tmp_path: Path
    ) -> None:
        head = b'{"cluster": {"name": "n", "seed": 3}}'
        for submit, horizon in ((50_000_000, 120_000_000), (60_000_001, 120_000_002)):
            lines = iter([head, b'{"id": "a", "submit": %d}' % submit])
            assert record._write_scenario(tmp_path, lines) == 1
            assert f'"{horizon}us"' in (tmp_path / "scenario.toml").read_text()

    @pytest.mark.parametrize(
        ("durations", "has_horizon"), [("-7", True), ("7-", True), ("77", False)]
    )
    def test_one_service_among_the_jobs_is_enough_for_a_horizon(
        self, tmp_path: Path, durations: str, has_horizon: bool
    ) -> None:
        ends = ["" if each == "-" else f', "duration": {each}000000' for each in durations]
        jobs = [f'{{"id": "j{at}", "submit": 1{end}}}'.encode() for at, end in enumerate(ends)]
        assert record._write_scenario(tmp_path, iter([b'{"cluster": {"name": "n"}}', *jobs])) == 2
        text = (tmp_path / "scenario.toml").read_text()
        assert ("horizon" in text) is has_horizon

    def test_a_file_that_breaks_off_is_not_there(self, tmp_path: Path) -> None:
        def break_off() -> None:
            with record._whole(tmp_path / "f") as file:
                file.write(b"half")
                raise KeyError

        with pytest.raises(KeyError):
            break_off()
        assert list(tmp_path.iterdir()) == []


class TestNames:
    @pytest.mark.parametrize(
        ("text", "expected"), [("a", ("a", None)), ("a/0", ("a", 0)), ("a.b/12", ("a.b", 12))]
    )
    def test_a_task_is_a_job_and_an_index(self, text: str, expected: Any) -> None:
        assert split_task(text) == expected

    @pytest.mark.parametrize("text", ["", "/1", "a/", "a/-1", "a/b", "a/1/2", "a/٣"])
    def test_anything_else_is_no_task(self, text: str) -> None:
        with pytest.raises(CommandError, match="expected JOB/INDEX"):
            split_task(text)

    def test_only_the_one_task_of_a_job_needs_no_index(self, client: RecordingClient) -> None:
        assert find_task(client, "one") == ("one", 0)  # type: ignore[arg-type]
        assert find_task(client, "many/2") == ("many", 2)  # type: ignore[arg-type]
        with pytest.raises(
            CommandError, match="job many has 3 tasks; expected one of many/0 to many/2"
        ):
            find_task(client, "many")  # type: ignore[arg-type]

    def test_names_are_completed(
        self, client: RecordingClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[Any] = []

        def make(*arguments: Any, **options: Any) -> RecordingClient:
            given.append((arguments, options))
            return client

        monkeypatch.setattr("argosy.client.Client", make)
        context = click.Context(click.Command("x"))
        context.params = {"server": "s", "directory": "d", "token_file": "t"}
        parameter: Any = None

        def shown(complete: Any, text: str) -> list[str]:
            return [item.value for item in complete(context, parameter, text)]

        assert shown(live.complete_job, "cra") == ["crawl", "crash"]
        assert shown(live.complete_task, "o") == ["other"]
        assert shown(live.complete_task, "crawl/1") == ["crawl/1", "crawl/10"]
        assert shown(live.complete_machine, "") == ["m"]
        assert client.asked == [("jobs", 200), ("jobs", 200), ("tasks", "crawl", 200)]
        known = {"directory": "d", "token_file": "t", "timeout": 1.0, "patience": 0}
        assert given == [(("s",), known)] * 4

    def test_a_choice_makes_a_client_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("argosy.client.Client", lambda *given, **more: (given, more))
        chosen = ServerChoice("s", Path("d"), Path("t"))
        assert chosen.client() == (("s",), {"directory": Path("d"), "token_file": Path("t")})
        assert [
            ServerChoice(*given).is_given for given in (("s", None, None), (None, Path(), None))
        ] == [True, True]
        assert not ServerChoice(None, None, Path("t")).is_given


class TestAnswers:
    NOWHERE = ServerChoice(None, None, None)

    def ask(self, problem: Exception | None, **fields: Any) -> str:
        def live_answer(client: Any, name: str, index: int) -> str:
            if problem is not None:
                raise problem
            return f"live {name} {index}"

        known: dict[str, Any] = {
            "task": "a/1",
            "run": None,
            "where": self.NOWHERE,
            "saved": lambda: "saved",
        }
        return answered(**known | fields, live=live_answer)

    def test_a_live_cluster_answers_first(
        self, client: RecordingClient, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.ask(None) == "live a 1"
        assert "answered by the live cluster at unix:/somewhere" in capsys.readouterr().err
        assert self.ask(None, where=ServerChoice("s", None, None)) == "live a 1"
        assert capsys.readouterr().err == ""

    def test_a_run_that_is_named_answers(self, client: RecordingClient) -> None:
        assert self.ask(None, run=Path("r")) == "saved"
        with pytest.raises(CommandError, match="both --run and a live server"):
            self.ask(None, run=Path("r"), where=ServerChoice("s", None, None))

    def test_a_saved_run_answers_where_no_cluster_does(
        self,
        client: RecordingClient,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        away = ServerUnreachable("nobody there")
        assert self.ask(away) == "saved"
        assert capsys.readouterr().err == ""
        missing = ServerError("no such task", status=404)
        with pytest.raises(ServerError):
            self.ask(missing)
        with pytest.raises(ServerError):
            self.ask(ServerError("broken", status=500))

        def unknown(name: str) -> Any:
            raise ServerError("no such job", status=404)

        monkeypatch.setattr(client, "job", unknown)
        assert self.ask(missing) == "saved"
        told = "note: answered by a saved run; the live cluster at unix:/somewhere: no such task\n"
        assert capsys.readouterr().err == told
        with pytest.raises(ServerUnreachable):
            self.ask(away, where=ServerChoice("s", None, None))

    def test_if_nobody_answers_both_are_told(self, client: RecordingClient) -> None:
        def saved() -> str:
            raise RunDirectoryError("no run found", file="runs", hint="run one")

        with pytest.raises(RunDirectoryError) as caught:
            self.ask(ServerUnreachable("nobody there", expected="x"), saved=saved)
        assert caught.value.problem == "no run found, and nobody there"
        assert (caught.value.file, caught.value.hint) == ("runs", "run one")
