"""Results of a paper's points, made up: a number for every name that a claim or a figure asks for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Generic, TypeAlias, TypeVar

from argosy.papers.experiment import DONE, ExperimentPoint, Findings, PointResult, digest
from argosy.papers.paper import Paper

V = TypeVar("V")
#: What is measured at a point under a name.
Numbers: TypeAlias = Callable[[ExperimentPoint, str], float]
Lists: TypeAlias = Callable[[ExperimentPoint, str], list[float]]
#: How many numbers a made-up list has.
LENGTH = 101


def drawn(*parts: object) -> float:
    """From 0 to 1, the same for the same parts everywhere."""
    data = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(data[:6], "big") / 2**48


def identity(point: ExperimentPoint) -> tuple[object, ...]:
    return (point.figure, sorted(point.parameters.items()), point.seed)


class MadeUpByName(dict[str, V], Generic[V]):
    """Something for every name that is asked for. Goes through the names that were asked for before,
    of any point."""

    def __init__(self, make: Callable[[str], V], names: dict[str, None]) -> None:
        super().__init__()
        self._make = make
        self._names = names

    def __missing__(self, name: str) -> V:
        self._names[name] = None
        self[name] = self._make(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._names))

    def get(self, name: str, default: Any = None) -> V:
        return self[name]


class MadeUp:
    """Results of a paper's points. Some readers go through all names that a result has: they are those
    that are asked for of the points with the first seed."""

    def __init__(self, paper: Paper, scale: str) -> None:
        self._points = paper.plan(scale, paper.figures)
        self._values: dict[str, None] = {}
        self._series: dict[str, None] = {}
        points = [point for point in self._points if point.seed == 1]
        first = self.findings(in_range(0.5, 400.0), rising(0.5, 400.0), points)
        paper.claims(first, paper.figures)
        paper.draw(first, paper.figures)

    def findings(
        self, numbers: Numbers, lists: Lists, points: Sequence[ExperimentPoint] | None = None
    ) -> Findings:
        points = self._points if points is None else points
        results = {
            digest(point): PointResult(
                MadeUpByName(
                    lambda name, at=point: 1.0 if name == DONE else numbers(at, name), self._values
                ),
                MadeUpByName(lambda name, at=point: lists(at, name), self._series),
            )
            for point in points
        }
        return Findings(points, results)


def in_range(low: float, high: float) -> Numbers:
    """Every number is another one."""

    def make(point: ExperimentPoint, name: str) -> float:
        return round(low + (high - low) * drawn(*identity(point), name), 6)

    return make


def rising(low: float, high: float) -> Lists:
    """Every list rises in another way."""

    def make(point: ExperimentPoint, name: str) -> list[float]:
        stream = Random(int(2**48 * drawn(*identity(point), name)))
        steps = [stream.random() for _ in range(LENGTH)]
        total, reached, found = sum(steps), 0.0, []
        for step in steps:
            reached += step
            found.append(round(low + (high - low) * reached / total, 6))
        return found

    return make


class Trend:
    """A law that numbers follow: each is a power of the point's parameters, times a factor for each word
    among them. Drawn from a seed: some are alike for all that is measured, some level, some zero."""

    def __init__(self, seed: int) -> None:
        stream = Random(seed)
        self._seed = seed
        self._sizes = stream.choice(
            [(0.0,), (1.0,), (0.0, 1.0), (1e-3, 0.3), (0.3, 1.0), (1e-3, 1e3)]
        )
        self._one_size = stream.random() < 0.3
        self._one_law = stream.random() < 0.5
        self._steepness = stream.choice([0.0, 0.05, 0.3, 1.0, 2.0])
        self._contrast = stream.choice([0.0, 0.05, 0.3, 1.0, 3.0])

    def number(self, point: ExperimentPoint, name: str) -> float:
        law = "" if self._one_law else name
        power = self._contrast * self._between(-1, 1, "figure", point.figure, law)
        for key, value in point.parameters.items():
            if isinstance(value, str):
                power += self._contrast * self._between(-1, 1, key, value, law)
            elif value > 0:
                steepness = round(self._between(-1, 1, key, law))
                power += self._steepness * steepness * math.log(value)
        return self._size("" if self._one_size else name) * math.exp(max(-40.0, min(power, 40.0)))

    def list(self, point: ExperimentPoint, name: str) -> list[float]:
        most = self.number(point, name)
        bend = self._between(0.2, 3, "bend", name if self._one_law else (name, *identity(point)))
        return [most * ((at + 1) / LENGTH) ** bend for at in range(LENGTH)]

    def _between(self, low: float, high: float, *parts: object) -> float:
        return low + (high - low) * drawn(self._seed, *parts)

    def _size(self, name: str) -> float:
        share = drawn(self._seed, "size", name)
        if len(self._sizes) == 1:
            return self._sizes[0]
        low, high = self._sizes
        return float(round(share)) if low == 0 else low * (high / low) ** share


def between(first: Trend, second: Trend, share: float) -> tuple[Numbers, Lists]:
    """A share of the way from one law to another."""

    def number(point: ExperimentPoint, name: str) -> float:
        a, b = first.number(point, name), second.number(point, name)
        return a + share * (b - a)

    def many(point: ExperimentPoint, name: str) -> list[float]:
        pairs = zip(first.list(point, name), second.list(point, name), strict=True)
        return [a + share * (b - a) for a, b in pairs]

    return number, many
