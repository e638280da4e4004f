"""Watches a cluster and remembers the lives of its pods. Only reads.

Times are those at which the watch told of something, on this computer's clock, because Kubernetes' own
times are in whole seconds; only of pods that were there before, their own status says when they came.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from argosy.kubernetes.objects import Node, Pod
from argosy.kubernetes.watching import ObjectChange, ObjectWatch
from argosy.workloads.pod_lives import ClusterRecording, PodLife, life_told_by
from argosy.worlds.kubernetes.node_machines import rules_of_node
from argosy.worlds.kubernetes.pod_jobs import has_ended
from argosy.worlds.kubernetes.volumes import KnownVolumes


class _WatchedLife(msgspec.Struct):
    pod: Pod
    arrived: int
    bound: int | None
    ended: int | None


class PodRecorder:
    """`now` is in microseconds since 1970. What it is told before `begin` was there before."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._start = now()
        self._lives: dict[str, _WatchedLife] = {}
        self._nodes: dict[str, Node] = {}
        self._changed_nodes: set[str] = set()

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    @property
    def pods(self) -> int:
        return len(self._lives)

    def begin(self, nodes: ObjectWatch[Node], pods: ObjectWatch[Pod]) -> None:
        """What there is when the recording begins."""
        for node in nodes.objects.values():
            self._nodes[node.name] = node
        for pod in pods.objects.values():
            told = life_told_by(pod)
            # The two clocks may differ; what is there has come before.
            times = [
                None if each is None else min(each, self._start)
                for each in (told.bound, told.ended)
            ]
            self._lives[pod.uid] = _WatchedLife(pod, min(told.arrived, self._start), *times)

    def hear(self, change: ObjectChange[Any]) -> None:
        each = change.new or change.old
        if isinstance(each, Node):
            self._hear_node(change)
        elif isinstance(each, Pod):
            if change.old is not None and (change.new is None or change.new.uid != change.old.uid):
                self._end(change.final or change.old)
            if change.new is not None:
                self._see(change.new)

    def _hear_node(self, change: ObjectChange[Any]) -> None:
        old, new = change.old, change.new
        if new is None:
            if old is not None:
                self._changed_nodes.add(old.name)
            return
        before = self._nodes.get(new.name)
        if before is None or old is None or _shape(before) != _shape(new):
            self._changed_nodes.add(new.name)
        self._nodes[new.name] = new

    def _see(self, pod: Pod) -> None:
        life = self._lives.get(pod.uid)
        if life is None:
            life = self._lives[pod.uid] = _WatchedLife(pod, self._now(), None, None)
        elif life.pod.spec.scheduling_gates and not pod.spec.scheduling_gates:
            life.arrived = self._now()
        life.pod = pod
        if life.bound is None and pod.spec.node_name:
            life.bound = self._now()
        if life.ended is None and has_ended(pod):
            life.ended = self._now()

    def _end(self, pod: Pod) -> None:
        life = self._lives.get(pod.uid)
        if life is not None and life.ended is None:
            life.ended = self._now()

    def close(self, pods: Collection[Pod]) -> None:
        """What there is at the end, of which the watch may not have told yet."""
        there = {pod.uid for pod in pods}
        for pod in pods:
            self._see(pod)
        for uid, life in self._lives.items():
            if uid not in there:
                self._end(life.pod)

    def recording(self, volumes: KnownVolumes) -> ClusterRecording:
        return ClusterRecording(
            nodes=tuple(self._nodes.values()),
            lives=tuple(
                PodLife(life.pod, life.arrived, life.bound, life.ended)
                for life in self._lives.values()
            ),
            volumes=volumes,
            start=self._start,
            end=self._now(),
            changed_nodes=len(self._changed_nodes),
        )


def _shape(node: Node) -> tuple[object, ...]:
    """What makes a machine of a node; its heartbeats change nothing."""
    return *rules_of_node(node), node.status.allocatable


def _micros() -> int:
    return time.time_ns() // 1000


async def record_cluster(
    connection: Connection, stop: asyncio.Event, ready: Callable[[PodRecorder], None]
) -> ClusterRecording:
    """What happens in the cluster until `stop` is set."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubernetesClient(connection))
        nodes = await stack.enter_async_context(ObjectWatch(client, NODES))
        pods = await stack.enter_async_context(ObjectWatch(client, PODS))
        volumes = await stack.enter_async_context(ObjectWatch(client, PERSISTENT_VOLUMES))
        claims = await stack.enter_async_context(ObjectWatch(client, PERSISTENT_VOLUME_CLAIMS))
        watches: tuple[ObjectWatch[Any], ...] = (nodes, pods, volumes, claims)
        await asyncio.gather(*(_complete(watch) for watch in watches))
        recorder = PodRecorder(_micros)
        recorder.begin(nodes, pods)
        tasks = [asyncio.create_task(_follow(watch, recorder)) for watch in watches]
        stopping: asyncio.Task[Any] = asyncio.create_task(stop.wait())
        try:
            ready(recorder)
            await asyncio.wait((stopping, *tasks), return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            stopping.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(stopping, *tasks, return_exceptions=True)
        recorder.close((await client.list_all(PODS)).items)
        known = KnownVolumes()
        known.volumes = {each.name: each for each in volumes.objects.values()}
        known.claims = {each.key: each for each in claims.objects.values()}
        return recorder.recording(known)


async def _complete(watch: ObjectWatch[Any]) -> None:
    async for batch in watch:
        if batch.is_complete:
            return


async def _follow(watch: ObjectWatch[Any], recorder: PodRecorder) -> None:
    async for batch in watch:
        for change in batch.changes:
            recorder.hear(change)
