"""Runs one point of the Medea paper: dispatches to the function for its figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from argosy.papers.experiment import ExperimentPoint, PointResult
from argosy.papers.medea import applications, violations
from argosy.papers.medea.latency import designs, growing
from argosy.papers.medea.resilience import resilience
from argosy.papers.medea.tasks import beside_applications

_RUNS: Final[dict[str, Callable[[ExperimentPoint], PointResult]]] = {
    "2a": applications.streaming,
    "2b": applications.region_servers,
    "2c": applications.cardinalities,
    "2d": applications.cardinalities,
    "7": applications.deployment,
    "8": resilience,
    "9a": violations.filling,
    "9b": violations.beside_tasks,
    "9c": violations.intervals,
    "9d": violations.complexity,
    "11a": growing,
    "11b": designs,
    "11c": beside_applications,
}


def run_point(point: ExperimentPoint) -> PointResult:
    return _RUNS[point.figure](point)
