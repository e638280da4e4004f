"""Groups that have rested, groups of which some have nodes, and nodes that pods do not spread over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from gang_cluster import members
from test_group_lives import cluster, place, tell
from test_pod_cluster import node, pod
from test_pod_parts import node as bare_node
from test_pod_parts import taint

from argosy.kubernetes.objects import LabelSelector, Node, Pod, Toleration
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.shapes import PodShapes
from argosy.worlds.kubernetes.terms import PodScope, SpreadOut
from argosy.worlds.kubernetes.volumes import KnownVolumes


def test_a_group_that_has_rested_is_not_kept_from_anything_afterwards() -> None:
    pods, world = cluster()
    first, second = members("ab", 2)
    tell(pods, first, second)
    place(pods, "one.group:g", "n0")
    pods.found_short("one.group:g")
    for _ in range(5):
        pods.look_again()
        pods.flush()
    gang = pods.pods["a"].gang
    assert gang is not None
    assert (gang.rest, list(world.waiting)) == (0, ["one.group:g~2"])
    pods.remove_pod("b")
    pods.flush()
    assert not world.waiting
    tell(pods, second)
    assert list(world.waiting) == ["one.group:g~3"], "it does not rest any more"


def test_only_pods_without_a_node_wait_for_one() -> None:
    pods, _ = cluster()
    tell(pods, *members("ab", 2))
    assert [each.uid for each in pods.waits("one.group:g")] == ["a", "b"]
    place(pods, "one.group:g", "n0")
    assert [each.uid for each in pods.waits("one.group:g")] == ["b"]
    assert pods.waits("unknown") == []


def test_what_a_pod_of_somebody_else_uses_is_accounted_for() -> None:
    pods, world = cluster()
    document = msgspec.to_builtins(node("n0"))
    document["status"]["allocatable"]["example/gpu"] = "2"
    pods.set_node(msgspec.convert(document, Node))
    assert "example/gpu" not in dict(world.machines["n0"].items())
    theirs = msgspec.to_builtins(pod("theirs", on="n0", schedulerName="another"))
    theirs["spec"]["containers"][0]["resources"]["requests"]["example/gpu"] = "1"
    tell(pods, msgspec.convert(theirs, Pod))
    assert dict(world.machines["n0"].items())["example/gpu"] == 2
    assert pods.free_on("n0")["example/gpu"] == 1
    assert dict(world.free_on("n0").items())["example/gpu"] == 1


@pytest.mark.parametrize("honours", [False, True])
@pytest.mark.parametrize(
    ("labels", "taints", "is_place", "is_place_with_taints"),
    [
        ({"zone": "a", "disk": "ssd"}, [], True, True),
        ({"zone": "a", "disk": "hdd"}, [], False, False),
        ({"disk": "ssd"}, [], False, False),
        ({"zone": "a", "disk": "ssd"}, [taint("k", "NoSchedule")], False, True),
        ({"zone": "a", "disk": "ssd"}, [taint("mine", "NoSchedule")], True, True),
        ({"zone": "a", "disk": "ssd"}, [taint("k", "PreferNoSchedule")], True, True),
        ({"zone": "a", "disk": "hdd"}, [taint("k", "NoExecute")], False, False),
    ],
)
def test_taints_count_for_places_to_spread_over_only_if_they_are_honoured(
    honours: bool, labels: dict[str, str], taints: Any, is_place: bool, is_place_with_taints: bool
) -> None:
    rules = NodeRules(
        selector={"disk": "ssd"}, tolerations=(Toleration(key="mine", operator="Exists"),)
    )
    term = SpreadOut(
        "s",
        "zone",
        PodScope(LabelSelector(), ("one",)),
        max_skew=1,
        min_domains=1,
        counts_itself=True,
        rules=rules,
        honours_taints=honours,
    )
    found = term.counts_node(bare_node("n", labels, taints=taints))
    assert found == (is_place if honours else is_place_with_taints)


def test_a_zone_stays_a_place_to_spread_over_when_a_node_leaves_that_was_none() -> None:
    rules = Rulebook(lambda *_: None)
    for name, zone, disk in (("a", "z1", "ssd"), ("b", "z2", "ssd"), ("other", "z2", "hdd")):
        rules.set_node(bare_node(name, {"zone": zone, "disk": disk}))
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    made = pod("p", nodeSelector={"disk": "ssd"}, topologySpreadConstraints=[constraint])
    shape = PodShapes(rules, KnownVolumes(), lambda _: True).of(made)
    rules.put("p", shape.needs, "a")
    assert rules.forbidding(shape.needs, "a") is not None
    assert rules.forbidding(shape.needs, "b") is None
    rules.remove_node("other")
    assert rules.forbidding(shape.needs, "b") is None
    rules.remove_node("b")
    # The only zone that is left is the emptiest.
    assert rules.forbidding(shape.needs, "a") is None
