"""The Omega paper's figures as charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.papers.charts import Axis, Chart, Figure, HeatMap, Line, Mark, Rule
from argosy.papers.experiment import Findings, Parameter
from argosy.papers.omega_points import CLUSTERS, NEEDS, is_installed
from argosy.papers.omega_world import KINDS

#: The service level objective of section 4, in seconds.
SLO: Final = 30.0
#: More unscheduled jobs than this share mean that a scheduler could not keep up.
KEEPS_UP: Final = 0.02
SERVICE_T_JOB: Final = "t_job(service) [s]"
SERVICE_T_TASK: Final = "t_task(service) [s]"
SCHEMES: Final = {
    "single-path": "Monolithic, single-path",
    "multi-path": "Monolithic, multi-path",
    "mesos": "Two-level (Mesos)",
    "omega": "Shared state (Omega)",
}
HIGH_FIDELITY: Final = (
    "The paper's high-fidelity simulator ran Google's own placement on a trace, and neither was "
    "published. Here best fit on the cluster's synthetic workload stands in for it: like a scoring "
    "algorithm, it makes schedulers want the same machines."
)


def marks(
    found: Findings, figure: str, along: str, name: str, **where: Parameter
) -> tuple[Mark, ...]:
    """A measure along a parameter. Of one seed, the error is the deviation between days; of several,
    the mark is their median, or mean for times, and the error their median absolute deviation."""
    made = []
    for x in found.values(figure, along):
        results = [result for _, result in found.select(figure, **{along: x}, **where)]
        values = [result.values[name] for result in results if name in result.values]
        if not values:
            continue
        if len(values) == 1:
            made.append(Mark(float(x), values[0], results[0].values.get(f"{name}_mad", 0.0)))
            continue
        middle = float(np.median(values))
        shown = float(np.mean(values)) if name.endswith("wait") else middle
        made.append(Mark(float(x), shown, float(np.median(np.abs(np.array(values) - middle)))))
    return tuple(sorted(made, key=lambda mark: mark.x))


def saturation(
    found: Findings, figure: str, along: str, kind: str, **where: Parameter
) -> float | None:
    """Where a kind's jobs begin to stay unscheduled: halfway between the last point that keeps up and
    the first that does not. None if every point keeps up."""
    last = None
    for mark in marks(found, figure, along, f"{kind}.unscheduled", **where):
        if mark.y > KEEPS_UP:
            return mark.x if last is None else (last + mark.x) / 2
        last = mark.x
    return None


def draw(found: Findings, figures: Sequence[str]) -> list[Figure]:
    makers = {
        "5": _figure_5, "6": _figure_6, "7": _figure_7, "8": _figure_8, "9": _figure_9,
        "10": _figure_10, "12": _figure_12, "13": _figure_13, "14": _figure_14,
    }  # fmt: skip
    return [makers[figure](found) for figure in figures]


def _by_cluster(
    found: Findings, sweep: str, measure: str, kinds: Sequence[str] = KINDS
) -> tuple[Line, ...]:
    return tuple(
        Line(
            label=f"{kind if len(kinds) > 1 else 'all jobs,'} {cluster}",
            marks=marks(found, sweep, "service_t_job", f"{kind}.{measure}", cluster=cluster),
            colour=number,
            dashed=kind == "service",
        )
        for kind in kinds
        for number, cluster in enumerate(CLUSTERS)
    )


def _time(label: str = SERVICE_T_JOB) -> Axis:
    return Axis(label=label, logarithmic=True)


def _wait() -> Axis:
    return Axis(label="mean job wait time [s]", logarithmic=True, low=0.01, high=1000.0)


def _busyness() -> Axis:
    return Axis(label="scheduler busyness", low=0.0, high=1.0)


def _conflicts(high: float | None = None) -> Axis:
    return Axis(label="conflict fraction", low=0.0, high=high)


def _slo() -> tuple[Rule, ...]:
    return (Rule(at=SLO, label="SLO 30 s"),)


def _three() -> tuple[tuple[str, str, str], ...]:
    return (
        ("5a", "Monolithic, single-path", "t_job [s]"),
        ("5b", "Monolithic, multi-path", SERVICE_T_JOB),
        ("5c", "Shared state (Omega)", SERVICE_T_JOB),
    )


def _figure_5(found: Findings) -> Figure:
    return Figure(
        number="5",
        title="Job wait time",
        caption="Mean time from submission to the first attempt, of jobs that had one, against the "
        "decision time per job: of all jobs (a), of service jobs only (b, c). Solid: batch; dashed: "
        "service. On a logarithmic axis, zero stands on the lower edge.",
        panels=tuple(
            Chart(
                title=f"({part[-1]}) {title}",
                x=_time(label),
                y=_wait(),
                lines=_by_cluster(found, part, "wait"),
                rules=_slo(),
            )
            for part, title, label in _three()
        ),
    )


def _figure_6(found: Findings) -> Figure:
    return Figure(
        number="6",
        title="Scheduler busyness",
        caption="The share of time spent deciding. The monolithic schedulers take all jobs; with "
        "shared state there is one for batch (solid) and one for service (dashed).",
        panels=tuple(
            Chart(
                title=f"({part[-1]}) {title}",
                x=_time(label),
                y=_busyness(),
                lines=_by_cluster(found, part, "busyness", KINDS if part == "5c" else ("batch",)),
            )
            for part, title, label in _three()
        ),
    )


def _figure_7(found: Findings) -> Figure:
    note = "" if is_installed("7") else f"Not drawn: engine {NEEDS['7']!r} is not installed."
    panels = (
        Chart(
            title="(a) Job wait time", x=_time(), y=_wait(),
            lines=_by_cluster(found, "7", "wait"), rules=_slo(),
        ),
        Chart(
            title="(b) Scheduler busyness", x=_time(), y=_busyness(),
            lines=_by_cluster(found, "7", "busyness"),
        ),
        Chart(
            title="(c) Jobs abandoned after 1,000 attempts", x=_time(),
            y=Axis(label="jobs abandoned", low=0.0, high=1.0),
            lines=_by_cluster(found, "7", "abandoned"),
        ),
    )  # fmt: skip
    return Figure(
        number="7",
        title="Two-level scheduling (Mesos)",
        caption="Offers of everything that is free, to one framework at a time. Solid: batch; dashed: "
        "service.",
        panels=() if note else panels,
        note=note,
    )


def _figure_8(found: Findings) -> Figure:
    rules = []
    for number, cluster in enumerate(CLUSTERS):
        at = saturation(found, "8", "rate", "batch", cluster=cluster)
        if at is not None:
            rules.append(Rule(at=at, label=f"{cluster} {at:.3g}x", vertical=True, colour=number))

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
                title="(a) Job wait time", x=rate, y=_wait(), lines=lines("wait"),
                rules=(*_slo(), *rules),
            ),
            Chart(
                title="(b) Scheduler busyness", x=rate, y=_busyness(), lines=lines("busyness"),
                rules=tuple(rules),
            ),
        ),
    )  # fmt: skip


def _figure_9(found: Findings) -> Figure:
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
            Chart(title="(a) Conflict fraction", x=rate, y=_conflicts(), lines=lines("conflicts")),
            Chart(title="(b) Scheduler busyness", x=rate, y=_busyness(), lines=lines("busyness")),
        ),
    )


def unscheduled(found: Findings, scheme: str, job: Parameter, task: Parameter) -> bool:
    """Whether part of the workload stayed unscheduled at a place of figure 10."""
    return any(
        result.values.get(f"{kind}.unscheduled", 0.0) > KEEPS_UP
        for _, result in found.select("10", scheme=scheme, service_t_job=job, service_t_task=task)
        for kind in KINDS
    )


def _figure_10(found: Findings) -> Figure:
    panels = []
    jobs = sorted(found.values("10", "service_t_job"))
    tasks = sorted(found.values("10", "service_t_task"), reverse=True)
    schemes = [scheme for scheme in SCHEMES if scheme in found.values("10", "scheme")]
    for scheme in schemes:
        rows = []
        for task in tasks:
            row: list[float | None] = []
            for job in jobs:
                here = found.select("10", scheme=scheme, service_t_job=job, service_t_task=task)
                row.append(here[0][1].values.get("service.busyness") if here else None)
            rows.append(tuple(row))
        of_all = scheme == "single-path"
        panels.append(
            HeatMap(
                title=SCHEMES[scheme],
                x="t_job [s]" if of_all else SERVICE_T_JOB,
                y="t_task [s]" if of_all else SERVICE_T_TASK,
                value="busyness",
                xs=tuple(f"{job:g}" for job in jobs),
                ys=tuple(f"{task:g}" for task in tasks),
                rows=tuple(rows),
                struck=tuple(
                    tuple(unscheduled(found, scheme, job, task) for job in jobs) for task in tasks
                ),
                struck_label="part of the workload unscheduled",
            )
        )
    return Figure(
        number="10",
        title="Decision time per job and per task",
        caption="Cluster B. Busyness of the scheduler that takes service jobs. The paper draws "
        "surfaces and shades them red where part of the workload remained unscheduled.",
        panels=tuple(panels),
        note="" if "mesos" in schemes else "Without Mesos: engine 'mesos' is not installed.",
    )


def _figure_12(found: Findings) -> Figure:
    def line(kind: str, measure: str, label: str = "", colour: int | None = None) -> Line:
        chosen = marks(found, "12", "service_t_job", f"{kind}.{measure}")
        return Line(
            label=label or kind,
            marks=chosen,
            colour=KINDS.index(kind) if colour is None else colour,
            dashed=kind == "service",
        )

    return Figure(
        number="12",
        title="Shared state on cluster B",
        caption="Against the decision time per service job, with schedulers that want the same "
        "machines. “No conflict” is what deciding every job once would have taken.",
        note=HIGH_FIDELITY,
        panels=(
            Chart(
                title="(a) Job wait time", x=_time(), y=_wait(),
                lines=tuple(line(kind, "wait") for kind in KINDS), rules=_slo(),
            ),
            Chart(
                title="(b) Conflict fraction", x=_time(), y=_conflicts(),
                lines=tuple(line(kind, "conflicts") for kind in KINDS),
            ),
            Chart(
                title="(c) Scheduler busyness", x=_time(), y=_busyness(),
                lines=(
                    *(line(kind, "busyness") for kind in KINDS),
                    line("service", "busyness_once", "service, no conflict", 2),
                ),
            ),
        ),
    )  # fmt: skip


def _figure_13(found: Findings) -> Figure:
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
            rules.append(Rule(at=at, label=f"{at:.3g} s", vertical=True, colour=number))
        elif at is not None and rule == "first-fit":
            rules.append(Rule(at=at, label=f"1: {at:.3g} s", vertical=True, colour=number))

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

    axis = _time("t_job(batch) [s]")
    return Figure(
        number="13",
        title="Three batch schedulers instead of one",
        caption="Cluster C, placed by randomised first fit (solid), as in the lightweight simulator, "
        "and by best fit (dashed). Vertical lines: saturation.",
        note=HIGH_FIDELITY,
        panels=(
            Chart(
                title="(a) Scheduler busyness", x=axis, y=_busyness(), lines=lines("busyness"),
                rules=tuple(rules),
            ),
            Chart(
                title="(b) Job wait time", x=axis, y=_wait(), lines=lines("wait"),
                rules=(*_slo(), *rules),
            ),
            Chart(
                title="(c) Conflict fraction", x=axis, y=_conflicts(), lines=lines("conflicts"),
                rules=tuple(rules),
            ),
        ),
    )  # fmt: skip


def _figure_14(found: Findings) -> Figure:
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
                title="(a) Conflict fraction", x=_time(), y=_conflicts(), lines=lines("conflicts")
            ),
            Chart(
                title="(b) Scheduler busyness", x=_time(), y=_busyness(), lines=lines("busyness")
            ),
        ),
    )
