"""Keeps a live cluster in step with Kubernetes: watches feed the world, its orders go to the API."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.kinds import (
    COSCHEDULING_GROUPS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
)
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
from argosy.kubernetes.watching import ChangeBatch, ObjectChange, ObjectWatch, WatchSettings
from argosy.service.kubernetes.messages import waiting_message
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.kubernetes.queue_notes import QueueNotes
from argosy.service.kubernetes.rights import WriteRight
from argosy.service.kubernetes.writer import KubernetesWriter, WriterObserver
from argosy.service.live import LiveCluster
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.pod_jobs import has_ended
from argosy.worlds.kubernetes.pod_wishes import described_wishes
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.tracked import PodState
from argosy.worlds.local.overruled import OverruledWorld

#: Seconds between two looks at pods that were refused again and again.
_LOOK_AGAIN: Final = 1.0
#: Seconds for which a pod that a budget has kept is not told to leave again, at least.
_KEPT_FOR: Final = 30.0
#: A server that is back is not left waiting.
_PROMPT: Final = WatchSettings(longest_delay=3.0)
#: Seconds without a watch after which a scheduler says that it is not in step.
LONGEST_LAG: Final = 10.0


def has_not_ended(pod: Pod) -> bool:
    return not has_ended(pod)


class ClusterWatches:
    """What a scheduler watches, each kind in a store of its own. Kinds of groups are watched if they are
    served when the watches begin."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self.nodes = ObjectWatch(client, NODES, settings=_PROMPT)
        self.pods = ObjectWatch(client, PODS, keeps=has_not_ended, settings=_PROMPT)
        self.namespaces = ObjectWatch(client, NAMESPACES, settings=_PROMPT)
        self.priority_classes = ObjectWatch(client, PRIORITY_CLASSES, settings=_PROMPT)
        self.volumes = ObjectWatch(client, PERSISTENT_VOLUMES, settings=_PROMPT)
        self.claims = ObjectWatch(client, PERSISTENT_VOLUME_CLAIMS, settings=_PROMPT)
        self.budgets = ObjectWatch(client, POD_DISRUPTION_BUDGETS, settings=_PROMPT)
        self.groups: list[ObjectWatch[Any]] = []
        self._stack = contextlib.AsyncExitStack()

    @property
    def all(self) -> tuple[ObjectWatch[Any], ...]:
        return (
            self.nodes,
            self.namespaces,
            self.priority_classes,
            self.volumes,
            self.claims,
            self.budgets,
            *self.groups,
            self.pods,
        )

    async def __aenter__(self) -> ClusterWatches:
        for kind in (POD_GROUPS, COSCHEDULING_GROUPS):
            if await self._client.serves(kind):
                self.groups.append(ObjectWatch(self._client, kind, settings=_PROMPT))
        for watch in self.all:
            await self._stack.enter_async_context(watch)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    @property
    def lagging(self) -> list[str]:
        """Kinds of objects whose changes have not been heard for a while."""
        return [
            watch.kind.plural
            for watch in self.all
            if not watch.is_complete or watch.lag > LONGEST_LAG
        ]

    async def complete(self) -> None:
        """Until all that there is has been read."""
        await asyncio.gather(*(complete(watch) for watch in self.all))


async def complete(watch: ObjectWatch[Any]) -> None:
    """Until all that there is has been read."""
    async for batch in watch:
        if batch.is_complete:
            return


def prepare(pods: PodCluster, watches: ClusterWatches) -> None:
    """What has to be known before there is a world: priorities, and which resources count."""
    pods.set_priorities(each.value for each in watches.priority_classes.objects.values())
    for pod in watches.pods.objects.values():
        pods.know_resources(pod_request(pod))


