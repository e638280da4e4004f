"""Runs a scheduler for a Kubernetes cluster until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.driver import ClusterWatches, KubernetesDriver, prepare
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.server import Server, ServerOptions, raise_limits
from argosy.workloads.tables import Misfit, path_text
from argosy.worlds.local.turn import LocalCluster

#: The scheduler of pods that leave the choice among the fleet to their kind.
ANY: Final = "argosy"


class KubernetesOptions(msgspec.Struct, frozen=True, kw_only=True):
    connection: Connection
    #: As in `[[fleet]]` of a scenario.
    fleet: tuple[dict[str, Any], ...]
    server: ServerOptions
    #: The name of the scheduler that any of the fleet may take pods of.
    name: str = ANY
    writes_events: bool = True


def serve_kubernetes(
    options: KubernetesOptions, ready: Callable[[Server], None], log: Callable[[str], None]
) -> None:
    raise_limits()
    asyncio.run(run_kubernetes(options, ready, log))


async def run_kubernetes(
    options: KubernetesOptions, ready: Callable[[Server], None], log: Callable[[str], None]
) -> None:
    async with KubernetesClient(options.connection) as client, ClusterWatches(client) as watches:
        await watches.complete()
        overseer = PodOverseer(options.name)
        prepare(overseer.pods, watches)
        nodes = watches.nodes.objects.values()
        cell = CellSpec(machines=tuple(map(overseer.pods.machine_of, nodes)))
        try:
            fleet = read_fleet(options.fleet, cell)
        except Misfit as misfit:
            raise misfit.error.located(field=path_text(misfit.path) or None) from None
        cluster = LocalCluster(name="kubernetes", cell=cell, fleet=fleet)
        server = Server(replace(options.server, cluster=cluster), log, overseer=overseer)
        driver = KubernetesDriver(
            client,
            watches,
            overseer,
            server.cluster,
            options.name,
            log,
            writes_events=options.writes_events,
        )

        def started() -> None:
            driver.start()
            ready(server)

        try:
            await server.run(started)
        finally:
            await driver.close()
