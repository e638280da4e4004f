"""`argosy kubernetes`: a scheduler for a Kubernetes cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from argosy.cli import kubernetes_demo, kubernetes_plan
from argosy.cli.fleet import read_entries
from argosy.cli.output import note
from argosy.cli.serving import Listening, listen_options, readiness_option
from argosy.model.errors import CommandError

DEFAULT_LISTEN: Final = "127.0.0.1:0"
DEFAULT_ENGINE: Final = "omega"


@click.group(
    invoke_without_command=True,
    epilog="Example: argosy kubernetes --kubeconfig ~/.kube/config --engine murmuration",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="How to reach the cluster.  [default: as kubectl: $KUBECONFIG, ~/.kube/config, or the pod's "
    "service account]",
)
@click.option("--context", metavar="NAME", help="The context of the kubeconfig.")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help=f"The engine of a scheduler of that name; repeatable.  [default: {DEFAULT_ENGINE}]",
)
@click.option(
    "--fleet",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The schedulers: the [[fleet]] of a scenario, or a file with nothing else.",
)
@click.option(
    "--name",
    default="argosy",
    show_default=True,
    metavar="NAME",
    help="The schedulerName of pods that any scheduler of the fleet may take.",
)
@click.option(
    "--events/--no-events",
    default=True,
    show_default=True,
    help="Write an event for every pod that is scheduled.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the journal is kept.  [default: a directory that is removed at the end]",
)
@click.option(
    "--shadow",
    is_flag=True,
    help="Change nothing: report what each engine would have done with the pods that the cluster's own "
    "scheduler places. The report comes at the end, as a table or, with -o json, as JSON.",
)
@click.option(
    "--for",
    "duration",
    metavar="DURATION",
    help="With --shadow: end after this time, such as 10min.  [default: at Ctrl-C]",
)
@listen_options(DEFAULT_LISTEN)
@readiness_option
@click.pass_context
def command(
    context_: click.Context,
    kubeconfig: Path | None,
    context: str | None,
    engines: tuple[str, ...],
    fleet: Path | None,
    name: str,
    events: bool,
    directory: Path | None,
    shadow: bool,
    duration: str | None,
    listening: Listening,
    output: str,
) -> None:
    """Schedule the pods of a Kubernetes cluster until stopped.

    Takes pods whose schedulerName is one of the fleet's schedulers, or NAME: then the pod's kind decides
    among the fleet. Pods of other schedulers are seen and counted. `argosy ps`, `why`, `story` and `top`
    work with --server or --dir.
    """
    if context_.invoked_subcommand is not None:
        return
    if fleet is not None and engines:
        raise CommandError("both --fleet and --engine", expected="one of them")
    if duration is not None and not shadow:
        raise CommandError("--for without --shadow", expected="both")

    from tempfile import TemporaryDirectory

    from argosy.cli.server_start import require_serve
    from argosy.cli.up import announce, announce_json

    require_serve("argosy kubernetes")

    from argosy.kubernetes.kubeconfig import load_connection
    from argosy.service.kubernetes.serving import KubernetesOptions, serve_kubernetes
    from argosy.service.server import ServerOptions

    tables: list[dict[str, Any]] = (
        read_entries(fleet)
        if fleet is not None
        else [{"name": each, "engine": each} for each in engines or (DEFAULT_ENGINE,)]
    )
    if shadow:
        from argosy.cli.kubernetes_shadow import shadow_cluster

        shadow_cluster(
            load_connection(kubeconfig, context), tables, duration, as_json=output == "json"
        )
        return
    with TemporaryDirectory(prefix="argosy-kubernetes-") as scratch:
        options = KubernetesOptions(
            connection=load_connection(kubeconfig, context),
            fleet=tuple(tables),
            server=ServerOptions(
                directory=directory or Path(scratch), is_lasting=False, **listening._asdict()
            ),
            name=name,
            writes_events=events,
        )
        say = announce_json if output == "json" else announce
        serve_kubernetes(options, say, lambda line: note(f"argosy: {line}"))
    note("argosy: down")


command.add_command(kubernetes_demo.command)
command.add_command(kubernetes_plan.command)
