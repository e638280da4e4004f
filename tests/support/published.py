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
#: Probes of a short job of Eagle's, at least.
LEAST_PROBES = 20

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
    """Tasks of each job that have not started, and when its last task ended."""

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
    """What is random: a job's scheduler, and the choice among equally busy machines."""

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


class Probes:
    """What is random in Sparrow and Eagle: the machines that are probed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self, job: int, machines: Sequence[int], count: int) -> list[int]:
        return [self.random.choice(machines) for _ in range(count)]


def sparrow(rows: Sequence[JobRow], machines: int, probes: Probes, *, ratio: int = 2) -> list[int]:
    """Batch sampling with replacement; tasks are bound in the order of the trace."""
    clock, jobs = Clock(), Jobs(rows)
    workers = [Worker(clock, jobs, False) for _ in range(machines)]

    def arrive(job: int) -> None:
        for machine in probes.draw(job, range(machines), ratio * len(rows[job][2])):
            clock.at(clock.now + HOP, workers[machine].add, job, None)

    for job, (submit, _, _) in enumerate(rows):
        clock.at(submit, arrive, job)
    clock.run()
    return jobs.times()


def yaq_d(rows: Sequence[JobRow], machines: int, beat: int, *, seed: int) -> list[int]:
    """The least work as of the last beat, less what the running task has done since it started, plus a
    draw of up to one beat; shortest remaining job first at the workers."""
    rng, clock, jobs = random.Random(seed), Clock(), Jobs(rows)
    workers = [Worker(clock, jobs, True) for _ in range(machines)]
    work, told = [0] * machines, [0] * machines
    running: list[tuple[int, int] | None] = [None] * machines
    beats = -1

    def look() -> None:
        """Beats that fell since the last change saw what has been so since then."""
        nonlocal beats
        if clock.now // beat != beats:
            beats = clock.now // beat
            told[:] = work

    def arrive(job: int) -> None:
        look()
        _, estimate, durations = rows[job]
        waits = []
        for machine in range(machines):
            wait = told[machine]
            if (now := running[machine]) is not None:
                wait = max(0, 2 * HOP + wait - min(clock.now - now[0], now[1]))
            waits.append(wait + rng.randrange(beat + 1))
        for _ in durations:
            machine = min(range(machines), key=waits.__getitem__)
            waits[machine] += estimate
            work[machine] += estimate
            clock.at(clock.now + HOP, workers[machine].add, job, None)

    def end(machine: int, estimate: int) -> None:
        look()
        work[machine] -= estimate
        running[machine] = None

    def started(machine: int) -> Callable[[int, int, int], None]:
        def report(job: int, start: int, over: int) -> None:
            running[machine] = (start, rows[job][1])
            clock.at(over, end, machine, rows[job][1])

        return report

    for machine, worker in enumerate(workers):
        worker.on_start = started(machine)
    for job, (submit, _, _) in enumerate(rows):
        clock.at(submit, arrive, job)
    clock.run()
    return jobs.times()


class EagleWorker:
    """Sticky probes of short jobs, and long tasks; [job, delay so far] each."""

    def __init__(self, clock: Clock, jobs: Jobs, cutoff: int, remaining: list[int]) -> None:
        self.clock, self.jobs, self.cutoff, self.remaining = clock, jobs, cutoff, remaining
        self.queue: list[list[int]] = []
        self.is_free = True
        self.runs_long = False
        self.started: tuple[int, int] | None = None
        self.long_work = 0
        self.stamp = -1
        self.state: list[bool] = []

    def is_long(self, job: int) -> bool:
        return self.jobs.rows[job][1] > self.cutoff

    @property
    def has_long(self) -> bool:
        return self.runs_long or any(self.is_long(job) for job, _ in self.queue)

    def add(self, job: int) -> None:
        self.queue.append([job, 0])
        if self.is_free:
            self.next()

    def end(self, job: int) -> None:
        if self.is_long(job):
            self.long_work -= self.jobs.rows[job][1]
        self.started = None
        self.next()

    def next(self) -> None:
        self.runs_long = False
        self.queue = [entry for entry in self.queue if self.remaining[entry[0]] != -1]
        self.is_free = not self.queue
        if self.is_free:
            return
        at = self.choose()
        job = self.queue[at][0]
        estimate, left = self.jobs.rows[job][1], self.jobs.unstarted[job]
        answered = self.clock.now + 2 * HOP
        if not left:
            self.queue.pop(at)
            self.clock.at(answered, self.next)
            return
        self.runs_long = self.is_long(job)
        if self.runs_long:
            self.started = (self.clock.now, estimate)
            self.queue.pop(at)
        else:
            for entry in self.queue[:at]:
                entry[1] += estimate
        over = answered + left.pop(0)
        self.jobs.done[job] = max(self.jobs.done[job], over)
        self.clock.at(over, self.end, job)
        self.clock.at(answered, self.update, job)

    def update(self, job: int) -> None:
        self.remaining[job] -= self.jobs.rows[job][1]
        if not self.jobs.unstarted[job]:
            self.remaining[job] = -1

    def choose(self) -> int:
        best, least, slack = 0, None, None
        for at, (job, delay) in enumerate(self.queue):
            estimate, is_long = self.jobs.rows[job][1], self.is_long(job)
            if is_long and at == 0:
                return 0
            fits = slack is None or estimate <= slack
            if (least is None or self.remaining[job] < least) and fits:
                best, least = at, self.remaining[job]
                if is_long:
                    return best
            if not is_long:
                room = SLACK * estimate - delay
                slack = room if slack is None else min(slack, room)
        return best


def eagle(
    rows: Sequence[JobRow], machines: int, cutoff: int, apart: int, *, seed: int
) -> list[int]:
    """The first `apart` machines are closed to long jobs."""
    rng, clock, jobs = random.Random(seed), Clock(), Jobs(rows)
    remaining = [estimate * len(durations) for _, estimate, durations in rows]
    workers = [EagleWorker(clock, jobs, cutoff, remaining) for _ in range(machines)]

    def long_arrives(job: int) -> None:
        _, estimate, durations = rows[job]
        waits = {}
        for machine in range(apart, machines):
            worker = workers[machine]
            waits[machine] = worker.long_work
            if worker.started is not None:
                done = min(clock.now - worker.started[0], worker.started[1])
                waits[machine] += 2 * HOP - done
        for _ in durations:
            machine = min(waits, key=lambda m: (waits[m], m))
            waits[machine] += estimate
            workers[machine].long_work += estimate
            clock.at(clock.now + HOP, long_comes, machine, job)

    def long_comes(machine: int, job: int) -> None:
        worker = workers[machine]
        worker.stamp, worker.state = clock.now, [other.long_work > 0 for other in workers]
        worker.add(job)

    def short_arrives(job: int) -> None:
        wanted = max(2 * len(rows[job][2]), LEAST_PROBES)
        chosen = [rng.randrange(machines) for _ in range(wanted)]
        told: EagleWorker | None = None
        for again in (1, 2):
            refused = 0
            for machine in chosen:
                worker = workers[machine]
                if worker.has_long:
                    refused += 1
                else:
                    clock.at(clock.now + HOP + again * HOP // 2, worker.add, job)
                # Whoever was asked says what it knows, also those that accept.
                if worker.stamp > (told.stamp if told else -1):
                    told = worker
            if not refused:
                return
            assert told is not None
            free = [machine for machine in range(machines) if not told.state[machine]]
            chosen = [rng.choice(free) for _ in range(refused)]
        # Probes refused twice go where long jobs may not.
        for _ in chosen:
            clock.at(clock.now + 5 * HOP // 2, workers[rng.randrange(apart)].add, job)

    for job, (submit, estimate, _) in enumerate(rows):
        clock.at(submit, long_arrives if estimate > cutoff else short_arrives, job)
    clock.run()
    return jobs.times()
