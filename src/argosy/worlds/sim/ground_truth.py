"""What the simulator knows about each job and engines do not: how long its tasks will run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import Why
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.truth import SimulatedJob

#: A task that runs until stopped.
_ENDLESS = -1


def running_times(made: SimulatedJob) -> tuple[int, ...]:
    """How long tasks of the job run: one time for all, or one for each; none if they run until
    stopped."""
    if len(made.truth) == 1:
        return made.truth[0].durations
    times: list[int] = []
    for group, truth in zip(made.job.groups, made.truth, strict=True):
        durations = truth.durations or (_ENDLESS,)
        times.extend(durations if len(durations) > 1 else durations * group.count)
    return tuple(times)


class SimulatedMachines:
    """Machines that need not be told anything: the runtime knows when tasks end."""

    acts = False

    def start(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None:
        raise AssertionError("simulated machines are not told of starts")

    def stop(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64], why: Why
    ) -> None:
        raise AssertionError("simulated machines are not told of stops")
