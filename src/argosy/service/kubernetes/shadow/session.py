"""Watches a cluster, shows it to the engines, and reports how they compare with its scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.objects import (
    CoschedulingGroup,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
)
from argosy.kubernetes.watching import ObjectChange, ObjectWatch
from argosy.model.errors import ArgosyError
from argosy.model.units import format_count
from argosy.service.kubernetes.driver import ClusterWatches
from argosy.service.kubernetes.shadow.engine import ShadowedEngine
from argosy.service.kubernetes.shadow.placements import (
    ClusterState,
    PlacementJudge,
    PlacementRecord,
)
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.pod_jobs import has_ended
from argosy.worlds.kubernetes.requests import PODS, node_capacity
from argosy.worlds.kubernetes.volumes import KnownVolumes

#: The row of the scheduler that really decides.
REAL: Final = "the cluster"
#: Seconds between two looks at pods that were refused again and again.
_LOOK_AGAIN: Final = 1.0
#: Seconds between two lines about how far it is.
_TELL_EVERY: Final = 5.0


class ShadowOptions(msgspec.Struct, frozen=True, kw_only=True):
    connection: Connection
    #: As in `[[fleet]]` of a scenario; each has a world of its own.
    fleet: tuple[dict[str, Any], ...]


class ShadowRow(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler. Waits are in seconds; shares are of 1."""

    scheduler: str
    placed: int
    #: Pods that have no node at the end.
    waiting: int
    #: Pods among them that Argosy does not take.
    unsupported: int
    #: Pods that ended before they would have been placed.
    missed: int
    wait_median: float | None
    wait_90: float | None
    wait_longest: float | None
    cpu_used: float
    memory_used: float
    evictions: int
    broken_rules: int
    overcommitted_nodes: int
    nodes_used: int
    nodes_spare: int
    #: Of the pods that both have placed, those on the same node; none for the cluster itself.
    same_node: float | None


