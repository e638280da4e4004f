"""Charts as inline SVG: lines with error bars, cumulative curves, and heat maps.

Drawn by hand rather than with a plotting library: a few shapes, no dependency, and colours that are
names (``--c0``, ``--ink``), so that the page around them decides between light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final

from argosy.papers.charts import Axis, Chart, HeatMap, Line, Mark, ReferenceLine

WIDTH: Final = 380
HEIGHT: Final = 280
LEFT, RIGHT, TOP, BOTTOM = 66, 20, 30, 46
#: Distinguishable colours and marks; further lines reuse them.
COLOURS: Final = 6
MINUS: Final = "\N{MINUS SIGN}"


class Span:
    """Maps values of an axis to positions in the drawing, and chooses its ticks."""

    def __init__(self, axis: Axis, values: Iterable[float], begin: float, end: float) -> None:
        self.begin, self.end = begin, end
        self.is_logarithmic = axis.logarithmic
        shown = [value for value in values if math.isfinite(value)]
        shown += [end for end in (axis.low, axis.high) if end is not None]
        if self.is_logarithmic:
            shown = [value for value in shown if value > 0] or [1.0]
            self.low, self.high = _decade(min(shown), math.floor), _decade(max(shown), math.ceil)
            if axis.low is None and axis.high is None:
                # Only the range of the data: no empty parts of decades at the ends.
                self.low, self.high = min(shown) / 1.15, max(shown) * 1.15
            if self.low == self.high:
                self.low, self.high = self.low / 10, self.high * 10
            return
        low, high = min(shown, default=0.0), max(shown, default=1.0)
        if axis.low is not None:
            low = min(axis.low, low)
        room = (high - low or 1.0) * 0.05
        self.low = low if axis.low is not None else low - room
        self.high = high if axis.high == high else high + room

    def __call__(self, value: float) -> float:
        if self.is_logarithmic:
            value = math.log(max(value, self.low) / self.low)
            share = value / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        if not self.is_logarithmic:
            return self._even()
        decades = self._decades((1,))
        if len(decades) >= 3:
            return decades[:: 1 + len(decades) // 7]
        return self._decades((1, 2, 5)) or [self.low, self.high]

    def fine(self) -> list[float]:
        """Ticks without a number."""
        return self._decades(range(1, 10)) if self.is_logarithmic else []

    def _decades(self, steps: Sequence[int]) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        made = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [tick for tick in made if self.low * 0.999 <= tick <= self.high * 1.001]

    def _even(self) -> list[float]:
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        count = int((self.high - first * step) / step + 1e-9) + 1
        return [(first + number) * step for number in range(count)]


def _decade(value: float, rounded: Callable[[float], int]) -> float:
    return float(10.0 ** rounded(math.log10(value)))


def number(value: float) -> str:
    """A tick's number: short, and without an exponent where people would not write one."""
    if value and (abs(value) >= 100_000 or abs(value) < 0.0001):
        return f"{value:.0e}"
    return f"{value:,.6g}".replace("-", MINUS)


def draw_chart(chart: Chart, name: str) -> str:
    """`name` must be unique on the page, because parts of the drawing refer to each other by it."""
    marks = [mark for line in chart.lines for mark in line.marks]
    rules_x = [rule.at for rule in chart.rules if rule.vertical]
    rules_y = [rule.at for rule in chart.rules if not rule.vertical]
    x = Span(chart.x, [*(mark.x for mark in marks), *rules_x], LEFT, WIDTH - RIGHT)
    heights = [mark.y + mark.error for mark in marks] + [mark.y for mark in marks]
    y = Span(chart.y, [*heights, *rules_y], HEIGHT - BOTTOM, TOP)
    parts = [
        _title(chart.title),
        *_grid(x, y),
        *_labels(chart.x.label, chart.y.label),
    ]
    if not marks:
        parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT / 2, "nothing measured", "middle"))
    parts.append(
        f'<clipPath id="{name}"><rect x="{LEFT - 4}" y="{TOP - 4}" '
        f'width="{WIDTH - LEFT - RIGHT + 8}" height="{HEIGHT - TOP - BOTTOM + 8}"/></clipPath>'
    )
    parts.append(f'<g clip-path="url(#{name})">')
    parts += [_line(line, x, y) for line in chart.lines]
    parts.append("</g>")
    parts += [_rule(rule, x, y) for rule in chart.rules]
    return _svg(chart.title, parts)


