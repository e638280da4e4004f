"""Skips attempts that are known to fail.

In a full cell there are millions of attempts between two tasks that find room. A task that found no
room finds none until some is freed: until then each attempt takes its time, fails, and its task
goes to the end of a queue. So the queues at a later instant can be computed from the queues now,
without an event per attempt. `until` catches up with an instant; in virtual time, the result is the
same as with every single attempt.
"""

from __future__ import annotations

from collections import Counter

from argosy.engines.kube.queues import QueuedPod, ReadyQueue, RetryQueue
from argosy.model.effects import EarlierTime


class VainAttempts:
    """Accounts for skipped attempts, starting at a time when no task was being decided on."""

    def __init__(self, ready: ReadyQueue, waiting: RetryQueue, t_attempt: int, retry: int) -> None:
        self._ready = ready
        self._waiting = waiting
        self._t_attempt = t_attempt
        self._retry = retry
        #: When the next skipped attempt may start; None while attempts are really made.
        self.since: int | None = None
        #: The largest number of attempts of any task.
        self.most = 0
        #: Time of attempts not yet reported by a `Think`: in total, and by job.
        self._unreported = 0
        self._unreported_by_job: Counter[int] = Counter()
        self._passed = 0

    def until(self, now: int) -> tuple[QueuedPod, int] | None:
        """Accounts for all attempts that start before `now`; later ones are really made. Returns the
        task in progress at `now` and when its attempt ends; None if the scheduler is free."""
        at, self.since = self.since, None
        assert at is not None
        ready, waiting, t_attempt = self._ready, self._waiting, self._t_attempt
        while True:
            waiting.move_due(min(at, now), ready)
            if not ready:
                if waiting.due >= now:
                    return None
                at = waiting.due
                continue
            if at >= now:
                return None
            pod = ready.pop()
            self.tried(pod)
            self._passed += 1
            end = at + t_attempt
            self._report_later(pod.job, min(end, now) - at)
            if end > now:
                waiting.move_due(now, ready)
                return pod, end
            self.put_aside(pod, end)
            at = end

    def tried(self, pod: QueuedPod) -> None:
        pod.attempts += 1
        if pod.attempts > self.most:
            self.most = pod.attempts

    def put_aside(self, pod: QueuedPod, now: int) -> None:
        pod.failed_at = now
        if self._retry:
            self._waiting.add(pod, now)
        else:
            self._ready.put_back(pod)

    def earliest_attempt(self, number: int) -> int:
        """A lower bound on when any task's attempt number `number` can start."""
        assert self.since is not None
        return self.since + (number - self.most - 1) * (self._t_attempt + self._retry)

    def _report_later(self, job: int, time: int) -> None:
        self._unreported += time
        self._unreported_by_job[job] += time

    def take_unreported(self, job: int) -> EarlierTime | None:
        """The unreported time, in total and on a job; it counts as reported from now on."""
        total, self._unreported = self._unreported, 0
        on_job = self._unreported_by_job.pop(job, 0)
        return EarlierTime(total, on_job) if total or on_job else None

    def take_passed(self) -> int:
        """Number of attempts skipped since the last call."""
        passed, self._passed = self._passed, 0
        return passed

    def recount(self) -> None:
        """Recomputes the largest number of attempts among remaining tasks."""
        pods = [pod for pod in self._ready if isinstance(pod, QueuedPod)]
        self.most = max((pod.attempts for pod in (*pods, *self._waiting)), default=0)
