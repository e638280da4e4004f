"""Every call of the API: how its request is made, and how its response is read. Nothing is sent here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from argosy.api.values import (
    CancelRequest,
    CancelResult,
    ClusterSummary,
    FleetDocument,
    FleetInfo,
    Health,
    JobDetails,
    JobPage,
    MachineInfo,
    MachinePage,
    MachinePatch,
    PlanRequest,
    PlanResult,
    ProblemDocument,
    ScaleRequest,
    StopRequest,
    StoryDocument,
    TaskDetails,
    TaskPage,
    WhyDocument,
)
from argosy.model.errors import CommitRefused, ServerError, excerpt

Answer_co = TypeVar("Answer_co", covariant=True)
Document = TypeVar("Document")

_ENCODE: Final = msgspec.json.Encoder().encode


class ServerReply(msgspec.Struct, frozen=True):
    status: int
    #: Names are in lower case.
    headers: dict[str, str]
    body: bytes = b""


class ApiCall(msgspec.Struct, Generic[Answer_co], frozen=True, kw_only=True):
    """A request, and what to make of the response."""

    method: str
    #: Path and query.
    target: str
    read: Callable[[ServerReply], Answer_co]
    body: bytes | None = None
    headers: dict[str, str] = {}
    #: Whether asking twice is as good as asking once.
    is_repeatable: bool = True
    #: A status that is an answer, although it usually means an error.
    also: int = 0

    def is_refused(self, reply: ServerReply) -> bool:
        return reply.status >= 400 and reply.status != self.also

    def answer(self, reply: ServerReply) -> Answer_co:
        """What the response means; raises `ServerError`."""
        if self.is_refused(reply):
            raise problem(reply)
        return self.read(reply)


def problem(reply: ServerReply) -> ServerError:
    """The error that a response reports."""
    try:
        told = msgspec.json.decode(reply.body, type=ProblemDocument)
    except msgspec.MsgspecError:
        # Something between here and the server answered, or it is no Argosy server.
        text = reply.body[:200].decode("utf-8", "replace").strip()
        return ServerError(
            f"the server answered with status {reply.status}"
            + (f": {excerpt(text)}" if text else ""),
            status=reply.status,
        )
    text = told.detail or told.title
    if (refused := told.refused) is not None:
        return CommitRefused(
            text,
            code=told.code,
            why=refused.why,
            machine=refused.machine,
            resource=refused.resource,
            lacking=refused.lacking,
        )
    return ServerError(
        text,
        status=reply.status,
        code=told.code,
        field=told.field or None,
        expected=told.expected or None,
        hint=told.hint or None,
    )


def document(kind: type[Document]) -> Callable[[ServerReply], Document]:
    def read(reply: ServerReply) -> Document:
        try:
            # A decoder is made when it is needed: a command needs one or two of them.
            return msgspec.json.decode(reply.body, type=kind)
        except msgspec.MsgspecError as error:
            raise ServerError(
                f"the server's answer is not understood: {error}; its version may be another",
                status=reply.status,
            ) from None

    return read


_JOB: Final = document(JobDetails)
_JOBS: Final = document(JobPage)
_TASK: Final = document(TaskDetails)
_TASKS: Final = document(TaskPage)
_MACHINE: Final = document(MachineInfo)
_MACHINES: Final = document(MachinePage)
_FLEET: Final = document(FleetInfo)
_CANCELLED: Final = document(CancelResult)
_PLAN: Final = document(PlanResult)
_WHY: Final = document(WhyDocument)
_STORY: Final = document(StoryDocument)
_HEALTH: Final = document(Health)
_SUMMARY: Final = document(ClusterSummary)


def nothing(reply: ServerReply) -> None:
    return None


def _bytes(reply: ServerReply) -> bytes:
    return reply.body


def _quoted(text: str) -> str:
    if text.isascii() and text.replace("-", "").isalnum():
        return text
    # Commands that need no quoting start sooner without it.
    from urllib.parse import quote

    return quote(text, safe="")


def path_of(*parts: str | int) -> str:
    return "/v1/" + "/".join(_quoted(str(part)) for part in parts)


def get(
    path: str, read: Callable[[ServerReply], Document], query: Mapping[str, object] | None = None
) -> ApiCall[Document]:
    return ApiCall(method="GET", target=path + _query(query or {}), read=read)


def _query(given: Mapping[str, object]) -> str:
    """Absent values are left out; truth is written as JSON has it."""
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }
    pairs = [f"{_quoted(name)}={_quoted(text)}" for name, text in texts.items()]
    return "?" + "&".join(pairs) if pairs else ""


def send(
    method: str,
    path: str,
    read: Callable[[ServerReply], Document],
    body: object,
    *,
    version: int | None = None,
    is_repeatable: bool = True,
    key: str | None = None,
) -> ApiCall[Document]:
    """`version` is the one that the change is meant for."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    if version is not None:
        headers["If-Match"] = f'"{version}"'
    return ApiCall(
        method=method,
        target=path,
        read=read,
        body=_ENCODE(body),
        headers=headers,
        # The first request changes the version, so a second one would be refused.
        is_repeatable=is_repeatable and version is None,
    )


def new_key() -> str:
    """An idempotency key that nobody else has."""
    return os.urandom(16).hex()


