"""Figures 12 and 13: interference between schedulers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from argosy.papers.charts import Chart, Figure, Line, Mark, ReferenceLine
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, Parameter
from argosy.papers.omega.reading import (
    SLO,
    busyness_axis,
    conflicts_axis,
    has_trend,
    high_fidelity,
    is_on_trace,
    marks,
    saturation,
    slo_rule,
    stand_in,
    time_axis,
    wait_axis,
)
from argosy.papers.omega.world import KINDS

#: The point of figure 12 that section 5.1 discusses.
AT_10_S: Final = 10.0


def _cluster_of_12(found: Findings) -> str:
    """The paper's is B, whose trace was never published."""
    return "C" if is_on_trace(found, "12") else "B"


def draw_12(found: Findings) -> Figure:
    cluster = _cluster_of_12(found)

    def line(kind: str, measure: str, label: str = "", colour: int | None = None) -> Line:
        chosen = marks(found, "12", "service_t_job", f"{kind}.{measure}", cluster=cluster)
        return Line(
            label=label or kind,
            marks=chosen,
            colour=KINDS.index(kind) if colour is None else colour,
            dashed=kind == "service",
        )

    return Figure(
        number="12",
        title=f"Shared state on cluster {cluster}",
        caption="Against the decision time per service job, with schedulers that want the same "
        "machines. “No conflict” is what deciding every job once would have taken.",
        note=high_fidelity(found, "12"),
        panels=(
            Chart(
                title="(a) Job wait time", x=time_axis(), y=wait_axis(),
                lines=tuple(line(kind, "wait") for kind in KINDS), rules=slo_rule(),
            ),
            Chart(
                title="(b) Conflict fraction", x=time_axis(), y=conflicts_axis(),
                lines=tuple(line(kind, "conflicts") for kind in KINDS),
            ),
            Chart(
                title="(c) Scheduler busyness", x=time_axis(), y=busyness_axis(),
                lines=(
                    *(line(kind, "busyness") for kind in KINDS),
                    line("service", "busyness_once", "service, no conflict", 2),
                ),
            ),
        ),
    )  # fmt: skip


