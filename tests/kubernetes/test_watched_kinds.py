"""Which kinds of objects a scheduler watches, in which order, and until when it waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace
from small_pod_cluster import pod

from argosy.kubernetes import kinds
from argosy.kubernetes.objects import Pod, PodStatus
from argosy.kubernetes.watching import ChangeBatch
from argosy.service.kubernetes import driver
from argosy.service.kubernetes.driver import ClusterWatches

ALWAYS = [
    kinds.NODES,
    kinds.NAMESPACES,
    kinds.PRIORITY_CLASSES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.POD_DISRUPTION_BUDGETS,
]
GROUPS = [kinds.POD_GROUPS, kinds.COSCHEDULING_GROUPS]


class Watch:
    """Stands for an `ObjectWatch`: how it was made, and whether it is open."""

    def __init__(self, client: Any, kind: kinds.ResourceKind[Any], **options: Any) -> None:
        self.client, self.kind, self.options = client, kind, options
        self.batches = [ChangeBatch([], is_complete=at == 2) for at in range(4)]
        self.read = 0

    async def __aenter__(self) -> Watch:
        self.client.log.append(("open", self.kind))
        return self

    async def __aexit__(self, *error: object) -> None:
        self.client.log.append(("close", self.kind))

    async def __aiter__(self) -> AsyncIterator[ChangeBatch[Any]]:
        for batch in self.batches:
            self.read += 1
            yield batch


class Client:
    """Serves some kinds of groups."""

    def __init__(self, served: list[kinds.ResourceKind[Any]]) -> None:
        self.served = served
        self.log: list[tuple[str, kinds.ResourceKind[Any]]] = []

    async def serves(self, kind: kinds.ResourceKind[Any]) -> bool:
        return kind in self.served


@pytest.fixture(autouse=True)
def watches_stand_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ObjectWatch", Watch)


def made(served: list[kinds.ResourceKind[Any]]) -> tuple[ClusterWatches, Client]:
    client = Client(served)
    return ClusterWatches(client), client  # type: ignore[arg-type]


@pytest.mark.parametrize("served", [[], GROUPS[:1], GROUPS[1:], GROUPS])
def test_groups_are_watched_if_they_are_served_and_pods_come_last(
    served: list[kinds.ResourceKind[Any]],
) -> None:
    watches, client = made(served)

    async def use() -> None:
        async with watches as same:
            assert same is watches
            assert client.log == [("open", kind) for kind in [*ALWAYS, *served, kinds.PODS]]
            client.log.clear()
        assert client.log == [
            ("close", kind) for kind in [kinds.PODS, *served[::-1], *ALWAYS[::-1]]
        ]

    asyncio.run(use())
    assert [each.kind for each in watches.all] == [*ALWAYS, *served, kinds.PODS]
    assert [each.kind for each in watches.groups] == served


def test_each_kind_is_watched_with_short_delays_and_under_its_own_name() -> None:
    watches, client = made(GROUPS)

    async def use() -> None:
        async with watches:
            pass

    asyncio.run(use())
    named = {
        "nodes": kinds.NODES,
        "pods": kinds.PODS,
        "namespaces": kinds.NAMESPACES,
        "priority_classes": kinds.PRIORITY_CLASSES,
        "volumes": kinds.PERSISTENT_VOLUMES,
        "claims": kinds.PERSISTENT_VOLUME_CLAIMS,
        "budgets": kinds.POD_DISRUPTION_BUDGETS,
    }
    assert {name: getattr(watches, name).kind for name in named} == named
    for watch in watches.all:
        assert watch.client is client  # type: ignore[attr-defined]
        options = dict(watch.options)  # type: ignore[attr-defined]
        assert options.pop("settings").longest_delay == 3.0
        assert options.keys() == ({"keeps"} if watch.kind is kinds.PODS else set())


def test_pods_that_have_ended_are_not_kept() -> None:
    watches, _ = made([])
    keeps = watches.pods.options["keeps"]  # type: ignore[attr-defined]

    def in_phase(phase: str) -> Pod:
        return replace(pod("p"), status=PodStatus(phase=phase))

    phases = ("", "Pending", "Running", "Unknown", "Succeeded", "Failed")
    assert [phase for phase in phases if keeps(in_phase(phase))] == list(phases[:4])


def test_everything_is_read_until_each_kind_is_complete_and_no_further() -> None:
    watches, _ = made([])
    asyncio.run(watches.complete())
    assert [watch.read for watch in watches.all] == [3] * 7  # type: ignore[attr-defined]
