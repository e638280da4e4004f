"""`kubectl argosy`: what Argosy knows of pods, under the names that kubectl uses."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from argosy.cli import kubernetes_plan, top
from argosy.cli.live import ServerChoice, elapsed, live_options
from argosy.cli.output import emit, limit_options, note, output_option
from argosy.model.errors import CommandError, ServerError

if TYPE_CHECKING:
    from argosy.client import Client

Command = TypeVar("Command", bound=Callable[..., Any])

_LIMIT: Final = 200
#: Between a pod's name and how many of that name there were.
_AGAIN: Final = "~"
#: Before the name of a group whose pods are placed together.
_GROUP: Final = "group:"


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: kubectl argosy why web-5d9c7 -n shop --server http://127.0.0.1:7373",
)
def plugin() -> None:
    """Ask the Argosy that schedules a cluster about its pods.

    The server is that of --server or $ARGOSY_URL.
    """


def namespace_option(command: Command) -> Command:
    return click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="The pod's namespace.  [default: that of the kubeconfig's current context]",
    )(command)


@plugin.command(epilog="Example: kubectl argosy why web-5d9c7 -n shop")
@click.argument("pod")
@namespace_option
@live_options
@output_option
def why(pod: str, namespace: str | None, where: ServerChoice, output: str) -> None:
    """Explain why POD is where it is, or why it has no node."""
    import msgspec

    from argosy.report.tables import csv_text

    space = namespace or _own_namespace()
    with where.client() as client:
        told = client.why(_job_of(client, space, pod), 0)

    def sections(width: int | None) -> list[list[str]]:
        lines = list(told.text)
        if width is not None:
            lines = [part for line in lines for part in textwrap.wrap(line, width)]
        return [[f"{space}/{pod}: {told.answer.state}", *lines]]

    emit(
        output,
        sections=sections,
        document=lambda: {"namespace": space, "pod": pod, **msgspec.to_builtins(told.answer)},
        csv=lambda: csv_text(
            [{"namespace": space, "pod": pod, "text": " ".join(told.text)}],
            ["namespace", "pod", "text"],
        ),
    )


@plugin.command(epilog="Example: kubectl argosy story web-5d9c7 -n shop")
@click.argument("pod")
@namespace_option
@live_options
@output_option
def story(pod: str, namespace: str | None, where: ServerChoice, output: str) -> None:
    """Show what happened to POD, line by line."""
    import msgspec

    from argosy.report.tables import Column, Table

    space = namespace or _own_namespace()
    with where.client() as client:
        told = client.story(_job_of(client, space, pod), 0)
    origin = datetime.fromisoformat(told.origin)
    table = Table(
        (Column("at", "at"), Column("what", "what"), Column("text", "")),
        tuple((_when(origin, line.at), line.what, line.text) for line in told.lines),
    )
    emit(
        output,
        sections=lambda width: [[f"{space}/{pod}", *table.wrapped(width)]],
        document=lambda: msgspec.to_builtins(told.lines),
        csv=table.csv,
    )


@plugin.command(epilog="Example: kubectl argosy ps -A")
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="Pods of all namespaces.")
@limit_options("pods", _LIMIT)
@live_options
@output_option
def ps(
    namespace: str | None,
    all_namespaces: bool,
    most: int | None,
    where: ServerChoice,
    output: str,
) -> None:
    """List the pods that have a node or wait for one, the newest first."""
    from argosy.report.tables import Column, Table, Unit

    if namespace is not None and all_namespaces:
        raise CommandError("both --namespace and --all-namespaces", expected="one of them")
    space = None if all_namespaces else namespace or _own_namespace()
    rows: list[tuple[str | int | None, ...]] = []
    with where.client() as client:
        for task in client.open_tasks():
            owner, _, name = task.job.partition(".")
            if space is not None and owner != space:
                continue
            if most is not None and len(rows) == most:
                note(f"note: there are more than {most:,} pods; --all lists them")
                break
            pod = name.partition(_AGAIN)[0]
            if pod.startswith(_GROUP):
                pod = f"{pod}/{task.index}"
            rows.append((owner, pod, task.state, task.machine, elapsed(task.started)))
    table = Table(
        (
            Column("namespace", "namespace"),
            Column("pod", "pod"),
            Column("state", "state"),
            Column("node", "node"),
            Column("for", "for", Unit.TIME),
        ),
        tuple(rows),
    )
    emit(
        output,
        sections=lambda width: [table.lines(width)],
        document=table.records,
        csv=table.csv,
    )


plugin.add_command(top.command, "top")
plugin.add_command(kubernetes_plan.command, "plan")


def _own_namespace() -> str:
    """As kubectl chooses it."""
    from argosy.kubernetes.kubeconfig import load_connection
    from argosy.model.errors import ArgosyError

    try:
        return load_connection(None, None).namespace or "default"
    except ArgosyError:
        return "default"


def _job_of(client: Client, namespace: str, pod: str) -> str:
    """The job of the latest pod of this name."""
    name = found = f"{namespace}.{pod}"
    number = 1
    while True:
        try:
            client.job(name)
        except ServerError as error:
            if error.status != 404:
                raise
            if number == 1:
                raise CommandError(
                    f"Argosy knows no pod {namespace}/{pod}",
                    hint="it knows pods with a node, and those of its own schedulerName; is the "
                    "namespace right (-n)? Pods of a group are known together, as group:NAME",
                ) from None
            return found
        found = name
        number += 1
        name = f"{namespace}.{pod}{_AGAIN}{number}"


def _when(origin: datetime, at: int) -> str:
    moment = (origin + timedelta(microseconds=at)).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
