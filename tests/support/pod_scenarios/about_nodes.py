"""Taints, node selectors, node affinity."""

from __future__ import annotations

from typing import Any

from pod_scenarios.table import (
    HOSTNAME,
    PodScenario,
    expressions,
    need,
    node,
    pod,
    requires_node,
    tolerate,
)


def _taint(name: str, taints: list[str], *tolerations: dict[str, str], on: str) -> PodScenario:
    """Node a has taints, b has none."""
    return PodScenario(
        topic="taints",
        name=name,
        nodes={"a": node(taints=taints), "b": node()},
        pod=pod(tolerations=list(tolerations)),
        on=on,
    )


TAINTS = (
    _taint("NoSchedule, not tolerated", ["k=v:NoSchedule"], on="b"),
    _taint("NoExecute, not tolerated", ["k=v:NoExecute"], on="b"),
    _taint("PreferNoSchedule, not tolerated", ["k=v:PreferNoSchedule"], on="a b"),
    _taint(
        "tolerated: key, value and effect",
        ["k=v:NoSchedule"],
        tolerate("k", value="v", effect="NoSchedule"),
        on="a b",
    ),
    _taint("another value is tolerated", ["k=v:NoSchedule"], tolerate("k", value="w"), on="b"),
    _taint(
        "tolerated: any value (Exists)",
        ["k=v:NoSchedule"],
        tolerate("k", operator="Exists"),
        on="a b",
    ),
    PodScenario(
        topic="taints",
        name="tolerated: everything (Exists without key)",
        nodes={"a": node(taints=["k=v:NoSchedule", "l:NoExecute"])},
        pod=pod(tolerations=[tolerate(operator="Exists")]),
        is_probed=False,
        on="a",
    ),
    _taint(
        "tolerated: any effect",
        ["k=v:NoSchedule", "k=v:NoExecute"],
        tolerate("k", value="v"),
        on="a b",
    ),
    _taint(
        "another effect is tolerated",
        ["k=v:NoSchedule"],
        tolerate("k", value="v", effect="NoExecute"),
        on="b",
    ),
    _taint(
        "NoExecute tolerated for a while",
        ["k=v:NoExecute"],
        {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},  # type: ignore[dict-item]
        on="a b",
    ),
    _taint(
        "one of two taints is tolerated",
        ["k=v:NoSchedule", "l=w:NoSchedule"],
        tolerate("k", value="v"),
        on="b",
    ),
    _taint("a taint without value, tolerated", ["k:NoSchedule"], tolerate("k"), on="a b"),
    PodScenario(
        topic="taints",
        name="every node has a taint",
        nodes={"a": node(taints=["k=v:NoSchedule"]), "b": node(taints=["l=w:NoExecute"])},
        pod=pod(),
    ),
    PodScenario(
        topic="taints",
        name="a cordoned node",
        nodes={"a": node(is_cordoned=True), "b": node()},
        pod=pod(),
        on="b",
    ),
    PodScenario(
        topic="taints",
        name="a cordoned node, tolerated",
        nodes={"a": node(is_cordoned=True), "b": node()},
        pod=pod(tolerations=[tolerate("node.kubernetes.io/unschedulable", operator="Exists")]),
        on="a b",
    ),
)

_NODES = {
    "a": node(labels={"disk": "ssd", "size": "10"}),
    "b": node(labels={"disk": "hdd", "size": "1_000"}),
    "c": node(labels={"size": "large"}),
    "d": node(labels={"disk": "ssd", "gpu": ""}),
}


def _chosen(name: str, on: str, **spec: Any) -> PodScenario:
    return PodScenario(topic="node affinity", name=name, nodes=_NODES, pod=pod(**spec), on=on)


def _affine(name: str, on: str, *terms: Any) -> PodScenario:
    return _chosen(name, on, affinity=requires_node(*terms))


def _holding(name: str, on: str, *requirements: Any) -> PodScenario:
    return _affine(name, on, expressions(*requirements))


NODE_AFFINITY = (
    _chosen("node selector", "a d", nodeSelector={"disk": "ssd"}),
    _chosen("node selector with two labels", "a", nodeSelector={"disk": "ssd", "size": "10"}),
    _chosen("node selector, empty value", "d", nodeSelector={"gpu": ""}),
    _chosen("node selector that no node has", "", nodeSelector={"disk": "tape"}),
    _chosen("node selector, host name", "c", nodeSelector={HOSTNAME: "$ns-c"}),
    _holding("In", "a b d", need("disk", "In", "ssd", "hdd")),
    _holding("NotIn, also without the label", "b c", need("disk", "NotIn", "ssd")),
    _holding("Exists", "a b d", need("disk", "Exists")),
    _holding("DoesNotExist", "c", need("disk", "DoesNotExist")),
    _holding("Gt, numbers only", "a", need("size", "Gt", "9")),
    _holding("Lt, numbers only", "a", need("size", "Lt", "2000")),
    _holding("Gt is strict", "", need("size", "Gt", "10")),
    _holding("all expressions of a term", "a", need("disk", "Exists"), need("size", "In", "10")),
    _affine(
        "any term",
        "a c d",
        expressions(need("disk", "In", "ssd")),
        expressions(need("disk", "DoesNotExist")),
    ),
    _affine("an empty term selects no node", "b", {}, expressions(need("disk", "In", "hdd"))),
    _affine("field metadata.name In", "b", {"matchFields": [need("metadata.name", "In", "$ns-b")]}),
    _affine(
        "field metadata.name NotIn",
        "a c d",
        {"matchFields": [need("metadata.name", "NotIn", "$ns-b")]},
    ),
    _affine(
        "fields and labels of one term",
        "",
        {
            "matchFields": [need("metadata.name", "In", "$ns-b")],
            "matchExpressions": [need("disk", "In", "ssd")],
        },
    ),
    _chosen(
        "node selector and node affinity",
        "d",
        nodeSelector={"disk": "ssd"},
        affinity=requires_node(expressions(need("size", "DoesNotExist"))),
    ),
    _chosen(
        "preferred node affinity excludes nothing",
        "a b c d",
        affinity={
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "preference": expressions(need("disk", "In", "ssd"))}
                ]
            }
        },
    ),
)
