"""How simulated machines queue tasks: part of a scenario, and of published configurations of engines."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from argosy.model.units import Time

Probability: TypeAlias = Annotated[
    float, msgspec.Meta(ge=0, le=1, description="a probability from 0 to 1")
]


class Steal(msgspec.Struct, frozen=True, kw_only=True):
    """A machine without work asks `attempts` others for some and takes at most `most` entries of one."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    most: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    #: Nothing is asked of machines in the first such share of the cell.
    after: Probability = 0.0


class MachineModel(msgspec.Struct, frozen=True, kw_only=True):
    """How simulated machines treat queued tasks."""

    queue: Literal["fcfs", "shortest-first", "shortest-remaining"] = "fcfs"
    #: By how many times its own estimate a queued task may be overtaken; 0 means without end.
    slack: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    #: Tasks that wait at one machine at most; what comes to a full queue goes back. 0 means no limit.
    limit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    #: From a slot's being free to the queued task's running in it.
    start_delay: Time = 0
    #: Tasks with an estimate above this are long, and stand apart; 0 means that none is.
    long_above: Time = 0
    #: How often each machine reports its queue to schedulers that go by the latest report (`yaq-d`); 0
    #: means at every change.
    heartbeat: Time = 8_000_000
    #: Whether such a report counts what is on its way to the machine as well.
    heartbeat_counts_sent: bool = False
    steal: Steal | None = None
