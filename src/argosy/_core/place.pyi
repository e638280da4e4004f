"""Placement under constraints: see core/place."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from argosy._core.clock import Budget
from argosy._core.random import Random

class PlacementOrder(IntEnum):
    GIVEN = 0
    CANDIDATES = 1

class PlacementRule(IntEnum):
    SCORED = 0
    FIRST_FIT = 1
    KUBE = 2
    HEARTBEAT = 3

class Placer:
    def __init__(
        self,
        free: NDArray[np.int64],
        capacity: NDArray[np.int64],
        smallest: NDArray[np.int64],
        requests: NDArray[np.int64],
        counts: NDArray[np.int32],
        apps: NDArray[np.int32],
        app_count: int,
        all_kinds: int,
    ) -> None: ...
    def allow(self, kind: int, mask: NDArray[np.uint8]) -> None: ...
    def rank(self, tiers: NDArray[np.int32]) -> None: ...
    def add_family(
        self, first_set: NDArray[np.int32], sets_of: NDArray[np.int32], sets: int
    ) -> None: ...
    def add_item(
        self,
        family: int,
        least: int,
        most: int,
        weight: float,
        outside: float,
        hard: bool,
        subject: NDArray[np.uint8],
        match: NDArray[np.uint8],
        gamma: NDArray[np.int32],
        both: NDArray[np.int32],
        other: NDArray[np.int32],
    ) -> None: ...
    def add_spread(
        self,
        family: int,
        least: int,
        most: int,
        weight: float,
        hard: bool,
        subject: NDArray[np.uint8],
        inside: NDArray[np.int32],
        subjects: int,
    ) -> None: ...
    def add_counter(
        self, family: int, is_spread: bool, match: NDArray[np.uint8], count: NDArray[np.int32]
    ) -> None: ...
    def add_choice(
        self,
        weight: float,
        hard: bool,
        alternatives: Sequence[
            Sequence[Sequence[tuple[int, bool, int, Sequence[tuple[int, int, int, bool]]]]]
        ],
        here: Sequence[NDArray[np.int32]],
    ) -> None: ...
    def run(
        self,
        sequence: Sequence[int],
        order: PlacementOrder,
        rule: PlacementRule,
        weights: tuple[float, float, float, float],
        random: Random,
        budget: Budget | None = None,
        thorough: bool = False,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
    def judge(
        self, kinds: NDArray[np.int32], machines: NDArray[np.int32]
    ) -> tuple[float, float, int, bool, bool]: ...
    def look(
        self, kind: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.uint8]]: ...
