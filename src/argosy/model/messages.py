"""Messages between schedulers, and from machines to wait views.

Every message is a plain value, so that peers may be in one process or on several computers. Third-party
engines send a `Note`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.transactions import MachineArray, ShapeArray, TaskArray


class WaitUpdate(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Tasks of one job and shape were placed, each on its machine and expected to run for `estimate`; or
    lost their places. `versions` count up with each change of a task's place: even ones are placements.
    """

    tasks: TaskArray
    versions: NDArray[np.uint8]
    machines: MachineArray
    estimate: int
    shape: int
    #: What a task of the shape asks for, in the order of the cell's dimensions.
    request: tuple[int, ...]
    #: How many tasks the job has in all.
    total: int
    #: When it was decided.
    since: int
    #: Sent as one message for each task; otherwise as one for all.
    is_per_task: bool = False

    @property
    def messages(self) -> int:
        return len(self.tasks) if self.is_per_task else 1


class EndsReported(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Machines report tasks that ended: the estimate each came with, its shape, and when it started."""

    tasks: TaskArray
    machines: MachineArray
    estimates: NDArray[np.int64]
    shapes: ShapeArray
    started: NDArray[np.int64]


#: What wait views are fed with: see `argosy.cell.waits.feed`.
WaitReport: TypeAlias = WaitUpdate | EndsReported


class WaitColumns(msgspec.Struct, frozen=True, gc=False):
    """What a wait view knows, or of some jobs: flat columns, one row a shape, a job or a task."""

    shapes: ShapeArray
    #: As many amounts for each shape as the cell has dimensions, one shape after the other.
    requests: NDArray[np.int64]
    jobs: NDArray[np.int64]
    #: Of each job: its tasks if somebody said how many, whether all have ended, and its rows below.
    totals: NDArray[np.int64]
    over: NDArray[np.uint8]
    counts: NDArray[np.int64]
    #: Of each task: its index in the job; the work it adds to its machine, while it has one, that
    #: machine and the row of its shape; and the version of its place.
    indices: NDArray[np.uint32]
    work: NDArray[np.int64]
    machines: MachineArray
    task_shapes: NDArray[np.uint16]
    versions: NDArray[np.uint8]
    #: The times until which machines are busy, of a view that keeps those.
    busy: NDArray[np.int64]


class AskWaits(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A scheduler that starts again asks a peer for its view."""


class Waits(msgspec.Struct, frozen=True, gc=False, tag=True):
    """All that the sender's view holds."""

    state: WaitColumns


class Digest(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Of all that the sender knows."""

    digest: int


class Digests(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The jobs that are not over in the sender's view, each with the digest of its entries."""

    jobs: NDArray[np.int64]
    digests: NDArray[np.uint64]


class Repair(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The sender's entries of some jobs. One that is not an answer wants one."""

    jobs: NDArray[np.int64]
    state: WaitColumns
    is_answer: bool


class Note(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A message of an engine's own: `data` is anything that JSON can say."""

    kind: str
    data: Any = None


Message: TypeAlias = WaitUpdate | AskWaits | Waits | Digest | Digests | Repair | Note