def _svg(title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )


def _title(text: str) -> str:
    return f'<text class="title" x="{LEFT}" y="17">{escape(text)}</text>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    styled = f' class="{kind}"' if kind else ""
    return f'<text{styled} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _segment(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _grid(x: Span, y: Span) -> list[str]:
    bottom, top, left, right = HEIGHT - BOTTOM, TOP, LEFT, WIDTH - RIGHT
    parts = []
    for tick in x.ticks():
        at = x(tick)
        parts.append(_segment("grid", at, top, at, bottom))
        parts.append(_text(at, bottom + 15, number(tick), "middle", "tick"))
    for tick in y.ticks():
        at = y(tick)
        parts.append(_segment("grid", left, at, right, at))
        parts.append(_text(left - 7, at + 4, number(tick), "end", "tick"))
    parts += [_segment("axis", x(tick), bottom, x(tick), bottom + 3) for tick in x.fine()]
    parts += [_segment("axis", left - 3, y(tick), left, y(tick)) for tick in y.fine()]
    parts.append(_segment("axis", left, bottom, right, bottom))
    parts.append(_segment("axis", left, top, left, bottom))
    return parts


def _labels(x: str, y: str) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return [
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x, "middle"),
        f'<text x="14" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle})">{escape(y)}</text>',
    ]


def _rule(rule: ReferenceLine, x: Span, y: Span) -> str:
    colour = "" if rule.colour is None else f' style="--line:var(--c{rule.colour % COLOURS})"'
    if rule.vertical:
        at = x(rule.at)
        line = _segment("rule", at, TOP, at, HEIGHT - BOTTOM)
        label = (
            f'<text class="rule-label" x="{at - 4:.1f}" y="{TOP + 4}" text-anchor="end" '
            f'transform="rotate(-90 {at - 4:.1f} {TOP + 4})">{escape(rule.label)}</text>'
        )
    else:
        at = y(rule.at)
        line = _segment("rule", LEFT, at, WIDTH - RIGHT, at)
        label = _text(LEFT + 5, at - 4, rule.label, "start", "rule-label")
    return f"<g{colour}>{line}{label}</g>"


def _line(line: Line, x: Span, y: Span) -> str:
    if not line.marks:
        return ""
    at = [(x(mark.x), y(mark.y)) for mark in line.marks]
    path = f"M{at[0][0]:.1f} {at[0][1]:.1f}"
    for px, py in at[1:]:
        path += f"H{px:.1f}V{py:.1f}" if line.stepped else f"L{px:.1f} {py:.1f}"
    parts = [f'<path class="line{" dashed" if line.dashed else ""}" d="{path}"/>']
    if not line.stepped:
        for mark in line.marks:
            if mark.error > 0:
                parts.append(_error_bar(mark, x, y))
            parts.append(shape(line.colour, x(mark.x), y(mark.y), hollow=line.dashed))
    said = escape(line.label)
    return f'<g style="--line:var(--c{line.colour % COLOURS})"><title>{said}</title>{"".join(parts)}</g>'


def _error_bar(mark: Mark, x: Span, y: Span) -> str:
    # If a logarithmic axis cannot show the lower half of an error bar, a bar down to its edge would be
    # wrong too.
    lowest = mark.y if y.is_logarithmic and mark.y - mark.error < y.low else mark.y - mark.error
    at, low, high = x(mark.x), y(lowest), y(mark.y + mark.error)
    return (
        f'<path class="error" d="M{at:.1f} {low:.1f}V{high:.1f}'
        f'M{at - 3:.1f} {low:.1f}h6M{at - 3:.1f} {high:.1f}h6"/>'
    )


