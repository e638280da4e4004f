"""Tables: one set of rows that prints as text, JSON or CSV.

A cell holds the value as the model has it (microseconds, shares, counts); a column's unit says how
a person wants to read it. Text is made from the same rows as JSON and CSV, so the three cannot
disagree. Only the standard library is needed, so that `argosy doctor` can print on a broken
installation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from argosy.model.units import format_duration

Value: TypeAlias = str | int | float | None
GAP: Final = "  "
#: The minimum width to which a text column is cut.
NARROWEST: Final = 12


class Unit(Enum):
    TEXT = "text"
    COUNT = "count"
    #: Microseconds.
    TIME = "time"
    #: A fraction of 1.
    SHARE = "share"
    NUMBER = "number"


def format_share(value: float) -> str:
    percent = value * 100
    digits = 2 if percent < 1 else 3
    return f"{percent:.{digits}g} %" if percent < 99.95 else f"{percent:.0f} %"


_FORMATS: Final[dict[Unit, Callable[[Any], str]]] = {
    Unit.TEXT: str,
    Unit.COUNT: "{:,.0f}".format,
    Unit.TIME: format_duration,
    Unit.SHARE: format_share,
    Unit.NUMBER: lambda value: f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}",
}


class Column(NamedTuple):
    """`name` is the key in JSON and CSV, `title` the heading in text."""

    name: str
    title: str
    unit: Unit = Unit.TEXT

    def text(self, value: Value) -> str:
        return "" if value is None else _FORMATS[self.unit](value)


class Table(NamedTuple):
    columns: tuple[Column, ...]
    #: One value per column.
    rows: tuple[tuple[Value, ...], ...]

    def without(self, names: Collection[str]) -> Table:
        kept = [at for at, column in enumerate(self.columns) if column.name not in names]
        return Table(
            tuple(self.columns[at] for at in kept),
            tuple(tuple(row[at] for at in kept) for row in self.rows),
        )

    def records(self) -> list[dict[str, Value]]:
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def csv(self) -> str:
        return csv_text(self.records(), [column.name for column in self.columns])

    def lines(self, width: int | None = None) -> list[str]:
        """A heading and one line per row. If `width` is too small, the widest text is cut."""
        cells = [[c.text(v) for c, v in zip(self.columns, row, strict=True)] for row in self.rows]
        grid = [[column.title for column in self.columns], *cells]
        widths = [max(len(line[i]) for line in grid) for i in range(len(self.columns))]
        if width is not None:
            widths = self._squeezed(widths, width)
        return [self._line(line, widths) for line in grid]

    def wrapped(self, width: int | None = None) -> list[str]:
        """Like `lines`, but nothing is cut: text that is too wide in the last column continues
        below."""
        if width is None or not self.rows:
            return self.lines(width)
        import textwrap

        before = Table(self.columns[:-1], tuple(row[:-1] for row in self.rows)).lines()
        start = max(map(len, before)) + len(GAP)
        room = max(NARROWEST, width - start)
        last = self.columns[-1]
        lines = []
        texts = [last.title, *(last.text(row[-1]) for row in self.rows)]
        for line, text in zip(before, texts, strict=True):
            first, *more = textwrap.wrap(text, room) or [""]
            lines.append(f"{line:<{start}}{first}".rstrip())
            lines += [" " * start + part for part in more]
        return lines

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        parts = []
        for column, cell, width in zip(self.columns, cells, widths, strict=True):
            shown = cell if len(cell) <= width else cell[: width - 1] + "…"
            parts.append(shown.ljust(width) if column.unit is Unit.TEXT else shown.rjust(width))
        return GAP.join(parts).rstrip()

    def _squeezed(self, widths: list[int], width: int) -> list[int]:
        squeezed = list(widths)
        texts = [i for i, column in enumerate(self.columns) if column.unit is Unit.TEXT]
        while sum(squeezed) + len(GAP) * (len(squeezed) - 1) > width:
            widest = max(texts, key=lambda i: squeezed[i], default=None)
            if widest is None or squeezed[widest] <= NARROWEST:
                break
            squeezed[widest] -= 1
        return squeezed


def csv_text(records: Iterable[dict[str, Value]], names: Sequence[str]) -> str:
    """One header and a line per record; missing values stay empty."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()


#: Every special character in reports, for outputs that support only ASCII.
_PLAIN: Final = str.maketrans(
    {
        "µ": "u", "±": "+/-", "…": "~",
        "█": "#", "▓": "=", "░": ".", "─": "-", "│": "|", "├": "|", "┤": "|",
        "●": "o", "◆": "+", "▲": "^",
    }
)  # fmt: skip


def plain(text: str) -> str:
    """`text` in ASCII; characters without a counterpart become question marks."""
    return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")
