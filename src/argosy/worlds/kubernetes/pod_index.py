"""Pods by the jobs and tries that they have in the world."""

from __future__ import annotations

from argosy.worlds.kubernetes.tracked import TrackedPod


class PodIndex:
    def __init__(self) -> None:
        self._by_job: dict[str, TrackedPod] = {}
        self._by_try: dict[int, TrackedPod] = {}

    def of_job(self, job: str) -> TrackedPod | None:
        return self._by_job.get(job)

    def of_try(self, number: int) -> TrackedPod | None:
        return self._by_try.get(number)

    def give_job(self, tracked: TrackedPod, job: str) -> None:
        tracked.job = job
        self._by_job[job] = tracked

    def take_job(self, tracked: TrackedPod) -> str:
        """The pod has no job any more; returns the one it had."""
        job, tracked.job = tracked.job, ""
        self._by_job.pop(job, None)
        return job

    def give_try(self, tracked: TrackedPod, number: int) -> None:
        self.take_try(tracked)
        tracked.number = number
        self._by_try[number] = tracked

    def take_try(self, tracked: TrackedPod) -> int | None:
        """The pod has no try any more; returns the one it had."""
        number, tracked.number = tracked.number, None
        if number is not None:
            self._by_try.pop(number, None)
        return number
