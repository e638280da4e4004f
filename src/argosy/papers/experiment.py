"""Points of experiments: run on all processors, saved in one file each, and never run twice.

A point contains everything its result depends on, except the version of Argosy. The state directory has
a JSON file per finished point, written whole or not at all, so an interrupted sweep continues where it
stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from argosy.experiments.pool import Failure, uninterrupted, unwrap, worker_pool
from argosy.model.errors import ArgosyError
from argosy.records.files import write_whole
from argosy.version import __version__

Parameter: TypeAlias = str | int | float
#: What was done of what a point was to do, from 0 to 1, for example the share of containers placed;
#: points without it are done if they have a result.
DONE: Final = "done"
#: How often progress is reported while points are running.
_TICK_SECONDS: Final = 0.2


class ExperimentPoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of an experiment. A figure may be drawn from another figure's points."""

    paper: str
    figure: str
    parameters: dict[str, Parameter]
    seed: int
    #: The name of the point's scale, such as ``quick`` or ``full``.
    scale: str

    def __str__(self) -> str:
        said = ", ".join(f"{name} {value}" for name, value in self.parameters.items())
        return f"figure {self.figure} ({said}, seed {self.seed})"


class PointResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The measurements of one point: numbers by name, such as ``batch.wait``, and lists of numbers."""

    values: dict[str, float]
    series: dict[str, list[float]] = {}

    def __getitem__(self, name: str) -> float:
        return self.values[name]


Runner: TypeAlias = Callable[[ExperimentPoint], PointResult]


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    argosy: str
    point: ExperimentPoint
    result: PointResult


def digest(point: ExperimentPoint) -> str:
    """Equal exactly for equal points under the same version of Argosy."""
    whole = msgspec.json.encode((__version__, point), order="deterministic")
    return hashlib.sha256(whole).hexdigest()[:24]


class Store:
    """Results of finished points, as files in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, point: ExperimentPoint) -> Path:
        return self.directory / f"{point.figure}-{digest(point)}.json"

    def read(self, point: ExperimentPoint) -> PointResult | None:
        """None for a point that is not finished; a damaged file counts as missing."""
        with suppress(FileNotFoundError, msgspec.DecodeError):
            kept = msgspec.json.decode(self.path(point).read_bytes(), type=_Kept)
            if kept.point == point and kept.argosy == __version__:
                return kept.result
        return None

    def write(self, point: ExperimentPoint, result: PointResult) -> None:
        text = msgspec.json.encode(_Kept(__version__, point, result), order="deterministic")
        write_whole(self.path(point), msgspec.json.format(text, indent=2) + b"\n")


def run_points(
    points: Sequence[ExperimentPoint],
    runner: Runner,
    store: Store | None,
    *,
    processes: int = 1,
    tell: Callable[[float], None] = lambda share: None,
    again: bool = False,
    alone: Callable[[ExperimentPoint], bool] = lambda point: False,
) -> dict[str, PointResult]:
    """The result of each point by its digest. Points in the store are not run, unless `again`; new
    results are stored at once. `runner` must be a module-level function, because it is called in other
    processes. Points that are to be run `alone` come last, in this process."""
    wanted = {digest(point): point for point in points}
    done: dict[str, PointResult] = {}
    if store is not None and not again:
        kept = {key: store.read(point) for key, point in wanted.items()}
        done = {key: result for key, result in kept.items() if result is not None}
    todo = [(key, point) for key, point in wanted.items() if key not in done]
    total = max(1, len(wanted))

    def take(key: str, point: ExperimentPoint, result: PointResult) -> None:
        if store is not None:
            store.write(point, result)
        done[key] = result
        tell(len(done) / total)

    tell(len(done) / total)
    shared = [(key, point) for key, point in todo if not alone(point)]
    if processes > 1 and len(shared) > 1:
        _run_in_pool(shared, runner, processes, take, lambda: tell(len(done) / total))
    for key, point in todo:
        if key not in done:
            take(key, point, runner(point))
    return done


def _run_in_pool(
    todo: Sequence[tuple[str, ExperimentPoint]],
    runner: Runner,
    processes: int,
    take: Callable[[str, ExperimentPoint, PointResult], None],
    tick: Callable[[], None],
) -> None:
    with worker_pool(min(processes, len(todo))) as pool:
        with uninterrupted():
            futures = {pool.submit(_attempt, runner, point): (key, point) for key, point in todo}
        pending = set(futures)
        while pending:
            ready, pending = wait(pending, timeout=_TICK_SECONDS, return_when=FIRST_COMPLETED)
            for future in ready:
                take(*futures[future], unwrap(futures[future][1], future))
            tick()


def _attempt(runner: Runner, point: ExperimentPoint) -> PointResult | Failure:
    try:
        return runner(point)
    except ArgosyError as error:
        return Failure.of(error)


class Findings:
    """The results of an experiment, looked up by the parameters of their points."""

    def __init__(
        self, points: Sequence[ExperimentPoint], results: Mapping[str, PointResult]
    ) -> None:
        self._found: dict[str, list[tuple[ExperimentPoint, PointResult]]] = {}
        for point in points:
            result = results.get(digest(point))
            if result is not None:
                self._found.setdefault(point.figure, []).append((point, result))

    def has(self, figure: str) -> bool:
        return figure in self._found

    def select(self, figure: str, **wanted: Parameter) -> list[tuple[ExperimentPoint, PointResult]]:
        """The points of a figure with the given parameters."""
        return [
            (point, result)
            for point, result in self._found.get(figure, [])
            if all(point.parameters.get(name) == value for name, value in wanted.items())
        ]

    def done(self, figure: str, **wanted: Parameter) -> float:
        """The least share that was done of a point with the given parameters; 0 if there is none."""
        picked = self.select(figure, **wanted)
        return min((result.values.get(DONE, 1.0) for _, result in picked), default=0.0)

    def values(self, figure: str, name: str) -> list[Parameter]:
        """The values that a parameter takes in a figure, in the order of its points."""
        found = (point.parameters.get(name) for point, _ in self._found.get(figure, []))
        return list(dict.fromkeys(value for value in found if value is not None))
