"""`argosy kubernetes guard`: admission policies for clusters with other schedulers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from argosy.cli.output import note, write
from argosy.model.errors import CommandError
from argosy.model.units import format_count

if TYPE_CHECKING:
    from argosy.kubernetes.client import KubernetesClient


@click.command(
    epilog="Example: argosy kubernetes guard --node-selector pool=batch | kubectl apply -f -"
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="How to reach the cluster.  [default: as kubectl]",
)
@click.option("--context", metavar="NAME", help="The context of the kubeconfig.")
@click.option(
    "--name", default="argosy", show_default=True, metavar="NAME", help="As `argosy kubernetes`."
)
@click.option(
    "--lease-name",
    metavar="NAME",
    help="The Lease of `argosy kubernetes --leader-elect`.  [default: NAME]",
)
@click.option(
    "--lease-namespace",
    default="kube-system",
    show_default=True,
    metavar="NAMESPACE",
    help="Where the Lease is; the list of nodes is kept there, too.",
)
@click.option("--node", "nodes", multiple=True, metavar="NODE", help="A node; repeatable.")
@click.option(
    "--node-selector",
    metavar="SELECTOR",
    help="All nodes with these labels, as they are now. Run the command again when nodes come.",
)
@click.option("--apply", "is_applied", is_flag=True, help="Apply the policies instead of printing.")
@click.option("--remove", "is_removed", is_flag=True, help="Remove them from the cluster.")
def guard(
    kubeconfig: Path | None,
    context: str | None,
    name: str,
    lease_name: str | None,
    lease_namespace: str,
    nodes: tuple[str, ...],
    node_selector: str | None,
    is_applied: bool,
    is_removed: bool,
) -> None:
    """Print or apply admission policies that guard what Argosy schedules.

    One refuses bindings of a leader that has been replaced. With nodes, two more refuse what other
    schedulers put on these. On nodes that are shared with other schedulers, no policy can prevent that
    both take the last room: policies cannot count.
    """
    if is_applied and is_removed:
        raise CommandError("both --apply and --remove", expected="one of them")

    import yaml  # type: ignore[import-untyped]

    from argosy.kubernetes.client import KubernetesClient
    from argosy.kubernetes.guards import (
        apply_manifests,
        fencing_guard,
        node_guard,
        remove_manifests,
    )
    from argosy.kubernetes.kubeconfig import load_connection
    from argosy.service.kubernetes.rights import FENCING
    from argosy.worlds.kubernetes.pod_jobs import PLACED_BY

    def manifests(listed: list[str]) -> list[dict[str, Any]]:
        found = fencing_guard(
            name, lease_name or name, lease_namespace, placed_by=PLACED_BY, fencing=FENCING
        )
        if listed or is_removed:
            found += node_guard(name, listed, lease_namespace, placed_by=PLACED_BY)
        return found

    async def work() -> None:
        async with KubernetesClient(load_connection(kubeconfig, context)) as client:
            listed = sorted({*nodes, *await _selected(client, node_selector)})
            if is_removed:
                await remove_manifests(client, manifests(listed))
                note("argosy: the guard is removed")
            elif is_applied:
                await apply_manifests(client, manifests(listed))
                guarded = f" and {format_count(len(listed), 'node')}" if listed else ""
                note(f"argosy: bindings of {name}{guarded} are guarded")
            else:
                write(yaml.safe_dump_all(manifests(listed), sort_keys=False).rstrip())

    if node_selector is None and not is_applied and not is_removed:
        # Nothing has to be asked.
        write(yaml.safe_dump_all(manifests(sorted(nodes)), sort_keys=False).rstrip())
    else:
        asyncio.run(work())


async def _selected(client: KubernetesClient, selector: str | None) -> list[str]:
    from argosy.kubernetes.kinds import NODES

    if selector is None:
        return []
    found = [node.name for node in (await client.list_all(NODES, labels=selector)).items]
    if not found:
        raise CommandError(f"no node has the labels {selector!r}", expected="labels of nodes")
    return found
