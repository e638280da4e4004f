"""Executes a scenario once and keeps what happened in a run directory."""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import argosy
from argosy.engines.api import Engine
from argosy.engines.registry import engines_of
from argosy.measures.measure import summarise
from argosy.measures.placement import Watch
from argosy.model.scenario import Scenario
from argosy.records import directory as layout
from argosy.records.summary import Provenance, Summary
from argosy.scenarios.missing_extras import missing
from argosy.scenarios.variants import scenario_digest
from argosy.worlds.log import DecisionLog
from argosy.worlds.sim import SimulatedWorld


def execute(
    scenario: Scenario,
    directory: Path | None,
    *,
    command: Sequence[str] = (),
    progress: Callable[[float], None] | None = None,
    also: Mapping[str, type[Engine]] | None = None,
) -> Summary:
    """Runs `scenario` in the simulated world. With a directory, all of it appears there at the end, or
    nothing does. `also` adds engines to the registered ones."""
    engines = engines_of(scenario.fleet, also)
    if (error := missing(scenario, engines)) is not None:
        raise error
    if directory is None:
        return _run(scenario, engines, None, progress)
    partial = layout.begin(directory)
    try:
        started = datetime.datetime.now(datetime.UTC)
        clock = time.perf_counter()
        summary = _run(scenario, engines, partial, progress)
        provenance = Provenance(
            argosy=argosy.__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            numpy=np.__version__,
            command=list(command),
            started=started.isoformat(timespec="seconds"),
            seconds=round(time.perf_counter() - clock, 3),
            scenario_digest=scenario_digest(scenario),
        )
        layout.finish(partial, directory, scenario, summary, provenance)
    except BaseException:
        layout.abandon(partial, directory)
        raise
    return summary


def _run(
    scenario: Scenario,
    engines: Mapping[str, type[Engine]],
    partial: Path | None,
    progress: Callable[[float], None] | None,
) -> Summary:
    if scenario.output.log == "none":
        log = None
    elif partial is None:
        log = DecisionLog(everything=scenario.output.log == "everything")
    else:
        with open(partial / layout.LOG, "wb") as stream:
            log = DecisionLog(stream, everything=scenario.output.log == "everything")
            summary = _simulate(scenario, engines, log, progress, partial)
            log.flush()
        return summary
    return _simulate(scenario, engines, log, progress, partial)


def _simulate(
    scenario: Scenario,
    engines: Mapping[str, type[Engine]],
    log: DecisionLog | None,
    progress: Callable[[float], None] | None,
    partial: Path | None,
) -> Summary:
    world = SimulatedWorld(scenario, engines, log)
    watch = Watch(world)
    world.run(progress)
    ended: tuple[NDArray[Any], ...] = world.simulator.task_columns()
    running: tuple[NDArray[Any], ...] = world.simulator.running_columns()
    columns = {
        name: np.concatenate([done, under_way])
        for name, done, under_way in zip(layout.TASK_COLUMNS, ended, running, strict=True)
    }
    digest = ""
    if log is not None:
        for column in columns.values():
            log.add_to_digest(column.astype(column.dtype.newbyteorder("<")).tobytes())
        digest = log.digest()
    if partial is not None:
        with open(partial / layout.TASKS, "wb") as stream:
            np.savez(stream, allow_pickle=False, **columns)
    return summarise(world, digest, watch)
