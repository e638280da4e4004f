"""`argosy engines`: what there is to choose from."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from argosy.cli.output import emit, output_option

if TYPE_CHECKING:
    from argosy.engines.api import Engine
    from argosy.model.errors import ArgosyError


@click.command(epilog="Example: argosy engines omega")
@click.argument("name", required=False)
@output_option
def command(name: str | None, output: str) -> None:
    """List the engines and their capabilities; with NAME, that engine's settings.

    NAME may also be a class, as in "package.module:Class".
    """
    from argosy.engines.registry import find_engine, survey

    if name is None:
        engines, broken = survey()
        _list(engines, {_own_name(key, engines): error for key, error in broken.items()}, output)
    else:
        _describe(find_engine(name), output)


def _own_name(name: str, engines: dict[str, type[Engine]]) -> str:
    """The name of a broken engine; its class if a built-in engine has that name."""
    from argosy.engines.plugins import entry_points

    return entry_points()[name][0].value if name in engines else name


def _list(engines: dict[str, type[Engine]], broken: dict[str, ArgosyError], output: str) -> None:
    from argosy.report.catalogue import capabilities, lacking
    from argosy.report.tables import Column, Table

    table = Table(
        (
            Column("name", "engine"),
            Column("capabilities", "capabilities"),
            Column("summary", ""),
            Column("lacking", ""),
            Column("broken", ""),
        ),
        (
            *(
                (name, ", ".join(capabilities(engine)), engine.summary, lacking(engine), "")
                for name, engine in engines.items()
            ),
            *((name, "", "", "", str(error)) for name, error in broken.items()),
        ),
    )

    def sections(width: int | None) -> list[list[str]]:
        heading, *lines = table.without(["summary", "lacking", "broken"]).lines(width)
        shown = [heading]
        # A summary is a sentence, so it goes below its engine instead of widening a column.
        below = [
            *([*_wrapped(e.summary, width), *_missing(e, width)] for e in engines.values()),
            *(_wrapped(f"broken: {error}", width) for error in broken.values()),
        ]
        for line, text in zip(lines, below, strict=True):
            shown += [line, *text]
        return [shown]

    emit(
        output,
        sections=sections,
        document=lambda: (
            [
                {
                    "name": name,
                    "summary": engine.summary,
                    "capabilities": capabilities(engine),
                    "lacking": lacking(engine),
                    "broken": "",
                }
                for name, engine in engines.items()
            ]
            + [
                {
                    "name": name,
                    "summary": "",
                    "capabilities": [],
                    "lacking": "",
                    "broken": str(error),
                }
                for name, error in broken.items()
            ]
        ),
        csv=table.csv,
    )


def _describe(engine: type[Engine], output: str) -> None:
    import msgspec

    from argosy.report.catalogue import capabilities, lacking, settings
    from argosy.report.tables import Column, Table

    known = settings(engine)
    table = Table(
        (
            Column("name", "setting"),
            Column("type", "type"),
            Column("default_text", "default"),
            Column("doc", ""),
        ),
        tuple((s.name, s.type, s.default_text, s.doc) for s in known),
    )

    def sections(width: int | None) -> list[list[str]]:
        heading, *lines = table.without(["doc"]).lines(width)
        shown = [heading]
        for line, setting in zip(lines, known, strict=True):
            shown += [line, *_wrapped(setting.doc, width)]
        about = [engine.name, *_wrapped(engine.summary, width), *_missing(engine, width)]
        return [about, ["capabilities", *_wrapped(", ".join(capabilities(engine)), width)], shown]

    emit(
        output,
        sections=sections,
        document=lambda: {
            "name": engine.name,
            "summary": engine.summary,
            "capabilities": capabilities(engine),
            "lacking": lacking(engine),
            "settings": [msgspec.to_builtins(setting) for setting in known],
        },
        csv=table.csv,
    )


def _missing(engine: type[Engine], width: int | None) -> list[str]:
    from argosy.report.catalogue import lacking

    text = lacking(engine)
    return _wrapped(f"not as it is set by default: {text}", width) if text else []


def _wrapped(text: str, width: int | None) -> list[str]:
    if not text:
        return []
    if width is None:
        return [f"  {text}"]
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
