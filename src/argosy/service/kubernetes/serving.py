"""Runs a scheduler for a Kubernetes cluster until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.objects import Pod
from argosy.model.jobs import BATCH, SERVICE
from argosy.model.scenario import CellSpec, FleetEntry, Takes
from argosy.service.kubernetes.driver import ClusterWatches, KubernetesDriver, prepare
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.server import Server, ServerOptions, raise_limits
from argosy.worlds.kubernetes.pod_jobs import kind_of
from argosy.worlds.local.turn import LocalCluster

#: The scheduler of pods that leave the choice among the fleet to their kind.
ANY: Final = "argosy"


class KubernetesOptions(msgspec.Struct, frozen=True, kw_only=True):
    connection: Connection
    fleet: tuple[FleetEntry, ...]
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
    fleet = PodFleet(options.name, options.fleet)
    async with KubernetesClient(options.connection) as client, ClusterWatches(client) as watches:
        await watches.complete()
        overseer = PodOverseer(fleet.names, fleet.kind_of)
        prepare(overseer.pods, watches)
        nodes = watches.nodes.objects.values()
        cluster = LocalCluster(
            name="kubernetes",
            cell=CellSpec(machines=tuple(map(overseer.pods.machine_of, nodes))),
            fleet=fleet.entries,
        )
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


class PodFleet:
    """Which scheduler of the fleet takes which pod. Pods name a scheduler of the fleet, or `name`: then
    the kind of the pod decides."""

    def __init__(self, name: str, fleet: tuple[FleetEntry, ...]) -> None:
        kinds = {BATCH, SERVICE, *(kind for entry in fleet for kind in entry.takes.kinds)}
        self.names = frozenset({name, *(entry.name for entry in fleet)})
        self._entries = {entry.name for entry in fleet}
        self.entries = tuple(
            replace(entry, takes=Takes(kinds=(entry.name, *(entry.takes.kinds or sorted(kinds)))))
            for entry in fleet
        )
        self._taken = {kind for entry in self.entries for kind in entry.takes.kinds}
        self._default = fleet[0].name

    def kind_of(self, pod: Pod) -> str:
        scheduler = pod.spec.scheduler_name
        if scheduler in self._entries:
            return scheduler
        kind = kind_of(pod)
        return kind if kind in self._taken else self._default
