"""Jobs that are committed from elsewhere, and the pods that they become."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from recorded_pod_world import RecordedPodWorld
from small_pod_cluster import SmallCluster
from small_pod_cluster import pod as small_pod
from test_pod_cluster import node, on_node

from argosy.kubernetes.objects import Node, Pod
from argosy.model.explanations import Why
from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.commits import COMMIT, AgentCluster, pod_name, pod_of_job
from argosy.worlds.kubernetes.tracked import BindOrder, CreateOrder, EvictOrder

REQUEST = Resources(2_000, 2**20, {"pods": 1})


def job(name: str = "web", **keys: Any) -> Job:
    usual: dict[str, Any] = {
        "demands": {"image": "x"},
        "execution": Execution(command=("serve",)),
    }
    return Job(name, (TaskGroup(1, REQUEST, **(usual | keys)),))


def committed(name: str = "web") -> tuple[AgentCluster, RecordedPodWorld, Pod]:
    """A job was committed to n0; and the pod that it is to become."""
    world = RecordedPodWorld()
    pods = AgentCluster(
        lambda: world, lambda pod: pod.spec.scheduler_name == "argosy", name="argosy"
    )
    world.cluster = pods
    pods.prepare_commits()
    for each in ("n0", "n1"):
        pods.set_node(node(each))
    world.placed[name], world.tries[7] = (job(name), "n0"), name
    assert not pods.launch(7, name)
    assert pods.commit(7, job(name), "n0")
    order = pods.orders.popleft()
    assert isinstance(order, CreateOrder)
    document = msgspec.convert(order.document, dict[str, Any])
    document["metadata"]["uid"] = "u"
    return pods, world, msgspec.convert(document, Pod)


def test_a_committed_job_becomes_a_pod_on_its_node() -> None:
    pods, world, pod = committed()
    pods.set_pod(pod)
    pods.flush()
    assert list(pods.orders) == [BindOrder(pod, "n0")]
    assert not world.waiting, "it is not decided on again"


def test_a_job_ends_as_its_pod_does() -> None:
    pods, world, pod = committed()
    pods.set_pod(pod)
    pods.bound("u")
    there = on_node(pod, "n0")
    pods.set_pod(there)
    ended = msgspec.structs.replace(there.status, phase="Succeeded")
    pods.set_pod(msgspec.structs.replace(there, status=ended))
    assert not world.tries
    assert not world.placed


def test_a_job_whose_pod_cannot_be_made_has_failed() -> None:
    pods, world, _ = committed()
    pods.unmade("web", "no such namespace")
    assert not world.tries


def test_a_pod_whose_commit_was_undone_before_it_was_seen_is_evicted() -> None:
    pods, world, pod = committed()
    pods.pushed_off("web", Why.CANCELLED)
    pods.set_pod(pod)
    pods.set_pod(pod)
    assert list(pods.orders) == [EvictOrder(pod, Why.CANCELLED)]
    pods.flush()
    assert not world.waiting, "whoever committed it decides anew"


def test_a_world_that_is_built_anew_knows_of_no_commit() -> None:
    pods, world, pod = committed()
    assert pods.has_try(7)
    pods.recover({}, {})
    assert not pods.has_try(7)
    pods.set_pod(pod)
    pods.flush()
    assert list(pods.orders) == [EvictOrder(pod, Why.CANCELLED)]
    assert not world.waiting


def test_a_pod_that_is_gone_by_itself_has_ended_well_and_any_other_is_lost() -> None:
    for by_itself in (True, False):
        pods, world, pod = committed()
        pods.set_pod(pod)
        pods.bound("u")
        pods.set_pod(on_node(pod, "n0"))
        pods.remove_pod("u", by_itself=by_itself)
        assert world.finished == ([(7, 0, "")] if by_itself else [])
        assert not world.tries


def test_the_try_of_a_pod_that_is_not_admitted_is_its_own_until_it_is_refused() -> None:
    pods, world, pod = committed()
    cordoned = msgspec.to_builtins(node("n0")) | {"spec": {"unschedulable": True}}
    pods.set_node(msgspec.convert(cordoned, Node))
    refused: list[tuple[int, Why, bool]] = []

    def refuse_try(number: int, why: Why) -> None:
        refused.append((number, why, pods.has_try(number)))
        RecordedPodWorld.refuse_try(world, number, why)

    world.refuse_try = refuse_try  # type: ignore[method-assign]
    pods.set_pod(pod)
    assert refused == [(7, Why.FILTERED, True)]
    assert not pods.has_try(7)


def test_a_pod_on_a_node_is_evicted_if_its_commit_is_not_known() -> None:
    pods, _, pod = committed()
    pods.recover({}, {})
    pods.set_pod(on_node(pod, "n0"))
    [order] = pods.orders
    assert isinstance(order, EvictOrder)


def test_a_pod_of_another_agent_is_left_alone() -> None:
    pods, _, pod = committed()
    spec = msgspec.structs.replace(pod.spec, scheduler_name="other", node_name="n1")
    pods.set_pod(msgspec.structs.replace(pod, spec=spec))
    assert not pods.orders


def test_a_pod_whose_node_does_not_admit_it_any_more_is_placed_anew() -> None:
    pods, world, pod = committed()
    taint = [{"key": "k", "effect": "NoSchedule"}]
    document = msgspec.to_builtins(node("n0")) | {"spec": {"taints": taint}}
    pods.set_node(msgspec.convert(document, Node))
    pods.set_pod(pod)
    assert not pods.orders
    assert [each for each in world.waiting if each.startswith(("web", "default."))]


def test_a_server_that_is_no_agent_makes_no_pods() -> None:
    world = RecordedPodWorld()
    pods = AgentCluster(lambda: world, lambda pod: True)
    pods.set_node(node("n0"))
    assert not pods.commit(1, job(), "n0")


def test_to_a_server_that_is_no_agent_a_pod_with_a_commit_is_like_any_other() -> None:
    _, _, pod = committed()
    world = RecordedPodWorld()
    pods = world.cluster = AgentCluster(lambda: world, lambda pod: True)
    pods.set_node(node("n0"))
    pods.set_pod(pod)
    pods.flush()
    assert len(world.waiting) == 1


def test_names_of_pods_are_valid_and_different() -> None:
    names = [pod_name(each) for each in ("A/b", "a-b", "-", "x" * 500)]
    assert len(set(names)) == 4
    assert all(len(each) <= 253 and each[0].isalnum() and each == each.lower() for each in names)


def test_services_start_again_and_time_limits_hold() -> None:
    service = pod_of_job(job(endless=True), "argosy")
    assert service["spec"]["restartPolicy"] == "Always"
    limited = job(execution=Execution(command=("x",), timeout=90_000_000), estimate=5_000_000)
    batch = pod_of_job(limited, "argosy")
    assert batch["spec"]["restartPolicy"] == "Never"
    assert batch["spec"]["activeDeadlineSeconds"] == 90
    assert batch["metadata"]["annotations"]["argosy.dev/estimate"] == "5000000us"


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(1, 1), (1_000_000, 1), (1_900_000, 2), (2_000_001, 3)]
)
def test_no_task_is_ended_before_its_time_limit(timeout: int, seconds: int) -> None:
    """Kubernetes counts whole seconds."""
    limited = job(execution=Execution(command=("x",), timeout=timeout))
    assert pod_of_job(limited, "argosy")["spec"]["activeDeadlineSeconds"] == seconds


def test_the_pod_of_a_job_says_all_that_the_job_says() -> None:
    execution = Execution(
        command=("serve", "--all"),
        environment={"A": "1", "B": ""},
        working_directory="/srv",
        timeout=1_500_000,
    )
    group = TaskGroup(
        1,
        Resources(1_500, 2**20, {"pods": 1, "example.com/gpu": 2}),
        demands={"image": "i:1", "namespace": "shop", "other": "x"},
        execution=execution,
        estimate=7,
    )
    assert pod_of_job(Job("The-Job", (group,)), "mine") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name("The-Job"),
            "namespace": "shop",
            "annotations": {"argosy.dev/commit": "The-Job", "argosy.dev/estimate": "7us"},
        },
        "spec": {
            "schedulerName": "mine",
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": "i:1",
                    "command": ["serve", "--all"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": ""}],
                    "resources": {
                        "requests": {"cpu": "1500m", "memory": "1048576", "example.com/gpu": "2"}
                    },
                    "workingDir": "/srv",
                }
            ],
            "activeDeadlineSeconds": 2,
        },
    }


def test_the_pod_of_a_job_says_nothing_else() -> None:
    made = pod_of_job(job(), "argosy")
    assert made["metadata"]["namespace"] == "default"
    assert made["metadata"]["annotations"] == {"argosy.dev/commit": "web"}
    assert set(made["spec"]) == {"schedulerName", "restartPolicy", "containers"}
    [container] = made["spec"]["containers"]
    assert set(container) == {"name", "image", "command", "env", "resources"}
    assert container["env"] == []


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("web", "web"),
        ("A/b__C.d", "a-b-c-d"),
        ("-x-", "x"),
        ("***", "job"),
        ("y" * 300, "y" * 200),
    ],
)
def test_the_name_of_a_pod_begins_with_that_of_its_job(name: str, readable: str) -> None:
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    assert pod_name(name) == f"{readable}-{digest}"


def test_a_commit_has_a_try_until_its_pod_has_it_or_is_not_made() -> None:
    pods, world, pod = committed()
    assert (pods.has_try(7), pods.has_try(8)) == (True, False)
    pods.set_pod(pod)
    assert (pods.has_try(7), pods.has_try(8)) == (True, False)
    pods, world, _ = committed()
    pods.unmade("other", "gone")
    assert world.finished == []
    pods.unmade("web", "gone")
    pods.unmade("web", "gone")
    assert world.finished == [(7, 1, "gone")]
    assert not pods.has_try(7)
    pods, _, _ = committed()
    pods.pushed_off("other", Why.CANCELLED)
    assert pods.has_try(7)
    pods.pushed_off("web", Why.CANCELLED)
    assert not pods.has_try(7)


def test_only_a_job_with_an_image_is_committed_and_only_to_a_node() -> None:
    pods, _, _ = committed()
    assert not pods.commit(8, job("b"), "n2")
    assert not pods.commit(8, job("b", demands={"namespace": "x"}), "n1")
    assert (list(pods.orders), pods.has_try(8)) == ([], False)
    assert pods.commit(8, job("b"), "n1")
    [order] = pods.orders
    assert order == CreateOrder("b", pod_of_job(job("b"), "argosy"))
    assert pods.has_try(8)


def test_nodes_for_committed_jobs_are_marked_once() -> None:
    pods, _, _ = committed()
    assert pods.required == {"node rules: no taints": "true"}
    before = pods.required
    pods.prepare_commits()
    assert pods.required is before
    none = AgentCluster(lambda: RecordedPodWorld(), lambda pod: True)
    none.prepare_commits()
    assert none.required == {}


def test_a_pod_that_comes_again_without_a_commit_is_evicted_again() -> None:
    pods, _, pod = committed()
    pods.pushed_off("web", Why.CANCELLED)
    for _ in range(2):
        pods.set_pod(on_node(pod, "n0"))
        pods.set_pod(on_node(pod, "n0"))
        assert [type(order) for order in pods.orders] == [EvictOrder]
        pods.orders.clear()
        pods.remove_pod("u")


def test_a_pod_that_was_told_to_leave_is_not_told_twice() -> None:
    pods, _, pod = committed()
    pods.set_pod(pod)
    pods.bound("u")
    pods.set_pod(on_node(pod, "n0"))
    pods.orders.clear()
    pods.pushed_off("web", Why.CANCELLED)
    pods.follow_up()
    assert [type(order) for order in pods.orders] == [EvictOrder]
    pods.orders.clear()
    pods.set_pod(on_node(pod, "n0"))
    assert list(pods.orders) == []


def test_the_annotation_of_a_commit_means_nothing_where_nobody_commits(tmp_path: Path) -> None:
    cluster = SmallCluster("omega", tmp_path / "state")
    plain = small_pod("p")
    metadata = msgspec.structs.replace(plain.metadata, annotations={COMMIT: "somebody-elses"})
    marked = msgspec.structs.replace(plain, metadata=metadata)
    assert cluster.schedule([marked]).keys() == {"p"}
    assert cluster.evicted == []
    cluster.store.close()
