"""Random numbers that a test tells in advance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class ToldDice:
    """Instead of `Random`: gives the numbers that it is told, in their order, then `otherwise`, or 0 if
    a whole number is asked for. `bounds` are those that whole numbers were to be below."""

    def __init__(
        self, uniform: Iterable[float] = (), below: Iterable[int] = (), *, otherwise: float = 0.999
    ) -> None:
        self._uniform = list(uniform)
        self._below = list(below)
        self._otherwise = otherwise
        self.bounds: list[int] = []
        #: How many numbers between 0 and 1 were asked for.
        self.drawn = 0

    def uniform(self) -> float:
        self.drawn += 1
        return self._uniform.pop(0) if self._uniform else self._otherwise

    def below(self, bound: int) -> int:
        self.bounds.append(bound)
        return min(bound - 1, self._below.pop(0)) if self._below else 0

    def child(self, name: str) -> Any:
        return self
