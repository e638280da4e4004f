"""Runs an engine as if in another process: events and effects go through the wire format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

from argosy.cell import View
from argosy.engines.api import Engine
from argosy.model.effects import Effect, Question
from argosy.model.events import Decision, Event
from argosy.model.wire import Format, decode_effect, decode_event, encode, same

_FORMATS: Final[tuple[Format, ...]] = ("json", "msgpack")


@cache
def wired(engine: type[Engine]) -> type[Engine]:
    """The same engine, whose events and effects are encoded and decoded on the way. Each must come back
    equal from both formats; otherwise AssertionError says which does not."""

    read_event = partial(decode_event, decision=getattr(engine, "decision_type", Decision))
    read_effect = partial(decode_effect, question=getattr(engine, "question_type", Question))

    def handle(self: Engine, event: Event, view: View, now: int) -> Sequence[Effect]:
        effects = engine.handle(self, _carried(event, read_event), view, now)
        return [_carried(effect, read_effect) for effect in effects]

    return type(engine.__name__, (engine,), {"handle": handle, "__doc__": engine.__doc__})


def _carried(value: Any, decode: Callable[[bytes, Format], Any]) -> Any:
    for format in _FORMATS:
        back = decode(encode(value, format), format)
        assert same(back, value), f"not the same after {format}: {value} came back as {back}"
        value = back
    return value
