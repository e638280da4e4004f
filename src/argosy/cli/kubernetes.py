"""`argosy kubernetes`: a scheduler for a Kubernetes cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from argosy.cli import kubernetes_demo, kubernetes_plan
from argosy.cli.fleet import read_entries
from argosy.cli.kubernetes_guard import guard
from argosy.cli.output import note
from argosy.cli.serving import Listening, listen_options, readiness_option
from argosy.model.errors import CommandError

if TYPE_CHECKING:
    from argosy.kubernetes.connection import Connection

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
    "--explain/--no-explain",
    default=True,
    show_default=True,
    help="Write into the annotations of every pod that is scheduled why it is on its node.",
)
@click.option(
    "--leader-elect",
    is_flag=True,
    help="Run as one of several replicas, of which only the leader schedules; the others stand by.",
)
@click.option(
    "--lease-name",
    metavar="NAME",
    help="The Lease that the leader holds.  [default: the schedulers' NAME]",
)
@click.option(
    "--lease-namespace",
    metavar="NAMESPACE",
    help="Where the Lease is.  [default: the pod's namespace; outside of pods, kube-system]",
)
@click.option(
    "--lease-duration",
    type=click.IntRange(min=2),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="How long a leader that is not heard of keeps its right. It stops writing after two thirds.",
)
@click.option(
    "--identity",
    metavar="NAME",
    help="The replica's name in the Lease.  [default: made of the host's name and the process]",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the journal is kept.  [default: a directory that is removed at the end]",
)
@click.option(
    "--queue",
    type=click.Choice(["fcfs", "shortest-first"]),
    default="fcfs",
    show_default=True,
    help="Which pod is next on a node for which several wait, with engines that choose nodes before "
    "there is room (murmuration, sparrow): the first, or the one with the shortest argosy.dev/estimate.",
)
@click.option(
    "--agent",
    "serves_commits",
    is_flag=True,
    help="Serve samples and commits of schedulers elsewhere (`argosy scheduler --agent URL`): a job "
    "that is committed becomes a pod.",
)
@click.option(
    "--grow-jobs",
    metavar="POLICY",
    help="Give Jobs annotated argosy.dev/malleable more pods in parallel while there is room: "
    "max-parallelism, global-cap=SHARE or relative-job-size=TIMES.  [default: never]",
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
    explain: bool,
    leader_elect: bool,
    lease_name: str | None,
    lease_namespace: str | None,
    lease_duration: int,
    identity: str | None,
    directory: Path | None,
    queue: Literal["fcfs", "shortest-first"],
    serves_commits: bool,
    grow_jobs: str | None,
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
    if not leader_elect and (lease_name or lease_namespace or identity):
        given = "--lease-name" if lease_name else "--identity" if identity else "--lease-namespace"
        raise CommandError(f"{given} without --leader-elect", expected="both")
    if duration is not None and not shadow:
        raise CommandError("--for without --shadow", expected="both")

    from tempfile import TemporaryDirectory

    from argosy.cli.server_start import require_serve
    from argosy.cli.up import announce, announce_json

    require_serve("argosy kubernetes")

    from argosy.cli.kubernetes_growth import read_growth
    from argosy.kubernetes.kubeconfig import load_connection
    from argosy.kubernetes.leases import lease_settings
    from argosy.model.machine_model import MachineModel
    from argosy.service.kubernetes.rights import ElectionOptions, own_identity
    from argosy.service.kubernetes.serving import KubernetesOptions, serve_kubernetes
    from argosy.service.server import ServerOptions

    tables: list[dict[str, Any]] = (
        read_entries(fleet)
        if fleet is not None
        else [{"name": each, "engine": each} for each in engines or (DEFAULT_ENGINE,)]
    )
    growth = None if grow_jobs is None else read_growth(grow_jobs)
    connection = load_connection(kubeconfig, context)
    if shadow:
        from argosy.cli.kubernetes_shadow import shadow_cluster

        shadow_cluster(connection, tables, duration, as_json=output == "json")
        return
    election = ElectionOptions(
        name=lease_name or name,
        namespace=lease_namespace or _lease_namespace(connection),
        identity=identity or own_identity(),
        settings=lease_settings(lease_duration),
    )
    with TemporaryDirectory(prefix="argosy-kubernetes-") as scratch:
        options = KubernetesOptions(
            connection=connection,
            fleet=tuple(tables),
            server=ServerOptions(
                directory=directory or Path(scratch), is_lasting=False, **listening._asdict()
            ),
            name=name,
            writes_events=events,
            explains=explain,
            election=election if leader_elect else None,
            machines=MachineModel(queue=queue),
            serves_commits=serves_commits,
            growth=growth,
        )
        say = announce_json if output == "json" else announce
        serve_kubernetes(options, say, lambda line: note(f"argosy: {line}"))
    note("argosy: down")


command.add_command(guard)
command.add_command(kubernetes_demo.command)
command.add_command(kubernetes_plan.command)


def _lease_namespace(connection: Connection) -> str:
    """A pod's own, because its rights are there; otherwise that of the control plane's leases."""
    return connection.namespace if connection.origin == "service account" else "kube-system"
