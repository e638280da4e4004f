"""What commands about a live cluster print, to the word, and what they ask the server for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from command_line import Call
from stand_in_client import LATER, NOON, ScriptedClient, made_up_job

from argosy.api.values import (
    CancelResult,
    DisplacedTask,
    FleetInfo,
    MachineInfo,
    PlannedTask,
    PlanResult,
    SchedulerInfo,
    StoryDocument,
    TaskSummary,
    WhyDocument,
)
from argosy.cli import live
from argosy.cli.live import ServerChoice
from argosy.model.answers import StoryLine, WhyAnswer

JOB_NAMES = (
    "id,name,kind,owner,state,done,running,waiting,tasks,precedence,"
    "scheduler,submitted,took,exit_code"
)


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two hours east of Greenwich."""
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    def give(**answers: Any) -> ScriptedClient:
        client = ScriptedClient(**answers)
        monkeypatch.setattr(ServerChoice, "client", lambda self: client)
        return client

    return give


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def task(index: int = 3, **fields: Any) -> TaskSummary:
    return TaskSummary(**{"job": "a", "index": index, "state": "running", **fields})


FULL = made_up_job(
    "a",
    name="n",
    kind="k",
    owner="o",
    precedence=5,
    state="failed",
    tasks={"finished": 2, "failed": 1, "pending": 4, "queued": 8, "running": 16},
    ended=LATER,
    exit_code=7,
    document={"command": ["true"]},
    isolation="none",
    notes=("one", "two"),
)


class TestTimes:
    def test_times_are_those_of_this_computer_to_the_second(self) -> None:
        assert live.local_time("2026-05-01T12:00:01.900000+00:00") == "2026-05-01 14:00:01"
        assert live.local_time(None) == ""

    def test_what_is_not_over_lasts_until_now(self) -> None:
        assert live.elapsed(None) is None
        assert live.elapsed("9999-01-01T00:00:00+00:00") == 0
        lasted = live.elapsed("2000-01-01T00:00:00+00:00")
        assert lasted is not None
        assert lasted > 20 * 365 * 86_400 * 10**6


class TestJobs:
    def test_every_column_has_its_value(self, argosy: Call, given: Any) -> None:
        given(jobs=[FULL, made_up_job("b", ended=LATER, exit_code=0)])
        assert argosy("jobs", "-o", "csv").out.splitlines() == [
            JOB_NAMES,
            "a,n,k,o,failed,3,16,12,31,5,s,2026-05-01 14:00:00,1500000,7",
            "b,,batch,,running,0,1,0,1,,s,2026-05-01 14:00:00,1500000,0",
        ]
        titles = (
            "job name kind owner state done running waiting tasks precedence scheduler submitted"
        )
        heading, row, _ = argosy("jobs").out.splitlines()
        assert heading.split() == [*titles.split(), "took", "exit"]
        assert row.split() == [
            *("a", "n", "k", "o", "failed", "3", "16", "12", "31", "5", "s"),
            *("2026-05-01", "14:00:00", "1.5", "s", "7"),
        ]
        assert [each["id"] for each in json.loads(argosy("jobs", "-o", "json").out)] == ["a", "b"]

    @pytest.mark.parametrize(
        ("field", "value"), [("name", "n"), ("kind", "k"), ("owner", "o"), ("precedence", 1)]
    )
    def test_one_job_that_is_different_is_enough_for_a_column(
        self, argosy: Call, given: Any, field: str, value: Any
    ) -> None:
        given(jobs=[made_up_job("a"), made_up_job("b", **{field: value})])
        shown = {"name", "kind", "owner", "precedence"} & set(
            argosy("jobs").out.split("\n")[0].split()
        )
        assert shown == {field}

    @pytest.mark.parametrize(
        ("options", "asked"),
        [
            ([], {"limit": 51}),
            (["--all"], {"limit": None}),
            (["--limit", "1"], {"limit": 2}),
            (["--state", "failed", "--kind", "k"], {"state": "failed", "kind": "k", "limit": 51}),
            (["--owner", "o", "--open"], {"owner": "o", "is_open": True, "limit": 51}),
            (["--over"], {"is_open": False, "limit": 51}),
        ],
    )
    def test_filters_are_those_of_the_server(
        self, argosy: Call, given: Any, options: list[str], asked: dict[str, Any]
    ) -> None:
        client = given(jobs=[])
        assert argosy("jobs", *options).code == 0
        nothing = dict.fromkeys(("state", "kind", "owner", "is_open"))
        assert client.asked == [("jobs", nothing | asked)]

    def test_one_job_is_told_with_all_that_is_known(self, argosy: Call, given: Any) -> None:
        client = given(job=FULL)
        assert argosy("jobs", "a").out.splitlines() == [
            "a",
            "state      failed",
            "tasks      4 pending, 8 queued, 16 running, 2 finished, 1 failed",
            "scheduler  s",
            "submitted  2026-05-01 14:00:00",
            "ended      2026-05-01 14:00:01",
            "exit code  7",
            "isolation  none",
            "note       one",
            "note       two",
            "",
            "as submitted, times in microseconds",
            'command = ["true"]',
        ]
        assert client.asked == [("job", "a")]
        names, row = argosy("jobs", "a", "-o", "csv").out.splitlines()
        told = dict(zip(names.split(","), row.split(","), strict=True))
        assert (told["id"], told["pending"], told["failed"], told["exit_code"]) == (
            "a",
            "4",
            "1",
            "7",
        )
        assert not {"tasks", "document", "notes"} & set(told)
        assert json.loads(argosy("jobs", "a", "-o", "json").out) == json.loads(
            msgspec.json.encode(FULL)
        )

    def test_what_is_not_known_of_a_job_has_no_line(self, argosy: Call, given: Any) -> None:
        given(job=made_up_job("a", tasks={"running": 1_200}))
        assert argosy("jobs", "a").out.splitlines()[:5] == [
            "a",
            "state      running",
            "tasks      1,200 running",
            "scheduler  s",
            "submitted  2026-05-01 14:00:00",
        ]
        given(job=made_up_job("a", state="finished", tasks={"finished": 1}, exit_code=0))
        assert "exit code  0" in argosy("jobs", "a").out


