"""Predicts when a job will end with a given number of workers: averages of past runs, linear
speed-up."""

from __future__ import annotations

from collections import defaultdict

from argosy.model.jobs import Job


class History:
    """Mean durations of ended activities, by program and phase."""

    def __init__(self) -> None:
        self._known: defaultdict[tuple[str | None, int], list[int]] = defaultdict(lambda: [0, 0])

    def learn(self, job: Job, phase: int, duration: int) -> None:
        activities = job.activities[phase]
        for program in (job.program, None):
            sums = self._known[program, phase]
            sums[0] += activities
            sums[1] += activities * duration

    def average(self, job: Job, phase: int) -> int | None:
        """The mean for the job's program, or for all programs if it has not run yet; None without any
        data."""
        for program in (job.program, None):
            if (program, phase) in self._known:
                activities, total = self._known[program, phase]
                return total // activities
        return None


class Workers:
    """A job's workers as its scheduler knows them, and their expected progress."""

    def __init__(self, job: Job) -> None:
        self.job = job
        #: Number of running workers that the job asked for; running extra workers.
        self.own = 0
        self.extras: list[int] = []
        #: Lower indices have already been used for extra workers.
        self.next_index = job.tasks
        self.phase = 0
        #: Worker-microseconds spent in the phase until `_since`.
        self._done = 0
        self._since = 0

    @property
    def count(self) -> int:
        return self.own + len(self.extras)

    @property
    def useful(self) -> int:
        """The most workers that would have something to do, in this phase or a later one."""
        return max(self.job.activities[self.phase :])

    def settle(self, now: int) -> None:
        """Must be called before the number of workers changes."""
        rate = min(self.count, self.job.activities[self.phase])
        self._done += rate * (now - self._since)
        self._since = now

    def next_phase(self, now: int) -> None:
        self.phase += 1
        self._done, self._since = 0, now

    def time_left(self, history: History, now: int) -> list[tuple[int, int]] | None:
        """Remaining work and largest useful number of workers, per phase; None without history for the
        current phase. Later phases without history are left out."""
        self.settle(now)
        left = []
        for number in range(self.phase, len(self.job.activities)):
            average = history.average(self.job, number)
            if average is None:
                if number == self.phase:
                    return None
                continue
            activities = self.job.activities[number]
            work = activities * average
            if number == self.phase:
                # A run that is slower than past ones still has something left to do.
                work = max(work - self._done, average)
            left.append((work, activities))
        return left


def time_with(left: list[tuple[int, int]], workers: int) -> int:
    """How long this many workers need for the remaining work."""
    return sum(work // min(workers, activities) for work, activities in left)


def best_start(left: list[tuple[int, int]], workers: int, most: int, t_task: int) -> int:
    """As `best_addition`, for a job whose `workers` are being decided on: the decision takes `t_task`
    longer per added worker, and nothing happens meanwhile."""
    best, earliest = 0, time_with(left, workers)
    added = 1
    while most > 0:
        added = min(added, most)
        end = t_task * added + time_with(left, workers + added)
        if end < earliest:
            best, earliest = added, end
        if added == most:
            break
        added *= 2
    return best


def best_addition(
    left: list[tuple[int, int]], workers: int, most: int, t_job: int, t_task: int
) -> int:
    """How many workers to add (1, 2, 4, … or `most`) for the earliest end; 0 if adding none is best.
    The decision takes `t_job + t_task x added`, during which the existing workers continue."""
    best, earliest = 0, time_with(left, workers)
    added = 1
    while most > 0:
        added = min(added, most)
        decision = t_job + t_task * added
        # Progress in the meantime counts for the current phase only.
        work, activities = left[0]
        meanwhile = min(work, min(workers, activities) * decision)
        then = [(work - meanwhile, activities), *left[1:]]
        end = decision + time_with(then, workers + added)
        if end < earliest:
            best, earliest = added, end
        if added == most:
            break
        added *= 2
    return best
