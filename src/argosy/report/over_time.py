"""A run over time: cumulative distributions, utilisation, queues and load of machines, as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.papers.charts import Axis, Chart, Line, Mark
from argosy.records.holdings import GroupRequests
from argosy.records.record import RunRecord
from argosy.records.state import RunState
from argosy.report.figures import COLOURS

Plotted = NDArray[np.float64]
#: Points of a curve over time, and steps of a distribution; more would not be visible.
POINTS: Final = 160
STEPS: Final = 200
_SECOND: Final = 1e6


class RunCurves(msgspec.Struct, frozen=True):
    """What is drawn of one run; times in seconds."""

    #: By kind of job.
    jct: dict[str, Plotted]
    wait: dict[str, Plotted]
    at: Plotted
    #: The used share of each resource.
    used: dict[str, Plotted]
    #: Tasks that wait for a decision or in a machine's queue, and that run.
    waiting: Plotted
    running: Plotted


def curves_of(run: RunRecord) -> RunCurves:
    state = run.state
    jobs, kinds = state.jobs, np.array([job.kind for job in state.steps.jobs])
    done = jobs.done >= 0
    begun = jobs.all_placed >= 0
    names = list(dict.fromkeys(kinds.tolist()))
    at = np.linspace(0, shown_until(state), POINTS + 1)
    tasks = state.over_time(at.astype(np.int64))
    return RunCurves(
        jct={
            kind: (jobs.done - jobs.submitted)[done & (kinds == kind)] / _SECOND for kind in names
        },
        wait={
            kind: (jobs.all_placed - jobs.submitted)[begun & (kinds == kind)] / _SECOND
            for kind in names
        },
        at=at / _SECOND,
        used=_used(state, at),
        waiting=(tasks["pending"] + tasks["queued"]).astype(np.float64),
        running=tasks["running"].astype(np.float64),
    )


def shown_until(state: RunState) -> int:
    """Until when a run is drawn: if nothing changes any more before its end, that part is left out."""
    claims = state.claims
    last = max(
        [
            int(claims.begin.max(initial=0)),
            int(claims.end[claims.end < state.until].max(initial=0)),
            int(max(state.steps.submitted, default=0)),
        ]
    )
    return max(1, min(state.until, last + last // 20))


def _used(state: RunState, at: Plotted) -> dict[str, Plotted]:
    claims, dimensions = state.claims, state.steps.dimensions
    amounts = GroupRequests(state.steps.jobs, dimensions).of(claims.tasks)
    total = np.sum(
        [machine.capacity.within(dimensions) for machine in state.setup.cell.machines], axis=0
    )
    times = np.concatenate([claims.begin, claims.end])
    order = np.argsort(times, kind="stable")
    found = {}
    for d, name in enumerate(dimensions):
        if not total[d]:
            continue
        changes = np.concatenate([amounts[:, d], -amounts[:, d]])[order]
        held = np.concatenate([[0], np.cumsum(changes)])
        # At the very end, what still runs counts.
        rows = np.searchsorted(times[order], np.minimum(at, state.until - 1), side="right")
        found[name] = held[rows] / float(total[d])
    return found


class Heat(msgspec.Struct, frozen=True):
    """The used share of the resource that is used most, by machine (or group of machines) and time."""

    names: tuple[str, ...]
    #: The ends of the time steps, in seconds.
    ends: Plotted
    rows: Plotted


def machine_heat(run: RunRecord, most: int = 48, steps: int = 60) -> Heat:
    state = run.state
    claims, dimensions = state.claims, state.steps.dimensions
    machines = state.setup.cell.machines
    amounts = GroupRequests(state.steps.jobs, dimensions).of(claims.tasks)
    capacity = np.array([machine.capacity.within(dimensions) for machine in machines], np.float64)
    ends = np.linspace(0, shown_until(state), steps + 1)
    known = claims.machines < len(machines)
    where, amount = claims.machines[known], amounts[known].astype(np.float64)
    begin, end = claims.begin[known], claims.end[known]
    group = -(-len(machines) // most)
    starts = np.arange(0, len(machines), group)
    rooms = np.add.reduceat(capacity, starts) * float(ends[1] - ends[0])
    rows = np.zeros((len(starts), steps))
    for step in range(steps):
        overlap = np.clip(np.minimum(end, ends[step + 1]) - np.maximum(begin, ends[step]), 0, None)
        held = np.zeros_like(capacity)
        np.add.at(held, where, amount * overlap[:, None])
        shares = np.add.reduceat(held, starts) / np.maximum(1.0, rooms)
        rows[:, step] = shares.max(axis=1)
    names = tuple(
        machines[at].name
        if group == 1
        else f"{machines[at].name} + {min(group, len(machines) - at) - 1}"
        for at in starts.tolist()
    )
    return Heat(names, ends[1:] / _SECOND, rows)


def distribution_chart(title: str, values: Mapping[str, Plotted], colours: Sequence[str]) -> Chart:
    """The share of jobs that took at most so long, on a logarithmic axis."""
    lines = []
    positive = [float(v[v > 0].min()) for v in values.values() if (v > 0).any()]
    floor = min(positive, default=0.001)
    for name, found in values.items():
        if not len(found):
            continue
        ordered = np.sort(np.maximum(found, floor))
        shares = np.arange(1, len(ordered) + 1) / len(ordered)
        rows = np.unique(np.linspace(0, len(ordered) - 1, min(STEPS, len(ordered))).astype(int))
        marks = [Mark(float(ordered[0]), 0.0)]
        marks += [Mark(float(ordered[row]), float(shares[row])) for row in rows.tolist()]
        lines.append(_line(name, marks, colours, stepped=True))
    return Chart(
        title=title,
        x=Axis(label="seconds", logarithmic=True),
        y=Axis(label="share of jobs", low=0.0, high=1.0),
        lines=tuple(lines),
    )


def time_chart(
    title: str, label: str, at: Plotted, values: Mapping[str, Plotted], colours: Sequence[str],
    *, high: float | None = None,
) -> Chart:  # fmt: skip
    scale, unit = time_unit(float(at[-1]))
    lines = [
        _line(
            name,
            [Mark(float(x) / scale, float(y)) for x, y in zip(at, found, strict=True)],
            colours,
            stepped=True,
        )
        for name, found in values.items()
    ]
    return Chart(
        title=title,
        x=Axis(label=unit, low=0.0, high=float(at[-1]) / scale),
        y=Axis(label=label, low=0.0, high=high),
        lines=tuple(lines),
    )


def _line(name: str, marks: Sequence[Mark], colours: Sequence[str], *, stepped: bool) -> Line:
    """Beyond the number of colours, lines are dashed."""
    number = colours.index(name)
    return Line(
        label=name,
        marks=tuple(marks),
        colour=number % COLOURS,
        dashed=number >= COLOURS,
        stepped=stepped,
    )


def time_unit(longest: float) -> tuple[float, str]:
    """Seconds per unit of a time axis, and the unit."""
    if longest <= 180:
        return 1.0, "seconds"
    return (3_600.0, "hours") if longest > 7_200 else (60.0, "minutes")