def claims_12(found: Findings) -> Iterator[Claim]:
    cluster, note = _cluster_of_12(found), stand_in(found, "12")
    if not has_trend(found, "12", "service_t_job", cluster=cluster):
        return
    line = marks(found, "12", "service_t_job", "service.conflicts", cluster=cluster)
    if not line:
        return
    crossing = next((mark.x for mark in line if mark.y > 1.0), None)
    yield Claim(
        id="omega-12b-a-retry-on-average",
        figure="12b",
        paper="beyond t_job(service) of about 10 s the conflict fraction exceeds 1.0",
        here="never exceeds 1.0" if crossing is None else f"exceeds 1.0 from {crossing:g} s on",
        tolerance="between 3 and 30 s",
        holds=crossing is not None and 3.0 <= crossing <= 30.0,
        note=note,
    )
    waits = marks(found, "12", "service_t_job", "service.wait", cluster=cluster)
    missed = next((mark.x for mark in waits if mark.y > SLO), None)
    yield Claim(
        id="omega-12a-service-misses-the-slo",
        figure="12a",
        paper="at around 10 s the service scheduler misses the 30 s SLO",
        here="never" if missed is None else f"from {missed:g} s on",
        tolerance="between 3 and 30 s",
        holds=missed is not None and 3.0 <= missed <= 30.0,
        note=note,
    )
    busy, once = (
        {
            mark.x: mark.y
            for mark in marks(found, "12", "service_t_job", f"service.{name}", cluster=cluster)
        }
        for name in ("busyness", "busyness_once")
    )
    both_happen = crossing is not None and missed is not None
    apart = max(crossing / missed, missed / crossing) if crossing and missed else 0.0
    yield Claim(
        id="omega-12-thresholds-coincide",
        figure="12",
        paper="the SLO is missed at around the point where the conflict fraction exceeds 1.0",
        here=f"at {missed:g} s and {crossing:g} s"
        if both_happen
        else "one of the two never happens",
        tolerance="at most 3.5x apart",
        holds=both_happen and apart <= 3.5,
        note=note,
    )
    yield Claim(
        id="omega-12-not-saturated",
        figure="12",
        paper="the service scheduler misses the SLO although it is not yet saturated",
        here="never misses it"
        if missed is None
        else f"busyness {busy[missed]:.2f} at {missed:g} s",
        tolerance="below 0.95 at the first t_job(service) that misses the SLO",
        holds=missed is not None and busy[missed] < 0.95,
        note=note,
    )
    if cluster == "B":
        # A trace is of one cluster, and the lightweight simulator has other jobs.
        yield from _compared(found, line, note)
    if once.get(AT_10_S):
        ratio = busy[AT_10_S] / once[AT_10_S]
        yield Claim(
            id="omega-12c-conflicts-make-busier",
            figure="12c",
            paper="service busyness is about 40 % higher with conflicts than without, at about 10 s",
            here=f"{ratio - 1:.0%} higher at 10 s",
            tolerance="20 % to 60 % higher",
            holds=1.2 <= ratio <= 1.6,
            note=note,
        )
    slow = _conflicts(found, service_t_task=1.0)
    if slow:
        middle = sorted(slow)[len(slow) // 2]
        yield Claim(
            id="omega-12-slow-tasks-are-fine",
            figure="12",
            paper="t_task(service) of 1 s at t_job(service) of 0.1 s: conflict fraction at most 0.2",
            here=f"{middle:.2g}",
            tolerance="at most 0.3",
            holds=middle <= 0.3,
            note=note,
        )


def _conflicts(found: Findings, **where: Parameter) -> list[float]:
    """Of service jobs. A trace may have none in the time of a point."""
    name = "service.conflicts"
    return [r[name] for _, r in found.select("12", **where) if name in r.values]


def _compared(found: Findings, line: Sequence[Mark], note: str) -> Iterator[Claim]:
    """Cluster B with another cluster, and the two simulators with each other."""
    of_c = _conflicts(found, cluster="C", service_t_job=AT_10_S)
    of_b = {mark.x: mark.y for mark in line}.get(AT_10_S)
    if of_c and of_b is not None:
        middle = sorted(of_c)[len(of_c) // 2]
        yield Claim(
            id="omega-12-more-interference-than-C",
            figure="12",
            paper="cluster B has more interference than cluster C",
            here=f"conflict fraction {of_b:.2g} (B) and {middle:.2g} (C) at 10 s",
            tolerance="more on B",
            holds=of_b > middle,
            note=note,
        )
    light = {
        mark.x: mark.y
        for mark in marks(found, "5c", "service_t_job", "service.conflicts", cluster="B")
    }
    both = [(mark.y, light[mark.x]) for mark in line if mark.x in light]
    if both:
        yield Claim(
            id="omega-12-simulators-agree",
            figure="12",
            paper="the simulators agree, and the lightweight one experiences less interference",
            here=f"{sum(heavy > plain for heavy, plain in both)} of {len(both)} points have more "
            "conflicts than with first fit",
            tolerance="at least as many at every point, and a conflict fraction that grows from the "
            "first to the last with both",
            holds=all(heavy >= plain for heavy, plain in both)
            and both[-1][0] > both[0][0]
            and both[-1][1] > both[0][1],
            note=note,
        )


def draw_13(found: Findings) -> Figure:
    cases = [
        (rule, count)
        for rule in ("first-fit", "best-fit")
        for count in found.values("13", "schedulers")
    ]
    rules = []
    for number, (rule, count) in enumerate(cases):
        where: dict[str, Parameter] = {"placement": rule, "schedulers": count}
        at = saturation(found, "13", "batch_t_job", "batch", **where)
        if at is not None and count != 1:
            rules.append(ReferenceLine(at=at, label=f"{at:.3g} s", vertical=True, colour=number))
        elif at is not None and rule == "first-fit":
            rules.append(ReferenceLine(at=at, label=f"1: {at:.3g} s", vertical=True, colour=number))

    def lines(measure: str) -> tuple[Line, ...]:
        return tuple(
            Line(
                label=f"{count} batch scheduler{'s' if count != 1 else ''}, {rule}",
                marks=marks(
                    found, "13", "batch_t_job", f"batch.{measure}", placement=rule, schedulers=count
                ),
                colour=number,
                dashed=rule == "best-fit",
            )
            for number, (rule, count) in enumerate(cases)
        )

    axis = time_axis("t_job(batch) [s]")
    return Figure(
        number="13",
        title="Three batch schedulers instead of one",
        caption="Cluster C, placed by randomised first fit (solid), as in the lightweight simulator, "
        "and by best fit (dashed). Vertical lines: saturation.",
        note=high_fidelity(found, "13"),
        panels=(
            Chart(
                title="(a) Scheduler busyness", x=axis, y=busyness_axis(), lines=lines("busyness"),
                rules=tuple(rules),
            ),
            Chart(
                title="(b) Job wait time", x=axis, y=wait_axis(), lines=lines("wait"),
                rules=(*slo_rule(), *rules),
            ),
            Chart(
                title="(c) Conflict fraction", x=axis, y=conflicts_axis(), lines=lines("conflicts"),
                rules=tuple(rules),
            ),
        ),
    )  # fmt: skip


def claims_13(found: Findings) -> Iterator[Claim]:
    for rule in ("first-fit", "best-fit"):
        note = "" if rule == "first-fit" else stand_in(found, "13")
        if not all(
            has_trend(found, "13", "batch_t_job", schedulers=count, placement=rule)
            for count in (1, 3)
        ):
            continue
        one, three = (
            saturation(found, "13", "batch_t_job", "batch", schedulers=count, placement=rule)
            for count in (1, 3)
        )
        is_known = one is not None and three is not None
        times = three / one if one is not None and three is not None else 0.0
        yield Claim(
            id=f"omega-13a-three-schedulers-{rule}",
            figure="13a",
            paper="about 3x: saturation moves from t_job(batch) of about 4 s to 15 s",
            here=f"{times:.2g}x with {rule}: from {one:.3g} s to {three:.3g} s"
            if is_known
            else f"saturation not reached with {rule}",
            tolerance="2.5x to 4x",
            holds=2.5 <= times <= 4.0,
            setup=rule,
            note=note,
        )
        waits = [
            mark.y
            for mark in marks(
                found, "13", "batch_t_job", "batch.wait", schedulers=3, placement=rule
            )
            if three is None or mark.x < three
        ]
        if waits:
            yield Claim(
                id=f"omega-13b-slo-met-{rule}",
                figure="13b",
                paper="all schedulers meet the 30 s SLO until they saturate",
                here=f"batch jobs wait {max(waits):.3g} s at most before saturation with {rule}",
                tolerance="at most 30 s on average at every point before saturation",
                holds=max(waits) <= SLO,
                note=note,
            )
        conflicts = marks(
            found, "13", "batch_t_job", "batch.conflicts", schedulers=3, placement=rule
        )
        before = [mark.y for mark in conflicts if three is None or mark.x < three]
        if before:
            yield Claim(
                id=f"omega-13-conflicts-{rule}",
                figure="13",
                paper="the conflict rate remains low, around 0.1",
                here=f"at most {max(before):.2g} before saturation with {rule}",
                tolerance="at most 0.2",
                holds=max(before) <= 0.2,
                setup=rule,
                note=note,
            )
