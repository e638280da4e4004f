"""The tables of Google's public cluster traces as files: parts, gzip, CSV and JSON lines.

A table is a directory of parts (``task_events/part-00000-of-00500.csv.gz``) or files that begin
with its name (``instance_events-000000000000.json.gz``), read in the order of their names. A `Row`
knows its place: whatever is wrong with a field is a `TraceError` with file, line and field.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import msgspec

from argosy.model.errors import TraceError, did_you_mean, excerpt
from argosy.model.jobs import PRECEDENCE_RANGE
from argosy.model.units import LARGEST

#: Times from here on mean "after the end of the trace"; the traces use 2^63 - 1 and 2^64 - 1.
AFTER_THE_END: Final = 2**63 - 1
_GOOGLE: Final = "a table of a Google cluster trace"
_SUFFIXES: Final = (".csv", ".csv.gz", ".json", ".json.gz", ".jsonl", ".jsonl.gz")


class Row:
    """One line of a table: its fields by name, as text or JSON values."""

    __slots__ = ("fields", "line", "path")

    def __init__(self, path: Path, line: int, fields: Mapping[str, Any]) -> None:
        self.path = path
        self.line = line
        self.fields = fields

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number; if the field is empty, the default, or an error without one."""
        value = self.fields.get(name)
        if type(value) is int:
            return value
        if value is None or value == "":
            if default is None:
                self.refuse(name, "is missing", "a whole number")
            return default
        try:
            return int(value) if isinstance(value, str) else _whole_float(value)
        except (ValueError, OverflowError):
            self.refuse(name, f"{excerpt(str(value))} is not a whole number", "a whole number")

    def time(self, name: str = "time") -> int:
        """Microseconds, or `AFTER_THE_END`."""
        value = self.whole(name)
        if value >= AFTER_THE_END:
            return AFTER_THE_END
        return self._within(name, value, LARGEST)

    def priority(self, default: int | None = None) -> int:
        return self._within("priority", self.whole("priority", default), PRECEDENCE_RANGE[1])

    def _within(self, name: str, value: int, most: int) -> int:
        if not 0 <= value <= most:
            self.refuse(name, f"{value} is out of range", f"0 to {most}")
        return value

    def share(self, name: str) -> float | None:
        """A normalised amount of a resource; 1 is the largest machine's."""
        value = self.fields.get(name)
        if value is None or value == "":
            return None
        try:
            amount = float(value)
        except (TypeError, ValueError):
            self.refuse(
                name, f"{excerpt(str(value))} is not a number", "a share of the largest machine"
            )
        # Requests above one machine do occur; amounts beyond any machine, and NaN, are mistakes.
        if not 0 <= amount <= 1000:
            self.refuse(name, f"an amount of {amount:g}", "a share of the largest machine")
        return amount

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        text = "" if value is None else str(value)
        if not text.isprintable():
            self.refuse(name, f"{excerpt(text)} is not printable", "printable characters")
        return text

    def flag(self, name: str) -> bool:
        value = self.fields.get(name)
        if value is None or value == "":
            return False
        if isinstance(value, bool):
            return value
        known = {"0": False, "1": True, "false": False, "true": True}
        if (found := known.get(str(value).lower())) is None:
            self.refuse(name, f"{excerpt(str(value))} is not a truth value", "0, 1, true or false")
        return found

    def choice(self, name: str, options: Sequence[str], default: int | None = None) -> int:
        """The number of one of `options`, given as that number or by name."""
        value = self.fields.get(name)
        if isinstance(value, str) and value in options:
            return options.index(value)
        number = self.whole(name, default)
        if not 0 <= number < len(options):
            named = ", ".join(f"{at} {option}" for at, option in enumerate(options))
            self.refuse(name, f"{number} is none of the known", named)
        return number

    def refuse(self, name: str, problem: str, expected: str, hint: str | None = None) -> NoReturn:
        raise TraceError(
            problem,
            file=str(self.path),
            line=self.line,
            field=name,
            expected=expected,
            hint=hint,
        )


def _whole_float(value: Any) -> int:
    if not isinstance(value, float) or value != int(value):
        raise ValueError(value)
    return int(value)


