"""Agents and a scheduler as processes of their own, as users start them, also killed and stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from argosy.client import Client

#: Seconds. Far more than anything here takes.
PATIENCE = 90.0


class ServerProcess:
    """`argosy` with these arguments, until it is ended."""

    def __init__(self, *arguments: str, log: Path, lines: str = "", is_fed: bool = False) -> None:
        self.url = "http://127.0.0.1:1"
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "argosy.cli", *arguments, "-o", "json"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(lines)
        if is_fed:
            self.process.stdin.flush()
        else:
            self.process.stdin.close()
            self.process.stdin = None

    def ready(self) -> ServerProcess:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it did not start"
        self.url = json.loads(line)["url"]
        return self

    @cached_property
    def client(self) -> Client:
        return Client(self.url)

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.terminate()
        self.process.communicate(timeout=PATIENCE)


Start = Callable[..., ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made = []

    def start(*arguments: str, lines: str = "", is_fed: bool = False) -> ServerProcess:
        log = tmp_path / "log"
        made.append(ServerProcess(*arguments, log=log, lines=lines, is_fed=is_fed))
        return made[-1]

    yield start
    for process in made:
        process.end()


def running(client: Client, name: str, tasks: int) -> None:
    """Waits until so many tasks of a job run."""
    for found in client.watch(name, timeout=PATIENCE):
        if found.tasks.running == tasks:
            return
    raise AssertionError(f"{name} does not come to {tasks} running tasks")


def submitted(client: Client, name: str) -> None:
    """Waits until there is a job, and then until it is over."""
    with contextlib.closing(client.events(after="0")) as events:
        next(each for each in events if getattr(each.event, "job", "") == name)
    assert client.wait(name, timeout=PATIENCE).state == "finished"


def committed(agent: ServerProcess) -> int:
    return sum(job.tasks.running for job in agent.client.jobs(is_open=True))


def emptied(agent: ServerProcess) -> None:
    """Waits until all jobs of an agent are over."""
    for each in agent.client.jobs(is_open=True):
        assert agent.client.wait(each.id, timeout=PATIENCE).state == "cancelled"


def job(name: str, **keys: Any) -> dict[str, Any]:
    return {"id": name, "command": "true", "request": {"cpu": "1", "memory": "1GiB"}, **keys}


def test_three_agents_and_a_scheduler_place_jobs_go_on_without_one_and_come_back(
    start: Start, tmp_path: Path
) -> None:
    names = ("one", "two", "three")
    agents = [start("agent", "--name", name, "--machines", "5") for name in names]
    urls = [part for agent in agents for part in ("--agent", agent.ready().url)]
    whole = ("--set", "clusters=1", "--set", "machines=1", "--set", 'backoff="50ms"')
    arguments = ("scheduler", *urls, *whole, "--timeout", "5", "--dir", str(tmp_path / "scheduler"))
    scheduler = start(*arguments).ready()
    client = scheduler.client
    client.submit(job("batch", count=12, estimate="100ms"))
    assert client.wait("batch", timeout=PATIENCE).state == "finished"
    client.submit(job("service", count=9, kind="service"))
    running(client, "service", 9)
    assert sum(map(committed, agents)) == 9

    # An agent is killed: the others go on.
    agents[0].signal(signal.SIGKILL)
    agents[0].process.wait()
    client.submit(job("without", count=3))
    running(client, "without", 3)
    machines = [task.machine for task in client.tasks("without")]
    assert not any(machine.startswith("one/") for machine in machines)

    # The scheduler is killed, and another takes over where it was.
    scheduler.signal(signal.SIGKILL)
    scheduler.process.wait()
    before = committed(agents[1]) + committed(agents[2])
    named = [f"{name}={url}" for name, url in zip(names, urls[1::2], strict=True)]
    again = [part for each in named for part in ("--agent", each)]
    scheduler = start(
        "scheduler", *again, "--timeout", "5", "--dir", str(tmp_path / "scheduler")
    ).ready()
    client = scheduler.client
    running(client, "without", 3)
    client.submit(job("after", count=2))
    running(client, "after", 2)
    assert committed(agents[1]) + committed(agents[2]) >= before
    for name in ("service", "without", "after"):
        client.cancel(name)
    for agent in agents[1:]:
        emptied(agent)


def test_an_agent_that_stands_still_is_not_waited_for(start: Start) -> None:
    agents = [start("agent", "--name", name, "--machines", "2") for name in ("still", "well")]
    urls = [part for agent in agents for part in ("--agent", agent.ready().url)]
    whole = ("--set", "clusters=1", "--set", "machines=1", "--set", 'timeout="200ms"')
    scheduler = start("scheduler", *urls, *whole, "--timeout", "5").ready()
    client = scheduler.client
    agents[0].signal(signal.SIGSTOP)
    client.submit(job("a"))
    running(client, "a", 1)
    assert [task.machine.partition("/")[0] for task in client.tasks("a")] == ["well"]


def test_argosy_up_is_an_agent_too(start: Start, tmp_path: Path) -> None:
    up = start(
        "up", "--dir", str(tmp_path / "up"), "--machines", "2", "--listen", "127.0.0.1:0"
    ).ready()
    scheduler = start("scheduler", "--agent", f"here={up.url}").ready()
    client = scheduler.client
    small = {"cpu": "100m", "memory": "16MiB"}
    client.submit({"id": "hello", "command": "echo hello", "request": small})
    assert client.wait("hello", timeout=PATIENCE).state == "finished"
    client.submit({"id": "fails", "command": "false", "request": small})
    done = client.wait("fails", timeout=PATIENCE)
    assert (done.state, done.exit_code) == ("failed", 1)
    [there] = [each for each in up.client.jobs() if each.name == "hello/0"]
    assert up.client.logs(there.id, 0) == b"hello\n"


def test_a_scheduler_stops_although_its_standard_input_goes_on(start: Start) -> None:
    agent = start("agent", "--machines", "4").ready()
    line = json.dumps(job("one", estimate="10ms")) + "\n"
    fed = start("scheduler", "--agent", agent.url, "--jobs", "-", lines=line, is_fed=True).ready()
    submitted(fed.client, "one")
    fed.process.terminate()
    assert fed.process.wait(timeout=PATIENCE) in (0, 143)


def test_jobs_come_from_a_file_or_from_standard_input(start: Start, tmp_path: Path) -> None:
    agent = start("agent", "--machines", "4").ready()
    lines = [json.dumps(job("one", estimate="10ms")), "not JSON", '{"id": "bad"}', ""]
    lines.append(json.dumps(job("two", estimate="10ms")))
    fed = start("scheduler", "--agent", agent.url, "--jobs", "-", lines="\n".join(lines)).ready()
    for name in ("one", "two"):
        submitted(fed.client, name)
    log = (tmp_path / "log").read_text()
    assert "line 2 of standard input is not JSON" in log
    assert "not submitted: missing key 'request'" in log
    (tmp_path / "jobs.toml").write_text(
        'id = "three"\ncommand = "true"\nestimate = "10ms"\nrequest = { cpu = "1", memory = "1GiB" }\n'
    )
    file = str(tmp_path / "jobs.toml")
    filed = start("scheduler", "--agent", agent.url, "--name", "filed", "--jobs", file).ready()
    submitted(filed.client, "three")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--engine", "omega"), "omega does not work over agents"),
        (("--set", "clusters=2"), "clusters"),
        (("--set", "clusters"), "expected KEY=VALUE"),
        (("--name", "a b"), "--name"),
        (("--agent", "http://127.0.0.1:1"), "cannot ask http://127.0.0.1:1 for its name"),
        (("--agent", "ftp://x"), "the agent's URL"),
    ],
)
def test_a_scheduler_that_cannot_start_says_why(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "argosy.cli",
            "scheduler",
            "--agent",
            "away=http://127.0.0.1:1",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_may_be_that_of_one_cluster_of_a_scenario(start: Start) -> None:
    scenario = str(Path(__file__).parents[2] / "scenarios" / "federation.toml")
    agent = start("agent", scenario, "--cluster", "north").ready()
    machines = list(agent.client.machines())
    assert machines
    assert all(machine.joins["cluster"] == ("north",) for machine in machines)
    assert agent.client.health().cluster == "north"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--cluster", "north"), "--cluster without a scenario"),
        (("--mix", "huge"), "expected cloud, edge, or a size"),
        (("--refresh", "5"), "--refresh '5'"),
        (("-d",), "--detach without --dir"),
        (("--engine", "omgea"), "did you mean 'omega'?"),
    ],
)
def test_an_agent_that_cannot_start_says_why(arguments: tuple[str, ...], problem: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "argosy.cli", "agent", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_tasks_are_placed_by_the_places_and_distances_that_agents_tell_and_the_scheduler_measures(
    start: Start,
) -> None:
    vienna = ("--place", "vienna", "--location", "48.2,16.4")
    sydney = ("--place", "sydney", "--location", "-33.9,151.2", "--delay", "80ms")
    agents = [
        start("agent", "--name", name, "--machines", "4", *where)
        for name, where in (("near", vienna), ("far", sydney))
    ]
    links = [f"--agent={agent.ready().url}" for agent in agents]
    filters = '--set=filters=["ResourcesFit", "GeoLocation", "NetworkLatency"]'
    patience = ("--set=reschedules=1", "--set=backoff=1ms", "--set=clusters=1")
    client = start("scheduler", *links, filters, *patience, "--place", "graz").ready().client
    # Loopback is far quicker, and the round trip over the scheduler to Sydney takes longer.
    bound = {"latency": "75"}
    for name, demands, expected in (
        ("here", {"near": "graz", **bound}, "near"),
        ("there", {"near": "sydney", **bound}, "far"),
        ("beside", {"near_job": "there", **bound}, "far"),
        ("around", {"location": "48.0,16.0", "distance": "50"}, "near"),
    ):
        client.submit(job(name, count=3, demands=demands))
        running(client, name, 3)
        assert {each.machine.partition("/")[0] for each in client.tasks(name)} == {expected}, name
    client.submit(job("nowhere", demands={"near": "mars", **bound}))
    assert client.wait("nowhere", timeout=PATIENCE).state == "abandoned"
    assert "NetworkLatency" in " ".join(client.why("nowhere", 0).text)


def test_mistaken_places_are_one_line(tmp_path: Path) -> None:
    for arguments, told in (
        (("agent", "--location", "91,0"), "--location '91,0'; expected latitude and longitude"),
        (("up", "--place", "a<>b"), "--place 'a<>b'; expected a name"),
        (("scheduler", "--agent=http://x", "--distance", "a=3ms"), "--distance 'a=3ms'; expected"),
        (("scheduler", "--agent=http://x", "--distance", "a<>b=3"), "--distance '3'; expected"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "argosy.cli", *arguments], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert told in done.stderr
