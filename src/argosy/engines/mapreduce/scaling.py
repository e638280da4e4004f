"""Extra workers, beyond those that jobs asked for: how many, where, and when they are released.

A job is considered when it is placed, so that extra workers start together with those it asked for;
when its next phase begins; and every `interval` while it could use more. Decisions about jobs that run
come one at a time, when no job waits to be placed. Idle resources are shared evenly among the jobs to
consider. A refused claim is not retried before the next `interval`. Extra workers have a precedence one
below their job's, so that a job of the same rank may preempt them to place the workers it asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta

from argosy.cell import Draft, Rule, View
from argosy.engines.api import Context
from argosy.engines.mapreduce.policies import most_workers, shared_room
from argosy.engines.mapreduce.prediction import History, Workers, best_addition, best_start
from argosy.engines.shared.serial import SerialSettings
from argosy.model.effects import Commit, Effect, Think, WakeMe
from argosy.model.jobs import MOST_TASKS, PRECEDENCE_RANGE, Job, task_number
from argosy.model.transactions import Claims, Outcome, TaskArray, Transaction
from argosy.model.units import Micros

TIMER: Final = "look again"
#: The token of releases, whose answers are ignored.
_RELEASES: Final = 0


class ScalingSettings(SerialSettings, frozen=True):
    #: Add workers as long as the job ends sooner; or only while the cell is less full than `cap`; or at
    #: most `times` the workers asked for; or never.
    policy: Literal["max-parallelism", "global-cap", "relative-job-size", "none"] = (
        "max-parallelism"
    )
    #: For `global-cap`: the largest share of any resource that may be in use.
    cap: Annotated[float, Meta(gt=0, le=1)] = 0.6
    #: For `relative-job-size`: the most workers of a job, in multiples of those asked for.
    times: Annotated[float, Meta(ge=1, le=1_000)] = 4.0
    #: Whether workers that a job asked for may preempt tasks of lower precedence, such as extra workers.
    preempt: bool = True
    #: Whether jobs that wait to be placed are considered too, so that their extra workers start with the
    #: others; otherwise, only jobs that run.
    at_start: bool = True
    #: How often jobs that found too little room are considered again.
    interval: Micros = Micros(30_000_000)


class Scaling:
    def __init__(self, settings: ScalingSettings, context: Context, rule: Rule) -> None:
        self._settings = settings
        self._context = context
        self._rule = rule
        self._history = History()
        #: All jobs with phases that were submitted here and are not over.
        self._jobs: dict[int, Workers] = {}
        #: Jobs to consider now; jobs to consider again later.
        self._wanting: deque[int] = deque()
        self._starved: set[int] = set()
        #: The current decision: its job and claims. Its token is negative, unlike those of placements.
        self._adding: tuple[int, Claims] | None = None
        self._token = 0
        self._is_timed = False

    def take(self, job: Job, number: int, pending: int) -> None:
        """Starts to track a job. If another scheduler started it, some workers may already run."""
        if number not in self._jobs:
            self._jobs[number] = Workers(job)
            self._jobs[number].own = job.tasks - pending

    @property
    def is_deciding(self) -> bool:
        return self._adding is not None

    def placed(self, number: int, own: int, extras: TaskArray, now: int) -> None:
        """Records started workers: how many of those that the job asked for, and the extra ones. A job
        that has all of the former may get more."""
        workers = self._jobs.get(number)
        if workers is not None:
            workers.settle(now)
            workers.own += own
            workers.extras.extend(extras.tolist())
            self._want(number)

    def lose(self, number: int, tasks: TaskArray, now: int) -> None:
        workers = self._jobs.get(number)
        if workers is not None:
            workers.settle(now)
            gone = set(tasks.tolist())
            workers.own -= int(workers.job.is_own(tasks).sum())
            workers.extras = [task for task in workers.extras if task not in gone]

    def end_phase(self, number: int, phase: int, duration: int, now: int) -> Sequence[Effect]:
        """Records the measured durations, releases workers with nothing left to do, and considers the
        job for the next phase."""
        workers = self._jobs.get(number)
        if workers is None:
            return ()
        self._history.learn(workers.job, phase, duration)
        if phase + 1 == len(workers.job.activities):
            self.forget(number)
            return ()
        workers.phase = phase
        workers.next_phase(now)
        self._want(number)
        return self._release(workers, now)

    def forget(self, number: int) -> None:
        """The job is over."""
        self._jobs.pop(number, None)
        self._starved.discard(number)

    def change(self, job: Job, number: int) -> None:
        if number in self._jobs:
            self._jobs[number].job = job

    def look_again(self) -> None:
        self._is_timed = False
        for number in sorted(self._starved):
            self._want(number)
        self._starved.clear()

    def is_mine(self, token: int) -> bool:
        """Whether this token belongs to the current decision."""
        return self._adding is not None and token == self._token

    def commit(self, token: int) -> Sequence[Effect]:
        """Commits when the decision time has passed, unless the job has ended."""
        if token != self._token or self._adding is None:
            return ()
        number, claims = self._adding
        if number not in self._jobs:
            self._adding = None
            return ()
        return (Commit(token, Transaction(self._context.name, claims)),)

    def added(self, outcome: Outcome, now: int) -> Sequence[Effect]:
        assert self._adding is not None
        number, claims = self._adding
        self._adding = None
        workers = self._jobs.get(number)
        if workers is None:
            return ()
        workers.settle(now)
        workers.extras.extend(claims.tasks[outcome.accepted].tolist())
        if not outcome.all_accepted:
            self._starved.add(number)
        return self._release(workers, now)

    def _want(self, number: int) -> None:
        workers = self._jobs[number]
        is_whole = workers.own >= workers.job.tasks
        if self._settings.policy != "none" and is_whole and number not in self._wanting:
            self._wanting.append(number)

    def _release(self, workers: Workers, now: int) -> Sequence[Effect]:
        """Releases extra workers, youngest first, that no later phase has an activity for."""
        surplus = min(len(workers.extras), workers.count - workers.useful)
        if surplus <= 0:
            return ()
        workers.settle(now)
        going = np.array(workers.extras[-surplus:], np.int64)
        del workers.extras[-surplus:]
        return (Commit(_RELEASES, Transaction(self._context.name, releases=going)),)

    def decide(self, view: View, now: int) -> Sequence[Effect]:
        """Starts with the next job that would gain from more workers, if any."""
        effects: list[Effect] = []
        while self._wanting and self._adding is None:
            number = self._wanting.popleft()
            workers = self._jobs.get(number)
            if workers is not None and workers.own >= workers.job.tasks:
                effects.extend(self._choose(number, workers, view, now))
        if self._starved and not self._is_timed:
            self._is_timed = True
            effects.append(WakeMe(now + self._settings.interval, TIMER))
        return effects

    def _choose(self, number: int, workers: Workers, view: View, now: int) -> Sequence[Effect]:
        settings = self._settings
        allowed, room = self._allowed(workers, workers.count), self._room(workers.job, view)
        left = workers.time_left(self._history, now) if allowed > 0 else None
        if left is None:
            return ()
        most = min(allowed, room)
        count = best_addition(left, workers.count, most, settings.t_job, settings.t_task)
        if count == most < allowed:
            self._starved.add(number)
        if count == 0:
            return ()
        claims = self._extras(number, count, Draft(view), view)
        if not len(claims):
            return ()
        self._adding = (number, claims)
        self._token -= 1
        duration = settings.t_job + settings.t_task * len(claims)
        return (Think(duration, self._token, number),)

    def extras_at_start(
        self, number: int, draft: Draft, view: View, now: int, pending: int
    ) -> Claims | None:
        """Extra workers for a job all of whose own workers are about to be claimed, while `pending`
        other jobs wait to be placed; the draft knows the room that its own workers take."""
        workers, settings = self._jobs.get(number), self._settings
        if workers is None or settings.policy == "none" or not settings.at_start:
            return None
        own = workers.job.tasks
        most = min(self._allowed(workers, own), self._room(workers.job, view, own, pending))
        left = workers.time_left(self._history, now) if most > 0 else None
        count = best_start(left, own, most, settings.t_task) if left is not None else 0
        claims = self._extras(number, count, draft, view) if count else None
        return claims if claims is not None and len(claims) else None

    def _extras(self, number: int, count: int, draft: Draft, view: View) -> Claims:
        """Claims for at most as many extra workers."""
        workers = self._jobs[number]
        group, first = workers.job.groups[0], workers.next_index
        tasks = np.arange(first, first + count, dtype=np.int64) | task_number(number, 0)
        precedence = max(workers.job.precedence - 1, PRECEDENCE_RANGE[0])
        shape = view.shape(group.request, group.tags, precedence)
        draft.place(tasks, shape, self._rule, self._context.random, requires=group.requires)
        if draft.count < count:
            self._starved.add(number)
        workers.next_index += draft.count
        return draft.claims()

    def _allowed(self, workers: Workers, count: int) -> int:
        """How many more workers than `count` the policy allows the job, regardless of room."""
        settings, asked = self._settings, workers.job.tasks
        most = most_workers(settings.policy, settings.times, workers.useful, asked)
        return min(most - count, MOST_TASKS - workers.next_index)

    def _room(self, job: Job, view: View, taken: int = 0, pending: int = 0) -> int:
        """How many workers there is room for beside `taken` others, if all jobs under consideration and
        `pending` others share it."""
        return shared_room(
            self._settings.policy,
            self._settings.cap,
            job.groups[0].request.items(),
            view.used_total(),
            view.capacity_total(),
            1 + len(self._wanting) + pending,
            taken,
        )
