"""Pods of a group are bound all or none on a real control plane, however they say that they belong
together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from kube_cases import asynchronous
from kube_in_loop import FollowedPods, following, scheduling
from kube_schedulers import PodWitness, SchedulerProcess, bound_twice, create_pod, pod_document

from argosy.kubernetes.control_plane import ControlPlane, KubeTools
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.objects import Pod
from argosy.service.kubernetes.planning import plan_pods
from argosy.worlds.kubernetes.gangs import GROUP_LABEL, NAME_LABEL, SIZE_LABEL

OMEGA = {"name": "omega", "engine": "omega"}
CUSTOM = {
    "metadata": {
        "name": "podgroups.scheduling.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "podgroups", "kind": "PodGroup", "singular": "podgroup"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def plane(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Serves both kinds of PodGroups, and has two nodes with room for four pods each."""
    flags = [
        "--feature-gates=GenericWorkload=true",
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
    ]
    directory = tmp_path_factory.mktemp("groups")
    with ControlPlane.start(directory, tools=kube_tools, apiserver_flags=flags) as made:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made.request("POST", path, CUSTOM)
        for event in made.watch(path):
            conditions = event["object"].get("status", {}).get("conditions", [])
            if any(each["type"] == "Established" for each in conditions):
                break
        made.create_nodes(2, cpu="4")
        yield made


@pytest.fixture
def space(plane: ControlPlane, numbers: Iterator[int]) -> Iterator[str]:
    name = f"groups-{next(numbers)}"
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    plane.request("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})


def message_of(pod: Pod) -> str:
    return "".join(each.message for each in pod.status.conditions if each.type == "PodScheduled")


async def create(
    pods: FollowedPods,
    space: str,
    names: str,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> None:
    for name in names:
        document = pod_document(name, space, memory="1Mi", **spec)
        document["metadata"]["labels"] = labels or {}
        await pods.client.create(PODS, document, space)


def names(pods: list[Pod]) -> str:
    return "".join(sorted(pod.name for pod in pods))


@asynchronous
async def test_a_pod_group_waits_for_its_pods_and_is_bound_as_a_whole(
    plane: ControlPlane, space: str
) -> None:
    direct = load_connection(plane.kubeconfig)
    group = {"schedulingGroup": {"podGroupName": "g"}}
    async with following(direct, space) as pods, scheduling(direct, space):
        await create(pods, space, "abc", **group)
        await pods.until(
            lambda now: (
                all("there is no PodGroup g" in message_of(pod) for pod in now.waiting)
                and len(now.waiting) == 3
            )
        )
        policy = {"gang": {"minCount": 5}}
        document = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": policy}}
        path = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{space}/podgroups"
        await asyncio.to_thread(plane.request, "POST", path, document)
        await pods.until(
            lambda now: any("3 of 5 pods of group g exist" in message_of(p) for p in now.waiting)
        )
        assert not pods.bound
        await create(pods, space, "de", **group)
        await pods.until_bound(5)


@asynchronous
async def test_a_group_of_the_coscheduling_plug_in_is_bound_as_a_whole(
    plane: ControlPlane, space: str
) -> None:
    direct = load_connection(plane.kubeconfig)
    document = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 3},
    }
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{space}/podgroups"
    await asyncio.to_thread(plane.request, "POST", path, document)
    async with following(direct, space) as pods, scheduling(direct, space):
        await create(pods, space, "ab", {GROUP_LABEL: "g"})
        await pods.until(
            lambda now: any("2 of 3 pods of group g exist" in message_of(p) for p in now.waiting)
        )
        await create(pods, space, "c", {GROUP_LABEL: "g"})
        await pods.until_bound(3)


@asynchronous
async def test_a_group_that_does_not_fit_says_so_and_leaves_the_room_to_others(
    plane: ControlPlane, space: str
) -> None:
    direct = load_connection(plane.kubeconfig)
    labels = {NAME_LABEL: "g", SIZE_LABEL: "9"}
    async with following(direct, space) as pods, scheduling(direct, space):
        await create(pods, space, "abcdefghi", labels)
        text = "9 pods of group g have to be placed together, and 8 had room"
        await pods.until(lambda now: sum(text in message_of(pod) for pod in now.waiting) == 9)
        await create(pods, space, "xyz")
        await pods.until(lambda now: names(now.bound) == "xyz")


@asynchronous
async def test_a_scheduler_that_finds_a_part_of_a_group_bound_binds_the_rest(
    plane: ControlPlane, space: str
) -> None:
    """As after one that was killed in the middle of binding."""
    direct = load_connection(plane.kubeconfig)
    node = plane.request("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    async with following(direct, space) as pods:
        await create(pods, space, "abcde", {NAME_LABEL: "g", SIZE_LABEL: "5"})
        await pods.until(lambda now: len(now.waiting) == 5)
        for pod in pods.waiting:
            if pod.name in "ab":
                await pods.client.bind(space, pod.name, node, uid=pod.uid)
        async with scheduling(direct, space):
            await pods.until_bound(5)


def test_a_group_is_bound_in_the_end_though_its_scheduler_is_killed_in_the_middle(
    plane: ControlPlane, space: str
) -> None:
    options = ("--engine", "omega", "--name", space)
    size = 40
    with PodWitness(plane, space) as witness:
        with SchedulerProcess(plane.kubeconfig, *options).wait_until_up() as scheduler:
            for at in range(size):
                document = pod_document(f"p{at}", space, cpu="100m", memory="1Mi")
                document["metadata"]["labels"] = {NAME_LABEL: "g", SIZE_LABEL: str(size)}
                create_pod(plane, space, document)
            witness.until(lambda seen: seen.bound, "the first is bound")
            assert len(witness.pods) == size, "none is bound before all exist"
            scheduler.kill()
        with SchedulerProcess(plane.kubeconfig, *options).wait_until_up():
            witness.until(lambda seen: len(seen.bound) == size, "all are bound")
        assert bound_twice(witness) == []


@asynchronous
async def test_an_engine_that_cannot_schedule_groups_says_so(
    plane: ControlPlane, space: str
) -> None:
    direct = load_connection(plane.kubeconfig)
    fleet = [{"name": "sparrow", "engine": "sparrow"}]
    async with following(direct, space) as pods, scheduling(direct, space, fleet):
        await create(pods, space, "ab", {NAME_LABEL: "g", SIZE_LABEL: "2"})
        await pods.until(
            lambda now: sum("cannot schedule groups" in message_of(p) for p in now.waiting) == 2
        )
        assert not pods.bound


@asynchronous
async def test_a_plan_places_a_group_all_or_none(plane: ControlPlane, space: str) -> None:
    direct = load_connection(plane.kubeconfig)

    def manifests(replicas: int) -> list[dict[str, Any]]:
        policy = {"gang": {"minCount": replicas}}
        group = {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {"schedulingPolicy": policy},
        }
        template = pod_document("x", memory="1Mi", schedulingGroup={"podGroupName": "g"})
        spec = {"parallelism": replicas, "template": template}
        return [group, {"kind": "Job", "metadata": {"name": "train"}, "spec": spec}]

    plan = await plan_pods(direct, OMEGA, manifests(6), space)
    assert plan.fits
    plan = await plan_pods(direct, OMEGA, manifests(9), space)
    assert not any(pod.node for pod in plan.pods)
    assert "9 pods of group g have to be placed together" in plan.pods[0].why
