"""Figures as wide as the page, as inline SVG: what runs where over time, and how full machines are."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

import numpy as np

from argosy.model.tasks import jobs_of
from argosy.papers.charts import Axis
from argosy.records.record import RunRecord
from argosy.report.figures import COLOURS, Span, number
from argosy.report.over_time import Heat, shown_until, time_unit

WIDTH: Final = 900
_LEFT: Final = 110
_RIGHT: Final = 12
_ROW: Final = 14
_BOTTOM: Final = 26
#: More rows or bars would not be legible.
MOST_MACHINES: Final = 40
MOST_BARS: Final = 6_000


def draw_gantt(run: RunRecord, kinds: Sequence[str]) -> str:
    """One row per machine, one bar per task, coloured by kind of job. Tasks that overlap share the
    row's height."""
    state = run.state
    claims = state.claims
    machines = state.setup.cell.machines
    used = np.unique(claims.machines[claims.machines < len(machines)])
    shown = used[:MOST_MACHINES]
    rows = {machine: row for row, machine in enumerate(shown.tolist())}
    mine = np.flatnonzero(np.isin(claims.machines, shown))[:MOST_BARS]
    height = len(shown) * _ROW + _BOTTOM
    until = shown_until(state)
    room = WIDTH - _LEFT - _RIGHT
    parts = [
        f'<text x="{_LEFT - 6}" y="{row * _ROW + 11}" text-anchor="end" class="tick">'
        f"{escape(_short(machines[machine].name))}</text>"
        for machine, row in rows.items()
    ]
    # Bars of one machine go to the first lane that is free, as in a timetable.
    lanes: dict[int, list[int]] = {}
    placed: list[tuple[int, int, int]] = []
    for row in mine[np.argsort(claims.begin[mine], kind="stable")].tolist():
        ends = lanes.setdefault(int(claims.machines[row]), [])
        begin, end = int(claims.begin[row]), min(until, int(claims.end[row]))
        lane = next((n for n, free in enumerate(ends) if free <= begin), len(ends))
        if lane == len(ends):
            ends.append(end)
        else:
            ends[lane] = end
        placed.append((row, lane, end))
    for row, lane, end in placed:
        machine = int(claims.machines[row])
        tall = (_ROW - 2) / max(1, len(lanes[machine]))
        x = _LEFT + room * int(claims.begin[row]) / until
        width = max(0.6, room * (end - int(claims.begin[row])) / until - 0.3)
        y = rows[machine] * _ROW + 1 + lane * tall
        job = state.steps.jobs[int(jobs_of(claims.tasks[row : row + 1])[0])]
        colour = kinds.index(job.kind) % COLOURS
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(0.5, tall - 0.4):.1f}" '
            f'fill="var(--c{colour})"><title>{escape(job.id)}</title></rect>'
        )
    parts += _time_axis(height - _BOTTOM, until / 1e6, room)
    return _svg("tasks on machines over time", height, parts)


def draw_machine_heat(heat: Heat) -> str:
    """One row per machine, one cell per time step; darker is fuller."""
    room = WIDTH - _LEFT - _RIGHT
    height = len(heat.names) * _ROW + _BOTTOM
    wide = room / max(1, heat.rows.shape[1])
    parts = []
    for row, name in enumerate(heat.names):
        y = row * _ROW
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 11}" text-anchor="end" class="tick">'
            f"{escape(_short(name))}</text>"
        )
        parts.append(
            f'<rect class="cold" x="{_LEFT}" y="{y + 1}" width="{room}" height="{_ROW - 2}"/>'
        )
        for step, share in enumerate(heat.rows[row].tolist()):
            if share > 0.005:
                parts.append(
                    f'<rect class="heat" x="{_LEFT + step * wide:.1f}" y="{y + 1}" '
                    f'width="{wide:.2f}" height="{_ROW - 2}" fill-opacity="{min(1.0, share):.2f}">'
                    f"<title>{escape(name)}: {share:.0%}</title></rect>"
                )
    parts += _time_axis(height - _BOTTOM, float(heat.ends[-1]), room)
    return _svg("use of machines over time", height, parts)


def _time_axis(y: int, seconds: float, room: int) -> list[str]:
    parts = [f'<line class="axis" x1="{_LEFT}" y1="{y}" x2="{_LEFT + room}" y2="{y}"/>']
    scale, unit = time_unit(seconds)
    last = seconds / scale
    span = Span(Axis(label="", low=0.0, high=last), [], _LEFT, _LEFT + room)
    for tick in span.ticks():
        text = f"{number(tick)} {unit}" if tick else "0"
        anchor = "start" if not tick else "end" if tick > 0.93 * last else "middle"
        parts.append(
            f'<text x="{span(tick):.1f}" y="{y + 16}" text-anchor="{anchor}" class="tick">'
            f"{escape(text)}</text>"
        )
    return parts


def _short(name: str) -> str:
    return name if len(name) <= 17 else f"{name[:16]}…"


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    return (
        f'<div class="scroll"><svg class="wide" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg></div>'
    )
