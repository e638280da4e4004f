"""Figures 10 and 11: decision time per job and per task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.papers.charts import Figure, HeatMap
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, Parameter
from argosy.papers.omega.reading import (
    KEEPS_UP,
    SERVICE_T_JOB,
    SERVICE_T_TASK,
    high_fidelity,
    listed,
    stand_in,
)
from argosy.papers.omega.world import KINDS

SCHEMES: Final = {
    "single-path": "Monolithic, single-path",
    "multi-path": "Monolithic, multi-path",
    "mesos": "Two-level (Mesos)",
    "mesos-simulator": "Two-level (Mesos), as in the published simulator",
    "omega": "Shared state (Omega)",
}
#: Busyness that counts as low, and the share of figure 11's plane that counts as "almost the entire
#: range".
LOW: Final = 0.5
ALMOST_ALL: Final = 0.8


def unscheduled(found: Findings, figure: str, **where: Parameter) -> bool:
    """Whether part of the workload stayed unscheduled at a point of the plane."""
    return any(
        result.values.get(f"{kind}.unscheduled", 0.0) > KEEPS_UP
        for _, result in found.select(figure, **where)
        for kind in KINDS
    )


def _plane(found: Findings, figure: str, title: str, **where: Parameter) -> HeatMap:
    jobs = sorted(found.values(figure, "service_t_job"))
    tasks = sorted(found.values(figure, "service_t_task"), reverse=True)
    rows, struck = [], []
    for task in tasks:
        row: list[float | None] = []
        for job in jobs:
            here = found.select(figure, service_t_job=job, service_t_task=task, **where)
            row.append(here[0][1].values.get("service.busyness") if here else None)
        rows.append(tuple(row))
        struck.append(
            tuple(
                unscheduled(found, figure, service_t_job=job, service_t_task=task, **where)
                for job in jobs
            )
        )
    of_all = where.get("scheme") == "single-path"
    return HeatMap(
        title=title,
        x="t_job [s]" if of_all else SERVICE_T_JOB,
        y="t_task [s]" if of_all else SERVICE_T_TASK,
        value="busyness",
        xs=tuple(f"{job:g}" for job in jobs),
        ys=tuple(f"{task:g}" for task in tasks),
        rows=tuple(rows),
        struck=tuple(struck),
        struck_label="part of the workload unscheduled",
    )


def draw_10(found: Findings) -> Figure:
    return Figure(
        number="10",
        title="Decision time per job and per task",
        caption="Cluster B. Busyness of the scheduler that takes service jobs. The paper draws "
        "surfaces and shades them red where part of the workload remained unscheduled.",
        panels=tuple(
            _plane(found, "10", title, scheme=scheme)
            for scheme, title in SCHEMES.items()
            if scheme in found.values("10", "scheme")
        ),
    )


def claims_10(found: Findings) -> Iterator[Claim]:
    if not found.has("10"):
        return
    jobs, tasks = found.values("10", "service_t_job"), found.values("10", "service_t_task")
    schemes = [scheme for scheme in SCHEMES if scheme in found.values("10", "scheme")]
    share = {
        scheme: sum(
            unscheduled(found, "10", scheme=scheme, service_t_job=job, service_t_task=task)
            for job in jobs
            for task in tasks
        )
        / (len(jobs) * len(tasks))
        for scheme in schemes
    }
    if {"single-path", "multi-path", "omega"} <= share.keys():
        yield Claim(
            id="omega-10-shared-state-scales-further",
            figure="10",
            paper="monolithic scheduling is not scalable; shared state is competitive and scales",
            here=listed(share, "{:.0%}") + " of the plane leaves work unscheduled",
            tolerance="single-path above multi-path, and multi-path not below shared state",
            holds=share["single-path"] > share["multi-path"] >= share["omega"],
        )
    for scheme in ("mesos", "mesos-simulator"):
        if scheme not in share or "omega" not in share:
            continue
        yield Claim(
            id=f"omega-10-{scheme}-leaves-work",
            figure="10",
            paper="Mesos could not schedule much of the heterogeneous load",
            here=f"{share[scheme]:.0%} of the plane leaves work unscheduled, shared state "
            f"{share['omega']:.0%}",
            tolerance="a larger part of the plane than shared state",
            holds=share[scheme] > share["omega"],
            note=SCHEMES[scheme],
        )


def draw_11(found: Findings) -> Figure:
    return Figure(
        number="11",
        title="Decision time per job and per task, on cluster C",
        caption="Busyness of the service scheduler under shared state. The paper draws a surface.",
        panels=(_plane(found, "11", SCHEMES["omega"]),),
        note=high_fidelity(found, "11"),
    )


def claims_11(found: Findings) -> Iterator[Claim]:
    # A trace may have no service job in the time of the point.
    name = "service.busyness"
    busyness = [result[name] for _, result in found.select("11") if name in result.values]
    if not busyness:
        return
    share = sum(value <= LOW for value in busyness) / len(busyness)
    yield Claim(
        id="omega-11-service-busyness-stays-low",
        figure="11",
        paper="service busyness remains low across almost the entire range of t_job and t_task",
        here=f"at most {LOW:g} at {share:.0%} of the points, {max(busyness):.2g} at the most",
        tolerance=f"at most {LOW:g} at {ALMOST_ALL:.0%} of the points",
        holds=share >= ALMOST_ALL,
        note=stand_in(found, "11"),
    )
