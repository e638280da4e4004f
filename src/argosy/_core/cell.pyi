"""The cell: see core/cell."""

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy._core.random import Random

class Why(IntEnum):
    NONE = 0
    NO_ROOM = 1
    STALE = 2
    MACHINE_UNKNOWN = 3
    MACHINE_GONE = 4
    MACHINE_DRAINING = 5
    RESOURCE_LIMIT = 6
    JOB_LIMIT = 7
    DUPLICATE = 8
    TOGETHER = 9
    NOT_CLAIMED = 10
    NOT_YOURS = 11
    FILTERED = 12
    PREEMPTED = 13
    ATTEMPTS = 14
    SCHEDULER_LOST = 15
    PRECEDENCE_LIMIT = 16
    ENDED = 17
    QUEUE_FULL = 18
    NOT_ASSUMED = 19
    MOVED = 20
    RELEASED = 21
    CANCELLED = 22
    FAILED = 23
    NOT_OFFERED = 24
    BEHIND = 25

class Rule(IntEnum):
    FIRST = 0
    BEST = 1
    WORST = 2
    SMALLEST_KEY = 3
    SAMPLE = 4

#: Machines, versions, machines looked at, those with room, those without by reason; then, if there are
#: any, the nearest miss and the best two scores.
FindAnswer: TypeAlias = tuple[
    NDArray[np.int32],
    NDArray[np.uint32],
    int,
    int,
    list[int],
    tuple[int, int, int, bool] | None,
    tuple[int, int, int] | None,
]

class CellView:
    @property
    def dimensions(self) -> int: ...
    @property
    def machines(self) -> int: ...
    def is_up(self, machine: int) -> bool: ...
    def is_draining(self, machine: int) -> bool: ...
    def takes_claims(self) -> NDArray[np.uint8]: ...
    def free(self, machines: NDArray[np.int32] | None = None) -> NDArray[np.int64]: ...
    def capacity(self, machines: NDArray[np.int32] | None = None) -> NDArray[np.int64]: ...
    def versions(self, machines: NDArray[np.int32] | None = None) -> NDArray[np.uint32]: ...
    def sequences(self, machines: NDArray[np.int32] | None = None) -> NDArray[np.uint32]: ...
    def used_total(self) -> list[int]: ...
    def capacity_total(self) -> list[int]: ...
    def shape(
        self,
        request: Sequence[int],
        tags: Sequence[int],
        precedence: int,
        beyond: Sequence[tuple[int, int]] = ...,
    ) -> int: ...
    def shape_beyond(self, shape: int) -> tuple[int, int]: ...
    def shape_parts(self, shape: int) -> tuple[list[int], list[int], int]: ...
    def tag_count(self, tag: int, machine: int) -> int: ...
    def set_tag_count(self, tag: int, set: int) -> int: ...
    def sets_of(self, machine: int) -> list[int]: ...
    def with_attributes(self, attributes: Sequence[int]) -> NDArray[np.uint64]: ...
    def set_members(self, set: int) -> NDArray[np.uint64]: ...
    def with_tag(self, tag: int, least: int, most: int) -> NDArray[np.uint64]: ...
    def in_sets_with_tag(
        self, tag: int, sets: NDArray[np.int32], least: int, most: int
    ) -> NDArray[np.uint64]: ...
    def find(
        self,
        shape: int,
        count: int,
        rule: Rule,
        random: Random,
        within: NDArray[np.uint64] | None = None,
        keys: NDArray[np.int64] | None = None,
        step: int = 0,
        needs_room: bool = True,
        per_machine: int = 0,
        steps: NDArray[np.int64] | None = None,
        adjust: NDArray[np.int64] | None = None,
    ) -> FindAnswer: ...
    # Machines and versions alone if there is a machine for each task.
    def find_plainly(
        self, shape: int, count: int, rule: Rule, random: Random
    ) -> tuple[NDArray[np.int32], NDArray[np.uint32]] | FindAnswer: ...

class CellSnapshot(CellView):
    def evictable(self, precedence: int) -> NDArray[np.int64]: ...
    def victims_for(self, shape: int, precedence: int) -> NDArray[np.int64]: ...
    @property
    def lowest_precedence(self) -> int: ...
    def most_precedence(self, scheduler: int) -> int: ...
    def usage(self, scheduler: int) -> tuple[list[int], int, int]: ...
    def tagged_claims_on(
        self, machines: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...

class AuditFailure(AssertionError): ...

#: Verdicts by claim, evictions, machines, and what was not confirmed, forgotten and released; each only
#: if it says something.
CommitAnswer: TypeAlias = tuple[
    tuple[
        NDArray[np.bool_],
        NDArray[np.uint8],
        NDArray[np.int8],
        NDArray[np.int64],
        list[int],
    ]
    | None,
    tuple[NDArray[np.int64], NDArray[np.int32]] | None,
    NDArray[np.int32] | None,
    tuple[list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, int]]] | None,
]

