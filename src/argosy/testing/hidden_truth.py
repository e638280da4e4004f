"""Checks that engines cannot reach the real running times of jobs from any event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec
import numpy as np

from argosy.cell import View
from argosy.engines.api import Engine
from argosy.model.effects import Effect
from argosy.model.events import Event, PhaseFinished
from argosy.model.truth import GroupTruth, SimulatedJob


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
    """The engine, with a note in `leaks` for each event, or application in the view, from which a truth
    or one of `durations` can be reached. The duration of an ended phase was observed and may be
    known."""

    class Watched(engine):  # type: ignore[misc, valid-type]
        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            told = [view.applications()] if isinstance(event, PhaseFinished) else []
            leaks.extend(
                f"{type(event).__name__} leads to {value!r}"
                for value in reachable(told or [event, view.applications()])
                if isinstance(value, SimulatedJob | GroupTruth)
                or (isinstance(value, int) and value in durations)
            )
            effects: Sequence[Effect] = super().handle(event, view, now)
            return effects

    return Watched
