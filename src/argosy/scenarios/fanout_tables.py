"""Workloads of data-parallel jobs with high fan-out: traces of the Eagle simulator, and jobs drawn with
the same characteristics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec

from argosy.model.errors import ArgosyError, ModelError, ScenarioError, excerpt
from argosy.model.jobs import BATCH
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import Factor, Positive
from argosy.model.truth import SimulatedJob
from argosy.scenarios.job_checks import MOST_TASKS_IN_ALL, JobChecks
from argosy.workloads import eagle, fanout
from argosy.workloads.synthetic import Estimates
from argosy.workloads.tables import Misfit, TablePath

Speedup: TypeAlias = Annotated[
    float, msgspec.Meta(ge=1e-6, le=1e6, description="a number from 1e-6 to 1e6")
]
MOST_JOBS_DRAWN: Final = 1_000_000


class EagleTable(msgspec.Struct, frozen=True, kw_only=True):
    #: Relative to the scenario file.
    path: str
    speedup: Speedup = 1.0
    #: Only the first jobs, up to this number.
    jobs: Positive | None = None
    request: Resources = eagle.SLOT
    estimates: Estimates | None = None
    kind: str = BATCH


class FanoutTable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    jobs: Positive
    speedup: Speedup = 1.0
    pattern: fanout.PatternName | None = None
    #: Multiplies the number of tasks per job.
    scale: Factor = 1.0
    request: Resources = eagle.SLOT
    estimates: Estimates | None = None
    kind: str = BATCH


def eagle_jobs(
    scenario: Path, table: EagleTable, known: JobChecks, seed: int
) -> Iterator[SimulatedJob]:
    source = scenario.parent / table.path
    place: TablePath = ("workload", "eagle")
    try:
        source.open("rb").close()
    except (OSError, ValueError) as error:
        # The mistake is in the scenario that names it.
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Misfit(
            ScenarioError(
                f"trace {excerpt(str(source))} cannot be read: {why}",
                expected="the path of a job trace, relative to the scenario",
            ),
            (*place, "path"),
        ) from None
    known.request(table.request, (*place, "request"))
    jobs = eagle.read(
        source,
        Random(seed).child("workload"),
        speedup=table.speedup,
        most=table.jobs,
        request=table.request,
        estimates=table.estimates,
        kind=table.kind,
    )
    return _counted(jobs, place)


def fanout_jobs(table: FanoutTable, known: JobChecks, seed: int) -> Iterator[SimulatedJob]:
    place: TablePath = ("workload", "fanout")
    known.request(table.request, (*place, "request"))
    if table.jobs > MOST_JOBS_DRAWN:
        raise Misfit(
            ScenarioError(f"{table.jobs:,} jobs", expected=f"at most {MOST_JOBS_DRAWN:,}"),
            (*place, "jobs"),
        )
    try:
        spec = fanout.shape(table.name)
    except ArgosyError as error:
        raise Misfit(error, (*place, "name")) from None
    jobs = fanout.generate(
        spec,
        table.jobs,
        Random(seed).child("workload"),
        speedup=table.speedup,
        pattern=table.pattern,
        request=table.request,
        estimates=table.estimates,
        scale=table.scale,
        kind=table.kind,
    )
    try:
        yield from _counted(jobs, place)
    except ModelError as error:
        inside = (error.field,) if error.field else ()
        error.field = None
        raise Misfit(error, (*place, *inside)) from None


def _counted(jobs: Iterable[SimulatedJob], place: TablePath) -> Iterator[SimulatedJob]:
    tasks = 0
    for job in jobs:
        tasks += job.tasks
        if tasks > MOST_TASKS_IN_ALL:
            raise Misfit(
                ScenarioError(
                    f"more than {MOST_TASKS_IN_ALL:,} tasks in total", expected="fewer jobs"
                ),
                (*place, "jobs"),
            )
        yield job
    if not tasks:
        raise Misfit(ScenarioError("no jobs", expected="a trace with jobs"), place)
