"""The points of the Murmuration paper's figures, at each scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.experiment import ExperimentPoint, Parameter
from argosy.papers.paper import Scale

PAPER: Final = "murmuration"
FIGURES: Final = ("2", "3", "4", "5", "9", "10", "11", "12", "13", "14", "15", "16")
#: The sweeps that a figure is drawn from.
SWEEPS: Final = {
    "2": ("A", "10"),
    "3": ("A",),
    "4": ("A",),
    "5": ("5",),
    "9": ("A",),
    "10": ("10",),
    "11": ("11",),
    "12": ("12",),
    "13": ("13",),
    "14": ("14",),
    "15": ("15", "batching"),
    "16": ("16",),
}
#: Systems of figures 12 and 13; schedulers of the cluster experiments in figures 3, 9 and 10.
SIMULATED: Final = (
    "sparrow",
    "yaq-d",
    "yaq-d-8s",
    "eagle",
    "murmuration-fcfs",
    "murmuration-srjf",
    "murmuration-sjf-stf",
)
#: Figures 14 to 16 do not say in which order Murmuration takes jobs; its default is FCFS. The text
#: calls the other order SJF + STF, which the authors' simulator does not have: it has the shortest
#: remaining job.
ORDERS: Final = ("murmuration-fcfs", "murmuration-srjf", "murmuration-sjf-stf")
KUBES: Final = ("kube-30s", "kube-1s", "kube-none")
#: How Kubernetes might do worse with a retry of 1 s: tasks that are ready again go to the end, as in its
#: code; or failed attempts cost as much as its limit of 50 requests per second makes them.
KUBE_READINGS: Final = ("kube-1s-ready", "kube-1s-costly")
#: How placements are told, and how long a message takes to read: with as many schedulers as the smallest
#: share of figure 15.
TOLD: Final = ("task", "job", "1 s", "100 placements")
READING: Final = 0.001
SHARE: Final = 0.25
SIZES: Final = (1_000, 5_000, 10_000, 15_000)
DELAYS: Final = (0.1, 1.0, 10.0, 100.0)
ERRORS: Final = (0.0, 0.15, 0.5)

SCALES: Final = {
    "smoke": Scale(
        name="smoke",
        about="a hundredth of the jobs and machines: only to see that it works",
    ),
    "quick": Scale(
        name="quick",
        about="a fifth of the jobs and of the machines; half the pods of the cluster experiments, in "
        "figure 11 a quarter",
    ),
    "full": Scale(
        name="full",
        about="the paper's: 10,000 jobs, up to 15,000 machines, 150,000 pods",
    ),
}
#: Number of jobs, and the divisor of the number of machines.
_SIZES: Final = {"smoke": (100, 100), "quick": (2_000, 5), "full": (10_000, 1)}
#: Pods of the cluster experiments and of the flood.
_PODS: Final = {
    "smoke": (3_000, 20_000),
    "quick": (75_000, 400_000),
    "full": (150_000, 1_600_000),
}
_SEEDS: Final = {"A": 3, "10": 3, "16": 3}


def plan(scale: str, figures: Sequence[str]) -> list[ExperimentPoint]:
    """All points of the figures, without duplicates."""
    names = dict.fromkeys(name for figure in figures for name in SWEEPS[figure])
    return [point for name in names for point in _points(scale, name)]


def _points(scale: str, name: str) -> list[ExperimentPoint]:
    seeds = 1 if scale == "smoke" else _SEEDS.get(name, 1)
    return [
        ExperimentPoint(paper=PAPER, figure=name, parameters=case, seed=seed, scale=scale)
        for case in _cases(scale, name)
        for seed in range(1, seeds + 1)
    ]


def _cases(scale: str, name: str) -> list[dict[str, Parameter]]:
    jobs, part = _SIZES[scale]
    pods, flood = _PODS[scale]
    match name:
        case "A":
            systems = (*KUBES, "murmuration", "murmuration-sum", *KUBE_READINGS)
            return [{"pattern": "A", "pods": pods, "system": system} for system in systems]
        case "10":
            return [
                {"pattern": pattern, "pods": pods, "system": system}
                for pattern in ("B", "C", "D")
                for system in ("kube-30s", "murmuration")
            ]
        case "11":
            return [{"pattern": "C", "pods": flood, "machines": 100, "system": "flood"}]
    return [
        {"jobs": jobs, "machines": machines // part, **case}
        for machines, case in _simulations(scale, name)
    ]


def _simulations(scale: str, name: str) -> list[tuple[int, dict[str, Parameter]]]:
    """Simulations, each with the paper's number of machines."""
    orders: list[dict[str, Parameter]] = [
        {"workload": "yahoo", "system": system} for system in ORDERS
    ]
    match name:
        case "5":
            return [(10_000, {"workload": "yahoo", "system": "sparrow"})]
        case "12" | "13":
            workload = "yahoo" if name == "12" else "cloudera"
            return [
                (size, {"workload": workload, "system": system})
                for size in SIZES
                for system in SIMULATED
            ]
        case "14":
            return [(5_000, {**order, "error": error}) for order in orders for error in ERRORS]
        case "15":
            shares = (SHARE, 1.0) if scale == "smoke" else (SHARE, 0.5, 1.0)
            return [
                (5_000, {**order, "schedulers": share, "delay": delay})
                for order in orders
                for share in shares
                for delay in (0.0, *DELAYS)
            ]
        case "batching":
            ways = [*((told, 0.0) for told in TOLD), ("task", READING), ("job", READING)]
            return [
                (5_000, {**orders[0], "schedulers": SHARE, "told": told, "reading": reading})
                for told, reading in ways
            ]
    # The same share of arrivals as 10 s of 75.
    restart = 10.0 * _SIZES[scale][0] / 10_000
    return [(5_000, {**order, "restart": restart}) for order in orders]
