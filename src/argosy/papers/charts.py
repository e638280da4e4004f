"""Figures as values: axes, lines, curves and maps.

Papers make these; `argosy.report.figures` draws them.
"""

from __future__ import annotations

import msgspec


class Mark(msgspec.Struct, frozen=True):
    """One point of a line; `error` is half the length of its error bar."""

    x: float
    y: float
    error: float = 0.0


class Line(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    marks: tuple[Mark, ...]
    #: Lines with the same number have the same colour.
    colour: int = 0
    dashed: bool = False
    #: Whether each value holds until the next mark, as in a cumulative distribution.
    stepped: bool = False


class ReferenceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A straight line across the whole chart, at a value of one axis."""

    at: float
    label: str
    vertical: bool = False
    colour: int | None = None


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    logarithmic: bool = False
    #: The axis covers at least `low` to `high`.
    low: float | None = None
    high: float | None = None


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    rules: tuple[ReferenceLine, ...] = ()


class HeatMap(msgspec.Struct, frozen=True, kw_only=True):
    """A value per pair of coordinates, from `low` to `high`. `struck` cells are crossed out."""

    title: str
    x: str
    y: str
    value: str
    xs: tuple[str, ...]
    ys: tuple[str, ...]
    #: One row per y, one value per x; None where nothing was measured.
    rows: tuple[tuple[float | None, ...], ...]
    struck: tuple[tuple[bool, ...], ...]
    struck_label: str
    low: float = 0.0
    high: float = 1.0


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    number: str
    title: str
    caption: str
    panels: tuple[Chart | HeatMap, ...]
    #: Why the figure is empty or differs from the paper's; may be empty.
    note: str = ""
