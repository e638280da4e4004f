"""Figure 7: two-level scheduling (Mesos)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.papers.charts import Axis, Chart, Figure, Line
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.omega.points import CLUSTERS
from argosy.papers.omega.reading import (
    along,
    busyness_axis,
    by_cluster,
    listed,
    marks,
    slo_rule,
    time_axis,
    wait_axis,
)

#: Decision times of services, in seconds: up to which hardly any time of a monolithic scheduler is
#: theirs, and from which on they lock resources for long.
QUICK: Final = 0.1
SLOW: Final = 1.0


def draw_7(found: Findings) -> Figure:
    panels = (
        Chart(
            title="(a) Job wait time", x=time_axis(), y=wait_axis(),
            lines=by_cluster(found, "7", "wait"), rules=slo_rule(),
        ),
        Chart(
            title="(b) Scheduler busyness", x=time_axis(), y=busyness_axis(),
            lines=by_cluster(found, "7", "busyness"),
        ),
        Chart(
            title="(c) Jobs abandoned after 1,000 attempts", x=time_axis(),
            y=Axis(label="jobs abandoned", low=0.0, high=1.0),
            lines=(
                *by_cluster(found, "7", "abandoned"),
                Line(
                    label="batch A, retried first",
                    marks=marks(found, "7-first", "service_t_job", "batch.abandoned"),
                    colour=3,
                ),
                Line(
                    label="batch A, as in the published simulator",
                    marks=marks(
                        found, "7-simulator", "service_t_job", "batch.abandoned", cluster="A"
                    ),
                    colour=4,
                ),
            ),
        ),
    )  # fmt: skip
    return Figure(
        number="7",
        title="Two-level scheduling (Mesos)",
        caption="Offers of everything that is free, to one framework at a time. Solid: batch; dashed: "
        "service.",
        panels=panels,
    )


def claims_7(found: Findings) -> Iterator[Claim]:
    yield from _abandoning(
        found,
        "7",
        "omega-7c-mesos-abandons-jobs",
        setup="a job that was not wholly placed waits behind others",
    )
    at_once = along(found, "7-first", "batch.abandoned", "A")
    if len(at_once) > 1:
        first, last = at_once[min(at_once)], at_once[max(at_once)]
        yield Claim(
            id="omega-7c-mesos-abandons-jobs-retried-first",
            figure="7c",
            paper="jobs are abandoned as t_job(service) grows",
            here=f"batch jobs abandoned: {first:.0f} to {last:.0f} (A)",
            tolerance="more at the longest t_job(service) than at the shortest",
            holds=last > first,
            setup="a job that was not wholly placed is tried again before all others",
            note="added when the claim was seen not to hold for jobs that wait behind others",
        )
    yield from _abandoning(
        found,
        "7-simulator",
        "omega-7c-mesos-abandons-jobs-simulator",
        setup="as the published simulator",
        note="offers are made once a second if 100 cores are free, also to a framework that still "
        "decides; it goes through its queue with each, queues what failed again after 1 s, and "
        "abandons a job after 100 attempts of which none placed a task",
    )
    ratios = {}
    for cluster in CLUSTERS:
        two, multi = (along(found, s, "batch.busyness", cluster) for s in ("7", "5b"))
        slow = [two[x] for x in two if x in multi and x >= SLOW]
        if not slow or min(multi) > QUICK:
            return
        # The share of the single scheduler that batch jobs alone use: its busyness with fast service
        # decisions.
        ratios[cluster] = max(slow) / multi[min(multi)]
    yield Claim(
        id="omega-7b-mesos-batch-busyness",
        figure="7b",
        paper="batch busyness is much higher than in the monolithic multi-path case",
        here=listed(ratios, "{:.3g}x") + " what batch jobs take of a monolithic scheduler",
        tolerance="at least 1.5x on every cluster for some t_job(service)",
        holds=min(ratios.values()) >= 1.5,
    )


def _abandoning(
    found: Findings, series: str, claim: str, *, setup: str, note: str = ""
) -> Iterator[Claim]:
    """Whether more jobs are abandoned as decisions on services take longer."""
    abandoned = {c: along(found, series, "batch.abandoned", c) for c in CLUSTERS}
    ends = {c: (v[min(v)], v[max(v)]) for c, v in abandoned.items() if len(v) > 1}
    if ends:
        yield Claim(
            id=claim,
            figure="7c",
            paper="jobs are abandoned as t_job(service) grows",
            here="batch jobs abandoned: "
            + ", ".join(f"{a:.0f} to {b:.0f} ({c})" for c, (a, b) in ends.items()),
            tolerance="more at the longest t_job(service) than at the shortest, on some cluster",
            holds=any(b > a for a, b in ends.values()),
            setup=setup,
            note=note,
        )