def shape(colour: int, x: float, y: float, *, hollow: bool) -> str:
    """The mark of a colour, so that lines can be distinguished without colour."""
    kind = "mark hollow" if hollow else "mark"
    match colour % COLOURS:
        case 0:
            return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        case 1:
            return f'<rect class="{kind}" x="{x - 2.7:.1f}" y="{y - 2.7:.1f}" width="5.4" height="5.4"/>'
        case 2:
            path = f"M{x:.1f} {y - 3.7:.1f}l3.5 6.2h-7z"
        case 3:
            path = f"M{x:.1f} {y - 4:.1f}l4 4l-4 4l-4 -4z"
        case 4:
            path = f"M{x:.1f} {y + 3.7:.1f}l3.5 -6.2h-7z"
        case _:
            path = f"M{x - 1.2:.1f} {y - 3.6:.1f}h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4v-2.4h2.4z"
    return f'<path class="{kind}" d="{path}"/>'


def key(line: Line) -> str:
    """A line's entry in the legend."""
    dashed = " dashed" if line.dashed else ""
    drawn = f'<path class="line{dashed}" d="M1 7H31"/>'
    if not line.stepped:
        drawn += shape(line.colour, 16, 7, hollow=line.dashed)
    return (
        f'<span class="key"><svg viewBox="0 0 32 14" style="--line:var(--c{line.colour % COLOURS})">'
        f"{drawn}</svg>{escape(line.label)}</span>"
    )


def draw_heat_map(heat: HeatMap, name: str) -> str:
    """A coloured, numbered cell per value; `struck_label` explains those crossed out."""
    width = (WIDTH - LEFT - RIGHT) / max(1, len(heat.xs))
    height = (HEIGHT - TOP - BOTTOM) / max(1, len(heat.ys))
    parts = [
        _title(heat.title),
        f'<pattern id="{name}" width="7" height="7" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line class="strike" x1="0" y1="0" x2="0" y2="7"/></pattern>',
    ]
    for row, (values, struck) in enumerate(zip(heat.rows, heat.struck, strict=True)):
        top = TOP + row * height
        parts.append(_text(LEFT - 7, top + height / 2 + 4, heat.ys[row], "end", "tick"))
        for column, value in enumerate(values):
            left = LEFT + column * width
            parts += _cell(heat, value, left, top, width, height, name if struck[column] else "")
    for column, label in enumerate(heat.xs):
        at = LEFT + (column + 0.5) * width
        parts.append(_text(at, HEIGHT - BOTTOM + 15, label, "middle", "tick"))
    parts += _labels(heat.x, heat.y)
    return _svg(heat.title, parts)


def _cell(
    heat: HeatMap, value: float | None, x: float, y: float, width: float, height: float, strike: str
) -> list[str]:
    box = f'x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{width - 1:.1f}" height="{height - 1:.1f}"'
    if value is None:
        return [f'<rect class="none" {box}/>']
    share = min(max((value - heat.low) / (heat.high - heat.low), 0.0), 1.0)
    parts = [f'<rect class="cold" {box}/><rect class="heat" {box} fill-opacity="{_depth(share)}"/>']
    if strike:
        parts.append(f'<rect {box} fill="url(#{strike})"/>')
    kind = "hot-number" if share > 0.55 else "cool-number"
    parts.append(_text(x + width / 2, y + height / 2 + 4, f"{value:.2f}", "middle", kind))
    return parts


def _depth(share: float) -> str:
    """The opacity of a value's colour; the smallest value is still visible."""
    return f"{0.06 + 0.94 * share:.3f}"


def heat_key(heat: HeatMap) -> str:
    """The legend of a heat map: its scale, and what crossed-out cells mean."""
    steps = "".join(
        f'<rect class="cold" x="{8 * n}" width="8" height="12"/>'
        f'<rect class="heat" x="{8 * n}" width="8" height="12" fill-opacity="{_depth(n / 7)}"/>'
        for n in range(8)
    )
    strokes = "".join(
        f'<line class="strike" x1="{n}" y1="12" x2="{n + 12}" y2="0"/>' for n in (-4, 4, 12)
    )
    return (
        f'<span class="key">{number(heat.low)} <svg class="scale" viewBox="0 0 64 12">{steps}</svg> '
        f"{number(heat.high)} {escape(heat.value)}</span>"
        f'<span class="key"><svg viewBox="0 0 24 12">{strokes}</svg>{escape(heat.struck_label)}</span>'
    )