class ShadowReport(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    nodes: int
    #: Pods that came to be scheduled while it watched, and those on nodes before.
    pods: int
    pods_before: int
    schedulers: tuple[ShadowRow, ...]


class ShadowSession:
    def __init__(self, watches: ClusterWatches) -> None:
        self._watches = watches
        self._began = self._now = time.monotonic()
        #: When pods could first be scheduled.
        self._since: dict[str, float] = {}
        self._fixed: set[str] = set()
        self._before = 0
        #: Pods that are there and without a node, in reality.
        self._open: set[str] = set()
        self._present: dict[str, None] = {}
        self._missed: dict[str, int] = {}
        self._real = PlacementRecord(self._began)
        self.engines: list[ShadowedEngine] = []

    def add(self, entry: dict[str, Any], directory: Path, log: Callable[[str], None]) -> None:
        record = PlacementRecord(self._began)
        self.engines.append(
            ShadowedEngine(entry, self._watches, directory, record, self._since.get, log)
        )

    @property
    def nodes(self) -> int:
        return len(self._watches.nodes.objects)

    @property
    def _records(self) -> list[PlacementRecord]:
        return [self._real, *(engine.record for engine in self.engines)]

    def take_all(self) -> None:
        """What there is when it begins: pods on nodes stay there for every engine."""
        stores = self._watches
        first: list[ObjectWatch[Any]] = [stores.namespaces, stores.nodes, stores.volumes]
        for watch in (*first, stores.claims, stores.budgets, *stores.groups):
            for each in watch.objects.values():
                self._tell_engines(None, each)
        pods = sorted(stores.pods.objects.values(), key=_age)
        for pod in sorted(pods, key=lambda pod: not pod.spec.node_name):
            self._set_pod(pod)

    async def follow(self, watch: ObjectWatch[Any]) -> None:
        async for batch in watch:
            self._advance()
            for change in batch.changes:
                self._changed(change)

    async def look_again(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            for engine in self.engines:
                engine.look_again()

    async def tell_progress(self, tell: Callable[[str], None]) -> None:
        told = ""
        while True:
            await asyncio.sleep(_TELL_EVERY)
            placed = [f"{REAL} has placed {len(self._real.waits):,}"]
            placed += [f"{engine.name} {len(engine.record.waits):,}" for engine in self.engines]
            line = f"{format_count(len(self._since), 'pod')} seen; {', '.join(placed)}"
            if line != told:
                tell(line)
                told = line

    async def settle(self) -> None:
        """Until the engines have acted on all that they were told."""
        for engine in self.engines:
            with contextlib.suppress(ArgosyError):
                await engine.cluster.do(lambda world: None)

    def _advance(self) -> None:
        self._now = time.monotonic()
        for record in self._records:
            record.advance(self._now)

    def _changed(self, change: ObjectChange[Any]) -> None:
        old, new = change.old, change.new
        if isinstance(new or old, Pod):
            if old is not None and (new is None or new.uid != old.uid):
                self._end_pod(old)
            if new is not None and has_ended(new):
                self._end_pod(new)
            elif new is not None:
                self._set_pod(new)
        else:
            self._tell_engines(old, new)

    def _tell_engines(self, old: Any, new: Any) -> None:
        for engine in self.engines:
            engine.tell(lambda pods: _feed(pods, old, new))
        each = new or old
        if isinstance(each, Node):
            capacity = None if new is None else node_capacity(new, [PODS])
            for record in self._records:
                record.set_capacity(each.name, capacity)

    def _set_pod(self, pod: Pod) -> None:
        uid, is_new = pod.uid, pod.uid not in self._present
        self._present[uid] = None
        if is_new and pod.spec.node_name:
            self._fixed.add(uid)
            self._before += 1
            self._real.put(pod, pod.spec.node_name)
        elif uid not in self._fixed:
            self._watch_waiting(pod)
        for engine in self.engines:
            engine.show(pod, is_fixed=is_new and uid in self._fixed)

    def _watch_waiting(self, pod: Pod) -> None:
        uid = pod.uid
        if not pod.spec.scheduling_gates and uid not in self._since:
            self._since[uid] = self._now
            self._open.add(uid)
        if pod.spec.node_name and uid in self._open:
            self._open.discard(uid)
            self._real.put(pod, pod.spec.node_name, since=self._since[uid])

    def _end_pod(self, pod: Pod) -> None:
        uid = pod.uid
        if uid not in self._present:
            return
        del self._present[uid]
        if uid in self._open:
            self._open.discard(uid)
            self._missed[REAL] = self._missed.get(REAL, 0) + 1
        self._real.remove(uid)
        for engine in self.engines:
            if uid in self._since and uid not in engine.record.waits:
                self._missed[engine.name] = self._missed.get(engine.name, 0) + 1
            engine.end(pod)

    def report(self) -> ShadowReport:
        self._advance()
        stores = self._watches
        volumes = KnownVolumes()
        volumes.volumes = {each.name: each for each in stores.volumes.objects.values()}
        volumes.claims = {
            (each.namespace, each.name): each for each in stores.claims.objects.values()
        }
        state = ClusterState(
            tuple(stores.nodes.objects.values()),
            tuple(stores.namespaces.objects.values()),
            volumes,
        )
        rows = [self._row(REAL, self._real, state, 0)]
        rows += [self._row(e.name, e.record, state, e.unsupported) for e in self.engines]
        return ShadowReport(
            seconds=time.monotonic() - self._began,
            nodes=len(state.nodes),
            pods=len(self._since),
            pods_before=self._before,
            schedulers=tuple(rows),
        )

    def _row(
        self, name: str, record: PlacementRecord, state: ClusterState, unsupported: int
    ) -> ShadowRow:
        judged = PlacementJudge(state, record.pods.values()).judge()
        waiting = sum(1 for uid in self._present if uid in self._since and uid not in record.pods)
        return ShadowRow(
            scheduler=name,
            placed=len(record.waits),
            waiting=waiting,
            unsupported=unsupported,
            missed=self._missed.get(name, 0),
            wait_median=record.wait(0.5),
            wait_90=record.wait(0.9),
            wait_longest=record.wait(1.0),
            cpu_used=record.utilisation("cpu"),
            memory_used=record.utilisation("memory"),
            evictions=record.evictions,
            broken_rules=judged.broken_rules,
            overcommitted_nodes=judged.overcommitted,
            nodes_used=judged.nodes_used,
            nodes_spare=judged.nodes_spare,
            same_node=None if record is self._real else self._agreement(record),
        )

    def _agreement(self, record: PlacementRecord) -> float | None:
        theirs = self._real.first_nodes
        both = [uid for uid in record.first_nodes if uid in theirs]
        same = sum(1 for uid in both if record.first_nodes[uid] == theirs[uid])
        return same / len(both) if both else None


async def run_shadow(
    options: ShadowOptions,
    stop: asyncio.Event,
    ready: Callable[[ShadowSession], None],
    log: Callable[[str], None],
) -> ShadowReport:
    """Until `stop` is set, or a watch fails."""
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="argosy-shadow-")))
        client = await stack.enter_async_context(KubernetesClient(options.connection))
        watches = await stack.enter_async_context(ClusterWatches(client))
        await watches.complete()
        session = ShadowSession(watches)
        for number, entry in enumerate(options.fleet):
            session.add(entry, directory / str(number), log)
            stack.push_async_callback(session.engines[-1].close)
        session.take_all()
        for engine in session.engines:
            engine.start()
        tasks = [asyncio.create_task(session.follow(watch)) for watch in watches.all]
        tasks.append(asyncio.create_task(session.look_again()))
        tasks.append(asyncio.create_task(session.tell_progress(log)))
        stopping: asyncio.Task[Any] = asyncio.create_task(stop.wait())
        try:
            ready(session)
            await asyncio.wait((stopping, *tasks), return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            await session.settle()
            return session.report()
        finally:
            stopping.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(stopping, *tasks, return_exceptions=True)


def _age(pod: Pod) -> str:
    return str(pod.metadata.creation_timestamp)


def _feed(pods: PodCluster, old: Any, new: Any) -> None:
    match new, old:
        case Namespace(), _:
            pods.set_namespace(new)
        case Node(), _:
            pods.set_node(new)
        case None, Node():
            pods.remove_node(old.name)
        case PersistentVolume(), _:
            pods.set_volume(new)
        case None, PersistentVolume():
            pods.remove_volume(old.name)
        case PersistentVolumeClaim(), _:
            pods.set_claim(new)
        case None, PersistentVolumeClaim():
            pods.remove_claim(old.namespace, old.name)
        case PodDisruptionBudget(), _:
            pods.set_budget(new)
        case None, PodDisruptionBudget():
            pods.remove_budget(old.namespace, old.name)
        case _ if isinstance(new, PodGroup | CoschedulingGroup):
            pods.set_group(new)
        case _ if isinstance(old, PodGroup | CoschedulingGroup):
            pods.remove_group(old)