def parts(directory: Path, table: str, *, optional: bool = False) -> list[Path]:
    """The files of one table, ordered by name."""
    try:
        beside = sorted(directory.iterdir())
        folder = directory / table
        inside = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise TraceError(
            f"cannot be read: {error.strerror}",
            file=str(directory),
            expected="a directory with the tables of a Google cluster trace",
        ) from error
    found = [path for path in inside if path.name.endswith(_SUFFIXES)]
    found += [
        path
        for path in beside
        if path.is_file()
        and path.name.endswith(_SUFFIXES)
        and path.name.startswith((f"{table}.", f"{table}-", f"{table}_part"))
    ]
    if not found and not optional:
        raise TraceError(
            f"no table {table}",
            file=str(directory),
            expected=f"{table}/part-00000-of-00500.csv.gz, or {table}-….json.gz",
            hint=did_you_mean(table, (path.name for path in beside)),
        )
    return found


#: Reads the rows of one file, given the columns.
ReadRows: TypeAlias = Callable[[Path, Sequence[str]], Iterator[Row]]


def rows(
    directory: Path,
    table: str,
    columns: Sequence[str],
    read: ReadRows,
    *,
    optional: bool = False,
) -> Iterator[Row]:
    """The rows of all parts of one table, each part read by `bare_rows` or `named_rows`."""
    for path in parts(directory, table, optional=optional):
        yield from read(path, columns)


def lines(path: Path, expected: str = _GOOGLE) -> Iterator[tuple[int, str]]:
    """The numbered lines of a plain or compressed text file, without empty ones. `expected` says what
    the file should be."""
    number = 0
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8")
        ) as source:
            for number, line in enumerate(source, 1):
                if line := line.rstrip("\r\n"):
                    yield number, line
    except EOFError as error:
        raise TraceError(
            "the compressed file ends too early",
            file=str(path),
            line=number + 1,
            expected="a whole gzip file",
            hint="fetch this part again",
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(
            f"not gzip: {error}", file=str(path), line=number + 1, expected="a gzip file"
        ) from error
    except UnicodeDecodeError as error:
        raise TraceError(
            f"is not UTF-8 at byte {error.start}",
            file=str(path),
            line=number + 1,
            expected=expected,
        ) from error
    except OSError as error:
        raise TraceError(
            f"cannot be read: {error.strerror}",
            file=str(path),
            expected=expected,
        ) from error


def bare_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """CSV without a heading or quotes, as in the trace of 2011."""
    width = len(columns)
    for number, line in lines(path):
        values = line.split(",")
        if len(values) != width:
            raise TraceError(
                f"{len(values)} fields",
                file=str(path),
                line=number,
                field=columns[min(len(values), width) - 1],
                expected=f"{width}: {', '.join(columns)}",
            )
        yield Row(path, number, dict(zip(columns, values, strict=True)))


def named_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """JSON lines, or CSV with a heading, as in exports of the trace of 2019. Nested JSON becomes dotted
    names, as in the heading of a CSV: ``resource_request.cpus``."""
    return _csv_rows(path, columns) if ".csv" in path.suffixes else _json_rows(path)


def _json_rows(path: Path) -> Iterator[Row]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for number, line in lines(path):
        try:
            table = decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise TraceError(
                f"not a JSON object: {error}",
                file=str(path),
                line=number,
                expected="one JSON object per line",
            ) from None
        for name in [name for name, value in table.items() if isinstance(value, dict)]:
            for inner, value in table.pop(name).items():
                table[f"{name}.{inner}"] = value
        yield Row(path, number, table)


def _csv_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    heading: list[str] = []
    for number, line in lines(path):
        try:
            values = next(csv.reader([line]))
        except csv.Error as error:
            raise TraceError(
                f"not CSV: {error}", file=str(path), line=number, expected="a line of CSV"
            ) from None
        if not heading:
            heading = values
            if not set(columns) & set(heading):
                raise TraceError(
                    f"no heading but {excerpt(line)}",
                    file=str(path),
                    line=number,
                    expected=f"names of columns, such as {', '.join(columns)}",
                )
            continue
        if len(values) != len(heading):
            raise TraceError(
                f"{len(values)} fields",
                file=str(path),
                line=number,
                field=heading[min(len(values), len(heading)) - 1],
                expected=f"{len(heading)}, as in the heading",
            )
        yield Row(path, number, dict(zip(heading, values, strict=True)))
