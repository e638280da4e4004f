"""`argosy agent`: the agent of a simulated cluster."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from argosy.cli.serving import (
    Listening,
    duration_of,
    listen_options,
    place_options,
    readiness_option,
    retention_options,
)
from argosy.cli.up import DEFAULT_ENGINE
from argosy.model.errors import CommandError

if TYPE_CHECKING:
    from argosy.model.scenario import CellSpec
    from argosy.service.retention import KeptJobs
    from argosy.worlds.local.turn import LocalCluster

DEFAULT_LISTEN: Final = "127.0.0.1:0"
_SIZE: Final = re.compile(r"(?P<cores>\d+(?:\.\d+)?)x(?P<memory>\d+\w+)")


@click.command(epilog="Example: argosy agent --name edge --machines 2000 --mix edge")
@click.argument("scenario", required=False, type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="What the cluster is called.  [default: agent]")
@click.option(
    "--cluster", metavar="NAME", help="Only the machines of this cluster of the scenario."
)
@click.option(
    "--machines",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="So many machines.  [default: 100]",
)
@click.option(
    "--mix",
    metavar="MIX",
    help="What they are: `cloud` or `edge`, as in Table II of the Vela paper, or a size such as "
    "4x8GiB.  [default: 4x8GiB]",
)
@click.option(
    "--engine",
    default=DEFAULT_ENGINE,
    show_default=True,
    metavar="NAME",
    help="What places jobs that lose their machine, or come without one.",
)
@click.option(
    "--refresh",
    default="0",
    metavar="TIME",
    help="How old the picture may be that samples are drawn from.  [default: 0]",
)
@click.option(
    "--delay",
    default="0",
    metavar="TIME",
    help="Answer samples and commits so much later, as if the agent were far away.  [default: 0]",
)
@place_options
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the cluster is kept.  [default: a directory that is removed at the end]",
)
@retention_options
@listen_options(DEFAULT_LISTEN)
@click.option(
    "-d", "--detach", is_flag=True, help="Return as soon as the server answers; needs --dir."
)
@readiness_option
def command(
    scenario: Path | None,
    name: str | None,
    cluster: str | None,
    machines: int | None,
    mix: str | None,
    engine: str,
    refresh: str,
    delay: str,
    place: str,
    location: str,
    directory: Path | None,
    kept: KeptJobs,
    listening: Listening,
    detach: bool,
    output: str,
) -> None:
    """Run the agent of a simulated cluster until it is stopped.

    Schedulers elsewhere, such as `argosy scheduler`, ask it for machines and commit jobs to them. No
    process is started: a job takes room on its machine for as long as it estimates, or until it is
    released. `argosy up` is an agent over real processes.
    """
    from tempfile import TemporaryDirectory

    from argosy.cli.server_start import detached, require_serve
    from argosy.cli.up import run_server
    from argosy.service.agent import AgentOptions
    from argosy.service.server import ServerOptions
    from argosy.worlds.local.store import holds_cluster

    require_serve("argosy agent")
    if scenario is not None and (machines is not None or mix is not None):
        other = "--machines" if machines is not None else "--mix"
        raise CommandError(f"both a scenario and {other}", expected="one of them")
    if cluster is not None and scenario is None:
        raise CommandError("--cluster without a scenario", expected="both")
    agent = AgentOptions(
        refresh=duration_of(refresh, "--refresh"),
        delay=duration_of(delay, "--delay"),
        place=place,
        location=location,
    )
    is_new = directory is None or not holds_cluster(directory)
    made_of = None
    if is_new:
        cell = (
            _generated(machines or 100, mix or "4x8GiB")
            if scenario is None
            else _of_scenario(scenario, cluster)
        )
        made_of = _made_of(name or cluster or "agent", cell, engine)
    elif any(given is not None for given in (scenario, machines, mix, name)):
        raise CommandError(
            f"{directory} holds a cluster already", hint="name another directory with --dir"
        )
    if detach:
        detached(sys.argv[1:], directory, as_json=output == "json")
        return
    with TemporaryDirectory(prefix="argosy-agent-") as scratch:
        options = ServerOptions(
            directory=directory or Path(scratch),
            cluster=made_of,
            agent=agent,
            tasks="simulated",
            is_lasting=directory is not None,
            kept=kept,
            **listening._asdict(),
        )
        run_server(options, as_json=output == "json")


def _made_of(name: str, cell: CellSpec, engine: str) -> LocalCluster:
    from argosy.scenarios.loader import read_fleet
    from argosy.workloads.tables import Misfit
    from argosy.worlds.local.turn import LocalCluster

    try:
        fleet = read_fleet([{"name": engine, "engine": engine}], cell)
    except Misfit as misfit:
        raise misfit.error from None
    return LocalCluster(name=name, cell=cell, fleet=fleet)


def _of_scenario(path: Path, cluster: str | None) -> CellSpec:
    from msgspec.structs import replace

    from argosy.model.errors import UnknownName
    from argosy.model.machines import CLUSTER_GROUP
    from argosy.scenarios.loader import load_cluster

    loaded = load_cluster(path)
    if cluster is None:
        return loaded.cell
    known = [] if loaded.federation is None else [each.name for each in loaded.federation.clusters]
    if cluster not in known:
        raise UnknownName("cluster", cluster, known)
    mine = [each for each in loaded.cell.machines if cluster in each.joins.get(CLUSTER_GROUP, ())]
    return replace(loaded.cell, machines=tuple(mine))


def _generated(count: int, mix: str) -> CellSpec:
    from argosy.model.machines import Machine
    from argosy.model.resources import Resources
    from argosy.model.scenario import CellSpec

    if mix in ("cloud", "edge"):
        from argosy.papers.vela.world import sizes_of

        sizes = sizes_of(mix, count)
    else:
        found = _SIZE.fullmatch(mix)
        if found is None:
            raise CommandError(f"--mix {mix!r}", expected="cloud, edge, or a size such as 4x8GiB")
        size = Resources.parse({"cpu": found["cores"], "memory": found["memory"]})
        sizes = [size] * count
    return CellSpec(machines=tuple(Machine(f"m{n}", size) for n, size in enumerate(sizes)))
