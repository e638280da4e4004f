"""One engine in the shadow: a live world in which its decisions hold, whatever the cluster does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from argosy.host.protocols import Deliberator
from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Explanation
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.driver import ClusterWatches, prepare
from argosy.service.kubernetes.messages import waiting_message
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.kubernetes.shadow.placements import PlacementRecord
from argosy.service.live import LiveCluster
from argosy.service.server import FoundEngines
from argosy.workloads.tables import Misfit, path_text
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.tracked import BindOrder, CreateOrder, EvictOrder, PodState
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster


class ShadowedEngine:
    """`entry` is one of a fleet. Pods that it takes are all those that are shown to it."""

    def __init__(
        self,
        entry: dict[str, Any],
        watches: ClusterWatches,
        directory: Path,
        record: PlacementRecord,
        since: Callable[[str], float | None],
        log: Callable[[str], None],
    ) -> None:
        self.name = str(entry["name"])
        self.record = record
        self._since = since
        self._overseer = PodOverseer(self.name, annotates=False)
        self.pods: PodCluster = self._overseer.pods
        prepare(self.pods, watches)
        cell = CellSpec(machines=tuple(map(self.pods.machine_of, watches.nodes.objects.values())))
        try:
            fleet = read_fleet([entry], cell)
        except Misfit as misfit:
            raise misfit.error.located(field=path_text(misfit.path) or None) from None
        self._made = LocalCluster(name="shadow", cell=cell, fleet=fleet)
        self._engines = FoundEngines()
        self._store = LocalStore(directory, is_lasting=False)
        #: Where its own decisions have put pods.
        self._nodes: dict[str, str] = {}
        #: Pods as they really are.
        self._real: dict[str, Pod] = {}
        #: Why pods wait, as it was explained last.
        self._explained: dict[str, Explanation] = {}
        #: Pods that had to leave their nodes, each as often as it had to.
        self.evicted: list[Pod] = []
        try:
            self.cluster = LiveCluster(self._build, self._overseer, log)
        except BaseException:
            self._store.close()
            raise
        self._overseer.connect(self.cluster.ended, asyncio.get_running_loop().call_soon)
        self._overseer.wake = self._pump
        self.cluster.listeners.append(self._turn_ended)
        self._living: asyncio.Task[None] | None = None

    def _build(self, deliberator: Deliberator) -> OverruledWorld:
        return OverruledWorld(
            self._store,
            self._engines,
            self._overseer,
            lambda: time.monotonic_ns() // 1000,
            self._overseer,
            cluster=self._made,
            deliberator=deliberator,
            began=time.time_ns() // 1000 - self._store.origin,
        )

    @property
    def _world(self) -> OverruledWorld:
        world = self.cluster.world
        assert isinstance(world, OverruledWorld)
        return world

    def start(self) -> None:
        self._living = asyncio.create_task(self.cluster.run())

    async def close(self) -> None:
        self.cluster.stop()
        try:
            if self._living is not None:
                await self._living
        finally:
            self._store.close()

    def tell(self, change: Callable[[PodCluster], None]) -> None:
        def carry_out() -> None:
            change(self.pods)
            self.pods.flush()

        self.cluster.tell(lambda _: carry_out())
        self._pump()

    # Pods, as this engine would see them.

    def show(self, pod: Pod, *, is_fixed: bool) -> None:
        """A pod that is new or has changed. One that `is_fixed` stays where it really is."""
        self._real[pod.uid] = pod
        if is_fixed:
            self._nodes[pod.uid] = pod.spec.node_name
            self.record.put(pod, pod.spec.node_name)
        self.tell(lambda pods: pods.set_pod(self._as_if(pod)))

    def end(self, pod: Pod) -> None:
        self._real.pop(pod.uid, None)
        self._nodes.pop(pod.uid, None)
        self._explained.pop(pod.uid, None)
        self.record.remove(pod.uid)
        by_itself = pod.metadata.deletion_timestamp is None
        self.tell(lambda pods: pods.remove_pod(pod.uid, by_itself=by_itself))

    def look_again(self) -> None:
        if self.pods.needs_look:
            self.tell(lambda pods: pods.look_again())

    @property
    def unsupported(self) -> int:
        """Pods that it does not take, because they ask for something that Argosy does not do."""
        return sum(
            1
            for tracked in self.pods.pods.values()
            if tracked.obstacle and tracked.state is PodState.OUTSIDE
        )

    def reason_to_wait(self, uid: str) -> str:
        """Why a pod has no node; empty while nobody has said."""
        tracked = self.pods.pods.get(uid)
        if tracked is not None and tracked.obstacle and tracked.state is PodState.OUTSIDE:
            return tracked.obstacle
        explanation = self._explained.get(uid)
        if explanation is None:
            return ""
        return waiting_message(
            explanation,
            len(self.pods.rulebook.nodes),
            self._world.host.view.machine_name,
            gang=None if tracked is None else tracked.gang,
        )

    def _as_if(self, pod: Pod) -> Pod:
        node = self._nodes.get(pod.uid, "")
        return replace(pod, spec=replace(pod.spec, node_name=node, scheduler_name=self.name))

    # What it decides: done at once, and nowhere but here.

    def _pump(self) -> None:
        orders = self.pods.orders
        self.pods.refused.clear()
        while orders:
            order = orders.popleft()
            if isinstance(order, CreateOrder):
                # Nobody commits jobs to a shadow.
                continue
            uid = order.pod.uid
            self.record.advance(time.monotonic())
            match order:
                case BindOrder(_, node) if uid in self._real:
                    self._nodes[uid] = node
                    self.record.put(self._real[uid], node, since=self._since(uid))
                    self.pods.bound(uid)
                case EvictOrder() if uid in self._real:
                    self.evicted.append(self._real[uid])
                    self.record.evictions += 1
                    self._start_over(self._real[uid])

    def _start_over(self, pod: Pod) -> None:
        """Whatever made the pod makes another one like it, which waits."""
        self._nodes.pop(pod.uid, None)
        self.record.remove(pod.uid)

        def replace_pod(pods: PodCluster) -> None:
            pods.remove_pod(pod.uid)
            pods.set_pod(self._as_if(pod))

        self.tell(replace_pod)

    def _turn_ended(self, seconds: float) -> None:
        for job, explanation in self._world.take_explained().items():
            for tracked in self.pods.waits(job):
                self._explained[tracked.uid] = explanation
            if self.pods.is_short(job):
                self.tell(lambda pods, job=job: pods.found_short(job))  # type: ignore[misc]
        if self.pods.has_unformed:
            self.tell(lambda pods: None)
        self._pump()
