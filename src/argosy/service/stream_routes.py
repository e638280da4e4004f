"""Routes whose answers are streams: events, outputs of tasks, journals and recordings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Final

import msgspec
from aiohttp import web

from argosy.api.values import StreamName
from argosy.service.backend import Backend, index_in
from argosy.service.event_log import EventLog, Position
from argosy.service.problems import NotFound, RequestError
from argosy.service.recording import recorded_lines
from argosy.service.routes import Route, Text, read_query
from argosy.worlds.local.outputs import read_output, segment_starts

#: Seconds between signs of life on a quiet stream of events.
HEARTBEAT: Final = 15.0
#: Seconds after which a followed output is looked at again.
FOLLOW: Final = 0.2
#: Seconds that a client may take to read what is buffered for it.
PATIENCE: Final = 60.0
_CHUNK: Final = 1 << 18
_NDJSON: Final = "application/x-ndjson"
_ENCODE: Final = msgspec.json.Encoder().encode
NotNegative = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    #: Only events of this job and its tasks.
    job: str | None = None
    #: The id of an event, `0` for all there are, or `now`.
    after: str | None = None
    #: Begin with the last so many events, instead of after one.
    last: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | None = None


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    stream: StreamName = "stdout"
    #: A try of the task; absent: the last one.
    try_: Annotated[int, msgspec.Meta(ge=1, le=1 << 60)] | None = msgspec.field(
        default=None, name="try"
    )
    #: The position to begin at.
    offset: NotNegative | None = None
    #: Begin so many bytes before the end.
    tail: NotNegative | None = None
    #: Go on until the try is over.
    follow: bool = False


class JournalQuery(msgspec.Struct, frozen=True, kw_only=True):
    #: Which start of the server, or which fleet; absent: the present one.
    life: Annotated[int, msgspec.Meta(ge=1, le=1 << 60)] | None = None


class StreamRoutes:
    def __init__(self, backend: Backend, events: EventLog, stopping: asyncio.Event) -> None:
        self._backend = backend
        self._events = events
        #: Ends what would go on for ever.
        self._stopping = stopping

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/v1/events",
                self.events,
                "What changes, as it happens, or since an event.",
                EventQuery,
                result=Text("text/event-stream", "Server-sent events; `data` is a ClusterEvent."),
                headers={"Last-Event-ID": "The last event that the client has seen."},
                scope="commit",
            ),
            Route(
                "GET",
                "/v1/jobs/{job}/tasks/{index}/logs",
                self.logs,
                "What a task wrote.",
                LogQuery,
                result=Text("text/plain", "The bytes as they were written."),
                answers_with={
                    "Argosy-Offset": "The position of the first byte.",
                    "Argosy-Try": "The number of the try that wrote it.",
                },
                problems=(404,),
            ),
            Route(
                "GET",
                "/v1/journal",
                self.journal,
                "The journal of one life of the cluster, to be replayed.",
                JournalQuery,
                result=Text(_NDJSON, "One record a line."),
                problems=(404,),
            ),
            Route(
                "GET",
                "/v1/recording",
                self.recording,
                "The cluster, and every job with the times that its tasks ran: a workload.",
                result=Text(_NDJSON, "The cluster, then one job a line."),
            ),
        ]

    async def events(self, request: web.Request) -> web.StreamResponse:
        query = read_query(request, EventQuery)
        if query.after is not None and query.last is not None:
            raise RequestError("both after and last", field="last", expected="one of them")
        # A browser that connects again repeats its first query, and says what it has seen since.
        seen = request.headers.get("Last-Event-ID") or query.after
        if seen or query.last is None:
            position = self._events.position(seen or "now")
        else:
            position = self._events.before_last(query.last)
        response = _stream("text/event-stream", {"Cache-Control": "no-store"})
        await response.prepare(request)
        # An id alone is no event; who connects again before the first event misses nothing.
        await _send(response, b": argosy\nid: %b\n\n" % str(position).encode())
        while not self._stopping.is_set():
            batch = bytearray()
            for place, event in self._events.after(position, query.job):
                position = place
                if event is not None:
                    kind = str(event.__struct_config__.tag).encode()
                    line = b"id: %b\nevent: %b\ndata: %b\n\n"
                    batch += line % (str(place).encode(), kind, _ENCODE(event))
            if batch:
                await _send(response, bytes(batch))
            else:
                # Much may have happened that is not for this watcher.
                await asyncio.sleep(0)
            if position.turn >= self._events.now.turn and not await self._news(position):
                await _send(response, b":\nid: %b\n\n" % str(position).encode())
        return response

    async def _news(self, position: Position) -> bool:
        """Whether something happens before the next sign of life."""
        waits = {
            asyncio.ensure_future(self._events.wait(position)),
            asyncio.ensure_future(self._stopping.wait()),
        }
        try:
            done, _ = await asyncio.wait(
                waits, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for each in waits:
                each.cancel()
        return bool(done)

    async def logs(self, request: web.Request) -> web.StreamResponse:
        query = read_query(request, LogQuery)
        if query.offset is not None and query.tail is not None:
            raise RequestError("both offset and tail", field="tail", expected="one of them")
        name = request.match_info["job"]
        task = self._backend.reading.task(name, index_in(request.match_info["index"], name))
        numbers = [each.number for each in task.tries]
        if query.try_ is not None and query.try_ not in numbers:
            raise NotFound(
                f"task {name}/{task.index} has no try {query.try_}",
                field="try",
                expected="one of " + ", ".join(map(str, numbers)) if numbers else "none",
            )
        if not numbers:
            raise NotFound(
                f"task {name}/{task.index} has not run yet",
                hint=f"`argosy why {name}/{task.index}` says why",
            )
        number = query.try_ or numbers[-1]
        directory = self._backend.runner.directory_of(number)
        start = _first(directory, query)
        response = _stream("text/plain", {"Argosy-Offset": str(start), "Argosy-Try": str(number)})
        response.charset = "utf-8"
        await response.prepare(request)
        while True:
            # Looked at first, so that what is written before the end is not missed.
            is_over = not (query.follow and self._backend.runner.is_running(number))
            part = read_output(directory, query.stream, start, _CHUNK)
            if part.data:
                start = part.end
                await _send(response, part.data)
            elif is_over or self._stopping.is_set():
                return response
            else:
                await asyncio.sleep(FOLLOW)

    async def journal(self, request: web.Request) -> web.StreamResponse:
        query = read_query(request, JournalQuery)
        return await _send_all(request, self._backend.journals.life(query.life))

    async def recording(self, request: web.Request) -> web.StreamResponse:
        return await _send_all(request, recorded_lines(self._backend.store, self._backend.world))


def _first(directory: str, query: LogQuery) -> int:
    """The position of the first byte to send."""
    starts = segment_starts(directory, query.stream)
    least = starts[0] if starts else 0
    if query.tail is not None and starts:
        end = starts[-1] + _size(directory, query.stream, starts[-1])
        return max(least, end - query.tail)
    return max(least, query.offset or 0)


def _size(directory: str, stream: str, start: int) -> int:
    try:
        return os.stat(f"{directory}/{stream}.{start}").st_size
    except FileNotFoundError:
        return 0


def _stream(media_type: str, headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={**headers, "X-Content-Type-Options": "nosniff"})
    response.content_type = media_type
    return response


async def _send(response: web.StreamResponse, data: bytes) -> None:
    """A client that does not read what it asked for is not waited for."""
    async with asyncio.timeout(PATIENCE):
        await response.write(data)


async def _send_all(request: web.Request, pieces: Iterable[bytes]) -> web.StreamResponse:
    iterator = iter(pieces)
    first = next(iterator)
    response = _stream(_NDJSON, {})
    await response.prepare(request)
    await _send(response, first)
    async for piece in _yielding(iterator):
        await _send(response, piece)
    return response


async def _yielding(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Lets others run between two pieces."""
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)
