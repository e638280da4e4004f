"""Settings of the flow schedulers, `firmament` and `quincy`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from argosy.engines.api import Settings
from argosy.model.resources import Share
from argosy.model.units import Micros
from argosy.solvers.flow import Algorithm, Heuristics

Cost = Annotated[int, Meta(ge=0, le=1_000_000)]


class DataSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the input of batch tasks lies, estimated: tasks read at `rate` for as long as they are
    expected to run, times a number drawn log-normally with `spread`, in blocks with replicas."""

    #: Bytes of input per second of expected running time; 0: tasks have no input.
    rate: Annotated[int, Meta(ge=0, le=2**40)] = 0
    spread: Annotated[float, Meta(ge=0, le=4)] = 1.0
    block: Annotated[int, Meta(ge=1, le=2**40)] = 256 * 2**20
    most_blocks: Annotated[int, Meta(ge=1, le=64)] = 32
    replicas: Annotated[int, Meta(ge=1, le=8)] = 3
    #: A task prefers machines and racks that hold at least this share of its input.
    threshold: Share = 0.14
    #: At most this many preferred machines, and as many racks.
    most_preferences: Annotated[int, Meta(ge=1, le=64)] = 10
    #: Cost of a GiB from the same rack; cost of a GiB from another rack.
    in_rack: Cost = 50
    cross_rack: Cost = 100
    #: Seed for the places of the data.
    seed: Annotated[int, Meta(ge=0, le=2**31)] = 0


#: A built-in policy, or an installed one.
PolicyName = Annotated[
    str, Meta(examples=["load-spreading", "quincy", "network-aware", "multi-dimensional"])
]


class FlowSettings(Settings, frozen=True):
    """Policy, costs and solver of a flow scheduler. Costs are whole numbers of the policy's own unit."""

    policy: PolicyName = "multi-dimensional"
    #: The solver; all find the optimum.
    algorithm: Algorithm = Algorithm.AUTO
    #: Heuristics of the solver.
    heuristics: Heuristics = Heuristics()
    #: Efficient task removal: the flow of ended tasks is removed along its whole path, which helps
    #: `cost-scaling` and `race` if `fresh_prices` is off.
    task_removal: bool = False
    #: Whether to start from the last flow and prices. In a `race`, relaxation never does.
    warm: bool = True
    #: If flows start from scratch (`warm` is off): only every so many of them really do. Those between
    #: start from the last flow, and are said to take as long as the last one from scratch. Applies only
    #: while decisions take the time that is modelled.
    scratch_every: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    #: Continuous rescheduling: whether running tasks may be migrated and preempted.
    reschedule: bool = True
    #: At most this many tasks per machine; 0: as many as fit.
    slots: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: How much more each further task on a machine costs than the one before (load-spreading).
    per_task: Cost = 10
    #: Cost of waiting: fixed, per point of precedence, and per second waited.
    waiting: Cost = 10_000
    per_precedence: Cost = 1_000
    per_second: Cost = 10
    #: Extra cost of waiting for tasks of services, and so of preempting them: services go before batch
    #: jobs that have not waited for long enough to make up for it. 0: only precedence matters.
    services: Cost = 0
    #: Cost of moving a running task; cost of preempting it. At equal cost, tasks stay where they are, so
    #: moving one costs at least 1.
    migration: Cost = 250
    preemption: Cost = 500
    #: At most this many migrations and preemptions per round.
    moves: Annotated[int, Meta(ge=0, le=1_000_000)] = 1_000
    #: At most this many in any minute; 0: no limit. What it cuts waits until the minute is over.
    moves_per_minute: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: At most this many arcs from pools to machines in total; beyond, only the cheapest of each pool.
    most_arcs: Annotated[int, Meta(ge=1_000, le=100_000_000)] = 4_000_000
    #: Secondary cost: how much more each further task on a machine costs than the one before, so that of
    #: machines that are equally good for a task the emptiest is taken, and more machines keep room for
    #: the tasks whose data they hold (quincy).
    evenness: Cost = 1
    #: Input of batch tasks (quincy).
    data: DataSettings = DataSettings()
    #: The resource that counts as bandwidth, and what counts as used of it: what is reserved, or what is
    #: observed if that is more, such as traffic that nobody reserved (network-aware).
    bandwidth: str = "bandwidth"
    bandwidth_use: Literal["reserved", "observed"] = "observed"
    #: Whether to spread the load evenly or to pack tasks (multi-dimensional).
    prefer: Literal["spread", "pack"] = "spread"
    #: Extra cost of waiting for tasks within their owner's fair share (multi-dimensional).
    fairness: Cost = 500
    #: Decision time is t_round plus t_arcs per thousand arcs that the solver scanned.
    t_round: Micros = Micros(1_000)
    t_arcs: Micros = Micros(10)
    #: While tasks wait: how long until the next round if nothing happens.
    retry: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)
    #: At most this many arcs per round are scanned for explanations, except that the last search is
    #: completed; 0: explanations without prices.
    explain_arcs: Annotated[int, Meta(ge=0, le=2**40)] = 200_000
    #: Shortest time between two searches for the prices of waiting tasks.
    explain: Annotated[Micros, Meta(ge=0)] = Micros(1_000_000)
