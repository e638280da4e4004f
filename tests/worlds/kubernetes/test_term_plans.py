"""The terms that pods share: those of pods with different demands must not be taken for each other."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.kubernetes.objects import Pod
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.term_plans import (
    affinity_plans,
    anti_affinity_plans,
    claim_plans,
    port_plans,
    spread_plans,
)
from argosy.worlds.kubernetes.terms import CLUSTER, Avoided, Avoiding, SpreadOut


def pod(labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    metadata = {"name": "p", "namespace": "one", "uid": "p", "labels": labels or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"containers": [], **spec}}, Pod)


def with_port(number: int, address: str, protocol: str = "TCP") -> Pod:
    port = {"containerPort": 1, "hostPort": number, "hostIP": address, "protocol": protocol}
    return pod(containers=[{"name": "c", "ports": [port]}])


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        (with_port(80, ""), with_port(80, "0.0.0.0"), True),
        (with_port(80, ""), with_port(80, "10.0.0.1"), True),
        (with_port(80, ""), with_port(80, "::"), True),
        (with_port(80, "::"), with_port(80, "10.0.0.1"), False),
        (with_port(80, "10.0.0.1"), with_port(80, "10.0.0.1"), True),
        (with_port(80, "10.0.0.1"), with_port(80, "10.0.0.2"), False),
        (with_port(80, ""), with_port(81, ""), False),
        (with_port(80, ""), with_port(80, "", "UDP"), False),
    ],
)
def test_a_port_on_every_address_collides_with_that_port_on_any(
    one: Pod, other: Pod, collide: bool
) -> None:
    for first, second in ((one, other), (other, one)):
        taken = {plan.name for plan in port_plans(first)[1]}
        wanted = {plan.name for plan in port_plans(second)[0]}
        assert bool(taken & wanted) == collide


def near(*keys: str) -> dict[str, Any]:
    required = [
        {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}} for key in keys
    ]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_a_pod_that_is_what_it_wants_to_be_near_shares_no_term_with_one_that_is_not() -> None:
    """The first of such pods may go anywhere, the others may not."""
    found = [
        affinity_plans(pod({"app": app}, affinity=near("zone")), lambda namespace: {})
        for app in ("a", "a", "b")
    ]
    same, again, other = ([plan.name for plan in plans] for plans in found)
    assert same == again
    assert len(same) == 1
    assert set(same).isdisjoint(other)


def test_keys_that_belong_together_share_no_term_with_one_of_them_alone() -> None:
    both, alone = (
        {plan.name for plan in affinity_plans(pod(affinity=near(*keys)), lambda namespace: {})}
        for keys in (("zone", "host"), ("zone",))
    )
    assert len(both) == 2
    assert both.isdisjoint(alone)


def test_spreads_that_differ_in_anything_share_no_term() -> None:
    plain = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    own = {"app": "a"}
    rules = NodeRules(selector={"disk": "ssd"})
    asked = [
        (own, [plain], NodeRules()),
        ({"app": "b"}, [plain], NodeRules()),
        (own, [{**plain, "maxSkew": 2}], NodeRules()),
        (own, [{**plain, "minDomains": 2}], NodeRules()),
        (own, [{**plain, "topologyKey": "host"}], NodeRules()),
        (own, [plain, {**plain, "topologyKey": "host"}], NodeRules()),
        (own, [{**plain, "nodeTaintsPolicy": "Honor"}], NodeRules()),
        (own, [plain], rules),
        (own, [{**plain, "nodeTaintsPolicy": "Honor"}], rules),
    ]
    names = [
        {
            (plan.name, plan.details)
            for plan in spread_plans(pod(labels, topologySpreadConstraints=each), kept)
        }
        for labels, each, kept in asked
    ]
    assert len(set().union(*names)) == sum(map(len, names)) == len(asked) + 1
    ignoring = pod(own, topologySpreadConstraints=[{**plain, "nodeAffinityPolicy": "Ignore"}])
    assert {(plan.name, plan.details) for plan in spread_plans(ignoring, rules)}.isdisjoint(
        names[7]
    )
    wish = pod(own, topologySpreadConstraints=[{**plain, "whenUnsatisfiable": "ScheduleAnyway"}])
    assert spread_plans(wish, rules) == []


def test_a_spread_is_over_the_domains_that_have_nodes() -> None:
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    (plan,) = spread_plans(pod({"app": "a"}, topologySpreadConstraints=[spread]), NodeRules())
    term = plan.make(plan.name, plan.topology_key)
    assert isinstance(term, SpreadOut)
    for zone in ("east", "west", "west"):
        term.add_node(zone, 1)
    for _ in range(2):
        term.add("west", 1)
    assert (term.least, term.is_open("east"), term.is_open("west")) == (0, True, False)
    # Its pods are where they were, but nobody can go there.
    assert term.add_node("east", -1)
    assert (term.least, term.is_open("east"), term.is_open("west")) == (2, False, True)
    assert not term.add_node("west", -1)
    assert term.add_node("east", 1)
    assert (term.least, term.is_open("east"), term.is_open("west")) == (0, True, False)
    term.add("east", 1)
    term.add("west", 1)
    assert (term.least, term.is_open("east"), term.is_open("west")) == (1, True, False)


def test_only_ports_of_the_node_count_and_only_of_containers_that_stay() -> None:
    def container(name: str, number: int | None, **more: Any) -> dict[str, Any]:
        port = {"containerPort": 1} | ({} if number is None else {"hostPort": number})
        return {"name": name, "ports": [port], **more}

    made = pod(
        containers=[container("a", 80), container("b", None), container("c", 80)],
        initContainers=[container("d", 81), container("e", 82, restartPolicy="Always")],
    )
    respected, brought = port_plans(made)
    assert [plan.name for plan in respected] == [
        f"host port {number}/TCP free on every address" for number in (80, 82)
    ]
    assert len(brought) == 4
    assert port_plans(pod()) == ([], [])


def test_what_a_pod_avoids_keeps_the_others_away_too() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    made = pod(affinity={"podAntiAffinity": {required: [term, {**term, "topologyKey": "host"}]}})
    respected, brought = anti_affinity_plans(made)
    assert [plan.topology_key for plan in respected] == ["zone", "host"]
    assert [plan.name.split(" pods ")[0] for plan in respected] == ["away from"] * 2
    assert [plan.name.partition(" that avoid ")[1] for plan in brought] == [" that avoid "] * 2
    for plans, kind in ((respected, Avoided), (brought, Avoiding)):
        assert [type(plan.make(plan.name, plan.topology_key)) for plan in plans] == [kind] * 2
    assert anti_affinity_plans(pod()) == ([], [])


@pytest.mark.parametrize(
    ("changes", "labels", "said"),
    [
        ({}, {"app": "a"}, ", skew at most 1"),
        ({"maxSkew": 3}, {"app": "a"}, ", skew at most 3"),
        ({"minDomains": 2}, {"app": "a"}, ", skew at most 1, at least 2 domains"),
        ({}, {}, ", skew at most 1, not counting itself"),
        (
            {"nodeTaintsPolicy": "Honor"},
            {"app": "a"},
            ", skew at most 1, among nodes with no taints and no other taints",
        ),
    ],
)
def test_a_spread_says_what_it_is(
    changes: dict[str, Any], labels: dict[str, str], said: str
) -> None:
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        **changes,
    }
    (plan,) = spread_plans(pod(labels, topologySpreadConstraints=[spread]), NodeRules())
    assert plan.name.endswith(f" spread over zone{said}")
    term = plan.make(plan.name, plan.topology_key)
    assert isinstance(term, SpreadOut)


def test_a_claim_for_one_pod_is_a_term_of_the_whole_cluster() -> None:
    first, second = claim_plans(pod(), ["data", "logs"])
    assert (first.name, second.name) == ("claim one/data not in use", "claim one/logs not in use")
    assert first.topology_key == second.topology_key == CLUSTER
