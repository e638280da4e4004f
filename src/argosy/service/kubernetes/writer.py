"""Tells Kubernetes what was decided: binds and evicts pods, and writes conditions and events.

Binding comes before everything else. Conditions and events are for people: those of a pod are written at
most every few seconds, and not at all if nothing has changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final

from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.failures import (
    EvictionRefused,
    KubernetesError,
    ObjectConflict,
    ObjectNotFound,
)
from argosy.kubernetes.kinds import EVENTS, PODS
from argosy.kubernetes.meta import micro_time
from argosy.kubernetes.objects import Pod
from argosy.worlds.kubernetes.pod_jobs import PLACED_BY
from argosy.worlds.kubernetes.tracked import (
    BindOrder,
    ClusterOrder,
    EvictOrder,
    NominateOrder,
)

#: Requests at a time.
AT_ONCE: Final = 32
#: Seconds between two writes about why the same pod waits.
NOTE_EVERY: Final = 10.0
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 10.0
_MOST_NOTES: Final = 100_000


class WaitingNote:
    """Why a pod waits, as it was written last."""

    __slots__ = ("at", "message", "series")

    def __init__(self) -> None:
        self.at = -NOTE_EVERY
        self.message = ""
        self.series = 0


class KubernetesWriter:
    """`bound`, `failed` and `stayed` hear of the fate of orders, by the pod's uid. `name` is who writes
    events. `writes_events` is for events that a pod was scheduled; those of pods that wait are always
    written."""

    def __init__(
        self,
        client: KubernetesClient,
        name: str,
        *,
        bound: Callable[[str], None],
        failed: Callable[[str], None],
        stayed: Callable[[str], None],
        annotate: Callable[[Pod], dict[str, str]] = lambda pod: {},
        log: Callable[[str], None] = lambda line: None,
        writes_events: bool = True,
    ) -> None:
        self._client = client
        self._name = name
        self._bound = bound
        self._failed = failed
        self._stayed = stayed
        self._annotate = annotate
        self._log = log
        self._writes_events = writes_events
        self._binds: asyncio.Queue[BindOrder] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._others = asyncio.Semaphore(AT_ONCE)
        self._notes: OrderedDict[str, WaitingNote] = OrderedDict()
        self._numbers = itertools.count()
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        for _ in range(AT_ONCE):
            self._spawn(self._bind_on())

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def carry_out(self, order: ClusterOrder) -> None:
        match order:
            case BindOrder():
                self._binds.put_nowait(order)
            case EvictOrder():
                self._spawn(self._evict(order))
            case NominateOrder(pod, node):
                self._spawn(self._write(self._nominate(pod, node)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self, work: Coroutine[Any, Any, None]) -> None:
        """Something for people: if it cannot be written, the cluster works all the same."""
        async with self._others:
            try:
                await work
            except KubernetesError as error:
                self.counts["unwritten"] += 1
                if not isinstance(error, ObjectNotFound | ObjectConflict):
                    self._log(str(error))

    # Binding.

    async def _bind_on(self) -> None:
        while True:
            await self._bind(await self._binds.get())

    async def _bind(self, order: BindOrder) -> None:
        pod, wait = order.pod, _FIRST_WAIT
        while True:
            try:
                await self._client.bind(
                    pod.namespace,
                    pod.name,
                    order.node,
                    uid=pod.uid,
                    annotations={PLACED_BY: self._name, **self._annotate(pod)},
                )
            except ObjectNotFound:
                self._failed(pod.uid)
                return
            except ObjectConflict as error:
                if not await self._is_bound(order):
                    self.counts["refused"] += 1
                    self._log(str(error))
                    self._failed(pod.uid)
                    return
            except KubernetesError as error:
                # The server may not answer, or may have done it all the same.
                self._log(str(error))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            break
        self.counts["bound"] += 1
        self._bound(pod.uid)
        self._notes.pop(pod.uid, None)
        if self._writes_events:
            text = f"Successfully assigned {pod.namespace}/{pod.name} to {order.node}"
            self._spawn(self._write(self._event(pod, "Normal", "Scheduled", "Binding", text)))

    async def _is_bound(self, order: BindOrder) -> bool:
        """Whether the pod is where it was to go, perhaps because an answer was lost."""
        with contextlib.suppress(KubernetesError):
            pod = await self._client.get(PODS, order.pod.name, order.pod.namespace)
            return pod.uid == order.pod.uid and pod.spec.node_name == order.node
        return False

    # Making room.

    async def _evict(self, order: EvictOrder) -> None:
        pod, wait = order.pod, _FIRST_WAIT
        while True:
            try:
                await self._client.evict(pod.namespace, pod.name, uid=pod.uid)
            except (ObjectNotFound, ObjectConflict):
                return
            except EvictionRefused:
                # Somebody else may have to go.
                self.counts["stayed"] += 1
                self._stayed(pod.uid)
                return
            except KubernetesError as error:
                self._log(str(error))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            break
        self.counts["evicted"] += 1
        reason = order.why.name.capitalize().replace("_", "")
        text = f"Evicted by {self._name}: {order.why.name.lower().replace('_', ' ')}"
        self._spawn(self._write(self._event(pod, "Normal", reason, "Evicting", text)))

    async def _nominate(self, pod: Pod, node: str) -> None:
        message = f"{node} was chosen: waits until others have left it"
        await self._set_unscheduled(pod, message, "Unschedulable", {"nominatedNodeName": node})

    # Notes for people.

    def note_waiting(self, pod: Pod, message: str, reason: str = "Unschedulable") -> None:
        """Why the pod has no node: as its condition, and as an event."""
        note = self._notes.get(pod.uid)
        if note is None:
            note = self._notes[pod.uid] = WaitingNote()
            if len(self._notes) > _MOST_NOTES:
                self._notes.popitem(last=False)
        now = time.monotonic()
        if message == note.message or now - note.at < NOTE_EVERY:
            return
        note.at, note.message = now, message
        self._spawn(self._write(self._note(pod, message, reason)))

    async def _note(self, pod: Pod, message: str, reason: str) -> None:
        await self._set_unscheduled(pod, message, reason, {})
        await self._event(pod, "Warning", "FailedScheduling", "Scheduling", message)

    async def _set_unscheduled(
        self, pod: Pod, message: str, reason: str, more: dict[str, str]
    ) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        await self._client.patch(
            PODS,
            pod.name,
            {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition], **more}},
            pod.namespace,
            form=PatchForm.STRATEGIC,
            subresource="status",
        )

    async def _event(self, pod: Pod, kind: str, reason: str, action: str, text: str) -> None:
        now = datetime.now(UTC)
        number = next(self._numbers)
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{pod.name[:200]}.{time.time_ns():x}{number:x}",
                "namespace": pod.namespace,
            },
            "eventTime": micro_time(now),
            "type": kind,
            "reason": reason,
            "action": action,
            "note": text[:1_000],
            "reportingController": self._name,
            "reportingInstance": self._name,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
                "resourceVersion": pod.metadata.resource_version,
            },
        }
        await self._client.create(EVENTS, body, pod.namespace)
