"""An API server in virtual time. Pods on nodes leave gracefully, and all that happens is recorded."""

from __future__ import annotations

from typing import Final, Literal

from argosy.campaign.recordings import ApiRecord
from argosy.kubernetes.kinds import COSCHEDULING_GROUPS, NODES, PODS
from argosy.model.random import Random
from argosy.testing.api_objects import ApiChange, ApiObjects
from argosy.testing.virtual_loop import VirtualLoop

#: How long pods take to leave a node, at most.
LONGEST_GRACE: Final = 2_000_000
_RECORDED: Final[dict[str, Literal["pod", "node", "group"]]] = {
    PODS.path(): "pod",
    NODES.path(): "node",
    COSCHEDULING_GROUPS.path(): "group",
}


class PlayedApi(ApiObjects):
    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        super().__init__()
        self._loop = loop
        self._random = random
        self.records: list[ApiRecord] = []
        self.listeners.append(self._record)

    def _record(self, change: ApiChange) -> None:
        if (kind := _RECORDED.get(change.path)) is not None:
            record = ApiRecord(self._loop.micros, kind, change.type == "DELETED", change.document)
            self.records.append(record)

    def _remove(self, path: str, key: tuple[str, str]) -> None:
        document = self._store(path)[key]
        metadata = document["metadata"]
        node = document.get("spec", {}).get("nodeName", "")
        is_there = path == PODS.path() and self.document(NODES, node) is not None
        has_ended = document.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not is_there or has_ended or "deletionTimestamp" in metadata:
            super()._remove(path, key)
            return
        leaving = {
            **document,
            "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"},
        }
        self._put(path, True, leaving)
        uid = metadata["uid"]

        def gone() -> None:
            there = self._store(path).get(key)
            if there is not None and there["metadata"]["uid"] == uid:
                super(PlayedApi, self)._remove(path, key)

        self._loop.at(self._loop.micros + self._random.below(LONGEST_GRACE), gone)
