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
    """Tasks of one job and shape were placed, each on its machine with an expected running time of
    `estimate`, or lost their machines. A task's version increases with each change of its machine: even
    versions are placements."""

    tasks: TaskArray
    versions: NDArray[np.uint8]
    machines: MachineArray
    estimate: int
    shape: int
    #: The request of the shape, in the order of the cell's dimensions.
    request: tuple[int, ...]
    #: Number of tasks in the whole job.
    total: int
    #: When it was decided.
    since: int
    #: Sent as one message per task; otherwise as one for all.
    is_per_task: bool = False

    @property
    def messages(self) -> int:
        return len(self.tasks) if self.is_per_task else 1


class WaitUpdates(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Updates that were collected and are sent as one message."""

    updates: tuple[WaitUpdate, ...]


class EndsReported(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Machines report ended tasks: each with its estimate, shape and start time."""

    tasks: TaskArray
    machines: MachineArray
    estimates: NDArray[np.int64]
    shapes: ShapeArray
    started: NDArray[np.int64]


#: Inputs of wait views: see `argosy.cell.waits.feed`.
WaitReport: TypeAlias = WaitUpdate | EndsReported


class WaitColumns(msgspec.Struct, frozen=True, gc=False):
    """The contents of a wait view, or its entries for some jobs, as flat columns with one row per
    shape, job or task."""

    shapes: ShapeArray
    #: The requests of all shapes one after another, with one amount per dimension of the cell.
    requests: NDArray[np.int64]
    jobs: NDArray[np.int64]
    #: Per job: its number of tasks if known, whether all have ended, and its number of rows below.
    totals: NDArray[np.int64]
    over: NDArray[np.uint8]
    counts: NDArray[np.int64]
    #: Per task: its index in the job; the work it adds to its machine, that machine and the row of its
    #: shape, while it has one; and the version of its placement.
    indices: NDArray[np.uint32]
    work: NDArray[np.int64]
    machines: MachineArray
    task_shapes: NDArray[np.uint16]
    versions: NDArray[np.uint8]
    #: When each machine becomes free, in a view that tracks this.
    busy: NDArray[np.int64]


class AskWaits(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A restarted scheduler asks a peer for its view."""


class Waits(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The complete contents of the sender's view."""

    state: WaitColumns


class Digest(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A digest of the sender's whole view."""

    digest: int


class Digests(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Jobs that are not over in the sender's view, each with a digest of its entries."""

    jobs: NDArray[np.int64]
    digests: NDArray[np.uint64]


class Repair(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The sender's entries for some jobs. Unless it is an answer, the receiver replies with its own."""

    jobs: NDArray[np.int64]
    state: WaitColumns
    is_answer: bool


class Note(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A message defined by an engine: `data` is any JSON value."""

    kind: str
    data: Any = None


Message: TypeAlias = WaitUpdate | WaitUpdates | AskWaits | Waits | Digest | Digests | Repair | Note
