"""Expected waits: see core/waits."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy._core.random import Random

#: Shapes: numbers, requests. Jobs: numbers, totals, whether over, number of entries. Entries: indices,
#: work, machines, shapes, versions. Machines: busy-until times. See core/waits/wait_state.hpp.
_Columns: TypeAlias = tuple[
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.uint32],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.uint16],
    NDArray[np.uint8],
    NDArray[np.int64],
]

class WaitState:
    @property
    def jobs(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    def columns(self) -> _Columns: ...
    @staticmethod
    def from_columns(columns: _Columns) -> WaitState: ...

class WaitView:
    def __init__(
        self, published: bool = False, lag: int = 0, plain: bool = False, cost: int = 0
    ) -> None: ...
    @property
    def machines(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def blocked(self) -> int: ...
    def learn(self, capacity: NDArray[np.int64], open: NDArray[np.uint8]) -> None: ...
    def know_shape(self, shape: int, request: NDArray[np.int64]) -> None: ...
    def choose(
        self,
        tasks: NDArray[np.int64],
        total: int,
        shape: int,
        estimate: int,
        now: int,
        random: Random,
        set: int = 0,
        members: NDArray[np.uint8] | None = None,
        near: NDArray[np.uint8] | None = None,
        far: int = 0,
    ) -> tuple[NDArray[np.int32], NDArray[np.uint8], int, int, int, int]: ...
    def post_placed(
        self,
        due: int,
        now: int,
        tasks: NDArray[np.int64],
        versions: NDArray[np.uint8],
        machines: NDArray[np.int32],
        estimate: int,
        shape: int,
        since: int,
        is_per_task: bool = False,
    ) -> None: ...
    def post_ended(
        self,
        due: int,
        now: int,
        tasks: NDArray[np.int64],
        machines: NDArray[np.int32],
        estimates: NDArray[np.int64],
        shapes: NDArray[np.int32],
        started: NDArray[np.int64],
    ) -> None: ...
    def expect(self, job: int, total: int) -> None: ...
    def settle(self, now: int) -> None: ...
    def occupy(self, until: int) -> None: ...
    def record_times(self) -> None: ...
    def take_times(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def times_to_come(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def undo(self, tasks: NDArray[np.int64]) -> NDArray[np.uint8]: ...
    def empty(self, machine: int) -> None: ...
    def block(self, machine: int) -> None: ...
    def work(self) -> NDArray[np.int64]: ...
    def held(self) -> NDArray[np.int64]: ...
    @property
    def digest(self) -> int: ...
    def digests(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]: ...
    def differing(
        self, jobs: NDArray[np.int64], digests: NDArray[np.uint64]
    ) -> NDArray[np.int64]: ...
    def state(self, jobs: NDArray[np.int64] | None = None) -> WaitState: ...
    def join(self, state: WaitState) -> None: ...
