"""The scenario: cell + workload + fleet + faults + seed, as values.

`argosy.scenarios.loader.load` reads one from a TOML file; `docs/scenarios.md` describes each key. A
scenario is complete: except for the version of the code, a simulated run depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from argosy.model.constraints import Constraint
from argosy.model.jobs import PRECEDENCE_RANGE
from argosy.model.machine_model import MachineModel, Probability
from argosy.model.machines import Cluster, Machine
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob
from argosy.model.units import LARGEST, Time

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, description="a whole number of 1 or more")]
#: Times the largest time, this still fits 64 bits.
Factor: TypeAlias = Annotated[
    float, msgspec.Meta(gt=0, le=1000, description="a number above 0, at most 1000")
]
Precedence: TypeAlias = Annotated[
    int,
    msgspec.Meta(
        ge=PRECEDENCE_RANGE[0],
        le=PRECEDENCE_RANGE[1],
        description="a whole number from -32768 to 32767",
    ),
]
#: Relative to others of the same kind.
Weight: TypeAlias = Annotated[
    float, msgspec.Meta(ge=1e-9, le=1e9, description="a number from 1e-9 to 1e9")
]
#: Each scheduler has its own state, and exchanges messages with all its peers.
MOST_SCHEDULERS: Final = 10_000
Replicas: TypeAlias = Annotated[
    int,
    msgspec.Meta(ge=1, le=MOST_SCHEDULERS, description="a whole number, 1 or more, at most 10,000"),
]


class GroupSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A node group: its sets by name, in order."""

    name: str
    sets: tuple[str, ...]


class CellSpec(msgspec.Struct, frozen=True, kw_only=True):
    machines: tuple[Machine, ...]
    groups: tuple[GroupSpec, ...] = ()
    #: The operator's constraints, in addition to those of jobs.
    constraints: tuple[Constraint, ...] = ()
    #: The resource that consists of devices, if there is one: see `argosy.model.devices`.
    devices: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def device_resource(self) -> str | None:
        return None if isinstance(self.devices, msgspec.UnsetType) else self.devices


class SchedulerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most that one scheduler may hold. Anything omitted, or 0, is unlimited."""

    resources: Resources | None = None
    jobs: Positive | None = None
    #: The highest precedence it may claim with.
    precedence: Precedence | None = None


class Takes(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs a fleet entry takes: all, or those of some kinds."""

    kinds: tuple[str, ...] = ()


class AsTold(msgspec.Struct, frozen=True, kw_only=True, tag="as-told", tag_field="model"):
    """A decision takes as long as the engine says."""


class Scaled(msgspec.Struct, frozen=True, kw_only=True, tag="scaled", tag_field="model"):
    """A slower or faster computer: the engine's decision time is multiplied by `factor`."""

    factor: Factor


class Jittered(msgspec.Struct, frozen=True, kw_only=True, tag="jittered", tag_field="model"):
    """The engine's decision time is multiplied by a uniform random number between `low` and `high`."""

    low: Factor
    high: Factor


class Measured(msgspec.Struct, frozen=True, kw_only=True, tag="measured", tag_field="model"):
    """The time the engine really computed since its last decision, times `factor`; its own figure is
    ignored. Runs with the same seed then differ."""

    factor: Factor = 1.0


class NotModelled(msgspec.Struct, frozen=True, kw_only=True, tag="none", tag_field="model"):
    """Decisions add no time of their own. In a live cluster they take what they take; in a simulation
    they are free."""


DecisionTime: TypeAlias = AsTold | Scaled | Jittered | Measured | NotModelled

JobSplit: TypeAlias = Literal["hash", "round-robin", "random", "owner"]


class FleetEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`replicas` schedulers with the same engine. `split` determines how jobs are distributed among
    them; with ``owner``, all jobs of one owner go to the same scheduler."""

    name: str
    engine: str
    settings: dict[str, Any] = {}
    replicas: Replicas = 1
    takes: Takes = Takes()
    split: JobSplit = "hash"
    limits: SchedulerLimits = SchedulerLimits()
    decision_time: DecisionTime = AsTold()

    def scheduler_names(self) -> tuple[str, ...]:
        if self.replicas == 1:
            return (self.name,)
        return tuple(f"{self.name}-{index}" for index in range(self.replicas))


class ConstantLatency(msgspec.Struct, frozen=True, kw_only=True, tag="constant", tag_field="model"):
    delay: Time = 500


class UniformLatency(msgspec.Struct, frozen=True, kw_only=True, tag="uniform", tag_field="model"):
    low: Time
    high: Time


class PairLatency(msgspec.Struct, frozen=True, kw_only=True, tag="per-pair", tag_field="model"):
    """`delays` maps "sender>receiver" to a delay; `default` applies to all other pairs."""

    default: Time
    delays: dict[str, Time] = {}


Latency: TypeAlias = ConstantLatency | UniformLatency | PairLatency


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """How long a hop takes, and how messages between schedulers fail."""

    latency: Latency = ConstantLatency()
    #: Probabilities per message.
    loss: Probability = 0.0
    duplication: Probability = 0.0
    #: Probability that a message is delayed by up to `extra_delay`, so that others may overtake it.
    reordering: Probability = 0.0
    extra_delay: Time = 0


#: Separates the two places of a pair in `Places.delays`.
BOTH_WAYS: Final = "<>"


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """How long a hop takes between parties whose places are known; the same in both directions.
    `delays` maps "one<>other" to a delay; `default` applies to all other pairs of places, and `within`
    to hops within one place."""

    default: Time
    within: Time = 500
    delays: dict[str, Time] = {}


class Federation(msgspec.Struct, frozen=True, kw_only=True):
    """Additional data of a federation: the places of clusters and schedulers, and the distances between
    them."""

    clusters: tuple[Cluster, ...]
    #: Overrides the network's latency if both ends have a place; None: nothing is overridden.
    places: Places | None = None
    #: Places of schedulers. Schedulers left out have no place, and distances do not apply to them.
    schedulers: dict[str, str] = {}


class AgentModel(msgspec.Struct, frozen=True, kw_only=True):
    """How long cluster agents take for the requests of engines that use their pipelines (`vela`)."""

    #: Requests that an agent handles at once, the others wait in order of arrival; 0: any number.
    samplers: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    committers: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    #: Sampling takes t_sample + t_machine x machines drawn.
    t_sample: Time = 0
    t_machine: Time = 0
    #: A commit takes t_fetch until the machine is checked, and if it succeeds t_bind after that. Its
    #: machine is locked against other commits all the while.
    t_fetch: Time = 0
    t_bind: Time = 0
    #: How old an agent's picture of its machines may be; it always knows of its own commits.
    refresh: Time = 0
    #: Into how many shards an agent is split. Each has a part of the machines and its own `samplers` and
    #: `committers`; the shards draw a sample together.
    shards: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1


class AgentDown(msgspec.Struct, frozen=True, kw_only=True, tag="agent-down", tag_field="kind"):
    """The agent of a cluster cannot be reached from `at` on, for `lasts` (None: for good). Its machines
    go on. Requests under way are lost, and their senders learn it."""

    at: Time
    cluster: str = ""
    lasts: Time | None = None


class AgentSlow(msgspec.Struct, frozen=True, kw_only=True, tag="agent-slow", tag_field="kind"):
    """Every request to the agent takes `extra` longer, from `at` on, for `lasts` (None: for good)."""

    at: Time
    extra: Time
    cluster: str = ""
    lasts: Time | None = None


class AgentStale(msgspec.Struct, frozen=True, kw_only=True, tag="agent-stale", tag_field="kind"):
    """The agent hears nothing of its machines from `at` on, for `lasts` (None: for good): it samples
    from what it knew, less its own commits."""

    at: Time
    cluster: str = ""
    lasts: Time | None = None


AgentFault: TypeAlias = AgentDown | AgentSlow | AgentStale


class MachineCrash(
    msgspec.Struct, frozen=True, kw_only=True, tag="machine-crash", tag_field="kind"
):
    """A machine stops at `at` and is back, empty, after `down` (None: never)."""

    at: Time
    machine: str
    down: Time | None = None


class MachineDrain(
    msgspec.Struct, frozen=True, kw_only=True, tag="machine-drain", tag_field="kind"
):
    """A machine takes no new tasks from `at` on, for `lasts` (None: for good). Running and queued tasks
    stay."""

    at: Time
    machine: str
    lasts: Time | None = None


class MachineResize(
    msgspec.Struct, frozen=True, kw_only=True, tag="machine-resize", tag_field="kind"
):
    """A machine's capacity changes at `at`; tasks that no longer fit lose their machine."""

    at: Time
    machine: str
    capacity: Resources


