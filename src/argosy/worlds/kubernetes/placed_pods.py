"""Where pods are: their jobs in the world, their claims, and the room they take."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from argosy.kubernetes.objects import Node, Pod
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.abandoned import AbandonedPods
from argosy.worlds.kubernetes.annotated_constraints import AnnotatedConstraints
from argosy.worlds.kubernetes.node_machines import AccountedResources
from argosy.worlds.kubernetes.nominations import Nominations
from argosy.worlds.kubernetes.pod_index import PodIndex
from argosy.worlds.kubernetes.pod_jobs import job_of_pod, kind_of
from argosy.worlds.kubernetes.priorities import HIGHEST, Precedences
from argosy.worlds.kubernetes.room import NodeRoom, least_of
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.second_looks import SecondLooks
from argosy.worlds.kubernetes.shapes import PodShapes
from argosy.worlds.kubernetes.tracked import (
    BindOrder,
    ClusterOrder,
    PodState,
    PodWorld,
    TrackedPod,
)
from argosy.worlds.kubernetes.volumes import KnownVolumes

#: Who placed what was there already.
KUBERNETES: Final = "kubernetes"


class PlacedPods:
    """`world` gives the live world, which may be built anew. `is_ours` says which pods are scheduled
    here, and `route` which kind of job a pod is."""

    def __init__(
        self,
        world: Callable[[], PodWorld],
        is_ours: Callable[[Pod], bool],
        route: Callable[[Pod], str] = kind_of,
    ) -> None:
        self._world = world
        self._is_ours = is_ours
        self._route = route
        self.rulebook = Rulebook(self._mark)
        self.annotated = AnnotatedConstraints()
        self.pods: dict[str, TrackedPod] = {}
        self.orders: deque[ClusterOrder] = deque()
        #: Pods whose status should say why they are not scheduled at all.
        self.refused: deque[TrackedPod] = deque()
        self._index = PodIndex()
        self._known_volumes = KnownVolumes()
        self._shapes = PodShapes(self.rulebook, self._known_volumes, is_ours)
        self._precedences = Precedences()
        self._room = NodeRoom()
        #: Pods that wait until others have left their node.
        self._held: dict[str, dict[str, None]] = defaultdict(dict)
        #: Pods on nodes that are not known yet.
        self._homeless: dict[str, dict[str, None]] = defaultdict(dict)
        #: Pods whose jobs ask for less than they do, because their nodes are overcommitted.
        self._clamped: dict[str, dict[str, None]] = defaultdict(dict)
        self.second_looks = SecondLooks(
            self.rulebook, self._room, lambda at: bool(self._held.get(at))
        )
        self._accounted = AccountedResources()
        self._nominations = Nominations(
            world,
            self._room,
            route,
            lambda priority: self._precedences.of(priority),
            self.know_resources,
            lambda node: self.second_looks.note([node]),
        )
        #: Jobs that are new, and not submitted yet.
        self._fresh: list[Job] = []
        #: Tasks that lost their machines for good.
        self._cancelled: list[tuple[str, int]] = []
        self._stale: list[TrackedPod] = []
        self._protected: dict[str, None] = {}
        self._resting: list[TrackedPod] = []
        self._abandoned = AbandonedPods()

    def _mark(self, attribute: str, group: str, sets: Sequence[str], is_given: bool) -> None:
        self._world().mark(attribute, group, sets, is_given)
        if is_given:
            self.second_looks.note(self.rulebook.members(group, sets))

    def heed_wishes(self, whether: Callable[[Pod], bool]) -> None:
        """Whether the scheduler of a pod heeds what it would rather have; none does before."""
        self._shapes.heeds_wishes = whether

    def heeds_wishes_of(self, pod: Pod) -> bool:
        return self._shapes.heeds_wishes(pod)

    def machine_of(self, node: Node) -> Machine:
        return self._accounted.machine_of(node)

    def free_on(self, node: str) -> dict[str, int]:
        """What pods leave on a node, also those that are leaving it."""
        return self._room.free(node)

    def know_resources(self, request: Resources) -> bool:
        """Whether all that is asked for can be accounted for; nodes tell of it from now on."""
        new = self._accounted.learn(request)
        for node in self.rulebook.nodes.values() if new else ():
            if any(name in node.status.allocatable for name in new or ()):
                capacity = self._accounted.capacity_of(node)
                self._room.set_capacity(node.name, capacity)
                self._world().fit_machine(node.name, capacity)
        return new is not None

    def _adopt(
        self, tracked: TrackedPod, node: str, instead_of: Sequence[tuple[str, int]] = ()
    ) -> None:
        """The pod is on the node, whoever put it there; tasks `instead_of` which it is there do not
        start."""
        tracked.node = node
        self._adopt_all([tracked], instead_of)

    def _adopt_anew(
        self, pods: Sequence[TrackedPod], instead_of: Sequence[tuple[str, int]] = ()
    ) -> None:
        """Pods that are on their nodes need other jobs there; tasks `instead_of` which they are there do
        not start."""
        self._submit_fresh()
        replaced = []
        for tracked in pods:
            self.rulebook.leave(tracked.uid)
            index = tracked.index
            if job := self._index.take_job(tracked):
                replaced.append((job, index))
        self._adopt_all(pods, instead_of, replaced)

    def _adopt_all(
        self,
        pods: Sequence[TrackedPod],
        instead_of: Sequence[tuple[str, int]] = (),
        replaced: Sequence[tuple[str, int]] = (),
    ) -> None:
        world, jobs = self._world(), []
        for tracked in pods:
            self.know_resources(tracked.request)
            tracked.state = PodState.BOUND
            self._take_room(tracked)
            self.rulebook.put(tracked.uid, tracked.needs, tracked.node)
            jobs.append((self._job(tracked, tracked.request), tracked.node))
        refusals = world.adopt(jobs, KUBERNETES, instead_of, replaced)
        for tracked, (job, node), refusal in zip(pods, jobs, refusals, strict=True):
            if refusal is not None:
                # The node is overcommitted: the pod gets what is left.
                least = least_of(tracked.request, world.free_on(node))
                job = self._job(tracked, least)
                [refusal] = world.adopt([(job, node)], KUBERNETES)
                self._clamped[node][tracked.uid] = None
            if refusal is None:
                self._index.give_job(tracked, job.id)

    def _job(self, tracked: TrackedPod, request: Resources) -> Job:
        pod = tracked.pod
        name = self._new_name(f"{pod.namespace}.{pod.name}")
        requires = tracked.required = dict(tracked.needs.attributes)
        job = job_of_pod(
            pod,
            name,
            self._route(pod),
            request,
            requires,
            self._precedences,
            tracked.needs.wishes,
        )
        job = self.annotated.applied(job, pod)
        return msgspec.structs.replace(job, precedence=HIGHEST) if tracked.is_protected else job

    def _new_name(self, base: str) -> str:
        name, number = base, 1
        while self._world().job_seq(name) is not None:
            number += 1
            name = f"{base}~{number}"
        return name

    def _submit(self, tracked: TrackedPod) -> None:
        job = self._job(tracked, tracked.request)
        tracked.state = PodState.WAITING
        self._index.give_job(tracked, job.id)
        self._fresh.append(job)
        if self._matters(tracked):
            # The next pod is decided on with this one in its place.
            self._submit_fresh()
            self._world().settle()

    def _matters(self, tracked: TrackedPod) -> bool:
        """Whether other pods matter to the pod, or it to them."""
        return not tracked.needs.is_plain or self.rulebook.is_counted(tracked.needs.counted)

    def _submit_fresh(self) -> None:
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            self._world().submit_all(fresh)

    def _count_anew(self, tracked: TrackedPod) -> None:
        """Pods on their way out do not count when others are spread."""
        self.rulebook.leave(tracked.uid)
        counted = self.rulebook.counted(tracked.pod, tracked.needs.counted.brings)
        needs = msgspec.structs.replace(tracked.needs, counted=counted)
        self.rulebook.put(tracked.uid, needs, tracked.node)

    def _undo_claim(self, tracked: TrackedPod) -> None:
        self.rulebook.leave(tracked.uid)
        self._held[tracked.node].pop(tracked.uid, None)
        if tracked.takes_room:
            tracked.takes_room = False
            self._room.give_back(tracked.node, tracked.request)
        tracked.node = ""

    def _cancel(self, tracked: TrackedPod) -> None:
        indices = [tracked.index] if self._index.has_others(tracked) else None
        job = self._index.take_job(tracked)
        if job:
            self._submit_fresh()
            self._world().cancel(job, indices)

    def _end_try(self, tracked: TrackedPod) -> None:
        number = self._index.take_try(tracked)
        if number is not None:
            self._world().gone(number)

    def _unclamp(self, node: str) -> None:
        """Room has become free on a node: what was promised may be claimed, and what was overcommitted
        may be accounted for in full."""
        self._nominations.look_at(node)
        for uid in list(self._clamped.pop(node, ())):
            tracked = self.pods.get(uid)
            if tracked is not None and tracked.state is PodState.BOUND:
                self._adopt_anew([tracked])

    def _take_room(self, tracked: TrackedPod) -> None:
        if not tracked.takes_room:
            tracked.takes_room = True
            self._room.take(tracked.node, tracked.request)

    def _bind(self, tracked: TrackedPod) -> None:
        tracked.state = PodState.BINDING
        self._take_room(tracked)
        self.orders.append(BindOrder(tracked.pod, tracked.node, tracked.annotations))
