"""Checks that engines cannot learn the real running times of jobs before tasks end.

`watched` looks for the numbers themselves in everything that an engine is given. `observed` records what
it is given, so that runs can be compared that differ only in running times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec
import numpy as np

from argosy.cell import View
from argosy.engines.api import Context, Engine, Settings
from argosy.model.effects import Effect
from argosy.model.events import Event, PhaseFinished
from argosy.model.truth import GroupTruth, SimulatedJob
from argosy.model.wire import encode


def reachable(value: Any) -> Iterator[Any]:
    """The value and everything in it: fields, items, keys and the numbers of arrays."""
    seen: set[int] = set()
    open_values = [value]
    while open_values:
        found = open_values.pop()
        yield found
        if isinstance(found, np.ndarray):
            open_values.extend(found.reshape(-1).tolist())
            continue
        if isinstance(found, str | bytes | int | float) or found is None or id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, msgspec.Struct):
            open_values.extend(getattr(found, name) for name in found.__struct_fields__)
        elif isinstance(found, Mapping):
            open_values.extend((*found.keys(), *found.values()))
        elif isinstance(found, Sequence | Set):
            open_values.extend(found)
        elif not isinstance(found, type):
            open_values.extend(getattr(found, "__dict__", {}).values())
            for kind in type(found).__mro__:
                slots = getattr(kind, "__slots__", ())
                open_values.extend(getattr(found, name, None) for name in slots)


def watched(engine: type[Engine], durations: Set[int], leaks: list[str]) -> type[Engine]:
    """The engine, with a note in `leaks` for each context, event, or application in the view, from which
    a truth or one of `durations` can be reached. The duration of an ended phase was observed and may be
    known."""

    def look(where: str, value: Any) -> None:
        leaks.extend(
            f"{where} leads to {found!r}"
            for found in reachable(value)
            if isinstance(found, SimulatedJob | GroupTruth)
            or (isinstance(found, int) and found in durations)
        )

    class Watched(engine):  # type: ignore[misc, valid-type]
        def __init__(self, settings: Settings, context: Context) -> None:
            look("the context", context)
            super().__init__(settings, context)

        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            told = [view.applications()] if isinstance(event, PhaseFinished) else []
            look(type(event).__name__, told or [event, view.applications()])
            effects: Sequence[Effect] = super().handle(event, view, now)
            return effects

    return Watched


class Observation(NamedTuple):
    """What a scheduler was given at one event; arrays and values as bytes."""

    at: int
    scheduler: str
    event: bytes
    free: bytes
    versions: bytes


def observed(engine: type[Engine], seen: list[Observation]) -> type[Engine]:
    """The engine, with an entry in `seen` for each event."""

    class Observed(engine):  # type: ignore[misc, valid-type]
        def __init__(self, settings: Settings, context: Context) -> None:
            self._observed_name = context.name
            super().__init__(settings, context)

        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            free, versions = view.free().tobytes(), view.versions().tobytes()
            told = encode(event, "msgpack")
            seen.append(Observation(now, self._observed_name, told, free, versions))
            effects: Sequence[Effect] = super().handle(event, view, now)
            return effects

    return Observed
