"""What clients do, as generators that do no input or output themselves.

A flow yields steps and is sent their results; `Client` and `AsyncClient` carry the steps out, each in
its own way. So retrying, paging, following and resuming are written, and tested, once.

A server that never answered is reported at once. One that has answered may be starting again, so
what is safe to repeat is repeated for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from argosy.api.values import LARGEST_PAGE, JobDetails, TaskDetails
from argosy.client import calls
from argosy.client.calls import ApiCall, ServerReply
from argosy.client.server_sent import EventParser, StreamedEvent
from argosy.model.errors import ServerUnreachable

Answer = TypeVar("Answer")
Yielded = TypeVar("Yielded")
Yielded_co = TypeVar("Yielded_co", covariant=True)

#: Times between repetitions, in seconds.
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
#: A stream of events with nothing in it for so long is broken: servers send a comment every 15 s.
QUIET: Final = 45.0
_PAUSED: Final = 503
#: A job or task in one of these states is over.
OVER: Final = frozenset({"finished", "failed", "cancelled", "abandoned"})


class SendCall(msgspec.Struct, frozen=True):
    """Send a call; the result is its `ServerReply`."""

    call: ApiCall[Any]


class OpenStream(msgspec.Struct, frozen=True):
    """Send a call, and leave its response open. The result is its `ServerReply`, without a body unless
    it is an error."""

    call: ApiCall[Any]


class ReadStream(msgspec.Struct, frozen=True):
    """Read on in the open response; the result is what has arrived, empty at the end. None if nothing
    arrives in time: then the response cannot be read any further."""

    seconds: float | None = None


class CloseStream(msgspec.Struct, frozen=True):
    """Close the open response."""


class Sleep(msgspec.Struct, frozen=True):
    seconds: float


class Give(msgspec.Struct, Generic[Yielded], frozen=True):
    """Give an item to the caller."""

    item: Yielded


Flow: TypeAlias = Generator[
    SendCall | OpenStream | ReadStream | CloseStream | Sleep | Give[Yielded], Any, None
]
#: Part of a flow that gives nothing to the caller.
Part: TypeAlias = Generator[SendCall | OpenStream | ReadStream | CloseStream | Sleep, Any, Answer]


class Lost(Exception):
    """What a driver throws into a flow if a step fails."""

    def __init__(self, error: ServerUnreachable, *, is_sent: bool) -> None:
        super().__init__(str(error))
        self.error = error
        #: Whether the server may have got the request.
        self.is_sent = is_sent


class Page(Protocol[Yielded_co]):
    @property
    def items(self) -> tuple[Yielded_co, ...]: ...

    @property
    def next(self) -> str | None: ...


class Patience:
    """How long a client goes on asking a server that does not answer."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self.clock = clock
        self.has_answered = False

    def attempts(self) -> Attempts:
        return Attempts(self)


class Attempts:
    """The attempts at one thing."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._pause = _FIRST_PAUSE
        self._deadline: float | None = None

    def pause(self, at_least: float = 0.0) -> float | None:
        """How long to wait before the next attempt; None: no more."""
        now = self._patience.clock()
        if self._deadline is None:
            self._deadline = now + self._patience.seconds
        pause = max(self._pause, at_least)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return pause if now + pause <= self._deadline else None

    def succeeded(self) -> None:
        self._pause = _FIRST_PAUSE
        self._deadline = None
        self._patience.has_answered = True

    def after_loss(self, lost: Lost, is_repeatable: bool) -> float:
        """How long to wait; raises the error if it is final."""
        if not (is_repeatable if lost.is_sent else self._patience.has_answered):
            raise lost.error from None
        pause = self.pause()
        if pause is None:
            raise lost.error from None
        return pause


def _attempt(step: SendCall | OpenStream, patience: Patience) -> Part[ServerReply]:
    """The server's reply. A server that asks to come again later has not acted on the request."""
    attempts = patience.attempts()
    while True:
        try:
            reply: ServerReply = yield step
        except Lost as lost:
            yield Sleep(attempts.after_loss(lost, step.call.is_repeatable))
            continue
        patience.has_answered = True
        if reply.status == _PAUSED and step.call.is_refused(reply):
            pause = attempts.pause(_retry_after(reply))
            if pause is not None:
                yield Sleep(pause)
                continue
        return reply


def _retry_after(reply: ServerReply) -> float:
    text = reply.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdecimal() else 0.0


def ask(call: ApiCall[Answer], patience: Patience) -> Part[Answer]:
    reply = yield from _attempt(SendCall(call), patience)
    return call.answer(reply)


def one(call: ApiCall[Answer], patience: Patience) -> Flow[Answer]:
    yield Give((yield from ask(call, patience)))


class PageCall(Protocol[Yielded_co]):
    def __call__(self, *, after: str | None) -> ApiCall[Page[Yielded_co]]: ...


def page_size(limit: int | None) -> int:
    """How many items to ask for at once if the caller wants so many, or all."""
    return LARGEST_PAGE if limit is None else max(1, min(limit, LARGEST_PAGE))


def all_pages(page: PageCall[Yielded], limit: int | None, patience: Patience) -> Flow[Yielded]:
    """The items of all pages, or the first `limit` of them."""
    after: str | None = None
    given = 0
    while limit is None or given < limit:
        found = yield from ask(page(after=after), patience)
        for item in found.items if limit is None else found.items[: limit - given]:
            yield Give(item)
            given += 1
        after = found.next
        if after is None:
            return


