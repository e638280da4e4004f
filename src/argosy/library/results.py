"""Results of a single run: running it, its numbers, and questions about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.engines.api import Engine
from argosy.engines.registry import ENGINES, find_engines
from argosy.experiments.execute import execute, execute_in_memory
from argosy.library.arguments import (
    PathLike,
    Progress,
    check_path,
    check_progress,
    check_text,
    is_path,
    unusable,
)
from argosy.library.frames import frame
from argosy.library.sources import EngineChoice, named, resolve, under, with_seed
from argosy.measures.from_journal import summarise_state
from argosy.model.answers import StoryLine, WhyAnswer
from argosy.model.errors import EngineNotFound, UnknownEngine
from argosy.model.scenario import Scenario
from argosy.model.tasks import indices_of, jobs_of
from argosy.records.answers import TaskAnswers
from argosy.records.journal_run import open_recording
from argosy.records.observed import observed_scenario
from argosy.records.record import Columns, RunRecord
from argosy.records.replay import Replay, ReplaySummary
from argosy.records.summary import Summary


class Result:
    """A run, also one in progress. Times are in microseconds of virtual time; -1 means that it did not
    happen."""

    def __init__(
        self,
        record: RunRecord,
        directory: Path | None = None,
        classes: Mapping[str, type[Engine]] | None = None,
    ) -> None:
        self._record = record
        #: The directory or journal file of the run; None if it is only in memory.
        self.directory = directory
        #: Engines given as classes, by their names in the scenario.
        self._classes = dict(classes or {})

    def __repr__(self) -> str:
        about, counts = self.summary, self.summary.counts
        return (
            f"<Result of {about.scenario}, seed {about.seed}, under {about.fleet}: "
            f"{counts.jobs_finished} of {counts.jobs} jobs finished>"
        )

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that ran, with every machine and job spelled out."""
        return self._record.scenario()

    @cached_property
    def summary(self) -> Summary:
        """Counts and distributions; `docs/runs.md` describes every number."""
        record = self._record
        return record.summary() if record.is_finished else summarise_state(record.state)

    def why(self, task: str) -> WhyAnswer:
        """Why ``job/index`` is where it is, or why it has no machine."""
        check_text("task", task, "job/index")
        return TaskAnswers(self._record, task).why()

    def story(self, task: str) -> list[StoryLine]:
        """What happened to ``job/index``, line by line."""
        check_text("task", task, "job/index")
        return TaskAnswers(self._record, task).story()

    def replay(
        self, progress: Progress | None = None, *, classes: Iterable[type[Engine]] = ()
    ) -> ReplaySummary:
        """Feed the recorded inputs to the engines again; raises `ReplayDiverged` at the first decision
        that differs from the recorded one. `classes` are engines of the run that cannot be imported;
        the result of `run` remembers its own."""
        check_progress(progress)
        journal = self._record.journal
        names = {entry.engine for entry in journal.header().setup.fleet}
        also = {**self._classes, **_matched(names, classes)}
        try:
            engines = find_engines(sorted(names), also)
        except (UnknownEngine, EngineNotFound) as error:
            error.hint = "if it was given as a class, replay the run with classes=[...]"
            raise
        return Replay(journal, engines, finished=self._record.is_finished).run(progress)

    def observed(self) -> Scenario:
        """A scenario made from the journal alone, for other engines: tasks run as long as they were
        observed to run."""
        return observed_scenario(self._record.state)

    def tasks_columns(self) -> Columns:
        """One row per task that started: finished ones in the order in which they ended, then those
        still running at the end."""
        rows = self._record.task_rows()
        jobs, machines = jobs_of(rows["task"]), self.scenario.cell.machines
        return {
            "job": self._of_jobs("id")[jobs],
            "index": indices_of(rows["task"]),
            "kind": self._of_jobs("kind")[jobs],
            "machine": np.array([machine.name for machine in machines])[rows["machine"]],
            "submitted": self._of_jobs("submit")[jobs],
            "placed": rows["placed"],
            "started": rows["started"],
            "finished": rows["finished"],
        }

    def jobs_columns(self) -> Columns:
        """One row per submitted job, in the order of submission."""
        rows = self._record.job_rows()
        count = len(rows["submitted"])
        named = {"job": "id", "kind": "kind", "owner": "owner", "precedence": "precedence"}
        return {
            **{name: self._of_jobs(field)[:count] for name, field in named.items()},
            "tasks": self._of_jobs("tasks")[:count],
            **rows,
            "wait_time": _since(rows["attempted"], rows["submitted"]),
            "placement_latency": _since(rows["placed"], rows["submitted"]),
            "jct": _since(rows["finished"], rows["submitted"]),
        }

    def tasks_frame(self) -> Any:
        """`tasks_columns` as a data frame, of pandas if installed, otherwise of polars."""
        return frame(self.tasks_columns())

    def jobs_frame(self) -> Any:
        """`jobs_columns` as a data frame, of pandas if installed, otherwise of polars."""
        return frame(self.jobs_columns())

    def _of_jobs(self, field: str) -> NDArray[Any]:
        jobs = self.scenario.jobs
        if field == "submit":
            return np.array([made.submit for made in jobs])
        return np.array([getattr(made.job, field) for made in jobs])