class TestTasks:
    def test_every_column_has_its_value(self, argosy: Call, given: Any) -> None:
        ran = task(
            machine="m",
            started=NOON,
            ended=LATER,
            try_number=2,
            failures=1,
            exit_status=9,
            reason="r",
        )
        given(open_tasks=[ran, task(4, state="pending")])
        assert argosy("ps", "-o", "csv").out.splitlines() == [
            "task,state,machine,for,try,failures,reason",
            "a/3,running,m,1500000,2,1,r",
            "a/4,pending,,,,,",
        ]
        heading, first, _ = words(argosy("ps").out)
        assert heading == ["task", "state", "machine", "for", "try", "failures", "reason"]
        assert first == ["a/3", "running", "m", "1.5", "s", "2", "1", "r"]
        assert json.loads(argosy("ps", "-o", "json").out)[0]["exit_status"] == 9

    @pytest.mark.parametrize(
        ("options", "asked"),
        [
            ([], {"state": None, "limit": 201}),
            (["--state", "queued", "--limit", "3"], {"state": "queued", "limit": 4}),
            (["--all"], {"state": None, "limit": None}),
        ],
    )
    def test_the_server_chooses_among_open_tasks(
        self, argosy: Call, given: Any, options: list[str], asked: dict[str, Any]
    ) -> None:
        client = given(open_tasks=[])
        argosy("ps", *options)
        assert client.asked == [("open_tasks", asked)]

    def test_tasks_of_a_job_are_asked_for_state_by_state(self, argosy: Call, given: Any) -> None:
        def tasks(job: str, *, state: str, limit: int | None) -> list[TaskSummary]:
            return [task(index, state=state) for index in range(2)]

        counts = {"running": 2, "queued": 2, "pending": 2, "finished": 5}
        client = given(job=made_up_job("a", tasks=counts), tasks=tasks)
        rows = argosy("ps", "a", "-o", "csv").out.splitlines()[1:]
        assert [row.split(",")[1] for row in rows] == [
            *("running", "running", "queued", "queued", "pending", "pending"),
        ]
        known = [("tasks", "a", {"state": state, "limit": 201}) for state in ("running", "queued")]
        assert client.asked[1:3] == known
        client.asked.clear()
        argosy("ps", "a", "--state", "pending", "--all")
        assert client.asked[1:] == [("tasks", "a", {"state": "pending", "limit": None})]

    def test_one_more_than_wanted_is_told_and_not_shown(self, argosy: Call, given: Any) -> None:
        given(open_tasks=[task(index) for index in range(3)])
        more, enough = (argosy("ps", "--limit", limit, "-o", "csv") for limit in ("2", "3"))
        assert more.err == "note: there are more than 2 tasks; --all lists them\n"
        assert [row.split(",")[0] for row in more.out.splitlines()[1:]] == ["a/0", "a/1"]
        assert (enough.err, enough.out.count("\n")) == ("", 4)


