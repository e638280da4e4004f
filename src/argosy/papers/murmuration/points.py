"""Which points the Murmuration paper's figures are made of, at each scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.experiment import Parameter, Point
from argosy.papers.paper import Scale

PAPER: Final = "murmuration"
FIGURES: Final = ("3", "4", "5", "9", "10", "11", "12", "13", "14", "15", "16")
#: The sweeps a figure is drawn from.
SWEEPS: Final = {
    "3": ("A",),
    "4": ("A",),
    "5": ("5",),
    "9": ("A",),
    "10": ("10",),
    "11": ("11",),
    "12": ("12",),
    "13": ("13",),
    "14": ("14",),
    "15": ("15",),
    "16": ("16",),
}
#: Systems of figures 12 and 13, and the clusters' schedulers of figures 3, 9 and 10.
SIMULATED: Final = ("sparrow", "yaq-d", "eagle", "murmuration-fcfs", "murmuration-srjf")
KUBES: Final = ("kube-30s", "kube-1s", "kube-none")
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
        about="a fifth of the jobs and of the machines; of the cluster experiments 800 jobs on 15 "
        "machines; figure 15 with 5 and 25 % as many schedulers as machines",
    ),
    "full": Scale(
        name="full",
        about="the paper's: 10,000 jobs, up to 15,000 machines, 20 hours of the cluster; figure 15 with "
        "up to 5 % as many schedulers as machines",
    ),
}
#: Jobs, by what machines are divided, and jobs of the cluster experiments.
_SIZES: Final = {"smoke": (100, 100, 60), "quick": (2_000, 5, 800), "full": (10_000, 1, 4_000)}
#: Machines of the cluster: so few at the smaller scales that it is as full as the paper's, whose runs
#: take about four times as long as jobs arrive.
_CLUSTER: Final = {"smoke": 2, "quick": 15, "full": 50}


def plan(scale: str, figures: Sequence[str]) -> list[Point]:
    """All points of the figures; what several of them need is there once."""
    names = dict.fromkeys(name for figure in figures for name in SWEEPS[figure])
    return [point for name in names for point in _points(scale, name)]


def _points(scale: str, name: str) -> list[Point]:
    jobs, part, cluster_jobs = _SIZES[scale]
    seeds = range(1, 2 if name != "16" else 4)
    points: list[Point] = []
    for case in _cases(scale, name):
        told: dict[str, Parameter] = {
            "jobs": cluster_jobs if "pattern" in case else jobs,
            **case,
        }
        if "machines" in told and "pattern" not in told:
            told["machines"] = int(told["machines"]) // part
        points.extend(
            Point(paper=PAPER, figure=name, parameters=told, seed=seed, scale=scale)
            for seed in seeds
        )
    return points


def _cases(scale: str, name: str) -> list[dict[str, Parameter]]:
    match name:
        case "A":
            systems = (*KUBES, "murmuration")
            return [
                {"pattern": "A", "machines": _CLUSTER[scale], "system": system}
                for system in systems
            ]
        case "10":
            return [
                {"pattern": pattern, "machines": _CLUSTER[scale], "system": system}
                for pattern in ("B", "C", "D")
                for system in ("kube-30s", "murmuration")
            ]
        case "11":
            tasks = {"smoke": 1.0, "quick": 20.0, "full": 80.0}[scale]
            return [{"pattern": "C", "machines": 100, "system": "flood", "scale": tasks}]
        case "5":
            return [{"workload": "yahoo", "machines": 10_000, "system": "sparrow"}]
        case "12" | "13":
            workload = "yahoo" if name == "12" else "cloudera"
            return [
                {"workload": workload, "machines": size, "system": system}
                for size in SIZES
                for system in SIMULATED
            ]
        case "14":
            return [
                {
                    "workload": "yahoo",
                    "machines": 5_000,
                    "system": "murmuration-srjf",
                    "error": error,
                }
                for error in ERRORS
            ]
        case "15":
            shares = {"smoke": (0.2,), "quick": (0.05, 0.25), "full": (0.01, 0.05)}[scale]
            return [
                {
                    "workload": "yahoo",
                    "machines": 5_000,
                    "system": "murmuration-srjf",
                    "schedulers": share,
                    "delay": delay,
                }
                for share in shares
                for delay in (0.0, *DELAYS)
            ]
    # As much of the arrivals as 10 s are of 75.
    restart = 10.0 * _SIZES[scale][0] / 10_000
    return [
        {"workload": "yahoo", "machines": 5_000, "system": "murmuration-srjf", "restart": restart}
    ]
