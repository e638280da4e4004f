"""A scheduler for Kubernetes in the test's own event loop, for tests that come between it and the API
server."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.objects import Pod
from argosy.kubernetes.watching import ObjectWatch
from argosy.model.machine_model import MachineModel
from argosy.service.kubernetes.rights import ElectionOptions
from argosy.service.kubernetes.serving import KubernetesOptions, run_kubernetes
from argosy.service.server import Server, ServerOptions
from argosy.worlds.kubernetes.malleable import GrowthSettings


@asynccontextmanager
async def scheduling(
    connection: Connection,
    name: str,
    fleet: Sequence[dict[str, Any]] = ({"name": "omega", "engine": "omega"},),
    election: ElectionOptions | None = None,
    said: list[str] | None = None,
    growth: GrowthSettings | None = None,
    machines: MachineModel | None = None,
) -> AsyncIterator[Server]:
    """Runs until the block ends; `said` collects what it tells its operator."""
    started: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
    lines = [] if said is None else said
    with tempfile.TemporaryDirectory(prefix="argosy-in-loop-") as directory:
        options = KubernetesOptions(
            connection=connection,
            fleet=tuple(fleet),
            server=ServerOptions(directory=Path(directory) / "s", host=None, is_lasting=False),
            name=name,
            election=election,
            growth=growth,
            machines=machines or MachineModel(),
        )
        running = asyncio.ensure_future(run_kubernetes(options, started.set_result, lines.append))
        await asyncio.wait({started, running}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        server = await started
        try:
            yield server
        finally:
            server.stop()
            await running


@asynccontextmanager
async def following(connection: Connection, namespace: str) -> AsyncIterator[FollowedPods]:
    """What becomes of the pods of a namespace, over a connection without faults."""
    async with (
        KubernetesClient(connection) as client,
        ObjectWatch(client, PODS, namespace) as watch,
    ):
        yield FollowedPods(client, watch)


class FollowedPods:
    def __init__(self, client: KubernetesClient, watch: ObjectWatch[Pod]) -> None:
        self.client = client
        self._watch = watch
        #: Every node that a pod was ever on, by uid.
        self.nodes: dict[str, set[str]] = {}

    @property
    def bound(self) -> list[Pod]:
        return [pod for pod in self._watch.objects.values() if pod.spec.node_name]

    @property
    def waiting(self) -> list[Pod]:
        return [pod for pod in self._watch.objects.values() if not pod.spec.node_name]

    async def until(self, condition: Callable[[FollowedPods], object]) -> None:
        """Looked at with every change."""
        async for batch in self._watch:
            for change in batch.changes:
                if change.new is not None and change.new.spec.node_name:
                    self.nodes.setdefault(change.new.uid, set()).add(change.new.spec.node_name)
            if batch.is_complete and condition(self):
                return

    async def until_bound(self, count: int) -> None:
        if len(self.bound) != count:
            await self.until(lambda pods: len(pods.bound) == count)

    @property
    def bound_twice(self) -> list[str]:
        return [uid for uid, nodes in self.nodes.items() if len(nodes) > 1]
