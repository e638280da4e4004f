"""Whether a question about a task goes to a live cluster or to a saved run.

`--run` means a saved run, `--server` and `--dir` a live cluster. Without either, a live cluster answers
if its server can be reached and knows the job; otherwise the latest run under runs/ does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from argosy.cli.live import ServerChoice, find_task, split_task
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
        unknown = ""
        try:
            answer = live(client, *find_task(client, task))
        except ServerUnreachable as error:
            told = str(error)
        except ServerError as error:
            if error.status != 404 or _knows(client, task):
                raise
            told = unknown = f"the live cluster at {client.endpoint}: {error.problem}"
        except CommandError as error:
            # A saved run may read the name differently.
            told = str(error)
        else:
            note(f"note: answered by the live cluster at {client.endpoint}; --run for a saved run")
            return answer
    try:
        answer = saved()
    except RunDirectoryError as error:
        raise _neither(error, told) from None
    if unknown:
        note(f"note: answered by a saved run; {unknown}")
    return answer


def _knows(client: Client, task: str) -> bool:
    """Whether the cluster has a job of this name, though not the task."""
    try:
        client.job(split_task(task)[0])
    except ServerError:
        return False
    return True


def _neither(error: RunDirectoryError, told: str) -> ArgosyError:
    """Neither a saved run nor a live cluster can answer."""
    return RunDirectoryError(
        f"{error.problem}, and {told.partition(';')[0]}",
        file=error.file,
        expected="--run DIR for a saved run, or --server or --dir for a live cluster",
        hint=error.hint,
    )
