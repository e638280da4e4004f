"""Figures 11 to 14 on the public trace of cluster C (clusterdata-2011-2).

Machines, requests, constraints and times are those of the trace. What runs when the trace begins is the
initial state, placed at once. The trace of cluster B was never published: figure 12 is on C's as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import structs

from argosy.model.errors import TraceError
from argosy.model.machines import Machine
from argosy.model.truth import SimulatedJob
from argosy.papers.experiment import ExperimentPoint
from argosy.workloads import clusters, google2011

#: The figures of the paper's high-fidelity simulator.
TRACED: Final = ("11", "12", "13", "14")


def traced(point: ExperimentPoint, directory: Path) -> ExperimentPoint:
    """The point on the trace in `directory`; those of other figures are as they were. The names and
    sizes of the trace's files become part of the point."""
    if point.figure not in TRACED:
        return point
    files = sorted(path for path in directory.glob("*/part-*") if path.is_file())
    if not files:
        raise TraceError(
            "no tables of a trace",
            file=str(directory),
            expected="a directory with machine_events, job_events and task_events of clusterdata-2011-2",
        )
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(directory)} {path.stat().st_size}\n".encode())
    told = {**point.parameters, "trace": str(directory), "digest": digest.hexdigest()[:16]}
    return structs.replace(point, parameters=told)


def machines(directory: Path) -> tuple[Machine, ...]:
    return google2011.machines(directory)


def jobs(directory: Path, span: int) -> Iterator[SimulatedJob]:
    """Jobs within `span`; what runs at its beginning is the fill."""
    for job in google2011.jobs(directory, span=span):
        if job.submit:
            yield job
        else:
            yield structs.replace(job, job=structs.replace(job.job, kind=clusters.FILL))
