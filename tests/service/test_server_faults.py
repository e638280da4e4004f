"""What a real server does when its disk, its database, the clock or its neighbours fail it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from killable_server import PATIENCE, Answer, KillableServer, job_document, until

from argosy.engines.registry import ENGINES
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.worlds.local import TryState

YEAR = 365 * 24 * 3600 * 1_000_000
#: Does not end by itself during a test.
ENDLESS = ("sleep", "1000")
DISK_BYTES = 4 << 20


@pytest.fixture
def client() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, which is soon full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if not mount("-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=700", "none", str(disk)):
        pytest.skip("only a user who may mount file systems can fill one up")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def disk_server(
    small_disk: Path, make_server: Callable[..., KillableServer]
) -> Iterator[KillableServer]:
    """A server that runs there."""
    server = make_server(small_disk / "cluster", home=small_disk.parent).start()
    yield server
    server.close()


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


def fill(disk: Path) -> Path:
    """A file that takes all the room there is."""
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast


def health(server: KillableServer) -> dict[str, Any]:
    answer: dict[str, Any] = server.ask("GET", "/v1/health").json
    return answer


def await_pause(server: KillableServer, why: str) -> None:
    def is_paused() -> bool:
        told = health(server)
        return told["status"] == "paused" and why in told["detail"]

    until(is_paused, f"the server pauses: {why}")


def await_recovery(server: KillableServer) -> None:
    until(lambda: health(server)["status"] == "ok", "the server goes on")


def later(
    client: ThreadPoolExecutor, server: KillableServer, document: dict[str, object], key: str
) -> Future[Answer]:
    return client.submit(server.ask, "POST", "/v1/jobs", document, {"Idempotency-Key": key})


def tries_of(server: KillableServer, name: str) -> list[dict[str, Any]]:
    tries: list[dict[str, Any]] = server.task(name)["tries"]
    return tries


def test_a_full_disk_is_a_pause_and_loses_nothing(
    disk_server: KillableServer, small_disk: Path, client: ThreadPoolExecutor
) -> None:
    server = disk_server
    running = server.submit("sleep", "1")
    server.wait_running(running)
    ballast = fill(small_disk)
    # Longer than what may be left of pages that were reserved before.
    document = job_document("true", environment={"PADDING": "x" * 100_000})
    answer = later(client, server, document, "a")
    await_pause(server, "the disk is full")
    for path, status in (("/livez", 200), ("/healthz", 200), ("/readyz", 503)):
        assert server.ask("GET", path).status == status
    refused = server.ask("POST", "/v1/jobs", job_document("true"))
    assert refused.status == 503
    assert b"the disk is full" in refused.data
    assert not answer.done(), "what is not on the disk is not acknowledged"
    ballast.unlink()
    await_recovery(server)
    created = answer.result(PATIENCE)
    assert created.status == 201
    for name in (running, created.json["id"]):
        assert server.wait_over(name)["state"] == "finished"
        assert len(tries_of(server, name)) == 1
    assert "paused: " in server.said
    assert "going on" in server.said


def test_a_server_that_is_killed_on_a_full_disk_goes_on_when_there_is_room(
    disk_server: KillableServer, small_disk: Path, client: ThreadPoolExecutor
) -> None:
    server = disk_server
    running = server.submit(*ENDLESS)
    server.wait_running(running)
    ballast = fill(small_disk)
    document = job_document("true", environment={"PADDING": "x" * 100_000})
    answer = later(client, server, document, "a")
    await_pause(server, "the disk is full")
    server.kill()
    assert answer.exception(PATIENCE) is not None
    server.spawn()
    assert server.exit_code() == 2
    *_, line = server.said.splitlines()
    assert line.startswith("argosy: error[store]: ")
    assert "argosy.db: the disk is full; " in line
    assert "Traceback" not in server.said
    ballast.unlink()
    server.start()
    assert server.job(running)["state"] == "running"
    assert len(tries_of(server, running)) == 1
    created = server.ask("POST", "/v1/jobs", document, {"Idempotency-Key": "a"})
    assert created.status == 201
    assert server.wait_over(created.json["id"])["state"] == "finished"


def test_tasks_that_have_no_room_to_start_wait_for_it(
    disk_server: KillableServer, small_disk: Path
) -> None:
    server = disk_server
    tries = small_disk / "cluster" / "tries"
    # The database has room, and the directories of tries have none.
    assert mount("-t", "tmpfs", "-o", "nr_inodes=1,mode=700", "none", str(tries))
    try:
        name = server.submit("true")
        until(lambda: len(tries_of(server, name)) > 1, "the task is tried again")
    finally:
        subprocess.run(["umount", "--lazy", str(tries)], check=True)
    assert server.wait_over(name)["state"] == "finished"
    *lost, last = [each["outcome"] for each in tries_of(server, name)]
    assert (set(lost), last) == ({"lost"}, "exited")


def test_a_directory_that_cannot_be_written_is_a_clear_error(
    disk_server: KillableServer, small_disk: Path
) -> None:
    server = disk_server
    name = server.submit("true")
    server.wait_over(name)
    server.stop()
    assert mount("-o", "remount,ro", str(small_disk))
    server.spawn()
    assert server.exit_code() == 2
    *_, line = server.said.splitlines()
    assert line.startswith("argosy: error[store]: cannot write to ")
    assert "Read-only file system" in line
    assert mount("-o", "remount,rw", str(small_disk))
    server.start()
    assert server.job(name)["state"] == "finished"


def test_a_database_that_another_program_holds_is_a_pause(
    server: KillableServer, client: ThreadPoolExecutor
) -> None:
    running = server.submit("sleep", "0.5")
    server.wait_running(running)
    other = sqlite3.connect(server.directory / "argosy.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    answer = later(client, server, job_document("true"), "a")
    await_pause(server, "locked by another program")
    # Its process ends while nothing can be written.
    [number] = server.try_numbers()
    until((server.try_directory(number) / "end").exists, "the process ends")
    assert server.job(running)["state"] == "running"
    other.execute("ROLLBACK")
    other.close()
    created = answer.result(PATIENCE)
    assert created.status == 201
    for name in (running, created.json["id"]):
        assert server.wait_over(name)["state"] == "finished"
        assert len(tries_of(server, name)) == 1


def test_a_damaged_database_is_a_clear_error_and_a_copy_of_it_goes_on(
    server: KillableServer,
) -> None:
    name = server.submit("true")
    server.wait_over(name)
    server.stop()
    database = server.directory / "argosy.db"
    copy = shutil.copy(database, server.directory.parent / "copy")
    os.truncate(database, database.stat().st_size // 2)
    server.spawn()
    assert server.exit_code() == 2
    *_, line = server.said.splitlines()
    assert line.startswith(f"argosy: error[store]: {database}: the database is damaged; ")
    shutil.copy(copy, database)
    server.start()
    assert server.job(name)["state"] == "finished"


def test_a_log_that_is_cut_short_costs_its_end_and_nothing_before(server: KillableServer) -> None:
    kept = server.submit(*ENDLESS)
    server.wait_running(kept)
    log = server.directory / "argosy.db-wal"
    whole_turns = log.stat().st_size
    forgotten = server.submit(*ENDLESS)
    server.wait_running(forgotten)
    server.kill()
    os.truncate(log, whole_turns + 100)
    first, second = server.running_tries()
    server.start()
    assert server.job(kept)["state"] == "running"
    assert [each["number"] for each in tries_of(server, kept)] == [first]
    assert server.ask("GET", f"/v1/jobs/{forgotten}").status == 404
    until(lambda: server.running_tries() == [first], "nobody asked for the other process any more")
    new = server.submit("true")
    assert server.wait_over(new)["state"] == "finished"
    assert [each["number"] for each in tries_of(server, new)] == [second + 1]


@pytest.mark.parametrize("changed", ["turns SET at = at + ", "meta SET value = value + "])
def test_a_clock_that_was_set_back_does_not_take_time_back(
    server: KillableServer, changed: str
) -> None:
    first = server.submit("true")
    server.wait_over(first)
    running = server.submit(*ENDLESS)
    server.wait_running(running)
    server.kill()
    where = "turn = (SELECT max(turn) FROM turns)" if "turns" in changed else "key = 'origin'"
    with contextlib.closing(sqlite3.connect(server.directory / "argosy.db")) as database, database:
        database.execute(f"UPDATE {changed} {YEAR} WHERE {where}")
    server.start()
    second = server.submit("sleep", "0.1")
    job = server.wait_over(second)
    assert job["state"] == "finished"
    assert server.job(running)["submitted"] < job["submitted"] < job["ended"]
    assert len(tries_of(server, running)) == 1
    times = [at for (at,) in server.rows("SELECT at FROM turns ORDER BY turn")]
    assert times == sorted(times)
    for header, life in server.rows("SELECT header, life FROM lives"):
        lines = server.rows("SELECT lines FROM turns WHERE life = ? ORDER BY turn", life)
        journal = JournalFile(header + b"".join(part for (part,) in lines))
        Replay(journal, ENGINES, finished=False).run()


@pytest.mark.parametrize("fault", ["server alive", "server dead", "record empty"])
def test_a_task_whose_supervisor_is_killed_runs_again(server: KillableServer, fault: str) -> None:
    count = server.directory.parent / "count"
    script = 'echo >>"$COUNT"; test "$(wc -l <"$COUNT")" != 1 || exec sleep 1000'
    name = server.submit("sh", "-c", script, environment={"COUNT": str(count)})
    server.wait_running(name)
    until(lambda: count.exists() and count.read_bytes(), "the command runs")
    if fault != "server alive":
        server.kill()
    [supervised] = server.supervised()
    identity = supervised.identity()
    assert identity is not None
    os.kill(identity.pid, signal.SIGKILL)
    until(lambda: supervised.status().state is TryState.LOST, "the supervisor is dead")
    if fault == "record empty":
        # As a power cut may leave a file that is not synced.
        os.truncate(server.try_directory(1) / "started", 0)
    if fault != "server alive":
        server.start()
    assert server.wait_over(name)["state"] == "finished"
    assert [each["outcome"] for each in tries_of(server, name)] == ["lost", "exited"]
    assert count.read_bytes() == b"\n\n"


def test_a_second_server_on_the_same_directory_is_refused(
    server: KillableServer, make_server: Callable[..., KillableServer]
) -> None:
    name = server.submit(*ENDLESS)
    second = make_server(server.directory, home=server.directory)
    second.spawn()
    assert second.exit_code() == 2
    assert f"{server.directory} is in use by process {server.pid}; " in second.said
    assert "Traceback" not in second.said
    assert server.job(name)["state"] == "running"
    assert server.submit("true")


def test_a_first_start_that_is_killed_at_any_moment_does_not_matter(
    make_server: Callable[..., KillableServer],
) -> None:
    server = make_server()
    seen: set[str] = set()

    def has_come_further() -> bool:
        names = {path.name for path in server.directory.glob("*")}
        return not names <= seen

    while not server.directory.joinpath("argosy.sock").exists():
        server.spawn()
        until(has_come_further, "there is another file")
        server.kill()
        seen |= {path.name for path in server.directory.glob("*")}
    server.start()
    name = server.submit("true")
    assert server.wait_over(name)["state"] == "finished"
