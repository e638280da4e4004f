"""What commands about a live cluster share: finding its server, naming tasks, completing names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from argosy.model.errors import ArgosyError, CommandError, excerpt

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from argosy.client import Client

Command = TypeVar("Command", bound=Callable[..., Any])

#: Seconds that a shell waits for the names that it completes.
_COMPLETION_TIMEOUT: Final = 1.0
_MOST_COMPLETIONS: Final = 200


class ServerChoice(NamedTuple):
    """The server that the user names; if none, the environment decides."""

    server: str | None
    directory: str | None
    token_file: str | None

    @property
    def is_given(self) -> bool:
        return self.server is not None or self.directory is not None

    def client(self) -> Client:
        from argosy.client import Client

        return Client(self.server, directory=self.directory, token_file=self.token_file)


def live_options(command: Command) -> Command:
    """Adds the options that say which server is meant; the command gets them as `where`."""

    @functools.wraps(command)
    def called(
        *arguments: Any,
        server: str | None,
        directory: str | None,
        token_file: str | None,
        **options: Any,
    ) -> Any:
        return command(*arguments, where=ServerChoice(server, directory, token_file), **options)

    options = (
        click.option(
            "--server",
            metavar="URL",
            help="http://HOST:PORT, https://HOST:PORT or unix:PATH.  "
            "[default: $ARGOSY_URL, or the server of --dir]",
        ),
        click.option(
            "--dir",
            "directory",
            type=click.Path(),
            metavar="DIR",
            help="The directory of a cluster on this computer.  "
            "[default: $ARGOSY_DIR, or argosy in the user's state directory]",
        ),
        click.option(
            "--token-file",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="The token of a server that wants one.  [default: $ARGOSY_TOKEN]",
        ),
    )
    for option in reversed(options):
        called = option(called)
    return called  # type: ignore[return-value]


def split_task(name: str) -> tuple[str, int | None]:
    """The job's id and the task's index, which may be left out."""
    job, slash, index = name.partition("/")
    if not job or (slash and not (index.isascii() and index.isdecimal())):
        raise CommandError(f"task {excerpt(name)}", expected="JOB/INDEX, such as crawl/0")
    return job, int(index) if slash else None


def find_task(client: Client, name: str) -> tuple[str, int]:
    """The task with this name; the only one of its job needs no index."""
    job, index = split_task(name)
    if index is None:
        tasks = client.job(job).tasks.total
        if tasks != 1:
            raise CommandError(
                f"job {job} has {tasks} tasks", expected=f"one of {job}/0 to {job}/{tasks - 1}"
            )
        index = 0
    return job, index


def local_time(text: str | None) -> str:
    """A time of the API in this computer's time zone, to the second."""
    return "" if text is None else _parsed(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def elapsed(since: str | None, until: str | None = None) -> int | None:
    """Microseconds between two times of the API, or until now."""
    if since is None:
        return None
    end = datetime.now(UTC) if until is None else _parsed(until)
    return max(0, int((end - _parsed(since)).total_seconds() * 1e6))


def _parsed(text: str) -> datetime:
    return datetime.fromisoformat(text)


def complete_job(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids of jobs, for shells."""

    def names(client: Client) -> list[str]:
        return [job.id for job in client.jobs(limit=_MOST_COMPLETIONS)]

    return _completed(context, incomplete, names)


def complete_task(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of tasks: of the job that is typed already, or ids of jobs."""
    job, slash, _ = incomplete.partition("/")
    if not slash:
        return complete_job(context, parameter, incomplete)

    def names(client: Client) -> list[str]:
        return [f"{job}/{task.index}" for task in client.tasks(job, limit=_MOST_COMPLETIONS)]

    return _completed(context, incomplete, names)


def complete_machine(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    def names(client: Client) -> list[str]:
        return [machine.name for machine in client.machines()]

    return _completed(context, incomplete, names)


def _completed(
    context: click.Context, incomplete: str, names: Callable[[Client], list[str]]
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from argosy.client import Client

    given = context.params
    try:
        with Client(
            given.get("server"),
            directory=given.get("directory"),
            token_file=given.get("token_file"),
            timeout=_COMPLETION_TIMEOUT,
            patience=0,
        ) as client:
            return [CompletionItem(name) for name in names(client) if name.startswith(incomplete)]
    except ArgosyError:
        # Without a server there is nothing to complete, and a shell is no place for messages.
        return []
