"""Workloads with their own machines: the Omega paper's clusters, and public traces.

Jobs are yielded one by one, in order of submission, by `workloads.clusters`, `workloads.google2011`,
`workloads.google2019` and `workloads.alibaba2023`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from argosy.model.errors import ArgosyError, ScenarioError
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.scenario import CellSpec, Factor, Positive
from argosy.model.truth import SimulatedJob
from argosy.model.units import Time
from argosy.scenarios.job_checks import MOST_TASKS_IN_ALL
from argosy.scenarios.kubernetes_tables import KUBERNETES
from argosy.workloads import alibaba2023, clusters, google2011, google2019, mapreduce
from argosy.workloads.google_jobs import Notes
from argosy.workloads.tables import Converter, Misfit, TablePath

Multiple: TypeAlias = Annotated[
    float, msgspec.Meta(ge=0, le=1000, description="a number from 0 to 1000")
]
_CONVERTER: Final = Converter(ScenarioError)
_TRACES: Final[dict[str, ModuleType]] = {"google2011": google2011, "google2019": google2019}
#: Workload tables that provide machines for a cell without any.
BRINGING: Final = ("cluster", *_TRACES, "alibaba2023")


Burstiness: TypeAlias = Annotated[
    float, msgspec.Meta(ge=1, le=clusters.MOST_BURSTY, description="a number from 1 to 100")
]


class ClusterTable(msgspec.Struct, frozen=True, kw_only=True):
    """`rate` is a number, or a table of numbers by kind of job."""

    name: str
    span: Time
    rate: Any = 1.0
    scale: Factor = 1.0
    fill: bool = True
    #: Whether some of the batch jobs are replaced by MapReduce jobs.
    mapreduce: bool = False
    #: Mean running time of the fill's tasks; None: they never end.
    turnover: Time | None = None
    #: Whether machines are of several kinds and some jobs picky.
    varied: bool = False
    #: How irregular arrivals are: the coefficient of variation of the times between them.
    burstiness: Burstiness = 1.0


class GoogleTable(msgspec.Struct, frozen=True, kw_only=True):
    """A trace's directory, relative to the scenario file, and which part of it to use."""

    path: str
    start: Time = google2011.TRACE_START
    span: Time | None = None
    #: At most this many of the trace's machines.
    machines: Positive | None = None


class AlibabaTable(msgspec.Struct, frozen=True, kw_only=True):
    """A trace's directory, relative to the scenario file, and which of its lists and times to use."""

    path: str
    #: The middle of ``openb_node_list_….csv`` and ``openb_pod_list_….csv``.
    nodes: str = "all_node"
    pods: str = "default"
    start: Time = 0
    span: Time | None = None
    #: At most this many of the trace's machines.
    machines: Positive | None = None
    sharing: alibaba2023.Sharing = "devices"


#: The table of a workload that provides machines.
BringingTable: TypeAlias = ClusterTable | GoogleTable | AlibabaTable


def without_machines(document: dict[str, Any]) -> dict[str, Any]:
    """The scenario's document, without the cell's machines if the workload provides them."""
    workload, cell = document.get("workload"), document.get("cell", {})
    brings = isinstance(workload, dict) and any(
        name in workload for name in (*BRINGING, KUBERNETES)
    )
    if not brings or not isinstance(cell, dict) or "clusters" in document:
        return document
    return {**document, "cell": {"machines": [], **cell}}


def bring_machines(
    scenario: Path, name: str, table: BringingTable, notes: Notes
) -> tuple[Machine, ...]:
    """The machines of the workload `name`; `notes` counts what is omitted from a trace."""
    if isinstance(table, ClusterTable):
        return clusters.machines(_cluster(table), table.scale, varied=table.varied)
    source = _source(scenario, name, table)
    if isinstance(table, AlibabaTable):
        return alibaba2023.machines(source, nodes=table.nodes, pods=table.pods, most=table.machines)
    found: tuple[Machine, ...] = _TRACES[name].machines(
        source, at=table.start, most=table.machines, notes=notes
    )
    return found


