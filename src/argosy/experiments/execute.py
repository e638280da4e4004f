"""Executes a scenario once and keeps what happened in a run directory."""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import argosy
from argosy.engines.api import Engine
from argosy.engines.registry import all_engines
from argosy.host.journal import Journal
from argosy.measures.measure import summarise
from argosy.measures.placement import Watch
from argosy.model.errors import UnknownEngine
from argosy.model.scenario import Scenario
from argosy.records import directory as layout
from argosy.records.summary import Provenance, Summary
from argosy.scenarios.missing_extras import missing
from argosy.scenarios.variants import scenario_digest
from argosy.worlds.sim import SimulatedWorld

#: How long a reader of a run that goes on may have to wait for what happened.
_FLUSH_SECONDS: Final = 1.0


def execute(
    scenario: Scenario,
    directory: Path | None,
    *,
    command: Sequence[str] = (),
    progress: Callable[[float], None] | None = None,
    also: Mapping[str, type[Engine]] | None = None,
) -> Summary:
    """Runs `scenario` in the simulated world. With a directory, the journal can be read there while the
    run goes on; one that fails leaves nothing. `also` adds engines to the registered ones."""
    engines = {**all_engines(), **(also or {})}
    for entry in scenario.fleet:
        if entry.engine not in engines:
            raise UnknownEngine(entry.engine, engines)
    if (error := missing(scenario, engines)) is not None:
        raise error
    if directory is None:
        log = scenario.output.log
        journal = None if log == "none" else Journal(everything=log == "everything")
        return _simulate(scenario, engines, journal, progress, None)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    mark = layout.RunMark(command=list(command), started=started, process=os.getpid())
    writer = layout.RunWriter(directory, mark)
    try:
        clock = time.perf_counter()
        summary = _keep(scenario, engines, directory, progress)
        provenance = Provenance(
            argosy=argosy.__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            numpy=np.__version__,
            command=list(command),
            started=started,
            seconds=round(time.perf_counter() - clock, 3),
            scenario_digest=scenario_digest(scenario),
        )
        writer.finish(scenario, summary, provenance)
    except BaseException:
        writer.abandon()
        raise
    return summary


class _TimelyJournal(Journal):
    """Lets go of its lines about once a second, for those who read along."""

    _flushed = -_FLUSH_SECONDS

    def write(self, record: Any) -> None:
        super().write(record)
        now = time.monotonic()
        if now - self._flushed >= _FLUSH_SECONDS:
            self._flushed = now
            self.flush()


def _keep(
    scenario: Scenario,
    engines: Mapping[str, type[Engine]],
    directory: Path,
    progress: Callable[[float], None] | None,
) -> Summary:
    if scenario.output.log == "none":
        return _simulate(scenario, engines, None, progress, directory)
    with open(directory / layout.JOURNAL, "wb") as stream:
        journal = _TimelyJournal(stream, everything=scenario.output.log == "everything")
        return _simulate(scenario, engines, journal, progress, directory)


def _simulate(
    scenario: Scenario,
    engines: Mapping[str, type[Engine]],
    journal: Journal | None,
    progress: Callable[[float], None] | None,
    directory: Path | None,
) -> Summary:
    world = SimulatedWorld(scenario, engines, journal)
    watch = Watch(world)
    world.run(progress)
    ended: tuple[NDArray[Any], ...] = world.host.runtime.task_columns()
    running: tuple[NDArray[Any], ...] = world.host.runtime.running_columns()
    columns = {
        name: np.concatenate([done, under_way])
        for name, done, under_way in zip(layout.TASK_COLUMNS, ended, running, strict=True)
    }
    digest = ""
    if journal is not None:
        for column in columns.values():
            journal.add_to_digest(column.astype(column.dtype.newbyteorder("<")).tobytes())
        digest = journal.digest()
    if directory is not None:
        with open(directory / layout.TASKS, "wb") as file:
            np.savez(file, allow_pickle=False, **columns)
    return summarise(world, digest, watch)
