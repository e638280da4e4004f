"""`argosy up`: a live cluster on this computer."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from argosy.api.sockets import PORT
from argosy.cli.output import flush, note, write
from argosy.cli.serving import (
    Listening,
    listen_options,
    place_options,
    readiness_option,
    retention_options,
)
from argosy.model.errors import CommandError

if TYPE_CHECKING:
    from argosy.service.retention import KeptJobs
    from argosy.service.server import Server, ServerOptions
    from argosy.worlds.local.turn import LocalCluster

DEFAULT_LISTEN: Final = f"127.0.0.1:{PORT}"
DEFAULT_ENGINE: Final = "omega"


@click.command(epilog="Example: argosy up --machines 4 --engine murmuration")
@click.argument("scenario", required=False, type=click.Path(path_type=Path))
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="ARGOSY_DIR",
    metavar="DIR",
    help="Where the cluster is kept.  [default: $ARGOSY_DIR, or argosy in the user's state directory]",
)
@click.option(
    "--machines",
    type=click.IntRange(1, 1_000),
    metavar="N",
    help="Cut this computer into N equal machines.  [default: 1]",
)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help=f"The engine of the scheduler; repeatable, for several.  [default: {DEFAULT_ENGINE}]",
)
@place_options
@retention_options
@listen_options(DEFAULT_LISTEN)
@click.option("-d", "--detach", is_flag=True, help="Return as soon as the server answers.")
@readiness_option
def command(
    scenario: Path | None,
    directory: Path | None,
    machines: int | None,
    engines: tuple[str, ...],
    place: str,
    location: str,
    kept: KeptJobs,
    listening: Listening,
    detach: bool,
    output: str,
) -> None:
    """Run a live cluster on this computer until it is stopped.

    Machines and fleet come from SCENARIO (its jobs and faults are left out), or from --machines and
    --engine. They are remembered: a directory that holds a cluster goes on with it, and with its jobs.
    Tasks are real processes and outlive the server. Everybody on this computer can reach the default
    address and so run commands as you; if others use it too, choose --listen none or a token.
    """
    from argosy.cli.server_start import detached, require_serve
    from argosy.client.endpoints import state_directory

    require_serve()
    chosen = state_directory(directory)
    if scenario is not None and (machines is not None or engines):
        other = "--machines" if machines is not None else "--engine"
        raise CommandError(f"both a scenario and {other}", expected="one of them")
    if detach:
        detached(sys.argv[1:], chosen, as_json=output == "json")
        return

    from argosy.service.agent import AgentOptions
    from argosy.service.server import ServerOptions
    from argosy.worlds.local.store import holds_cluster

    is_new = not holds_cluster(chosen)
    if not is_new and (scenario is not None or machines is not None or engines):
        raise CommandError(
            f"{chosen} holds a cluster already, with its own machines and fleet",
            hint="leave out the scenario and options, change it with `argosy fleet` and `argosy "
            "machines`, or name another directory with --dir",
        )
    options = ServerOptions(
        directory=chosen,
        cluster=_cluster(scenario, machines or 1, engines or (DEFAULT_ENGINE,)) if is_new else None,
        agent=AgentOptions(place=place, location=location),
        kept=kept,
        **listening._asdict(),
    )
    run_server(options, as_json=output == "json")


def run_server(options: ServerOptions, *, as_json: bool) -> None:
    """Until it is stopped."""
    from argosy.service.server import serve

    say = announce_json if as_json else announce
    goes_on = serve(options, say, lambda line: note(f"argosy: {line}"))
    is_real = options.tasks == "processes"
    adopted = "; its tasks go on, and `argosy up` adopts them" if goes_on and is_real else ""
    note(f"argosy: down{adopted}")


def announce(server: Server) -> None:
    from argosy.model.units import format_count

    world = server.cluster.world
    machines = format_count(len(world.machine_numbers()), "machine")
    fleet = ", ".join(dict.fromkeys(entry.engine for entry in world.cluster.fleet))
    where = f"page and API at {server.url}, " if server.url else ""
    jobs = len(world.projection.by_id)
    going_on = f"; going on with {format_count(jobs, 'job')}" if jobs else ""
    note(f"argosy: up: {machines}, {fleet}; {where}{server.store.path.parent}{going_on}")


def announce_json(server: Server) -> None:
    import json

    world = server.cluster.world
    document = {
        "directory": str(server.store.path.parent.resolve()),
        "url": server.url or None,
        "pid": os.getpid(),
        "machines": len(world.machine_numbers()),
        "engines": [entry.engine for entry in world.cluster.fleet],
        "open_jobs": len(world.projection.by_id),
    }
    write(json.dumps(document))
    flush()


def _cluster(scenario: Path | None, machines: int, engines: tuple[str, ...]) -> LocalCluster:
    from argosy.worlds.local.turn import LocalCluster

    if scenario is not None:
        from argosy.scenarios.loader import load_cluster

        loaded = load_cluster(scenario)
        return LocalCluster(
            name=loaded.name,
            seed=loaded.seed,
            cell=loaded.cell,
            fleet=loaded.fleet,
            machines=loaded.machines,
            audit=loaded.audit,
        )

    from argosy.model.machines import Machine
    from argosy.model.resources import Resources
    from argosy.model.scenario import CellSpec
    from argosy.scenarios.loader import read_fleet
    from argosy.workloads.tables import Misfit

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0))
    share = Resources(max(1, 1000 * cores // machines), max(1, memory // machines))
    names = ["local"] if machines == 1 else [f"local-{number}" for number in range(machines)]
    cell = CellSpec(machines=tuple(Machine(name, share) for name in names))
    tables = [{"name": name, "engine": name} for name in engines]
    try:
        return LocalCluster(cell=cell, fleet=read_fleet(tables, cell))
    except Misfit as misfit:
        raise misfit.error from None
