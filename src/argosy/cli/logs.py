"""`argosy logs`: what a task of a live cluster wrote."""

from __future__ import annotations

import json
import sys

import click

from argosy.cli.live import ServerChoice, complete_task, find_task, live_options
from argosy.cli.output import OutputError
from argosy.model.errors import CommandError


@click.command(epilog="Example: argosy logs crawl/3 -f")
@click.argument("task", shell_complete=complete_task)
@click.option("-f", "--follow", is_flag=True, help="Go on until the task is over.")
@click.option("--stderr", "is_error", is_flag=True, help="Standard error instead of output.")
@click.option("--try", "number", type=click.IntRange(1), metavar="N", help="A try of the task.")
@click.option(
    "--tail", type=click.IntRange(0), metavar="BYTES", help="Only the last so many bytes."
)
@live_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The bytes as they were written, or one JSON document.",
)
def command(
    task: str,
    follow: bool,
    is_error: bool,
    number: int | None,
    tail: int | None,
    where: ServerChoice,
    output: str,
) -> None:
    """Print what TASK wrote to its standard output, in its latest try.

    TASK is JOB/INDEX; JOB is enough if it has one task. With -f, further tries follow, and a task that
    does not run yet is waited for.
    """
    if follow and (number is not None or output == "json"):
        other = "--try" if number is not None else "-o json"
        raise CommandError(f"both -f and {other}", expected="one of them")
    stream = "stderr" if is_error else "stdout"
    with where.client() as client:
        job, index = find_task(client, task)
        if follow:
            for piece in client.follow_logs(
                job, index, stream="stderr" if is_error else "stdout", tail=tail
            ):
                _write(piece)
            return
        data = client.logs(
            job, index, stream="stderr" if is_error else "stdout", try_number=number, tail=tail
        )
    if output == "json":
        text = data.decode("utf-8", "replace")
        click.echo(json.dumps({"task": f"{job}/{index}", "stream": stream, "text": text}, indent=2))
    else:
        _write(data)


def _write(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"the output cannot be written: {error.strerror}") from None