class KubernetesDriver:
    """`name` is who writes events. Without a right to write, the world follows the cluster, and decides
    on no pod until `lead`."""

    def __init__(
        self,
        client: KubernetesClient,
        watches: ClusterWatches,
        overseer: PodOverseer,
        cluster: LiveCluster,
        name: str,
        log: Callable[[str], None],
        *,
        writes_events: bool = True,
        observer: WriterObserver | None = None,
        right: WriteRight | None = None,
    ) -> None:
        self._watches = watches
        self._overseer = overseer
        self._pods = overseer.pods
        self._cluster = cluster
        self._log = log
        self.writer = KubernetesWriter(
            client,
            name,
            bound=self._pods.bound,
            failed=lambda uid: self._hear(lambda: self._pods.bind_failed(uid)),
            stayed=lambda uid: self._hear(lambda: self._pods.eviction_failed(uid)),
            unmade=lambda job, why: self._hear(lambda: self._pods.unmade(job, why)),
            log=log,
            writes_events=writes_events,
            observer=observer,
            right=right,
        )
        overseer.is_leading = self.writer.right.is_held
        #: What happened to orders while the world took no inputs.
        self._unheard: list[Callable[[], None]] = []
        #: Why it cannot go on; `failed` is set then.
        self.error: BaseException | None = None
        self.failed = asyncio.Event()
        self._queue_notes = QueueNotes(self._pods, lambda: self._world, self.writer)
        self._tasks: list[asyncio.Task[None]] = []
        self._life = -1
        overseer.wake = self._pump
        cluster.listeners.append(self._turn_ended)

    def start(self) -> None:
        """Takes in what there is, and goes on with what changes."""
        loop = asyncio.get_running_loop()
        self.writer.start()
        self._life = self._world.life
        self._tell(self._take_all)
        feeds: dict[ObjectWatch[Any], Callable[[ObjectChange[Any]], None]] = {
            self._watches.nodes: self._node_changed,
            self._watches.namespaces: self._namespace_changed,
            self._watches.volumes: self._volume_changed,
            self._watches.claims: self._claim_changed,
            self._watches.budgets: self._budget_changed,
            **dict.fromkeys(self._watches.groups, self._group_changed),
            self._watches.pods: self._pod_changed,
        }
        self._tasks = [loop.create_task(self._follow(*feed)) for feed in feeds.items()]
        self._tasks.append(loop.create_task(self._look_again()))
        for task in self._tasks:
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            # A scheduler that does not hear of changes any more must not go on.
            self.error = task.exception()
            self.failed.set()

    def lead(self, right: WriteRight, pods: Iterable[Pod]) -> None:
        """Decides from now on. `pods` are those of the cluster, read after the right was given: what the
        last leader has done is among them, though watches may not have told of it yet."""
        self.writer.right = right
        self._overseer.is_leading = True

        newest = _newest(pods, self._watches.pods)

        def take() -> None:
            for pod in _bound_first(newest):
                self._pods.set_pod(pod)

        self._tell(take)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.writer.close()

    @property
    def pods(self) -> PodCluster:
        return self._pods

    @property
    def _world(self) -> OverruledWorld:
        world = self._cluster.world
        assert isinstance(world, OverruledWorld)
        return world

    def _tell(self, action: Callable[[], None]) -> bool:
        """Returns whether the world took it; if not, all is taken in when there is a new one."""

        def carry_out() -> bool:
            action()
            self._pods.flush()
            return True

        is_taken = self._cluster.tell(lambda _: carry_out()) is not None
        self._pump()
        return is_taken

    def _hear(self, report: Callable[[], None]) -> None:
        """Nothing but this report tells of it: it must not be lost."""
        if not self._tell(report):
            self._unheard.append(report)

    def _take_all(self) -> None:
        """All that there is, and nothing else."""
        stores = self._watches
        for name in set(self._pods.rulebook.nodes) - {name for _, name in stores.nodes.objects}:
            self._pods.remove_node(name)
        for uid in set(self._pods.pods) - {pod.uid for pod in stores.pods.objects.values()}:
            self._pods.remove_pod(uid)
        for namespace in stores.namespaces.objects.values():
            self._pods.set_namespace(namespace)
        for node in stores.nodes.objects.values():
            self._pods.set_node(node)
        self._pods.prepare_commits()
        for volume in stores.volumes.objects.values():
            self._pods.set_volume(volume)
        for claim in stores.claims.objects.values():
            self._pods.set_claim(claim)
        self._pods.set_budgets(stores.budgets.objects.values())
        self._pods.set_groups(each for watch in stores.groups for each in watch.objects.values())
        for pod in _bound_first(stores.pods.objects.values()):
            self._pods.set_pod(pod)

    async def _follow(
        self, watch: ObjectWatch[Any], change: Callable[[ObjectChange[Any]], None]
    ) -> None:
        async for batch in watch:
            self._tell(lambda batch=batch: _apply(batch, change))  # type: ignore[misc]

    # What changes.

    def _node_changed(self, change: ObjectChange[Node]) -> None:
        if change.new is not None:
            self._pods.set_node(change.new)
        elif change.old is not None:
            self._pods.remove_node(change.old.name)

    def _namespace_changed(self, change: ObjectChange[Namespace]) -> None:
        if change.new is not None:
            self._pods.set_namespace(change.new)

    def _volume_changed(self, change: ObjectChange[PersistentVolume]) -> None:
        if change.new is not None:
            self._pods.set_volume(change.new)
        elif change.old is not None:
            self._pods.remove_volume(change.old.name)

    def _claim_changed(self, change: ObjectChange[PersistentVolumeClaim]) -> None:
        if change.new is not None:
            self._pods.set_claim(change.new)
        elif change.old is not None:
            self._pods.remove_claim(change.old.namespace, change.old.name)

    def _budget_changed(self, change: ObjectChange[PodDisruptionBudget]) -> None:
        if change.new is not None:
            self._pods.set_budget(change.new)
        elif change.old is not None:
            self._pods.remove_budget(change.old.namespace, change.old.name)

    def _group_changed(self, change: ObjectChange[PodGroup | CoschedulingGroup]) -> None:
        if change.new is not None:
            self._pods.set_group(change.new)
        elif change.old is not None:
            self._pods.remove_group(change.old)

    def _pod_changed(self, change: ObjectChange[Pod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            # A pod that has ended is no longer watched, but how it ended is told.
            if change.final is not None:
                self._pods.set_pod(change.final)
            self._pods.remove_pod(old.uid)
        if new is not None:
            self._pods.set_pod(new)

    # What is decided.

    def _pump(self) -> None:
        orders = self._pods.orders
        while orders:
            self.writer.carry_out(orders.popleft())
        refused = self._pods.refused
        while refused:
            tracked = refused.popleft()
            if tracked.obstacle and tracked.state is PodState.OUTSIDE:
                self.writer.note_waiting(tracked.pod, tracked.obstacle)

    def _turn_ended(self, seconds: float) -> None:
        world = self._world
        if world.life != self._life:
            self._life = world.life
            unheard, self._unheard = self._unheard, []
            for report in unheard:
                self._hear(report)
            self._tell(self._take_all)
        for job, explanation in world.take_explained().items():
            for tracked in self._pods.waits(job):
                pod = tracked.pod
                message = waiting_message(
                    explanation,
                    len(self._pods.rulebook.nodes),
                    world.host.view.machine_name,
                    () if self._pods.heeds_wishes_of(pod) else described_wishes(pod),
                    self._pods.rulebook.reasons(tracked.needs),
                    tracked.gang,
                )
                self.writer.note_waiting(pod, message)
            if self._pods.is_short(job):
                self._tell(lambda job=job: self._pods.found_short(job))  # type: ignore[misc]
        if self._pods.has_unformed:
            self._tell(lambda: None)
        self._pump()

    async def _look_again(self) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            if self._pods.needs_look:
                self._tell(self._pods.look_again)
            if self._overseer.annotates and self.writer.right.is_held:
                self._queue_notes.write()
            if self._pods.has_places:
                self._tell(self._pods.expire_places)
            self._pods.tell_groups()
            self._pump()
            if loop.time() - looked >= _KEPT_FOR:
                looked = loop.time()
                if self._pods.has_protected:
                    self._tell(self._pods.forget_budgets)


def _apply(batch: ChangeBatch[Any], change: Callable[[ObjectChange[Any]], None]) -> None:
    for each in batch.changes:
        change(each)


def _newest(pods: Iterable[Pod], watch: ObjectWatch[Pod]) -> list[Pod]:
    """Of what was listed and what is watched. Versions grow with time, and either may be ahead."""
    found = {pod.uid: pod for pod in watch.objects.values()}
    known = int(watch.resource_version or 0)
    for pod in pods:
        version, watched = int(pod.metadata.resource_version), found.get(pod.uid)
        # What is missing from the watch is gone, unless the watch has not come that far.
        newest = known if watched is None else int(watched.metadata.resource_version)
        if version > newest and has_not_ended(pod):
            found[pod.uid] = pod
    return list(found.values())


def _bound_first(pods: Iterable[Pod]) -> list[Pod]:
    """What is on a node counts before anything is decided; the rest in the order of creation."""
    return sorted(
        pods, key=lambda pod: (not pod.spec.node_name, str(pod.metadata.creation_timestamp))
    )
