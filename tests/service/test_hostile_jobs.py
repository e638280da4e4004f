"""Jobs that behave badly, from submission to end. Supervisors have tests of their own; here the server
must stay well, say what happened, and have its machines free again."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from killable_server import KillableServer, until
from supervised import processes_with

MARKER = f"MARKER-{uuid.uuid4().hex}"
LIMIT = 1 << 20
GIGABYTE = 1 << 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillableServer]:
    directory = tmp_path_factory.mktemp("hostile") / "cluster"
    server = KillableServer(directory, "--machines", "4", "--engine", "omega")
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture(autouse=True)
def tidy(server: KillableServer) -> Iterator[None]:
    """Afterwards nothing runs, no machine is in use, and the server is well."""
    yield
    until(lambda: not server.running_tries(), "every supervisor ends")
    assert processes_with(MARKER) == []
    assert [machine["used"] for machine in server.get("/v1/machines")["items"]] == [{}] * 4
    assert server.get("/v1/health")["status"] == "ok"


def run(server: KillableServer, script: str, **keys: object) -> tuple[str, dict[str, Any]]:
    """The id of a job that runs a script, and its only task when it is over."""
    name = submit(server, script, **keys)
    server.wait_over(name)
    return name, server.task(name)


def submit(server: KillableServer, script: str, **keys: object) -> str:
    return server.submit("sh", "-c", script, environment={"MARKER": MARKER}, **keys)


def run_python(server: KillableServer, script: str, **keys: object) -> tuple[str, dict[str, Any]]:
    name = server.submit(sys.executable, "-c", script, environment={"MARKER": MARKER}, **keys)
    server.wait_over(name)
    return name, server.task(name)


def test_what_a_job_has_forked_ends_with_it(server: KillableServer) -> None:
    _, task = run(server, "for number in $(seq 60); do sleep 1000 & done", grace="100ms")
    assert (task["state"], task["exit_status"]) == ("finished", 0)


def test_daemons_end_with_the_job_that_started_them(server: KillableServer) -> None:
    script = (
        "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(999)"
    )
    _, task = run_python(server, script, grace="100ms")
    assert (task["state"], task["exit_status"]) == ("finished", 0)


def test_a_job_that_ignores_the_request_to_stop_is_killed(server: KillableServer) -> None:
    name = submit(server, "trap '' TERM; while :; do sleep 0.1; done", grace="200ms")
    server.wait_running(name)
    answer = server.ask("POST", f"/v1/jobs/{name}/cancel")
    assert (answer.status, answer.json["cancelled"]) == (200, 1)
    assert server.wait_over(name)["state"] == "cancelled"


def test_a_gigabyte_of_output_takes_no_more_room_than_its_limit(server: KillableServer) -> None:
    script = f"head -c {GIGABYTE} /dev/zero; echo; echo done"
    name, task = run(server, script, output_limit=LIMIT)
    assert task["state"] == "finished"
    directory = server.try_directory(task["try_number"])
    assert sum(path.stat().st_size for path in directory.glob("stdout.*")) <= LIMIT
    answer = server.ask("GET", f"/v1/jobs/{name}/tasks/0/logs?tail=6")
    assert (answer.data, int(answer.headers["Argosy-Offset"])) == (b"\ndone\n", GIGABYTE)


def test_a_job_that_takes_more_memory_than_it_asked_for_fails(server: KillableServer) -> None:
    name, task = run_python(server, "hoard = bytearray(1 << 30)")
    assert task["state"] == "failed"
    assert b"MemoryError" in server.output(name, stream="stderr") or task["exit_status"] == -9


def test_hundreds_of_tasks_that_exit_at_once_run_once_each(server: KillableServer) -> None:
    name = server.submit("true", count=300, request={"cpu": "5m", "memory": "4MiB"})
    job = server.wait_over(name)
    assert (job["state"], job["tasks"]["finished"]) == ("finished", 300)
    counts = "SELECT count(*), count(DISTINCT idx) FROM tries JOIN jobs ON seq = job WHERE id = ?"
    assert server.rows(counts, name) == [(300, 300)]


def test_a_job_that_never_ends_is_stopped_when_its_time_is_up(server: KillableServer) -> None:
    _, task = run(server, "while :; do sleep 0.1; done", timeout="300ms", grace="100ms")
    assert task["state"] == "failed"
    assert "after its time was up" in task["reason"]


def test_zombies_are_buried_with_their_parent(server: KillableServer) -> None:
    script = "import os\nfor _ in range(50):\n if os.fork() == 0: os._exit(0)\nprint('left')"
    name, task = run_python(server, script)
    assert task["state"] == "finished"
    assert server.output(name) == b"left\n"
