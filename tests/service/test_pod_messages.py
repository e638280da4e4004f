"""Why a pod waits, in words that people know from kube-scheduler."""

from __future__ import annotations

from typing import Any

import msgspec

from argosy.kubernetes.objects import Node, Pod
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.service.kubernetes.messages import waiting_message
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.tracked import PodGang, PodGroupName

HOST = "kubernetes.io/hostname"


def node(name: str, **spec: Any) -> Node:
    document = {"metadata": {"name": name, "labels": {HOST: name, "disk": "ssd"}}, "spec": spec}
    return msgspec.convert(document, Node)


def test_every_node_is_counted_once_with_its_reason() -> None:
    book = Rulebook(lambda attribute, group, sets, is_given: None)
    taint = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
    for name, spec in {
        "a": {"taints": [taint]},
        "b": {"taints": [taint], "unschedulable": True},
        "c": {},
        "d": {},
        "e": {},
    }.items():
        book.set_node(node(name, **spec))
    book.set_node(msgspec.convert({"metadata": {"name": "f"}}, Node))
    avoid = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [avoid]}}
    web = msgspec.convert(
        {
            "metadata": {"name": "web", "namespace": "one", "labels": {"app": "web"}},
            "spec": {"affinity": affinity, "nodeSelector": {"disk": "ssd"}},
        },
        Pod,
    )
    needs = book.needs(web)
    book.put("uid", needs, "c")
    excluded = book.reasons(needs)
    explanation = Explanation(
        ruled_out={"cpu": 2, "filtered": 4},
        nearest_miss=Refusal(Why.NO_ROOM, machine=3, dimension="cpu", lacking=500),
        remedy="relax the task's machine requirements",
    )
    assert waiting_message(explanation, 6, lambda number: "d", (), excluded) == (
        "0/6 nodes are available: 2 Insufficient cpu, "
        "1 node(s) had untolerated taint {gpu: true}, "
        "1 node(s) were unschedulable, "
        "1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't match pod anti-affinity rules. "
        "d came closest and lacks 500m cpu."
    )


def test_reasons_follow_the_nodes() -> None:
    book = Rulebook(lambda attribute, group, sets, is_given: None)
    book.set_node(node("a", unschedulable=True))
    needs = book.needs(msgspec.convert({"metadata": {"name": "p"}}, Pod))
    assert book.reasons(needs) == {"node(s) were unschedulable": 1}
    book.set_node(node("a"))
    assert book.reasons(needs) == {}


def test_a_pod_that_is_placed_with_its_group_is_told_how_many_had_room() -> None:
    gang = PodGang(PodGroupName("", "shop", "train"))
    gang.together = dict.fromkeys("abc")  # type: ignore[assignment]
    explanation = Explanation(ruled_out={"cpu": 2}, remedy="more tasks", gang_room=2)
    assert waiting_message(explanation, 2, str, gang=gang) == (
        "3 pods of group train have to be placed together, and 2 had room. "
        "0/2 nodes are available: 2 Insufficient cpu."
    )


def test_a_limit_is_told_instead_of_nodes() -> None:
    refusal = Refusal(Why.RESOURCE_LIMIT, dimension="cpu", lacking=500)
    limited = Explanation(refused=refusal, remedy=refusal.remedy())
    told = (
        "the scheduler's limit would be exceeded by 0.5 cores. "
        "raise the scheduler's limit, or wait until some of its tasks end."
    )
    assert waiting_message(limited, 6, str) == told
    gang = PodGang(PodGroupName("", "one", "ring"))
    gang.together = dict.fromkeys("ab")  # type: ignore[assignment]
    together = "2 pods of group ring have to be placed together"
    assert waiting_message(limited, 6, str, gang=gang) == f"{together}. {told}"
