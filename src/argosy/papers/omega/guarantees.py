"""What the paper leaves for later: guarantees against starvation, fairness, and fewer conflicts.

Section 8 names "global guarantees (fairness, starvation avoidance, etc.)" and techniques "to reduce the
likelihood and effects of interference" as future work. These are Argosy's answers on the paper's
clusters: `patience`, `weight` and `regions` of `omega`.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.papers.charts import Axis, Chart, Figure, Line
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, Parameter
from argosy.papers.omega.reading import conflicts_axis, marks

_LATER = "left for future work (section 8)"


def draw_guarantees(found: Findings) -> Figure:
    def chart(title: str, sweep: str, y: Axis, measures: dict[str, str], label: str) -> Chart:
        return Chart(
            title=title,
            x=Axis(label=label),
            y=y,
            lines=tuple(
                Line(label=name, marks=marks(found, sweep, sweep, measure), colour=colour)
                for colour, (name, measure) in enumerate(measures.items())
            ),
        )

    placed = Axis(label="until all tasks are placed, p90 [s]", logarithmic=True)
    return Figure(
        number="guarantees",
        title="Starvation, fairness, fewer conflicts",
        caption="(a) Cluster B, best fit, t_job(service) of 10 s: lost attempts after which a job "
        "claims with growing precedence; 0: never. (b) A tenth of cluster B with 24 times the batch "
        "jobs: without and with fair shares. (c) Cluster C, best fit, three batch schedulers, "
        "t_job(batch) of 4 s: regions that schedulers search one after the other.",
        panels=(
            chart(
                "(a) Patience",
                "patience",
                conflicts_axis(),
                {"service": "service.conflicts"},
                "lost attempts",
            ),
            chart(
                "(b) Fair shares",
                "weight",
                placed,
                {"batch": "batch.placed_p90", "service": "service.placed_p90"},
                "weight",
            ),
            chart(
                "(c) Regions", "regions", conflicts_axis(), {"batch": "batch.conflicts"}, "regions"
            ),
        ),
    )


def claims_guarantees(found: Findings) -> Iterator[Claim]:
    def at(sweep: str, value: Parameter, measure: str) -> float | None:
        return {mark.x: mark.y for mark in marks(found, sweep, sweep, measure)}.get(float(value))

    free, keen = (at("patience", lost, "service.conflicts") for lost in (0, 1))
    if free is not None and keen is not None:
        yield Claim(
            id="omega-patience",
            figure="guarantees",
            paper=_LATER,
            here=f"conflict fraction {free:.2g} without, {keen:.2g} with a patience of one lost attempt",
            tolerance="at most 0.75x",
            holds=keen <= 0.75 * free,
            setup="jobs that lost an attempt come first (patience)",
        )
    alone, fair = (at("weight", weight, "service.placed_p90") for weight in (0.0, 1.0))
    if alone is not None and fair is not None:
        yield Claim(
            id="omega-weight",
            figure="guarantees",
            paper=_LATER,
            here=f"90 % of service jobs are placed within {alone:.3g} s without shares and {fair:.3g} s "
            "with them, in a cell full of batch jobs",
            tolerance="at most half as long with shares",
            holds=fair <= alone / 2,
            setup="shares by weight",
        )
    whole, parts = (at("regions", count, "batch.conflicts") for count in (1, 3))
    if whole is not None and parts is not None:
        yield Claim(
            id="omega-regions",
            figure="guarantees",
            paper=_LATER,
            here=f"conflict fraction {whole:.2g} on the whole cell, {parts:.2g} with three regions",
            tolerance="at most half",
            holds=parts <= whole / 2,
            setup="each scheduler prefers a region of its own",
        )
