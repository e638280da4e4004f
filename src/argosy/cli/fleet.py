"""`argosy fleet`: the schedulers of a live cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from argosy.cli.live import ServerChoice, live_options
from argosy.cli.output import emit, output_option
from argosy.model.errors import CommandError, ScenarioError

if TYPE_CHECKING:
    from argosy.api.values import FleetInfo

_EXPECTED: Final = "a file in TOML with [[fleet]], such as a scenario"


@click.group(invoke_without_command=True, epilog="Example: argosy fleet")
@live_options
@output_option
@click.pass_context
def command(context: click.Context, where: ServerChoice, output: str) -> None:
    """Show the schedulers of a live cluster; `argosy fleet set` replaces them.

    Options about the server go after the subcommand.
    """
    if context.invoked_subcommand is not None:
        if where.is_given or where.token_file is not None:
            raise CommandError(
                "options before the subcommand", expected="them after `argosy fleet set`"
            )
        return
    with where.client() as client:
        _show(client.fleet(), output)


@command.command("set", epilog="Example: argosy fleet set --engine omega --engine murmuration")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="An engine with its default settings, instead of FILE; repeatable.",
)
@live_options
@output_option
def replace(file: Path | None, engines: tuple[str, ...], where: ServerChoice, output: str) -> None:
    """Replace the fleet with the [[fleet]] of FILE, a scenario or a file with nothing else.

    Jobs and running tasks stay as they are; the new schedulers take care of them. The fleet must take
    jobs of every kind that there is.
    """
    if (file is None) == (not engines):
        raise CommandError(
            "no fleet" if file is None else "both a file and --engine", expected="one of them"
        )
    entries = (
        read_entries(file) if file is not None else [{"name": n, "engine": n} for n in engines]
    )
    with where.client() as client:
        _show(client.set_fleet(entries), output)


def read_entries(file: Path) -> list[dict[str, Any]]:
    from argosy.scenarios.toml_files import parse_toml, read_utf8

    text = read_utf8(file, ScenarioError, _EXPECTED)
    fleet = parse_toml(text, str(file), ScenarioError, _EXPECTED).get("fleet")
    if not isinstance(fleet, list) or not all(isinstance(entry, dict) for entry in fleet):
        raise ScenarioError("no fleet", file=str(file), expected=_EXPECTED)
    return fleet


def _show(fleet: FleetInfo, output: str) -> None:
    import msgspec

    from argosy.report.tables import Column, Table, Unit
    from argosy.scenarios.toml_text import to_toml

    table = Table(
        (
            Column("name", "scheduler"),
            Column("engine", "engine"),
            Column("jobs", "jobs", Unit.COUNT),
            Column("busyness", "busy", Unit.SHARE),
            Column("is_alive", "alive"),
        ),
        tuple(
            (each.name, each.engine, each.jobs, each.busyness, str(each.is_alive).lower())
            for each in fleet.schedulers
        ),
    )
    emit(
        output,
        sections=lambda width: [
            table.lines(width),
            ["as in a scenario", *to_toml({"fleet": list(fleet.fleet)}).strip().splitlines()],
        ],
        document=lambda: msgspec.to_builtins(fleet),
        csv=table.csv,
    )
