"""Flows of clients carried out without any input or output, and what servers answer them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from argosy.api.values import JobDetails, TaskCounts
from argosy.client.calls import ServerReply
from argosy.client.flows import (
    CloseStream,
    Flow,
    Give,
    Lost,
    OpenStream,
    Patience,
    ReadStream,
    SendCall,
    Sleep,
)
from argosy.model.errors import ServerUnreachable

Yielded = TypeVar("Yielded")
GONE = ServerUnreachable("gone")
UNSENT, CUT = Lost(GONE, is_sent=False), Lost(GONE, is_sent=True)
#: Nothing arrives in time.
SILENCE = object()


class Late(NamedTuple):
    """A piece that arrives after some time."""

    seconds: float
    piece: bytes


class FlowScript:
    """Carries a flow out: answers in order, and a clock that only sleeping moves."""

    def __init__(
        self, *answers: object, patience: float = 10.0, has_answered: bool = False
    ) -> None:
        self.answers = list(answers)
        self.steps: list[Any] = []
        self.now = 0.0
        self.patience = Patience(patience, lambda: self.now)
        self.patience.has_answered = has_answered

    def run(self, flow: Flow[Yielded]) -> Iterator[Yielded]:
        answer: Any = None
        while True:
            try:
                step = flow.throw(answer) if isinstance(answer, Lost) else flow.send(answer)
            except StopIteration:
                return
            answer = None
            if isinstance(step, Give):
                yield step.item
                continue
            self.steps.append(step)
            match step:
                case Sleep(seconds=seconds):
                    self.now += seconds
                case CloseStream():
                    pass
                case _:
                    answer = self.answers.pop(0)
            if isinstance(answer, Late):
                self.now += answer.seconds
                answer = answer.piece
            if answer is SILENCE:
                assert isinstance(step, ReadStream)
                assert step.seconds is not None
                self.now += step.seconds
                answer = None

    @property
    def sent(self) -> list[str]:
        return [step.call.target for step in self.steps if isinstance(step, SendCall | OpenStream)]


def reply(document: object = None, status: int = 200, **headers: str) -> ServerReply:
    return ServerReply(
        status, {k.replace("_", "-"): v for k, v in headers.items()}, msgspec.json.encode(document)
    )


def job(state: str = "running", version: int = 1, **fields: Any) -> JobDetails:
    base = {
        "id": "j",
        "kind": "batch",
        "scheduler": "omega",
        "state": state,
        "version": version,
        "tasks": TaskCounts(),
        "submitted": "2026-01-01T00:00:00.000000Z",
        "document": {},
        **fields,
    }
    return JobDetails(**base)
