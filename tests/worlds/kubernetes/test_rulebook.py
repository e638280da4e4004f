"""Marks say which nodes are open, whatever comes and goes: compared with a plain evaluation of the
objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)
from pod_oracle import admissible

from argosy.kubernetes.objects import Node, Pod
from argosy.model.machines import MACHINE_GROUP
from argosy.worlds.kubernetes import rulebook as rulebooks
from argosy.worlds.kubernetes.rulebook import PodNeeds, Rulebook

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
KEYS = (ZONE, HOST, "rack")
NAMES = ("n0", "n1", "n2", "n3")
SPACES = ("one", "two")


class Marks:
    """A host's marks, by attribute."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.given: dict[str, set[str]] = {}

    def mark(self, attribute: str, group: str, sets: Sequence[str], is_given: bool) -> None:
        names = set(sets)
        if group != MACHINE_GROUP:
            names = {
                name for name, node in self.nodes.items() if node.metadata.labels.get(group) in sets
            }
        having = self.given.setdefault(attribute, set())
        if is_given:
            having |= names
        else:
            having -= names


def marked(marks: Marks, needs: PodNeeds) -> set[str]:
    """The nodes that have all that a pod requires."""
    found = set(marks.nodes)
    for attribute in needs.attributes:
        found &= marks.given.get(attribute, set())
    return found


labels = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(("x", "y")), max_size=2)
selectors: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.builds(lambda chosen: {"matchLabels": chosen}, labels),
    st.builds(
        lambda operator, values: {
            "matchExpressions": [
                {
                    "key": "app",
                    "operator": operator,
                    **({"values": values} if operator in ("In", "NotIn") else {}),
                }
            ]
        },
        st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
        st.lists(st.sampled_from(("x", "y")), min_size=1, max_size=2),
    ),
)
terms = st.builds(
    lambda key, selector, spaces, of_space, same: {
        "topologyKey": key,
        "labelSelector": selector,
        "namespaces": spaces,
        "namespaceSelector": of_space,
        "matchLabelKeys": same,
    },
    st.sampled_from(KEYS),
    selectors,
    st.lists(st.sampled_from(SPACES), max_size=1),
    st.one_of(st.none(), st.just({}), st.just({"matchLabels": {"team": "a"}})),
    st.lists(st.just("tier"), max_size=1),
)
constraints = st.builds(
    lambda key, skew, selector, least, affinity, taints: {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        "minDomains": least,
        "nodeAffinityPolicy": affinity,
        "nodeTaintsPolicy": taints,
    },
    st.sampled_from(KEYS),
    st.integers(1, 2),
    selectors,
    st.one_of(st.none(), st.integers(1, 3)),
    st.sampled_from(("Honor", "Ignore")),
    st.sampled_from(("Honor", "Ignore")),
)
ports = st.builds(
    lambda number, address, protocol: {
        "containerPort": 1,
        "hostPort": number,
        "hostIP": address,
        "protocol": protocol,
    },
    st.sampled_from((80, 81)),
    st.sampled_from(("", "0.0.0.0", "::", "10.0.0.1")),
    st.sampled_from(("TCP", "UDP")),
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """A pod without name."""
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "ports": draw(st.lists(ports, max_size=1))}],
        "affinity": {
            "podAffinity": {_REQUIRED: draw(st.lists(terms, max_size=2))},
            "podAntiAffinity": {_REQUIRED: draw(st.lists(terms, max_size=2))},
        },
        "topologySpreadConstraints": draw(
            st.lists(constraints, max_size=2, unique_by=lambda each: each["topologyKey"])
        ),
        "nodeSelector": draw(st.sampled_from(({}, {}, {"disk": "ssd"}))),
        "tolerations": draw(
            st.sampled_from(([], [{"key": "k", "operator": "Exists"}], [{"operator": "Exists"}]))
        ),
    }
    metadata: dict[str, Any] = {
        "namespace": draw(st.sampled_from(SPACES)),
        "labels": draw(labels),
    }
    if draw(st.integers(0, 4)) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": spec}


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    marks = draw(
        st.fixed_dictionaries(
            {},
            optional={
                ZONE: st.sampled_from(("a", "b")),
                "rack": st.sampled_from(("1", "2")),
                "disk": st.just("ssd"),
            },
        )
    )
    taint = {"key": "k", "effect": draw(st.sampled_from(("NoSchedule", "PreferNoSchedule")))}
    return {
        "labels": marks,
        "taints": draw(st.sampled_from(([], [], [taint]))),
        "unschedulable": draw(st.integers(0, 5)) == 0,
        "has_host": draw(st.integers(0, 5)) > 0,
    }


class RulebookMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.marks = Marks()
        self.book = Rulebook(self.marks.mark)
        self.spaces: dict[str, Mapping[str, str]] = {}
        self.placed: dict[str, tuple[dict[str, Any], str, PodNeeds]] = {}
        self.waiting: dict[str, tuple[dict[str, Any], PodNeeds]] = {}
        self.made = 0

    @initialize(documents=st.lists(nodes(), min_size=2, max_size=4))
    def some_nodes(self, documents: list[dict[str, Any]]) -> None:
        self.book.set_namespace("one", {"team": "a"})
        self.spaces["one"] = {"team": "a"}
        for name, document in zip(NAMES, documents, strict=False):
            self.node_changes(name, document)

    @rule(name=st.sampled_from(NAMES), document=nodes())
    def node_changes(self, name: str, document: dict[str, Any]) -> None:
        host = {HOST: name} if document["has_host"] else {}
        node = msgspec.convert(
            {
                "metadata": {"name": name, "labels": {**document["labels"], **host}},
                "spec": {
                    "taints": document["taints"],
                    "unschedulable": document["unschedulable"],
                },
            },
            Node,
        )
        # Zones are groups of machines: the host knows of them first.
        self.marks.nodes[name] = node
        self.book.set_node(node)

    @rule(name=st.sampled_from(NAMES))
    def node_goes(self, name: str) -> None:
        self.book.remove_node(name)
        self.marks.nodes.pop(name, None)
        for having in self.marks.given.values():
            having.discard(name)
        for uid in [uid for uid, (_, where, _) in self.placed.items() if where == name]:
            self.book.release(self.placed.pop(uid)[2])

    @rule(document=pods())
    def pod_comes(self, document: dict[str, Any]) -> None:
        self.made += 1
        uid = f"p{self.made}"
        document["metadata"] |= {"name": uid, "uid": uid}
        pod = msgspec.convert(document, Pod)
        self.waiting[uid] = document, self.book.needs(pod)

    @rule(document=pods(), data=st.data())
    def pod_of_others_comes(self, document: dict[str, Any], data: st.DataObject) -> None:
        if not self.marks.nodes:
            return
        self.made += 1
        uid = f"p{self.made}"
        document["metadata"] |= {"name": uid, "uid": uid}
        pod = msgspec.convert(document, Pod)
        where = data.draw(st.sampled_from(sorted(self.marks.nodes)))
        needs = self.book.presence(pod)
        self.book.put(uid, needs, where)
        self.placed[uid] = document, where, needs

    @rule(data=st.data())
    def pod_is_placed(self, data: st.DataObject) -> None:
        if not (self.waiting and self.marks.nodes):
            return
        uid = data.draw(st.sampled_from(sorted(self.waiting)))
        where = data.draw(st.sampled_from(sorted(self.marks.nodes)))
        pod, needs = self.waiting.pop(uid)
        self.book.put(uid, needs, where)
        self.placed[uid] = pod, where, needs

    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        if not (self.waiting or self.placed):
            return
        uid = data.draw(st.sampled_from(sorted({*self.waiting, *self.placed})))
        if uid in self.placed:
            needs = self.placed.pop(uid)[2]
            self.book.leave(uid)
        else:
            needs = self.waiting.pop(uid)[1]
        self.book.release(needs)

    @invariant()
    def marks_and_last_word_are_right(self) -> None:
        there = [(pod, where) for pod, where, _ in self.placed.values()]
        for pod, needs in self.waiting.values():
            expected = admissible(pod, self.marks.nodes, there, self.spaces)
            allowed = {
                name for name in self.marks.nodes if self.book.forbidding(needs, name) is None
            }
            assert allowed == expected, pod
            assert marked(self.marks, needs) == expected, pod

    def teardown(self) -> None:
        for uid in list(self.placed):
            self.book.leave(uid)
            self.book.release(self.placed.pop(uid)[2])
        for uid in list(self.waiting):
            self.book.release(self.waiting.pop(uid)[1])
        assert self.book.is_unused


TestRulebook = RulebookMachine.TestCase
TestRulebook.settings = settings(
    max_examples=30,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_marks_that_nobody_uses_are_taken_from_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulebooks, "MOST_UNUSED", 1)
    marks = Marks()
    book = Rulebook(marks.mark)
    node = msgspec.convert({"metadata": {"name": "n0"}}, Node)
    marks.nodes["n0"] = node
    book.set_node(node)
    for number in range(3):
        pod = msgspec.convert(
            {"metadata": {"name": "p"}, "spec": {"nodeSelector": {"no": str(number)}}}, Pod
        )
        book.release(book.needs(pod))
        port = {"containerPort": 1, "hostPort": 1 + number}
        pod = msgspec.convert(
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "ports": [port]}]}},
            Pod,
        )
        book.release(book.needs(pod))
    assert sum(map(bool, marks.given.values())) <= 1
