"""Where the tasks of a job are, by the id of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy.model.jobs import task_number

if TYPE_CHECKING:
    from argosy.host.host import Host


class JobWhereabouts:
    """Looks up jobs that are named by others. Ids are indexed when one is first asked for."""

    def __init__(self, host: Host) -> None:
        self._host = host
        #: The latest job of each id among the first `_indexed` jobs.
        self._numbers: dict[str, int] = {}
        self._indexed = 0

    def machines_of(self, job: str) -> list[int]:
        """The machines that tasks of the job hold."""
        jobs, cell = self._host.jobs, self._host.cell
        names = jobs.names
        for number in range(self._indexed, len(names)):
            self._numbers[names[number]] = number
        self._indexed = len(names)
        number = self._numbers.get(job, -1)
        if number < 0 or jobs.is_done(number):
            return []
        found = (cell.machine_of(task_number(number, at)) for at in range(jobs.counts[number]))
        return [machine for machine in found if machine is not None]
