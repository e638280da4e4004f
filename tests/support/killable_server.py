"""A real `argosy up` in a process of its own, which tests kill and start again. They talk to it over the
socket in its directory, with nothing but the standard library."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from argosy.worlds.local import SupervisedTry, TryState
from argosy.worlds.local.spec import SupervisorError

#: Seconds. Far more than anything here takes; reached only if something is broken.
PATIENCE = 120.0
#: Seconds between two looks.
GLANCE = 0.01
ARGOSY = str(Path(sys.executable).with_name("argosy"))

T = TypeVar("T")


class NoServer(Exception):
    """Nobody answers. `is_cut_off`: the server died after it had been asked."""

    def __init__(self, error: Exception, *, is_cut_off: bool) -> None:
        super().__init__(repr(error))
        self.is_cut_off = is_cut_off


def until(look: Callable[[], T | None], what: str, patience: float = PATIENCE) -> T:
    """What `look` returns as soon as that is true."""
    deadline = time.monotonic() + patience
    while not (seen := look()):
        assert time.monotonic() < deadline, f"waited {patience:.0f} s in vain: {what}"
        time.sleep(GLANCE)
    return seen


class SocketConnection(http.client.HTTPConnection):
    """Reached through the directory's descriptor: the address of a socket has room for 107 bytes."""

    def __init__(self, directory: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._directory = directory

    def connect(self) -> None:
        descriptor = os.open(self._directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connecting.settimeout(self.timeout)
        try:
            connecting.connect(f"/proc/self/fd/{descriptor}/argosy.sock")
        except BaseException:
            connecting.close()
            raise
        finally:
            os.close(descriptor)
        self.sock = connecting


class Answer:
    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.status, self.headers, self.data = status, headers, data

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    def __repr__(self) -> str:
        return f"{self.status} {self.data[:400]!r}"


class KillableServer:
    """A directory, and the server on it, if one runs. What it says to its operator is in `said`."""

    def __init__(
        self, directory: Path, *options: str, wrapper: Sequence[str] = (), home: Path | None = None
    ) -> None:
        self.directory = directory
        self._options = options
        self._wrapper = wrapper
        self._messages = (home or directory.parent) / f"{directory.name}.messages"
        self._process: subprocess.Popen[bytes] | None = None
        self._has_been_ready = False

    # The process.

    def spawn(self) -> None:
        """Starts it, and does not wait. A directory that holds a cluster takes no options."""
        command = [*self._wrapper, ARGOSY, "up", "--dir", str(self.directory), "--listen", "none"]
        if not self._has_been_ready and not holds_cluster(self.directory):
            command += self._options
        with open(self._messages, "ab") as messages:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages
            )

    def start(self) -> KillableServer:
        self.spawn()
        self.wait_until_ready()
        return self

    def wait_until_ready(self) -> None:
        def is_ready() -> bool:
            assert self.is_alive, f"the server ended: {self.said}"
            try:
                return self.ask("GET", "/v1/health", timeout=PATIENCE).status in (200, 503)
            except NoServer:
                return False

        until(is_ready, "the server answers")
        self._has_been_ready = True

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Properly; tasks go on."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None

    def exit_code(self) -> int:
        """Waits until it has ended by itself."""
        assert self._process is not None
        code = self._process.wait(PATIENCE)
        self._process = None
        return code

    def close(self) -> None:
        """Nothing is left, whatever state things are in."""
        self.kill()
        for number in self.try_numbers():
            with contextlib.suppress(SupervisorError):
                SupervisedTry.adopt(self.try_directory(number)).kill()
        until(lambda: not self.running_tries(), "every supervisor ends")

    @property
    def said(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return self._messages.read_text("utf-8", errors="replace")
        return ""

    # Requests.

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = PATIENCE,
    ) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if data is not None else {}
        connection = SocketConnection(self.directory, timeout)
        is_connected = False
        try:
            connection.connect()
            is_connected = True
            connection.request(method, path, data, {**sent, **(headers or {})})
            reply = connection.getresponse()
            return Answer(reply.status, dict(reply.headers), reply.read())
        except (OSError, http.client.HTTPException) as error:
            raise NoServer(error, is_cut_off=is_connected) from error
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, f"GET {path}: {answer}"
        return answer.json

    def submit(self, *command: str, **keys: object) -> str:
        """The id of a job that runs a command."""
        answer = self.ask("POST", "/v1/jobs", job_document(*command, **keys))
        assert answer.status == 201, f"{answer}"
        return str(answer.json["id"])

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/v1/jobs/{name}")
        return found

    def tasks(self, name: str) -> list[dict[str, Any]]:
        return list(self._pages(f"/v1/jobs/{name}/tasks?limit=1000"))

    def task(self, name: str, index: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/v1/jobs/{name}/tasks/{index}")
        return found

    def jobs(self, query: str = "") -> list[dict[str, Any]]:
        return list(self._pages(f"/v1/jobs?limit=1000{query}"))

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        page = self.get(path)
        yield from page["items"]
        while page["next"] is not None:
            page = self.get(f"{path}&after={page['next']}")
            yield from page["items"]

    def wait_over(self, name: str) -> dict[str, Any]:
        """The job, when it is over."""

        def over() -> dict[str, Any] | None:
            job = self.job(name)
            return job if job["ended"] is not None else None

        return until(over, f"{name} comes to its end")

    def wait_running(self, name: str, tasks: int = 1) -> None:
        def is_running() -> bool:
            rows = [row for row in self.tasks(name) if row["state"] == "running"]
            return len(rows) >= tasks and all(self._has_started(row) for row in rows)

        until(is_running, f"{name} runs")

    def _has_started(self, row: Mapping[str, Any]) -> bool:
        return (self.try_directory(row["try_number"]) / "started").exists()

    def output(self, name: str, index: int = 0, stream: str = "stdout") -> bytes:
        answer = self.ask("GET", f"/v1/jobs/{name}/tasks/{index}/logs?stream={stream}")
        assert answer.status == 200, f"{answer}"
        return answer.data

    def events(self) -> list[dict[str, Any]]:
        """All that has happened since the cluster was made."""
        [(last, changes)] = self.rows(
            "SELECT turn, changes FROM turns WHERE changes != X'5B5D' ORDER BY turn DESC LIMIT 1"
        )
        connection = SocketConnection(self.directory, PATIENCE)
        found = []
        try:
            connection.request("GET", "/v1/events?after=0")
            reply = connection.getresponse()
            assert reply.status == 200
            turn, expected = 0, len(json.loads(changes))
            deadline = time.monotonic() + PATIENCE
            while expected:
                # Signs of life come however long there is no event.
                assert time.monotonic() < deadline, f"{expected} events of turn {last} are missing"
                line = reply.readline().decode().rstrip("\n")
                assert line or not reply.isclosed(), "the stream ended"
                if line.startswith("id: "):
                    turn = int(line.removeprefix("id: ").partition(".")[0])
                if line.startswith("data: "):
                    found.append(json.loads(line.removeprefix("data: ")))
                    expected -= turn == last
        finally:
            connection.close()
        return found

    # What is on the disk.

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with contextlib.closing(_database(self.directory)) as database:
            return database.execute(query, values).fetchall()

    def try_directory(self, number: int) -> Path:
        return self.directory / "tries" / f"{number // 1000:03d}" / f"{number:06d}"

    def try_numbers(self) -> list[int]:
        """Tries that have a directory."""
        return sorted(int(path.name) for path in self.directory.glob("tries/*/*"))

    def supervised(self) -> list[SupervisedTry]:
        """Every try, to be looked at only."""
        return [
            SupervisedTry(str(self.try_directory(number)), str(number))
            for number in self.try_numbers()
        ]

    def running_tries(self) -> list[int]:
        """Tries whose supervisors live."""
        return [int(each.name) for each in self.supervised() if _is_running(each)]


def _is_running(each: SupervisedTry) -> bool:
    try:
        return each.status().state in (TryState.STARTING, TryState.RUNNING)
    except SupervisorError:
        # A test has damaged its records.
        return False


def _database(directory: Path) -> sqlite3.Connection:
    """Only reads: the log that a killed server left is for the next one."""
    return sqlite3.connect(f"file:{directory}/argosy.db?mode=ro", uri=True, timeout=PATIENCE)


def holds_cluster(directory: Path) -> bool:
    """Whether a server has made a cluster here, so that the next one goes on with it."""
    try:
        with contextlib.closing(_database(directory)) as database:
            return bool(database.execute("SELECT 1 FROM meta WHERE key = 'cluster'").fetchall())
    except sqlite3.Error:
        return False


def job_document(*command: str, **keys: object) -> dict[str, object]:
    request = {"cpu": "50m", "memory": "64MiB"}
    return {"request": request, "command": list(command), **keys}
