"""What flow schedulers can be told."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from argosy.engines.api import Settings
from argosy.model.units import Micros
from argosy.solvers.flow import Algorithm

Cost = Annotated[int, Meta(ge=0, le=1_000_000)]
Share = Annotated[float, Meta(ge=0, le=1)]


class DataSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the input of batch tasks lies, estimated: tasks read at `rate` for as long as they are
    expected to run, times a number drawn log-normally with `spread`, in blocks with replicas."""

    #: Bytes a second of expected running time; 0: tasks have no input.
    rate: Annotated[int, Meta(ge=0, le=2**40)] = 0
    spread: Annotated[float, Meta(ge=0, le=4)] = 1.0
    block: Annotated[int, Meta(ge=1, le=2**40)] = 256 * 2**20
    most_blocks: Annotated[int, Meta(ge=1, le=64)] = 32
    replicas: Annotated[int, Meta(ge=1, le=8)] = 3
    #: A task prefers machines and racks that hold at least this share of its input.
    threshold: Share = 0.14
    #: At most so many machines, and as many racks.
    most_preferences: Annotated[int, Meta(ge=1, le=64)] = 10
    #: Of a GiB that comes from within the rack, and from beyond it.
    in_rack: Cost = 50
    cross_rack: Cost = 100
    #: Another number puts the data elsewhere.
    seed: Annotated[int, Meta(ge=0, le=2**31)] = 0


PolicyName = Literal["load-spreading", "quincy", "network-aware", "multi-dimensional"]


class FlowSettings(Settings, frozen=True):
    """Policy, costs and solver of a flow scheduler. Costs are whole numbers of the policy's own unit."""

    policy: PolicyName = "multi-dimensional"
    #: How the flow is found; all ways find the optimum.
    algorithm: Algorithm = Algorithm.AUTO
    #: Whether a solve starts from the last one's flow and prices.
    warm: bool = True
    #: Continuous rescheduling: whether running tasks may be migrated and preempted.
    reschedule: bool = True
    #: A machine takes at most so many tasks; 0: as many as its resources allow.
    slots: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: What another task on a machine costs more than the one before (load-spreading).
    per_task: Cost = 10
    #: Of not being scheduled, per point of precedence, and per second waited.
    waiting: Cost = 10_000
    per_precedence: Cost = 1_000
    per_second: Cost = 10
    #: Of starting anew elsewhere, and of losing one's machine altogether.
    migration: Cost = 50
    preemption: Cost = 500
    #: Migrations and preemptions of one round at most.
    moves: Annotated[int, Meta(ge=0, le=1_000_000)] = 1_000
    #: Where pools would have more arcs to machines in all, each has only its best ones.
    most_arcs: Annotated[int, Meta(ge=1_000, le=100_000_000)] = 4_000_000
    #: Input of batch tasks (quincy).
    data: DataSettings = DataSettings()
    #: The resource that counts as bandwidth (network-aware).
    bandwidth: str = "bandwidth"
    #: Whether load is to be even, or tasks are to be packed (multi-dimensional).
    prefer: Literal["spread", "pack"] = "spread"
    #: Of not being scheduled, where the owner has nothing of its fair share (multi-dimensional).
    fairness: Cost = 500
    #: Decision time is t_round, and t_arcs per thousand arcs that the solver looked at.
    t_round: Micros = Micros(1_000)
    t_arcs: Micros = Micros(10)
    #: How long until a round is run although nothing happened, while tasks wait.
    retry: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)
    #: Arcs that a round's searches for explanations may look at, but for the last search, which is
    #: finished; 0: explanations without prices.
    explain_arcs: Annotated[int, Meta(ge=0, le=2**40)] = 200_000
    #: How often at most the prices of those that wait are looked into for their explanations.
    explain: Annotated[Micros, Meta(ge=0)] = Micros(1_000_000)
