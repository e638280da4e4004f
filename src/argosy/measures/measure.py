"""The `Summary` of a run, computed from its finished world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.host.busy_time import DAY
from argosy.host.job_table import LabelCodes, LabelColumn
from argosy.host.scheduler import Scheduler
from argosy.host.setup import HostSetup
from argosy.measures.passed_over import JobMilestones, JobPriorities, TaskStarts, passed_over
from argosy.measures.placement import Watch
from argosy.measures.statistics import distribution
from argosy.measures.timeline import task_times, timeline
from argosy.model.explanations import Why
from argosy.model.scenario import Scenario
from argosy.model.tasks import jobs_of
from argosy.records.summary import (
    Counts,
    Daily,
    KindSummary,
    Placement,
    SchedulerSummary,
    SpeedUp,
    Summary,
)
from argosy.worlds.sim import SimulatedWorld

#: Jobs whose times are added up together: of all of them at once, copies would take much memory.
_AT_ONCE: Final = 65_536


def summarise(world: SimulatedWorld, log_digest: str, watch: Watch | None = None) -> Summary:
    simulator, scenario = world.host.runtime, world.scenario
    # Lent, because there may be very many jobs, and the run is over.
    submit, first_attempt, all_placed, done = simulator.board.lend_job_columns()
    abandoned = simulator.board.abandoned_by_job() > 0
    is_endless = np.array(world.host.jobs.is_endless, bool)
    tasks, _, placed, started, finished = simulator.task_columns()
    states = simulator.board.counts().tolist()
    pending, queued, running, ended, given_up, failed, cancelled = states
    successes = sum(scheduler.successes for scheduler in world.host.schedulers)
    conflicts = sum(scheduler.conflicts for scheduler in world.host.schedulers)
    gangs, gangs_split = _gangs(world)
    jobs_preceding, jobs_passed_over = _passed_over(world)
    used, capacity = simulator.integrals()
    dimensions = world.host.view.dimensions
    return Summary(
        scenario=scenario.name,
        seed=scenario.seed,
        fleet=fleet_label(scenario),
        ended_at=simulator.now,
        left_out=list(scenario.left_out),
        counts=Counts(
            jobs=len(submit),
            jobs_finished=int((done >= 0).sum()),
            jobs_endless=int(is_endless.sum()),
            jobs_abandoned=int(abandoned.sum()),
            tasks=sum(states),
            tasks_finished=ended,
            tasks_running=running,
            tasks_queued=queued,
            tasks_pending=pending,
            tasks_abandoned=given_up,
            tasks_failed=failed,
            tasks_cancelled=cancelled,
            preemptions=world.host.membership.preemptions,
            losses=world.host.membership.losses,
            gangs=gangs,
            gangs_split=gangs_split,
            jobs_preceding=jobs_preceding,
            jobs_passed_over=jobs_passed_over,
        ),
        wait_time=distribution(since(first_attempt, submit), is_spare=True),
        placement_latency=distribution(since(all_placed, submit), is_spare=True),
        jct=distribution(since(done, submit), is_spare=True),
        breakdown=breakdown(submit, first_attempt, all_placed, done),
        response_time=distribution(finished - submit[jobs_of(tasks)]),
        timeline=timeline(
            task_times(
                tasks,
                placed,
                started,
                finished,
                submit,
                first_attempt,
                # Only the jobs of these tasks are looked up.
                simulator.board.thought_by_job() if len(tasks) else np.empty(0, np.int64),
            )
        ),
        kinds=by_label(
            world.host.jobs.kinds, is_endless, submit, first_attempt, all_placed, done, abandoned
        ),
        owners=by_label(
            world.host.jobs.owners, is_endless, submit, first_attempt, all_placed, done, abandoned
        ),
        speed_up=speed_up(speed_ups(world)),
        utilisation={
            name: float(used[d] / capacity[d]) if capacity[d] else 0.0
            for d, name in enumerate(dimensions)
        },
        placement=Placement() if watch is None else watch.placement(),
        conflict_fraction=conflicts / max(1, successes),
        network=dict(world.host.links.counts),
        schedulers=tuple(
            _scheduler(scheduler, simulator.now) for scheduler in world.host.schedulers
        ),
        events=world.host.events,
        log_digest=log_digest,
        series=_series(world),
    )


def fleet_label(scenario: Scenario | HostSetup) -> str:
    """``omega x2 + murmuration``: each engine with its number of schedulers, in fleet order."""
    replicas: dict[str, int] = {}
    for entry in scenario.fleet:
        replicas[entry.engine] = replicas.get(entry.engine, 0) + entry.replicas
    return " + ".join(
        engine if count == 1 else f"{engine} x{count}" for engine, count in replicas.items()
    )


def since(milestone: NDArray[np.int64], submit: NDArray[np.int64]) -> NDArray[np.float64]:
    """Times from submission to a milestone, for jobs that reached it."""
    is_reached = milestone >= 0
    times: NDArray[np.float64] = np.subtract(milestone, submit, dtype=np.float64)
    return times if is_reached.all() else times[is_reached]


def by_label(
    labels_of_jobs: Sequence[str],
    is_endless: NDArray[np.bool_],
    submit: NDArray[np.int64],
    first_attempt: NDArray[np.int64],
    all_placed: NDArray[np.int64],
    done: NDArray[np.int64],
    abandoned: NDArray[np.int64] | NDArray[np.bool_],
) -> dict[str, KindSummary]:
    """Summaries by kind or owner, from columns of all jobs. `abandoned` says how many of a job's tasks
    were given up, or whether any was."""
    labels, codes = coded(labels_of_jobs)
    summaries = {}
    for label in sorted(labels):
        # Of columns that are all of one kind, no copies are needed.
        mine = codes == labels[label] if len(labels) > 1 else slice(None)
        times = [
            distribution(since(milestone[mine], submit[mine]), is_spare=True)
            for milestone in (first_attempt, all_placed, done)
        ]
        summaries[label] = KindSummary(
            jobs=len(submit[mine]),
            jobs_finished=int((done[mine] >= 0).sum()),
            jobs_endless=int(is_endless[mine].sum()),
            jobs_abandoned=int((abandoned[mine] > 0).sum()),
            wait_time=times[0],
            placement_latency=times[1],
            jct=times[2],
        )
    return summaries


def coded(labels: Sequence[str]) -> tuple[dict[str, int], NDArray[np.int32]]:
    """A number for each distinct label, and the number of each row's."""
    if isinstance(labels, LabelColumn):
        return labels.codes, np.array(labels.rows, np.int32)
    codes = LabelCodes()
    return codes, np.fromiter((codes[label] for label in labels), np.int32, len(labels))


