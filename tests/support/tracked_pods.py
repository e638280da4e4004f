"""Pods as a scheduler keeps track of them, with no more than tests look at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from argosy.model.resources import Resources
from argosy.worlds.kubernetes.tracked import PodState


def tracked(state: PodState, name: str = "p", **fields: Any) -> Any:
    usual = {"obstacle": "", "gates": (), "node_name": "", "is_leaving": False}
    known = {**usual, **fields}
    metadata = SimpleNamespace(
        deletion_timestamp="now" if known["is_leaving"] else None,
        owner_references=known.get("owners", ()),
    )
    return SimpleNamespace(
        state=state,
        uid=name,
        node=known.get("node", ""),
        obstacle=known["obstacle"],
        request=known.get("request", Resources(1_000, 0)),
        shape=SimpleNamespace(key=known.get("key", name.encode())),
        needs=known.get("needs", name),
        gang=known.get("gang"),
        pod=SimpleNamespace(
            uid=name,
            metadata=metadata,
            spec=SimpleNamespace(node_name=known["node_name"], scheduling_gates=known["gates"]),
        ),
    )
