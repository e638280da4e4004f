"""Figures 11 to 14 on the public trace of cluster C (clusterdata-2011-2).

Machines, requests, constraints and times are those of the trace. What runs when the trace begins is the
initial state, placed at once. The trace of cluster B was never published: figure 12 is on C's as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import structs

from argosy.model.machines import Machine
from argosy.model.truth import SimulatedJob
from argosy.papers.experiment import ExperimentPoint
from argosy.papers.recorded import on_google_trace
from argosy.workloads import clusters, google2011

#: The figures of the paper's high-fidelity simulator.
TRACED: Final = ("11", "12", "13", "14")


def traced(point: ExperimentPoint, directory: Path) -> ExperimentPoint:
    found = on_google_trace(point, directory, TRACED)
    if found is point:
        return point
    # Points on different clusters are the same one on a trace.
    return structs.replace(found, parameters={**found.parameters, "cluster": "C"})


def machines(directory: Path) -> tuple[Machine, ...]:
    return google2011.machines(directory)


def jobs(directory: Path, span: int) -> Iterator[SimulatedJob]:
    """Jobs within `span`; what runs at its beginning is the fill."""
    for job in google2011.jobs(directory, span=span):
        if job.submit:
            yield job
        else:
            yield structs.replace(job, job=structs.replace(job.job, kind=clusters.FILL))