def _gangs(world: SimulatedWorld) -> tuple[int, int]:
    """How many gangs had a task that ran, and how many of them did not start as a whole."""
    numbers, counts = world.host.jobs.gangs, world.host.jobs.counts
    if not numbers:
        return 0, 0
    tasks, _, started = _starts(world)
    now = world.host.runtime.now
    jobs = jobs_of(tasks)
    ran = split = 0
    for number in numbers:
        mine = started[jobs == number]
        # A start that is on its way when the run ends lies in the future.
        mine = mine[(mine >= 0) & (mine <= now)]
        if len(mine):
            ran += 1
            split += len(mine) < counts[number] or bool(mine.min() < mine.max())
    return ran, split


def _starts(world: SimulatedWorld) -> TaskStarts:
    runtime = world.host.runtime
    ended, running = runtime.task_columns(), runtime.running_columns()
    return TaskStarts(*(np.concatenate([ended[at], running[at]]) for at in (0, 2, 3)))


def _passed_over(world: SimulatedWorld) -> tuple[int, int]:
    """How many jobs have a higher precedence than others, and how many of them were passed over."""
    table, board = world.host.jobs, world.host.runtime.board
    precedences = np.array(table.precedences, np.int16)
    is_known = world.scenario.output.tasks
    if not is_known or not len(precedences) or precedences.min() == precedences.max():
        return 0, 0
    submit, first_attempt, all_placed, _ = board.job_columns()
    return passed_over(
        JobPriorities(precedences, np.array(table.demands, np.uint16), [*table.demand_codes]),
        JobMilestones(submit, first_attempt, board.thought_by_job(), all_placed),
        _starts(world),
    )


