"""Malleable Jobs grow while there is room and give way to others, with the real job controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from command_line import process
from kube_cases import asynchronous
from kube_in_loop import FollowedPods, following, scheduling
from kube_schedulers import pod_document

from argosy.kubernetes.batch import BATCH_JOBS, BatchJob
from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.control_plane import ControlPlane, KubeTools
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.watching import ObjectWatch
from argosy.service.kubernetes.job_growth import ASKED, MALLEABLE
from argosy.worlds.kubernetes.malleable import GrowthSettings

OTHERS = {"other-0", "other-1", "other-2"}


@pytest.fixture(scope="module")
def plane(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    with ControlPlane.start(
        tmp_path_factory.mktemp("growth"),
        tools=kube_tools,
        controller_manager=True,
        controllers=["job"],
        kwok=False,
    ) as plane:
        yield plane


def job_document(name: str, parallelism: int, **annotations: str) -> dict[str, Any]:
    """Its pods never end, because no kubelet runs them."""
    pod = pod_document("unused", "argosy", cpu="1", memory="1Mi", restartPolicy="Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "parallelism": parallelism,
            "completions": 50,
            "template": {
                "metadata": {"annotations": {"argosy.dev/estimate": "1h"}},
                "spec": pod["spec"],
            },
        },
    }


class FollowedJobs:
    def __init__(self, watch: ObjectWatch[BatchJob]) -> None:
        self._watch = watch

    async def until(self, name: str, parallelism: int) -> BatchJob:
        if (found := self._found(name)) is None or found.spec.parallelism != parallelism:
            async for _ in self._watch:
                found = self._found(name)
                if found is not None and found.spec.parallelism == parallelism:
                    break
        assert found is not None
        return found

    def _found(self, name: str) -> BatchJob | None:
        return self._watch.objects.get(("default", name))


@asynccontextmanager
async def growing(
    plane: ControlPlane, **settings: Any
) -> AsyncIterator[tuple[FollowedPods, FollowedJobs]]:
    direct = load_connection(plane.kubeconfig)
    async with (
        KubernetesClient(direct) as client,
        ObjectWatch(client, BATCH_JOBS) as watch,
        following(direct, "default") as pods,
        scheduling(direct, "argosy", growth=GrowthSettings(interval=0.2, **settings)),
    ):
        yield pods, FollowedJobs(watch)


async def gone(pods: FollowedPods, count: int) -> list[str]:
    """Plays the kubelet for pods that were told to go."""

    def leaving() -> list[str]:
        return [pod.name for pod in pods.bound if pod.metadata.deletion_timestamp is not None]

    if len(leaving()) < count:
        await pods.until(lambda _: len(leaving()) >= count)
    names = leaving()
    for name in names:
        await pods.client.delete(PODS, name, "default", grace_seconds=0)
    return names


async def clear(plane: ControlPlane, pods: FollowedPods, nodes: list[str]) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    await asyncio.to_thread(plane.request, "DELETE", jobs, None)
    for pod in [*pods.bound, *pods.waiting]:
        body = {"metadata": {"finalizers": []}}
        await pods.client.patch(PODS, pod.name, body, "default")
    all_pods = "/api/v1/namespaces/default/pods"
    await asyncio.to_thread(plane.request, "DELETE", all_pods, {"gracePeriodSeconds": 0})
    await asyncio.to_thread(plane.delete_nodes, nodes)


@asynchronous
async def test_a_malleable_job_grows_and_gives_way_to_pods_that_wait(plane: ControlPlane) -> None:
    nodes = plane.create_nodes(2, name="wide", cpu="5")
    async with growing(plane) as (pods, jobs):
        rigid, malleable = job_document("rigid", 2), job_document("soft", 2, **{MALLEABLE: "true"})
        for document in (rigid, malleable):
            await pods.client.create(BATCH_JOBS, document, "default")
        # Ten cores, of which the other job has two.
        grown = await jobs.until("soft", 8)
        assert grown.metadata.annotations[ASKED] == "2"
        await pods.until_bound(10)
        for name in sorted(OTHERS):
            document = pod_document(name, "argosy", cpu="1", memory="1Mi")
            await pods.client.create(PODS, document, "default")
        await jobs.until("soft", 5)
        leaving = await gone(pods, 3)
        assert len(leaving) == 3
        await pods.until(lambda now: {pod.name for pod in now.bound} >= OTHERS)
        # No more than that, although the pods took their time to go.
        await jobs.until("soft", 5)
        await jobs.until("rigid", 2)
        await clear(plane, pods, nodes)


@asynchronous
async def test_a_cap_is_kept_and_what_somebody_else_says_is_asked_for(plane: ControlPlane) -> None:
    nodes = plane.create_nodes(2, name="capped", cpu="10")
    async with growing(plane, policy="relative-job-size", times=3) as (pods, jobs):
        await pods.client.create(
            BATCH_JOBS, job_document("capped", 2, **{MALLEABLE: "true"}), "default"
        )
        await jobs.until("capped", 6)
        await pods.client.patch(BATCH_JOBS, "capped", {"spec": {"parallelism": 4}}, "default")
        grown = await jobs.until("capped", 12)
        assert grown.metadata.annotations[ASKED] == "4"
        await clear(plane, pods, nodes)


@pytest.mark.parametrize("policy", ["fastest", "global-cap=2", "max-parallelism=1", "global-cap=x"])
def test_a_policy_that_is_none_is_refused(policy: str) -> None:
    done = process("kubernetes", "--grow-jobs", policy)
    assert done.returncode == 2
    assert f"--grow-jobs '{policy}' is no policy" in done.stderr
    assert "relative-job-size=TIMES" in done.stderr
