"""Runs a scheduler for a Kubernetes cluster until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from argosy.kubernetes.batch import BATCH_JOBS, BatchJob
from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.failures import KubernetesError
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.leases import LeaderElection
from argosy.kubernetes.requests import RequestSettings
from argosy.kubernetes.watching import ObjectWatch
from argosy.model.machine_model import MachineModel
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.driver import (
    ClusterWatches,
    KubernetesDriver,
    complete,
    prepare,
)
from argosy.service.kubernetes.job_growth import JobGrowth
from argosy.service.kubernetes.kube_metrics import KubernetesMetrics
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.kubernetes.rights import (
    ElectionOptions,
    LastingRight,
    LeadershipLost,
    NoRight,
)
from argosy.service.server import Server, ServerOptions, raise_limits
from argosy.workloads.tables import Misfit, path_text
from argosy.worlds.kubernetes.malleable import GrowthSettings
from argosy.worlds.local.turn import LocalCluster

#: The scheduler of pods that leave the choice among the fleet to their kind.
ANY: Final = "argosy"
#: A server that is back is not left waiting.
_PROMPT: Final = RequestSettings(longest_delay=2.0)
#: Seconds between two attempts to read what the last leader has done.
_RETRY: Final = 0.5


class KubernetesOptions(msgspec.Struct, frozen=True, kw_only=True):
    connection: Connection
    #: As in `[[fleet]]` of a scenario.
    fleet: tuple[dict[str, Any], ...]
    server: ServerOptions
    #: The name of the scheduler that any of the fleet may take pods of.
    name: str = ANY
    writes_events: bool = True
    #: Whether pods that get a node are annotated with why.
    explains: bool = True
    #: The lease that replicas stand for; none if this is the only one.
    election: ElectionOptions | None = None
    #: How pods wait for nodes that engines with queues at machines have chosen.
    machines: MachineModel = MachineModel()
    #: Whether schedulers elsewhere may commit jobs, which become pods.
    serves_commits: bool = False
    #: How malleable Jobs are grown; not at all if none.
    growth: GrowthSettings | None = None


def serve_kubernetes(
    options: KubernetesOptions, ready: Callable[[Server], None], log: Callable[[str], None]
) -> None:
    raise_limits()
    asyncio.run(run_kubernetes(options, ready, log))


async def run_kubernetes(
    options: KubernetesOptions, ready: Callable[[Server], None], log: Callable[[str], None]
) -> None:
    """Raises `LeadershipLost` if it ends because another replica may lead."""
    metrics = KubernetesMetrics()
    client = KubernetesClient(options.connection, _PROMPT, observer=metrics)
    async with client, ClusterWatches(client) as watches:
        await watches.complete()
        overseer = PodOverseer(
            options.name, annotates=options.explains, serves_commits=options.serves_commits
        )
        prepare(overseer.pods, watches)
        server = Server(_server_options(options, overseer, watches), log, overseer=overseer)
        driver = KubernetesDriver(
            client,
            watches,
            overseer,
            server.cluster,
            options.name,
            log,
            writes_events=options.writes_events,
            observer=metrics,
            right=LastingRight() if options.election is None else NoRight(),
        )
        metrics.attach(overseer.pods, driver.writer, watches)
        server.metrics.sections.append(metrics.lines)
        server.backend.checks.append(lambda: _lag(watches))
        async with contextlib.AsyncExitStack() as stack:
            replica = _Replica(options, client, server, driver, log)
            if options.growth is not None:
                jobs = await stack.enter_async_context(ObjectWatch(client, BATCH_JOBS))
                await complete(jobs)
                replica.parts.append(_growth(options.growth, client, jobs, server, driver, log).run)
            await replica.run(ready)


def _growth(
    settings: GrowthSettings,
    client: KubernetesClient,
    jobs: ObjectWatch[BatchJob],
    server: Server,
    driver: KubernetesDriver,
    log: Callable[[str], None],
) -> JobGrowth:
    return JobGrowth(
        client,
        jobs,
        driver.pods,
        settings,
        view=lambda: server.cluster.world.host.view,
        now=lambda: server.cluster.world.now,
        right=lambda: driver.writer.right,
        log=log,
    )


def _server_options(
    options: KubernetesOptions, overseer: PodOverseer, watches: ClusterWatches
) -> ServerOptions:
    nodes = watches.nodes.objects.values()
    cell = CellSpec(machines=tuple(map(overseer.pods.machine_of, nodes)))
    try:
        fleet = read_fleet(options.fleet, cell)
    except Misfit as misfit:
        raise misfit.error.located(field=path_text(misfit.path) or None) from None
    cluster = LocalCluster(name="kubernetes", cell=cell, fleet=fleet, machines=options.machines)
    return replace(options.server, cluster=cluster)


def _lag(watches: ClusterWatches) -> str:
    lagging = watches.lagging
    return f"no news of {', '.join(lagging)} from Kubernetes" if lagging else ""


class _Replica:
    """One of several schedulers of which one leads, or the only one."""

    def __init__(
        self,
        options: KubernetesOptions,
        client: KubernetesClient,
        server: Server,
        driver: KubernetesDriver,
        log: Callable[[str], None],
    ) -> None:
        self._options = options
        self._client = client
        self._server = server
        self._driver = driver
        self._log = log
        self._has_lost = False
        #: What else runs while it serves.
        self.parts: list[Callable[[], Coroutine[Any, Any, None]]] = []

    async def run(self, ready: Callable[[Server], None]) -> None:
        tasks: list[asyncio.Task[None]] = []

        def started() -> None:
            self._driver.start()
            tasks.append(asyncio.create_task(self._watch_driver()))
            tasks.extend(asyncio.create_task(part()) for part in self.parts)
            if election is not None:
                tasks.append(asyncio.create_task(self._take_part(election)))
            ready(self._server)

        async with contextlib.AsyncExitStack() as stack:
            election = None
            if self._options.election is not None:
                election = await stack.enter_async_context(self._candidate(self._options.election))
            try:
                await self._server.run(started)
            finally:
                # The lease is given up last: until then nobody else writes.
                await self._driver.close()
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
        if self._driver.error is not None:
            raise self._driver.error
        if self._has_lost:
            raise LeadershipLost(
                "the lease is lost: another scheduler may lead now",
                hint="start it again, and it stands by",
            )

    def _candidate(self, options: ElectionOptions) -> LeaderElection:
        return LeaderElection(
            self._options.connection,
            options.name,
            options.namespace,
            identity=options.identity,
            settings=options.settings,
        )

    async def _watch_driver(self) -> None:
        await self._driver.failed.wait()
        self._server.stop()

    async def _take_part(self, election: LeaderElection) -> None:
        """Leads once. Who has lost the lease ends: whatever it had decided is void."""
        try:
            self._log("standing by")
            leadership = await election.lead()
            pods = None
            while pods is None and leadership.is_held:
                try:
                    pods = (await self._client.list_all(PODS)).items
                except KubernetesError as error:
                    self._log(str(error))
                    await asyncio.sleep(_RETRY)
            if pods is not None:
                self._log(f"leading with fencing number {leadership.fencing}")
                self._driver.lead(leadership, pods)
            await leadership.lost()
            self._has_lost = True
        finally:
            self._server.stop()
