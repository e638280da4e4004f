"""Whether a question about a task goes to a live cluster or to a saved run.

`--run` means a saved run, `--server` and `--dir` a live cluster. Without either, a live cluster answers
if its server can be reached and knows the job; otherwise the latest run under runs/ does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from argosy.cli.live import ServerChoice, find_task
from argosy.cli.output import note
from argosy.model.errors import (
    ArgosyError,
    CommandError,
    RunDirectoryError,
    ServerError,
    ServerUnreachable,
)

if TYPE_CHECKING:
    from argosy.client import Client

Answer = TypeVar("Answer")


def answered(
    task: str,
    run: Path | None,
    where: ServerChoice,
    live: Callable[[Client, str, int], Answer],
    saved: Callable[[], Answer],
) -> Answer:
    if run is not None:
        if where.is_given:
            raise CommandError(
                "both --run and a live server", expected="--run, or --server or --dir"
            )
        return saved()
    with where.client() as client:
        if where.is_given:
            return live(client, *find_task(client, task))
        try:
            answer = live(client, *find_task(client, task))
        except ServerUnreachable as error:
            told = str(error)
        except ServerError as error:
            if error.status != 404:
                raise
            told = f"the live cluster at {client.endpoint}: {error}"
            note(f"note: {told}; looking into the latest run")
        except CommandError as error:
            # A saved run may read the name differently.
            told = str(error)
        else:
            note(f"note: answered by the live cluster at {client.endpoint}; --run for a saved run")
            return answer
    try:
        return saved()
    except RunDirectoryError as error:
        raise _neither(error, told) from None


def _neither(error: RunDirectoryError, told: str) -> ArgosyError:
    """Neither a saved run nor a live cluster can answer."""
    return RunDirectoryError(
        f"{error.problem}, and {told.partition(';')[0]}",
        file=error.file,
        expected="--run DIR for a saved run, or --server or --dir for a live cluster",
        hint=error.hint,
    )
