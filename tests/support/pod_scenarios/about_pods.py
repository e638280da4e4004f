"""Pod affinity, anti-affinity, topology spread."""

from __future__ import annotations

from typing import Any

from pod_scenarios.table import (
    HOSTNAME,
    ZONE,
    Document,
    PodScenario,
    apart,
    expressions,
    near,
    need,
    node,
    pod,
    requires_node,
    spread,
    term,
    tolerate,
)

#: Nodes a and b in zone one, c in zone two, d in none.
_NODES = {"a": node("one"), "b": node("one"), "c": node("two"), "d": node()}
_APP = {"app": "web"}
_MINE = "web"


def _namespace(labels: dict[str, str] | None = None) -> tuple[str, Document]:
    """Another namespace."""
    return "/api/v1/namespaces", {"metadata": {"name": "$ns-other", "labels": labels or {}}}


def _case(topic: str, name: str, on: str, document: Document, **more: Any) -> PodScenario:
    settings: dict[str, Any] = {"nodes": _NODES, **more}
    return PodScenario(topic=topic, name=name, on=on, pod=document, **settings)


def _near(name: str, on: str, document: Document, *existing: Document, **more: Any) -> PodScenario:
    return _case("pod affinity", name, on, document, existing=existing, **more)


def _apart(name: str, on: str, document: Document, *existing: Document, **more: Any) -> PodScenario:
    return _case("pod anti-affinity", name, on, document, existing=existing, **more)


_WEB_ON_A = pod("web", on="a", labels=_APP)

AFFINITY = (
    _near("near a pod on the same node", "a", pod(affinity=near(term(HOSTNAME, _APP))), _WEB_ON_A),
    _near("near a pod in the same zone", "a b", pod(affinity=near(term(ZONE, _APP))), _WEB_ON_A),
    _near("no such pod", "", pod(affinity=near(term(ZONE, _APP)))),
    _near(
        "the first of its kind goes to any node with the key",
        "a b c",
        pod(labels=_APP, affinity=near(term(ZONE, _APP))),
    ),
    _near(
        "the second follows the first",
        "c",
        pod(labels=_APP, affinity=near(term(ZONE, _APP))),
        pod("web", on="c", labels=_APP),
    ),
    _near(
        "a first pod on a node without the key is not there",
        "a b c",
        pod(labels=_APP, affinity=near(term(ZONE, _APP))),
        pod("web", on="d", labels=_APP),
    ),
    _near(
        "two terms: one pod has to match both",
        "",
        pod(affinity=near(term(ZONE, _APP), term(ZONE, {"tier": "front"}))),
        _WEB_ON_A,
        pod("front", on="b", labels={"tier": "front"}),
    ),
    _near(
        "two terms by different keys",
        "a",
        pod(affinity=near(term(ZONE, _APP), term(HOSTNAME, {"tier": "front"}))),
        pod("both", on="a", labels={"app": "web", "tier": "front"}),
    ),
    _near(
        "a first pod that lacks one of two keys blocks",
        "",
        pod(labels=_APP, affinity=near(term(HOSTNAME, _APP), term(ZONE, _APP))),
        pod("web", on="d", labels=_APP),
    ),
    _near(
        "pods of other namespaces do not count",
        "",
        pod(affinity=near(term(ZONE, _APP))),
        pod("web", on="a", labels=_APP, namespace="$ns-other"),
        objects=(_namespace(),),
    ),
    _near(
        "namespaces by name",
        "a b",
        pod(affinity=near(term(ZONE, _APP, namespaces=["$ns-other"]))),
        pod("web", on="a", labels=_APP, namespace="$ns-other"),
        objects=(_namespace(),),
    ),
    _near(
        "namespaces by label",
        "a b",
        pod(affinity=near(term(ZONE, _APP, namespaceSelector={"matchLabels": {"team": "$ns"}}))),
        pod("web", on="a", labels=_APP, namespace="$ns-other"),
        pod("web", on="c", labels=_APP),
        objects=(_namespace({"team": "$ns"}),),
    ),
    _near(
        "all namespaces",
        "a b",
        pod(affinity=near(term(ZONE, {"app": "$ns"}, namespaceSelector={}))),
        pod("web", on="a", labels={"app": "$ns"}, namespace="$ns-other"),
        objects=(_namespace(),),
    ),
    _near(
        "matchLabelKeys: only pods of the same version",
        "c",
        pod(
            labels={"version": "2"},
            affinity=near(term(ZONE, _APP, matchLabelKeys=["version"])),
        ),
        pod("old", on="a", labels={"app": "web", "version": "1"}),
        pod("new", on="c", labels={"app": "web", "version": "2"}),
    ),
    _near(
        "mismatchLabelKeys: only pods of other tenants",
        "a b",
        pod(
            labels={"tenant": "me"},
            affinity=near(term(ZONE, _APP, mismatchLabelKeys=["tenant"])),
        ),
        pod("theirs", on="a", labels={"app": "web", "tenant": "you"}),
        pod("mine", on="c", labels={"app": "web", "tenant": "me"}),
    ),
    _near(
        "terminating pods count",
        "a b",
        pod(affinity=near(term(ZONE, _APP))),
        pod("web", on="a", labels=_APP, is_terminating=True),
    ),
    _near(
        "a selector that is missing selects nothing",
        "",
        pod(affinity=near(term(ZONE, selector=None))),
        _WEB_ON_A,
    ),
    _near(
        "expressions",
        "a b",
        pod(affinity=near(term(ZONE, selector=expressions(need("app", "In", "web", "api"))))),
        _WEB_ON_A,
        pod("db", on="c", labels={"app": "db"}),
    ),
    _near(
        "preferred affinity excludes nothing",
        "a b c d",
        pod(
            affinity={
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 100, "podAffinityTerm": term(ZONE, _APP)}
                    ]
                }
            }
        ),
        _WEB_ON_A,
    ),
)

