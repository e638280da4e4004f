"""Pods that their schedulers have abandoned: each is submitted again, after a rest that grows.

In Kubernetes nobody but a pod's owner may give it up.
"""

from __future__ import annotations

from typing import Final

import msgspec

from argosy.worlds.kubernetes.tracked import TrackedPod

#: The longest that a pod rests, in looks.
LONGEST_REST: Final = 64


class AbandonedPod(msgspec.Struct):
    tracked: TrackedPod
    #: For how many looks it rests, and how often it was abandoned.
    rest: int = 0
    times: int = 0


class AbandonedPods:
    def __init__(self) -> None:
        self._pods: dict[str, AbandonedPod] = {}

    def add(self, tracked: TrackedPod) -> None:
        known = self._pods.setdefault(tracked.uid, AbandonedPod(tracked))
        if not known.rest:
            known.rest = min(2**known.times, LONGEST_REST)
            known.times += 1

    def forget(self, uid: str) -> None:
        self._pods.pop(uid, None)

    @property
    def are_resting(self) -> bool:
        return any(each.rest for each in self._pods.values())

    def wake(self) -> list[TrackedPod]:
        """Those that have rested long enough. To be called at each look."""
        found = []
        for each in self._pods.values():
            if each.rest:
                each.rest -= 1
                if not each.rest:
                    found.append(each.tracked)
        return found
