"""Tells Kubernetes what was decided: binds and evicts pods, and writes conditions and events.

Binding comes before everything else. Conditions and events are for people: those of a pod are written at
most every few seconds, and not at all if nothing has changed.

Nothing is written without the right to (`right`): no request goes out later than it ends, or is waited
for longer. What was not carried out is left to whoever has the right then.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.failures import (
    EvictionRefused,
    KubernetesError,
    ObjectConflict,
    ObjectExists,
    ObjectNotFound,
    RequestForbidden,
    RequestInvalid,
)
from argosy.kubernetes.kinds import EVENTS, PODS
from argosy.kubernetes.meta import micro_time
from argosy.kubernetes.objects import Pod
from argosy.kubernetes.pacing import loop_time
from argosy.model.explanations import Why
from argosy.service.kubernetes.rights import FENCING, LastingRight, WriteRight
from argosy.worlds.kubernetes.moves import may_move
from argosy.worlds.kubernetes.pod_jobs import PLACED_BY
from argosy.worlds.kubernetes.queue_annotations import QUEUE, reached_node
from argosy.worlds.kubernetes.tracked import (
    BindOrder,
    ClusterOrder,
    CreateOrder,
    EvictOrder,
    NominateOrder,
)

#: Requests at a time.
AT_ONCE: Final = 32
#: Seconds between two writes about why the same pod waits.
NOTE_EVERY: Final = 10.0
_FIRST_WAIT: Final = 0.5
#: A server that is back should not be left waiting.
_LONGEST_WAIT: Final = 2.0
#: Seconds until a pod is tried again whose binding the server does not allow.
_FIRST_REST: Final = 1.0
_LONGEST_REST: Final = 60.0
#: Seconds that requests under way have when the writer closes.
_GOODBYE: Final = 5.0
#: Seconds between two looks whether they have come to an end.
_GLANCE: Final = 0.05
#: Pods that are remembered to have been told why they wait, or to have been refused.
_MOST_NOTES: Final = 100_000
_MOST_REFUSED: Final = 100_000


class RightEnded(Exception):
    """There is no right to write, or it ended before there was an answer."""


class WaitingNote:
    """Why a pod waits, as it was written last."""

    __slots__ = ("at", "message")

    def __init__(self) -> None:
        self.at = -NOTE_EVERY
        self.message = ""


class WriterObserver(Protocol):
    """Told of what was written, for metrics. Times are in seconds."""

    def bound(self, seconds: float) -> None:
        """A pod has a node, that long after its binding was ordered."""

    def refused(self) -> None:
        """The server did not accept a binding."""

    def evicted(self, why: Why) -> None: ...


class _UnobservedWriter:
    def bound(self, seconds: float) -> None:
        pass

    def refused(self) -> None:
        pass

    def evicted(self, why: Why) -> None:
        pass


class KubernetesWriter:
    """`bound`, `failed` and `stayed` hear of the fate of orders, by the pod's uid, and `unmade` of pods
    that Kubernetes does not make, by their job and why. `name` is who writes
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
        unmade: Callable[[str, str], None] = lambda job, reason: None,
        log: Callable[[str], None] = lambda line: None,
        writes_events: bool = True,
        observer: WriterObserver | None = None,
        right: WriteRight | None = None,
    ) -> None:
        #: May be replaced by another at any time.
        self.right: WriteRight = right or LastingRight()
        self._observer: WriterObserver = observer or _UnobservedWriter()
        self._client = client
        self._name = name
        self._bound = bound
        self._failed = failed
        self._stayed = stayed
        self._unmade = unmade
        self._log = log
        self._writes_events = writes_events
        self._binds: asyncio.Queue[tuple[float, BindOrder]] = asyncio.Queue()
        self._binding = 0
        #: How long each pod rests whose binding is refused once more; last the one refused last.
        self._rests: OrderedDict[str, float] = OrderedDict()
        self._is_closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._others = asyncio.Semaphore(AT_ONCE)
        self._notes: OrderedDict[str, WaitingNote] = OrderedDict()
        #: Pods that were told their place in a queue.
        self._queued: set[str] = set()
        self._numbers = itertools.count()
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        for _ in range(AT_ONCE):
            self._spawn(self._bind_on())

    async def close(self) -> None:
        """Bindings under way are finished, if that is possible soon; the others are not begun."""
        self._is_closing = True
        deadline = loop_time() + _GOODBYE
        while self._binding and loop_time() < deadline:
            await asyncio.wait(self._tasks, timeout=_GLANCE, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def carry_out(self, order: ClusterOrder) -> None:
        match order:
            case BindOrder():
                self._binds.put_nowait((loop_time(), order))
            case EvictOrder(pod, Why.MOVED) if not may_move(pod):
                # Nobody would make it anew.
                asyncio.get_running_loop().call_soon(self._stayed, pod.uid)
            case EvictOrder():
                self._spawn(self._evict(order))
            case CreateOrder():
                self._spawn(self._make(order))
            case NominateOrder(pod, node):
                self._spawn(self._write(lambda: self._nominate(pod, node)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextlib.asynccontextmanager
    async def _rightfully(self) -> AsyncIterator[None]:
        """For one request: raises `RightEnded` if there is no right to it, or not for long enough."""
        right = self.right
        if not right.is_held:
            raise RightEnded
        try:
            async with asyncio.timeout(right.remaining):
                yield
        except TimeoutError:
            raise RightEnded from None

    async def _write(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Something for people: if it cannot be written, the cluster works all the same."""
        async with self._others:
            try:
                async with self._rightfully():
                    await work()
            except RightEnded:
                self.counts["left"] += 1
            except KubernetesError as error:
                self.counts["unwritten"] += 1
                if not isinstance(error, ObjectNotFound | ObjectConflict):
                    self._log(str(error))

    # Binding.

    async def _bind_on(self) -> None:
        while not self._is_closing:
            since, order = await self._binds.get()
            self._binding += 1
            try:
                await self._bind(order, since)
            except RightEnded:
                # Whoever has the right now decides on the pod.
                self.counts["left"] += 1
            finally:
                self._binding -= 1

    async def _bind(self, order: BindOrder, since: float) -> None:
        pod, wait = order.pod, _FIRST_WAIT
        while not self._is_closing:
            try:
                async with self._rightfully():
                    await self._client.bind(
                        pod.namespace,
                        pod.name,
                        order.node,
                        uid=pod.uid,
                        annotations=self._annotations(order),
                    )
            except RightEnded:
                if not self.right.is_held:
                    raise
                # It was renewed meanwhile; whether the pod is bound is found out by trying again.
                continue
            except ObjectNotFound:
                self._failed(pod.uid)
                return
            except ObjectConflict as error:
                if not await self._is_bound(order):
                    self._refused(error)
                    self._failed(pod.uid)
                    return
            except (RequestForbidden, RequestInvalid) as error:
                # By admission or a missing right: to try again at once would not help.
                self._refused(error)
                self._spawn(self._fail_later(pod.uid))
                return
            except KubernetesError as error:
                # The server may not answer, or may have done it all the same.
                self._log(str(error))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            break
        else:
            return
        self.counts["bound"] += 1
        self._observer.bound(loop_time() - since)
        self._bound(pod.uid)
        self._notes.pop(pod.uid, None)
        self._queued.discard(pod.uid)
        self._rests.pop(pod.uid, None)
        if self._writes_events:
            text = f"Successfully assigned {pod.namespace}/{pod.name} to {order.node}"
            self._spawn(
                self._write(lambda: self._event(pod, "Normal", "Scheduled", "Binding", text))
            )

    def _annotations(self, order: BindOrder) -> dict[str, str]:
        annotations = {**order.annotations, PLACED_BY: self._name}
        if order.pod.uid in self._queued or QUEUE in order.pod.metadata.annotations:
            annotations |= reached_node(order.node)
        if self.right.fencing is not None:
            annotations[FENCING] = str(self.right.fencing)
        return annotations

    def _refused(self, error: KubernetesError) -> None:
        self.counts["refused"] += 1
        self._observer.refused()
        self._log(str(error))

    async def _fail_later(self, uid: str) -> None:
        rest = self._rests.pop(uid, _FIRST_REST)
        self._rests[uid] = min(2 * rest, _LONGEST_REST)
        if len(self._rests) > _MOST_REFUSED:
            self._rests.popitem(last=False)
        await asyncio.sleep(rest)
        self._failed(uid)

    async def _is_bound(self, order: BindOrder) -> bool:
        """Whether the pod is where it was to go, perhaps because an answer was lost. Asked until it is
        certain: a node that a pod is on by mistake of ours would be given away a second time."""
        wait = _FIRST_WAIT
        while True:
            try:
                pod = await self._client.get(PODS, order.pod.name, order.pod.namespace)
            except ObjectNotFound:
                return False
            except KubernetesError as error:
                self._log(str(error))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            return pod.uid == order.pod.uid and pod.spec.node_name == order.node

    # Pods of committed jobs.

    async def _make(self, order: CreateOrder) -> None:
        wait = _FIRST_WAIT
        while True:
            try:
                async with self._rightfully():
                    await self._client.create(PODS, order.document)
            except RightEnded:
                if self.right.is_held:
                    continue
                self._unmade(order.job, "this server may not write any more")
                return
            except ObjectExists:
                # An answer was lost: its name is the job's.
                return
            except (RequestForbidden, RequestInvalid, ObjectNotFound, ObjectConflict) as error:
                self._log(str(error))
                self._unmade(order.job, str(error))
                return
            except KubernetesError as error:
                self._log(str(error))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            self.counts["made"] += 1
            return

    # Making room.

    async def _evict(self, order: EvictOrder) -> None:
        pod, wait = order.pod, _FIRST_WAIT
        while True:
            try:
                async with self._rightfully():
                    await self._client.evict(pod.namespace, pod.name, uid=pod.uid)
            except RightEnded:
                if self.right.is_held:
                    continue
                await asyncio.sleep(_LONGEST_REST)
                self._stayed(pod.uid)
                return
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
        self._observer.evicted(order.why)
        reason = order.why.name.capitalize().replace("_", "")
        text = f"Evicted by {self._name}: {order.why.name.lower().replace('_', ' ')}"
        self._spawn(self._write(lambda: self._event(pod, "Normal", reason, "Evicting", text)))

    async def _nominate(self, pod: Pod, node: str) -> None:
        message = f"{node} was chosen: waits until others have left it"
        await self._set_unscheduled(pod, message, "Unschedulable", {"nominatedNodeName": node})

    # Notes for people.

    def annotate(self, pod: Pod, annotations: dict[str, str | None], message: str) -> None:
        """Tells a pod where it stands in the queue of a node. `message` is for its condition; empty: it
        stays as it is."""
        if annotations.get(QUEUE):
            self._queued.add(pod.uid)
        else:
            self._queued.discard(pod.uid)
        self._spawn(self._write(lambda: self._annotate(pod, annotations, message)))

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._queued.discard(uid)

    async def _annotate(self, pod: Pod, annotations: dict[str, str | None], message: str) -> None:
        # Who may write a pod's status may annotate it by the way. A pod that has been bound meanwhile is
        # left alone.
        version = pod.metadata.resource_version
        metadata = {"uid": pod.uid, "resourceVersion": version, "annotations": annotations}
        status = {"conditions": [_unscheduled(message, "Unschedulable")]} if message else {}
        await self._client.patch(
            PODS,
            pod.name,
            {"metadata": metadata, "status": status},
            pod.namespace,
            form=PatchForm.STRATEGIC,
            subresource="status",
        )

    def note_waiting(self, pod: Pod, message: str, reason: str = "Unschedulable") -> None:
        """Why the pod has no node: as its condition, and as an event."""
        note = self._notes.get(pod.uid)
        if note is None:
            note = self._notes[pod.uid] = WaitingNote()
            if len(self._notes) > _MOST_NOTES:
                self._notes.popitem(last=False)
        now = loop_time()
        if message == note.message or now - note.at < NOTE_EVERY:
            return
        note.at, note.message = now, message
        self._spawn(self._write(lambda: self._note(pod, message, reason)))

    async def _note(self, pod: Pod, message: str, reason: str) -> None:
        await self._set_unscheduled(pod, message, reason, {})
        await self._event(pod, "Warning", "FailedScheduling", "Scheduling", message)

    async def _set_unscheduled(
        self, pod: Pod, message: str, reason: str, more: dict[str, str]
    ) -> None:
        condition = _unscheduled(message, reason)
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


def _unscheduled(message: str, reason: str) -> dict[str, str]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
