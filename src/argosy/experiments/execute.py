"""Runs a scenario once and saves the result, in a run directory or in memory."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

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
from argosy.scenarios.engine_checks import require_fitting
from argosy.scenarios.missing_extras import missing
from argosy.version import __version__
from argosy.worlds.sim import SimulatedWorld

#: How long events may take to become visible to readers of a run in progress.
_FLUSH_SECONDS: Final = 1.0


class FinishedRun(NamedTuple):
    """The results of a finished run."""

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
    """Runs `scenario` in the simulated world. With a directory, the journal can be read there during
    the run; a run that fails leaves nothing. `also` adds engines to the registered ones."""
    engines = _ready_engines(scenario, also)
    if directory is None:
        return _simulate(scenario, engines, _journal(scenario, None), progress).summary
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    mark = layout.RunMark(command=list(command), started=started, process=os.getpid())
    writer = layout.RunWriter(directory, mark, scenario)
    try:
        clock = time.perf_counter()
        with contextlib.ExitStack() as files:
            stream = None
            if scenario.output.log != "none":
                stream = files.enter_context(open(directory / layout.JOURNAL, "wb"))
            journal = _journal(scenario, stream)
            run = _simulate(scenario, engines, journal, progress)
            if journal is not None:
                journal.sync()
        for name, columns in ((layout.TASKS, run.tasks), (layout.JOBS, run.jobs)):
            with open(directory / name, "wb") as file:
                np.savez(file, allow_pickle=False, **columns)
        provenance = Provenance(
            argosy=__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            numpy=np.__version__,
            command=list(command),
            started=started,
            seconds=round(time.perf_counter() - clock, 3),
            scenario_digest=writer.scenario_digest,
        )
        writer.finish(run.summary, provenance)
    except BaseException:
        writer.abandon()
        raise
    return run.summary


class _TimelyJournal(Journal):
    """Writes its lines once a second, for readers during the run."""

    is_timely = True
    _flushed = -_FLUSH_SECONDS

    def after_event(self) -> None:
        now = time.monotonic()
        if now - self._flushed >= _FLUSH_SECONDS:
            self._flushed = now
            self.flush()


def execute_in_memory(
    scenario: Scenario,
    *,
    progress: Callable[[float], None] | None = None,
    also: Mapping[str, type[Engine]] | None = None,
) -> RunInMemory:
    """As `execute`, but keeps everything in memory, including the journal."""
    stream = None if scenario.output.log == "none" else io.BytesIO()
    run = _simulate(scenario, _ready_engines(scenario, also), _journal(scenario, stream), progress)
    journal = None if stream is None else stream.getvalue()
    jobs = {name: column.copy() for name, column in run.jobs.items()}
    return RunInMemory(scenario, run.summary, journal, run.tasks, jobs)


def _ready_engines(
    scenario: Scenario, also: Mapping[str, type[Engine]] | None
) -> dict[str, type[Engine]]:
    engines = find_engines(scenario.engine_names(), also)
    if (error := missing(scenario, engines)) is not None:
        raise error
    require_fitting(scenario, engines)
    return engines


def _journal(scenario: Scenario, stream: BinaryIO | None) -> Journal | None:
    """Without a stream, only the journal's digest is kept."""
    if scenario.output.log == "none":
        return None
    return _TimelyJournal(stream, everything=scenario.output.log == "everything")


def _after_writing(
    journal: Journal | None, progress: Callable[[float], None] | None
) -> Callable[[float], None] | None:
    """Whoever hears of progress can read what has happened."""
    if journal is None or progress is None:
        return progress

    def tell(share: float) -> None:
        journal.after_event()
        progress(share)

    return tell


def _simulate(
    scenario: Scenario,
    engines: Mapping[str, type[Engine]],
    journal: Journal | None,
    progress: Callable[[float], None] | None,
) -> FinishedRun:
    world = SimulatedWorld(scenario, engines, journal)
    watch = Watch(world)
    world.run(_after_writing(journal, progress))
    ended: tuple[NDArray[Any], ...] = world.host.runtime.task_columns()
    running: tuple[NDArray[Any], ...] = world.host.runtime.running_columns()
    tasks = {
        name: np.concatenate([done, under_way])
        for name, done, under_way in zip(TASK_COLUMNS, ended, running, strict=True)
    }
    digest = ""
    if journal is not None:
        for column in tasks.values():
            journal.add_to_digest(column.astype(column.dtype.newbyteorder("<")).tobytes())
        digest = journal.digest()
    summary = summarise(world, digest, watch)
    # Lent, because there may be very many jobs: as long as they are kept, so is the world's board.
    jobs: Columns = dict(zip(JOB_COLUMNS, world.host.board.lend_job_columns(), strict=True))
    return FinishedRun(summary, tasks, jobs)
