"""Preferences, where they decide: nodes are alike otherwise."""

from __future__ import annotations

from typing import Any

from pod_scenarios.table import HOSTNAME, ZONE, Document, PodScenario, node, pod

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_APP = {"app": "web"}
#: Two zones of two nodes.
_ZONES = {
    "a": node("left", labels={"disk": "ssd"}),
    "b": node("left"),
    "c": node("right", labels={"disk": "ssd", "size": "large"}),
    "d": node("right"),
}
_SMALL = {"cpu": "100m", "memory": "128Mi"}


def _chosen(
    name: str,
    on: str,
    document: Document,
    *existing: Document,
    nodes: dict[str, Document] | None = None,
    **more: Any,
) -> PodScenario:
    return PodScenario(
        topic="preferences",
        name=name,
        nodes=nodes or _ZONES,
        pod=document,
        on=on,
        existing=existing,
        is_probed=False,
        **more,
    )


def _label(weight: int, key: str, *values: str) -> Document:
    needed = {"key": key, "operator": "In", "values": list(values)}
    return {"weight": weight, "preference": {"matchExpressions": [needed]}}


def _nodes(*terms: Document) -> Document:
    return {"nodeAffinity": {_PREFERRED: list(terms)}}


def _pods(kind: str, key: str, weight: int = 100) -> Document:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": _APP}}
    return {kind: {_PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}


def _web(name: str, on: str) -> Document:
    return pod(name, on=on, labels=_APP, requests=_SMALL)


def _spread(key: str) -> list[Document]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": _APP},
        }
    ]


_SOFT = {
    "a": node(taints=["old:PreferNoSchedule"]),
    "b": node(),
    "c": node(taints=["old:PreferNoSchedule"]),
}
_FULL = pod("full", on="c", requests={"cpu": "4"})

PREFERENCES = (
    _chosen("a label", "c", pod(affinity=_nodes(_label(1, "size", "large")), requests=_SMALL)),
    _chosen(
        "the greater weight",
        "a c",
        pod(
            affinity=_nodes(_label(80, "disk", "ssd"), _label(20, HOSTNAME, "$ns-b")),
            requests=_SMALL,
        ),
    ),
    _chosen(
        "weights add up",
        "c",
        pod(
            affinity=_nodes(_label(50, "disk", "ssd"), _label(50, "size", "large")),
            requests=_SMALL,
        ),
    ),
    _chosen(
        "the preferred node is full",
        "a b d",
        pod(affinity=_nodes(_label(100, "size", "large")), requests=_SMALL),
        _FULL,
    ),
    _chosen(
        "a rule comes first",
        "b",
        pod(
            affinity=_nodes(_label(100, "size", "large")),
            nodeSelector={HOSTNAME: "$ns-b"},
            requests=_SMALL,
        ),
    ),
    _chosen(
        "a soft taint",
        "b",
        pod(requests=_SMALL),
        nodes=_SOFT,
    ),
    _chosen(
        "a soft taint that is tolerated",
        "c",
        pod(
            affinity=_nodes(_label(100, HOSTNAME, "$ns-c")),
            tolerations=[{"key": "old", "operator": "Exists"}],
            requests=_SMALL,
        ),
        nodes=_SOFT,
    ),
    _chosen(
        "near another pod",
        "c",
        pod(affinity=_pods("podAffinity", HOSTNAME), requests=_SMALL),
        _web("web", "c"),
    ),
    _chosen(
        "in the zone of another pod",
        "c d",
        pod(affinity=_pods("podAffinity", ZONE), requests=_SMALL),
        _web("web", "c"),
    ),
    _chosen(
        "apart from others",
        "d",
        pod(affinity=_pods("podAntiAffinity", HOSTNAME), labels=_APP, requests=_SMALL),
        *(_web(f"web-{letter}", letter) for letter in "abc"),
    ),
    _chosen(
        "apart from others, by zone",
        "c d",
        pod(affinity=_pods("podAntiAffinity", ZONE), labels=_APP, requests=_SMALL),
        _web("web", "a"),
    ),
    _chosen(
        "everybody has some, one has fewer",
        "b",
        pod(affinity=_pods("podAntiAffinity", HOSTNAME), labels=_APP, requests=_SMALL),
        *(_web(f"web-{letter}-{at}", letter) for letter in "acd" for at in range(2)),
        _web("web-b", "b"),
    ),
    _chosen(
        "spread over zones",
        "c d",
        pod(topologySpreadConstraints=_spread(ZONE), labels=_APP, requests=_SMALL),
        _web("web-a", "a"),
        _web("web-b", "b"),
    ),
    _chosen(
        "spread over nodes",
        "d",
        pod(topologySpreadConstraints=_spread(HOSTNAME), labels=_APP, requests=_SMALL),
        *(_web(f"web-{letter}", letter) for letter in "abc"),
    ),
)
