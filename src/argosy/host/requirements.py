"""What queued tasks require of a machine, as the runtime numbers it: machines steal only what they could
have been sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy._core import TaskRuntime
from argosy.cell import View
from argosy.host.job_table import JobTable
from argosy.model.effects import Probe
from argosy.model.jobs import TaskGroup
from argosy.model.tasks import by_job
from argosy.model.transactions import TaskArray

#: The number of requiring nothing.
_NOTHING = 0
#: No machine has this attribute.
_UNKNOWN = -1


class QueueRequirements:
    def __init__(self, runtime: TaskRuntime, view: View, jobs: JobTable) -> None:
        self._runtime = runtime
        self._view = view
        self._jobs = jobs
        self._numbers: dict[tuple[int, ...], int] = {(): _NOTHING}

    def of(self, tasks: TaskArray) -> Sequence[int]:
        """One number a task; none at all if no task requires anything."""
        numbers = np.zeros(len(tasks), np.int32)
        for job_number, where in by_job(tasks):
            job = self._jobs.job(job_number)
            if not any(group.requires for group in job.groups):
                continue
            rows = np.arange(len(tasks))[where]
            for group, mine in job.tasks_by_group(tasks[rows]):
                numbers[rows[np.isin(tasks[rows], mine)]] = self._number([group])
        return numbers.tolist() if numbers.any() else ()

    def of_probe(self, effect: Probe) -> int:
        """A probe fetches any of its tasks, or, without these, any of its job's: its machine must do for
        all of them."""
        job = self._jobs.job(effect.job)
        if not any(group.requires for group in job.groups):
            return _NOTHING
        if effect.tasks is None:
            return self._number(job.groups)
        return self._number([group for group, _ in job.tasks_by_group(effect.tasks)])

    def _number(self, groups: Sequence[TaskGroup]) -> int:
        attributes: set[int] = set()
        for group in groups:
            numbers = self._view.attribute_numbers(group.requires)
            attributes.update([_UNKNOWN] if numbers is None else numbers)
        key = tuple(sorted(attributes))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._runtime.add_requirement(key)
        return number
