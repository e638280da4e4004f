"""Whether conclusions hold with other arrivals than Poisson's, and with a fill that does not stay.

The paper drew times between arrivals from recorded ones, which were never published, and says of its
fill only how much there is. Cluster B; the rules are those of figures 5c, 6c and 12b.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.papers.charts import Chart, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.omega.points import VARIANTS
from argosy.papers.omega.reading import (
    STAND_IN,
    conflicts_axis,
    growth,
    marks,
    slo_rule,
    time_axis,
    wait_axis,
)


def _along(found: Findings, sweep: str, measure: str, variant: str) -> tuple[Mark, ...]:
    return marks(found, sweep, "service_t_job", measure, **VARIANTS[variant])


def draw_variants(found: Findings) -> Figure:
    def lines(sweep: str, *measures: str) -> tuple[Line, ...]:
        return tuple(
            Line(
                label=f"{measure.split('.')[0]}, {variant}",
                marks=_along(found, sweep, measure, variant),
                colour=colour,
                dashed=measure.startswith("service"),
            )
            for measure in measures
            for colour, variant in enumerate(VARIANTS)
        )

    return Figure(
        number="variants",
        title="Bursty arrivals, and a fill that churns",
        caption="Cluster B under shared state. Bursty: times between arrivals vary four times as much "
        "as exponential ones. Churning: tasks of the fill run for two hours on average, and others "
        "follow.",
        panels=(
            Chart(
                title="(a) Job wait time, first fit", x=time_axis(), y=wait_axis(),
                lines=lines("5c-variants", "batch.wait", "service.wait"), rules=slo_rule(),
            ),
            Chart(
                title="(b) Conflict fraction, first fit", x=time_axis(), y=conflicts_axis(),
                lines=lines("5c-variants", "service.conflicts"),
            ),
            Chart(
                title="(c) Conflict fraction, best fit", x=time_axis(), y=conflicts_axis(),
                lines=lines("12-variants", "service.conflicts"),
            ),
        ),
    )  # fmt: skip


def claims_variants(found: Findings) -> Iterator[Claim]:
    for variant in VARIANTS:
        name = "bursty" if "burst" in variant else "churning"
        waits = {mark.x: mark.y for mark in _along(found, "5c-variants", "batch.wait", variant)}
        if len(waits) > 1:
            grown = growth(waits)
            yield Claim(
                id=f"omega-5c-no-blocking-{name}",
                figure="variants",
                paper="lines for batch and service jobs are independent: no head-of-line blocking",
                here=f"batch wait changes {grown:.3g}x with t_job(service)",
                tolerance="at most 1.1x",
                holds=grown <= 1.1,
                setup=variant,
            )
        lines = [
            _along(found, "5c-variants", f"{kind}.conflicts", variant)
            for kind in ("batch", "service")
        ]
        early = [mark.y for line in lines for mark in line if mark.x <= 10.0]
        if early:
            yield Claim(
                id=f"omega-6c-conflicts-are-rare-{name}",
                figure="variants",
                paper="conflicts and interference are relatively rare",
                here=f"conflict fraction at most {max(early):.3g} up to t_job(service) = 10 s",
                tolerance="at most 0.1",
                holds=max(early) <= 0.1,
                setup=variant,
            )
        line = _along(found, "12-variants", "service.conflicts", variant)
        if len(line) > 1:
            crossing = next((mark.x for mark in line if mark.y > 1.0), None)
            yield Claim(
                id=f"omega-12b-a-retry-on-average-{name}",
                figure="variants",
                paper="beyond t_job(service) of about 10 s the conflict fraction exceeds 1.0",
                here="never exceeds 1.0"
                if crossing is None
                else f"exceeds 1.0 from {crossing:g} s on",
                tolerance="between 3 and 30 s",
                holds=crossing is not None and 3.0 <= crossing <= 30.0,
                setup=variant,
                note=STAND_IN,
            )
