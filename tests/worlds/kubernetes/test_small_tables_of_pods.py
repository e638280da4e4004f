"""Small rules about pods, each by a table."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from test_pod_cluster import node, pod
from tracked_pods import tracked

from argosy.kubernetes.objects import (
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodDisruptionBudget,
    PodStatus,
    SelectorRequirement,
    Taint,
    Toleration,
)
from argosy.worlds.kubernetes.abandoned import LONGEST_REST, AbandonedPods
from argosy.worlds.kubernetes.budgets import DisruptionBudgets
from argosy.worlds.kubernetes.node_rules import NodeRules, tolerates
from argosy.worlds.kubernetes.pod_index import PodIndex
from argosy.worlds.kubernetes.pod_wishes import node_wishes
from argosy.worlds.kubernetes.priorities import Precedences
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.selectors import selects_node, term_matches
from argosy.worlds.kubernetes.tracked import PodState


def test_a_pod_that_is_abandoned_again_rests_twice_as_long() -> None:
    pods, one = AbandonedPods(), tracked(PodState.WAITING, "one")
    for rest in (1, 2, 4, 8, 16, 32, LONGEST_REST, LONGEST_REST):
        assert not pods.are_resting
        assert pods.wake() == []
        pods.add(one)
        pods.add(one)
        assert pods.are_resting
        for _ in range(rest - 1):
            assert pods.wake() == []
        assert pods.wake() == [one]
    pods.add(one)
    other = tracked(PodState.WAITING, "other")
    pods.add(other)
    assert pods.wake() == [other]
    pods.forget("one")
    pods.forget("one")
    assert not pods.are_resting
    pods.add(one)
    assert pods.wake() == [one], "it is another pod of that name"


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "l", "value": "v"}, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "", "value": "v"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"value": "v"}, False),
        ({"key": "k", "operator": "Odd", "value": "v"}, False),
        ({"key": "k", "operator": "Lt", "value": "5"}, False),
    ],
)
def test_a_taint_is_tolerated_by_one_that_fits_it(
    toleration: dict[str, str], expected: bool
) -> None:
    made = msgspec.convert(toleration, Toleration)
    taint = Taint(key="k", value="v", effect="NoSchedule")
    assert tolerates([made], taint) is expected
    never = Toleration(key="never")
    assert tolerates([never, made], taint) is expected
    assert not tolerates([], taint)


def test_a_node_is_selected_by_one_of_the_terms_with_all_of_its_parts() -> None:
    def require(**labels: str) -> tuple[SelectorRequirement, ...]:
        return tuple(
            SelectorRequirement(key=key, operator="In", values=(value,))
            for key, value in labels.items()
        )

    named = (SelectorRequirement(key="metadata.name", operator="In", values=("n0",)),)
    made = node("n0", a="1", b="2")
    table = [
        (NodeSelectorTerm(), False),
        (NodeSelectorTerm(match_expressions=require(a="1")), True),
        (NodeSelectorTerm(match_expressions=require(a="1", b="3")), False),
        (NodeSelectorTerm(match_fields=named), True),
        (NodeSelectorTerm(match_expressions=require(a="2"), match_fields=named), False),
        (NodeSelectorTerm(match_fields=require(a="1")), False),
    ]
    for term, expected in table:
        assert term_matches(term, made) is expected
        selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(), term))
        assert selects_node(selector, made) is expected
    assert selects_node(None, made)
    assert not selects_node(NodeSelector(), made)
    rules = NodeRules(
        selector={"a": "1"},
        affinity=NodeSelector(node_selector_terms=(table[1][0],)),
        volumes=(NodeSelector(node_selector_terms=(table[3][0],)),),
    )
    assert rules.selects(made)
    for other in (node("n0", a="2"), node("n1", a="1")):
        assert not rules.selects(other)
    wrong = NodeSelector(node_selector_terms=(table[2][0],))
    assert not msgspec.structs.replace(rules, affinity=wrong).selects(made)
    assert not msgspec.structs.replace(rules, volumes=(*rules.volumes, wrong)).selects(made)


def test_precedence_is_0_for_pods_without_a_priority_and_high_for_the_system() -> None:
    usual = Precedences()
    assert [usual.of(each) for each in (0, 2_000_000_000, 2_000_001_000)] == [0, 32_000, 32_001]
    assert usual.of(1) == 16_000
    assert usual.of(2) == 24_000
    assert usual.of(1) == 16_000
    assert usual.of(-1) == (-32_769 + 0) // 2
    known = Precedences([100, -5, 100, 0, 2_000_000_000, 1_000])
    assert [known.of(each) for each in (100, 1_000, -5)] == [32_000 // 3, 64_000 // 3, -16_384]
    assert known.of(500) == (32_000 // 3 + 64_000 // 3) // 2


def test_every_wish_weighs_something() -> None:
    preference = {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
    wanted = [{"weight": weight, "preference": preference} for weight in (1, *[100] * 249)]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wanted}}
    weights = [weight for _, weight in node_wishes(pod("p", affinity=affinity),
                                                   has_soft_taints=False)]  # fmt: skip
    assert weights == [1, *[100 * 20_000 // 24_901] * 249]


def resizing(conditions: list[dict[str, Any]], statuses: list[dict[str, Any]]) -> Pod:
    containers = [
        {"name": name, "resources": {"requests": {"cpu": "2"}}} for name in ("one", "other")
    ]
    made = pod("p", containers=containers)
    status = {"conditions": conditions, "containerStatuses": statuses}
    return msgspec.structs.replace(made, status=msgspec.convert(status, PodStatus))


INFEASIBLE = {"type": "PodResizePending", "reason": "Infeasible", "status": "True"}
READY = {"type": "Ready", "status": "True"}
SMALL = {"name": "one", "resources": {"requests": {"cpu": "1"}}}
LARGE = {"name": "one", "resources": {"requests": {"cpu": "5"}}}


@pytest.mark.parametrize(
    ("conditions", "statuses", "cpu"),
    [
        ([], [], 4_000),
        ([], [SMALL], 4_000),
        ([], [LARGE], 7_000),
        ([], [{"name": "other"}, LARGE], 7_000),
        ([], [LARGE, {"name": "other"}], 7_000),
        ([], [{**LARGE, "name": "strange"}], 4_000),
        ([], [{**SMALL, "allocatedResources": {"cpu": "6"}}], 8_000),
        ([INFEASIBLE], [SMALL], 3_000),
        ([READY, INFEASIBLE], [SMALL], 3_000),
        ([INFEASIBLE, READY], [SMALL], 3_000),
        ([{**INFEASIBLE, "reason": "Deferred"}], [SMALL], 4_000),
    ],
)
def test_a_container_that_is_resized_counts_with_the_most_of_what_it_is_given(
    conditions: list[dict[str, Any]], statuses: list[dict[str, Any]], cpu: int
) -> None:
    assert pod_request(resizing(conditions, statuses)).cpu == cpu


def budget(allowed: int, name: str = "b", selector: Any = None) -> PodDisruptionBudget:
    document = {
        "metadata": {"name": name, "namespace": "one"},
        "spec": {"selector": {} if selector is None else selector},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(document, PodDisruptionBudget)


def test_budgets_count_down_until_they_are_seen_anew() -> None:
    budgets, pods = DisruptionBudgets(), [pod(name) for name in ("p", "q")]
    key = ("one", "b")
    assert budgets.exhausted_by(pods) == set()
    assert not budgets.is_exhausted(key)
    budgets.put(budget(1))
    assert list(budgets.of(pods[0])) == [key]
    assert (budgets.exhausted_by(pods[:1]), budgets.exhausted_by(pods)) == (set(), {key})
    assert not budgets.is_exhausted(key)
    budgets.spend(pods[:1])
    assert budgets.is_exhausted(key)
    assert budgets.exhausted_by(pods[:1]) == {key}
    budgets.put(budget(2))
    assert budgets.exhausted_by(pods) == set()
    budgets.put(budget(1, "c", {"matchLabels": {"app": "none"}}))
    assert list(budgets.of(pods[0])) == [key]
    budgets.remove("one", "b")
    budgets.remove("one", "b")
    assert list(budgets.of(pods[0])) == []
    assert budgets.exhausted_by(pods) == set()
    assert not budgets.is_exhausted(key)


def test_pods_are_found_by_their_tasks_and_tries() -> None:
    index = PodIndex()
    one, two, three = (tracked(PodState.WAITING, name, job="", number=None) for name in "abc")
    for each in (one, two, three):
        each.job, each.index, each.number = "", 0, None
    index.give_job(one, "alone")
    index.give_tasks([two, three], "both")
    assert (index.of_job("alone"), index.of_job("alone", 1)) == (one, None)
    assert [index.of_job("both", at) for at in range(3)] == [two, three, None]
    assert list(index.all_of_job("both")) == [two, three]
    assert list(index.all_of_job("alone")) == [one]
    assert list(index.all_of_job("none")) == []
    assert [index.has_others(each) for each in (one, two, three)] == [False, True, True]
    index.give_try(two, 7)
    index.give_try(two, 8)
    assert (index.of_try(7), index.of_try(8), two.number) == (None, two, 8)
    assert (index.take_try(two), index.take_try(two), index.of_try(8)) == (8, None, None)
    assert index.take_job(two) == "both"
    assert index.take_job(two) == ""
    assert (index.has_others(three), list(index.all_of_job("both"))) == (True, [three])
    assert index.take_job(three) == "both"
    index.give_job(three, "both")
    assert not index.has_others(three), "it is another job by that name"
