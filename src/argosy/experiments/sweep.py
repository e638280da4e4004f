"""Runs engines x seeds in several processes. The result does not depend on their number."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from argosy.engines.api import Engine
from argosy.experiments.execute import execute
from argosy.experiments.pool import Failure, result_of, uninterrupted, worker_pool
from argosy.model.errors import ArgosyError
from argosy.model.scenario import Scenario
from argosy.model.units import format_duration
from argosy.records.summary import Summary
from argosy.scenarios.changed_values import ChangedValue
from argosy.scenarios.loader import load, with_engine

#: How often the progress bar is updated while runs are in progress.
_TICK_SECONDS: Final = 0.2
#: Instead of an engine: the fleet that the scenario has.
OWN_FLEET: Final = "own fleet"


class SweepPoint(NamedTuple):
    #: A file, whose workload is generated for the seed; or a scenario, whose jobs are fixed.
    scenario: Path | Scenario
    engine: str
    seed: int
    published: bool = False
    #: Engines in addition to the registered ones, by name.
    also: tuple[tuple[str, type[Engine]], ...] = ()
    #: Values of the file that are replaced.
    changes: tuple[ChangedValue, ...] = ()
    #: Seconds after which the run is given up; None: never.
    time_limit: float | None = None

    def __str__(self) -> str:
        return f"{self.engine}, seed {self.seed}"


class TookTooLong(ArgosyError):
    """A run was given up at its time limit."""

    code = "time-limit"


def run_all(
    points: Sequence[SweepPoint], processes: int, tell: Callable[[float], None]
) -> list[Summary | Failure]:
    """What each of the points ended with, in their order. When an engine fails, its other runs are not
    needed: they fail with it."""
    if processes == 1 or len(points) == 1:
        return _one_by_one(points, tell)
    with worker_pool(min(processes, len(points))) as pool:
        with uninterrupted():
            futures = [pool.submit(_attempt, point) for point in points]
        _await(points, futures, tell)
        return _settled(points, futures)


def _one_by_one(
    points: Sequence[SweepPoint], tell: Callable[[float], None]
) -> list[Summary | Failure]:
    done: list[Summary | Failure] = []
    failed: dict[str, Failure] = {}
    for number, point in enumerate(points):

        def share(part: float, number: int = number) -> None:
            tell((number + part) / len(points))

        ended = failed.get(point.engine) or _attempt(point, share)
        if isinstance(ended, Failure):
            failed[point.engine] = ended
        done.append(ended)
        # A run tells of progress in virtual time, and may end long before its horizon.
        share(1)
    return done


def _run(point: SweepPoint, tell: Callable[[float], None] | None) -> Summary:
    also = dict(point.also)
    if isinstance(point.scenario, Path):
        scenario = load(
            point.scenario,
            seed=point.seed,
            published=point.published,
            also=also,
            changes=point.changes,
        )
    else:
        scenario = msgspec.structs.replace(point.scenario, seed=point.seed)
    if point.engine != OWN_FLEET:
        scenario = with_engine(scenario, point.engine, also)
    return execute(scenario, None, progress=_limited(point.time_limit, tell), also=also)


def _limited(
    seconds: float | None, tell: Callable[[float], None] | None
) -> Callable[[float], None] | None:
    """A listener to progress that gives up after some time."""
    if seconds is None:
        return tell
    end = time.monotonic() + seconds

    def listen(share: float) -> None:
        if tell is not None:
            tell(share)
        if time.monotonic() > end:
            limit = format_duration(seconds * 1e6)
            raise TookTooLong(f"{share:.0%} of the run was done after the time limit of {limit}")

    return listen


def _attempt(point: SweepPoint, tell: Callable[[float], None] | None = None) -> Summary | Failure:
    try:
        return _run(point, tell)
    except Exception as error:
        return Failure.of(error)


def _await(
    points: Sequence[SweepPoint],
    futures: Sequence[Future[Summary | Failure]],
    tell: Callable[[float], None],
) -> None:
    """Waits until every run has ended or is not needed."""
    pending = set(futures)
    by_engine: dict[str, list[Future[Summary | Failure]]] = {}
    for point, future in zip(points, futures, strict=True):
        by_engine.setdefault(point.engine, []).append(future)
    while pending:
        done, pending = wait(pending, timeout=_TICK_SECONDS)
        for mine in by_engine.values():
            if any(future in done and _has_failed(future) for future in mine):
                for future in mine:
                    future.cancel()
        pending = {future for future in pending if not future.cancelled()}
        tell(1 - len(pending) / len(futures))


def _settled(
    points: Sequence[SweepPoint], futures: Sequence[Future[Summary | Failure]]
) -> list[Summary | Failure]:
    """Of several failures of an engine, the one of its first point counts, whichever came first."""
    results = [
        None if future.cancelled() else result_of(point, future)
        for point, future in zip(points, futures, strict=True)
    ]
    failed: dict[str, Failure] = {}
    for point, result in zip(points, results, strict=True):
        if isinstance(result, Failure):
            failed.setdefault(point.engine, result)
    return [
        failed[point.engine] if point.engine in failed or result is None else result
        for point, result in zip(points, results, strict=True)
    ]


def _has_failed(future: Future[Summary | Failure]) -> bool:
    return not future.cancelled() and (
        future.exception() is not None or isinstance(future.result(), Failure)
    )
