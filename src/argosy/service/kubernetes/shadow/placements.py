"""Where one scheduler has put the pods, when, and how full the nodes were meanwhile."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from argosy.kubernetes.objects import Namespace, Node, Pod
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.pod_jobs import controller_of
from argosy.worlds.kubernetes.requests import node_capacity, pod_request
from argosy.worlds.kubernetes.room import NodeRoom
from argosy.worlds.kubernetes.rulebook import PodNeeds, Rulebook
from argosy.worlds.kubernetes.volumes import KnownVolumes

#: How often a pod is tried on a node to find out which nodes could be emptied.
MOST_TRIALS: Final = 200_000
_MEASURED: Final = ("cpu", "memory")


class SeenPod(msgspec.Struct):
    """A pod on a node. `is_compared` if it was placed while it was watched."""

    pod: Pod
    node: str
    request: Resources
    is_compared: bool


class ClusterState(msgspec.Struct, frozen=True):
    """What schedulers cannot change."""

    nodes: tuple[Node, ...]
    namespaces: tuple[Namespace, ...]
    volumes: KnownVolumes


class PlacementVerdict(msgspec.Struct, frozen=True):
    """The placements as they are at the end."""

    #: Pods that were placed while watched and are where their rules forbid.
    broken_rules: int
    #: Nodes whose pods ask for more than there is.
    overcommitted: int
    #: Nodes with pods that are not of a DaemonSet.
    nodes_used: int
    #: Nodes that are empty, or would be if their pods went to others that are in use.
    nodes_spare: int


class PlacementRecord:
    """Times are in seconds, from any clock that does not go back."""

    def __init__(self, now: float) -> None:
        self.pods: dict[str, SeenPod] = {}
        #: From the moment a pod could be scheduled until it was, in seconds.
        self.waits: dict[str, float] = {}
        self.first_nodes: dict[str, str] = {}
        self.evictions = 0
        self._capacity: dict[str, dict[str, int]] = {}
        self._total: Counter[str] = Counter()
        self._used: Counter[str] = Counter()
        #: Integrals over time.
        self._used_time = dict.fromkeys(_MEASURED, 0.0)
        self._total_time = dict.fromkeys(_MEASURED, 0.0)
        self._now = now

    def advance(self, now: float) -> None:
        passed = now - self._now
        if passed <= 0:
            return
        for name in _MEASURED:
            self._used_time[name] += self._used[name] * passed
            self._total_time[name] += self._total[name] * passed
        self._now = now

    def set_capacity(self, node: str, capacity: Resources | None) -> None:
        """None: the node is gone."""
        self._total.subtract(self._capacity.pop(node, {}))
        if capacity is not None:
            self._capacity[node] = dict(capacity.items())
            self._total.update(self._capacity[node])

    def put(self, pod: Pod, node: str, *, since: float | None = None) -> None:
        """`since` is when the pod could first be scheduled; none if it was on its node before."""
        self.remove(pod.uid)
        request = pod_request(pod)
        self.pods[pod.uid] = SeenPod(pod, node, request, since is not None)
        self._used.update(dict(request.items()))
        if since is not None and pod.uid not in self.waits:
            self.waits[pod.uid] = self._now - since
            self.first_nodes[pod.uid] = node

    def remove(self, uid: str) -> None:
        seen = self.pods.pop(uid, None)
        if seen is not None:
            self._used.subtract(dict(seen.request.items()))

    def utilisation(self, resource: str) -> float:
        """The share of what there was that pods asked for, on average over time."""
        total = self._total_time[resource]
        return self._used_time[resource] / total if total else 0.0

    def wait(self, share: float) -> float | None:
        return quantile(sorted(self.waits.values()), share)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Of sorted values: the smallest that so many are not above."""
    if not values:
        return None
    return values[max(0, math.ceil(share * len(values)) - 1)]


