"""Pods by the tasks and tries that they have in the world."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.worlds.kubernetes.tracked import TrackedPod


class PodIndex:
    def __init__(self) -> None:
        self._by_task: dict[tuple[str, int], TrackedPod] = {}
        self._by_try: dict[int, TrackedPod] = {}
        #: How many tasks jobs were submitted with; those with one are left out.
        self._sizes: dict[str, int] = {}

    def of_job(self, job: str, index: int = 0) -> TrackedPod | None:
        return self._by_task.get((job, index))

    def all_of_job(self, job: str) -> Iterator[TrackedPod]:
        for index in range(self._sizes.get(job, 1)):
            if (tracked := self._by_task.get((job, index))) is not None:
                yield tracked

    def has_others(self, tracked: TrackedPod) -> bool:
        """Whether the pod's job has other tasks, which may have ended."""
        return tracked.job in self._sizes

    def of_try(self, number: int) -> TrackedPod | None:
        return self._by_try.get(number)

    def give_job(self, tracked: TrackedPod, job: str) -> None:
        self._give_task(tracked, job, 0)

    def give_tasks(self, pods: list[TrackedPod], job: str) -> None:
        """Each the task with its index."""
        self._sizes[job] = len(pods)
        for index, tracked in enumerate(pods):
            self._give_task(tracked, job, index)

    def _give_task(self, tracked: TrackedPod, job: str, index: int) -> None:
        tracked.job, tracked.index = job, index
        self._by_task[job, index] = tracked

    def take_job(self, tracked: TrackedPod) -> str:
        """The pod has no job any more; returns the one it had."""
        job, tracked.job = tracked.job, ""
        self._by_task.pop((job, tracked.index), None)
        if job in self._sizes and not any(self.all_of_job(job)):
            del self._sizes[job]
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
