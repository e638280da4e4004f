"""Why a pod waits, in words that people know from kube-scheduler."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.kubernetes.objects import Node, Pod
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.service.kubernetes.messages import LONGEST, waiting_message
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


def group(*pods: str) -> PodGang:
    gang = PodGang(PodGroupName("", "one", "ring"))
    gang.together = dict.fromkeys(pods)  # type: ignore[assignment]
    return gang


NONE = "0/6 nodes are available"
MISS = Refusal(Why.NO_ROOM, machine=0, dimension="memory", lacking=2**30)
TAKEN = Refusal(Why.STALE, machine=2, lacking=3)
LIMIT = Refusal(Why.JOB_LIMIT)
LIMITED = "the scheduler already has as many jobs as it may admit"
TOGETHER = "2 pods of group ring have to be placed together"


@pytest.mark.parametrize(
    ("explanation", "more", "told"),
    [
        (Explanation(), {}, NONE),
        (
            Explanation(ruled_out={"filtered": 1, "down": 2, "pods": 3, "gpu": 4, "cpu": 0}),
            {},
            f"{NONE}: 1 node(s) did not match the pod's rules, 2 node(s) were gone or draining, "
            "3 Too many pods, 4 Insufficient gpu",
        ),
        (
            Explanation(ruled_out={"filtered": 5, "cpu": 1}, remedy="help"),
            {"excluded": {"node(s) were odd": 5}},
            f"{NONE}: 1 Insufficient cpu, 5 node(s) were odd",
        ),
        (Explanation(ruled_out={"filtered": 5}), {"excluded": {}},
         f"{NONE}: 5 node(s) did not match the pod's rules"),
        (Explanation(remedy="help"), {}, f"{NONE}. help"),
        (Explanation(remedy="help"), {"wishes": ("a", "b")}, f"{NONE}. help. ignored: a, b"),
        (Explanation(nearest_miss=MISS), {}, f"{NONE}. n0 came closest and lacks 1Gi memory"),
        (
            Explanation(nearest_miss=msgspec.structs.replace(MISS, machine=-1)),
            {},
            f"{NONE}. the nearest node came closest and lacks 1Gi memory",
        ),
        # What came nearest tells more than what was refused, if it says what was lacking.
        (
            Explanation(nearest_miss=MISS, refused=TAKEN),
            {},
            f"{NONE}. n0 came closest and lacks 1Gi memory",
        ),
        (
            Explanation(nearest_miss=Refusal(Why.NO_ROOM, machine=0), refused=TAKEN),
            {},
            f"{NONE}. n2 changed 3 times since the decision began",
        ),
        (
            Explanation(refused=Refusal(Why.MACHINE_GONE, machine=0)),
            {},
            f"{NONE}. n0 is gone",
        ),
        (Explanation(refused=Refusal(Why.MACHINE_GONE)), {}, f"{NONE}. the machine is gone"),
        # A limit is told alone, unless nodes were looked at as well.
        (Explanation(refused=LIMIT, remedy="help"), {}, f"{LIMITED}. help"),
        (
            Explanation(refused=LIMIT, ruled_out={"cpu": 1}),
            {},
            f"{NONE}: 1 Insufficient cpu. {LIMITED}",
        ),
        (
            Explanation(refused=LIMIT, nearest_miss=MISS),
            {},
            f"{NONE}. n0 came closest and lacks 1Gi memory",
        ),
        # A pod that is left of its group is on its own.
        (Explanation(refused=TAKEN, remedy="help"), {"gang": group("a")},
         f"{NONE}. n2 changed 3 times since the decision began. help"),
        (Explanation(refused=TAKEN, remedy="help"), {"gang": group("a", "b")}, TOGETHER),
        (
            Explanation(gang_room=0, nearest_miss=MISS),
            {"gang": group("a", "b")},
            f"{TOGETHER}, and 0 had room. n0 came closest and lacks 1Gi memory",
        ),
        (
            Explanation(refused=LIMIT, ruled_out={"cpu": 1}, remedy="help"),
            {"gang": group("a", "b")},
            f"{TOGETHER}. {NONE}: 1 Insufficient cpu. {LIMITED}. help",
        ),
    ],
)  # fmt: skip
def test_each_part_of_an_explanation_has_its_words(
    explanation: Explanation, more: dict[str, Any], told: str
) -> None:
    assert waiting_message(explanation, 6, lambda number: f"n{number}", **more) == f"{told}."


def test_a_message_is_no_longer_than_the_api_takes() -> None:
    told = waiting_message(Explanation(remedy="x" * LONGEST), 6, str)
    assert told == f"{NONE}. " + "x" * (LONGEST - len(NONE) - 2) + "."
