"""Figures 15 and 16: a MapReduce scheduler that uses idle resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, PointResult
from argosy.papers.omega.points import MAPREDUCE_CLUSTERS
from argosy.papers.omega.reading import listed

POLICIES: Final = {
    "max-parallelism": "max-parallelism",
    "global-cap": "global cap (60 %)",
    "relative-job-size": "relative job size (4x)",
}
RESOURCES: Final = ("cpu", "memory")
SHAPE: Final = "how many maps jobs have was read off this figure and the MapReduce papers' averages"


def _at(found: Findings, cluster: str, policy: str) -> PointResult | None:
    here = found.select("15", cluster=cluster, policy=policy)
    return here[0][1] if here else None


def _by_cluster(found: Findings, policy: str, name: str) -> dict[str, float]:
    results = ((c, _at(found, c, policy)) for c in MAPREDUCE_CLUSTERS)
    return {c: result.values[name] for c, result in results if result and name in result.values}


def draw_15(found: Findings) -> Figure:
    panels = []
    for cluster in MAPREDUCE_CLUSTERS:
        lines = []
        for number, (policy, label) in enumerate(POLICIES.items()):
            result = _at(found, cluster, policy)
            ratios = result.series.get("speed_up", []) if result else []
            marks = tuple(
                Mark(max(ratio, 1.0), share / max(1, len(ratios) - 1))
                for share, ratio in enumerate(ratios)
            )
            lines.append(
                Line(
                    label=label,
                    marks=marks,
                    colour=number,
                    stepped=True,
                    # It may coincide with the curve of max-parallelism.
                    dashed=policy == "global-cap",
                )
            )
        panels.append(
            Chart(
                title=f"Cluster {cluster}",
                x=Axis(label="speed-up per job", logarithmic=True, low=1.0, high=100.0),
                y=Axis(label="share of MapReduce jobs", low=0.0, high=1.0),
                lines=tuple(lines),
            )
        )
    return Figure(
        number="15",
        title="How much faster MapReduce jobs are with more workers",
        caption="Cumulative, over jobs whose work was done: the time that the workers asked for would "
        "take from beginning to end, against the time it took. Jobs that took longer stand at 1.",
        panels=tuple(panels),
        note="The paper says little of the jobs' shape: " + SHAPE + ".",
    )


def claims_15(found: Findings) -> Iterator[Claim]:
    faster = _by_cluster(found, "max-parallelism", "mapreduce.faster")
    most = _by_cluster(found, "max-parallelism", "mapreduce.p80")
    if len(most) < len(MAPREDUCE_CLUSTERS):
        return
    yield Claim(
        id="omega-15-jobs-that-gain",
        figure="15",
        paper="50-70 % of MapReduce jobs can benefit",
        here=listed(faster, "{:.0%}") + " are at least 5 % faster under max-parallelism",
        tolerance="45 % to 75 % on every cluster",
        holds=all(0.45 <= share <= 0.75 for share in faster.values()),
        note=SHAPE,
    )
    yield Claim(
        id="omega-15-speed-up-at-the-80th-percentile",
        figure="15",
        paper="3-4x at the 80th percentile under max-parallelism",
        here=listed(most, "{:.2f}x"),
        tolerance="2.5x to 5x on every cluster",
        holds=all(2.5 <= ratio <= 5.0 for ratio in most.values()),
        note=SHAPE,
    )
    relative, cap = (
        _by_cluster(found, policy, "mapreduce.p80")
        for policy in ("relative-job-size", "global-cap")
    )
    if len(relative) < len(most) or len(cap) < len(most):
        return
    yield Claim(
        id="omega-15-max-parallelism-is-fastest",
        figure="15",
        paper="max-parallelism produces the largest improvements",
        here=f"80th percentiles: {listed(most, '{:.2f}x')} against {listed(relative, '{:.2f}x')} by "
        f"relative job size and {listed(cap, '{:.2f}x')} under a global cap",
        tolerance="at least 0.98 of the others' on every cluster",
        holds=all(most[c] >= 0.98 * max(relative[c], cap[c]) for c in most),
    )
    yield Claim(
        id="omega-15-relative-job-size-does-well",
        figure="15",
        paper="relative job size also does quite well",
        here="80th percentile " + listed(relative, "{:.2f}x"),
        tolerance="at least 1.5x, and half of max-parallelism's, on every cluster",
        holds=all(relative[c] >= max(1.5, most[c] / 2) for c in most),
    )
    yield Claim(
        id="omega-15-global-cap-helps-an-idle-cluster",
        figure="15",
        paper="global cap does almost as well as max-parallelism in the small, under-utilised D",
        here=f"{cap['D']:.2f}x against {most['D']:.2f}x at the 80th percentile",
        tolerance="at least 0.8 of it",
        holds=cap["D"] >= 0.8 * most["D"],
    )
    elsewhere = {c: ratio for c, ratio in cap.items() if c != "D"}
    yield Claim(
        id="omega-15-global-cap-helps-no-other",
        figure="15",
        paper="global cap achieves little or no benefit elsewhere: usage is usually above 60 %",
        here=listed(elsewhere, "{:.2f}x") + " at the 80th percentile",
        tolerance="at most 1.1x",
        holds=max(elsewhere.values()) <= 1.1,
        note="the initial fill of these clusters is 60 % by construction",
    )


def draw_16(found: Findings) -> Figure:
    panels = []
    for policy, title in (
        ("none", "(a) Without more workers"),
        ("max-parallelism", "(b) Max-parallelism"),
    ):
        result = _at(found, "C", policy)
        series = result.series if result else {}
        panels.append(
            Chart(
                title=title,
                x=Axis(label="time [h]", low=0.0),
                y=Axis(label="share in use", low=0.0, high=1.0),
                lines=tuple(
                    Line(
                        label=name,
                        marks=tuple(map(Mark, series.get("hours", []), series.get(name, []))),
                        colour=number,
                        stepped=True,
                    )
                    for number, name in enumerate(RESOURCES)
                ),
            )
        )
    return Figure(
        number="16",
        title="Utilisation of cluster C",
        caption="Without the MapReduce scheduler's extra workers, and with as many as help.",
        panels=tuple(panels),
    )


def claims_16(found: Findings) -> Iterator[Claim]:
    before, after = (_at(found, "C", policy) for policy in ("none", "max-parallelism"))
    if before is None or after is None:
        return
    ratios = {
        name: after[f"{name}.deviation"] / max(before[f"{name}.deviation"], 1e-9)
        for name in RESOURCES
    }
    yield Claim(
        id="omega-16-utilisation-varies-more",
        figure="16",
        paper="the variability of the cluster's utilisation increases",
        here="standard deviation over time: "
        + ", ".join(
            f"{name} {before[f'{name}.deviation']:.3f} to {after[f'{name}.deviation']:.3f}"
            for name in RESOURCES
        ),
        tolerance="at least 1.2x for both resources",
        holds=min(ratios.values()) >= 1.2,
    )
