"""The points of the Omega paper's figures, at each scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from argosy.papers.experiment import ExperimentPoint, Parameter
from argosy.papers.paper import Scale

PAPER: Final = "omega"
CLUSTERS: Final = ("A", "B", "C")
#: For figures 15 and 16.
MAPREDUCE_CLUSTERS: Final = ("A", "C", "D")
FIGURES: Final = (
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "10",
    "11",
    "12",
    "13",
    "14",
    "15",
    "16",
    "guarantees",
    "variants",
)
#: The sweeps that a figure is drawn from, and those that its claims compare it with.
SWEEPS: Final = {
    "2": ("2",),
    "3": ("2",),
    "4": ("2",),
    "5": ("5a", "5b", "5c"),
    "6": ("5a", "5b", "5c"),
    "7": ("7", "7-first", "7-simulator", "5b"),
    "8": ("8",),
    "9": ("9", "9-simulator"),
    "10": ("10",),
    "11": ("11",),
    "12": ("12", "5c"),
    "13": ("13",),
    "14": ("14",),
    "15": ("15",),
    "16": ("15",),
    "guarantees": ("patience", "weight", "regions"),
    "variants": ("5c-variants", "12-variants"),
}
#: Other arrivals and another fill than the paper's, in "variants".
VARIANTS: Final[dict[str, dict[str, Parameter]]] = {
    "bursty arrivals": {"burstiness": 4.0},
    "a fill that churns": {"turnover_hours": 2.0},
}
#: The most that is lost before a job insists (0: never), whether schedulers keep to fair shares, and the
#: number of regions, as varied in "guarantees".
PATIENCES: Final = (0, 1, 3)
WEIGHTS: Final = (0.0, 1.0)
REGIONS: Final = (1, 3, 12)

#: The stand-in for the high-fidelity simulator: machines of several kinds, picky jobs, and a rule by
#: which schedulers want the same machines.
_HIGH_FIDELITY: Final[dict[str, Parameter]] = {"machines": "mixed", "placement": "best-fit"}

SCALES: Final = {
    "smoke": Scale(
        name="smoke",
        about="a tenth of each cell for 15 minutes, a few points: only to see that it works",
    ),
    "quick": Scale(
        name="quick",
        about="whole cells for 2 to 48 hours instead of 7 days, fewer points; error bars are over "
        "2 or 3 seeds where the paper's are over days",
    ),
    "full": Scale(name="full", about="the paper's: whole cells, 7 days, whole sweeps"),
}


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """The cases of one figure; each is run for `hours`, or its own number of hours, with seeds 1, 2,
    …"""

    cases: list[dict[str, Parameter]]
    hours: float
    seeds: int = 1


def plan(scale: str, figures: Sequence[str]) -> list[ExperimentPoint]:
    """All points of the figures, without duplicates. The longest come first, so that no processor is
    left with a long one at the end."""
    names = dict.fromkeys(name for figure in figures for name in SWEEPS[figure])
    points = [point for name in names for point in _points(scale, name)]
    return sorted(points, key=_effort, reverse=True)


def _effort(point: ExperimentPoint) -> float:
    told = point.parameters
    return float(told.get("rate", 1.0)) * float(told["hours"])


def _points(scale: str, name: str) -> list[ExperimentPoint]:
    sweep = _sweep(scale, name)
    common: dict[str, Parameter] = {"hours": sweep.hours}
    if scale == "smoke":
        common["cell"] = 0.1
    return [
        ExperimentPoint(
            paper=PAPER, figure=name, parameters={**common, **case}, seed=seed, scale=scale
        )
        for case in sweep.cases
        for seed in range(1, sweep.seeds + 1)
    ]


def _sweep(scale: str, name: str) -> Sweep:
    hours = {"smoke": 0.25, "quick": 2.0, "full": 168.0}[scale]
    pair, seeds = (2, 3) if scale == "quick" else (1, 1)
    times = _times(scale)
    match name:
        case "2":
            return Sweep(
                cases=[{"cluster": cluster} for cluster in CLUSTERS],
                hours={"smoke": 2.0, "quick": 24.0, "full": 168.0}[scale],
            )
        case "5a":
            return Sweep(
                cases=_over(CLUSTERS, times, scheme="single-path"), hours=hours, seeds=pair
            )
        case "5b":
            return Sweep(cases=_over(CLUSTERS, times, scheme="multi-path"), hours=hours, seeds=pair)
        case "5c":
            return Sweep(cases=_over(CLUSTERS, times, scheme="omega"), hours=hours, seeds=pair)
        case "7":
            # One day, as in the paper: failed attempts make it slow.
            return Sweep(
                cases=_over(CLUSTERS, _offer_times(scale), scheme="mesos"),
                hours=24.0 if scale == "full" else hours,
            )
        case "7-first":
            ends = (_offer_times(scale)[0], _offer_times(scale)[-1])
            return Sweep(
                cases=_over(("A",), ends, scheme="mesos", retry="first"),
                hours=24.0 if scale == "full" else hours,
            )
        case "7-simulator":
            # As in the published simulator.
            return Sweep(
                cases=_over(CLUSTERS, _offer_times(scale), scheme="mesos-simulator"),
                hours=24.0 if scale == "full" else hours,
            )
        case "8":
            cases: list[dict[str, Parameter]] = [
                {"cluster": cluster, "rate": rate}
                for cluster in CLUSTERS
                for rate in _rates(scale)[cluster]
            ]
            return Sweep(cases=cases, hours=hours)
        case "9":
            counts, rates = _crowds(scale)
            return Sweep(
                cases=[{"schedulers": n, "rate": rate} for n in counts for rate in rates],
                hours=hours,
                seeds=seeds,
            )
        case "9-simulator":
            # As in the published simulator: a pause before each further attempt, jobs dealt in turn.
            counts, rates = _crowds(scale)
            return Sweep(
                cases=[
                    {"scheme": "omega-simulator", "schedulers": n, "rate": rates[-1]}
                    for n in counts
                ],
                hours=hours,
                seeds=seeds,
            )
        case "10":
            cases = [
                {"cluster": "B", "scheme": scheme, **times}
                for scheme in ("single-path", "multi-path", "omega", "mesos", "mesos-simulator")
                for times in _plane(scale)
            ]
            return Sweep(cases=cases, hours=24.0 if scale == "full" else hours)
        case "11":
            cases = [{"cluster": "C", **_HIGH_FIDELITY, **times} for times in _plane(scale)]
            return Sweep(cases=cases, hours=29 * 24.0 if scale == "full" else hours)
        case "12":
            varied = _over(("B",), times, **_HIGH_FIDELITY)
            slow: dict[str, Parameter] = {"cluster": "B", **_HIGH_FIDELITY, "service_t_task": 1.0}
            other = _over(("C",), (10.0,), **_HIGH_FIDELITY)
            return Sweep(cases=[*varied, slow, *other], hours=hours, seeds=seeds)
        case "13":
            cases = [
                {
                    "cluster": "C",
                    **_HIGH_FIDELITY,
                    "placement": rule,
                    "schedulers": n,
                    "batch_t_job": seconds,
                }
                for rule in ("first-fit", "best-fit")
                for n in (1, 3)
                for seconds in _batch_times(scale)
            ]
            return Sweep(cases=cases, hours={"smoke": 0.25, "quick": 6.0, "full": 24.0}[scale])
        case "14":
            cases = [
                {
                    "cluster": "C",
                    **_HIGH_FIDELITY,
                    "transaction": transaction,
                    "detection": detection,
                    "service_t_job": seconds,
                }
                for transaction in ("incremental", "atomic")
                for detection in ("fine", "coarse-claims", "coarse")
                for seconds in _gang_times(scale)
            ]
            return Sweep(
                cases=cases, hours={"smoke": 0.25, "quick": 12.0, "full": 29 * 24.0}[scale]
            )
        case "15":
            # D has an eighth of the MapReduce jobs of C, and C a quarter of those of A.
            spans = {"A": 4.0, "C": 12.0, "D": 48.0} if scale == "quick" else {}
            cases = [
                {"cluster": cluster, "policy": policy, "hours": spans.get(cluster, hours)}
                for cluster in MAPREDUCE_CLUSTERS
                for policy in ("max-parallelism", "global-cap", "relative-job-size", "none")
                # Only figure 16 compares with no extra workers, on cluster C.
                if policy != "none" or cluster == "C"
            ]
            return Sweep(cases=cases, hours=hours)
        case "5c-variants":
            cases = [
                {"cluster": "B", **variant, "service_t_job": seconds}
                for variant in VARIANTS.values()
                for seconds in (0.1, 10.0, 100.0)
            ]
            return Sweep(cases=cases, hours=hours)
        case "12-variants":
            cases = [
                {"cluster": "B", **_HIGH_FIDELITY, **variant, "service_t_job": seconds}
                for variant in VARIANTS.values()
                for seconds in (0.1, 3.0, 10.0, 30.0)
            ]
            return Sweep(cases=cases, hours=hours)
        case "patience":
            # Where section 5.1 finds a retry for every job.
            cases = [
                {"cluster": "B", "placement": "best-fit", "service_t_job": 10.0, "patience": lost}
                for lost in PATIENCES
            ]
            return Sweep(cases=cases, hours=hours, seeds=seeds)
        case "weight":
            # So many batch jobs that the cell is full.
            cases = [
                {"cluster": "B", "cell": 0.1, "rate": 24.0, "schedulers": 8, "weight": weight}
                for weight in WEIGHTS
            ]
            return Sweep(cases=cases, hours=hours, seeds=seeds)
        case "regions":
            # As in figure 13, before saturation.
            cases = [
                {
                    "cluster": "C",
                    "placement": "best-fit",
                    "schedulers": 3,
                    "batch_t_job": 4.0,
                    "regions": count,
                }
                for count in REGIONS
            ]
            return Sweep(cases=cases, hours=hours, seeds=seeds)
    raise ValueError(f"no sweep is called {name!r}")


def _over(
    clusters: Sequence[str], times: Sequence[float], **same: Parameter
) -> list[dict[str, Parameter]]:
    return [
        {"cluster": cluster, **same, "service_t_job": seconds}
        for cluster in clusters
        for seconds in times
    ]


def _times(scale: str) -> tuple[float, ...]:
    match scale:
        case "smoke":
            return (0.1, 1.0, 10.0)
        case "quick":
            return (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    return (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def _offer_times(scale: str) -> tuple[float, ...]:
    return (0.1, 1.0, 10.0, 30.0, 100.0) if scale == "quick" else _times(scale)


def _rates(scale: str) -> dict[str, tuple[float, ...]]:
    """Rates up to and beyond each cluster's saturation, with smaller steps near it."""
    match scale:
        case "smoke":
            return dict.fromkeys(CLUSTERS, (1.0, 4.0))
        case "quick":
            return {
                "A": (1.0, 1.5, 2.0, 2.25, 2.5, 2.75, 3.0, 4.0),
                "B": (1.0, 2.0, 4.0, 5.0, 5.5, 6.0, 6.5, 8.0),
                "C": (1.0, 2.0, 4.0, 6.0, 8.0, 9.0, 9.5, 10.0, 12.0),
            }
    return {
        "A": (1.0, 1.5, 2.0, 2.25, 2.5, 2.75, 3.0, 4.0),
        "B": (1.0, 2.0, 3.0, 4.0, 5.0, 5.5, 6.0, 6.5, 7.0, 8.0),
        "C": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.5, 10.0, 11.0),
    }


