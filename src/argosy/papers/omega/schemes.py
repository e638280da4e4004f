"""Figures 5 and 6: monolithic and shared-state scheduling as decisions take longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from argosy.papers.charts import Chart, Figure, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.omega.points import CLUSTERS
from argosy.papers.omega.reading import (
    KEEPS_UP,
    SERVICE_T_JOB,
    along,
    busyness_axis,
    by_cluster,
    growth,
    listed,
    marks,
    on_every_cluster,
    slo_rule,
    time_axis,
    wait_axis,
)
from argosy.papers.omega.world import KINDS

#: This many may still be in progress when a run ends, even if there were few.
FEW_JOBS: Final = 5
#: Fewer are not enough for a mean.
ENOUGH_JOBS: Final = 20
#: Seconds up to which service decisions hardly hold up batch jobs.
QUICK: Final = 0.3


def _three() -> tuple[tuple[str, str, str], ...]:
    return (
        ("5a", "Monolithic, single-path", "t_job [s]"),
        ("5b", "Monolithic, multi-path", SERVICE_T_JOB),
        ("5c", "Shared state (Omega)", SERVICE_T_JOB),
    )


def draw_5(found: Findings) -> Figure:
    return Figure(
        number="5",
        title="Job wait time",
        caption="Mean time from submission to the first attempt, of jobs that had one, against the "
        "decision time per job: of all jobs (a), of service jobs only (b, c). Solid: batch; dashed: "
        "service. On a logarithmic axis, zero stands on the lower edge.",
        panels=tuple(
            Chart(
                title=f"({part[-1]}) {title}",
                x=time_axis(label),
                y=wait_axis(),
                lines=by_cluster(found, part, "wait"),
                rules=slo_rule(),
            )
            for part, title, label in _three()
        ),
    )


def claims_5(found: Findings) -> Iterator[Claim]:
    if not on_every_cluster(found, "5a", "5b", "5c"):
        return
    apart = [
        max(batch, service) / min(batch, service)
        for cluster in CLUSTERS
        for x, batch in along(found, "5a", "batch.wait", cluster).items()
        if along(found, "5a", "service.begun", cluster).get(x, 0.0) >= ENOUGH_JOBS
        and (service := along(found, "5a", "service.wait", cluster)[x]) > 1.0
        and batch > 1.0
    ]
    if apart:
        yield Claim(
            id="omega-5a-service-tracks-batch",
            figure="5a",
            paper="wait times of service jobs closely track those of batch jobs",
            here=f"at most {max(apart):.2f}x apart where waits exceed 1 s",
            tolerance=f"at most 1.5x apart, where at least {ENOUGH_JOBS} service jobs had an attempt",
            holds=max(apart) <= 1.5,
        )
    less = [
        (single / max(multi, 1e-6), cluster, x)
        for cluster in CLUSTERS
        for x, single in along(found, "5a", "batch.wait", cluster).items()
        if x >= 1.0
        and along(found, "5b", "batch.unscheduled", cluster).get(x, 1.0) <= KEEPS_UP
        and (multi := along(found, "5b", "batch.wait", cluster).get(x)) is not None
    ]
    if less:
        least, cluster, x = min(less)
        yield Claim(
            id="omega-5b-multi-path-waits-less",
            figure="5b",
            paper="a fast path for batch jobs decreases wait time significantly",
            here=f"batch jobs wait at least {least:.2g}x less ({cluster}, {x:g} s)",
            tolerance="at least 2x less from 1 s on, where the multi-path scheduler keeps up",
            holds=least >= 2.0,
        )
    blocked = {c: growth(along(found, "5b", "batch.wait", c)) for c in CLUSTERS}
    yield Claim(
        id="omega-5b-head-of-line-blocking",
        figure="5b",
        paper="batch jobs still get stuck behind slow service jobs",
        here="batch wait grows " + listed(blocked, "{:.3g}x") + " with t_job(service)",
        tolerance="grows at least 10x on every cluster",
        holds=min(blocked.values()) >= 10.0,
    )
    free = {c: growth(along(found, "5c", "batch.wait", c)) for c in CLUSTERS}
    yield Claim(
        id="omega-5c-no-blocking-between-schedulers",
        figure="5c",
        paper="lines for batch and service jobs are independent: no head-of-line blocking",
        here="batch wait changes " + listed(free, "{:.3g}x") + " with t_job(service)",
        tolerance="at most 1.1x on every cluster",
        holds=max(free.values()) <= 1.1,
    )
    alike = {}
    for cluster in CLUSTERS:
        ours, theirs = (along(found, sweep, "batch.wait", cluster) for sweep in ("5c", "5b"))
        ratios = [
            max(ours[x] / theirs[x], theirs[x] / ours[x])
            for x in ours
            if x in theirs and x <= QUICK and min(ours[x], theirs[x]) > 0
        ]
        if ratios:
            alike[cluster] = max(ratios)
    if len(alike) == len(CLUSTERS):
        yield Claim(
            id="omega-5c-waits-like-multi-path",
            figure="5c",
            paper="average job wait times are comparable to those of multi-path monolithic "
            "scheduling",
            here="batch waits differ by at most " + listed(alike, "{:.2f}x"),
            tolerance=f"at most 2x on every cluster up to t_job(service) = {QUICK:g} s",
            holds=max(alike.values()) <= 2.0,
            note="beyond that, batch jobs wait behind services in the multi-path case",
        )
    abandoned = sum(
        result.values.get(f"{kind}.abandoned", 0.0)
        for _, result in found.select("5c")
        for kind in KINDS
    )
    excess = 0.0
    for _, result in found.select("5c"):
        for kind in KINDS:
            values = result.values
            if values.get(f"{kind}.busyness", 1.0) < 0.8:
                jobs = values[f"{kind}.jobs"]
                under_way = values[f"{kind}.unscheduled"] * jobs
                excess = max(excess, under_way / max(KEEPS_UP * jobs, FEW_JOBS))
    yield Claim(
        id="omega-5c-schedules-everything",
        figure="5c",
        paper="manages to schedule all jobs in the workload",
        here=f"{abandoned:.0f} jobs abandoned; jobs under way at the end are {excess:.0%} of the "
        "tolerance",
        tolerance=f"none abandoned; at the end, of a scheduler less busy than 0.8, at most "
        f"{KEEPS_UP:.0%} of its jobs or {FEW_JOBS} under way",
        holds=abandoned == 0 and excess <= 1.0,
        note="a busier scheduler has a queue of its own making, without any conflict",
    )


def draw_6(found: Findings) -> Figure:
    return Figure(
        number="6",
        title="Scheduler busyness",
        caption="The share of time spent deciding. The monolithic schedulers take all jobs; with "
        "shared state there is one for batch (solid) and one for service (dashed).",
        panels=tuple(
            Chart(
                title=f"({part[-1]}) {title}",
                x=time_axis(label),
                y=busyness_axis(),
                lines=by_cluster(found, part, "busyness", KINDS if part == "5c" else ("batch",)),
            )
            for part, title, label in _three()
        ),
    )


def claims_6(found: Findings) -> Iterator[Claim]:
    if not on_every_cluster(found, "5a", "5b", "5c"):
        return
    bends = []
    for cluster in CLUSTERS:
        below = [
            mark
            for mark in marks(found, "5a", "service_t_job", "batch.busyness", cluster=cluster)
            if mark.y < 0.9
        ]
        # Two points are always on a line.
        if len(below) > 2:
            bends.append(_bend(below))
    if bends:
        yield Claim(
            id="omega-6a-busyness-is-linear",
            figure="6a",
            paper="busyness scales linearly with t_job",
            here=f"at most {max(bends):.1%} from a straight line below 0.9",
            tolerance="at most 10 %",
            holds=max(bends) <= 0.10,
        )
    lower = [
        (single - multi, cluster, x)
        for cluster in CLUSTERS
        for x, single in along(found, "5a", "batch.busyness", cluster).items()
        if x in (1.0, 3.0)
        and (multi := along(found, "5b", "batch.busyness", cluster).get(x)) is not None
    ]
    if lower:
        least, cluster, x = min(lower)
        yield Claim(
            id="omega-6b-multi-path-is-less-busy",
            figure="6b",
            paper="a fast path for batch jobs decreases busyness significantly",
            here=f"by at least {least:.2f} at 1 and 3 s ({cluster}, {x:g} s)",
            tolerance="by at least 0.1",
            holds=least >= 0.1,
        )
    early = [
        result.values.get(f"{kind}.conflicts", 0.0)
        for point, result in found.select("5c")
        for kind in KINDS
        if float(point.parameters["service_t_job"]) <= 10.0
    ]
    if early:
        yield Claim(
            id="omega-6c-conflicts-are-rare",
            figure="6c",
            paper="conflicts and interference are relatively rare",
            here=f"conflict fraction at most {max(early):.3g} up to t_job(service) = 10 s",
            tolerance="at most 0.1",
            holds=max(early) <= 0.1,
        )


def _bend(line: Sequence[Mark]) -> float:
    """How far marks in the middle are from the straight line between the outer two, relatively."""
    first, last = line[0], line[-1]
    slope = (last.y - first.y) / (last.x - first.x)
    straight = [(mark.y, first.y + slope * (mark.x - first.x)) for mark in line[1:-1]]
    return max(abs(there - here) / here for there, here in straight)
