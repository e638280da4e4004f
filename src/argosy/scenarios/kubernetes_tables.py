"""A Kubernetes cluster as a scenario's workload: `[workload.kubernetes]`, or a file of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from argosy.model.errors import ScenarioError, excerpt
from argosy.model.truth import SimulatedJob
from argosy.model.units import Time
from argosy.workloads.tables import Misfit, TablePath

if TYPE_CHECKING:
    from argosy.workloads.pod_workloads import CarriedOver

KUBERNETES: Final = "kubernetes"
PLACE: Final[TablePath] = ("workload", KUBERNETES)
#: Ends of the names of files that hold a cluster instead of a scenario.
SUFFIXES: Final = (".json", ".yaml", ".yml")
#: What schedules a cluster whose file is run by itself: the model of its own scheduler.
DEFAULT_ENGINE: Final = "kube"
#: The end of a scenario whose only jobs run until stopped.
SHORTEST_HORIZON: Final = 60_000_000
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class KubernetesTable(msgspec.Struct, frozen=True, kw_only=True):
    """A file that kubectl has printed, relative to the scenario file."""

    path: str
    #: Pods that came within this time before the end come one after another; others are there from
    #: the beginning.
    since: Time = 0
    #: Whether pods that have a node at the beginning stay there.
    pinned: bool = False


def is_cluster_file(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def document_of(path: Path) -> dict[str, Any]:
    """The scenario that a cluster's file stands for."""
    name = _UNNAMEABLE.sub("-", path.stem).strip("-.")[:100] or KUBERNETES
    return {
        "name": name,
        "workload": {KUBERNETES: {"path": path.name}},
        "fleet": [{"name": "scheduler", "engine": DEFAULT_ENGINE}],
    }


def written_out(document: dict[str, Any]) -> dict[str, Any]:
    """With the short form `kubernetes = "cluster.json"` as a table."""
    workload = document.get("workload")
    if not isinstance(workload, dict) or not isinstance(workload.get(KUBERNETES), str):
        return document
    return {**document, "workload": {**workload, KUBERNETES: {"path": workload[KUBERNETES]}}}


def bring_cluster(scenario: Path, table: KubernetesTable) -> CarriedOver:
    """The machines, node groups and jobs of the cluster."""
    # Most scenarios need nothing of Kubernetes.
    from argosy.scenarios.kubernetes_files import read_cluster
    from argosy.workloads.pod_workloads import carry_over

    source = scenario.parent / table.path
    if not is_cluster_file(source):
        raise Misfit(
            ScenarioError(
                f"file {excerpt(table.path)}", expected="a name that ends in " + ", ".join(SUFFIXES)
            ),
            (*PLACE, "path"),
        )
    if not source.is_file():
        raise Misfit(
            ScenarioError(
                f"no file {excerpt(table.path)}",
                expected="the path of a file that kubectl has printed, relative to the scenario",
            ),
            (*PLACE, "path"),
        )
    carried = carry_over(read_cluster(source, table.since), pinned=table.pinned)
    if not carried.jobs:
        raise Misfit(
            ScenarioError(
                "no pods that run or wait",
                expected="pods that have not ended",
                hint="; ".join(carried.left_out) or None,
            ),
            PLACE,
        )
    return carried


def default_horizon(jobs: Iterable[SimulatedJob]) -> int | None:
    """When to end if some jobs run until stopped: twice the time that the others need, as they may wait
    longer than they did. None if all jobs end."""
    last, is_endless = SHORTEST_HORIZON, False
    for job in jobs:
        times = [time for truth in job.truth for time in truth.durations]
        last = max(last, job.submit + max(times, default=0))
        is_endless = is_endless or job.is_endless
    return 2 * last if is_endless else None
