"""Figures 9 and 10: how many containers violate constraints, and how the machines are used."""

from __future__ import annotations

from typing import Final

import numpy as np

from argosy.papers.experiment import ExperimentPoint, PointResult
from argosy.papers.medea.trial import HBASE_AS_PRINTED, HBASE_ROLES, PlacementTrial, trial
from argosy.solvers.placement import ContainerKind

#: Steps of utilisation in figures 9a and 10.
STEPS: Final = tuple(range(10, 100, 10))
#: The share held by tasks in figures 9c and 9d; the share that applications reach in addition.
TASKS: Final = 0.4
APPLICATIONS: Final = 0.1


def filling(point: ExperimentPoint) -> PointResult:
    """Figures 9a and 10: applications fill the cell, two at a time."""
    cell, values = trial(point), {}
    for step in STEPS:
        while cell.used < step / 100 and cell.batch():
            pass
        violating, extent = cell.violating()
        values[f"violating.{step}"], values[f"extent.{step}"] = violating, extent
        values[f"fragmented.{step}"] = cell.fragmented()
        values[f"imbalance.{step}"] = cell.imbalance()
        values[f"used.{step}"] = cell.used
    return PointResult(values)


def beside_tasks(point: ExperimentPoint) -> PointResult:
    """Figure 9b: 10 % applications in a cell with tasks."""
    cell, share = trial(point), float(point.parameters["tasks"])
    cell.fill_with_tasks(share)
    while cell.used < share + APPLICATIONS and cell.batch(HBASE_AS_PRINTED):
        pass
    return _judged(cell)


def intervals(point: ExperimentPoint) -> PointResult:
    """Figure 9c: families of ten, with the point's number of applications per interval."""
    return _families(trial(point), 10, int(point.parameters["period"]))


def complexity(point: ExperimentPoint) -> PointResult:
    """Figure 9d: families of the given complexity, two applications per interval."""
    return _families(trial(point), int(point.parameters["complexity"]), 2)


def _judged(cell: PlacementTrial) -> PointResult:
    violating, extent = cell.violating()
    return PointResult({"violating": violating, "extent": extent})


def _families(cell: PlacementTrial, size: int, batch: int) -> PointResult:
    """HBase instances in families of `size`: the workers of each want some workers of every other
    member in their rack, and at most two workers of any instance are on a machine. Members arrive in
    random order, so a family arrives over many intervals."""
    cell.fill_with_tasks(TASKS)
    memory = sum(amount * count for _, amount, count in HBASE_ROLES)
    families = max(1, round(APPLICATIONS * float(cell.capacity.sum()) / memory / size))
    arriving = np.argsort(cell.random.child("arrivals").integers(families * size, 2**30))
    waiting: list[ContainerKind] = []
    for at, number in enumerate(arriving.tolist()):
        waiting += _member(cell, number // size, number % size, size, at % batch)
        if at % batch == batch - 1:
            cell.place(waiting)
            waiting = []
    if waiting:
        cell.place(waiting)
    return _judged(cell)


def _member(
    cell: PlacementTrial, family: int, index: int, size: int, app: int
) -> list[ContainerKind]:
    texts = [
        f"appID:self & worker -> {{family:{family} & member:{other} & worker, 1, inf}} in rack"
        for other in range(size)
        if other != index
    ]
    mark = f"family:{family} member:{index}"
    roles = [(f"{role} {mark}", memory, count) for role, memory, count in HBASE_ROLES]
    return cell.submit(roles, [*HBASE_AS_PRINTED, *texts], app)
