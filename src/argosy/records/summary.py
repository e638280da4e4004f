"""The summary of a run: counts and distributions for tables and comparisons."""

from __future__ import annotations

from typing import Any

import msgspec


class Distribution(msgspec.Struct, frozen=True):
    """Distribution of times in microseconds. All zero if `count` is."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    largest: float = 0.0


class Daily(msgspec.Struct, frozen=True):
    """Daily values of a scheduler as reported in the Omega paper: the median over days, and the median
    absolute deviation from it. An incomplete day counts up to the end of the run."""

    median: float = 0.0
    mad: float = 0.0
    days: list[float] = []


class SchedulerSummary(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    engine: str
    jobs: int
    #: Share of the run spent deciding.
    busyness: float
    #: The same by day, and conflicts per successful transaction by day.
    daily_busyness: Daily = Daily()
    daily_conflicts: Daily = Daily()
    #: Daily busyness of each lane, if an engine uses several.
    lanes: dict[str, Daily] = {}
    #: Transactions sent, and those with at least one refused claim.
    transactions: int
    conflicts: int
    #: Refused claims by reason.
    refused: dict[str, int]
    messages_sent: int
    crashes: int
    #: The engine's own metrics, if it reports any; since its last restart.
    figures: dict[str, float] = {}


class KindSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one kind or owner."""

    jobs: int
    jobs_finished: int
    jobs_endless: int = 0
    jobs_abandoned: int
    wait_time: Distribution
    placement_latency: Distribution
    jct: Distribution


class SpeedUp(msgspec.Struct, frozen=True, kw_only=True):
    """For jobs whose tasks share work: the time that the workers asked for would take from start to
    end, divided by the time from the first worker's start to the last activity's end."""

    #: Jobs whose work was completed.
    jobs: int
    #: The share of jobs that were faster by at least a twentieth.
    faster: float
    p50: float
    p80: float
    p90: float
    largest: float
    #: The distribution: quantiles 0, 0.01, … 1.
    quantiles: list[float]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Where all tasks are when the run ends; the states add up to `tasks`."""

    jobs: int
    jobs_finished: int
    #: Jobs with tasks that run until stopped, which no run finishes.
    jobs_endless: int = 0
    #: Jobs with at least one abandoned task.
    jobs_abandoned: int = 0
    tasks: int
    tasks_finished: int
    tasks_running: int
    tasks_queued: int
    tasks_pending: int
    tasks_abandoned: int
    #: Tasks whose last attempt failed; tasks that users cancelled.
    tasks_failed: int = 0
    tasks_cancelled: int = 0
    #: Events during the run: a task can be preempted or lost more than once.
    preemptions: int
    losses: int
    #: Gangs of which a task ran, and those whose tasks did not start together.
    gangs: int = 0
    gangs_split: int = 0
    #: Jobs of higher precedence than others, and those of them that were passed over: see
    #: `measures.passed_over`.
    jobs_preceding: int = 0
    jobs_passed_over: int = 0


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of finished tasks' lives, and their sums; see `measures.timeline`."""

    #: Per task.
    w2s: Distribution = Distribution()
    s: Distribution = Distribution()
    w2x: Distribution = Distribution()
    x: Distribution = Distribution()
    tst: Distribution = Distribution()
    tct: Distribution = Distribution()
    #: Per job: the mean and the largest of its tasks.
    mean_tst: Distribution = Distribution()
    mean_tct: Distribution = Distribution()
    tail_tst: Distribution = Distribution()
    tail_tct: Distribution = Distribution()
    #: Per job: the standard deviation of when its tasks were scheduled, started and finished.
    spread: dict[str, Distribution] = {}


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """The state of containers and machines, at one instant or averaged over time."""

    #: Running containers that a placement constraint concerns; those that violate one; and the total of
    #: weight times extent of these violations.
    concerned: float = 0.0
    violating: float = 0.0
    extent: float = 0.0
    #: Machines that are up; those with something running; and those too full for another container but
    #: not full.
    machines: float = 0.0
    machines_used: float = 0.0
    fragmented: float = 0.0
    #: Per resource, the coefficient of variation of machines' use.
    imbalance: dict[str, float] = {}
    #: In a federation: per cluster and resource, the used share of what is up.
    clusters: dict[str, dict[str, float]] = {}


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where containers were put, evaluated with all constraints, even if an engine does not support
    them."""

    #: Number of samples.
    looks: int = 0
    mean: Use = Use()
    end: Use = Use()
    #: For jobs with constraints: from submission until the last container was placed.
    latency: Distribution = Distribution()


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    seed: int
    #: The fleet in short, such as ``omega x2``: the label in comparisons.
    fleet: str
    #: Virtual time at the end, in microseconds.
    ended_at: int
    #: What the scenario could not reproduce of its trace, as sentences.
    left_out: list[str] = []
    counts: Counts
    #: Per job: submission to first attempt; to last task placed; to last task done.
    wait_time: Distribution
    placement_latency: Distribution
    jct: Distribution
    #: The mean JCT of finished jobs in its parts: until the first attempt (``waiting``), until the last
    #: task was placed (``placing``), and until the last was done (``running``). Empty without any.
    breakdown: dict[str, float] = {}
    #: Per task: submission to end.
    response_time: Distribution
    #: The parts of that. Empty if timelines of tasks were not kept.
    timeline: Timeline = Timeline()
    #: The same times for the jobs of each kind and of each owner.
    kinds: dict[str, KindSummary] = {}
    owners: dict[str, KindSummary] = {}
    #: None if no job's tasks share work.
    speed_up: SpeedUp | None = None
    #: Mean share of each resource in use over the run.
    utilisation: dict[str, float]
    #: Violations, fragmentation, balance.
    placement: Placement = Placement()
    #: Conflicting transactions per successful one, over all schedulers.
    conflict_fraction: float
    #: Messages on the lossy network: sent, lost, duplicated, delayed, cut. Empty if they were not
    #: counted.
    network: dict[str, int]
    schedulers: tuple[SchedulerSummary, ...]
    #: Events handled by engines, and the digest of the journal.
    events: int
    log_digest: str
    #: Time series for plots: times, and at each the used share per dimension and the number of pending
    #: tasks.
    series: dict[str, list[float]]


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What else is needed to repeat the run; separate, because it differs between machines."""

    argosy: str
    python: str
    platform: str
    numpy: str
    command: list[str]
    started: str
    seconds: float
    scenario_digest: str
    extra: dict[str, Any] = {}
