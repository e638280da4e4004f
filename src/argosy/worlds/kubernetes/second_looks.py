"""Which pods that wait deserve a second look, because room has appeared where they may go.

Engines look again when they see fit, some only after half a minute. In Kubernetes a pod that waits is
looked at as soon as something happens that may help it: a pod has left, a node has come or changed, or
a rule has opened a node. Changes are collected, and a pod is decided on anew only if it fits, so that a
full cluster costs little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from argosy.worlds.kubernetes.room import NodeRoom, SparedRoom
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.tracked import PodState, TrackedPod

#: Pairs of a node and a kind of pod that one look examines; the rest is left to the next.
MOST_PAIRS: Final = 20_000


class SecondLooks:
    """`is_promised` says whether a node waits to be emptied for somebody."""

    def __init__(
        self, rulebook: Rulebook, room: NodeRoom, is_promised: Callable[[str], bool]
    ) -> None:
        self._rulebook = rulebook
        self._room = room
        self._is_promised = is_promised
        #: Pods that were told that there is no node for them, in that order, by uid.
        self._waiting: dict[str, TrackedPod] = {}
        #: Nodes that have changed for the better since they were looked at.
        self._changed: dict[str, None] = {}

    @property
    def are_due(self) -> bool:
        return bool(self._changed)

    def add(self, tracked: TrackedPod) -> None:
        """There is no node for the pod at present, or it waits in the queue of one."""
        self._waiting.setdefault(tracked.uid, tracked)

    def note(self, nodes: Iterable[str]) -> None:
        """These may take a pod now that they could not take before."""
        self._changed.update(dict.fromkeys(nodes))

    def take(self, queues: Mapping[str, str]) -> list[TrackedPod]:
        """Pods that fit now, each once, those of high priority first. `queues` gives the node in whose
        queue the pod of a job waits, if it does."""
        self._waiting = {
            uid: tracked
            for uid, tracked in self._waiting.items()
            if tracked.state is PodState.WAITING and tracked.job
        }
        changed = [name for name in self._changed if not self._is_promised(name)]
        self._changed = {}
        waiting = sorted(self._waiting.values(), key=lambda each: -(each.pod.spec.priority or 0))
        spared, hopeless, pairs = SparedRoom(self._room), set[bytes](), 0
        found = []
        for tracked in waiting if changed else ():
            if tracked.shape.key in hopeless:
                continue
            if pairs > MOST_PAIRS:
                self._changed.update(dict.fromkeys(changed))
                break
            pairs += len(changed)
            queued_at = queues.get(tracked.job)
            node = next((name for name in changed if self._fits(tracked, name, spared)), None)
            if node is None:
                hopeless.add(tracked.shape.key)
            elif node != queued_at:
                spared.take(node, tracked.request)
                found.append(tracked)
        for tracked in found:
            del self._waiting[tracked.uid]
        return found

    def _fits(self, tracked: TrackedPod, node: str, spared: SparedRoom) -> bool:
        return (
            spared.fits(node, tracked.request)
            and self._rulebook.forbidding(tracked.needs, node) is None
        )
