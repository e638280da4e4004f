"""Pods that engines move while they run.

A pod cannot be moved: it is evicted, and its controller makes another one. So room is kept on the node
that was chosen, and the pod that takes the place of the evicted one goes there, without being decided on
again. The job that has moved keeps the room: to the world it runs there already.

Only pods that somebody makes anew are moved: those with a controller, and those that say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.placed_pods import KUBERNETES
from argosy.worlds.kubernetes.pod_jobs import PREFIX, kind_of
from argosy.worlds.kubernetes.tracked import EvictOrder, PodState, PodWorld, TrackedPod

#: The annotation with which a pod says whether it may be moved: "true" or "false".
MOVABLE: Final = PREFIX + "movable"
#: For how many seconds room is kept after a moved pod has left its node.
KEPT_FOR: Final = 60
#: Controllers whose pods belong to one node.
_OF_ONE_NODE: Final = ("DaemonSet", "Node")


def may_move(pod: Pod) -> bool:
    said = pod.metadata.annotations.get(MOVABLE, "").lower()
    if said in ("true", "false"):
        return said == "true"
    owner = next((each for each in pod.metadata.owner_references if each.controller), None)
    return owner is not None and owner.kind not in _OF_ONE_NODE


def _maker(pod: Pod) -> str:
    """What pods that take each other's place have in common."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            return owner.uid
    return f"{pod.namespace}/{pod.name}"


class KeptPlace(msgspec.Struct):
    """Room for the pod that will take the place of `uid`."""

    uid: str
    maker: str
    request: Resources
    node: str = ""
    #: The try of the job that keeps it, which begins when the moved pod is gone.
    number: int | None = None
    #: Seconds since the moved pod has left.
    waited: int = 0


class RelocatingCluster(PodCluster):
    """A cluster whose engines may move pods that run."""

    def __init__(
        self,
        world: Callable[[], PodWorld],
        is_ours: Callable[[Pod], bool],
        route: Callable[[Pod], str] = kind_of,
        obstacle_to_groups: Callable[[str], str] = lambda kind: "",
    ) -> None:
        super().__init__(world, is_ours, route, obstacle_to_groups)
        #: By the job that keeps the room.
        self._places: dict[str, KeptPlace] = {}
        self._given_up: list[str] = []
        #: Pods that were put where room was kept for them.
        self.moved = 0

    @property
    def has_places(self) -> bool:
        return bool(self._places)

    def pushed_off(self, job: str, why: Why, index: int = 0) -> None:
        tracked = self._index.of_job(job, index)
        if tracked is None and job in self._places:
            if why is not Why.MOVED:
                self._give_up(job)
            return
        if tracked is None or why is not Why.MOVED or not self._can_move(tracked):
            super().pushed_off(job, why, index)
            return
        self._index.take_job(tracked)
        tracked.state = PodState.LEAVING
        self.orders.append(EvictOrder(tracked.pod, why))
        self._places[job] = KeptPlace(tracked.uid, _maker(tracked.pod), tracked.request)

    def _can_move(self, tracked: TrackedPod) -> bool:
        """Its own job keeps the room, so a pod that shares one with others is only evicted."""
        if self._index.has_others(tracked):
            return False
        is_there = tracked.state in (PodState.BINDING, PodState.BOUND)
        return is_there and tracked.node in self.rulebook.nodes and may_move(tracked.pod)

    def claimed(self, job: str, node: str, index: int = 0) -> bool:
        place = self._places.get(job)
        if place is None:
            return super().claimed(job, node, index)
        place.node = node
        return True

    def launch(self, number: int, job: str, index: int = 0) -> bool:
        place = self._places.get(job)
        if place is None:
            return super().launch(number, job, index)
        place.number = number
        return True

    def has_try(self, number: int) -> bool:
        return super().has_try(number) or any(
            place.number == number for place in self._places.values()
        )

    def follow_up(self) -> None:
        given_up, self._given_up = self._given_up, []
        for job in given_up:
            self._world().cancel(job)
        super().follow_up()

    def _give_up(self, job: str) -> None:
        """Room is kept no longer: its job is cancelled when that is possible."""
        del self._places[job]
        self._given_up.append(job)

    def _submit(self, tracked: TrackedPod) -> None:
        if not self._places or not self._succeed(tracked):
            super()._submit(tracked)

    def _succeed(self, tracked: TrackedPod) -> bool:
        """Puts the pod where room is kept for it; returns whether there is such a place."""
        kept = self._place_for(tracked)
        if kept is None:
            return False
        place = self._places.pop(kept)
        self.rulebook.put(tracked.uid, tracked.needs, place.node)
        tracked.state, tracked.node = PodState.CLAIMED, place.node
        job = self._job(tracked, tracked.request)
        self._index.give_job(tracked, job.id)
        [refusal] = self._world().adopt([(job, place.node)], KUBERNETES, replaced=[(kept, 0)])
        if refusal is not None:
            self._index.take_job(tracked)
            self._undo_claim(tracked)
            return False
        self.moved += 1
        return True

    def _place_for(self, tracked: TrackedPod) -> str | None:
        maker = _maker(tracked.pod)
        for job, place in self._places.items():
            if (
                place.maker == maker
                and place.request == tracked.request
                and place.node in self.rulebook.nodes
                and self.rulebook.forbidding(tracked.needs, place.node) is None
            ):
                return job
        return None

    def eviction_failed(self, uid: str) -> None:
        for job in [job for job, place in self._places.items() if place.uid == uid]:
            del self._places[job]
            self._world().cancel(job)
        super().eviction_failed(uid)

    def expire_places(self) -> None:
        """To be called every second: nobody may take the place of a moved pod."""
        for job, place in list(self._places.items()):
            if place.uid in self.pods:
                continue
            place.waited += 1
            if place.waited > KEPT_FOR:
                del self._places[job]
                self._world().cancel(job)

    def recover(self, known: Mapping[str, int], claims: Mapping[tuple[str, int], str]) -> None:
        # Jobs that are no pod's are cancelled, and so are those that kept room.
        self._places, self._given_up = {}, []
        super().recover(known, claims)
