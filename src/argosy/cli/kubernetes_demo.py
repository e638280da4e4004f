"""`argosy kubernetes demo`: Argosy on a Kubernetes control plane that is thrown away."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from argosy.cli.output import emit, flush, note, output_option
from argosy.cli.web_page import open_page, tell_page

if TYPE_CHECKING:
    from argosy.service.kubernetes.demo import DemoResult

DEFAULT_ENGINE: Final = "omega"


@click.command(name="demo", epilog="Example: argosy kubernetes demo --engine murmuration")
@click.option(
    "--engine",
    default=DEFAULT_ENGINE,
    show_default=True,
    metavar="NAME",
    help="The engine that schedules the pods.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Leave everything running until Ctrl-C, to look around with kubectl.",
)
@click.option(
    "--open",
    "opens",
    is_flag=True,
    help="Open the cluster's page in a browser, and leave everything running like --keep.",
)
@output_option
def command(engine: str, keep: bool, opens: bool, output: str) -> None:
    """Schedule a small workload on a real control plane on this computer.

    Starts etcd, kube-apiserver, kube-controller-manager and kwok, which plays the part of the nodes;
    creates two deployments, a job and a pod that fits nowhere; shows where Argosy has put the pods; and
    removes everything. Needs the programs that `make kube-tools` builds.
    """
    import asyncio
    from tempfile import TemporaryDirectory

    from argosy.cli.server_start import require_serve

    require_serve("argosy kubernetes demo")

    from argosy.engines.registry import find_engine
    from argosy.kubernetes.control_plane import KubeProgram, find_tools
    from argosy.service.kubernetes.demo import Demo, start_plane

    find_engine(engine)
    keep = keep or opens
    tools = find_tools(program for program in KubeProgram if program != KubeProgram.SCHEDULER)
    _tell("starting a control plane")
    with (
        start_plane(tools, _tell) as plane,
        TemporaryDirectory(prefix="argosy-kubernetes-") as folder,
    ):

        def show(result: DemoResult, url: str) -> None:
            _show(output, result)
            if keep:
                flush()
                _tell("everything stays until Ctrl-C:")
                note(f"  export KUBECONFIG={plane.kubeconfig}")
                note(f"  {tools.kubectl} get pods --namespace demo --output wide")
                note(f"  argosy why demo.too-large --server {url}")

        demo = Demo(plane, engine, Path(folder), _tell, is_kept=keep)
        is_shown = asyncio.run(demo.run(open_page if opens else tell_page, show))
        _tell("removing everything")
    if not is_shown:
        raise KeyboardInterrupt


def _tell(line: str) -> None:
    note(f"argosy: {line}")


def _show(output: str, result: DemoResult) -> None:
    import msgspec

    from argosy.report.tables import Column, Table, Unit

    applications = sorted({pod.application for pod in result.pods if pod.node})
    counts = Counter((pod.node, pod.application) for pod in result.pods)
    zones = {pod.node: pod.zone for pod in result.pods if pod.node}
    nodes = Table(
        (
            Column("node", "node"),
            Column("zone", "zone"),
            *(Column(name, name, Unit.COUNT) for name in applications),
        ),
        tuple(
            (node, zone, *(counts[node, name] or None for name in applications))
            for node, zone in sorted(zones.items())
        ),
    )
    waiting = [pod for pod in result.pods if not pod.node]
    pods = Table(
        (
            Column("application", "of"),
            Column("name", "pod"),
            Column("node", "node"),
            Column("zone", "zone"),
            Column("waiting", "waits because"),
        ),
        tuple(map(msgspec.structs.astuple, result.pods)),
    )

    def sections(width: int | None) -> list[list[str]]:
        heading = (
            f"{result.engine}: {result.bound} pods on {result.nodes} nodes "
            f"in {result.seconds:.1f} s ({result.rate:.0f} pods/s)"
        )
        return [
            [heading, *nodes.lines(width)],
            *([f"{pod.name} waits", pod.waiting] for pod in waiting),
        ]

    emit(
        output,
        sections=sections,
        document=lambda: {
            **msgspec.to_builtins(result),
            "bound": result.bound,
            "pods_per_second": result.rate,
        },
        csv=pods.csv,
    )