def _since(milestone: NDArray[np.int64], submitted: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(milestone >= 0, milestone - submitted, -1)


def _matched(
    names: Iterable[str], classes: Iterable[type[Engine]] | type[Engine]
) -> dict[str, type[Engine]]:
    """For each name in a journal, the class that it stands for: the one with that reference, even if its
    module has another name by now, or with that name, if no built-in engine has it."""
    if not isinstance(classes, Iterable):
        classes = (classes,)
    found: dict[str, type[Engine]] = {}
    for engine in classes:
        reference, _ = named(engine)
        ending = f":{reference.partition(':')[2]}"
        mine = [
            name
            for name in names
            if name == reference
            or name.endswith(ending)
            or (name == engine.name and name not in ENGINES)
        ]
        if not mine:
            raise unusable("class", engine, f"an engine of the run: {', '.join(sorted(names))}")
        found |= dict.fromkeys(mine, engine)
    return found


def run(
    scenario: Scenario | PathLike,
    engine: EngineChoice | None = None,
    *,
    seed: int | None = None,
    keep: PathLike | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulate a scenario.

    `engine` replaces the whole fleet: a name, ``package.module:Class``, or a class. `seed` replaces the
    scenario's own; if the scenario comes from a file, its jobs are drawn again. With `keep`, the run is
    saved to that directory, which must not exist yet; otherwise it stays in memory. `progress` is called
    with the share done, from 0 to 1.
    """
    check_progress(progress)
    if keep is not None:
        check_path("keep", keep)
    changed, also = under(with_seed(resolve(scenario), seed), engine)
    if keep is None:
        return Result(execute_in_memory(changed, progress=progress, also=also), classes=also)
    directory = Path(keep)
    execute(changed, directory, command=["argosy.run"], progress=progress, also=also)
    return Result(open_recording(directory), directory, also)


def open_run(path: PathLike) -> Result:
    """Open a run that was saved by `run` or by the command line: its directory, or a journal file."""
    check_path("run", path)
    return Result(open_recording(Path(path)), Path(path))


def why(run: Result | PathLike, task: str) -> WhyAnswer:
    """Why a task, ``job/index``, is where it is in a run, or why it has no machine."""
    return as_result(run).why(task)


def story(run: Result | PathLike, task: str) -> list[StoryLine]:
    """What happened to a task, ``job/index``, in a run, line by line."""
    return as_result(run).story(task)


def replay(
    run: Result | PathLike,
    progress: Progress | None = None,
    *,
    classes: Iterable[type[Engine]] = (),
) -> ReplaySummary:
    """Check that a run's recorded inputs lead to its recorded decisions, byte for byte. `classes` are
    engines of the run that cannot be imported."""
    return as_result(run).replay(progress, classes=classes)


def as_result(run: Result | PathLike) -> Result:
    if isinstance(run, Result):
        return run
    if not is_path(run):
        raise unusable("run", run, "a Result, or the path of a run")
    return open_run(run)
