"""Printing results: the option `-o`, bold headings where colour is wanted, ASCII where needed."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from argosy.report.tables import plain

Command = TypeVar("Command", bound=Callable[..., Any])


def output_option(command: Command) -> Command:
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "csv"]),
        default="table",
        show_default=True,
        help="Text for people, one JSON document, or CSV with a header.",
    )(command)


def width() -> int | None:
    """Columns to fit text into; none where nobody looks, so that nothing is cut for a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def emit(
    output: str,
    *,
    sections: Callable[[int | None], Sequence[Sequence[str]]],
    document: Callable[[], Any],
    csv: Callable[[], str],
) -> None:
    """Print a result in the chosen form; only that form is made."""
    match output:
        case "json":
            write(json.dumps(_finite(document()), indent=2))
        case "csv":
            write(csv().rstrip("\n"))
        case _:
            for number, section in enumerate(sections(width())):
                heading, *rest = section
                write(("\n" if number else "") + click.style(heading, bold=True))
                if rest:
                    write("\n".join(rest))


def write(text: str) -> None:
    click.echo(text if speaks_unicode() else plain(text))


def note(text: str) -> None:
    """What is worth saying but no result: to stderr."""
    click.echo(text, err=True)


def speaks_unicode() -> bool:
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    return encoding.replace("-", "").startswith("utf")


def _finite(value: Any) -> Any:
    """JSON has no infinity: such a number becomes null."""
    match value:
        case dict():
            return {key: _finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
    return value