class Cell(CellView):
    def __init__(self, dimensions: int, sets: int) -> None: ...
    def evictable(self, precedence: int) -> NDArray[np.int64]: ...
    def victims_for(self, shape: int, precedence: int) -> NDArray[np.int64]: ...
    @property
    def lowest_precedence(self) -> int: ...
    def snapshot(self) -> CellSnapshot: ...
    @property
    def transaction(self) -> int: ...
    def fits_since(
        self,
        transaction: int,
        shape: int,
        bound: int,
        within: NDArray[np.uint64] | None = None,
    ) -> bool: ...
    def begin(self) -> None: ...
    def add_machines(
        self,
        capacity: NDArray[np.int64],
        sets: Sequence[Sequence[int]],
        attributes: Sequence[Sequence[int]],
    ) -> None: ...
    def drain(self, machine: int, draining: bool) -> None: ...
    def remove_machine(self, machine: int) -> None: ...
    def revive(self, machine: int) -> None: ...
    def resize(self, machine: int, capacity: Sequence[int]) -> None: ...
    def relabel(self, machine: int, sets: Sequence[int], attributes: Sequence[int]) -> bool: ...
    def mark(self, attribute: int, bitmap: NDArray[np.uint64], is_given: bool) -> None: ...
    def grow(self, resource: int) -> None: ...
    def set_devices(self, dimension: int) -> None: ...
    def claim_devices(self, task: int) -> int: ...
    def add_sets(self, count: int) -> None: ...
    def capacity_ever(self) -> list[int]: ...
    def check(
        self,
        scheduler: int,
        tasks: NDArray[np.int64] | None,
        machines: NDArray[np.int32] | None,
        shapes: NDArray[np.int32] | None,
        versions: NDArray[np.uint32] | None,
        gangs: NDArray[np.int32] | None,
        alternatives: NDArray[np.int32] | None,
        confirms: NDArray[np.int64] | None,
        forgets: NDArray[np.int64] | None,
        releases: NDArray[np.int64] | None,
    ) -> None: ...
    def commit(
        self,
        scheduler: int,
        tasks: NDArray[np.int64] | None,
        machines: NDArray[np.int32] | None,
        shapes: NDArray[np.int32] | None,
        versions: NDArray[np.uint32] | None,
        gangs: NDArray[np.int32] | None,
        alternatives: NDArray[np.int32] | None,
        confirms: NDArray[np.int64] | None,
        forgets: NDArray[np.int64] | None,
        releases: NDArray[np.int64] | None,
        atomic: bool,
        coarse: bool,
        preempt: bool,
        move: bool,
        assume: bool,
        by_claims: bool,
        is_begun: bool,
    ) -> CommitAnswer: ...
    def end(self, tasks: NDArray[np.int64]) -> list[int]: ...
    def add_scheduler(self) -> int: ...
    def set_limits(
        self, scheduler: int, resources: Sequence[int], jobs: int, precedence: int
    ) -> None: ...
    def most_precedence(self, scheduler: int) -> int: ...
    def usage(self, scheduler: int) -> tuple[list[int], int, int]: ...
    @property
    def claims(self) -> int: ...
    def claim(self, task: int) -> tuple[int, int, int, int]: ...
    def is_assumed(self, task: int) -> bool: ...
    def assumed(self) -> NDArray[np.int64]: ...
    def set_audited(self, audited: bool) -> None: ...
    def claims_on(self, machine: int) -> NDArray[np.int64]: ...
    def tagged_claims_on(
        self, machines: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
    def audit(self) -> list[str]: ...

DrawnTuple: TypeAlias = tuple[
    NDArray[np.int32], NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64], int, list[int]
]

class MachineDraw:
    def __init__(self, members: NDArray[np.int32]) -> None: ...
    @property
    def members(self) -> int: ...
    def draw(
        self,
        view: CellView,
        request: Sequence[int],
        size: int,
        random: Random,
        most: int = 0,
        rounds: int = 0,
        is_cut: bool = False,
        reserved: NDArray[np.int32] | None = None,
        amounts: NDArray[np.int64] | None = None,
    ) -> DrawnTuple: ...
