"""Random requests made from the server's own OpenAPI description, against a server of their own.

Jobs execute nothing but `true`: other commands are replaced before they are sent, and the PATH of the
server holds no other program. Counts and retries are kept small for the sake of the computer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from supervised import processes_with

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
#: Never asked for: the run would be over.
LEFT_OUT = "/v1/shutdown"
#: Answers that end only when the client leaves.
ENDLESS = "/v1/events"
MOST_TASKS = 20
MOST_RETRIES = 2
PATIENCE = 30.0
#: Seconds within which jobs that were cancelled are over.
LONGEST_END = 120.0


class FuzzedServer:
    """`argosy up` as a process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "cluster"
        programs = directory / "programs"
        programs.mkdir(parents=True)
        true = shutil.which("true")
        assert true is not None
        (programs / "true").symlink_to(true)
        self._log = (directory / "log").open("w+")
        arguments = ["up", "--dir", str(self.directory), "--machines", "4", "--listen"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "argosy.cli", *arguments, "127.0.0.1:0"],
            stderr=self._log,
            cwd=directory,
            env={"PATH": str(programs), "LANG": "C.UTF-8"},
        )
        self.url = self._await_url()

    def _await_url(self) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"http://127\.0\.0\.1:\d+", self.log())
            if found:
                return found[0]
            time.sleep(0.02)
        raise AssertionError(self.log())

    def log(self) -> str:
        return Path(self._log.name).read_text()

    def resident(self) -> int:
        """Bytes of memory."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", text)
        assert match is not None
        return 1024 * int(match[1])

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        return requests.request(method, self.url + path, timeout=PATIENCE, **options)

    def clean_up(self) -> None:
        """Cancels all jobs, and waits until they are over."""
        deadline = time.monotonic() + LONGEST_END
        while jobs := self.ask("GET", "/v1/jobs?open=true&limit=1000").json()["items"]:
            assert time.monotonic() < deadline, f"these jobs do not end: {jobs}"
            for each in jobs:
                name = requests.utils.quote(each["id"], safe="")
                self.ask("POST", f"/v1/jobs/{name}/cancel")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        self._log.close()


@contextmanager
def fuzzed_server(directory: Path) -> Iterator[FuzzedServer]:
    server = FuzzedServer(directory)
    try:
        yield server
    finally:
        server.close()


#: What a path makes: the parameter that names it, and the key of its name in the answer.
MADE = {
    "/v1/jobs": ("job", "id"),
    "/v1/machines": ("machine", "name"),
    "/v1/commits": ("key", "key"),
    "/v1/reservations": ("reservation", "id"),
}


class Fuzzer:
    """Counts answers by route and status. Whatever breaks the description raises."""

    def __init__(self, server: FuzzedServer, number: int) -> None:
        self._server = server
        self._random = Random(number)
        self._number = number
        self._session = requests.Session()
        self._schema = schemathesis.openapi.from_url(f"{server.url}/v1/openapi.json")
        self._names = {
            "job": ["a"],
            "machine": ["spare"],
            "index": [0],
            "key": ["a"],
            "reservation": ["r1"],
        }
        self.answers: Counter[tuple[str, int]] = Counter()

    def run(self, requests_in_all: int) -> None:
        """At least so many: some routes leave little to vary, so there are several rounds."""
        operations = [
            result.ok()
            for result in self._schema.get_all_operations()
            if result.ok().path != LEFT_OUT
        ]
        each = max(1, min(25, requests_in_all // (2 * len(operations))))
        while self.answers.total() < requests_in_all:
            self._number += 1
            for operation in operations:
                self._begin()
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    self._fuzz(operation, mode, each)
                self._server.clean_up()

    def _begin(self) -> None:
        """Something that can be asked for and changed: a machine and a service."""
        spare = {"name": "spare", "capacity": {"cpu": "1", "memory": "1GiB"}}
        self._server.ask("POST", "/v1/machines", json=spare)
        service = {"command": "true", "endless": True, "count": 3}
        service["request"] = {"cpu": "100m", "memory": "64MiB"}
        answer = self._server.ask("POST", "/v1/jobs", json=service)
        assert answer.status_code == 201, answer.text + self._server.log()
        self._names["job"].append(answer.json()["id"])

    def _fuzz(self, operation: Any, mode: GenerationMode, count: int) -> None:
        @seed(self._number)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Case) -> None:
            self._ask(case)

        # Where nothing can be wrong, there is nothing to make.
        with suppress(Unsatisfiable):
            ask()

    def _ask(self, case: Case) -> None:
        self._aim(case)
        case.body = harmless(case.body)
        if case.operation.path in ("/v1/jobs", "/v1/plan") and self._random.random() < 0.6:
            case.body = acceptable(case.body)
        route = f"{case.method} {case.operation.path}"
        if case.operation.path == ENDLESS:
            status = self._watch(case)
        else:
            response = case.call(session=self._session, timeout=PATIENCE)
            case.validate_response(response, checks=CHECKS)
            status = response.status_code
            if status == 201:
                kind, key = MADE[case.operation.path]
                self._names[kind].append(response.json()[key])
        self.answers[route, status] += 1
        assert status != 503, f"{route}: {self._server.log()[-2000:]}"

    def _aim(self, case: Case) -> None:
        """Every other request is about something that there is, or was."""
        for name in case.path_parameters or {}:
            if self._random.random() < 0.5:
                case.path_parameters[name] = self._random.choice(self._names[name][-20:])

    def _watch(self, case: Case) -> int:
        """The head of an answer and its first bytes."""
        options = case.as_transport_kwargs(base_url=self._server.url)
        with self._session.request(**options, stream=True, timeout=PATIENCE) as response:
            assert response.status_code in (200, 400, 403), response.text
            if response.status_code == 200:
                assert response.raw.read(13) == b": argosy\nid: "
            return response.status_code


def harmless(value: Any) -> Any:
    """The same document, whose jobs execute `true` a few times at most."""
    match value:
        case dict():
            changed = {key: harmless(each) for key, each in value.items()}
            command = changed.get("command")
            if isinstance(command, str) and command:
                changed["command"] = "true"
            elif isinstance(command, list | tuple) and command:
                changed["command"] = ["true", *command[1:]]
            for key, most in (
                ("count", MOST_TASKS),
                ("tasks", MOST_TASKS),
                ("retries", MOST_RETRIES),
            ):
                # What is refused anyway stays as it is.
                if type(changed.get(key)) is int and most < changed[key] <= 2**24:
                    changed[key] = most
            return changed
        case list():
            return [harmless(each) for each in value]
    return value


def acceptable(value: Any) -> Any:
    """The same document, less what this cluster does not have: resources, attributes and groups."""
    match value:
        case {"jobs": list(jobs)}:
            return {**value, "jobs": [acceptable(each) for each in jobs]}
        case {"groups": list(groups)}:
            kept = {"id": value["id"]} if "id" in value else {}
            return {**kept, "groups": [acceptable(each) for each in groups]}
        case dict():
            kept = {
                key: each
                for key, each in value.items()
                if key
                in ("id", "count", "environment", "stdin", "name", "owner", "retries", "endless")
            }
            return {**kept, "command": "true", "request": {"cpu": "100m", "memory": "64MiB"}}
    return value


def leftovers(server: FuzzedServer) -> list[int]:
    """Processes of tries that are still there, after all jobs are over."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = processes_with(f"{server.directory}/reports.sock")
        if not found:
            return []
        time.sleep(0.05)
    return found
