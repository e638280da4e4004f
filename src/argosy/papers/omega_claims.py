"""What the Omega paper says of its figures, against what the points show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from argosy.papers.charts import Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.omega_figures import KEEPS_UP, SCHEMES, SLO, marks, saturation, unscheduled
from argosy.papers.omega_points import CLUSTERS
from argosy.papers.omega_world import KINDS

#: At which multiple of the batch arrivals each cluster saturates, in section 4.3.
SATURATES: Final = {"A": 2.5, "B": 6.0, "C": 9.5}
#: So many may be under way when a run ends, however few there were.
FEW_JOBS: Final = 5
#: Fewer say nothing about a mean.
ENOUGH_JOBS: Final = 20
STAND_IN: Final = "best fit on a synthetic workload stands in for the high-fidelity simulator"


def claims(found: Findings, figures: Sequence[str]) -> list[Claim]:
    """Those that the points at hand can decide."""
    makers: dict[str, Callable[[Findings], Iterator[Claim]]] = {
        "5": _figure_5, "6": _figure_6, "7": _figure_7, "8": _figure_8, "9": _figure_9,
        "10": _figure_10, "12": _figure_12, "13": _figure_13, "14": _figure_14,
    }  # fmt: skip
    return [claim for figure in figures for claim in makers[figure](found)]


def _along(found: Findings, sweep: str, name: str, cluster: str) -> dict[float, float]:
    chosen = marks(found, sweep, "service_t_job", name, cluster=cluster)
    return {mark.x: mark.y for mark in chosen}


def _figure_5(found: Findings) -> Iterator[Claim]:
    if not all(found.has(sweep) for sweep in ("5a", "5b", "5c")):
        return
    apart = [
        max(batch, service) / min(batch, service)
        for cluster in CLUSTERS
        for x, batch in _along(found, "5a", "batch.wait", cluster).items()
        if _along(found, "5a", "service.begun", cluster).get(x, 0.0) >= ENOUGH_JOBS
        and (service := _along(found, "5a", "service.wait", cluster)[x]) > 1.0
        and batch > 1.0
    ]
    yield Claim(
        id="omega-5a-service-tracks-batch",
        figure="5a",
        paper="wait times of service jobs closely track those of batch jobs",
        here=f"at most {max(apart, default=1.0):.2f}x apart where waits exceed 1 s",
        tolerance=f"at most 1.5x apart, where at least {ENOUGH_JOBS} service jobs had an attempt",
        holds=max(apart, default=1.0) <= 1.5,
    )
    less = [
        (single / max(multi, 1e-6), cluster, x)
        for cluster in CLUSTERS
        for x, single in _along(found, "5a", "batch.wait", cluster).items()
        if x >= 1.0
        and _along(found, "5b", "batch.unscheduled", cluster).get(x, 1.0) <= KEEPS_UP
        and (multi := _along(found, "5b", "batch.wait", cluster).get(x)) is not None
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
    blocked = {c: _growth(_along(found, "5b", "batch.wait", c)) for c in CLUSTERS}
    yield Claim(
        id="omega-5b-head-of-line-blocking",
        figure="5b",
        paper="batch jobs still get stuck behind slow service jobs",
        here="batch wait grows " + _listed(blocked, "{:.3g}x") + " with t_job(service)",
        tolerance="grows at least 10x on every cluster",
        holds=min(blocked.values()) >= 10.0,
    )
    free = {c: _growth(_along(found, "5c", "batch.wait", c)) for c in CLUSTERS}
    yield Claim(
        id="omega-5c-no-blocking-between-schedulers",
        figure="5c",
        paper="lines for batch and service jobs are independent: no head-of-line blocking",
        here="batch wait changes " + _listed(free, "{:.3g}x") + " with t_job(service)",
        tolerance="at most 1.1x on every cluster",
        holds=max(free.values()) <= 1.1,
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


def _growth(values: dict[float, float]) -> float:
    """The largest against the first: how much something grew along an axis."""
    ordered = [values[x] for x in sorted(values)]
    return max(ordered) / max(ordered[0], 1e-6) if ordered else 1.0


def _listed(values: dict[str, float], form: str) -> str:
    return ", ".join(f"{form.format(value)} ({name})" for name, value in values.items())


def _figure_6(found: Findings) -> Iterator[Claim]:
    if not all(found.has(sweep) for sweep in ("5a", "5b", "5c")):
        return
    worst = 0.0
    for cluster in CLUSTERS:
        below = [
            mark
            for mark in marks(found, "5a", "service_t_job", "batch.busyness", cluster=cluster)
            if mark.y < 0.9
        ]
        worst = max(worst, _bend(below))
    yield Claim(
        id="omega-6a-busyness-is-linear",
        figure="6a",
        paper="busyness scales linearly with t_job",
        here=f"at most {worst:.1%} from a straight line below 0.9",
        tolerance="at most 10 %",
        holds=worst <= 0.10,
    )
    lower = [
        (single - multi, cluster, x)
        for cluster in CLUSTERS
        for x, single in _along(found, "5a", "batch.busyness", cluster).items()
        if x in (1.0, 3.0)
        and (multi := _along(found, "5b", "batch.busyness", cluster).get(x)) is not None
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
    most = max(
        result.values.get(f"{kind}.conflicts", 0.0)
        for point, result in found.select("5c")
        for kind in KINDS
        if float(point.parameters["service_t_job"]) <= 10.0
    )
    yield Claim(
        id="omega-6c-conflicts-are-rare",
        figure="6c",
        paper="conflicts and interference are relatively rare",
        here=f"conflict fraction at most {most:.3g} up to t_job(service) = 10 s",
        tolerance="at most 0.1",
        holds=most <= 0.1,
    )


def _bend(line: Sequence[Mark]) -> float:
    """How far marks in the middle are from the straight line between the outer two, relatively."""
    if len(line) < 3:
        return 0.0
    first, last = line[0], line[-1]
    slope = (last.y - first.y) / (last.x - first.x)
    straight = [(mark.y, first.y + slope * (mark.x - first.x)) for mark in line[1:-1]]
    return max(abs(there - here) / here for there, here in straight)


def _figure_7(found: Findings) -> Iterator[Claim]:
    if not found.has("7"):
        return
    abandoned = {c: _along(found, "7", "batch.abandoned", c) for c in CLUSTERS}
    ends = {c: (v[min(v)], v[max(v)]) for c, v in abandoned.items() if v}
    yield Claim(
        id="omega-7c-mesos-abandons-jobs",
        figure="7c",
        paper="jobs are abandoned as t_job(service) grows",
        here="batch jobs abandoned: "
        + ", ".join(f"{a:.0f} to {b:.0f} ({c})" for c, (a, b) in ends.items()),
        tolerance="more at the longest t_job(service) than at the shortest, on some cluster",
        holds=any(b > a for a, b in ends.values()),
    )
    if not found.has("5b"):
        return
    ratios = {}
    for cluster in CLUSTERS:
        two, multi = (_along(found, s, "batch.busyness", cluster) for s in ("7", "5b"))
        quick = _along(found, "5b", "batch.busyness", cluster)
        # What batch jobs alone take of the one scheduler: its busyness with quick services.
        share = quick[min(quick)]
        ratios[cluster] = max(two[x] / share for x in two if x in multi and x >= 1.0)
    yield Claim(
        id="omega-7b-mesos-batch-busyness",
        figure="7b",
        paper="batch busyness is much higher than in the monolithic multi-path case",
        here=_listed(ratios, "{:.3g}x") + " what batch jobs take of a monolithic scheduler",
        tolerance="at least 1.5x on every cluster for some t_job(service)",
        holds=min(ratios.values()) >= 1.5,
    )


def _figure_8(found: Findings) -> Iterator[Claim]:
    if not found.has("8"):
        return
    here = {c: saturation(found, "8", "rate", "batch", cluster=c) for c in CLUSTERS}
    for cluster, expected in SATURATES.items():
        at = here[cluster]
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
    known = [at for c in CLUSTERS if (at := here[c]) is not None]
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
        here="service conflict fraction grows by " + _listed(grown, "{:.2g}"),
        tolerance="grows on every cluster",
        holds=min(grown.values()) > 0,
    )


def _figure_9(found: Findings) -> Iterator[Claim]:
    if not found.has("9"):
        return
    counts = [int(count) for count in found.values("9", "schedulers")]
    rates = [float(rate) for rate in found.values("9", "rate")]
    top = max(rates)

    def at_top(measure: str) -> list[float]:
        return [
            {m.x: m.y for m in marks(found, "9", "rate", f"batch.{measure}", schedulers=n)}[top]
            for n in counts
        ]

    conflicts, busyness = at_top("conflicts"), at_top("busyness")
    yield Claim(
        id="omega-9a-conflicts-grow-with-schedulers",
        figure="9a",
        paper="the conflict fraction increases with more schedulers",
        here=", ".join(f"{c:.2g} ({n})" for n, c in zip(counts, conflicts, strict=True))
        + f" at {top:g}x",
        tolerance="more schedulers, more conflicts, from 2 on",
        holds=all(a < b for a, b in pairwise(conflicts[1:])),
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


def _figure_10(found: Findings) -> Iterator[Claim]:
    if not found.has("10"):
        return
    jobs, tasks = found.values("10", "service_t_job"), found.values("10", "service_t_task")
    schemes = [scheme for scheme in SCHEMES if scheme in found.values("10", "scheme")]
    share = {
        scheme: sum(unscheduled(found, scheme, j, t) for j in jobs for t in tasks)
        / (len(jobs) * len(tasks))
        for scheme in schemes
    }
    yield Claim(
        id="omega-10-shared-state-scales-further",
        figure="10",
        paper="monolithic scheduling is not scalable; shared state is competitive and scales",
        here=_listed(share, "{:.0%}") + " of the plane leaves work unscheduled",
        tolerance="single-path above multi-path, and multi-path not below shared state",
        holds=share["single-path"] > share["multi-path"] >= share["omega"],
    )


def _figure_12(found: Findings) -> Iterator[Claim]:
    if not found.has("12"):
        return
    line = marks(found, "12", "service_t_job", "service.conflicts")
    crossing = next((mark.x for mark in line if mark.y > 1.0), None)
    yield Claim(
        id="omega-12b-a-retry-on-average",
        figure="12b",
        paper="beyond t_job(service) of about 10 s the conflict fraction exceeds 1.0",
        here="never exceeds 1.0" if crossing is None else f"exceeds 1.0 from {crossing:g} s on",
        tolerance="between 3 and 30 s",
        holds=crossing is not None and 3.0 <= crossing <= 30.0,
        note=STAND_IN,
    )
    waits = marks(found, "12", "service_t_job", "service.wait")
    missed = next((mark.x for mark in waits if mark.y > SLO), None)
    yield Claim(
        id="omega-12a-service-misses-the-slo",
        figure="12a",
        paper="at around 10 s the service scheduler misses the 30 s SLO",
        here="never" if missed is None else f"from {missed:g} s on",
        tolerance="between 3 and 30 s",
        holds=missed is not None and 3.0 <= missed <= 30.0,
        note=STAND_IN,
    )
    slow = [r["service.conflicts"] for _, r in found.select("12", service_t_task=1.0)]
    if slow:
        middle = sorted(slow)[len(slow) // 2]
        yield Claim(
            id="omega-12-slow-tasks-are-fine",
            figure="12",
            paper="t_task(service) of 1 s at t_job(service) of 0.1 s: conflict fraction at most 0.2",
            here=f"{middle:.2g}",
            tolerance="at most 0.3",
            holds=middle <= 0.3,
            note=STAND_IN,
        )


def _figure_13(found: Findings) -> Iterator[Claim]:
    if not found.has("13"):
        return
    for rule in ("first-fit", "best-fit"):
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
            note="" if rule == "first-fit" else STAND_IN,
        )
        conflicts = marks(
            found, "13", "batch_t_job", "batch.conflicts", schedulers=3, placement=rule
        )
        before = [mark.y for mark in conflicts if three is None or mark.x < three]
        most = max(before, default=0.0)
        yield Claim(
            id=f"omega-13-conflicts-{rule}",
            figure="13",
            paper="the conflict rate remains low, around 0.1",
            here=f"at most {most:.2g} before saturation with {rule}",
            tolerance="at most 0.2",
            holds=most <= 0.2,
            note="" if rule == "first-fit" else STAND_IN,
        )


def _figure_14(found: Findings) -> Iterator[Claim]:
    if not found.has("14"):
        return

    # A scheduler that falls behind has no steady conflict fraction: only where all four keep up.
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
