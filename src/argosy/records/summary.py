"""The summary of a run: counts and distributions for tables and comparisons."""

from __future__ import annotations

from typing import Any

import msgspec


class Distribution(msgspec.Struct, frozen=True):
    """Of times in microseconds. All zero where `count` is."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    largest: float = 0.0


class Daily(msgspec.Struct, frozen=True):
    """Per-day values of a scheduler as the Omega paper reports them: the median over days, and the
    median absolute deviation from it. A day that was begun counts for as long as it lasted."""

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
    #: Daily busyness of each lane, where an engine thinks along several at once.
    lanes: dict[str, Daily] = {}
    #: Transactions sent, and those of which at least one claim was refused.
    transactions: int
    conflicts: int
    #: Refused claims by reason.
    refused: dict[str, int]
    messages_sent: int
    crashes: int
    #: What the engine says of itself, where it says anything; of its last life.
    figures: dict[str, float] = {}


class KindSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one kind."""

    jobs: int
    jobs_finished: int
    jobs_abandoned: int
    wait_time: Distribution
    placement_latency: Distribution
    jct: Distribution


class SpeedUp(msgspec.Struct, frozen=True, kw_only=True):
    """Of jobs whose tasks share work: the time it takes the workers asked for, from beginning to end,
    against the time from the first worker's start to the last activity's end."""

    #: Jobs of which all work was done.
    jobs: int
    #: The share of them that took less time by a twentieth at least.
    faster: float
    p50: float
    p80: float
    p90: float
    largest: float
    #: The distribution: quantiles 0, 0.01, … 1.
    quantiles: list[float]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Where all tasks are when the run ends; they add up to `tasks`."""

    jobs: int
    jobs_finished: int
    #: Jobs with tasks that run until they are stopped, which no run finishes.
    jobs_endless: int = 0
    #: Jobs of which at least one task was abandoned.
    jobs_abandoned: int = 0
    tasks: int
    tasks_finished: int
    tasks_running: int
    tasks_queued: int
    tasks_pending: int
    tasks_abandoned: int
    #: Whose last try failed, and whose users did not want them any more.
    tasks_failed: int = 0
    tasks_cancelled: int = 0
    #: Events along the way: a task can be preempted or lost more than once.
    preemptions: int
    losses: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of finished tasks' lives, and their sums; see `runs.timeline`."""

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
    """How containers and machines are: at one instant, or on average over time."""

    #: Running containers that some placement constraint concerns, those of them that break one, and
    #: weight times extent of all that they break.
    concerned: float = 0.0
    violating: float = 0.0
    extent: float = 0.0
    #: Machines that are up; of these, with something running, and too full for another container
    #: though not full.
    machines: float = 0.0
    machines_used: float = 0.0
    fragmented: float = 0.0
    #: Per resource, the coefficient of variation of machines' use.
    imbalance: dict[str, float] = {}
    #: Of a federation: per cluster and resource, the share in use of what is up.
    clusters: dict[str, dict[str, float]] = {}


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where containers were put, judged by all constraints, also where an engine does not see them."""

    #: How often the cell was looked at.
    looks: int = 0
    mean: Use = Use()
    end: Use = Use()
    #: Of jobs with constraints: submit to last container placed.
    latency: Distribution = Distribution()


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    seed: int
    #: The fleet in short, such as ``omega x2``: the label in comparisons.
    fleet: str
    #: Virtual time at the end, in microseconds.
    ended_at: int
    #: Sentences on what of its trace the scenario cannot say.
    left_out: list[str] = []
    counts: Counts
    #: Per job: submit to first attempt; submit to last task placed; submit to last task done.
    wait_time: Distribution
    placement_latency: Distribution
    jct: Distribution
    #: The mean JCT of finished jobs in its parts: until the first attempt began (``waiting``), until the
    #: last task was placed (``placing``), and until the last was done (``running``). Empty without any.
    breakdown: dict[str, float] = {}
    #: Per task: submit to done.
    response_time: Distribution
    #: The parts of that. Empty where tasks' timelines were not kept.
    timeline: Timeline = Timeline()
    #: The same times for the jobs of each kind.
    kinds: dict[str, KindSummary] = {}
    #: None where no job's tasks share work.
    speed_up: SpeedUp | None = None
    #: Mean share of each resource in use over the run.
    utilisation: dict[str, float]
    #: Violations, fragmentation, balance.
    placement: Placement = Placement()
    #: Conflicting transactions per successful one, over all schedulers.
    conflict_fraction: float
    #: Everything that went over the lossy network: sent, lost, duplicated, delayed, cut. Empty where
    #: nobody counted.
    network: dict[str, int]
    schedulers: tuple[SchedulerSummary, ...]
    #: Events handled by engines, and the digest of the journal.
    events: int
    log_digest: str
    #: Time series for plots: instants, and used share per dimension and pending tasks at each.
    series: dict[str, list[float]]


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What else a reader needs to repeat the run; kept apart, for it differs between machines."""

    argosy: str
    python: str
    platform: str
    numpy: str
    command: list[str]
    started: str
    seconds: float
    scenario_digest: str
    extra: dict[str, Any] = {}
