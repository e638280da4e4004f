"""A plan of manifests heeds the volumes, namespaces, budgets and groups that the cluster has."""

from __future__ import annotations

from typing import Any

import pytest
from kube_cases import asynchronous
from kube_schedulers import pod_document
from test_against_a_small_server import HOST, KUBE, a_node, cluster, plan

from argosy.kubernetes.kinds import (
    COSCHEDULING_GROUPS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
)


@asynchronous
async def test_a_planned_pod_goes_where_its_volume_is_and_apart_from_those_it_avoids() -> None:
    async with cluster(a_node("n0", "8"), a_node("n1", "8"), a_node("n2", "8")) as api:
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n1"]}]}
        affinity = {"required": {"nodeSelectorTerms": [term]}}
        api.put(PERSISTENT_VOLUMES, {"metadata": {"name": "v"}, "spec": {"nodeAffinity": affinity}})
        named = {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        api.put(PERSISTENT_VOLUME_CLAIMS, {"metadata": named, "spec": {"volumeName": "v"}})
        claim = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        # Of two that are there, only the one in a blue namespace is avoided.
        for name, team in (("blue", "blue"), ("red", "red")):
            api.put(NAMESPACES, {"metadata": {"name": name, "labels": {"team": team}}})
        for name, space, node in (("a", "blue", "n0"), ("b", "red", "n2")):
            there = pod_document(name, "other", nodeName=node)
            there["metadata"] |= {"namespace": space, "labels": {"app": "web"}}
            api.put(PODS, there)
        avoided = {
            "topologyKey": HOST,
            "labelSelector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"matchLabels": {"team": "blue"}},
        }
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [avoided]}}
        other = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": not_on("n1")}}
        plans = await plan(
            api,
            pod_document("reader", volumes=claim),
            pod_document("shy", affinity={**apart, **other}),
        )
        assert [(each.name, each.node) for each in plans.pods] == [("reader", "n1"), ("shy", "n2")]
        assert api.written == []


def not_on(node: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": HOST, "operator": "NotIn", "values": [node]}]}
    return {"nodeSelectorTerms": [term]}


@pytest.mark.parametrize(("allowed", "displaced"), [(0, ("default/free",)), (1, None)])
@asynchronous
async def test_a_planned_pod_displaces_those_that_no_budget_protects(
    allowed: int, displaced: tuple[str, ...] | None
) -> None:
    async with cluster(a_node("n0"), a_node("n1")) as api:
        api.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        # The one that is protected is the least important.
        for name, node, priority in (("kept", "n0", 0), ("free", "n1", 1)):
            there = pod_document(name, cpu="2", nodeName=node, priority=priority)
            there["metadata"]["labels"] = {"app": name}
            api.put(PODS, there)
        budget = {
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "kept"}}},
            "status": {"disruptionsAllowed": allowed},
        }
        api.put(POD_DISRUPTION_BUDGETS, budget)
        urgent = pod_document("urgent", cpu="2", priorityClassName="high")
        plans = await plan(api, urgent, entry=KUBE)
        assert plans.fits
        assert plans.displaced == (displaced or ("default/kept",))


@pytest.mark.parametrize("kind", ["podgroup", "coscheduling"])
@asynchronous
async def test_planned_pods_of_a_group_that_is_there_go_together(kind: str) -> None:
    async with cluster(a_node("n0")) as api:
        named = {"name": "g", "namespace": "default"}
        members = [pod_document(f"m{number}", cpu="2") for number in range(2)]
        if kind == "podgroup":
            policy = {"gang": {"minCount": 2}}
            api.put(POD_GROUPS, {"metadata": named, "spec": {"schedulingPolicy": policy}})
            for each in members:
                each["spec"]["schedulingGroup"] = {"podGroupName": "g"}
        else:
            api.put(COSCHEDULING_GROUPS, {"metadata": named, "spec": {"minMember": 2}})
            for each in members:
                each["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
        plans = await plan(api, *members)
        assert [each.node for each in plans.pods] == ["", ""]
        assert all("2 pods of group g have to be placed together" in p.why for p in plans.pods)
