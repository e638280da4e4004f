"""What schedulers tell each other about expected waits, in a form that worlds understand."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.transactions import MachineArray, TaskArray


class WaitUpdate(msgspec.Struct, frozen=True):
    """Tasks of one job and shape were placed, each on its machine and expected to run for `estimate`; or
    lost their places. `versions` count up with each change of a task's place: even ones are placements.
    """

    tasks: TaskArray
    versions: NDArray[np.uint8]
    machines: MachineArray
    estimate: int
    shape: int
    #: How many tasks the job has in all.
    total: int
    #: When it was decided.
    since: int
    #: A message for each task, sent one every `spacing`; otherwise one for all.
    is_per_task: bool = False
    spacing: int = 0

    @property
    def messages(self) -> int:
        return len(self.tasks) if self.is_per_task else 1
