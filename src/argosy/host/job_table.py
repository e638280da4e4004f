"""Every submitted job by number."""

from __future__ import annotations

from collections.abc import Iterable

from argosy.model.jobs import Job


class JobTable:
    """Jobs by number. For finished jobs, keeps only the columns that reports need."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        #: By job number: id, kind, owner and number of tasks.
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.owners: list[str] = []
        self.counts: list[int] = []
        #: By job number: whether it has tasks that run until stopped.
        self.is_endless: list[bool] = []
        #: The numbers of gangs.
        self.gangs: list[int] = []

    def __len__(self) -> int:
        return len(self.names)

    def add(self, job: Job) -> None:
        self._jobs[len(self.names)] = job
        if job.gang:
            self.gangs.append(len(self.names))
        self.names.append(job.id)
        self.kinds.append(job.kind)
        self.owners.append(job.owner)
        self.counts.append(job.tasks)
        self.is_endless.append(_runs_until_stopped(job))

    def replace(self, number: int, job: Job) -> None:
        """Replaces the specification of a job that is not finished."""
        self._jobs[number] = job
        self.counts[number] = job.tasks
        self.is_endless[number] = _runs_until_stopped(job)

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


def _runs_until_stopped(job: Job) -> bool:
    return any(group.endless for group in job.groups)
