"""An API server in the test's own event loop: objects of any kind in memory, their watches, bindings and
evictions, and answers that a test wants instead."""

from __future__ import annotations

import asyncio
import copy
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
from aiohttp import web

from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import FixedCredentials, Login
from argosy.kubernetes.kinds import EVENTS, PODS, ResourceKind

Document = dict[str, Any]
_PATH = re.compile(
    r"/(?P<api>api/v1|apis/[^/]+/[^/]+)(/namespaces/(?P<space>[^/]+)(?=/))?"
    r"(/(?P<plural>[^/]+)(/(?P<name>[^/]+)(/(?P<part>[^/]+))?)?)?$"
)
_ALL_SENT = {"k8s.io/initial-events-end": "true"}


class SmallApiServer:
    """Use it as an async context manager; clients take its `connection`."""

    def __init__(self) -> None:
        #: By path of the kind, then namespace and name.
        self._stores: dict[str, dict[tuple[str, str], Document]] = {}
        self._watches: list[tuple[str, asyncio.Queue[bytes]]] = []
        self._version = 0
        self._news = asyncio.Event()
        #: Answers instead of what would be done: status and reason, for requests for which the function
        #: says so.
        self.faults: list[Callable[[str, str], tuple[int, str] | None]] = []
        #: Every request that changes something: method, path and body.
        self.written: list[tuple[str, str, Any]] = []
        #: The parameters of those requests.
        self.queries: list[dict[str, str]] = []
        #: The parameters of all watches.
        self.watched: list[dict[str, str]] = []
        #: Names of pods that a disruption budget protects.
        self.protected: set[str] = set()
        self.connection = Connection("", FixedCredentials(Login()))

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.connection = msgspec.structs.replace(self.connection, server=f"http://{host}:{port}")
        return self

    async def __aexit__(self, *error: object) -> None:
        for _, lines in self._watches:
            lines.put_nowait(b"")
        await self._runner.cleanup()

    # What tests do and look at.

    def put(self, kind: ResourceKind[Any], document: Mapping[str, Any]) -> Any:
        """Makes or replaces an object, as anybody else might."""
        new = copy.deepcopy(dict(document))
        metadata = new["metadata"] = dict(new.get("metadata") or {})
        if kind.namespaced:
            metadata.setdefault("namespace", "default")
        key = (metadata.get("namespace", ""), metadata["name"])
        old = self._store(kind.path()).get(key)
        self._version += 1
        if old is None:
            metadata.setdefault("uid", f"{kind.plural}-{self._version}")
            # Kubernetes knows whole seconds only.
            metadata.setdefault("creationTimestamp", f"2026-01-01T00:00:{self._version % 60:02}Z")
        else:
            metadata.setdefault("uid", old["metadata"]["uid"])
            metadata.setdefault("creationTimestamp", old["metadata"].get("creationTimestamp"))
        metadata["resourceVersion"] = str(self._version)
        self._store(kind.path())[key] = new
        self._tell(kind.path(), "ADDED" if old is None else "MODIFIED", new)
        return kind.decode(msgspec.json.encode(new))

    def remove(self, kind: ResourceKind[Any], name: str, namespace: str = "default") -> None:
        self._version += 1
        gone = self._store(kind.path()).pop((namespace if kind.namespaced else "", name))
        gone["metadata"]["resourceVersion"] = str(self._version)
        self._tell(kind.path(), "DELETED", gone)

    def document(
        self, kind: ResourceKind[Any], name: str, namespace: str = "default"
    ) -> Document | None:
        return self._store(kind.path()).get((namespace if kind.namespaced else "", name))

    def documents(self, kind: ResourceKind[Any]) -> list[Document]:
        return list(self._store(kind.path()).values())

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

    def _store(self, path: str) -> dict[tuple[str, str], Document]:
        return self._stores.setdefault(path, {})

    def _tell(self, path: str, type_: str, document: Document) -> None:
        self._news.set()
        line = _line(type_, document)
        for watched, lines in self._watches:
            if watched == path:
                lines.put_nowait(line)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        for fault in self.faults:
            if (told := fault(request.method, request.path_qs)) is not None:
                return _status(*told)
        found = _PATH.fullmatch(request.path)
        if found is None:
            return _status(404, "NotFound")
        root, space = f"/{found['api']}", found["space"] or ""
        plural, name, part = found["plural"], found["name"], found["part"]
        if plural is None:
            return web.json_response({"resources": [{"name": "podgroups"}]})
        path = f"{root}/{plural}"
        if request.method == "GET" and "watch" in request.query:
            return await self._stream(request, path)
        if request.method == "GET" and name is None:
            wanted = request.query.get("labelSelector", "")
            items = [
                each
                for key, each in self._store(path).items()
                if space in ("", key[0]) and wanted in _labels(each)
            ]
            first, most = int(request.query.get("continue", 0)), int(request.query["limit"])
            rest = str(first + most) if len(items) > first + most else ""
            told = {"resourceVersion": str(self._version), "continue": rest}
            return web.json_response({"metadata": told, "items": items[first : first + most]})
        document = self._store(path).get((space, name or ""))
        given = msgspec.json.decode(body) if body else None
        if request.method != "GET":
            self.written.append((request.method, request.path, given))
            self.queries.append(dict(request.query))
        kind = _Kind(path, is_namespaced=bool(space))
        if request.method == "POST" and name is None:
            given["metadata"] = {**given["metadata"], **({"namespace": space} if space else {})}
            if self._store(path).get((space, given["metadata"]["name"])) is not None:
                return _status(409, "AlreadyExists")
            self.put(kind, given)
            return web.json_response(given, status=201)
        if document is None and "force" in request.query:
            self.put(kind, given)
            return web.json_response(given, status=201)
        if document is None:
            return _status(404, "NotFound")
        metadata = document["metadata"]
        wanted = (given or {}).get("metadata") or {}
        for field in ("uid", "resourceVersion"):
            if wanted.get(field, metadata[field]) != metadata[field]:
                return _status(409, "Conflict")
        match request.method, part:
            case "POST", "binding":
                if document["spec"].get("nodeName"):
                    return _status(409, "Conflict")
                changed = copy.deepcopy(document)
                changed["spec"]["nodeName"] = given["target"]["name"]
                notes = changed["metadata"].setdefault("annotations", {})
                notes.update(wanted.get("annotations") or {})
                self.put(kind, changed)
            case "POST", "eviction":
                if name in self.protected:
                    return _status(429, "TooManyRequests", cause="DisruptionBudget")
                self.remove(kind, name, space)
            case "PATCH", _:
                self.put(kind, _merged(document, given))
            case "PUT", _:
                self.put(kind, given)
            case "DELETE", _:
                self.remove(kind, name, space)
        return web.json_response(self._store(path).get((space, name), document))

    async def _stream(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        if "resourceVersion" not in request.query:
            for each in self._store(path).values():
                lines.put_nowait(_line("ADDED", each))
            version = {"resourceVersion": str(self._version), "annotations": _ALL_SENT}
            lines.put_nowait(_line("BOOKMARK", {"metadata": version}))
        watch = (path, lines)
        self._watches.append(watch)
        self.watched.append(dict(request.query))
        while line := await lines.get():
            await response.write(line)
        self._watches.remove(watch)
        return response


class _Kind:
    """A kind of which only the path is known."""

    def __init__(self, path: str, *, is_namespaced: bool) -> None:
        self._path = path
        self.namespaced = is_namespaced
        self.plural = path.rpartition("/")[2]

    def path(self) -> str:
        return self._path

    def decode(self, text: bytes) -> bytes:
        return text


def _labels(document: Document) -> list[str]:
    """With the selector that selects everything."""
    labels = document["metadata"].get("labels") or {}
    return ["", *(f"{key}={value}" for key, value in labels.items())]


def _line(type_: str, document: Document) -> bytes:
    return msgspec.json.encode({"type": type_, "object": document}) + b"\n"


def _status(code: int, reason: str, *, cause: str = "") -> web.Response:
    details = {"causes": [{"reason": cause}]} if cause else {}
    answer = {"kind": "Status", "code": code, "reason": reason, "message": f"{reason} here"}
    return web.json_response({**answer, "details": details}, status=code)


def _merged(old: Any, new: Any) -> Any:
    """A merge patch, in which conditions are merged by their type."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    merged = dict(old)
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        elif key == "conditions":
            types = {each["type"] for each in value}
            merged[key] = [e for e in old.get(key, []) if e["type"] not in types] + value
        else:
            merged[key] = _merged(old.get(key), value)
    return merged


@contextmanager
def served_elsewhere(api: SmallApiServer) -> Iterator[SmallApiServer]:
    """In a thread, for commands that have a loop of their own. What is to be there is put before."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(api.__aenter__(), loop).result()
        yield api
        asyncio.run_coroutine_threadsafe(api.__aexit__(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
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
