"""Rules that depend on namespaces, volumes and other resources, judged from what there is at the end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from test_placements import node, pod

from argosy.kubernetes import kinds
from argosy.kubernetes.objects import Node, Pod
from argosy.service.kubernetes.shadow.placements import (
    ClusterState,
    PlacementJudge,
    PlacementVerdict,
    SeenPod,
)
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.volumes import KnownVolumes

HOSTNAME = "kubernetes.io/hostname"


def made(kind: Any, name: str, **document: Any) -> Any:
    metadata = {"name": name, "namespace": "default", **document.pop("metadata", {})}
    return kind.decode(msgspec.json.encode({"metadata": metadata, **document}))


def judged(state: ClusterState, *pods: SeenPod) -> PlacementVerdict:
    return PlacementJudge(state, pods).judge()


def seen(pod: Pod, place: str, *, is_compared: bool = True) -> SeenPod:
    return SeenPod(pod, place, pod_request(pod), is_compared)


@pytest.mark.parametrize(("team", "broken"), [("blue", 1), ("red", 0)])
def test_rules_about_namespaces_are_judged_by_their_labels(team: str, broken: int) -> None:
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchLabels": {"app": "a"}},
        "namespaceSelector": {"matchLabels": {"team": "blue"}},
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    other = pod("other")
    other = replace(other, metadata=replace(other.metadata, namespace="theirs"))
    spaces = (
        made(kinds.NAMESPACES, "default", metadata={"labels": {"team": "green"}}),
        made(kinds.NAMESPACES, "theirs", metadata={"labels": {"team": team}}),
    )
    state = ClusterState((node("m"), node("n")), spaces, KnownVolumes())
    mine = pod("mine", affinity=apart)
    assert judged(state, seen(mine, "m"), seen(other, "m", is_compared=False)).broken_rules == (
        broken
    )
    assert judged(state, seen(mine, "m"), seen(other, "n")).broken_rules == 0


@pytest.mark.parametrize(("place", "is_compared", "broken"), [("m", True, 1), ("m", False, 0)])
def test_a_pod_away_from_its_volume_breaks_a_rule_if_it_was_watched(
    place: str, is_compared: bool, broken: int
) -> None:
    there = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n"]}]}
    known = KnownVolumes()
    known.volumes = {
        "v": made(
            kinds.PERSISTENT_VOLUMES,
            "v",
            spec={"nodeAffinity": {"required": {"nodeSelectorTerms": [there]}}},
        )
    }
    claim = made(kinds.PERSISTENT_VOLUME_CLAIMS, "c", spec={"volumeName": "v"})
    known.claims = {("default", "c"): claim}
    state = ClusterState((node("m"), node("n")), (), known)
    wants = pod("p", volumes=[{"name": "x", "persistentVolumeClaim": {"claimName": "c"}}])
    assert judged(state, seen(wants, place, is_compared=is_compared)).broken_rules == broken
    assert judged(state, seen(wants, "n", is_compared=is_compared)).broken_rules == 0


def with_gpus(name: str, gpus: int) -> Node:
    there = {"cpu": "4", "memory": "8Gi", "pods": "10", "example.com/gpu": str(gpus)}
    return made(
        kinds.NODES, name, metadata={"labels": {HOSTNAME: name}}, status={"allocatable": there}
    )


def asking(name: str, gpus: int) -> Pod:
    container = {"name": "c", "resources": {"requests": {"example.com/gpu": str(gpus)}}}
    spec = {"containers": [container]}
    return made(kinds.PODS, name, metadata={"uid": name}, spec=spec)


@pytest.mark.parametrize(
    ("gpus", "overcommitted", "spare"),
    [
        # The pod of `n` goes to `m`, which has no more than that.
        ((1, 1, 2), 0, 1),
        ((1, 2, 2), 0, 0),
        ((3, 1, 2), 1, 0),
        ((3, 3, 2), 2, 0),
    ],
)
def test_other_resources_are_counted_like_processors(
    gpus: tuple[int, int, int], overcommitted: int, spare: int
) -> None:
    first, second, there = gpus
    state = ClusterState((with_gpus("m", there), with_gpus("n", there)), (), KnownVolumes())
    found = judged(state, seen(asking("a", first), "m"), seen(asking("b", second), "n"))
    assert (found.overcommitted, found.nodes_used, found.nodes_spare) == (overcommitted, 2, spare)
