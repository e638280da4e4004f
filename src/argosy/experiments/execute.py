"""Executes a scenario once and keeps what happened, in a run directory or in memory."""

from __future__ import annotations

import contextlib
import datetime
import io
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy.engines.api import Engine
from argosy.engines.registry import find_engines
from argosy.host.journal import Journal
from argosy.measures.measure import summarise
from argosy.measures.placement import Watch
from argosy.model.scenario import Scenario
from argosy.records import directory as layout
from argosy.records.in_memory import RunInMemory
from argosy.records.record import JOB_COLUMNS, TASK_COLUMNS, Columns
from argosy.records.summary import Provenance, Summary
from argosy.scenarios.missing_extras import missing
from argosy.scenarios.variants import scenario_digest
from argosy.version import __version__
from argosy.worlds.sim import SimulatedWorld


class FinishedRun(NamedTuple):
    """What is known once a run has ended."""

    summary: Summary
    tasks: Columns
    jobs: Columns


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
    engines = _ready_engines(scenario, also)
    if directory is None:
        return _simulate(scenario, engines, _log(scenario, None), progress).summary
    partial = layout.begin(directory)
    try:
        started = datetime.datetime.now(datetime.UTC)
        clock = time.perf_counter()
        with contextlib.ExitStack() as files:
            stream = None
            if scenario.output.log != "none":
                stream = files.enter_context(open(partial / layout.LOG, "wb"))
            run = _simulate(scenario, engines, _log(scenario, stream), progress)
        for name, columns in ((layout.TASKS, run.tasks), (layout.JOBS, run.jobs)):
            with open(partial / name, "wb") as file:
                np.savez(file, allow_pickle=False, **columns)
        provenance = Provenance(
            argosy=__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            numpy=np.__version__,
            command=list(command),
            started=started.isoformat(timespec="seconds"),
            seconds=round(time.perf_counter() - clock, 3),
            scenario_digest=scenario_digest(scenario),
        )
        layout.finish(partial, directory, scenario, run.summary, provenance)
    except BaseException:
        layout.abandon(partial, directory)
        raise
    return run.summary


def execute_in_memory(
    scenario: Scenario,
    *,
    progress: Callable[[float], None] | None = None,
    also: Mapping[str, type[Engine]] | None = None,
) -> RunInMemory:
    """As `execute`, but what would be in the directory stays in memory, the decision log included."""
    stream = None if scenario.output.log == "none" else io.BytesIO()
    run = _simulate(scenario, _ready_engines(scenario, also), _log(scenario, stream), progress)
    log = None if stream is None else stream.getvalue()
    return RunInMemory(scenario, run.summary, log, run.tasks, run.jobs)


def _ready_engines(
    scenario: Scenario, also: Mapping[str, type[Engine]] | None
) -> dict[str, type[Engine]]:
    engines = find_engines(scenario.engine_names(), also)
    if (error := missing(scenario, engines)) is not None:
        raise error
    return engines


def _log(scenario: Scenario, stream: BinaryIO | None) -> Journal | None:
    """Without a stream, only the log's digest is kept."""
    if scenario.output.log == "none":
        return None
    return Journal(stream, everything=scenario.output.log == "everything")


def _simulate(
    scenario: Scenario,
    engines: Mapping[str, type[Engine]],
    log: Journal | None,
    progress: Callable[[float], None] | None,
) -> FinishedRun:
    world = SimulatedWorld(scenario, engines, log)
    watch = Watch(world)
    world.run(progress)
    ended: tuple[NDArray[Any], ...] = world.host.runtime.task_columns()
    running: tuple[NDArray[Any], ...] = world.host.runtime.running_columns()
    tasks = {
        name: np.concatenate([done, under_way])
        for name, done, under_way in zip(TASK_COLUMNS, ended, running, strict=True)
    }
    digest = ""
    if log is not None:
        for column in tasks.values():
            log.add_to_digest(column.astype(column.dtype.newbyteorder("<")).tobytes())
        digest = log.digest()
    jobs: Columns = dict(zip(JOB_COLUMNS, world.host.board.job_columns(), strict=True))
    return FinishedRun(summarise(world, digest, watch), tasks, jobs)
