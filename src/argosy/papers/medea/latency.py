"""Figures 11a and 11b: the processor time it takes to place an application."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import structs

from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.papers.medea.trial import HBASE, HBASE_ROLES, MB, PlacementTrial, sized
from argosy.solvers.placement import ContainerKind
from argosy.solvers.placement.ilp import SolverLimits

#: The shares of the memory that are used in the end, in figures 11a and 11b.
_FILL: Final = 0.2
_FULL: Final = 0.9


def growing(point: ExperimentPoint) -> PointResult:
    """Figure 11a: applications fill an empty cell to 20 %; the time to place one."""
    machines = int(point.parameters["machines"])
    name = str(point.parameters["algorithm"])
    cell = PlacementTrial(machines, max(2, machines // 50), name, point.seed)
    while cell.used < _FILL and cell.batch():
        pass
    return PointResult(
        {
            "milliseconds": 1e3 * cell.spent / max(1, cell.applications),
            DONE: min(1.0, cell.used / _FILL),
        }
    )


def designs(point: ExperimentPoint) -> PointResult:
    """Figure 11b: a cell of 256 machines that ends nine tenths full; one scheduler for all, or two.
    In each cycle two applications arrive, with as many tasks, in jobs of ten, as their share requires.

    As in the paper's program, no machine is left out and identical containers have separate variables:
    with counts instead, tasks would cost the program almost nothing.
    """
    machines, share = sized(point, 256), float(point.parameters["share"])
    cell = PlacementTrial(machines, max(2, machines // 26), "ilp-solved", point.seed)
    cell.limits = SolverLimits(machines=machines, places=10**9, nodes=500)
    is_all = point.parameters["design"] == "ilp-all"
    cycles: list[float] = []
    while cell.used < _FULL:
        before, spent = cell.used, cell.spent
        kinds = [k for app in range(2) for k in cell.submit(HBASE_ROLES, HBASE, app)]
        memory = sum(kind.count * int(kind.request[0]) for kind in kinds)
        jobs = max(1, round(memory * (1 - share) / share / MB / 10))
        if is_all:
            kinds += [
                ContainerKind(2 + at, frozenset({"task"}), np.array([MB]), 10) for at in range(jobs)
            ]
        cell.place([structs.replace(k, count=1) for k in kinds for _ in range(k.count)])
        if not is_all:
            _take(cell, 10 * jobs)
        cycles.append(1e3 * (cell.spent - spent) / 2)
        if cell.used <= before:
            break
    return PointResult(
        {
            "milliseconds": float(np.mean(cycles)),
            "median": float(np.median(cycles)),
            DONE: min(1.0, cell.used / _FULL),
        },
        {"cycles": cycles},
    )


def _take(cell: PlacementTrial, tasks: int) -> None:
    """The task scheduler puts tasks where there is most room."""
    while tasks > 0:
        order = np.argsort(-cell.free[:, 0], kind="stable")
        order = order[cell.free[order, 0] >= MB][:tasks]
        if not len(order):
            return
        cell.free[order, 0] -= MB
        tasks -= len(order)
