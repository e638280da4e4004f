"""Engines on the same scenario with the same seeds: what each run came to, and who failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from argosy.engines.api import Engine
from argosy.engines.registry import find_engines
from argosy.experiments.pool import BUG, Failure, raised_again
from argosy.experiments.sweep import OWN_FLEET, SweepPoint, run_all
from argosy.model.scenario import Scenario
from argosy.records.summary import Summary
from argosy.scenarios.changed_values import ChangedValue
from argosy.scenarios.ignored_demands import IgnoredDemand, ignored_demands
from argosy.scenarios.loader import with_engine
from argosy.scenarios.missing_extras import missing


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of several engines."""

    #: By engine, one summary per seed, in the order of the seeds; without engines that failed.
    runs: dict[str, tuple[Summary, ...]]
    #: By engine, also for engines that failed.
    ignores: dict[str, tuple[IgnoredDemand, ...]]
    #: The error of each engine that failed.
    failures: dict[str, str]
    #: Whether a failure is a bug, not a mistake in the input.
    has_bug: bool = False


def demands_ignored(
    scenario: Scenario, engines: Sequence[str], also: Mapping[str, type[Engine]] | None = None
) -> dict[str, tuple[IgnoredDemand, ...]]:
    """What each engine would ignore. Raises `MissingExtra` if one cannot run."""
    found = {}
    for name in engines:
        changed = scenario if name == OWN_FLEET else with_engine(scenario, name, also)
        known = find_engines(changed.engine_names(), also)
        if (lack := missing(changed, known)) is not None:
            raise lack
        found[name] = tuple(ignored_demands(changed, known))
    return found


def hold_contest(
    source: Path | Scenario,
    ignores: Mapping[str, tuple[IgnoredDemand, ...]],
    seeds: Sequence[int],
    *,
    published: bool = False,
    also: Mapping[str, type[Engine]] | None = None,
    processes: int = 1,
    time_limit: float | None = None,
    changes: tuple[ChangedValue, ...] = (),
    tell: Callable[[float], None],
) -> Contest:
    """Runs the engines named in `ignores`. Raises the error of the first if all of them fail."""
    classes = tuple((also or {}).items())
    points = [
        SweepPoint(source, engine, seed, published, classes, changes, time_limit)
        for engine in ignores
        for seed in seeds
    ]
    runs: dict[str, list[Summary]] = {}
    failed: dict[str, tuple[SweepPoint, Failure]] = {}
    for point, ended in zip(points, run_all(points, processes, tell), strict=True):
        if isinstance(ended, Failure):
            failed.setdefault(point.engine, (point, ended))
        else:
            runs.setdefault(point.engine, []).append(ended)
    finished = {engine: tuple(ran) for engine, ran in runs.items() if engine not in failed}
    if not finished:
        raise raised_again(*next(iter(failed.values())))
    return Contest(
        runs=finished,
        ignores=dict(ignores),
        failures={
            engine: f"with seed {point.seed}: {failure.text}"
            for engine, (point, failure) in failed.items()
        },
        has_bug=any(failure.code == BUG for _, failure in failed.values()),
    )
