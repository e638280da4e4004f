"""A real server with an API, in this process, for tests that ask it things over its Unix socket.

The server lives on an event loop that runs only while a test waits for something, so nothing happens
behind a test's back except to processes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import aiohttp
from supervised import processes_with
from yarl import URL

from argosy.api.sockets import SOCKET
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry
from argosy.service.server import Server, ServerOptions
from argosy.worlds.local.turn import LocalCluster

T = TypeVar("T")

#: Seconds. Far more than anything here takes; reached only if something is broken.
PATIENCE = 30.0
#: Fits four times on a machine.
SMALL = {"cpu": "250m", "memory": "64MiB"}
MACHINES = tuple(Machine(f"m{n}", Resources(1000, 2**30)) for n in range(4))
PROBLEM = "application/problem+json"


def cluster(*engines: str, machines: tuple[Machine, ...] = MACHINES) -> LocalCluster:
    chosen = engines or ("omega",)
    return LocalCluster(
        cell=CellSpec(machines=machines),
        fleet=tuple(FleetEntry(name=engine, engine=engine) for engine in chosen),
    )


def job(command: str | list[str] = "true", **keys: Any) -> dict[str, Any]:
    return {"command": command, "request": SMALL, "grace": "100ms", **keys}


def shell(script: str, **keys: Any) -> dict[str, Any]:
    return job(["sh", "-c", script], **keys)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def etag(self) -> str:
        return self.headers["ETag"]

    def problem(self, status: int, code: str) -> dict[str, Any]:
        """The problem document, having checked what all of them have in common."""
        assert self.headers["Content-Type"].partition(";")[0] == PROBLEM, self
        document: dict[str, Any] = self.document
        assert (self.status, document["status"], document["code"]) == (status, status, code), self
        assert document["type"] == f"urn:argosy:problem:{code}"
        for part in ("field", "expected", "hint"):
            assert document.get(part, "") in document["detail"]
        return document


class LiveBench:
    """Starts a server at once, and others on the same directory when told."""

    def __init__(
        self, directory: Path, made_of: LocalCluster | None = None, **options: Any
    ) -> None:
        self.directory = directory
        self.log: list[str] = []
        self._made_of = made_of or cluster()
        self._options: dict[str, Any] = {"host": None, **options}
        self._runner = asyncio.Runner()
        try:
            self.start()
        except BaseException:
            self._runner.close()
            raise

    def start(self, **options: Any) -> None:
        self._options |= options
        self.run(self._start())

    async def _start(self) -> None:
        self.server = Server(
            ServerOptions(directory=self.directory, cluster=self._made_of, **self._options),
            self.log.append,
        )
        ready = asyncio.Event()
        self._serving = asyncio.create_task(self.server.run(ready.set))
        waits = asyncio.create_task(ready.wait())
        await asyncio.wait({waits, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            waits.cancel()
            self._serving.result()
        self.client = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(self.directory / SOCKET), limit=0),
            base_url="http://argosy",
        )

    def server_connections(self) -> list[Any]:
        """The server's ends of its connections."""
        return list(self.server.answering.connections)

    def stop(self, *, stop_tasks: bool = False) -> None:
        """Tasks go on, unless told otherwise."""

        async def stop() -> None:
            await self.client.close()
            if stop_tasks:
                self.server._stops_tasks = True
            self.server.stop()
            await self._serving

        self.run(stop())

    def close(self) -> None:
        """Stops the server with its tasks, and looks that nothing is left."""
        try:
            if not self._serving.done():
                self.stop(stop_tasks=True)
        finally:
            self._runner.close()
        assert processes_with(f"{self.directory}/reports.sock") == []

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE):
                return await task

        return self._runner.run(bounded())

    def run_later(self, task: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Goes on whenever something is waited for."""
        return self._runner.get_loop().create_task(task)

    def await_stop(self) -> None:
        """Waits until the server has stopped by itself."""

        async def wait() -> None:
            await self._serving
            await self.client.close()

        self.run(wait())

    async def ask(self, method: str, path: str | URL, **options: Any) -> Answer:
        async with self.client.request(method, path, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    def get(self, path: str | URL, **options: Any) -> Answer:
        return self.run(self.ask("GET", path, **options))

    def post(self, path: str, document: Any = None, **options: Any) -> Answer:
        return self.run(self.ask("POST", path, json=document, **options))

    def patch(self, path: str, document: Any, **options: Any) -> Answer:
        return self.run(self.ask("PATCH", path, json=document, **options))

    def put(self, path: str, document: Any, **options: Any) -> Answer:
        return self.run(self.ask("PUT", path, json=document, **options))

    def delete(self, path: str, **options: Any) -> Answer:
        return self.run(self.ask("DELETE", path, **options))

    def submit(self, document: dict[str, Any], **options: Any) -> str:
        """The new job's id."""
        answer = self.post("/v1/jobs", document, **options)
        assert answer.status == 201, answer
        return str(answer.document["id"])

    def read(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status == 200, answer
        return answer.document

    def until(self, path: str, is_so: Callable[[Any], bool]) -> Any:
        """The document at a path as soon as it is as wanted; looks whenever something has changed."""

        async def wait() -> Any:
            while True:
                now = self.server.events.now
                answer = await self.ask("GET", path)
                if answer.status == 200 and is_so(answer.document):
                    return answer.document
                await self.server.events.wait(now)

        return self.run(wait())

    def over(self, name: str) -> Any:
        """The job, when it is over."""
        return self.until(f"/v1/jobs/{name}", lambda found: found["ended"] is not None)

    def running(self, name: str, tasks: int = 1) -> Any:
        return self.until(f"/v1/jobs/{name}", lambda found: found["tasks"]["running"] == tasks)

    def wrote(self, name: str, text: str, index: int = 0) -> None:
        """Waits until a task has written a text."""

        async def follow() -> None:
            seen = b""
            path = f"/v1/jobs/{name}/tasks/{index}/logs?follow=true"
            async with self.client.get(path) as response:
                async for chunk in response.content.iter_any():
                    seen += chunk
                    if text.encode() in seen:
                        return
            raise AssertionError(f"{name} wrote {seen!r}")

        self.run(follow())

    async def gather(self, *asked: Awaitable[Answer]) -> list[Answer]:
        return await asyncio.gather(*asked)

    def cancel(self, name: str) -> None:
        with suppress(KeyError):
            self.post(f"/v1/jobs/{name}/cancel")
        self.over(name)