ANTI_AFFINITY = (
    _apart("not on the node", "b c d", pod(affinity=apart(term(HOSTNAME, _APP))), _WEB_ON_A),
    _apart("not in the zone", "c d", pod(affinity=apart(term(ZONE, _APP))), _WEB_ON_A),
    _apart(
        "a pod on a node without the key keeps nobody away",
        "a b c d",
        pod(affinity=apart(term(ZONE, _APP))),
        pod("web", on="d", labels=_APP),
    ),
    _apart(
        "others avoid it, too",
        "c d",
        pod(labels=_APP),
        pod("lonely", on="a", affinity=apart(term(ZONE, _APP))),
    ),
    _apart(
        "others avoid others",
        "a b c d",
        pod(labels={"app": "db"}),
        pod("lonely", on="a", affinity=apart(term(ZONE, _APP))),
    ),
    _apart(
        "others avoid it from another namespace",
        "b c d",
        pod(labels=_APP),
        pod(
            "lonely",
            on="a",
            namespace="$ns-other",
            affinity=apart(term(HOSTNAME, _APP, namespaces=["$ns"])),
        ),
        objects=(_namespace(),),
    ),
    _apart(
        "others avoid their own namespace only",
        "a b c d",
        pod(labels=_APP),
        pod("lonely", on="a", namespace="$ns-other", affinity=apart(term(HOSTNAME, _APP))),
        objects=(_namespace(),),
    ),
    _apart(
        "others avoid namespaces by label",
        "b c d",
        pod(labels=_APP),
        pod(
            "lonely",
            on="a",
            namespace="$ns-other",
            affinity=apart(
                term(
                    HOSTNAME,
                    _APP,
                    namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "$ns"}},
                )
            ),
        ),
        objects=(_namespace(),),
    ),
    _apart(
        "everybody of the namespace is avoided",
        "b d",
        pod(affinity=apart(term(HOSTNAME, {}))),
        _WEB_ON_A,
        pod("db", on="c", labels={"app": "db"}),
    ),
    _apart(
        "a selector that is missing avoids nobody",
        "a b c d",
        pod(affinity=apart(term(HOSTNAME, selector=None))),
        _WEB_ON_A,
    ),
    _apart(
        "two terms",
        "d",
        pod(affinity=apart(term(ZONE, _APP), term(HOSTNAME, {"app": "db"}))),
        _WEB_ON_A,
        pod("db", on="c", labels={"app": "db"}),
    ),
    _apart(
        "no node is left",
        "",
        pod(affinity=apart(term(HOSTNAME, _APP))),
        *(pod(f"web-{each}", on=each, labels=_APP) for each in "abcd"),
    ),
    _apart(
        "matchLabelKeys: pods of another version may be there",
        "a b d",
        pod(
            labels={"app": "web", "version": "2"},
            affinity=apart(term(ZONE, _APP, matchLabelKeys=["version"])),
        ),
        pod("old", on="a", labels={"app": "web", "version": "1"}),
        pod("new", on="c", labels={"app": "web", "version": "2"}),
    ),
    _apart(
        "mismatchLabelKeys: a zone for each tenant",
        "c d",
        pod(
            labels={"tenant": "me"},
            affinity=apart(
                term(
                    ZONE,
                    selector=expressions(need("tenant", "Exists")),
                    mismatchLabelKeys=["tenant"],
                )
            ),
        ),
        pod("theirs", on="a", labels={"tenant": "you"}),
        pod("mine", on="c", labels={"tenant": "me"}),
    ),
    _apart(
        "terminating pods count",
        "b c d",
        pod(affinity=apart(term(HOSTNAME, _APP))),
        pod("web", on="a", labels=_APP, is_terminating=True),
    ),
    _apart(
        "pods that have ended do not count",
        "a b c d",
        pod(affinity=apart(term(HOSTNAME, _APP))),
        pod("web", on="a", labels=_APP, phase="Failed"),
    ),
    _apart(
        "near one pod and apart from another",
        "b",
        pod(affinity=near(term(ZONE, _APP)) | apart(term(HOSTNAME, _APP))),
        _WEB_ON_A,
    ),
)

