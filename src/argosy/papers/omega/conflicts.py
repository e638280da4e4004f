"""Figure 14: all-or-nothing transactions and coarse conflict detection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.papers.charts import Chart, Figure, Line
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.omega.reading import (
    KEEPS_UP,
    busyness_axis,
    conflicts_axis,
    high_fidelity,
    marks,
    stand_in,
    time_axis,
)

#: Coarse detection as in the published simulator: only claims count, not the ends of tasks.
PUBLISHED: Final = "coarse-claims"
#: Coarse detection by the text: any change to the machine.
ANY_CHANGE: Final = "coarse"


def draw_14(found: Findings) -> Figure:
    modes = (
        ("atomic", PUBLISHED, "coarse, all-or-nothing"),
        ("incremental", PUBLISHED, "coarse, incremental"),
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
        caption="Cluster C, of the service scheduler. Coarse: any claim on a machine is a conflict, as "
        "in the published simulator.",
        note=high_fidelity(found, "14"),
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
    yield from _claims(found, PUBLISHED)
    yield from _claims(found, ANY_CHANGE)


def _claims(found: Findings, detection: str) -> Iterator[Claim]:
    """With one of the two meanings of coarse; what does not depend on it is claimed once."""
    if not all(
        found.select("14", transaction=transaction, detection=mode)
        for transaction in ("incremental", "atomic")
        for mode in ("fine", detection)
    ):
        return
    # A scheduler that falls behind has no steady conflict fraction, so only points where all four keep
    # up. On a trace, there may be no service job in their time.
    steady = [
        x
        for x in found.values("14", "service_t_job")
        if all(
            result.values.get("service.unscheduled", 1.0) <= KEEPS_UP
            for mode in ("fine", detection)
            for _, result in found.select("14", service_t_job=x, detection=mode)
        )
    ]
    if not steady:
        return

    def total(measure: str, transaction: str, detection: str) -> float:
        """Over the same points for all, so totals are to each other as means are."""
        line = marks(
            found, "14", "service_t_job", f"service.{measure}",
            transaction=transaction, detection=detection,
        )  # fmt: skip
        return sum(mark.y for mark in line if mark.x in steady)

    usual, gang, coarse, both = (
        {m: total(m, t, d) for m in ("conflicts", "busyness")}
        for t, d in (
            ("incremental", "fine"), ("atomic", "fine"), ("incremental", detection),
            ("atomic", detection),
        )
    )  # fmt: skip

    def times(mode: dict[str, float], measure: str) -> float:
        return mode[measure] / usual[measure] if usual[measure] else 1.0

    is_published = detection == PUBLISHED
    suffix = "" if is_published else "-any-change"
    what = "" if is_published else ", if ends of tasks count as changes"
    note = (
        f"means up to t_job(service) = {max(steady):g} s, where all four keep up; "
        f"{stand_in(found, '14')}"
    )

    if is_published:
        yield from _all_or_nothing(times(gang, "conflicts"), times(gang, "busyness"), note)
    yield Claim(
        id=f"omega-14-coarse-detection{suffix}",
        figure="14",
        paper=f"coarse detection increases conflicts, and so busyness, 2-3x{what}",
        here=f"conflicts {times(coarse, 'conflicts'):.2f}x, busyness {times(coarse, 'busyness'):.2f}x"
        f" (with all-or-nothing {times(both, 'conflicts'):.2f}x, {times(both, 'busyness'):.2f}x)",
        tolerance="conflicts 1.5x to 4x",
        holds=1.5 <= times(coarse, "conflicts") <= 4.0,
        note=note,
    )
    yield Claim(
        id=f"omega-14-coarse-detection-busyness{suffix}",
        figure="14b",
        paper=f"coarse detection increases busyness 2-3x{what}",
        here=f"{times(coarse, 'busyness'):.2f}x",
        tolerance="1.5x to 4x",
        holds=1.5 <= times(coarse, "busyness") <= 4.0,
        note=note,
    )


def _all_or_nothing(conflicts: float, busyness: float, note: str) -> Iterator[Claim]:
    yield Claim(
        id="omega-14-all-or-nothing-conflicts",
        figure="14a",
        paper="all-or-nothing transactions increase the conflict fraction about 2x",
        here=f"{conflicts:.2f}x",
        tolerance="1.5x to 3x",
        holds=1.5 <= conflicts <= 3.0,
        note=note,
    )
    yield Claim(
        id="omega-14-all-or-nothing-busyness",
        figure="14b",
        paper="all-or-nothing transactions increase busyness only a little",
        here=f"{busyness:.2f}x",
        tolerance="1x to 1.25x",
        holds=0.99 <= busyness <= 1.25,
        note=note,
    )