def _crowds(scale: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Numbers of batch schedulers, and arrival rates."""
    match scale:
        case "smoke":
            return (1, 4), (1.0, 4.0)
        case "quick":
            return (1, 2, 4, 8, 16, 32), (1.0, 4.0, 8.0)
    return (1, 2, 4, 8, 16, 32), (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)


def _plane(scale: str) -> list[dict[str, Parameter]]:
    jobs: tuple[float, ...]
    tasks: tuple[float, ...]
    match scale:
        case "smoke":
            jobs, tasks = (0.1, 10.0), (0.005, 1.0)
        case "quick":
            jobs, tasks = (0.1, 1.0, 10.0, 30.0, 100.0), (0.005, 0.1, 1.0)
        case _:
            jobs = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
            tasks = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    return [{"service_t_job": job, "service_t_task": task} for task in tasks for job in jobs]


def _batch_times(scale: str) -> tuple[float, ...]:
    match scale:
        case "smoke":
            return (1.0, 10.0)
        case "quick":
            return (1.0, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 9.0, 10.0, 15.0)
    return (0.3, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0, 10.0, 15.0)


def _gang_times(scale: str) -> tuple[float, ...]:
    match scale:
        case "smoke":
            return (1.0, 10.0)
        case "quick":
            return (0.3, 1.0, 3.0, 10.0, 30.0)
    return (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
