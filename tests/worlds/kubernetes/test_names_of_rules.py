"""What rules are called: marks of nodes, and the words in which pods' authors hear of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.kubernetes.objects import (
    LabelSelector,
    NodeSelector,
    Pod,
    SelectorRequirement,
    Toleration,
)
from argosy.worlds.kubernetes.node_rules import NodeRules, _describe
from argosy.worlds.kubernetes.pod_wishes import node_wishes, pod_wishes
from argosy.worlds.kubernetes.rulebook import describe_obstacle
from argosy.worlds.kubernetes.selectors import described, described_requirement
from argosy.worlds.kubernetes.term_plans import (
    affinity_plans,
    anti_affinity_plans,
    claim_plans,
    port_plans,
    spread_plans,
)
from argosy.worlds.kubernetes.terms import (
    CLUSTER,
    NODE_NAME,
    Attracted,
    Avoided,
    PodScope,
    SpreadOut,
    spread_selector,
)

WEB = {"matchLabels": {"app": "web"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod(labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    metadata = {"name": "p", "namespace": "one", "uid": "p", "labels": labels or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"containers": [], **spec}}, Pod)


def term(key: str = "zone", selector: Any = WEB, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": selector, **more}


def near(*terms: dict[str, Any], labels: dict[str, str] | None = None) -> list[str]:
    made = pod(labels, affinity={"podAffinity": {REQUIRED: list(terms)}})
    return [plan.name for plan in affinity_plans(made, lambda _: {"team": "a"})]


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        (("a", "In", ("x", "y")), "a in (x,y)"),
        (("a", "NotIn", ("x",)), "a notin (x)"),
        (("a", "Exists", ()), "a"),
        (("a", "DoesNotExist", ()), "!a"),
        (("a", "Gt", ("5",)), "a>5"),
        (("a", "Lt", ("5",)), "a<5"),
    ],
)
def test_a_requirement_is_told_as_kubectl_takes_it(
    requirement: tuple[str, str, tuple[str, ...]], said: str
) -> None:
    made = SelectorRequirement(
        key=requirement[0], operator=requirement[1], values=requirement[2]
    )  # fmt: skip
    assert described_requirement(made) == said


def test_a_selector_is_told_as_kubectl_takes_it() -> None:
    more = (SelectorRequirement(key="c", operator="Exists"),)
    both = LabelSelector(match_labels={"b": "2", "a": "1"}, match_expressions=more)
    assert described(both) == "a=1,b=2,c"
    assert described(LabelSelector()) == "of any kind"
    assert described(None) == "of no kind"


def test_a_scope_names_its_places() -> None:
    selector = LabelSelector(match_labels={"app": "web"})
    team = LabelSelector(match_labels={"team": "a"})
    assert str(PodScope(selector, ("one",))) == "app=web in one"
    assert str(PodScope(None, ("one", "two"))) == "of no kind in one and two"
    everywhere = PodScope(selector, ("one",), team)
    assert str(everywhere) == "app=web in one and namespaces with team=a"
    assert str(PodScope(selector, (), LabelSelector())) == "app=web in namespaces with of any kind"


def test_attraction_is_told_by_each_key() -> None:
    assert near(term(), labels={"app": "web"}) == ["near pods app=web in one by zone"]
    assert near(term(), labels={"app": "db"}) == ["near pods app=web in one by zone (others)"]
    assert near(term(), term("host"), labels={"app": "web"}) == [
        "near pods app=web in one by zone, with zone and host",
        "near pods app=web in one by host, with zone and host",
    ]
    other = term(selector={"matchLabels": {"tier": "x"}}, namespaces=["b", "a"])
    assert near(term(), other, term(), labels={"app": "web"}) == [
        "near pods app=web in one and tier=x in a and b by zone (others)"
    ]
    inside = term(namespaceSelector={"matchLabels": {"team": "a"}})
    assert near(inside, labels={"app": "web"}) == [
        "near pods app=web in namespaces with team=a by zone"
    ]
    outside = term(namespaceSelector={"matchLabels": {"team": "b"}})
    assert near(outside, labels={"app": "web"}) == [
        "near pods app=web in namespaces with team=b by zone (others)"
    ]
    assert near() == []


def test_labels_of_the_pod_itself_complete_its_selectors() -> None:
    keys = term(matchLabelKeys=["v", "none"], mismatchLabelKeys=["tenant"])
    labels = {"app": "web", "v": "7", "tenant": "me"}
    [name] = near(keys, labels=labels)
    assert name == "near pods app=web,v in (7),tenant notin (me) in one by zone (others)"
    expression = {"key": "v", "operator": "In", "values": ["7"]}
    known = term(selector={"matchExpressions": [expression]}, matchLabelKeys=["v"])
    assert near(known, labels=labels) == ["near pods v in (7) in one by zone"]
    assert near(term(selector=None, matchLabelKeys=["v"]), labels=labels) == [
        "near pods of no kind in one by zone (others)"
    ]
    completed = spread_selector(LabelSelector(), {"v": "7"}, ["v", "w"])
    assert described(completed) == "v in (7)"


def test_avoidance_is_told_in_both_directions() -> None:
    anti = {REQUIRED: [term(), term("host", namespaces=["two"])]}
    avoided, avoiding = anti_affinity_plans(pod(affinity={"podAntiAffinity": anti}))
    assert [(plan.name, plan.topology_key) for plan in avoided] == [
        ("away from pods app=web in one by zone", "zone"),
        ("away from pods app=web in two by host", "host"),
    ]
    assert [plan.name for plan in avoiding] == [
        "away from pods that avoid app=web in one by zone",
        "away from pods that avoid app=web in two by host",
    ]
    assert anti_affinity_plans(pod()) == ([], [])


def spread(**more: Any) -> dict[str, Any]:
    usual = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {**usual, "labelSelector": WEB, **more}


def spreads(*constraints: dict[str, Any], **spec: Any) -> list[tuple[str, SpreadOut]]:
    made = pod({"app": "web"}, topologySpreadConstraints=list(constraints), **spec)
    plans = spread_plans(made, NodeRules.of(made))
    found = []
    for plan in plans:
        made_term = plan.make(plan.name, plan.topology_key)
        assert isinstance(made_term, SpreadOut)
        found.append((plan.name, made_term))
    return found


def test_a_spread_is_told_with_all_that_it_depends_on() -> None:
    base = "pods app=web in one spread over zone, skew at most 2"
    [(name, made)] = spreads(spread())
    assert (name, made.max_skew, made.min_domains, made.itself) == (base, 2, 1, 1)
    assert (made.other_keys, made.honours_taints) == ((), False)
    [(name, made)] = spreads(spread(minDomains=3))
    assert (name, made.min_domains) == (f"{base}, at least 3 domains", 3)
    [(name, made)] = spreads(spread(labelSelector={"matchLabels": {"app": "db"}}))
    other = "pods app=db in one spread over zone, skew at most 2, not counting itself"
    assert (name, made.itself) == (other, 0)
    [(name, made)] = spreads(spread(), nodeSelector={"disk": "ssd"})
    assert name == f"{base}, among nodes with disk=ssd"
    assert made.rules == NodeRules(selector={"disk": "ssd"})
    [(name, made)] = spreads(spread(nodeAffinityPolicy="Ignore"), nodeSelector={"disk": "ssd"})
    assert (name, made.rules) == (base, None)
    tolerations = [{"key": "k", "operator": "Exists"}]
    [(name, made)] = spreads(spread(), tolerations=tolerations)
    assert (name, made.rules) == (base, NodeRules())
    [(name, made)] = spreads(spread(nodeTaintsPolicy="Honor"), tolerations=tolerations)
    assert name == f"{base}, among nodes with tolerates k and no other taints"
    assert made.honours_taints
    [(name, made)] = spreads(spread(nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor"))
    assert name == f"{base}, among nodes with no taints and no other taints"
    assert made.rules == NodeRules()
    (first, one), (second, two) = spreads(spread(topologyKey="host"), spread())
    assert first == "pods app=web in one spread over host, skew at most 2, with host and zone"
    assert second == f"{base}, with host and zone"
    assert (one.other_keys, two.other_keys) == (("zone",), ("host",))
    assert spreads(spread(whenUnsatisfiable="ScheduleAnyway")) == []


def test_ports_and_claims_are_told_by_number_and_name() -> None:
    ports = [
        {"containerPort": 1, "hostPort": 80},
        {"containerPort": 2, "hostPort": 53, "hostIP": "10.0.0.1", "protocol": "UDP"},
        {"containerPort": 3, "hostPort": 0},
    ]
    respected, brought = port_plans(pod(containers=[{"name": "c", "ports": ports}]))
    assert [plan.name for plan in respected] == [
        "host port 80/TCP free on every address",
        "host port 53/UDP free on any address",
        "host port 53/UDP free on 10.0.0.1",
    ]
    assert [plan.name for plan in brought] == [
        "host port 80/TCP free on every address",
        "host port 80/TCP free on any address",
        "host port 53/UDP free on every address",
        "host port 53/UDP free on 10.0.0.1",
    ]
    assert {plan.topology_key for plan in (*respected, *brought)} == {NODE_NAME}
    [claim] = claim_plans(pod(), ["data"])
    assert (claim.name, claim.topology_key) == ("claim one/data not in use", CLUSTER)


def test_node_rules_are_told_in_one_line() -> None:
    def rule(*expressions: tuple[str, str, list[str]], **more: Any) -> dict[str, Any]:
        found = [
            {"key": key, "operator": operator, "values": values}
            for key, operator, values in expressions
        ]
        return {"matchExpressions": found, **more}

    terms = [rule(("a", "In", ["x"]), ("b", "Exists", [])), {}, rule(("c", "Gt", ["5"]))]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    tolerations = [{"key": "k", "value": "v"}, {"operator": "Exists"}, {"key": "e", "effect": "X"}]
    made = pod(nodeSelector={"z": "2", "a": "1"}, affinity=affinity, tolerations=tolerations)
    rules = NodeRules.of(made, [NodeSelector()])
    expected = (
        "a=1; z=2; node affinity a in (x) and b or nothing or c>5; tolerates k=v, everything;"
        " its volumes"
    )
    assert rules.describe() == expected
    assert describe_obstacle(rules) == f"node rules: {expected}"
    avoided = Avoided("away from x", "zone", PodScope(None))
    assert describe_obstacle(avoided) == "away from x"
    assert NodeRules().describe() == "no taints"


@pytest.mark.parametrize(
    ("toleration", "said"),
    [
        (Toleration(key="k", value="v"), "k=v"),
        (Toleration(key="k", operator="Exists"), "k"),
        (Toleration(operator="Exists"), "everything"),
        (Toleration(value="v"), "everything"),
        (Toleration(key="k", operator="", value="v"), "k=v"),
    ],
)
def test_a_toleration_is_told_by_what_it_tolerates(toleration: Toleration, said: str) -> None:
    assert _describe(toleration) == said


def test_wishes_are_told_with_their_weights() -> None:
    weighted = {"weight": 3, "podAffinityTerm": term()}
    apart = {"weight": 1, "podAffinityTerm": term("host")}
    preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    chosen = {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        "matchExpressions": [{"key": "gpu", "operator": "Exists"}],
    }
    made = pod(
        affinity={
            "nodeAffinity": {
                PREFERRED: [
                    {"weight": 1, "preference": preference},
                    {"weight": 3, "preference": chosen},
                ]
            },
            "podAffinity": {PREFERRED: [weighted]},
            "podAntiAffinity": {PREFERRED: [apart]},
        },
        topologySpreadConstraints=[spread(whenUnsatisfiable="ScheduleAnyway", minDomains=4)],
    )
    found = [(wish.describe(), weight) for wish, weight in node_wishes(made, has_soft_taints=True)]
    assert found == [
        ("prefers disk in (ssd)", 5_000),
        ("prefers gpu and metadata.name in (n1)", 15_000),
        ("prefers nodes without soft taints", 30_000),
    ]
    plans = pod_wishes(made, NodeRules.of(made))
    few = [(f"at most {most} pods app=web in one by host", 20_000 // 16) for most in (0, 1, 3, 7)]
    assert [(plan.name, weight) for plan, weight in plans] == [
        ("rather near pods app=web in one by zone", 15_000),
        *few,
        ("pods app=web in one spread over zone, skew at most 1, not counting itself", 20_000),
    ]
    attracted = plans[0][0].make("x", "zone")
    assert isinstance(attracted, Attracted)
    assert not attracted.is_in_scopes
    nominated = msgspec.structs.replace(
        pod(), status=msgspec.structs.replace(pod().status, nominated_node_name="n7")
    )
    [(wish, weight)] = node_wishes(nominated, has_soft_taints=False)
    assert (wish.describe(), weight) == ("prefers metadata.name in (n7)", 1_000_000)
