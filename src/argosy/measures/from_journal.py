"""The summary of a run computed from its journal alone, also during the run.

A journal does not contain the messages sent, how often engines were called, the figures they report
about themselves, or time spent on decisions about no particular job. Everything a scheduler commits
at one instant counts as one transaction. Room that probes hold before they are answered does not
count as used.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.host import TaskState
from argosy.measures.measure import breakdown, by_label, fleet_label, since, speed_up
from argosy.measures.passed_over import JobMilestones, JobPriorities, TaskStarts, passed_over
from argosy.measures.statistics import distribution
from argosy.measures.timeline import task_times, timeline
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.model.tasks import jobs_of
from argosy.model.transactions import (
    AddMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.model.truth import running_time
from argosy.records.holdings import GroupRequests, vector
from argosy.records.state import RunState
from argosy.records.steps import Step
from argosy.records.summary import Counts, SchedulerSummary, SpeedUp, Summary

#: As for the world's own samples: at most this many, a power of two of seconds apart.
_MOST_SAMPLES: Final = 399
_SECOND: Final = 1_000_000
NOT_TOLD: Final = (
    "counted from the journal, which holds no messages, no events and no quality of placement"
)


def summarise_state(state: RunState) -> Summary:
    jobs, rows, setup = state.jobs, state.finished, state.setup
    tallies = state.steps.schedulers
    at = sample_times(state.until)
    usage = _Usage(state)
    is_endless = np.array(
        [any(group.endless for group in job.groups) for job in state.steps.jobs], bool
    )
    milestones = (jobs.submitted, jobs.first_attempt, jobs.all_placed, jobs.done)
    return Summary(
        scenario=setup.name,
        seed=setup.seed,
        fleet=fleet_label(setup),
        ended_at=state.until,
        left_out=[NOT_TOLD],
        counts=_counts(state, int(is_endless.sum())),
        wait_time=distribution(since(jobs.first_attempt, jobs.submitted), is_spare=True),
        placement_latency=distribution(since(jobs.all_placed, jobs.submitted), is_spare=True),
        jct=distribution(since(jobs.done, jobs.submitted), is_spare=True),
        breakdown=breakdown(*milestones),
        response_time=distribution(rows.finished - jobs.submitted[jobs_of(rows.tasks)]),
        timeline=timeline(
            task_times(
                rows.tasks,
                rows.placed,
                rows.started,
                rows.finished,
                jobs.submitted,
                jobs.first_attempt,
                jobs.thought,
            )
        ),
        kinds=by_label(
            [job.kind for job in state.steps.jobs], is_endless, *milestones, jobs.abandoned
        ),
        owners=by_label(
            [job.owner for job in state.steps.jobs], is_endless, *milestones, jobs.abandoned
        ),
        speed_up=_speed_up(state),
        utilisation=usage.utilisation(),
        conflict_fraction=sum(tally.conflicts for tally in tallies.values())
        / max(1, sum(tally.successes for tally in tallies.values())),
        network={},
        schedulers=_schedulers(state),
        events=0,
        log_digest="",
        series={
            "at": at.tolist(),
            **usage.shares(at),
            **{name: counts.tolist() for name, counts in state.over_time(at).items()},
        },
    )


def sample_times(until: int) -> NDArray[np.int64]:
    """Evenly spaced times from 0 to `until`."""
    spacing = _SECOND
    while until // spacing + 1 > _MOST_SAMPLES:
        spacing *= 2
    return np.arange(0, until + 1, spacing, dtype=np.int64)


def _counts(state: RunState, endless: int) -> Counts:
    counts, jobs = state.counts, state.jobs
    jobs_preceding, jobs_passed_over = _passed_over(state)
    return Counts(
        jobs=len(jobs.done),
        jobs_finished=int((jobs.done >= 0).sum()),
        jobs_endless=endless,
        jobs_abandoned=int((jobs.abandoned > 0).sum()),
        tasks=sum(counts.values()),
        tasks_finished=counts[TaskState.FINISHED],
        tasks_running=counts[TaskState.RUNNING],
        tasks_queued=counts[TaskState.QUEUED],
        tasks_pending=counts[TaskState.PENDING],
        tasks_abandoned=counts[TaskState.ABANDONED],
        tasks_failed=counts[TaskState.FAILED],
        tasks_cancelled=counts[TaskState.CANCELLED],
        preemptions=state.count(Step.PREEMPTED),
        losses=state.count(Step.LOST),
        jobs_preceding=jobs_preceding,
        jobs_passed_over=jobs_passed_over,
    )


def _passed_over(state: RunState) -> tuple[int, int]:
    """How many jobs have a higher precedence than others, and how many of them were passed over."""
    if len({job.precedence for job in state.steps.jobs}) < 2:
        return 0, 0
    jobs, ended, running = state.jobs, state.finished, state.running
    return passed_over(
        JobPriorities.of(state.steps.jobs),
        JobMilestones(jobs.submitted, jobs.first_attempt, jobs.thought, jobs.all_placed),
        TaskStarts(
            np.concatenate([ended.tasks, running.tasks]),
            np.concatenate([ended.placed, running.placed]),
            np.concatenate([ended.started, running.started]),
        ),
    )


def _schedulers(state: RunState) -> tuple[SchedulerSummary, ...]:
    engines = {
        name: entry.engine for entry in state.setup.fleet for name in entry.scheduler_names()
    }
    return tuple(
        SchedulerSummary(
            name=name,
            engine=engines.get(name, ""),
            jobs=tally.jobs,
            busyness=tally.busy_until(state.until) / state.until if state.until else 0.0,
            transactions=tally.transactions,
            conflicts=tally.conflicts,
            refused={Why(why).name.lower(): count for why, count in sorted(tally.refused.items())},
            messages_sent=0,
            crashes=tally.crashes,
        )
        for name, tally in state.steps.schedulers.items()
    )


def _speed_up(state: RunState) -> SpeedUp | None:
    """The speed-up of jobs whose shared work is done, counted from the first worker's start."""
    if not state.steps.work_done:
        return None
    numbers = np.array(sorted(state.steps.work_done), np.int64)
    claims = state.claims
    began = np.full(len(state.steps.jobs), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(began, jobs_of(claims.tasks), claims.begin)
    took = np.array([state.steps.work_done[n] for n in numbers.tolist()]) - began[numbers]
    asked = np.array([_time_asked(state, number) for number in numbers.tolist()])
    return speed_up(np.where(took > 0, asked / np.maximum(took, 1), 1.0))


def _time_asked(state: RunState, number: int) -> int:
    """How long the workers that a job asked for need for its work."""
    job, took = state.steps.jobs[number], state.steps.phases[number]
    return running_time(job.activities, tuple(took[phase] for phase in sorted(took)), job.tasks)


class _Usage:
    """Resources held by claims relative to the machines' capacity, over time."""

    def __init__(self, state: RunState) -> None:
        claims = state.claims
        self._dimensions = state.steps.dimensions
        self._until = state.until
        amounts = GroupRequests(state.steps.jobs, self._dimensions).of(claims.tasks)
        self._used = _LevelOverTime(
            np.concatenate([claims.begin, claims.end]), np.concatenate([amounts, -amounts])
        )
        self._capacity = self._machines(state)

    def utilisation(self) -> dict[str, float]:
        used, capacity = (
            level.integral(self._until).tolist() for level in (self._used, self._capacity)
        )
        return {
            name: used[d] / capacity[d] if capacity[d] else 0.0
            for d, name in enumerate(self._dimensions)
        }

    def shares(self, at: NDArray[np.int64]) -> dict[str, list[float]]:
        used, capacity = self._used.before(at), np.maximum(self._capacity.before(at), 1)
        return {
            name: (used[:, d] / capacity[:, d]).tolist() for d, name in enumerate(self._dimensions)
        }

    def _machines(self, state: RunState) -> _LevelOverTime:
        """The capacity of machines that are up. Initial machines are there before anything happens."""
        sizes = [machine.capacity for machine in state.setup.cell.machines]
        is_up = [True] * len(sizes)
        changes = [(-1, size, 1) for size in sizes]

        def alter(at: int, machine: int, size: Resources, up: bool) -> None:
            if is_up[machine]:
                changes.append((at, sizes[machine], -1))
            if up:
                changes.append((at, size, 1))
            sizes[machine], is_up[machine] = size, up

        for at, change in state.steps.machine_changes:
            match change:
                case AddMachine(machine):
                    sizes.append(machine.capacity)
                    is_up.append(True)
                    changes.append((at, machine.capacity, 1))
                case RemoveMachine(number):
                    alter(at, number, sizes[number], False)
                case ReviveMachine(number):
                    alter(at, number, sizes[number], True)
                case ResizeMachine(number, capacity):
                    alter(at, number, capacity, is_up[number])
        rows = [vector(size, self._dimensions) for _, size, _ in changes]
        signs = np.array([sign for _, _, sign in changes], np.int64).reshape(-1, 1)
        amounts = np.array(rows, np.int64).reshape(-1, len(self._dimensions))
        return _LevelOverTime(np.array([at for at, _, _ in changes], np.int64), amounts * signs)


class _LevelOverTime:
    """Amounts per dimension that change over time."""

    def __init__(self, times: NDArray[np.int64], changes: NDArray[np.int64]) -> None:
        order = np.argsort(times, kind="stable")
        self._times = times[order]
        nothing = np.zeros((1, changes.shape[1]), np.int64)
        self._levels = np.concatenate([nothing, np.cumsum(changes[order], axis=0)])

    def before(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        levels: NDArray[np.int64] = self._levels[np.searchsorted(self._times, at)]
        return levels

    def integral(self, until: int) -> NDArray[np.float64]:
        """The integral from 0 to `until`."""
        ends = np.clip(np.concatenate([self._times, [until]]), 0, until)
        begins = np.concatenate([[0], ends[:-1]])
        lasted = (ends - begins).astype(np.float64)
        sums: NDArray[np.float64] = lasted @ self._levels.astype(np.float64)
        return sums
