"""How simulated machines queue tasks: part of a scenario, and of published configurations of engines."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from argosy.model.units import Time

Probability: TypeAlias = Annotated[
    float, msgspec.Meta(ge=0, le=1, description="a probability from 0 to 1")
]


class Steal(msgspec.Struct, frozen=True, kw_only=True):
    """An idle machine asks `attempts` others for work and takes at most `most` entries from one of
    them."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    most: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    #: Machines in the first part of the cell, up to this share, are not asked.
    after: Probability = 0.0


class MachineModel(msgspec.Struct, frozen=True, kw_only=True):
    """How simulated machines treat queued tasks."""

    queue: Literal["fcfs", "shortest-first", "shortest-remaining"] = "fcfs"
    #: How much work may overtake a queued task, in multiples of its estimate; 0: no limit.
    slack: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    #: At most this many tasks wait at one machine; further ones are sent back. 0: no limit.
    limit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    #: From when a slot is free until the queued task runs in it.
    start_delay: Time = 0
    #: Tasks with a larger estimate count as long and are kept apart; 0: none.
    long_above: Time = 0
    #: How often each machine reports its queue to schedulers that use the latest report (`yaq-d`); 0:
    #: at every change.
    heartbeat: Time = 8_000_000
    #: Whether a report includes tasks still on their way to the machine.
    heartbeat_counts_sent: bool = False
    steal: Steal | None = None
