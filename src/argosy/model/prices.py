"""Prices of places, as flow schedulers know them, and what scores count; clients load these without
the native core."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

#: What a score counts: microseconds of expected wait; free shares of resources, in units of
#: `WHOLE_SHARE`; tasks of the same job, in units of `SAME_JOB`, plus other tasks; costs; points.
Measure: TypeAlias = Literal["", "wait", "room", "victims", "tasks", "cost", "points"]


class Price(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a place would have cost a task that has none, in the unit of its scheduler's policy."""

    #: The cost of waiting, and of the cheapest place, including what other tasks would have to do.
    waiting: int
    place: int
    #: The machine of that place (-1: unknown), and the task that holds it (-1: nobody has to leave).
    machine: int
    holder: int = -1
    #: The task that would end up without a machine; others may only move.
    loser: int = -1
    #: How much the cost of waiting, or the precedence, would have to rise for the task to win the
    #: place.
    rise: int = 0
    precedence: int | None = None
