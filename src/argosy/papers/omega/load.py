"""Figures 8 and 9: shared state under more batch jobs, and with more batch schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from argosy.papers.charts import Axis, Chart, Figure, Line, ReferenceLine
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.omega.points import CLUSTERS
from argosy.papers.omega.reading import (
    KEEPS_UP,
    busyness_axis,
    conflicts_axis,
    has_trend,
    listed,
    marks,
    saturation,
    slo_rule,
    wait_axis,
)
from argosy.papers.omega.world import KINDS

#: The multiple of the batch arrival rate at which each cluster saturates, in section 4.3.
SATURATES: Final = {"A": 2.5, "B": 6.0, "C": 9.5}


def draw_8(found: Findings) -> Figure:
    rules = []
    for number, cluster in enumerate(CLUSTERS):
        at = saturation(found, "8", "rate", "batch", cluster=cluster)
        if at is not None:
            rules.append(
                ReferenceLine(at=at, label=f"{cluster} {at:.3g}x", vertical=True, colour=number)
            )

    def lines(measure: str) -> tuple[Line, ...]:
        return tuple(
            Line(
                label=f"{kind} {cluster}",
                marks=marks(found, "8", "rate", f"{kind}.{measure}", cluster=cluster),
                colour=number,
                dashed=kind == "service",
            )
            for kind in KINDS
            for number, cluster in enumerate(CLUSTERS)
        )

    rate = Axis(label="batch arrival rate, relative", logarithmic=True)
    return Figure(
        number="8",
        title="Shared state under more batch jobs",
        caption="Vertical lines: where a batch scheduler saturates, that is, leaves over "
        f"{KEEPS_UP:.0%} of its jobs unscheduled. The paper says 2.5x (A), 6x (B) and 9.5x (C). "
        "Service jobs (dashed) hardly wait at all.",
        panels=(
            Chart(
                title="(a) Job wait time", x=rate, y=wait_axis(), lines=lines("wait"),
                rules=(*slo_rule(), *rules),
            ),
            Chart(
                title="(b) Scheduler busyness", x=rate, y=busyness_axis(), lines=lines("busyness"),
                rules=tuple(rules),
            ),
        ),
    )  # fmt: skip


def claims_8(found: Findings) -> Iterator[Claim]:
    here = {
        c: saturation(found, "8", "rate", "batch", cluster=c)
        for c in CLUSTERS
        if has_trend(found, "8", "rate", cluster=c)
    }
    for cluster, at in here.items():
        expected = SATURATES[cluster]
        yield Claim(
            id=f"omega-8-{cluster}-saturates",
            figure="8",
            paper=f"cluster {cluster} scales to about {expected:g}x its arrivals",
            here="not reached" if at is None else f"{at:.3g}x",
            tolerance="within 20 %",
            holds=at is not None and abs(at / expected - 1) <= 0.2,
            note="the synthetic arrivals were derived from this number: that conflicts do not move it "
            "is the finding",
        )
    if len(here) < len(CLUSTERS):
        return
    known = [at for at in here.values() if at is not None]
    yield Claim(
        id="omega-8-order",
        figure="8",
        paper="A saturates first, then B, then C",
        here=" < ".join(f"{c} {at:.3g}x" if at else f"{c} not reached" for c, at in here.items()),
        tolerance="the order",
        holds=len(known) == len(CLUSTERS) and known == sorted(known) and known[0] < known[-1],
    )
    grown = {}
    for cluster in CLUSTERS:
        line = marks(found, "8", "rate", "service.conflicts", cluster=cluster)
        grown[cluster] = line[-1].y - line[0].y
    yield Claim(
        id="omega-8-service-feels-conflicts",
        figure="8",
        paper="service busyness grows with the batch load, from additional conflicts",
        here="service conflict fraction grows by " + listed(grown, "{:.2g}"),
        tolerance="grows on every cluster",
        holds=min(grown.values()) > 0,
    )


def draw_9(found: Findings) -> Figure:
    def lines(measure: str) -> tuple[Line, ...]:
        return tuple(
            Line(
                label=f"{count} batch schedulers" if count != 1 else "1 batch scheduler",
                marks=marks(found, "9", "rate", f"batch.{measure}", schedulers=count),
                colour=number,
            )
            for number, count in enumerate(found.values("9", "schedulers"))
        )

    rate = Axis(label="batch arrival rate, relative")
    return Figure(
        number="9",
        title="Many batch schedulers",
        caption="Cluster B, batch jobs dealt out by a hash of their names. Means over the batch "
        "schedulers.",
        panels=(
            Chart(
                title="(a) Conflict fraction", x=rate, y=conflicts_axis(), lines=lines("conflicts")
            ),
            Chart(
                title="(b) Scheduler busyness", x=rate, y=busyness_axis(), lines=lines("busyness")
            ),
        ),
    )


def claims_9(found: Findings) -> Iterator[Claim]:
    counts = [int(count) for count in found.values("9", "schedulers")]
    if len(counts) < 2:
        return
    top = max(float(rate) for rate in found.values("9", "rate"))

    def at_top(measure: str) -> list[float]:
        return [
            {m.x: m.y for m in marks(found, "9", "rate", f"batch.{measure}", schedulers=n)}[top]
            for n in counts
        ]

    conflicts, busyness, waits = at_top("conflicts"), at_top("busyness"), at_top("wait")

    def growing(name: str, conflicts: list[float], setup: str) -> Claim:
        return Claim(
            id=f"omega-9a-conflicts-grow-with-schedulers{name}",
            figure="9a",
            paper="the conflict fraction increases with more schedulers",
            here=", ".join(f"{c:.2g} ({n})" for n, c in zip(counts, conflicts, strict=True))
            + f" at {top:g}x",
            tolerance="more schedulers, more conflicts, from 2 on",
            holds=all(a < b for a, b in pairwise(conflicts[1:])),
            setup=setup,
        )

    # One scheduler has nobody to conflict with, so growth is from two on.
    if len(counts) > 2:
        yield growing("", conflicts, "a conflict is retried at once, and jobs are dealt by a hash")
    published = [
        marks(found, "9-simulator", "rate", "batch.conflicts", schedulers=n) for n in counts
    ]
    if len(counts) > 2 and all(published):
        yield growing(
            "-simulator",
            [line[-1].y for line in published],
            "as the published simulator: an unfinished job is tried again after 1 s, and jobs are "
            "dealt round-robin",
        )
    yield Claim(
        id="omega-9b-busyness-falls",
        figure="9b",
        paper="compensated by better busyness per scheduler, at least up to 32",
        here=", ".join(f"{b:.2g} ({n})" for n, b in zip(counts, busyness, strict=True))
        + f" at {top:g}x",
        tolerance="more schedulers, less busyness, up to the last",
        holds=all(a > b for a, b in pairwise(busyness)),
    )
    yield Claim(
        id="omega-9-waits-fall",
        figure="9",
        paper="similar results are seen with the job wait times (not shown)",
        here=", ".join(f"{w:.2g} s ({n})" for n, w in zip(counts, waits, strict=True))
        + f" at {top:g}x",
        tolerance="more schedulers, shorter mean waits, up to the last",
        holds=all(a > b for a, b in pairwise(waits)),
    )
