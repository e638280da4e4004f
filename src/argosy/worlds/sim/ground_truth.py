"""What the simulator knows about each job and engines do not: how long its tasks will run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import Why
from argosy.model.tasks import by_job, indices_of
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.truth import SimulatedJob

#: A task that runs until stopped.
_ENDLESS = -1


class GroundTruth:
    """The running times of a job's tasks; a column is kept only if tasks differ."""

    __slots__ = ("_groups", "common")

    def __init__(self, made: SimulatedJob) -> None:
        self._groups: list[tuple[int, int, NDArray[np.int64] | int]] = []
        start = 0
        for group, truth in zip(made.job.groups, made.truth, strict=True):
            times: NDArray[np.int64] | int
            if len(truth.durations) > 1:
                times = np.array(truth.durations, np.int64)
            else:
                times = truth.durations[0] if truth.durations else _ENDLESS
            end = start + group.count
            self._groups.append((start, end, times))
            start = end
        #: The running time of all tasks, if it is the same.
        self.common: int | None = None
        times = self._groups[0][2]
        if len(self._groups) == 1 and isinstance(times, int):
            self.common = times

    def fill(self, tasks: TaskArray, times: NDArray[np.int64]) -> None:
        """Writes the running times of `tasks`, all of this job. Tasks of which nothing is known, because
        a user added them, run as long as the last one that is known."""
        if self.common is not None:
            times[:] = self.common
            return
        indices = indices_of(tasks)
        for start, end, of_group in self._groups:
            mine = (indices >= start) & (indices < end)
            times[mine] = of_group if isinstance(of_group, int) else of_group[indices[mine] - start]
        _, end, last = self._groups[-1]
        times[indices >= end] = last if isinstance(last, int) else last[-1]


class SimulatedMachines:
    """Machines that know when tasks end, so no reports are needed."""

    acts = False

    def __init__(self) -> None:
        self._truths: dict[int, GroundTruth] = {}

    def add(self, number: int, made: SimulatedJob) -> None:
        self._truths[number] = GroundTruth(made)

    def forget(self, jobs: Iterable[int]) -> None:
        for number in jobs:
            del self._truths[number]

    def common_running_time(self, job: int) -> int | None:
        truth = self._truths.get(job)
        # Workers of a finished job have nothing left to do.
        return 0 if truth is None else truth.common

    def running_times(self, tasks: TaskArray) -> NDArray[np.int64]:
        times = np.empty(len(tasks), np.int64)
        for number, where in by_job(tasks):
            if isinstance(where, slice):
                self._truths[number].fill(tasks, times)
                break
            part = times[where]
            self._truths[number].fill(tasks[where], part)
            times[where] = part
        return times

    def start(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None:
        raise AssertionError("simulated machines are not told of starts")

    def stop(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64], why: Why
    ) -> None:
        raise AssertionError("simulated machines are not told of stops")
