"""An API server in the test's own event loop: objects of any kind in memory, their watches, bindings and
evictions, and answers that a test wants instead."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
from aiohttp import web

from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import FixedCredentials, Login
from argosy.kubernetes.kinds import EVENTS, PODS, ResourceKind
from argosy.testing.api_objects import (
    ApiAnswer,
    ApiChange,
    ApiObjects,
    ObjectDocument,
    path_of_kind,
    refusal,
)

Document = ObjectDocument
#: Seconds. Far more than anything here takes; reached only if something is broken.
PATIENCE = 60.0


class SmallApiServer(ApiObjects):
    """Use it as an async context manager; clients take its `connection`."""

    def __init__(self) -> None:
        super().__init__()
        self._watches: list[tuple[str, asyncio.Queue[bytes]]] = []
        self._is_closing = False
        self._news = asyncio.Event()
        #: Answers instead of what would be done: status and reason, for requests for which the function
        #: says so.
        self.faults: list[Callable[[str, str], tuple[int, str] | None]] = []
        #: The parameters of all watches.
        self.watched: list[dict[str, str]] = []
        self.connection = Connection("", FixedCredentials(Login()))
        self.listeners.append(self._changed)

    async def __aenter__(self) -> Self:
        self._is_closing = False
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=PATIENCE)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.connection = msgspec.structs.replace(self.connection, server=f"http://{host}:{port}")
        return self

    async def __aexit__(self, *error: object) -> None:
        self._is_closing = True
        for _, lines in self._watches:
            lines.put_nowait(b"")
        await self._runner.cleanup()

    # What tests look at.

    @property
    def nodes_of_pods(self) -> dict[str, str]:
        """Where pods are, by name; empty for those that wait."""
        pods = self.documents(PODS)
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in pods}

    @property
    def notes(self) -> list[tuple[str, str, str]]:
        """Events: the name of the pod, the reason and the text."""
        return [
            (each["regarding"]["name"], each["reason"], each["note"])
            for each in self.documents(EVENTS)
        ]

    def say(self, kind: ResourceKind[Any], line: bytes) -> None:
        """To whoever watches this kind; an empty line ends the watch."""
        for path, lines in self._watches:
            if path == kind.path():
                lines.put_nowait(line)

    async def until(self, condition: Callable[[], object]) -> None:
        """Looked at whenever something was written."""
        while not condition():
            self._news.clear()
            await self._news.wait()

    # How it answers.

    def _changed(self, change: ApiChange) -> None:
        self._news.set()
        for watched, lines in self._watches:
            if watched == change.path:
                lines.put_nowait(change.line())

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        for fault in self.faults:
            if (told := fault(request.method, request.path_qs)) is not None:
                return _response(refusal(*told))
        if request.method == "GET" and "watch" in request.query:
            return await self._stream(request)
        given = msgspec.json.decode(body) if body else None
        return _response(self.answer(request.method, request.path, request.query, given))

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        path = path_of_kind(request.path)
        for line in self.opening(path, request.query):
            lines.put_nowait(line)
        watch = (path, lines)
        self._watches.append(watch)
        self.watched.append(dict(request.query))
        if self._is_closing:
            # It was on its way when the others were ended.
            lines.put_nowait(b"")
        while line := await lines.get():
            await response.write(line)
        self._watches.remove(watch)
        return response


def _response(answer: ApiAnswer) -> web.Response:
    return web.json_response(answer.document, status=answer.code)


@contextmanager
def served_elsewhere(api: SmallApiServer) -> Iterator[SmallApiServer]:
    """In a thread, for commands that have a loop of their own. What is to be there is put before."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, object]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE)

    try:
        run(api.__aenter__())
        try:
            yield api
        finally:
            run(api.__aexit__())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


def kubeconfig_of(api: SmallApiServer, directory: Path, namespace: str = "default") -> Path:
    context = {"name": "c", "context": {"cluster": "c", "user": "u", "namespace": namespace}}
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": api.connection.server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [context],
    }
    path = directory / "kubeconfig"
    path.write_bytes(msgspec.json.encode(document))
    return path