def brought_devices(table: BringingTable) -> str | None:
    """The resource that consists of devices on the workload's machines."""
    has_devices = isinstance(table, AlibabaTable) and table.sharing == "devices"
    return alibaba2023.GPU if has_devices else None


def require_devices(table: BringingTable, cell: CellSpec) -> None:
    """The cell may be the scenario's own."""
    wanted = brought_devices(table)
    if wanted is not None and cell.device_resource != wanted:
        raise Misfit(
            ScenarioError(
                f"the cell's {wanted} does not consist of devices",
                expected=f'devices = "{wanted}" in [cell], or sharing = "pooled" or "none"',
            ),
            ("workload", "alibaba2023", "sharing"),
        )


def bring_jobs(
    scenario: Path, name: str, table: BringingTable, seed: int, notes: Notes
) -> Iterator[SimulatedJob]:
    """The jobs of the workload `name`, in order of submission; `notes` counts what is omitted."""
    place: TablePath = ("workload", name)
    if isinstance(table, ClusterTable):
        return _counted(_cluster_jobs(table, Random(seed).child("workload")), place)
    source = _source(scenario, name, table)
    if isinstance(table, AlibabaTable):
        pods = alibaba2023.jobs(
            source,
            pods=table.pods,
            start=table.start,
            span=table.span,
            sharing=table.sharing,
            notes=notes,
        )
        return _counted(pods, place)
    # Exports of 2019 are often not in order.
    jobs = _TRACES[name].jobs(
        source, start=table.start, span=table.span, in_order=False, notes=notes
    )
    return _counted(jobs, place)


def _cluster(table: ClusterTable) -> clusters.ClusterSpec:
    try:
        spec = clusters.cluster(table.name)
    except ArgosyError as error:
        raise Misfit(error, ("workload", "cluster", "name")) from None
    if table.varied:
        try:
            clusters.mix_of(spec)
        except ArgosyError as error:
            raise Misfit(error, ("workload", "cluster", "varied")) from None
    return spec


def _cluster_jobs(table: ClusterTable, random: Random) -> Iterator[SimulatedJob]:
    spec, place = _cluster(table), ("workload", "cluster", "rate")
    kind = dict[str, Multiple] if isinstance(table.rate, Mapping) else Multiple
    rate = _CONVERTER.convert(table.rate, kind, place)
    try:
        make = mapreduce.jobs if table.mapreduce else clusters.jobs
        arriving = make(
            spec,
            table.span,
            random,
            rate=rate,
            scale=table.scale,
            varied=table.varied,
            burstiness=table.burstiness,
        )
    except ArgosyError as error:
        raise Misfit(error, place) from None
    if not table.fill:
        return arriving
    if table.turnover == 0:
        raise Misfit(
            ScenarioError("a turnover of no length", expected='a mean such as "1h"'),
            ("workload", "cluster", "turnover"),
        )
    standing = clusters.fill(
        spec,
        random,
        scale=table.scale,
        turnover=table.turnover,
        span=table.span,
        varied=table.varied,
    )
    return merge(standing, arriving, key=attrgetter("submit"))


def _source(scenario: Path, name: str, table: GoogleTable | AlibabaTable) -> Path:
    source = scenario.parent / table.path
    if not source.is_dir():
        raise Misfit(
            ScenarioError(
                f"no directory {table.path!r}",
                expected="the directory of a trace, relative to the scenario",
            ),
            ("workload", name, "path"),
        )
    return source


def _counted(jobs: Iterable[SimulatedJob], place: TablePath) -> Iterator[SimulatedJob]:
    tasks = 0
    for job in jobs:
        tasks += job.tasks
        if tasks > MOST_TASKS_IN_ALL:
            raise Misfit(
                ScenarioError(
                    f"more than {MOST_TASKS_IN_ALL:,} tasks in total",
                    expected="a shorter span, or a smaller rate or scale",
                ),
                place,
            )
        yield job
    if not tasks:
        raise Misfit(ScenarioError("no jobs", expected="a longer span"), place)
