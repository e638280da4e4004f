"""The objects of a Kubernetes API server, in memory: what each request answers, and what watches hear.

No sockets and no clock: who serves the answers decides when and whether they arrive.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from argosy.kubernetes.kinds import ResourceKind

ObjectDocument: TypeAlias = dict[str, Any]
_PATH: Final = re.compile(
    r"/(?P<api>api/v1|apis/[^/]+/[^/]+)(/namespaces/(?P<space>[^/]+)(?=/))?"
    r"(/(?P<plural>[^/]+)(/(?P<name>[^/]+)(/(?P<part>[^/]+))?)?)?$"
)
_ALL_SENT: Final = {"k8s.io/initial-events-end": "true"}


class ApiAnswer(msgspec.Struct, frozen=True):
    code: int
    document: Any


class ApiChange(msgspec.Struct, frozen=True):
    """What a watch is told. `path` is that of the kind."""

    version: int
    path: str
    type: str
    document: ObjectDocument

    def line(self) -> bytes:
        return watch_line(self.type, self.document)


class ApiObjects:
    def __init__(self) -> None:
        #: By path of the kind, then namespace and name.
        self._stores: dict[str, dict[tuple[str, str], ObjectDocument]] = {}
        self._version = 0
        #: Changes that watches may still ask for.
        self._changes: list[ApiChange] = []
        #: The last version whose followers are known.
        self._oldest = 0
        #: Told of every change.
        self.listeners: list[Callable[[ApiChange], None]] = []
        #: Every request that changes something: method, path and body.
        self.written: list[tuple[str, str, Any]] = []
        #: The parameters of those requests.
        self.queries: list[dict[str, str]] = []
        #: Names of pods that a disruption budget protects.
        self.protected: set[str] = set()

    # What anybody else does.

    def put(self, kind: ResourceKind[Any], document: Mapping[str, Any]) -> Any:
        """Makes or replaces an object."""
        return kind.decode(msgspec.json.encode(self._put(kind.path(), kind.namespaced, document)))

    def remove(self, kind: ResourceKind[Any], name: str, namespace: str = "default") -> None:
        self._remove(kind.path(), (namespace if kind.namespaced else "", name))

    def document(
        self, kind: ResourceKind[Any], name: str, namespace: str = "default"
    ) -> ObjectDocument | None:
        return self._store(kind.path()).get((namespace if kind.namespaced else "", name))

    def documents(self, kind: ResourceKind[Any]) -> list[ObjectDocument]:
        return list(self._store(kind.path()).values())

    def forget_changes(self) -> None:
        """Watches cannot go on from earlier versions any more."""
        self._changes.clear()
        self._oldest = self._version

    # How it answers.

    def answer(self, method: str, path: str, query: Mapping[str, str], given: Any) -> ApiAnswer:
        """All requests but watches. `given` is the body."""
        found = _PATH.fullmatch(path)
        if found is None:
            return refusal(404, "NotFound")
        kind, space = path_of_kind(path), found["space"] or ""
        name, part = found["name"], found["part"]
        if found["plural"] is None:
            return ApiAnswer(200, {"resources": [{"name": "podgroups"}]})
        if method == "GET" and name is None:
            return self._list(kind, space, query)
        if method != "GET":
            self.written.append((method, path, given))
            self.queries.append(dict(query))
        key = (space, name or "")
        document = self._store(kind).get(key)
        is_namespaced = bool(space)
        if method == "POST" and name is None:
            given = copy.deepcopy(given)
            given["metadata"] |= {"namespace": space} if space else {}
            if (space, given["metadata"]["name"]) in self._store(kind):
                return refusal(409, "AlreadyExists")
            return ApiAnswer(201, self._put(kind, is_namespaced, given))
        if document is None and "force" in query:
            return ApiAnswer(201, self._put(kind, is_namespaced, given))
        if document is None or name is None:
            return refusal(404, "NotFound")
        if method == "GET":
            return ApiAnswer(200, document)
        wanted = (given or {}).get("metadata") or {}
        for field in ("uid", "resourceVersion"):
            if wanted.get(field, document["metadata"][field]) != document["metadata"][field]:
                return refusal(409, "Conflict")
        refused = self._change(method, part, kind, key, document, given)
        return refused or ApiAnswer(200, self._store(kind).get(key, document))

    def _list(self, kind: str, space: str, query: Mapping[str, str]) -> ApiAnswer:
        wanted = query.get("labelSelector", "")
        items = [
            each
            for key, each in self._store(kind).items()
            if space in ("", key[0]) and wanted in _labels(each)
        ]
        first, most = int(query.get("continue", 0)), int(query["limit"])
        rest = str(first + most) if len(items) > first + most else ""
        told = {"resourceVersion": str(self._version), "continue": rest}
        return ApiAnswer(200, {"metadata": told, "items": items[first : first + most]})

    def _change(
        self,
        method: str,
        part: str | None,
        kind: str,
        key: tuple[str, str],
        document: ObjectDocument,
        given: Any,
    ) -> ApiAnswer | None:
        """Changes one object; returns why not, if it does not."""
        is_namespaced = bool(key[0])
        match method, part:
            case "POST", "binding":
                if document["spec"].get("nodeName") or "deletionTimestamp" in document["metadata"]:
                    return refusal(409, "Conflict")
                changed = copy.deepcopy(document)
                changed["spec"]["nodeName"] = given["target"]["name"]
                notes = changed["metadata"].setdefault("annotations", {})
                notes.update(given["metadata"].get("annotations") or {})
                self._put(kind, is_namespaced, changed)
            case "POST", "eviction":
                wanted = (given.get("deleteOptions") or {}).get("preconditions") or {}
                if wanted.get("uid", document["metadata"]["uid"]) != document["metadata"]["uid"]:
                    return refusal(409, "Conflict")
                if key[1] in self.protected:
                    return refusal(429, "TooManyRequests", cause="DisruptionBudget")
                self._remove(kind, key)
            case "PATCH", _:
                self._put(kind, is_namespaced, _merged(document, given))
            case "PUT", _:
                self._put(kind, is_namespaced, given)
            case "DELETE", _:
                self._remove(kind, key)
        return None

    def opening(self, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """The lines with which a watch of a kind begins."""
        if "resourceVersion" not in query:
            for each in self._store(path).values():
                yield watch_line("ADDED", each)
            version = {"resourceVersion": str(self._version), "annotations": _ALL_SENT}
            yield watch_line("BOOKMARK", {"metadata": version})
            return
        since = int(query["resourceVersion"])
        if since < self._oldest:
            yield watch_line("ERROR", refusal(410, "Expired").document)
            return
        for change in self._changes:
            if change.version > since and change.path == path:
                yield change.line()

    def _store(self, path: str) -> dict[tuple[str, str], ObjectDocument]:
        return self._stores.setdefault(path, {})

    def _put(self, path: str, is_namespaced: bool, document: Mapping[str, Any]) -> ObjectDocument:
        new = copy.deepcopy(dict(document))
        metadata = new["metadata"] = dict(new.get("metadata") or {})
        if is_namespaced:
            metadata.setdefault("namespace", "default")
        key = (metadata.get("namespace", ""), metadata["name"])
        old = self._store(path).get(key)
        self._version += 1
        if old is None:
            metadata.setdefault("uid", f"{path.rpartition('/')[2]}-{self._version}")
            # Kubernetes knows whole seconds only.
            metadata.setdefault("creationTimestamp", f"2026-01-01T00:00:{self._version % 60:02}Z")
        else:
            metadata.setdefault("uid", old["metadata"]["uid"])
            metadata.setdefault("creationTimestamp", old["metadata"].get("creationTimestamp"))
        metadata["resourceVersion"] = str(self._version)
        self._store(path)[key] = new
        self._tell(path, "ADDED" if old is None else "MODIFIED", new)
        return new

    def _remove(self, path: str, key: tuple[str, str]) -> None:
        self._version += 1
        gone = copy.deepcopy(self._store(path).pop(key))
        gone["metadata"]["resourceVersion"] = str(self._version)
        self._tell(path, "DELETED", gone)

    def _tell(self, path: str, type_: str, document: ObjectDocument) -> None:
        change = ApiChange(self._version, path, type_, document)
        self._changes.append(change)
        for listener in list(self.listeners):
            listener(change)


def path_of_kind(path: str) -> str:
    """Of all objects of the kind, for a path of those in a namespace."""
    found = _PATH.fullmatch(path)
    return path if found is None else f"/{found['api']}/{found['plural']}"


def watch_line(type_: str, document: ObjectDocument) -> bytes:
    return msgspec.json.encode({"type": type_, "object": document}) + b"\n"


def refusal(code: int, reason: str, *, cause: str = "") -> ApiAnswer:
    details = {"causes": [{"reason": cause}]} if cause else {}
    status = {"kind": "Status", "code": code, "reason": reason, "message": f"{reason} here"}
    return ApiAnswer(code, {**status, "details": details})


def _labels(document: ObjectDocument) -> list[str]:
    """With the selector that selects everything."""
    labels = document["metadata"].get("labels") or {}
    return ["", *(f"{key}={value}" for key, value in labels.items())]


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
