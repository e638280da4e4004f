"""The authors' simulations on one page: slow, plain, and written apart from the engines.

Times are whole microseconds. A worker has one slot; a hop takes `HOP`; a task pays two of them when it
starts. Jobs are (submit, estimate, durations).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

HOP = 500
T_JOB, T_TASK = 100_000, 5_000
SLACK = 5

JobRow = tuple[int, int, tuple[int, ...]]


class Clock:
    def __init__(self) -> None:
        self.now = 0
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = count()

    def at(self, when: int, what: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (when, next(self._order), what, arguments))

    def run(self) -> None:
        while self._events:
            self.now, _, what, arguments = heapq.heappop(self._events)
            what(*arguments)


class Jobs:
    """What has not started of each job, and when its last task ended."""

    def __init__(self, rows: Sequence[JobRow]) -> None:
        self.rows = rows
        self.unstarted = [list(durations) for _, _, durations in rows]
        self.done = [0] * len(rows)

    def remaining(self, job: int) -> int:
        return len(self.unstarted[job]) * self.rows[job][1]

    def times(self) -> list[int]:
        return [done - submit for done, (submit, _, _) in zip(self.done, self.rows, strict=True)]


class Worker:
    """Entries are [job, task or None, delay so far]; a task of None is bound when its turn comes."""

    def __init__(self, clock: Clock, jobs: Jobs, srpt: bool) -> None:
        self.clock, self.jobs, self.srpt = clock, jobs, srpt
        self.queue: list[list[Any]] = []
        self.is_free = True
        self.on_start: Callable[[int, int, int], None] = lambda job, start, end: None

    def add(self, job: int, task: int | None) -> None:
        self.queue.append([job, task, 0])
        if self.is_free:
            self.next()

    def next(self) -> None:
        self.is_free = not self.queue
        if self.is_free:
            return
        job, task, _ = self.queue.pop(self.choose())
        left = self.jobs.unstarted[job]
        end = self.clock.now + 2 * HOP
        if left:
            duration = left.pop(0) if task is None else task
            if task is not None:
                left.remove(task)
            end += duration
            self.jobs.done[job] = max(self.jobs.done[job], end)
            self.on_start(job, self.clock.now, end)
        self.clock.at(end, self.next)

    def choose(self) -> int:
        if not self.srpt:
            return 0
        best, least, slack = 0, None, None
        for at, (job, _, delay) in enumerate(self.queue):
            estimate, remaining = self.jobs.rows[job][1], self.jobs.remaining(job)
            if (least is None or remaining < least) and (slack is None or estimate < slack):
                best, least = at, remaining
            room = SLACK * estimate - delay
            slack = room if slack is None else min(slack, room)
        for entry in self.queue[:best]:
            entry[2] += self.jobs.rows[self.queue[best][0]][1]
        return best


class Draws:
    """What is left to chance: a job's scheduler, and which of several least busy machines."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def scheduler(self, job: int, schedulers: int) -> int:
        return self.random.randrange(schedulers)

    def machine(self, job: int, index: int, least_busy: Sequence[int]) -> int:
        return self.random.choice(least_busy)


def murmuration(
    rows: Sequence[JobRow], machines: int, schedulers: int, draws: Draws, *, srjf: bool, delay: int
) -> list[int]:
    """Job completion times, in microseconds."""
    clock, jobs = Clock(), Jobs(rows)
    workers = [Worker(clock, jobs, srjf) for _ in range(machines)]
    views = [[0] * machines for _ in range(schedulers)]
    queues: list[list[tuple[int, int]]] = [[] for _ in range(schedulers)]
    is_busy = [False] * schedulers

    def change(who: Sequence[int], machine: int, since: int, by: int) -> None:
        for scheduler in who:
            views[scheduler][machine] = max(views[scheduler][machine], since) + by

    def arrive(job: int) -> None:
        submit, estimate, durations = rows[job]
        scheduler = draws.scheduler(job, schedulers)
        rank = estimate * len(durations) if srjf else submit
        heapq.heappush(queues[scheduler], (rank, job))
        if not is_busy[scheduler]:
            decide(scheduler)

    def decide(scheduler: int) -> None:
        is_busy[scheduler] = bool(queues[scheduler])
        if not queues[scheduler]:
            return
        _, job = heapq.heappop(queues[scheduler])
        _, estimate, durations = rows[job]
        view, start = views[scheduler], clock.now
        chosen = []
        for index, duration in enumerate(durations):
            least = min(view)
            least_busy = [m for m, until in enumerate(view) if until == least]
            machine = draws.machine(job, index, least_busy)
            view[machine] = max(view[machine], start) + estimate
            chosen.append(machine)
            leaves = start + T_JOB + T_TASK * (index + 1)
            clock.at(leaves + HOP, workers[machine].add, job, duration)
        others = [other for other in range(schedulers) if other != scheduler]
        over = start + T_JOB + T_TASK * len(durations)
        clock.at(over, decide, scheduler)
        clock.at(over + HOP + delay, tell, others, chosen, start, estimate)

    def tell(who: Sequence[int], machines: Sequence[int], since: int, by: int) -> None:
        for machine in machines:
            change(who, machine, since, by)

    def started(machine: int) -> Callable[[int, int, int], None]:
        def report(job: int, start: int, end: int) -> None:
            everyone = range(schedulers)
            clock.at(end + HOP + delay, change, everyone, machine, start, -rows[job][1])

        return report

    for machine, worker in enumerate(workers):
        worker.on_start = started(machine)
    for job, (submit, _, _) in enumerate(rows):
        clock.at(submit, arrive, job)
    clock.run()
    return jobs.times()


def sparrow(rows: Sequence[JobRow], machines: int, *, seed: int, ratio: int = 2) -> list[int]:
    """Batch sampling with replacement; tasks are bound in the order of the trace."""
    rng, clock, jobs = random.Random(seed), Clock(), Jobs(rows)
    workers = [Worker(clock, jobs, False) for _ in range(machines)]

    def arrive(job: int) -> None:
        for _ in range(ratio * len(rows[job][2])):
            clock.at(clock.now + HOP, workers[rng.randrange(machines)].add, job, None)

    for job, (submit, _, _) in enumerate(rows):
        clock.at(submit, arrive, job)
    clock.run()
    return jobs.times()
