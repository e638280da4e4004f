"""Terminal plots: bars with whiskers, stacked bars, and quantiles on one axis.

Each plot is a list of lines at most `width` wide, drawn with block and box characters that
`tables.plain` turns into ASCII one for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.report.tables import GAP

#: The minimum width of the drawing itself, regardless of labels.
NARROWEST: Final = 10
#: With a larger spread, a linear axis would squeeze everything but the largest into one column.
LOGARITHMIC_FROM: Final = 20.0
SHADES: Final = "░▓█"
MARKS: Final = "●◆▲│"


@dataclass(frozen=True, slots=True)
class Bar:
    """`text` is shown on the right: the value in readable form."""

    label: str
    value: float
    low: float
    high: float
    text: str


def bars(rows: Sequence[Bar], width: int) -> list[str]:
    """A bar from zero to each value, with a whisker over its interval."""
    label = _widest(row.label for row in rows)
    room = _room(width, label, _widest(row.text for row in rows))
    top = max((max(row.value, row.high) for row in rows), default=0.0)
    lines = []
    for row in rows:
        drawn = _bar(row, room, top)
        lines.append(f"{row.label:<{label}}{GAP}{drawn:<{room}}{GAP}{row.text}".rstrip())
    return lines


def _bar(row: Bar, room: int, top: float) -> str:
    if top <= 0:
        return ""
    scale = room / top
    cells = list("█" * round(row.value * scale))
    low, high = (min(room - 1, int(end * scale)) for end in (row.low, row.high))
    if high > low:
        cells += " " * (high + 1 - len(cells))
        cells[low : high + 1] = ["├", *"─" * (high - low - 1), "┤"]
    return "".join(cells)


def stacked(
    rows: Mapping[str, Sequence[float]],
    names: Sequence[str],
    total: Callable[[float], str],
    width: int,
) -> list[str]:
    """A bar per label with up to three parts, and a legend."""
    label = _widest(rows)
    sums = {name: sum(parts) for name, parts in rows.items()}
    room = _room(width, label, _widest(total(value) for value in sums.values()))
    top = max(sums.values(), default=0.0)
    lines = []
    for name, parts in rows.items():
        drawn, begun = "", 0.0
        for shade, part in zip(SHADES, parts, strict=False):
            # Ends are rounded, not lengths, so that rounding errors do not add up.
            begun += part
            drawn += shade * (round(begun / top * room) - len(drawn) if top > 0 else 0)
        lines.append(f"{name:<{label}}{GAP}{drawn:<{room}}{GAP}{total(sums[name])}".rstrip())
    legend = GAP.join(f"{shade} {name}" for shade, name in zip(SHADES, names, strict=False))
    return [*lines, f"{'':<{label}}{GAP}{legend}"]


def quantiles(
    rows: Mapping[str, Sequence[float]],
    names: Sequence[str],
    tick: Callable[[float], str],
    width: int,
) -> list[str]:
    """Up to four rising points per label on one axis, joined by a line; scale and legend below."""
    label = _widest(rows)
    room = _room(width, label, 0)
    points = [point for row in rows.values() for point in row]
    positive = [point for point in points if point > 0]
    if not positive:
        return []
    low, high = min(positive), max(positive)
    logarithmic = high / low > LOGARITHMIC_FROM
    if not logarithmic:
        low = 0.0

    def place(value: float) -> int:
        if logarithmic:
            share = math.log(max(value, low) / low) / math.log(high / low)
        else:
            share = value / high
        return round(share * (room - 1))

    lines = []
    for name, row in rows.items():
        at = [place(value) for value in row]
        cells = [" "] * room
        cells[at[0] : at[-1] + 1] = "─" * (at[-1] + 1 - at[0])
        # The median is drawn last, because it matters most where points coincide.
        for column, mark in reversed(list(zip(at, MARKS, strict=False))):
            cells[column] = mark
        lines.append(f"{name:<{label}}{GAP}{''.join(cells)}".rstrip())
    left, right = tick(low), tick(high)
    scale = "log scale" if logarithmic else ""
    axis = f"{left}{scale:^{max(0, room - len(left) - len(right))}}{right}"
    legend = GAP.join(f"{mark} {name}" for mark, name in zip(MARKS, names, strict=False))
    return [*lines, *(f"{'':<{label}}{GAP}{line}".rstrip() for line in (axis, legend))]


def _widest(texts: Iterable[str]) -> int:
    return max((len(text) for text in texts), default=0)


def _room(width: int, label: int, text: int) -> int:
    return max(NARROWEST, width - label - text - (2 if text else 1) * len(GAP))
