"""The pods and nodes of a Kubernetes cluster, as jobs and machines of a live world.

Kubernetes' API has the last word: what it says of a pod or node is an input (`set_pod`, `set_node`), and
what the world decides becomes an order, which somebody carries out and reports back on. A pod that is
bound counts where it is, whoever bound it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from argosy.kubernetes.objects import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.budgeted_pods import BudgetedPods
from argosy.worlds.kubernetes.node_machines import rules_of_node
from argosy.worlds.kubernetes.pod_jobs import exit_code_of, has_ended
from argosy.worlds.kubernetes.priorities import Precedences
from argosy.worlds.kubernetes.rulebook import describe_obstacle
from argosy.worlds.kubernetes.shapes import has_changed
from argosy.worlds.kubernetes.tracked import (
    PLACED,
    SENT,
    UNDECIDED,
    UNTOLD,
    NominateOrder,
    PodState,
    TrackedPod,
)
from argosy.worlds.kubernetes.unsupported import TOO_MANY_RESOURCES, obstacles_to_scheduling

#: Why a node is refused whose room another scheduler has promised to a pod of its own.
PROMISED: Final = "the node's room is promised to another pod"
#: Refusals in a row after which a pod rests.
MOST_REFUSALS: Final = 5


class PodCluster(BudgetedPods):
    """All that is known of the cluster, with its inputs and outputs."""

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

    def set_node(self, node: Node) -> None:
        before, world = self.rulebook.nodes.get(node.name), self._world()
        machine = self.machine_of(node)
        self._room.set_capacity(node.name, machine.capacity)
        if before is None:
            if not world.has_machine(node.name):
                world.add_machine(machine)
            self.rulebook.set_node(node)
            self._nominations.look_at(node.name)
            self.second_looks.note([node.name])
            for uid in list(self._homeless.pop(node.name, ())):
                self._bring_home(self.pods[uid], node.name)
            return
        if before.status.allocatable != node.status.allocatable:
            world.fit_machine(node.name, machine.capacity)
            self._unclamp(node.name)
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
        """The pod's node is gone. Should it come back, and the pod be there still, it counts again; so
        does one that is being bound, for Kubernetes binds it whether the node is there or not."""
        node = tracked.node
        self._undo_claim(tracked)
        self._cancel(tracked)
        self._end_try(tracked)
        if tracked.pod.spec.node_name:
            tracked.state = PodState.OUTSIDE
            self._homeless[tracked.pod.spec.node_name][tracked.uid] = None
        elif tracked.state in SENT:
            tracked.sent_to = node
            self._homeless[node][tracked.uid] = None

    def _bring_home(self, tracked: TrackedPod, node: str) -> None:
        """The pod's node has come back."""
        state = PodState.BOUND if tracked.pod.spec.node_name else tracked.state
        tracked.sent_to = ""
        self._adopt(tracked, node)
        tracked.state = state

    def _forget_home(self, tracked: TrackedPod) -> None:
        """The pod does not count on a node that may come back."""
        for node in (tracked.sent_to, tracked.pod.spec.node_name):
            self._homeless[node].pop(tracked.uid, None)
        tracked.sent_to = ""

    def set_pod(self, pod: Pod) -> None:
        tracked = self.pods.get(pod.uid)
        if has_ended(pod):
            self._nominations.remove(pod.uid)
            if tracked is not None:
                self._over(tracked, pod)
            return
        if tracked is None:
            if not pod.spec.node_name:
                if not self._is_ours(pod):
                    self._nominations.set_pod(pod)
                    return
                # Until this replica leads, all pods are somebody else's.
                self._nominations.remove(pod.uid)
            tracked = self.pods[pod.uid] = TrackedPod(pod, self._shapes.of(pod))
        before, tracked.pod = tracked.pod, pod
        self._join(tracked)
        if has_changed(before, pod):
            self._renew(tracked)
        if pod.spec.node_name:
            self._seen_on_node(tracked, before)
        elif tracked.state in UNDECIDED and not self._is_ours(pod):
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
            self._nominations.remove(uid)
            return
        if by_itself:
            self._end(tracked, 0, "")
        self._drop(tracked)

    # How pods come and go.

    def _seen_on_node(self, tracked: TrackedPod, before: Pod) -> None:
        node, gang = tracked.pod.spec.node_name, tracked.gang
        if gang is not None:
            gang.able.pop(tracked.uid, None)
            self._unformed[gang] = None
            if gang.is_placing(tracked):
                self._break_up(gang, without=tracked)
        if tracked.state is PodState.LEAVING:
            return
        self._forget_home(tracked)
        if tracked.node == node and tracked.job:
            tracked.state = PodState.BOUND
            self._take_room(tracked)
            is_leaving = tracked.pod.metadata.deletion_timestamp is not None
            if is_leaving and before.metadata.deletion_timestamp is None:
                self._count_anew(tracked)
            return
        self._undo_claim(tracked)
        self._cancel(tracked)
        promise = self._nominations.of(tracked.uid)
        if node not in self.rulebook.nodes:
            self._homeless[node][tracked.uid] = None
        elif promise is None or promise.node != node:
            self._adopt(tracked, node)
        else:
            self._adopt(tracked, node, promise.tasks)
            # Whoever was quicker is told that the room was promised, before the promise ends.
            self._world().settle()
            self._unclamp(node)
        if promise is not None:
            self._nominations.remove(tracked.uid)

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
            if tracked.gang is not None and tracked.gang.is_placing(tracked):
                self._break_up(tracked.gang)
            else:
                self._cancel(tracked)
                tracked.state = PodState.OUTSIDE
                self._consider(tracked)
        elif tracked.gang is not None and tracked.gang.is_placing(tracked):
            self._break_up(tracked.gang)
        elif tracked.state is PodState.BOUND and tracked.request != before.request:
            self._adopt_anew([tracked])
            self._release_held(tracked.node)
        elif tracked.node:
            self._count_anew(tracked)

    def _consider(self, tracked: TrackedPod) -> None:
        """A pod without a node: submits it, unless something stands in the way."""
        pod = tracked.pod
        if pod.spec.scheduling_gates:
            return
        known = self._known_volumes
        obstacle = obstacles_to_scheduling(pod, known) or self.annotated.obstacle(pod)
        if not obstacle and not self.know_resources(tracked.request):
            obstacle = TOO_MANY_RESOURCES
        if obstacle:
            tracked.obstacle = obstacle
            self.refused.append(tracked)
            if tracked.gang is not None:
                tracked.gang.able.pop(tracked.uid, None)
        elif tracked.gang is not None:
            self._await_others(tracked, tracked.gang)
        else:
            tracked.obstacle = ""
            self._submit(tracked)

    def _submit_anew(self, tracked: TrackedPod) -> None:
        """A pod that waits needs another job, or its group does."""
        gang = tracked.gang
        if gang is not None and gang.is_placing(tracked):
            self._break_up(gang)
            return
        self._cancel(tracked)
        if gang is not None:
            self._await_others(tracked, gang)
        else:
            self._submit(tracked)

    def _over(self, tracked: TrackedPod, pod: Pod) -> None:
        """The pod has ended, and its node is free of it, though the object is still there."""
        tracked.pod = pod
        status = 0 if pod.status.phase == "Succeeded" else exit_code_of(pod)
        if tracked.gang is not None and status == 0:
            tracked.gang.succeeded += 1
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
        self._leave(tracked)
        node = tracked.node
        self.pods.pop(tracked.uid, None)
        self._abandoned.forget(tracked.uid)
        self._forget_home(tracked)
        self._clamped[node].pop(tracked.uid, None)
        self._undo_claim(tracked)
        self._shapes.release(tracked.shape)
        self._cancel(tracked)
        self._end_try(tracked)
        if node:
            self._release_held(node)
            self._unclamp(node)

    # What the world decides.

    def claimed(self, job: str, node: str, index: int = 0) -> bool:
        """A scheduler has chosen a node for a pod; returns whether it may go there."""
        tracked = self._index.of_job(job, index)
        if tracked is None or tracked.state is not PodState.WAITING:
            return True
        obstacle = self.rulebook.forbidding(tracked.needs, node)
        is_promised = not self._nominations.leaves_room(tracked, node)
        if obstacle is not None or is_promised:
            tracked.obstacle = describe_obstacle(obstacle) if obstacle is not None else PROMISED
            tracked.refusals += 1
            if tracked.required != tracked.needs.attributes or tracked.refusals >= MOST_REFUSALS:
                self._stale.append(tracked)
            return False
        tracked.refusals = 0
        tracked.state, tracked.node = PodState.CLAIMED, node
        self.rulebook.put(tracked.uid, tracked.needs, node)
        return True

    def pushed_off(self, job: str, why: Why, index: int = 0) -> None:
        """A pod has lost its node, by a decision or because it was refused."""
        tracked = self._index.of_job(job, index)
        if tracked is None:
            self._nominations.lose(job)
            return
        if tracked.state in (PodState.CLAIMED, PodState.HELD):
            self._undo_claim(tracked)
            tracked.state = PodState.WAITING
            self._index.take_try(tracked)
            if tracked.gang is not None and tracked.gang.is_placing(tracked):
                self._broken[tracked.gang] = None
        elif tracked.state in (PodState.BINDING, PodState.BOUND):
            self._cancelled.append((tracked.job, tracked.index))
            if tracked.node in self.rulebook.nodes:
                tracked.state = PodState.LEAVING
                self._leaving.append((tracked, why))
        if why in UNTOLD and tracked.state is PodState.WAITING:
            self._stale.append(tracked)

    def follow_up(self) -> None:
        """What the last decisions entail for jobs: to be called after each of them."""
        cancelled, self._cancelled = self._cancelled, []
        for task in cancelled:
            tracked = self._index.of_job(*task)
            if tracked is not None:
                self._cancel(tracked)
        self._order_evictions()
        for gang in list(self._broken):
            self._break_up(gang)
        self._nominations.follow_up()
        stale, self._stale = self._stale, []
        for tracked in stale:
            if not tracked.job or tracked.state is not PodState.WAITING:
                continue
            if tracked.refusals < MOST_REFUSALS:
                self._submit_anew(tracked)
                continue
            # A scheduler that insists on a node that is forbidden must not keep the others waiting.
            tracked.refusals = 0
            if tracked.gang is not None and tracked.gang.is_placing(tracked):
                self._rest(tracked.gang, tracked.obstacle)
                continue
            self._cancel(tracked)
            tracked.state = PodState.OUTSIDE
            self._resting.append(tracked)
        self.flush()

    def look_again(self) -> None:
        """To be called now and then: pods that were refused too often get another chance, and those for
        which there may be room by now."""
        resting, self._resting = self._resting, []
        for tracked in resting:
            if tracked.uid in self.pods and tracked.state is PodState.OUTSIDE:
                self._consider(tracked)
        self._wake_gangs()
        for tracked in self._abandoned.wake():
            if tracked.state is PodState.WAITING and self._world().is_over(tracked.job):
                self._submit_anew(tracked)
        if self.second_looks.are_due:
            for tracked in self.second_looks.take(self._queued()):
                self._submit_anew(tracked)

    def _queued(self) -> dict[str, str]:
        """The nodes in whose queues jobs wait; each of these deserves a second look as well."""
        queues = {}
        for node, entries in self._world().queued().items():
            for job, _ in entries:
                queues[job] = node
                self.waits(job)
        return queues

    def waits(self, job: str) -> list[TrackedPod]:
        """There is no node for the pods of this job, or none with room, or its scheduler has given them
        up. Returns those of which it is still so."""
        waiting = [each for each in self._index.all_of_job(job) if each.state is PodState.WAITING]
        is_over = bool(waiting) and self._world().is_over(job)
        for tracked in waiting:
            self.second_looks.add(tracked)
            if is_over:
                self._abandoned.add(tracked)
        return waiting

    def launch(self, number: int, job: str, index: int = 0) -> bool:
        """A try begins: the pod is bound as soon as there is room. False if there is no such pod."""
        tracked = self._index.of_job(job, index)
        if tracked is None:
            return self._nominations.launch(job)
        self._index.give_try(tracked, number)
        if tracked.state is PodState.CLAIMED:
            if self._room.fits(tracked.node, tracked.request):
                self._bind_ready(tracked)
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
        if tracked is None or tracked.pod.spec.node_name:
            return
        node, number = tracked.node, tracked.number
        if tracked.state not in (PodState.BINDING, PodState.LEAVING):
            return
        if tracked.state is PodState.LEAVING or tracked.is_protected or number is None:
            # Its node is gone, or it was told to leave before it was there, and perhaps kept: its job is
            # not one to wait with.
            tracked.is_protected = False
            self._forget_home(tracked)
            self._undo_claim(tracked)
            self._cancel(tracked)
            self._end_try(tracked)
            tracked.state = PodState.OUTSIDE
            self._release_held(node)
            self._consider(tracked)
            return
        tracked.state = PodState.CLAIMED
        self._world().refuse_try(number, Why.STALE)
        self._release_held(node)

    def of_job(self, job: str, index: int = 0) -> TrackedPod | None:
        return self._index.of_job(job, index)

    def all_of_job(self, job: str) -> list[TrackedPod]:
        return list(self._index.all_of_job(job))

    @property
    def needs_look(self) -> bool:
        is_resting = self._resting or self._resting_gangs or self._unformed
        return bool(is_resting) or self._abandoned.are_resting or self.second_looks.are_due

    def has_try(self, number: int) -> bool:
        return self._index.of_try(number) is not None

    def is_leaving(self, number: int) -> bool:
        """Whether the pod of a try is on its node, and has been told to leave it."""
        tracked = self._index.of_try(number)
        return tracked is not None and tracked.state is PodState.LEAVING

    def recover(self, known: Mapping[str, int], claims: Mapping[tuple[str, int], str]) -> None:
        """The world has been built anew, before it has decided anything: it knows only these jobs, with
        so many tasks each, and which of the tasks have a machine. What is bound, or about to be, stays
        where it is; all else is decided anew."""
        world = self._world()
        for name, node in self.rulebook.nodes.items():
            if world.has_machine(name):
                world.fit_machine(name, self._accounted.capacity_of(node))
            else:
                world.add_machine(self.machine_of(node))
        self.rulebook.mark_all()
        for task in self._cancelled:
            if (cancelled := self._index.of_job(*task)) is not None:
                self._index.take_job(cancelled)
        self._cancelled, self._fresh = [], []
        self._recover_gangs()
        lost = []
        for tracked in self.pods.values():
            if not tracked.job:
                continue
            machine = claims.get((tracked.job, tracked.index))
            has_claim = bool(tracked.node) and machine == tracked.node
            is_placed = tracked.state in PLACED
            if tracked.state in (PodState.CLAIMED, PodState.HELD) and not has_claim:
                self._undo_claim(tracked)
                tracked.state = PodState.WAITING
            if tracked.job not in known or (is_placed and not has_claim):
                self._index.take_job(tracked)
                lost.append(tracked)
        for job, tasks in known.items():
            mine = {each.index for each in self._index.all_of_job(job)}
            if len(mine) < tasks:
                world.cancel(job, [index for index in range(tasks) if index not in mine])
        self._nominations.begin_anew()
        # Those with a node first: what is submitted is decided on at once.
        for tracked in sorted(lost, key=lambda each: each.state not in PLACED):
            if tracked.state in PLACED:
                state = tracked.state
                self.rulebook.leave(tracked.uid)
                self._adopt(tracked, tracked.node)
                tracked.state = state
            elif tracked.gang is not None:
                self._await_others(tracked, tracked.gang)
            else:
                self._submit(tracked)
        self.flush()
