from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from argosy.engines.api import Settings
from argosy.model.units import Micros

PositiveShare: TypeAlias = Annotated[float, Meta(gt=0, le=1)]
ScoreWeight: TypeAlias = Annotated[float, Meta(ge=0, le=1e6)]
PoolSize: TypeAlias = Annotated[int, Meta(ge=1, le=100_000)]


class VelaSettings(Settings, frozen=True):
    """How a Vela scheduler samples, decides and commits."""

    #: Share of the clusters that are asked for a sample, at random (C_p); rounded up.
    clusters: PositiveShare = 0.5
    #: Share of its machines that a cluster's sample has (N_p); rounded up.
    machines: PositiveShare = 0.04
    #: If not 0, each sample has this number of machines, whatever the size of its cluster.
    machine_count: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: MultiBind: to how many machines a task may be committed before it is rescheduled (m). 1: without
    #: MultiBind.
    candidates: Annotated[int, Meta(ge=1, le=1_000)] = 3
    #: How often a task is rescheduled before it is abandoned: 10 makes 11 attempts, 9 makes 10.
    reschedules: Annotated[int, Meta(ge=0, le=1_000_000)] = 10
    #: Tasks that end by themselves are never abandoned: they wait for room, as in a batch queue.
    queue_batch: bool = False
    #: How long a task waits on average before it is rescheduled; between half as long and one and a half
    #: times as long, at random. Doubles each time, up to 64 times this. A task's first conflict does not
    #: make it wait. 0: nothing does, as in the paper.
    backoff: Micros = Micros(1_000_000)
    #: Where a rescheduled task joins the queue, among those of its rank.
    requeue: Literal["tail", "head"] = "tail"
    #: Tasks that are sampled, decided on and committed at once.
    samplers: PoolSize = 80
    deciders: PoolSize = 8
    committers: PoolSize = 80
    #: How long a sampler waits for each agent; the answers that have come are used. 0: for all answers.
    timeout: Micros = Micros(0)
    #: Ask the agents all at once, or one after another; or, for comparison, no agents but as many random
    #: machines, each by itself, with at most `probes` requests of a task under way (0: any number).
    asks: Literal["at-once", "in-turn", "machines"] = "at-once"
    probes: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: Decision time per task: before its agents are asked, and with their answers.
    t_sampling: Micros = Micros(0)
    t_decision: Micros = Micros(2_000)
    #: Computing time per machine in an agent's answer, and per answer to a commit.
    t_read: Micros = Micros(0)
    t_commit: Micros = Micros(0)
    #: Processors shared by decisions and by what is computed for answers; 0: one for each.
    cores: Annotated[int, Meta(ge=0, le=100_000)] = 0
    #: The order in which tasks are sampled.
    sort: str = "Priority"
    #: How agents draw machines, filter them by plug-ins in this order, and score them by plug-ins with
    #: these weights.
    strategy: str = "Random"
    filters: tuple[str, ...] = ("ResourcesFit", "GeoLocation", "BatteryLevel")
    scores: dict[str, ScoreWeight] = field(
        default_factory=lambda: {"ResourcesFit": 1.0, "GeoLocation": 1.0}
    )
    #: When an agent stops drawing: 0, when it has enough machines or has seen all; otherwise after so
    #: many rounds, each of which may draw the same machines again.
    rounds: Annotated[int, Meta(ge=0, le=1_000)] = 0
    #: Machines that several of these rounds drew: only once in the sample, or each time, as in the
    #: paper's published code.
    repeats: Literal["drop", "keep"] = "drop"
    #: A round may find more machines than are wanted: keep them all, as in the paper's algorithm, or cut
    #: samples to their size.
    overshoot: Literal["keep", "cut"] = "keep"
    #: Agents stop drawing after this time; 0: no limit.
    sampling_limit: Micros = Micros(0)
    #: Filters and scores of the scheduler itself, for all clusters.
    decision_filters: tuple[str, ...] = ()
    decision_scores: dict[str, ScoreWeight] = field(default_factory=dict)
    #: Which machines of the sample are tried first: those with the highest scores, as in the paper, or
    #: those with the lowest, as in its published code.
    prefer: Literal["highest", "lowest"] = "highest"
    #: How agents check for conflicts, and commit.
    checks: tuple[str, ...] = ("ResourcesFit",)
    commit: str = "Bind"
    #: Which reservations of others count in that check: those that arrived before, so that the first
    #: wins, as the paper says, or all, as in its algorithm, by which the last wins.
    reservations: Literal["earlier", "all"] = "earlier"
    #: Widen samples as tasks find no machine, up to all clusters and `most_machines` of each, and narrow
    #: them again as tasks are placed.
    adapt: bool = False
    most_machines: PositiveShare = 0.16