class TestChanges:
    def test_what_was_cancelled_is_a_table_too(self, argosy: Call, given: Any) -> None:
        given(cancel=CancelResult(cancelled=1_200, job=made_up_job("a", state="cancelled")))
        assert argosy("cancel", "a").out == "a: 1,200 tasks cancelled\n"
        assert argosy("cancel", "a", "-o", "csv").out == "job,cancelled,state\na,1200,cancelled\n"
        [told] = json.loads(argosy("cancel", "a", "-o", "json").out)
        assert (told["cancelled"], told["job"]["id"]) == (1_200, "a")

    def test_a_job_that_is_scaled_is_a_row_of_jobs(self, argosy: Call, given: Any) -> None:
        given(scale=made_up_job("web", tasks={"running": 2, "pending": 3}))
        assert argosy("scale", "web", "5", "-o", "csv").out.splitlines()[0] == JOB_NAMES
        assert json.loads(argosy("scale", "web", "5", "-o", "json").out)["id"] == "web"

    def test_a_fleet_is_shown_with_what_makes_it(self, argosy: Call, given: Any) -> None:
        schedulers = (
            SchedulerInfo(name="one", engine="omega", jobs=1_234, busyness=0.5),
            SchedulerInfo(name="two", engine="sparrow", jobs=2, is_alive=False),
        )
        fleet = ({"name": "one", "engine": "omega"}, {"name": "two", "engine": "sparrow"})
        client = given(fleet=FleetInfo(version=3, fleet=fleet, schedulers=schedulers))
        assert argosy("fleet", "-o", "csv").out.splitlines() == [
            "name,engine,jobs,busyness,is_alive",
            "one,omega,1234,0.5,true",
            "two,sparrow,2,0.0,false",
        ]
        lines = argosy("fleet").out.splitlines()
        assert [line.split() for line in lines[:3]] == [
            ["scheduler", "engine", "jobs", "busy", "alive"],
            ["one", "omega", "1,234", "50", "%", "true"],
            ["two", "sparrow", "2", "0", "%", "false"],
        ]
        assert lines[3:5] == ["", "as in a scenario"]
        assert [line for line in lines[5:] if line] == [
            *("[[fleet]]", 'name = "one"', 'engine = "omega"'),
            *("[[fleet]]", 'name = "two"', 'engine = "sparrow"'),
        ]
        assert json.loads(argosy("fleet", "-o", "json").out)["version"] == 3
        assert client.asked == [("fleet",)] * 3

    def test_machines_are_shown_with_what_is_used_of_each_resource(
        self, argosy: Call, given: Any
    ) -> None:
        gpu = MachineInfo(
            name="a",
            capacity={"cpu": 2_000, "gpu": 4},
            used={"cpu": 500},
            running=3,
            draining=True,
            attributes={"disk": "ssd", "zone": "x"},
        )
        plain = MachineInfo(
            name="b", capacity={"cpu": 1_000, "memory": 2**30}, used={"memory": 2**29}, queued=2
        )
        given(machines=[gpu, plain])
        assert argosy("machines", "-o", "csv").out.splitlines() == [
            "name,draining,running,queued,cpu,gpu,memory,cpu_used,gpu_used,memory_used",
            "a,true,3,0,2000,4,0,500,0,0",
            "b,false,0,2,1000,0,1073741824,0,0,536870912",
        ]
        heading, first, second = argosy("machines").out.splitlines()
        assert heading.split() == [
            *("machine", "state", "running", "queued", "cpu", "gpu", "memory", "attributes"),
        ]
        assert first.split()[:4] == ["a", "draining", "3", "0"]
        assert "0.5 cores of 2 cores" in first
        assert "0 gpu of 4 gpu  0 B of 0 B" in first
        assert first.endswith("disk=ssd, zone=x")
        assert second.split()[:4] == ["b", "up", "0", "2"]
        assert "512 MiB of 1 GiB" in second
        assert [each["name"] for each in json.loads(argosy("machines", "-o", "json").out)] == [
            "a",
            "b",
        ]

    def test_what_is_left_is_listed_after_a_machine_was_removed_if_wanted(
        self, argosy: Call, given: Any
    ) -> None:
        left = MachineInfo(name="b", capacity={"cpu": 1}, used={})
        client = given(remove_machine=None, machines=[left])
        removed = argosy("machines", "remove", "a", "-o", "json")
        assert [each["name"] for each in json.loads(removed.out)] == ["b"]
        assert client.asked == [("remove_machine", "a"), ("machines",)]
        assert argosy("machines", "remove", "a").out == ""


