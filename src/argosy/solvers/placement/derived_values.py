"""How the values of a program's variables follow from those made before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from argosy.solvers.placement.program import Values

DerivedValue: TypeAlias = Callable[[Values], float]


def reaches(columns: list[int], level: int) -> DerivedValue:
    return lambda values: float(sum(values[c] for c in columns) >= level - 1e-6)


def equals(columns: list[int], value: int) -> DerivedValue:
    return lambda values: float(round(sum(values[c] for c in columns)) == value)


def beyond(columns: list[int], free: int) -> DerivedValue:
    return lambda values: min(1.0, max(0.0, sum(values[c] for c in columns) - free))


def pays(columns: list[int], running: int, flag: int, if_set: bool) -> DerivedValue:
    def derived(values: Values) -> float:
        pays = (values[flag] > 0.5) == if_set
        return sum(values[c] for c in columns) + running if pays else 0.0

    return derived


def exceeds(columns: list[int], requests: list[list[int]], limits: list[int]) -> DerivedValue:
    def derived(values: Values) -> float:
        for d, limit in enumerate(limits):
            used = sum(values[c] * r[d] for c, r in zip(columns, requests, strict=True))
            if used > limit + 1e-6:
                return 1.0
        return 0.0

    return derived
