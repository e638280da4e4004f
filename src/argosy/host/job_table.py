"""Every submitted job by number."""

from __future__ import annotations

from collections.abc import Iterable

from argosy.model.jobs import Job


class JobTable:
    """Jobs by number. For finished jobs, keeps only the columns that reports need."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        #: By job number: id, kind and number of tasks.
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.counts: list[int] = []
        #: Jobs with tasks that run until stopped.
        self.endless_jobs = 0

    def __len__(self) -> int:
        return len(self.names)

    def add(self, job: Job) -> None:
        self._jobs[len(self.names)] = job
        self.names.append(job.id)
        self.kinds.append(job.kind)
        self.counts.append(job.tasks)
        for group in job.groups:
            if group.endless:
                self.endless_jobs += 1
                break

    def replace(self, number: int, job: Job) -> None:
        """Replaces the specification of a job that is not finished."""
        self._jobs[number] = job
        self.counts[number] = job.tasks

    def forget(self, numbers: Iterable[int]) -> None:
        """Drops finished jobs, which are not looked up again."""
        for number in numbers:
            del self._jobs[number]

    def name(self, number: int) -> str:
        return self.names[number]

    def is_done(self, number: int) -> bool:
        return number not in self._jobs

    def job(self, number: int) -> Job:
        """A job that is not finished."""
        return self._jobs[number]
