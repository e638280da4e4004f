"""A scheduler that can be killed: all that `argosy kubernetes` runs, except for its own REST API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from argosy.engines.api import Engine
from argosy.host.protocols import Deliberator
from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.failures import KubernetesError
from argosy.kubernetes.requests import RequestSettings
from argosy.model.errors import EngineFault
from argosy.model.scenario import CellSpec, Scenario
from argosy.service.kubernetes.driver import ClusterWatches, KubernetesDriver, prepare
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.kubernetes.played.network import PlayedNetwork, PlayedSender
from argosy.service.kubernetes.serving import ANY
from argosy.service.live import LiveCluster
from argosy.testing.virtual_loop import VirtualLoop
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster

_SETTINGS: Final = RequestSettings(longest_delay=2.0)
_OWNER: ContextVar[PlayedServer | None] = ContextVar("owner", default=None)


class ServerKilled(BaseException):
    """Ends a server in the middle of a turn."""


class PlayedServer:
    """One life of a scheduler, on a directory. `failed` hears of what must not happen; `gave_up` is
    called if it ends by itself, because it cannot read what there is."""

    def __init__(
        self,
        scenario: Scenario,
        engines: Mapping[str, type[Engine]],
        network: PlayedNetwork,
        directory: Path,
        seed: int,
        failed: Callable[[BaseException], None],
        gave_up: Callable[[], None],
    ) -> None:
        self._scenario = scenario
        self._engines = engines
        self._loop: VirtualLoop = network.loop
        self.directory = directory
        self._failed = failed
        self._gave_up = gave_up
        self.sender = PlayedSender(network, _SETTINGS, seed)
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._store: LocalStore | None = None
        self._cluster: LiveCluster | None = None
        self.pods: PodCluster | None = None
        self.is_dead = False
        #: Called after a turn was written, before anything is done. May kill the server.
        self.after_writing: Callable[[], None] = lambda: None

    def start(self) -> None:
        token = _OWNER.set(self)
        self._loop.create_task(self._run())
        _OWNER.reset(token)

    async def _run(self) -> None:
        client = KubernetesClient(self.sender.connection, sender=self.sender)
        async with client, ClusterWatches(client) as watches:
            await watches.complete()
            overseer = PodOverseer(ANY)
            prepare(overseer.pods, watches)
            self._store = LocalStore(self.directory, is_lasting=False)
            nodes = watches.nodes.objects.values()
            made = LocalCluster(
                name="kubernetes",
                seed=self._scenario.seed,
                cell=CellSpec(machines=tuple(map(overseer.pods.machine_of, nodes))),
                fleet=self._scenario.fleet,
                machines=self._scenario.machines,
                audit=True,
            )
            self._cluster = cluster = LiveCluster(
                lambda deliberator: self._build(made, overseer, deliberator), overseer
            )
            overseer.connect(cluster.ended, self._loop.call_soon)
            cluster.fault_listeners.append(self._failed)
            cluster.listeners.append(self._turn_written)
            driver = KubernetesDriver(
                client, watches, overseer, cluster, ANY, log=lambda line: None
            )
            self.pods = overseer.pods
            living = self._loop.create_task(cluster.run())
            driver.start()
            await living

    def _build(
        self, made: LocalCluster, overseer: PodOverseer, deliberator: Deliberator
    ) -> OverruledWorld:
        assert self._store is not None
        return OverruledWorld(
            self._store,
            self._engines,
            overseer,
            lambda: self._loop.micros,
            overseer,
            cluster=made,
            deliberator=deliberator,
            began=self._loop.micros,
        )

    def _turn_written(self, seconds: float) -> None:
        self.after_writing()
        if self.is_dead:
            raise ServerKilled

    # Its end.

    def write(self) -> None:
        """All that was decided so far."""
        assert self._cluster is not None
        self._cluster.world.commit()

    def kill(self) -> None:
        if self.is_dead:
            return
        self.is_dead = True
        self.close_store()
        for task in list(self._tasks):
            task.cancel()

    def close_store(self) -> None:
        if self._store is not None:
            self._store.close()

    def adds(self, task: asyncio.Task[Any]) -> None:
        """A task of this server."""
        self._tasks[task] = None
        task.add_done_callback(self._task_ended)
        if self.is_dead:
            task.cancel()

    def _task_ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is None or self.is_dead:
            return
        if self.pods is None and isinstance(error, KubernetesError):
            self._gave_up()
        else:
            self._failed(error)


def owned_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
    /,
    **more: Any,
) -> asyncio.Task[Any]:
    """A task factory by which servers know their tasks."""
    task = asyncio.Task(work, loop=loop, **more)
    owner = _OWNER.get()
    if owner is not None:
        owner.adds(task)
    return task


def as_error(failure: BaseException) -> Exception:
    """What a run raises for it."""
    return failure if isinstance(failure, Exception) else EngineFault(repr(failure))