_SPREAD_NODES = {"a": node("one"), "b": node("one"), "c": node("two"), "d": node("three")}


def _spread(
    name: str, on: str, constraints: list[Document], placed: str, **more: Any
) -> PodScenario:
    """`placed` has the letter of a node for each pod that counts."""
    existing = tuple(
        pod(f"{_MINE}-{at}", on=each, labels=_APP) for at, each in enumerate(placed.split())
    )
    spec = more.pop("spec", {})
    labels = more.pop("labels", _APP)
    settings: dict[str, Any] = {"nodes": _SPREAD_NODES, **more}
    settings["existing"] = existing + tuple(more.get("existing", ()))
    return PodScenario(
        topic="topology spread",
        name=name,
        on=on,
        pod=pod(labels=labels, topologySpreadConstraints=constraints, **spec),
        **settings,
    )


_BY_ZONE = spread(ZONE, _APP)
#: A key that only the nodes of one scenario have, where other nodes would count.
_RACK = "$ns/rack"


def _rack(value: str, **more: Any) -> Document:
    return node(labels={_RACK: value, **more.pop("labels", {})}, **more)


SPREAD = (
    _spread("nothing is there yet", "a b c d", [_BY_ZONE], ""),
    _spread("one zone is ahead", "c d", [_BY_ZONE], "a"),
    _spread("two zones are ahead", "d", [_BY_ZONE], "a c"),
    _spread("all are level", "a b c d", [_BY_ZONE], "a c d"),
    _spread("a skew of two", "a b c d", [spread(ZONE, _APP, 2)], "a"),
    _spread("a skew of two is reached", "c d", [spread(ZONE, _APP, 2)], "a b"),
    _spread("by node", "b d", [spread(HOSTNAME, _APP)], "a c"),
    _spread(
        "a node without the key",
        "c",
        [_BY_ZONE],
        "a",
        nodes={"a": node("one"), "b": node(), "c": node("two")},
    ),
    _spread(
        "minDomains: too few zones",
        "c d",
        [spread(ZONE, _APP, minDomains=4)],
        "a",
    ),
    _spread(
        "minDomains: too few zones, and all are at the limit",
        "",
        [spread(ZONE, _APP, minDomains=4)],
        "a c d",
    ),
    _spread(
        "minDomains: enough zones",
        "a b c d",
        [spread(ZONE, _APP, minDomains=3)],
        "a c d",
    ),
    _spread("the pod itself does not count", "c d", [_BY_ZONE], "a b", labels={"app": "db"}),
    _spread(
        "pods of other namespaces do not count",
        "a b c d",
        [_BY_ZONE],
        "",
        existing=(pod("web", on="a", labels=_APP, namespace="$ns-other"),),
        objects=(_namespace(),),
    ),
    _spread(
        "terminating pods do not count",
        "a b c d",
        [_BY_ZONE],
        "",
        existing=(pod("web", on="a", labels=_APP, is_terminating=True),),
    ),
    _spread(
        "two constraints",
        "b",
        [spread(ZONE, _APP, 2), spread(HOSTNAME, _APP)],
        "a c d",
    ),
    _spread(
        "two constraints, and a node that lacks a key",
        "a b",
        [_BY_ZONE, spread(HOSTNAME, _APP)],
        "a b d d",
        nodes={"a": node("one"), "b": node("one"), "c": node(), "d": node("two")},
    ),
    _spread(
        "nodes without all keys are no domains",
        "a b",
        [spread(_RACK, _APP), spread("$ns/row", _APP, 5)],
        "a b",
        nodes={
            "a": _rack("1", labels={"$ns/row": "1"}),
            "b": _rack("2", labels={"$ns/row": "1"}),
            "c": _rack("3"),
        },
    ),
    _spread(
        "nodeAffinityPolicy Honor: other nodes are no domains",
        "a b",
        [spread(_RACK, _APP)],
        "a b",
        nodes={"a": _rack("1"), "b": _rack("2"), "c": _rack("3", labels={"disk": "hdd"})},
        spec={"affinity": requires_node(expressions(need("disk", "DoesNotExist")))},
    ),
    _spread(
        "nodeAffinityPolicy Ignore: they are",
        "",
        [spread(_RACK, _APP, nodeAffinityPolicy="Ignore")],
        "a b",
        nodes={"a": _rack("1"), "b": _rack("2"), "c": _rack("3", labels={"disk": "hdd"})},
        spec={"affinity": requires_node(expressions(need("disk", "DoesNotExist")))},
    ),
    _spread(
        "nodeTaintsPolicy Ignore: tainted nodes are domains",
        "",
        [spread(_RACK, _APP)],
        "a b",
        nodes={"a": _rack("1"), "b": _rack("2"), "c": _rack("3", taints=["k=v:NoSchedule"])},
    ),
    _spread(
        "nodeTaintsPolicy Honor: they are not",
        "a b",
        [spread(_RACK, _APP, nodeTaintsPolicy="Honor")],
        "a b",
        is_probed=False,
        nodes={"a": _rack("1"), "b": _rack("2"), "c": _rack("3", taints=["k=v:NoSchedule"])},
    ),
    _spread(
        "nodeTaintsPolicy Honor: tolerated taints",
        "c",
        [spread(_RACK, _APP, nodeTaintsPolicy="Honor")],
        "a b",
        is_probed=False,
        nodes={"a": _rack("1"), "b": _rack("2"), "c": _rack("3", taints=["k=v:NoSchedule"])},
        spec={"tolerations": [tolerate("k", value="v")]},
    ),
    _spread(
        "nodeTaintsPolicy Honor: a cordoned node is a domain",
        "",
        [spread(_RACK, _APP, nodeTaintsPolicy="Honor")],
        "a b",
        is_probed=False,
        nodes={"a": _rack("1"), "b": _rack("2"), "c": _rack("3", is_cordoned=True)},
    ),
    _spread(
        "matchLabelKeys: versions are spread by themselves",
        "c d",
        [spread(ZONE, _APP, matchLabelKeys=["version"])],
        "c c d",
        labels={"app": "web", "version": "2"},
        existing=(pod("new", on="b", labels={"app": "web", "version": "2"}),),
    ),
    _spread(
        "ScheduleAnyway excludes nothing",
        "a b c d",
        [spread(ZONE, _APP, must=False)],
        "a a b",
    ),
    _spread(
        "the zone that is behind is full",
        "",
        [_BY_ZONE],
        "a",
        nodes={"a": node("one"), "b": node("one"), "c": node("two", pods=0)},
    ),
)
