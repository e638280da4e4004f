"""Runs engines x seeds in several processes. The result does not depend on their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from argosy.engines.api import Engine
from argosy.experiments.execute import execute
from argosy.experiments.pool import Failure, uninterrupted, unwrap, worker_pool
from argosy.model.errors import ArgosyError
from argosy.model.scenario import Scenario
from argosy.records.summary import Summary
from argosy.scenarios.loader import load, with_engine

#: How often the progress bar is updated while runs are in progress.
_TICK_SECONDS: Final = 0.2


class SweepPoint(NamedTuple):
    #: A file, whose workload is generated for the seed; or a scenario, whose jobs are fixed.
    scenario: Path | Scenario
    engine: str
    seed: int
    published: bool = False
    #: Engines in addition to the registered ones, by name.
    also: tuple[tuple[str, type[Engine]], ...] = ()

    def __str__(self) -> str:
        return f"{self.engine}, seed {self.seed}"


def run_all(
    points: Sequence[SweepPoint], processes: int, tell: Callable[[float], None]
) -> list[Summary]:
    """The summaries in the order of `points`. A failure ends the sweep; if there are several, the first
    in the order of `points` is shown, regardless of when it happened."""
    if processes == 1 or len(points) == 1:
        return _one_by_one(points, tell)
    with worker_pool(min(processes, len(points))) as pool:
        with uninterrupted():
            futures = [pool.submit(_attempt, point) for point in points]
        _await(futures, tell)
        return [unwrap(point, future) for point, future in zip(points, futures, strict=True)]


def _one_by_one(points: Sequence[SweepPoint], tell: Callable[[float], None]) -> list[Summary]:
    done: list[Summary] = []
    for number, point in enumerate(points):

        def share(part: float, number: int = number) -> None:
            tell((number + part) / len(points))

        done.append(_run(point, share))
    return done


def _run(point: SweepPoint, tell: Callable[[float], None] | None = None) -> Summary:
    also = dict(point.also)
    if isinstance(point.scenario, Path):
        scenario = load(point.scenario, seed=point.seed, published=point.published, also=also)
    else:
        scenario = msgspec.structs.replace(point.scenario, seed=point.seed)
    scenario = with_engine(scenario, point.engine, also)
    return execute(scenario, None, progress=tell, also=also)


def _attempt(point: SweepPoint) -> Summary | Failure:
    try:
        return _run(point)
    except ArgosyError as error:
        return Failure.of(error)


def _await(futures: Sequence[Future[Summary | Failure]], tell: Callable[[float], None]) -> None:
    """Waits until all are done, or until the first failure and everything before it."""
    awaited = list(futures)
    while True:
        done, pending = wait(awaited, timeout=_TICK_SECONDS)
        failed = next((n for n, f in enumerate(awaited) if f in done and _has_failed(f)), None)
        if failed is not None:
            # Later results are no longer needed; earlier ones may fail as well.
            for future in awaited[failed + 1 :]:
                future.cancel()
            del awaited[failed + 1 :]
        if not pending.intersection(awaited):
            return
        tell(1 - len(pending) / len(futures))


def _has_failed(future: Future[Summary | Failure]) -> bool:
    return future.exception() is not None or isinstance(future.result(), Failure)
