"""A client's way to a server in memory that answers whatever it likes; requests are written down."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec

from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import FixedCredentials, Login
from argosy.kubernetes.failures import KubernetesUnreachable, failure
from argosy.kubernetes.requests import (
    KubernetesCall,
    RequestAttempt,
    RequestSender,
    RequestSettings,
    status_in,
)
from argosy.testing.api_objects import ApiObjects, refusal

CONNECTION = Connection("http://played", FixedCredentials(Login()), namespace="usual")
REFUSALS = (
    (400, "BadRequest"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "NotFound"),
    (405, "MethodNotAllowed"),
    (409, "Conflict"),
    (409, "AlreadyExists"),
    (410, "Expired"),
    (418, "Teapot"),
    (422, "Invalid"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
)
_TIMES = re.compile(r"20\d\d-\d\d-\d\dT[0-9:.]+(Z|\+00:00)")
_EVENT_NAME = re.compile(r'("name":"[^"]*)\.[0-9a-f]{12,}"')


def plain(value: Any) -> str:
    text = msgspec.json.encode(value, order="sorted", enc_hook=str).decode()
    return _EVENT_NAME.sub(r'\1.N"', _TIMES.sub("T", text))


class Answers:
    """The content of a watch."""

    def __init__(self, chunks: list[bytes | float | Exception]) -> None:
        self._chunks = chunks

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            match chunk:
                case bytes():
                    yield chunk
                case Exception():
                    raise chunk
                case _:
                    await asyncio.sleep(chunk)


class DrawnSender(RequestSender):
    """Requests reach objects in memory, if they are answered as they should be."""

    def __init__(self, seed: object, tell: Callable[[str], None], trouble: float) -> None:
        super().__init__(
            CONNECTION,
            RequestSettings(concurrent=3, timeout=5.0, patience=8.0, longest_delay=4.0),
            observer=self,
            random=Random(f"sender {seed}"),
        )
        self.dice = Random(f"answers {seed}")
        self.api = ApiObjects()
        self.tell = tell
        self.trouble = trouble
        self.watched: Callable[[KubernetesCall], list[bytes | float | Exception]] = lambda call: []

    def answered(self, verb: str, resource: str, code: int, seconds: float) -> None:
        self.tell(f"answered {verb} {resource} {code}")

    def repeated(self, verb: str, resource: str, delay: float) -> None:
        self.tell(f"repeats {verb} {resource} after {delay:.6f} width {self.limiter.width}")

    def watch_restarted(self, resource: str, cause: str) -> None:
        self.tell(f"watch of {resource} again: {cause}")

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """There is nothing to close."""

    def _drawn(self, call: KubernetesCall) -> RequestAttempt | None:
        """An answer other than it should be."""
        dice = self.dice
        if dice.random() >= self.trouble:
            return None
        if dice.random() < 0.2:
            happened = dice.random() < 0.5
            raise KubernetesUnreachable(str(call), "it broke", may_have_happened=happened)
        if dice.random() < 0.1:
            return RequestAttempt(200, dice.choice((b"", b"{", b"[]", b'{"metadata": 3}')), None)
        code, reason = dice.choice(REFUSALS)
        cause = "DisruptionBudget" if dice.random() < 0.1 else ""
        body = msgspec.json.encode(refusal(code, reason, cause=cause).document)
        if dice.random() < 0.1:
            body = dice.choice((b"", b"no JSON", b'{"kind": "Other"}'))
        wait = dice.choice((None, 1.0, 3.0)) if code in (429, 500, 503) else None
        return RequestAttempt(code, body, wait)

    async def exchange(self, call: KubernetesCall) -> RequestAttempt:
        given = None if call.body is None else msgspec.json.decode(call.body)
        self.tell(f"{call} {call.verb} {plain(dict(call.parameters))} {plain(given)}")
        await asyncio.sleep(self.dice.choice((0.0, 0.01, 0.4)))
        drawn = self._drawn(call)
        if drawn is not None:
            self.tell(f"-> {drawn.code} {drawn.body[:60]!r} {drawn.retry_after}")
            return drawn
        answer = self.api.answer(call.method, call.path, {"limit": "500", **call.parameters}, given)
        return RequestAttempt(answer.code, msgspec.json.encode(answer.document), None)

    @asynccontextmanager
    async def stream(self, call: KubernetesCall) -> AsyncIterator[Any]:
        self.tell(f"{call} {plain(dict(call.parameters))}")
        drawn = self._drawn(call)
        if drawn is not None and drawn.code >= 300:
            raise failure(str(call), drawn.code, status_in(drawn.body))
        yield Answers(self.watched(call))


class Told:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: object) -> None:
        now = asyncio.get_running_loop().time()
        self.lines.append(f"{now:.6f} {_TIMES.sub('T', str(line))}")