class PlacementJudge:
    """Looks at placements anew, with none of the state that they were made with."""

    def __init__(self, state: ClusterState, pods: Iterable[SeenPod]) -> None:
        self._rulebook = Rulebook(lambda attribute, group, sets, is_given: None)
        self._room = NodeRoom()
        self._pods: dict[str, SeenPod] = {}
        self._needs: dict[str, PodNeeds] = {}
        self._on_node: dict[str, dict[str, None]] = {node.name: {} for node in state.nodes}
        self._used: dict[str, Counter[str]] = {node.name: Counter() for node in state.nodes}
        for namespace in state.namespaces:
            self._rulebook.set_namespace(namespace.name, namespace.metadata.labels)
        placed = [seen for seen in pods if seen.node in self._on_node]
        names = dict.fromkeys(name for seen in placed for name, _ in seen.request.items())
        self._capacity: dict[str, dict[str, int]] = {}
        for node in state.nodes:
            capacity = node_capacity(node, [name for name in names if name not in _MEASURED])
            self._room.set_capacity(node.name, capacity)
            self._capacity[node.name] = dict(capacity.items())
            self._rulebook.set_node(node)
        for seen in placed:
            uid = seen.pod.uid
            self._pods[uid] = seen
            rules = state.volumes.node_rules(seen.pod)
            self._needs[uid] = self._rulebook.needs(seen.pod, rules)
            self._put(uid, seen.node)

    def judge(self) -> PlacementVerdict:
        return PlacementVerdict(
            broken_rules=sum(map(self._breaks_rules, self._pods)),
            overcommitted=sum(map(self._is_overcommitted, self._on_node)),
            nodes_used=sum(1 for node in self._on_node if self._movable(node)),
            # Last, because it moves pods.
            nodes_spare=self._spare(),
        )

    def _put(self, uid: str, node: str) -> None:
        self._rulebook.put(uid, self._needs[uid], node)
        request = self._pods[uid].request
        self._room.take(node, request)
        self._used[node].update(dict(request.items()))
        self._on_node[node][uid] = None

    def _take_away(self, uid: str, node: str) -> None:
        self._rulebook.leave(uid)
        request = self._pods[uid].request
        self._room.give_back(node, request)
        self._used[node].subtract(dict(request.items()))
        del self._on_node[node][uid]

    def _breaks_rules(self, uid: str) -> bool:
        seen = self._pods[uid]
        if not seen.is_compared:
            return False
        # A pod does not stand in its own way.
        self._rulebook.leave(uid)
        obstacle = self._rulebook.forbidding(self._needs[uid], seen.node)
        self._rulebook.put(uid, self._needs[uid], seen.node)
        return obstacle is not None

    def _is_overcommitted(self, node: str) -> bool:
        capacity = self._capacity[node]
        return any(
            amount > capacity.get(name, 0) for name, amount in self._used[node].items() if amount
        )

    def _movable(self, node: str) -> list[str]:
        return [
            uid
            for uid in self._on_node[node]
            if not controller_of(self._pods[uid].pod).startswith("DaemonSet/")
        ]

    def _spare(self) -> int:
        """Greedy, least used nodes first; stops when it has tried too often."""
        used = [node for node in self._on_node if self._movable(node)]
        spare = len(self._on_node) - len(used)
        used.sort(key=lambda node: self._used[node]["cpu"])
        trials = MOST_TRIALS
        # The fullest take in others, so that the rest stay movable.
        targets = dict.fromkeys(reversed(used))
        for node in used:
            if node not in targets or len(targets) == 1:
                continue
            del targets[node]
            moved: list[tuple[str, str]] = []
            for uid in self._movable(node):
                self._take_away(uid, node)
                place, trials = self._place(uid, targets, trials)
                if place is None:
                    self._put(uid, node)
                    break
                self._put(uid, place)
                moved.append((uid, place))
            if not self._movable(node):
                spare += 1
                continue
            for uid, place in reversed(moved):
                self._take_away(uid, place)
                self._put(uid, node)
            targets[node] = None
            if not trials:
                break
        return spare

    def _place(self, uid: str, targets: Iterable[str], trials: int) -> tuple[str | None, int]:
        request, needs = self._pods[uid].request, self._needs[uid]
        for target in targets:
            if not trials:
                break
            trials -= 1
            fits = self._room.fits(target, request)
            if fits and self._rulebook.forbidding(needs, target) is None:
                return target, trials
        return None, trials
