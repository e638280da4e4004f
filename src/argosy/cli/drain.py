"""`argosy drain`: take machines of a live cluster out of use."""

from __future__ import annotations

import click

from argosy.cli.live import ServerChoice, complete_machine, live_options
from argosy.cli.machines import show
from argosy.cli.output import output_option


@click.command(epilog="Example: argosy drain local-1")
@click.argument(
    "names", nargs=-1, required=True, shell_complete=complete_machine, metavar="MACHINE..."
)
@click.option("--undo", is_flag=True, help="Give them tasks again.")
@live_options
@output_option
def command(names: tuple[str, ...], undo: bool, where: ServerChoice, output: str) -> None:
    """Give MACHINEs no more tasks. Those that run there are left to end."""
    with where.client() as client:
        show([client.drain(name, undo=undo) for name in names], output)
