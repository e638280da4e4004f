"""`argosy down`: stop the server of a live cluster."""

from __future__ import annotations

import time
from typing import Final

import click

from argosy.cli.live import ServerChoice, live_options
from argosy.cli.output import emit, output_option
from argosy.model.errors import CommandError, ServerError, ServerUnreachable

_LOOK_SECONDS: Final = 0.05


@click.command(epilog="Example: argosy down --stop-tasks")
@click.option("--stop-tasks", is_flag=True, help="Stop the running tasks as well.")
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until the server has stopped.",
)
@live_options
@output_option
def command(stop_tasks: bool, timeout: float, where: ServerChoice, output: str) -> None:
    """Stop the server, and wait until it has stopped.

    Running tasks go on, and `argosy up` finds them again, unless --stop-tasks is given.
    """
    client = where.client()
    with client:
        client.shutdown(stop_tasks=stop_tasks)
    deadline = time.monotonic() + timeout
    while True:
        # A new client: one that was answered before would wait for the server to come back.
        try:
            with where.client() as probe:
                probe.health()
        except (ServerUnreachable, ServerError):
            break
        if time.monotonic() >= deadline:
            raise CommandError(
                f"{client.endpoint} still answers after {timeout:g} s",
                hint="tasks may need longer to stop; --timeout waits longer",
            )
        time.sleep(_LOOK_SECONDS)
    left = "stopped" if stop_tasks else "left running"
    emit(
        output,
        sections=lambda _: [[f"{client.endpoint} is down; its tasks were {left}"]],
        document=lambda: {"server": str(client.endpoint), "tasks": left},
        csv=lambda: f"server,tasks\n{client.endpoint},{left}\n",
    )
