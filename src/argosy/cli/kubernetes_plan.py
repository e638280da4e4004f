"""`argosy kubernetes plan`: what would become of the pods of manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from argosy.cli.output import emit, output_option
from argosy.model.errors import CommandError


@click.command(name="plan", epilog="Example: argosy kubernetes plan -f app.yaml")
@click.option(
    "-f",
    "--filename",
    "files",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    required=True,
    metavar="FILE",
    help="Manifests in YAML or JSON; repeatable.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="How to reach the cluster.  [default: as kubectl]",
)
@click.option("--context", metavar="NAME", help="The context of the kubeconfig.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="Of objects that name none.  [default: that of the context]",
)
@click.option(
    "--engine",
    default="omega",
    show_default=True,
    metavar="NAME",
    help="The engine that would schedule the pods.",
)
@output_option
def command(
    files: tuple[Path, ...],
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    engine: str,
    output: str,
) -> None:
    """Say what would happen to the pods of manifests in a cluster, and why.

    Nothing is changed: the cluster is only read. Pods that wait there are not considered. The exit code
    is 0 if every pod would get a node, and 1 if not.
    """
    import asyncio

    import msgspec

    from argosy.cli.server_start import require_serve

    require_serve("argosy kubernetes plan")

    from argosy.kubernetes.kubeconfig import load_connection
    from argosy.report.tables import Column, Table
    from argosy.service.kubernetes.planning import plan_pods

    documents = [document for file in files for document in _read(file)]
    connection = load_connection(kubeconfig, context)
    space = namespace or connection.namespace or "default"
    entry = {"name": engine, "engine": engine}
    plan = asyncio.run(plan_pods(connection, entry, documents, space))
    table = Table(
        (
            Column("namespace", "namespace"),
            Column("of", "of"),
            Column("name", "pod"),
            Column("node", "node"),
            Column("why", "why"),
        ),
        tuple(map(msgspec.structs.astuple, plan.pods)),
    )

    def sections(width: int | None) -> list[list[str]]:
        waiting = sum(1 for pod in plan.pods if not pod.node)
        verdict = f"does not fit: {waiting:,} of {len(plan.pods):,} pods would wait"
        parts = [["fits" if plan.fits else verdict], table.wrapped(width)]
        if plan.displaced:
            parts.append(["these pods would have to give way", *plan.displaced])
        return parts

    emit(
        output,
        sections=sections,
        document=lambda: {**msgspec.to_builtins(plan), "fits": plan.fits},
        csv=table.csv,
    )
    if not plan.fits:
        raise click.exceptions.Exit(1)


def _read(path: Path) -> list[Any]:
    import yaml  # type: ignore[import-untyped]

    try:
        return list(yaml.safe_load_all(path.read_text("utf-8")))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        told = " ".join(str(error).split())
        raise CommandError(f"cannot be read: {told}", file=str(path), expected="YAML") from None
