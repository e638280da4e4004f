"""Where volumes let a pod go, and what a pod waits for: all of its claims count."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.kubernetes.objects import PersistentVolume, PersistentVolumeClaim, Pod
from argosy.worlds.kubernetes.volumes import KnownVolumes, claim_names

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def volume(name: str, on: str = "", **labels: str) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": [on]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}} if on else None
    document: dict[str, Any] = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeAffinity": affinity} if affinity else {},
    }
    return msgspec.convert(document, PersistentVolume)


def claim(name: str, bound: str = "", mode: str = "ReadWriteOnce") -> PersistentVolumeClaim:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    document = {
        "metadata": {"name": name, "namespace": "s", "annotations": annotations},
        "spec": {"volumeName": bound, "accessModes": [mode]},
    }
    return msgspec.convert(document, PersistentVolumeClaim)


def pod(*claims: str, ephemeral: tuple[str, ...] = ()) -> Pod:
    volumes: list[dict[str, Any]] = [
        {"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in claims
    ]
    volumes += [{"name": name, "ephemeral": {}} for name in ephemeral]
    volumes.append({"name": "plain"})
    document = {"metadata": {"name": "p", "namespace": "s"}, "spec": {"volumes": volumes}}
    return msgspec.convert(document, Pod)


def known(volumes: list[PersistentVolume], claims: list[PersistentVolumeClaim]) -> KnownVolumes:
    made = KnownVolumes()
    made.volumes = {each.name: each for each in volumes}
    made.claims = {each.key: each for each in claims}
    return made


def rules(made: KnownVolumes, asking: Pod) -> list[list[list[tuple[str, str, tuple[str, ...]]]]]:
    return [
        [
            [(each.key, each.operator, tuple(each.values)) for each in term.match_expressions]
            for term in rule.node_selector_terms
        ]
        for rule in made.node_rules(asking)
    ]


def host(name: str) -> list[list[tuple[str, str, tuple[str, ...]]]]:
    return [[("host", "In", (name,))]]


NOWHERE = [(ZONE, "DoesNotExist", ()), (REGION, "DoesNotExist", ())]


def test_every_volume_has_its_say_by_its_affinity_and_by_its_place() -> None:
    made = known(
        [
            volume("a", "h1", **{ZONE: "z1__z2", REGION: "r"}),
            volume("b", "h2"),
            volume("c", **{ZONE: "z3"}),
            volume("d"),
        ],
        [claim(f"claim-{name}", name) for name in "abcd"],
    )
    asking = pod("claim-a", "claim-b", "claim-c", "claim-d")
    assert rules(made, asking) == [
        host("h1"),
        [[(ZONE, "In", ("z1", "z2")), (REGION, "In", ("r",))], NOWHERE],
        host("h2"),
        [[(ZONE, "In", ("z3",))], NOWHERE],
    ]


def test_what_is_not_known_or_not_bound_says_nothing_and_keeps_nobody_else_from_it() -> None:
    made = known([volume("b", "h2")], [claim("unbound"), claim("lost", "x"), claim("good", "b")])
    assert rules(made, pod("unbound", "lost", "none", "good")) == [host("h2")]


def test_ephemeral_volumes_have_claims_named_after_their_pod() -> None:
    asking = pod("one", ephemeral=("two",))
    assert list(claim_names(asking)) == ["one", "p-two"]
    made = known([volume("v", "h")], [claim("p-two", "v", "ReadWriteOncePod"), claim("one")])
    assert rules(made, asking) == [host("h")]
    assert made.for_one_pod(asking) == ["p-two"]


@pytest.mark.parametrize(
    ("claims", "obstacle"),
    [
        ([], 'persistentvolumeclaim "a" not found'),
        ([claim("a", "v")], 'persistentvolumeclaim "b" not found'),
        ([claim("a", "v"), claim("b")], 'persistentvolumeclaim "b" is not bound to a volume yet'),
        ([claim("a", "v"), claim("b", "gone")], 'persistentvolume "gone" not found'),
        ([claim("a", "v"), claim("b", "v")], ""),
    ],
)
def test_a_pod_waits_for_the_first_claim_that_is_not_ready(
    claims: list[PersistentVolumeClaim], obstacle: str
) -> None:
    assert known([volume("v")], claims).obstacle(pod("a", "b")) == obstacle