def whole_stream(call: ApiCall[bytes], patience: Patience) -> Flow[bytes]:
    """The body of a response in pieces. It begins at the beginning, so it is not resumed."""
    reply = yield from _attempt(OpenStream(call), patience)
    if call.is_refused(reply):
        raise calls.problem(reply)
    try:
        while piece := (yield ReadStream()):
            yield Give(piece)
    except Lost as lost:
        raise lost.error from None


class EventFeed:
    """The events of a cluster, or of one job, resumed whenever the stream breaks."""

    def __init__(self, patience: Patience, job_id: str | None, after: str | None) -> None:
        self._patience = patience
        self._attempts = patience.attempts()
        self._job_id = job_id
        self._after = after
        self._parser = EventParser()

    def open(self) -> Part[None]:
        call = calls.events(self._job_id, self._after, self._parser.last)
        reply = yield from _attempt(OpenStream(call), self._patience)
        if call.is_refused(reply):
            raise calls.problem(reply)
        self._parser.restart()

    def next(self, seconds: float | None = None) -> Part[list[StreamedEvent] | None]:
        """The next events; none if the stream broke and was opened again, so that some may have been
        missed; None if nothing comes in time."""
        quiet_since = self._patience.clock()
        until = None if seconds is None else quiet_since + seconds
        while True:
            now = self._patience.clock()
            if until is not None and now >= until:
                return None
            rest = max(0.0, quiet_since + QUIET - now)
            try:
                piece = yield ReadStream(rest if until is None else min(rest, until - now))
            except Lost:
                piece = b""
            if piece:
                quiet_since = self._patience.clock()
                self._attempts.succeeded()
                if events := self._parser.feed(piece):
                    return events
            elif piece is not None or self._patience.clock() >= quiet_since + QUIET:
                yield from self._again()
                return []

    def _again(self) -> Part[None]:
        yield CloseStream()
        pause = self._attempts.pause()
        if pause is None:
            raise ServerUnreachable(
                "the server ends the stream of events again and again",
                hint="see its messages, or `argosy up` it again",
            )
        yield Sleep(pause)
        yield from self.open()


def events(job_id: str | None, after: str | None, patience: Patience) -> Flow[StreamedEvent]:
    feed = EventFeed(patience, job_id, after)
    yield from feed.open()
    while True:
        for event in (yield from feed.next()) or ():
            yield Give(event)


def watch(job_id: str, patience: Patience, seconds: float | None = None) -> Flow[JobDetails]:
    """The job now, and again whenever it has changed, until it is over or the time is."""
    until = None if seconds is None else patience.clock() + seconds
    feed = EventFeed(patience, job_id, None)
    # The stream is opened first, so that no change falls between it and the job's state.
    yield from feed.open()
    job = yield from ask(calls.job(job_id), patience)
    yield Give(job)
    while job.state not in OVER:
        rest = None if until is None else until - patience.clock()
        if rest is not None and rest <= 0:
            return
        if (yield from feed.next(rest)) is not None:
            last, job = job, (yield from ask(calls.job(job_id), patience))
            if job != last:
                yield Give(job)


def follow_logs(
    job_id: str,
    index: int,
    stream: str,
    try_number: int,
    tail: int | None,
    patience: Patience,
) -> Flow[bytes]:
    """What a try writes, until it is over."""
    attempts = patience.attempts()
    offset: int | None = None
    while True:
        call = calls.logs(
            job_id,
            index,
            stream=stream,
            try_number=try_number,
            offset=offset,
            tail=tail,
            follow=True,
        )
        reply = yield from _attempt(OpenStream(call), patience)
        if call.is_refused(reply):
            raise calls.problem(reply)
        start = reply.headers.get("argosy-offset", "")
        offset, tail = int(start) if start.isdecimal() else offset or 0, None
        try:
            while piece := (yield ReadStream()):
                attempts.succeeded()
                offset += len(piece)
                yield Give(piece)
        except Lost as lost:
            yield CloseStream()
            yield Sleep(attempts.after_loss(lost, True))
            continue
        yield CloseStream()
        # A server that stops ends its responses, but the try may go on.
        task = yield from ask(calls.task(job_id, index), patience)
        if all(each.ended is not None for each in task.tries if each.number == try_number):
            return
        pause = attempts.pause()
        if pause is None:
            return
        yield Sleep(pause)


def next_try(job_id: str, index: int, last: int, patience: Patience) -> Part[int | None]:
    """The number of the task's first try after `last`, or its latest if `last` is negative; waits until
    there is one. None if there will be none."""
    task = yield from ask(calls.task(job_id, index), patience)
    if _later(task, last) is None and task.state not in OVER:
        feed = EventFeed(patience, job_id, None)
        yield from feed.open()
        task = yield from ask(calls.task(job_id, index), patience)
        while _later(task, last) is None and task.state not in OVER:
            yield from feed.next()
            task = yield from ask(calls.task(job_id, index), patience)
        yield CloseStream()
    return _later(task, last)


def _later(task: TaskDetails, last: int) -> int | None:
    later = [each.number for each in task.tries if each.number > last]
    return (later[-1] if last < 0 else later[0]) if later else None


def follow_task(
    job_id: str, index: int, stream: str, tail: int | None, patience: Patience
) -> Flow[bytes]:
    """What a task writes, try after try, until it is over."""
    last = -1
    while (number := (yield from next_try(job_id, index, last, patience))) is not None:
        yield from follow_logs(job_id, index, stream, number, tail, patience)
        last, tail = number, None