class MachineRelabel(
    msgspec.Struct, frozen=True, kw_only=True, tag="machine-relabel", tag_field="kind"
):
    """At `at`, a machine gets other attributes and joins other node sets instead of all it had. Its
    tasks stay."""

    at: Time
    machine: str
    attributes: dict[str, str] = {}
    joins: dict[str, tuple[str, ...]] = {}


class MachineUse(msgspec.Struct, frozen=True, kw_only=True, tag="machine-use", tag_field="kind"):
    """At `at`, it is observed that so much of a machine's resources is in use, whoever uses it and
    whatever is reserved there. It changes what engines know, not what fits."""

    at: Time
    machine: str
    used: dict[str, Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]]


class SchedulerCrash(
    msgspec.Struct, frozen=True, kw_only=True, tag="scheduler-crash", tag_field="kind"
):
    at: Time
    scheduler: str
    down: Time | None = None


class RandomCrashes(
    msgspec.Struct, frozen=True, kw_only=True, tag="random-crashes", tag_field="kind"
):
    """Crashes of random machines or schedulers between `start` and `end`, at exponentially distributed
    intervals with mean `every`, each lasting `down`."""

    what: Literal["machines", "schedulers"]
    every: Time
    down: Time
    start: Time = 0
    end: Time | None = None


class Partition(msgspec.Struct, frozen=True, kw_only=True, tag="partition", tag_field="kind"):
    """From `at` until `at + lasts`, the schedulers in `isolated` are cut off from all others."""

    at: Time
    lasts: Time
    isolated: tuple[str, ...]


Fault: TypeAlias = (
    MachineCrash
    | MachineDrain
    | MachineResize
    | MachineRelabel
    | MachineUse
    | SchedulerCrash
    | RandomCrashes
    | Partition
    | AgentDown
    | AgentSlow
    | AgentStale
)


class Output(msgspec.Struct, frozen=True, kw_only=True):
    #: What the journal contains. `decisions`: submissions, changes and decisions. `replayable`: also
    #: every input, so that the run can be replayed. `everything`: also messages and timers.
    log: Literal["none", "decisions", "replayable", "everything"] = "replayable"
    #: Whether to keep the timeline of every task (40 bytes each).
    tasks: bool = True


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    seed: int
    cell: CellSpec
    #: In order of submission: a tuple, or `PackedJobs` if they are many.
    jobs: Sequence[SimulatedJob]
    fleet: tuple[FleetEntry, ...]
    network: Network = Network()
    machines: MachineModel = MachineModel()
    faults: tuple[Fault, ...] = ()
    #: The run ends by this time; None: when all jobs are done.
    horizon: Time | None = None
    #: How long after a scheduler stops its unplaced tasks go to its peers.
    failover: Time = 1_000_000
    #: Recount the whole cell after every commit: slow, for tests.
    audit: bool = False
    output: Output = Output()
    #: Use the published configuration of each engine, including its machines and hops.
    as_published: bool = False
    #: What the scenario could not reproduce of the trace it was made from, as sentences.
    left_out: tuple[str, ...] = ()
    #: None: the cell is a single cluster without a name.
    federation: Federation | None = None
    #: None: agents take no time.
    agents: AgentModel | None = None

    def __post_init__(self) -> None:
        if isinstance(self.jobs, list):
            # As read from JSON.
            msgspec.structs.force_setattr(self, "jobs", tuple(self.jobs))

    def engine_names(self) -> list[str]:
        """The engines named in the fleet, without duplicates."""
        return list(dict.fromkeys(entry.engine for entry in self.fleet))
