"""Figure 14: all-or-nothing transactions and coarse conflict detection."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.papers.charts import Chart, Figure, Line
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.omega.reading import (
    HIGH_FIDELITY,
    KEEPS_UP,
    STAND_IN,
    busyness_axis,
    conflicts_axis,
    marks,
    time_axis,
)


def draw_14(found: Findings) -> Figure:
    modes = (
        ("atomic", "coarse", "coarse, all-or-nothing"),
        ("incremental", "coarse", "coarse, incremental"),
        ("atomic", "fine", "fine, all-or-nothing"),
        ("incremental", "fine", "fine, incremental"),
    )

    def lines(measure: str) -> tuple[Line, ...]:
        return tuple(
            Line(
                label=label,
                marks=marks(
                    found, "14", "service_t_job", f"service.{measure}",
                    transaction=transaction, detection=detection,
                ),
                colour=number,
                dashed=transaction == "atomic",
            )
            for number, (transaction, detection, label) in enumerate(modes)
        )  # fmt: skip

    return Figure(
        number="14",
        title="All-or-nothing transactions and coarse conflict detection",
        caption="Cluster C, of the service scheduler.",
        note=HIGH_FIDELITY,
        panels=(
            Chart(
                title="(a) Conflict fraction",
                x=time_axis(),
                y=conflicts_axis(),
                lines=lines("conflicts"),
            ),
            Chart(
                title="(b) Scheduler busyness",
                x=time_axis(),
                y=busyness_axis(),
                lines=lines("busyness"),
            ),
        ),
    )


def claims_14(found: Findings) -> Iterator[Claim]:
    if not found.has("14"):
        return

    # A scheduler that falls behind has no steady conflict fraction, so only points where all four keep
    # up.
    steady = [
        x
        for x in found.values("14", "service_t_job")
        if all(
            result["service.unscheduled"] <= KEEPS_UP
            for _, result in found.select("14", service_t_job=x)
        )
    ]
    if not steady:
        return

    def mean(measure: str, transaction: str, detection: str) -> float:
        line = marks(
            found, "14", "service_t_job", f"service.{measure}",
            transaction=transaction, detection=detection,
        )  # fmt: skip
        return sum(mark.y for mark in line if mark.x in steady) / len(steady)

    usual, gang, coarse, both = (
        {m: mean(m, t, d) for m in ("conflicts", "busyness")}
        for t, d in (
            ("incremental", "fine"), ("atomic", "fine"), ("incremental", "coarse"),
            ("atomic", "coarse"),
        )
    )  # fmt: skip

    def times(mode: dict[str, float], measure: str) -> float:
        return mode[measure] / usual[measure] if usual[measure] else 1.0

    note = f"means up to t_job(service) = {max(steady):g} s, where all four keep up; {STAND_IN}"

    yield Claim(
        id="omega-14-all-or-nothing-conflicts",
        figure="14a",
        paper="all-or-nothing transactions increase the conflict fraction about 2x",
        here=f"{times(gang, 'conflicts'):.2f}x",
        tolerance="1.5x to 3x",
        holds=1.5 <= times(gang, "conflicts") <= 3.0,
        note=note,
    )
    yield Claim(
        id="omega-14-all-or-nothing-busyness",
        figure="14b",
        paper="all-or-nothing transactions increase busyness only a little",
        here=f"{times(gang, 'busyness'):.2f}x",
        tolerance="1x to 1.25x",
        holds=0.99 <= times(gang, "busyness") <= 1.25,
        note=note,
    )
    yield Claim(
        id="omega-14-coarse-detection",
        figure="14",
        paper="coarse detection increases conflicts, and so busyness, 2-3x",
        here=f"conflicts {times(coarse, 'conflicts'):.2f}x, busyness {times(coarse, 'busyness'):.2f}x"
        f" (with all-or-nothing {times(both, 'conflicts'):.2f}x, {times(both, 'busyness'):.2f}x)",
        tolerance="conflicts 1.5x to 4x",
        holds=1.5 <= times(coarse, "conflicts") <= 4.0,
        note=note,
    )
    yield Claim(
        id="omega-14-coarse-detection-busyness",
        figure="14b",
        paper="coarse detection increases busyness 2-3x",
        here=f"{times(coarse, 'busyness'):.2f}x",
        tolerance="1.5x to 4x",
        holds=1.5 <= times(coarse, "busyness") <= 4.0,
        note=note,
    )