#: A job counts as faster from this speed-up on.
FASTER = 1.05


def speed_ups(world: SimulatedWorld, kind: str | None = None) -> NDArray[np.float64]:
    """The speed-up of each job, or each of a kind, whose shared work is done; in order of
    submission."""
    numbers, began, ended, asked = world.host.runtime.pool_columns()
    is_wanted = ended >= 0
    if kind is not None:
        is_wanted &= np.array(world.host.jobs.kinds)[numbers] == kind
    took = (ended - began)[is_wanted]
    return np.where(took > 0, asked[is_wanted] / np.maximum(took, 1), 1.0)


def speed_up(ratios: NDArray[np.float64]) -> SpeedUp | None:
    if not len(ratios):
        return None
    p50, p80, p90, largest = np.quantile(ratios, [0.5, 0.8, 0.9, 1.0]).tolist()
    return SpeedUp(
        jobs=len(ratios),
        faster=float((ratios >= FASTER).mean()),
        p50=p50,
        p80=p80,
        p90=p90,
        largest=largest,
        quantiles=np.quantile(ratios, np.linspace(0, 1, 101)).tolist(),
    )


def daily(values: list[float]) -> Daily:
    median = float(np.median(values))
    return Daily(median, float(np.median(np.abs(np.array(values) - median))), values)


def breakdown(
    submit: NDArray[np.int64],
    first_attempt: NDArray[np.int64],
    all_placed: NDArray[np.int64],
    done: NDArray[np.int64],
) -> dict[str, float]:
    count = int(np.count_nonzero(done >= 0))
    if not count:
        return {}
    waiting = placing = running = 0
    for first in range(0, len(done), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        mine = done[some] >= 0
        # For an engine that never thinks, the first attempt starts when it places the job.
        begun = np.where(first_attempt[some] >= 0, first_attempt[some], all_placed[some])
        waiting += int((begun - submit[some]).sum(where=mine))
        placing += int((all_placed[some] - begun).sum(where=mine))
        running += int((done[some] - all_placed[some]).sum(where=mine))
    return {"waiting": waiting / count, "placing": placing / count, "running": running / count}


def _scheduler(scheduler: Scheduler, ended_at: int) -> SchedulerSummary:
    return SchedulerSummary(
        name=scheduler.name,
        engine=scheduler.entry.engine,
        jobs=scheduler.jobs,
        busyness=scheduler.busy_time(ended_at) / ended_at if ended_at else 0.0,
        daily_busyness=daily(scheduler.busy_by_day(ended_at)),
        lanes={
            name: daily(lane.by_day(ended_at)) for name, lane in sorted(scheduler.lanes.items())
        },
        daily_conflicts=daily(
            [
                scheduler.conflict_days[day] / max(1, scheduler.success_days[day])
                for day in range(max(1, -(-ended_at // DAY)))
            ]
        ),
        transactions=scheduler.transactions,
        conflicts=scheduler.conflicts,
        refused={Why(why).name.lower(): count for why, count in sorted(scheduler.refused.items())},
        messages_sent=scheduler.messages_sent,
        crashes=scheduler.crashes,
        figures=scheduler.figures(),
    )


def _series(world: SimulatedWorld) -> dict[str, list[float]]:
    """Samples over the run: the used share per dimension, and the number of tasks in each state."""
    samples = world.host.runtime.samples()
    names = world.host.view.dimensions
    count = len(names)
    series: dict[str, list[float]] = {"at": samples[:, 0].tolist()}
    for d, name in enumerate(names):
        capacity = np.maximum(samples[:, 1 + count + d], 1)
        series[name] = (samples[:, 1 + d] / capacity).tolist()
    for offset, name in enumerate(("pending", "queued", "running")):
        series[name] = samples[:, 1 + 2 * count + offset].tolist()
    return series