class TestPlans:
    RESULT = PlanResult(
        fits=False,
        tasks=(
            PlannedTask(job="a", index=0, state="running", machine="m", sentence="It fits."),
            PlannedTask(job="a", index=1, state="queued", machine="n", sentence="It waits."),
            PlannedTask(job="b", index=0, state="pending", sentence="No room.", remedy="more."),
            PlannedTask(job="b", index=1, state="pending", sentence="No room.", remedy="more."),
        ),
        displaced=(DisplacedTask(task="c/0", machine="m", outcome="preempted"),),
    )

    def test_tasks_without_a_place_are_counted(self, argosy: Call, given: Any) -> None:
        given(plan=self.RESULT)
        told = argosy("plan", "--", "true")
        first, rest = told.out.split("\n", 1)
        assert (told.code, first) == (1, "does not fit: 2 of 4 tasks would wait")
        rows = words(rest)
        assert ["task", "state", "machine", "why"] in rows
        assert ["gives", "way", "on", "to"] in rows
        assert ["c/0", "m", "preempted"] in rows
        assert argosy("plan", "-o", "csv", "--", "true").out.splitlines() == [
            "task,state,machine,why",
            "a/0,running,m,It fits.",
            "a/1,queued,n,It waits.",
            "b/0,pending,,No room. What would help: more.",
            "b/1,pending,,No room. What would help: more.",
        ]
        document = json.loads(argosy("plan", "-o", "json", "--", "true").out)
        assert (document["fits"], len(document["tasks"])) == (False, 4)

    def test_a_plan_that_fits_displaces_nobody(self, argosy: Call, given: Any) -> None:
        given(plan=PlanResult(fits=True, tasks=self.RESULT.tasks[:2], notes=("n", "n")))
        told = argosy("plan", "--", "true")
        assert (told.code, told.err, told.out.splitlines()[0]) == (0, "note: n\n", "fits")
        assert "gives way" not in told.out


class TestQuestions:
    AT = "unix:/somewhere"

    def test_a_story_is_told_with_the_times_of_its_lines(self, argosy: Call, given: Any) -> None:
        lines = (
            StoryLine(at=0, what="submitted", text="as job a", detail={"by": "me"}),
            StoryLine(at=61_500_000, what="placed", text="on m", detail={}),
        )
        client = given(story=StoryDocument(task="a/1", origin=NOON, lines=lines))
        told = argosy("story", "a/1", "--server", "http://h:1")
        assert client.asked == [("story", "a", 1)]
        assert told.err == ""
        shown = told.out.splitlines()
        assert shown[:2] == [f"a/1 at {self.AT}", ""]
        assert [line.split() for line in shown[2:]] == [
            ["at", "what"],
            ["2026-05-01", "14:00:00.000", "submitted", "as", "job", "a"],
            ["2026-05-01", "14:01:01.500", "placed", "on", "m"],
        ]
        assert argosy("story", "a/1", "--dir", "d", "-o", "csv").out.splitlines() == [
            "at,what,text,detail",
            '0,submitted,as job a,"{""by"": ""me""}"',
            "61500000,placed,on m,{}",
        ]
        assert json.loads(argosy("story", "a/1", "--dir", "d", "-o", "json").out) == [
            {"at": 0, "what": "submitted", "text": "as job a", "detail": {"by": "me"}},
            {"at": 61_500_000, "what": "placed", "text": "on m", "detail": {}},
        ]

    def test_an_answer_is_the_server_s(self, argosy: Call, given: Any) -> None:
        answer = WhyAnswer(
            task="a/1", state="pending", sentence="It waits.", ruled_out={"full": 2, "gone": 1}
        )
        client = given(why=WhyDocument(text=("It waits.", "More helps."), answer=answer))
        told = argosy("why", "a/1", "--server", "http://h:1")
        assert told.out == "a/1: pending\n\nIt waits.\nMore helps.\n"
        assert client.asked == [("why", "a", 1)]
        names, row = argosy("why", "a/1", "--dir", "d", "-o", "csv").out.splitlines()
        told = dict(zip(names.split(","), row.split(","), strict=True))
        assert told["ruled_out"] == "full 2; gone 1"
        assert list(told)[-1] == "ruled_out"
