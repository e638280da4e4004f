"""Options of several commands, and printing results: bold headings where colour is wanted, ASCII where
needed."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from argosy.model.errors import ArgosyError, CommandError

if TYPE_CHECKING:
    from pathlib import Path

Command = TypeVar("Command", bound=Callable[..., Any])


def output_option(command: Command) -> Command:
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "csv"]),
        default="table",
        show_default=True,
        help="Text, one JSON document, or CSV with a header.",
    )(command)


def limit_options(what: str, limit: int) -> Callable[[Command], Command]:
    """Adds the options that limit a list; the command gets the limit, or none, as `most`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def called(*arguments: Any, limit: int, everything: bool, **options: Any) -> Any:
            return command(*arguments, most=None if everything else limit, **options)

        limited = click.option(
            "--limit",
            type=click.IntRange(1),
            default=limit,
            show_default=True,
            metavar="N",
            help=f"How many {what} at most.",
        )
        whole = click.option("--all", "everything", is_flag=True, help=f"All {what}, however many.")
        return limited(whole(called))  # type: ignore[return-value]

    return decorate


def engines_option(command: Command) -> Command:
    return click.option(
        "--engine",
        "engines",
        multiple=True,
        metavar="NAME",
        help="A name, or a class as package.module:Class; repeatable.  [default: all engines]",
    )(command)


def width() -> int | None:
    """The terminal's width; None if the output is not a terminal, so that nothing is cut."""
    if not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def emit(
    output: str,
    *,
    sections: Callable[[int | None], Sequence[Sequence[str]]],
    document: Callable[[], Any],
    csv: Callable[[], str],
) -> None:
    """Print a result in the chosen format; only that format is computed."""
    match output:
        case "json":
            import json

            write(json.dumps(_finite(document()), indent=2))
        case "csv":
            write(csv().rstrip("\n"))
        case _:
            for number, section in enumerate(sections(width())):
                heading, *rest = section
                write(("\n" if number else "") + click.style(heading, bold=True))
                if rest:
                    write("\n".join(rest))


class OutputError(ArgosyError):
    """The result cannot be written: no space, or a device that fails."""

    code = "output"


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"the output cannot be written: {error.strerror}") from None


def write(text: str) -> None:
    if not speaks_unicode():
        from argosy.report.tables import plain

        text = plain(text)
    with _writing():
        click.echo(text)


def flush() -> None:
    with _writing():
        sys.stdout.flush()


def note(text: str) -> None:
    """Print a remark that is not part of the result, to stderr."""
    click.echo(text, err=True)


def html_option(command: Command) -> Command:
    return _page_option(
        "--html",
        "Also write a report with figures: one file that needs nothing from elsewhere.",
    )(command)


def markdown_option(command: Command) -> Command:
    return _page_option("--markdown", "Also write a report as Markdown.")(command)


def _page_option(name: str, text: str) -> Callable[[Command], Command]:
    from pathlib import Path

    return click.option(name, type=click.Path(path_type=Path), metavar="FILE", help=text)


def write_page(path: Path, page: str, option: str = "--html") -> None:
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror}") from None
    note(f"wrote {path}")


#: Of a scenario whose results are all empty.
NO_JOBS: Final = "the workload has no jobs"


def tell_unmet(notes: Iterable[str]) -> None:
    """Print, before the results, which demands of the scenario engines ignore."""
    for text in dict.fromkeys(notes):
        note(f"note: {text}")


def speaks_unicode() -> bool:
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    return encoding.replace("-", "").startswith("utf")


def _finite(value: Any) -> Any:
    """Replaces infinities by null, because JSON has none."""
    match value:
        case dict():
            return {key: _finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
    return value