def submit(document: Mapping[str, Any], key: str) -> ApiCall[JobDetails]:
    """`key` makes repetitions harmless: the server accepts a job with the same key once."""
    return send("POST", path_of("jobs"), _JOB, document, key=key)


def jobs(
    *,
    state: str | None = None,
    kind: str | None = None,
    owner: str | None = None,
    match: str | None = None,
    is_open: bool | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> ApiCall[JobPage]:
    query = {
        "state": state,
        "kind": kind,
        "owner": owner,
        "match": match,
        "open": is_open,
        "limit": limit,
        "after": after,
    }
    return get(path_of("jobs"), _JOBS, query)


def job(job_id: str) -> ApiCall[JobDetails]:
    return get(path_of("jobs", job_id), _JOB)


def scale(job_id: str, tasks: int, *, version: int | None = None) -> ApiCall[JobDetails]:
    return send("PATCH", path_of("jobs", job_id), _JOB, ScaleRequest(tasks=tasks), version=version)


def cancel(
    job_id: str, tasks: Sequence[int] | None = None, *, version: int | None = None
) -> ApiCall[CancelResult]:
    asked = CancelRequest(tasks=None if tasks is None else tuple(tasks))
    return send("POST", path_of("jobs", job_id, "cancel"), _CANCELLED, asked, version=version)


def tasks(
    job_id: str, *, state: str | None = None, limit: int | None = None, after: str | None = None
) -> ApiCall[TaskPage]:
    query = {"state": state, "limit": limit, "after": after}
    return get(path_of("jobs", job_id, "tasks"), _TASKS, query)


def open_tasks(
    *,
    state: str | None = None,
    machine: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> ApiCall[TaskPage]:
    query = {"state": state, "machine": machine, "limit": limit, "after": after}
    return get(path_of("tasks"), _TASKS, query)


def task(job_id: str, index: int) -> ApiCall[TaskDetails]:
    return get(path_of("jobs", job_id, "tasks", index), _TASK)


def why(job_id: str, index: int) -> ApiCall[WhyDocument]:
    return get(path_of("jobs", job_id, "tasks", index, "why"), _WHY)


def story(job_id: str, index: int) -> ApiCall[StoryDocument]:
    return get(path_of("jobs", job_id, "tasks", index, "story"), _STORY)


def logs(
    job_id: str,
    index: int,
    *,
    stream: str = "stdout",
    try_number: int | None = None,
    offset: int | None = None,
    tail: int | None = None,
    follow: bool = False,
) -> ApiCall[bytes]:
    query = {
        "stream": stream,
        "try": try_number,
        "offset": offset,
        "tail": tail,
        "follow": follow or None,
    }
    return get(path_of("jobs", job_id, "tasks", index, "logs"), _bytes, query)


def machines(*, limit: int | None = None, after: str | None = None) -> ApiCall[MachinePage]:
    return get(path_of("machines"), _MACHINES, {"limit": limit, "after": after})


def machine(name: str) -> ApiCall[MachineInfo]:
    return get(path_of("machines", name), _MACHINE)


def add_machine(document: Mapping[str, Any]) -> ApiCall[MachineInfo]:
    return send("POST", path_of("machines"), _MACHINE, document, is_repeatable=False)


def change_machine(name: str, patch: MachinePatch) -> ApiCall[MachineInfo]:
    return send("PATCH", path_of("machines", name), _MACHINE, patch)


def remove_machine(name: str) -> ApiCall[None]:
    return ApiCall(
        method="DELETE", target=path_of("machines", name), read=nothing, is_repeatable=False
    )


def fleet() -> ApiCall[FleetInfo]:
    return get(path_of("fleet"), _FLEET)


def set_fleet(
    entries: Sequence[Mapping[str, Any]], *, version: int | None = None
) -> ApiCall[FleetInfo]:
    document = FleetDocument(fleet=tuple(map(dict, entries)))
    return send("PUT", path_of("fleet"), _FLEET, document, version=version)


def plan(documents: Sequence[Mapping[str, Any]]) -> ApiCall[PlanResult]:
    return send("POST", path_of("plan"), _PLAN, PlanRequest(jobs=tuple(map(dict, documents))))


def recording() -> ApiCall[bytes]:
    return get(path_of("recording"), _bytes)


def journal(life: int | None = None) -> ApiCall[bytes]:
    return get(path_of("journal"), _bytes, {"life": life})


def events(job_id: str | None, after: str | None, last: str | None = None) -> ApiCall[bytes]:
    """`last` is the id of the last event seen; until there is one, `after` says where to begin."""
    headers = {"Accept": "text/event-stream"}
    if last is not None:
        headers["Last-Event-ID"], after = last, None
    call = get(path_of("events"), _bytes, {"job": job_id, "after": after})
    return msgspec.structs.replace(call, headers=headers)


def summary() -> ApiCall[ClusterSummary]:
    return get(path_of("summary"), _SUMMARY)


def health() -> ApiCall[Health]:
    # A server that is not well says so with a status that otherwise means an error.
    return msgspec.structs.replace(get(path_of("health"), _HEALTH), also=503)


def shutdown(*, stop_tasks: bool = False) -> ApiCall[None]:
    return send("POST", path_of("shutdown"), nothing, StopRequest(stop_tasks=stop_tasks))
