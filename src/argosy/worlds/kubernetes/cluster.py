"""The pods and nodes of a Kubernetes cluster, as jobs and machines of a live world.

Kubernetes' API has the last word: what it says of a pod or node is an input (`set_pod`, `set_node`), and
what the world decides becomes an order, which somebody carries out and reports back on. A pod that is
bound counts where it is, whoever bound it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from argosy.kubernetes.objects import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.annotated_constraints import AnnotatedConstraints
from argosy.worlds.kubernetes.node_machines import AccountedResources, rules_of_node
from argosy.worlds.kubernetes.pod_index import PodIndex
from argosy.worlds.kubernetes.pod_jobs import exit_code_of, has_ended, job_of_pod, kind_of
from argosy.worlds.kubernetes.priorities import HIGHEST, Precedences
from argosy.worlds.kubernetes.room import NodeRoom, least_of
from argosy.worlds.kubernetes.rulebook import Rulebook, describe_obstacle
from argosy.worlds.kubernetes.shapes import PodShapes, has_changed
from argosy.worlds.kubernetes.tracked import (
    BindOrder,
    ClusterOrder,
    EvictOrder,
    NominateOrder,
    PodState,
    PodWorld,
    TrackedPod,
)
from argosy.worlds.kubernetes.unsupported import TOO_MANY_RESOURCES, obstacles_to_scheduling
from argosy.worlds.kubernetes.volumes import KnownVolumes

#: Who placed what was there already.
KUBERNETES: Final = "kubernetes"
#: Refusals in a row after which a pod rests.
MOST_REFUSALS: Final = 5


class PodCluster:
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
        self.rulebook = Rulebook(lambda *mark: world().mark(*mark))
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
        self._accounted = AccountedResources()
        #: Jobs that are new, and not submitted yet.
        self._fresh: list[Job] = []
        self._cancelled: list[str] = []
        self._stale: list[TrackedPod] = []
        self._protected: dict[str, None] = {}
        self._resting: list[TrackedPod] = []

    # What the API says.

    def set_priorities(self, known: Iterable[int]) -> None:
        """The priorities of the priority classes; only before there are pods."""
        self._precedences = Precedences(known)

    def set_namespace(self, namespace: Namespace) -> None:
        self.rulebook.set_namespace(namespace.name, namespace.metadata.labels)

    def set_volume(self, volume: PersistentVolume) -> None:
        is_new = volume.name not in self._known_volumes.volumes
        self._known_volumes.volumes[volume.name] = volume
        if is_new:
            self._look_again()

    def remove_volume(self, name: str) -> None:
        self._known_volumes.volumes.pop(name, None)

    def set_claim(self, claim: PersistentVolumeClaim) -> None:
        self._known_volumes.claims[claim.namespace, claim.name] = claim
        self._look_again(claim.namespace)

    def remove_claim(self, namespace: str, name: str) -> None:
        self._known_volumes.claims.pop((namespace, name), None)

    def _look_again(self, namespace: str = "") -> None:
        """Pods that had to wait for a volume may not have to any more."""
        for tracked in list(self.pods.values()):
            if tracked.obstacle and tracked.state is PodState.OUTSIDE:
                if namespace and tracked.pod.namespace != namespace:
                    continue
                self._renew(tracked)
                self._consider(tracked)

    def machine_of(self, node: Node) -> Machine:
        return self._accounted.machine_of(node)

    def set_node(self, node: Node) -> None:
        before, world = self.rulebook.nodes.get(node.name), self._world()
        machine = self.machine_of(node)
        self._room.set_capacity(node.name, machine.capacity)
        if before is None:
            if not world.has_machine(node.name):
                world.add_machine(machine)
            self.rulebook.set_node(node)
            for uid in list(self._homeless.pop(node.name, ())):
                self._adopt(self.pods[uid], node.name)
            return
        if before.status.allocatable != node.status.allocatable:
            world.fit_machine(node.name, machine.capacity)
        if before.metadata.labels != node.metadata.labels:
            world.relabel_machine(machine)
        if rules_of_node(before) != rules_of_node(node):
            self.rulebook.set_node(node)
        else:
            self.rulebook.nodes[node.name] = node
        self._release_held(node.name)

    def remove_node(self, name: str) -> None:
        if name not in self.rulebook.nodes:
            return
        there = self.rulebook.pods_on(name)
        self.rulebook.remove_node(name)
        self._held.pop(name, None)
        self._clamped.pop(name, None)
        if self._world().has_machine(name):
            self._world().remove_machine(name)
        self._world().settle()
        for uid in there:
            tracked = self.pods.get(uid)
            if tracked is not None and tracked.node == name:
                self._lose_node(tracked)
        self._room.remove(name)

    def _lose_node(self, tracked: TrackedPod) -> None:
        """The pod's node is gone. Should it come back, and the pod be there still, it counts again."""
        self._undo_claim(tracked)
        self._cancel(tracked)
        self._end_try(tracked)
        if tracked.pod.spec.node_name:
            tracked.state = PodState.OUTSIDE
            self._homeless[tracked.pod.spec.node_name][tracked.uid] = None

    def set_pod(self, pod: Pod) -> None:
        tracked = self.pods.get(pod.uid)
        if has_ended(pod):
            if tracked is not None:
                self._over(tracked, pod)
            return
        if tracked is None:
            if not pod.spec.node_name and not self._is_ours(pod):
                return
            tracked = self.pods[pod.uid] = TrackedPod(pod, self._shapes.of(pod))
        before, tracked.pod = tracked.pod, pod
        if has_changed(before, pod):
            self._renew(tracked)
        if pod.spec.node_name:
            self._seen_on_node(tracked, before)
        elif tracked.state in _UNDECIDED and not self._is_ours(pod):
            # Its scheduler is not in the fleet any more.
            self._drop(tracked)
        elif pod.metadata.deletion_timestamp is not None:
            self._drop(tracked)
        elif tracked.state is PodState.OUTSIDE:
            self._consider(tracked)

    def remove_pod(self, uid: str, *, by_itself: bool = False) -> None:
        """The pod is gone, perhaps because it has ended by itself: nobody says how."""
        tracked = self.pods.get(uid)
        if tracked is None:
            return
        if by_itself:
            self._end(tracked, 0, "")
        self._drop(tracked)

    # How pods come and go.

    def _seen_on_node(self, tracked: TrackedPod, before: Pod) -> None:
        node = tracked.pod.spec.node_name
        if tracked.state is PodState.LEAVING:
            return
        if tracked.node == node and tracked.job:
            tracked.state = PodState.BOUND
            self._take_room(tracked)
            is_leaving = tracked.pod.metadata.deletion_timestamp is not None
            if is_leaving and before.metadata.deletion_timestamp is None:
                self._count_anew(tracked)
            return
        self._undo_claim(tracked)
        self._cancel(tracked)
        if node not in self.rulebook.nodes:
            self._homeless[node][tracked.uid] = None
            return
        self._adopt(tracked, node)

    def _renew(self, tracked: TrackedPod) -> None:
        """What the pod needs may have changed: its labels, tolerations or requests, or its volumes."""
        before, tracked.shape = tracked.shape, self._shapes.of(tracked.pod)
        if tracked.takes_room:
            self._room.give_back(tracked.node, before.request)
            self._room.take(tracked.node, tracked.request)
        self._shapes.release(before)
        if tracked.shape is before:
            return
        if tracked.state is PodState.WAITING:
            self._cancel(tracked)
            tracked.state = PodState.OUTSIDE
            self._consider(tracked)
        elif tracked.state is PodState.BOUND and tracked.request != before.request:
            self._adopt_anew(tracked)
            self._release_held(tracked.node)
        elif tracked.node:
            self._count_anew(tracked)

    def _count_anew(self, tracked: TrackedPod) -> None:
        """Pods on their way out do not count when others are spread."""
        self.rulebook.leave(tracked.uid)
        counted = self.rulebook.counted(tracked.pod, tracked.needs.counted.brings)
        needs = msgspec.structs.replace(tracked.needs, counted=counted)
        self.rulebook.put(tracked.uid, needs, tracked.node)

    def _adopt(self, tracked: TrackedPod, node: str, instead_of: Sequence[int] = ()) -> None:
        """The pod is on the node, whoever put it there; tries `instead_of` which it is do not start."""
        world = self._world()
        self.know_resources(tracked.request)
        tracked.state, tracked.node = PodState.BOUND, node
        self._take_room(tracked)
        self.rulebook.put(tracked.uid, tracked.needs, node)
        job = self._job(tracked, tracked.request)
        refusal = world.adopt(job, node, KUBERNETES, instead_of)
        if refusal is not None:
            # The node is overcommitted: the pod gets what is left.
            least = least_of(tracked.request, world.free_on(node))
            job = self._job(tracked, least)
            refusal = world.adopt(job, node, KUBERNETES)
            self._clamped[node][tracked.uid] = None
        if refusal is None:
            self._index.give_job(tracked, job.id)

    def _job(self, tracked: TrackedPod, request: Resources) -> Job:
        pod = tracked.pod
        base = f"{pod.namespace}.{pod.name}"
        name, number = base, 1
        # A name that the server has made up does not come again, except for what the world has seen.
        is_new = bool(pod.metadata.generate_name) and not tracked.required
        while not is_new and self._world().job_seq(name) is not None:
            number += 1
            name = f"{base}~{number}"
        requires = tracked.required = dict(tracked.needs.attributes)
        job = job_of_pod(pod, name, self._route(pod), request, requires, self._precedences)
        job = self.annotated.applied(job, pod)
        return msgspec.structs.replace(job, precedence=HIGHEST) if tracked.is_protected else job

    def _consider(self, tracked: TrackedPod) -> None:
        """A pod without a node: submits it, unless something stands in the way."""
        pod = tracked.pod
        if pod.spec.scheduling_gates:
            return
        known = self._known_volumes
        tracked.obstacle = obstacles_to_scheduling(pod, known) or self.annotated.obstacle(pod)
        if not tracked.obstacle and not self.know_resources(tracked.request):
            tracked.obstacle = TOO_MANY_RESOURCES
        if tracked.obstacle:
            self.refused.append(tracked)
            return
        self._submit(tracked)

    def _submit(self, tracked: TrackedPod) -> None:
        world = self._world()
        job = self._job(tracked, tracked.request)
        tracked.state = PodState.WAITING
        self._index.give_job(tracked, job.id)
        self._fresh.append(job)
        if not tracked.needs.is_plain or self.rulebook.is_counted(tracked.needs.counted):
            # The next pod is decided on with this one in its place.
            self.flush()
            world.settle()

    def flush(self) -> None:
        """Submits what is new: to be called after changes."""
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            self._world().submit_all(fresh)

    def know_resources(self, request: Resources) -> bool:
        """Whether all that is asked for can be accounted for; nodes tell of it from now on."""
        new = self._accounted.learn(request)
        for node in self.rulebook.nodes.values() if new else ():
            if any(name in node.status.allocatable for name in new or ()):
                capacity = self._accounted.capacity_of(node)
                self._room.set_capacity(node.name, capacity)
                self._world().fit_machine(node.name, capacity)
        return new is not None

    def _over(self, tracked: TrackedPod, pod: Pod) -> None:
        """The pod has ended, and its node is free of it, though the object is still there."""
        tracked.pod = pod
        status = 0 if pod.status.phase == "Succeeded" else exit_code_of(pod)
        self._end(tracked, status, "" if status == 0 else (pod.status.reason or "failed"))
        self._drop(tracked)

    def _end(self, tracked: TrackedPod, status: int, reason: str) -> None:
        """The job ends as the pod has, if it is one that can."""
        can_end = tracked.state is PodState.BOUND and tracked.pod.spec.restart_policy != "Always"
        if tracked.number is not None and tracked.job and can_end:
            self._index.take_job(tracked)
            self._world().finish(tracked.number, status, reason)

    def _drop(self, tracked: TrackedPod) -> None:
        """Nothing is left of the pod."""
        node = tracked.node
        self.pods.pop(tracked.uid, None)
        self._homeless[tracked.pod.spec.node_name].pop(tracked.uid, None)
        self._clamped[node].pop(tracked.uid, None)
        self._undo_claim(tracked)
        self._shapes.release(tracked.shape)
        self._cancel(tracked)
        self._end_try(tracked)
        if node:
            self._release_held(node)
            self._unclamp(node)

    def _end_try(self, tracked: TrackedPod) -> None:
        number = self._index.take_try(tracked)
        if number is not None:
            self._world().gone(number)

    def _undo_claim(self, tracked: TrackedPod) -> None:
        self.rulebook.leave(tracked.uid)
        self._held[tracked.node].pop(tracked.uid, None)
        if tracked.takes_room:
            tracked.takes_room = False
            self._room.give_back(tracked.node, tracked.request)
        tracked.node = ""

    def _cancel(self, tracked: TrackedPod) -> None:
        job = self._index.take_job(tracked)
        if job:
            self.flush()
            self._world().cancel(job)

    def _unclamp(self, node: str) -> None:
        """Room has become free on a node: what was overcommitted may be accounted for in full."""
        for uid in list(self._clamped.pop(node, ())):
            tracked = self.pods.get(uid)
            if tracked is not None and tracked.state is PodState.BOUND:
                self._adopt_anew(tracked)

    # Room on nodes.

    def _take_room(self, tracked: TrackedPod) -> None:
        if not tracked.takes_room:
            tracked.takes_room = True
            self._room.take(tracked.node, tracked.request)

    def _release_held(self, node: str) -> None:
        for uid in list(self._held.get(node, ())):
            tracked = self.pods[uid]
            if not self._room.fits(node, tracked.request):
                return
            del self._held[node][uid]
            self._bind(tracked)

    def _bind(self, tracked: TrackedPod) -> None:
        tracked.state = PodState.BINDING
        self._take_room(tracked)
        self.orders.append(BindOrder(tracked.pod, tracked.node))

    # What the world decides.

    def claimed(self, job: str, node: str) -> bool:
        """A scheduler has chosen a node for a pod; returns whether it may go there."""
        tracked = self._index.of_job(job)
        if tracked is None or tracked.state is not PodState.WAITING:
            return True
        obstacle = self.rulebook.forbidding(tracked.needs, node)
        if obstacle is not None:
            tracked.obstacle = describe_obstacle(obstacle)
            tracked.refusals += 1
            if tracked.required != tracked.needs.attributes or tracked.refusals >= MOST_REFUSALS:
                self._stale.append(tracked)
            return False
        tracked.refusals = 0
        tracked.state, tracked.node = PodState.CLAIMED, node
        self.rulebook.put(tracked.uid, tracked.needs, node)
        return True

    def pushed_off(self, job: str, why: Why) -> None:
        """A pod has lost its node, by a decision or because it was refused."""
        tracked = self._index.of_job(job)
        if tracked is None:
            return
        if tracked.state in (PodState.CLAIMED, PodState.HELD):
            self._undo_claim(tracked)
            tracked.state = PodState.WAITING
            self._index.take_try(tracked)
        elif tracked.state in (PodState.BINDING, PodState.BOUND):
            self._cancelled.append(tracked.job)
            if tracked.node in self.rulebook.nodes:
                tracked.state = PodState.LEAVING
                self.orders.append(EvictOrder(tracked.pod, why))
        if why in _UNTOLD and tracked.state is PodState.WAITING:
            self._stale.append(tracked)

    def follow_up(self) -> None:
        """What the last decisions entail for jobs: to be called after each of them."""
        cancelled, self._cancelled = self._cancelled, []
        for job in cancelled:
            tracked = self._index.of_job(job)
            if tracked is not None:
                self._cancel(tracked)
        stale, self._stale = self._stale, []
        for tracked in stale:
            if not tracked.job or tracked.state is not PodState.WAITING:
                continue
            self._cancel(tracked)
            if tracked.refusals >= MOST_REFUSALS:
                # A scheduler that insists on a node that is forbidden must not keep the others waiting.
                tracked.state, tracked.refusals = PodState.OUTSIDE, 0
                self._resting.append(tracked)
            else:
                self._submit(tracked)
        self.flush()

    def look_again(self) -> None:
        """To be called now and then: pods that were refused too often get another chance."""
        resting, self._resting = self._resting, []
        for tracked in resting:
            if tracked.uid in self.pods and tracked.state is PodState.OUTSIDE:
                self._consider(tracked)

    def launch(self, number: int, job: str) -> bool:
        """A try begins: the pod is bound as soon as there is room. False if there is no such pod."""
        tracked = self._index.of_job(job)
        if tracked is None:
            return False
        self._index.give_try(tracked, number)
        if tracked.state is PodState.CLAIMED:
            if self._room.fits(tracked.node, tracked.request):
                self._bind(tracked)
            else:
                tracked.state = PodState.HELD
                self._held[tracked.node][tracked.uid] = None
                self.orders.append(NominateOrder(tracked.pod, tracked.node))
        return True

    # How orders went.

    def bound(self, uid: str) -> None:
        tracked = self.pods.get(uid)
        if tracked is not None and tracked.state is PodState.BINDING:
            tracked.state = PodState.BOUND

    def bind_failed(self, uid: str) -> None:
        """Kubernetes has refused; the pod is placed anew, unless it is gone."""
        tracked = self.pods.get(uid)
        if tracked is None or tracked.state is not PodState.BINDING:
            return
        node = tracked.node
        if not node:
            # Its node is gone.
            tracked.state = PodState.OUTSIDE
            self._consider(tracked)
            return
        number, tracked.state = tracked.number, PodState.CLAIMED
        if number is not None:
            self._world().refuse_try(number, Why.STALE)
        self._release_held(node)

    def eviction_failed(self, uid: str) -> None:
        """A budget keeps a pod that was to leave: it counts again, nobody preempts it for now, and who
        was to take its place looks on."""
        tracked = self.pods.get(uid)
        if tracked is None or tracked.state is not PodState.LEAVING:
            return
        giving_way = []
        for other in list(self._held.pop(tracked.node, ())):
            waiting = self.pods[other]
            waiting.state = PodState.CLAIMED
            if waiting.number is not None:
                giving_way.append(waiting.number)
        number = self._index.take_try(tracked)
        tracked.is_protected = True
        self._protected[uid] = None
        self._adopt_anew(tracked, giving_way)
        self._world().settle()
        if number is not None:
            self._world().gone(number)

    def forget_budgets(self) -> None:
        """To be called now and then: pods that budgets have kept may be told to leave again."""
        protected, self._protected = self._protected, {}
        for uid in protected:
            tracked = self.pods.get(uid)
            if tracked is not None:
                tracked.is_protected = False
                if tracked.state is PodState.BOUND:
                    self._adopt_anew(tracked)

    @property
    def has_protected(self) -> bool:
        return bool(self._protected)

    def _adopt_anew(self, tracked: TrackedPod, instead_of: Sequence[int] = ()) -> None:
        """A pod that is on its node needs another job there."""
        self.rulebook.leave(tracked.uid)
        self._cancel(tracked)
        self._adopt(tracked, tracked.node, instead_of)

    def of_job(self, job: str) -> TrackedPod | None:
        return self._index.of_job(job)

    @property
    def has_resting(self) -> bool:
        return bool(self._resting)

    def has_try(self, number: int) -> bool:
        return self._index.of_try(number) is not None

    def is_leaving(self, number: int) -> bool:
        """Whether the pod of a try is on its node, and has been told to leave it."""
        tracked = self._index.of_try(number)
        return tracked is not None and tracked.state is PodState.LEAVING

    def recover(self, known: Collection[str], claims: Mapping[str, str]) -> None:
        """The world has been built anew, before it has decided anything: it knows only these jobs, and
        which of them have a machine. What is bound, or about to be, stays where it is; all else is
        decided anew."""
        world = self._world()
        for name, node in self.rulebook.nodes.items():
            if world.has_machine(name):
                world.fit_machine(name, self._accounted.capacity_of(node))
            else:
                world.add_machine(self.machine_of(node))
        self.rulebook.mark_all()
        for job in self._cancelled:
            if (cancelled := self._index.of_job(job)) is not None:
                self._index.take_job(cancelled)
        self._cancelled, self._fresh = [], []
        lost = []
        for tracked in self.pods.values():
            if not tracked.job:
                continue
            has_claim = bool(tracked.node) and claims.get(tracked.job) == tracked.node
            is_placed = tracked.state in _PLACED
            if tracked.state in (PodState.CLAIMED, PodState.HELD) and not has_claim:
                self._undo_claim(tracked)
                tracked.state = PodState.WAITING
            if tracked.job not in known or (is_placed and not has_claim):
                self._index.take_job(tracked)
                lost.append(tracked)
        for job in known:
            if self._index.of_job(job) is None:
                world.cancel(job)
        # Those with a node first: what is submitted is decided on at once.
        for tracked in sorted(lost, key=lambda each: each.state not in _PLACED):
            if tracked.state in _PLACED:
                state = tracked.state
                self.rulebook.leave(tracked.uid)
                self._adopt(tracked, tracked.node)
                tracked.state = state
            else:
                self._submit(tracked)
        self.flush()


#: Why claims are pushed off without their schedulers being told.
_UNTOLD: Final = (Why.PREEMPTED, Why.MACHINE_GONE, Why.NO_ROOM)
_PLACED: Final = (PodState.BOUND, PodState.BINDING)
_UNDECIDED: Final = (PodState.OUTSIDE, PodState.WAITING)
