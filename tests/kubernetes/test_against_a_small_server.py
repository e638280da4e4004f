"""The scheduler for Kubernetes, its shadow, its plans and its recordings against an API server in
memory: whole paths, in milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from kube_cases import asynchronous
from kube_in_loop import scheduling
from kube_schedulers import pod_document
from small_api_server import Document, SmallApiServer

from argosy.kubernetes.batch import BATCH_JOBS
from argosy.kubernetes.control_plane.nodes import node_document
from argosy.kubernetes.kinds import (
    COSCHEDULING_GROUPS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
)
from argosy.kubernetes.leases import LeaseSettings
from argosy.model.errors import ArgosyError
from argosy.model.explanations import Why
from argosy.service.kubernetes import driver, job_growth
from argosy.service.kubernetes.kube_metrics import KubernetesMetrics
from argosy.service.kubernetes.planning import PodPlan, plan_pods
from argosy.service.kubernetes.recorder import PodRecorder, record_cluster
from argosy.service.kubernetes.rights import ElectionOptions, LeadershipLost
from argosy.service.kubernetes.shadow import session as shadow_session
from argosy.service.kubernetes.shadow.session import ShadowOptions, ShadowSession, run_shadow
from argosy.service.server import Server
from argosy.worlds.kubernetes.malleable import GrowthSettings

OMEGA = {"name": "omega", "engine": "omega"}
KUBE = {"name": "kube", "engine": "kube"}
HOST = "kubernetes.io/hostname"


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks that are due every second are due at once."""
    for module in (driver, shadow_session):
        monkeypatch.setattr(module, "_LOOK_AGAIN", 0.02)


def a_node(name: str, cpu: str = "2", **labels: str) -> Document:
    offered = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return node_document(name, offered, labels, (), is_ready=True)


@asynccontextmanager
async def cluster(*nodes: Document) -> AsyncIterator[SmallApiServer]:
    async with SmallApiServer() as api:
        api.put(NAMESPACES, {"metadata": {"name": "default"}})
        for each in nodes:
            api.put(NODES, each)
        yield api


def metric(server: Server, name: str) -> dict[str, float]:
    """Values by their labels."""
    lines = [line for section in server.metrics.sections for line in section()]
    found = {}
    for line in lines:
        text, _, value = line.rpartition(" ")
        if text.partition("{")[0] == f"argosy_{name}":
            found[text.partition("{")[2].rstrip("}")] = float(value)
    return found


async def eventually(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@asynchronous
async def test_pods_get_nodes_or_a_reason_and_metrics_count_them() -> None:
    async with cluster(a_node("n0"), a_node("n1")) as api:
        # On a node already, by whomever: it takes up room.
        api.put(PODS, pod_document("old", "other", nodeName="n0"))
        async with scheduling(api.connection, "argosy") as server:
            for number in range(3):
                api.put(PODS, pod_document(f"p{number}"))
            api.put(PODS, pod_document("gated", schedulingGates=[{"name": "later"}]))
            api.put(PODS, pod_document("big", cpu="3"))
            api.put(PODS, pod_document("of another", "other"))
            await api.until(lambda: len(api.notes) == 4)
            placed = api.nodes_of_pods
            assert sorted(placed[f"p{number}"] for number in range(3)) == ["n0", "n1", "n1"]
            assert placed["big"] == placed["of another"] == placed["gated"] == ""
            told = {name: (reason, text) for name, reason, text in api.notes}
            assert told["p0"] == (
                "Scheduled",
                f"Successfully assigned default/p0 to {placed['p0']}",
            )
            reason, text = told["big"]
            assert reason == "FailedScheduling"
            assert text.startswith("0/2 nodes are available: 2 Insufficient cpu.")
            status = api.document(PODS, "big")
            assert status is not None
            assert status["status"]["conditions"][0]["message"] == text
            waiting = metric(server, "scheduler_pending_pods")
            assert {key: value for key, value in waiting.items() if value} == {
                'queue="active"': 1,
                'queue="gated"': 1,
            }
            assert metric(server, "scheduler_bound_pods") == {"": 4}
            assert metric(server, "scheduler_binding_duration_seconds_count") == {"": 3}
            assert metric(server, "leader_election_master_status") == {"": 1}
            assert metric(server, "leader_election_fencing_number") == {}

            def counted(name: str) -> dict[str, float]:
                return metric(server, f"rest_client_{name}")

            created = 'verb="create",resource="events",code="201"'
            await eventually(lambda: counted("requests_total").get(created) == 4)
            assert counted("requests_total")['verb="bind",resource="pods",code="200"'] == 3
            assert counted("request_duration_seconds_count")['verb="bind"'] == 3
            assert server.backend.health()[0] == "ok"


def test_kinds_of_one_name_are_counted_together() -> None:
    def watch(plural: str, relists: int, lag: float) -> Any:
        return SimpleNamespace(kind=SimpleNamespace(plural=plural), relists=relists, lag=lag)

    metrics = KubernetesMetrics()
    assert list(metrics.lines()) == []
    right = SimpleNamespace(is_held=False, fencing=None)
    metrics.attach(
        SimpleNamespace(pods={}, moved=4),  # type: ignore[arg-type]
        SimpleNamespace(right=right),  # type: ignore[arg-type]
        SimpleNamespace(all=(watch("podgroups", 1, 7.0), watch("podgroups", 2, 0.0))),  # type: ignore[arg-type]
    )
    for cause in ("gone", "ended", "gone"):
        metrics.watch_restarted("pods", cause)
    metrics.repeated("list", "pods", 0.5)
    for why in (Why.MOVED, Why.PREEMPTED, Why.MOVED):
        metrics.evicted(why)
    lines = [line for line in metrics.lines() if not line.startswith("#")]
    found = dict(line.removeprefix("argosy_").rsplit(" ", 1) for line in lines)
    assert found['kubernetes_watch_relists_total{resource="podgroups"}'] == "3"
    assert found['kubernetes_watch_lag_seconds{resource="podgroups"}'] == "7"
    assert found['kubernetes_watch_restarts_total{resource="pods",cause="gone"}'] == "2"
    assert found['kubernetes_watch_restarts_total{resource="pods",cause="ended"}'] == "1"
    assert found['rest_client_request_retries_total{verb="list",resource="pods"}'] == "1"
    assert found['scheduler_preemption_victims_total{reason="moved"}'] == "2"
    assert found['scheduler_preemption_victims_total{reason="preempted"}'] == "1"
    assert found["scheduler_pods_moved_total"] == "4"
    assert found["leader_election_master_status"] == "0"


@asynchronous
async def test_what_leaves_or_comes_makes_room_for_those_that_wait() -> None:
    async with cluster(a_node("n0")) as api, scheduling(api.connection, "argosy"):
        api.put(PODS, pod_document("first", cpu="2"))
        await api.until(lambda: api.nodes_of_pods["first"])
        api.put(PODS, pod_document("second", cpu="2"))
        await api.until(lambda: any(name == "second" for name, _, _ in api.notes))
        api.remove(PODS, "first")
        await api.until(lambda: api.nodes_of_pods["second"] == "n0")
        api.put(PODS, pod_document("third", cpu="2"))
        await api.until(lambda: any(name == "third" for name, _, _ in api.notes))
        api.put(NODES, a_node("n1"))
        await api.until(lambda: api.nodes_of_pods["third"] == "n1")
        # A pod that has ended holds nothing; a node that is gone takes nothing.
        ended = {**(api.document(PODS, "second") or {}), "status": {"phase": "Succeeded"}}
        api.put(PODS, ended)
        api.remove(NODES, "n1")
        api.put(PODS, pod_document("fourth", cpu="2"))
        await api.until(lambda: api.nodes_of_pods["fourth"] == "n0")
        # Taken away and made again under the same name: another pod.
        api.remove(PODS, "fourth")
        api.put(PODS, pod_document("fourth", cpu="2"))
        await api.until(lambda: api.nodes_of_pods["fourth"] == "n0")


@asynchronous
async def test_the_urgent_push_others_off_unless_a_budget_protects_them() -> None:
    async with cluster(a_node("n0"), a_node("n1")) as api:
        api.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        async with scheduling(api.connection, "argosy", [KUBE]) as server:
            for name in ("kept", "pushed"):
                api.put(PODS, pod_document(name, cpu="2", priority=0))
            await api.until(lambda: all(api.nodes_of_pods.values()))
            where = api.nodes_of_pods["pushed"]
            api.protected.add("kept")
            api.put(PODS, pod_document("urgent", cpu="2", priority=1000))
            await api.until(lambda: api.nodes_of_pods["urgent"])
            assert api.nodes_of_pods["urgent"] == where
            assert "pushed" not in api.nodes_of_pods
            assert api.nodes_of_pods["kept"]
            await api.until(lambda: any(reason == "Preempted" for _, reason, _ in api.notes))
            victims = metric(server, "scheduler_preemption_victims_total")
            assert victims == {'reason="preempted"': 1}


@pytest.mark.parametrize("kind", ["podgroup", "coscheduling"])
@asynchronous
async def test_a_gang_waits_until_all_have_room(kind: str) -> None:
    def member(number: int) -> Document:
        document = pod_document(f"m{number}", cpu="2")
        if kind == "podgroup":
            document["spec"]["schedulingGroup"] = {"podGroupName": "g"}
        else:
            document["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
        return document

    async with cluster(a_node("n0")) as api, scheduling(api.connection, "argosy"):
        named = {"name": "g", "namespace": "default"}
        if kind == "podgroup":
            policy = {"gang": {"minCount": 2}}
            api.put(POD_GROUPS, {"metadata": named, "spec": {"schedulingPolicy": policy}})
        else:
            api.put(COSCHEDULING_GROUPS, {"metadata": named, "spec": {"minMember": 2}})
        api.put(PODS, member(0))
        await api.until(lambda: api.notes)
        assert not any(api.nodes_of_pods.values())
        api.put(PODS, member(1))
        api.put(NODES, a_node("n1"))
        await api.until(lambda: all(api.nodes_of_pods.values()))
        assert sorted(api.nodes_of_pods.values()) == ["n0", "n1"]


@asynchronous
async def test_a_pod_goes_where_its_volume_is() -> None:
    async with cluster(a_node("n0"), a_node("n1")) as api, scheduling(api.connection, "argosy"):
        claim = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
        api.put(PODS, pod_document("reader", **claim))
        await api.until(lambda: api.notes)
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n1"]}]}
        api.put(
            PERSISTENT_VOLUMES,
            {
                "metadata": {"name": "v"},
                "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}},
            },
        )
        named = {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        api.put(PERSISTENT_VOLUME_CLAIMS, {"metadata": named, "spec": {"volumeName": "v"}})
        await api.until(lambda: api.nodes_of_pods["reader"])
        assert api.nodes_of_pods["reader"] == "n1"


@asynchronous
async def test_a_binding_that_another_was_quicker_with_is_decided_again() -> None:
    async with cluster(a_node("n0")) as api:
        refusals = iter([(409, "Conflict"), (403, "Forbidden")])

        def refuse(method: str, path: str) -> tuple[int, str] | None:
            return next(refusals, None) if path.endswith("/binding") else None

        api.faults.append(refuse)
        said: list[str] = []
        async with scheduling(api.connection, "argosy", said=said) as server:
            api.put(PODS, pod_document("p"))
            await api.until(lambda: api.nodes_of_pods["p"])
            assert metric(server, "scheduler_bindings_refused_total") == {"": 2}
        assert [line.rpartition(": ")[2] for line in said[:2]] == [
            "Conflict here",
            "Forbidden here",
        ]


@asynchronous
async def test_one_replica_leads_and_another_takes_over_when_it_ends() -> None:
    settings = LeaseSettings(duration=60, renew_deadline=40.0, retry_period=0.05)

    def replica(name: str) -> ElectionOptions:
        return ElectionOptions(name="argosy", namespace="default", identity=name, settings=settings)

    async with cluster(a_node("n0", cpu="8")) as api:
        said: list[str] = []
        async with scheduling(api.connection, "argosy", election=replica("b"), said=said) as other:
            await api.until(lambda: api.document(LEASES, "argosy"))
            api.put(PODS, pod_document("p0"))
            await api.until(lambda: api.nodes_of_pods["p0"])
            assert metric(other, "leader_election_master_status") == {"": 1}
            assert metric(other, "leader_election_fencing_number") == {"": 0}
            api.put(PODS, pod_document("held", schedulingGates=[{"name": "later"}]))
        assert said == ["standing by", "leading with fencing number 0"]
        said.clear()
        api.put(PODS, pod_document("p1"))
        async with scheduling(api.connection, "argosy", election=replica("a"), said=said) as server:
            await api.until(lambda: api.nodes_of_pods["p1"])
            assert metric(server, "leader_election_fencing_number") == {"": 1}
        numbers = [
            (api.document(PODS, name) or {})["metadata"]["annotations"]["argosy.dev/fencing"]
            for name in ("p0", "p1")
        ]
        assert numbers == ["0", "1"]


@asynchronous
async def test_who_loses_the_lease_ends_with_an_error_that_says_so() -> None:
    settings = LeaseSettings(duration=60, renew_deadline=40.0, retry_period=0.05)
    options = ElectionOptions(name="argosy", namespace="default", identity="a", settings=settings)
    async with cluster(a_node("n0")) as api:
        said: list[str] = []

        async def robbed() -> None:
            async with scheduling(api.connection, "argosy", election=options, said=said) as server:
                await api.until(lambda: "leading with fencing number 0" in said)
                taken = api.document(LEASES, "argosy")
                assert taken is not None
                api.put(LEASES, {**taken, "spec": {**taken["spec"], "holderIdentity": "b"}})
                await eventually(lambda: server.cluster.is_stopping)

        with pytest.raises(LeadershipLost, match="the lease is lost"):
            await robbed()


# Malleable jobs.


def a_job(parallelism: int, **annotations: str) -> Document:
    return {
        "metadata": {"name": "j", "uid": "job", "annotations": annotations},
        "spec": {
            "parallelism": parallelism,
            "completions": 50,
            "template": {"metadata": {"annotations": {"argosy.dev/estimate": "1h"}}},
        },
    }


def worker(number: int) -> Document:
    document = pod_document(f"w{number}", memory="1Mi")
    maker = {"kind": "Job", "name": "j", "uid": "job", "controller": True}
    document["metadata"]["ownerReferences"] = [maker]
    return document


@asynchronous
async def test_a_malleable_job_gets_what_is_free_and_gives_it_back() -> None:
    said: list[str] = []
    growth = GrowthSettings(interval=0.03)
    async with cluster(a_node("n0", cpu="4")) as api:
        api.put(BATCH_JOBS, a_job(1, **{job_growth.MALLEABLE: "true"}))

        def wanted() -> int:
            return int((api.document(BATCH_JOBS, "j") or {})["spec"]["parallelism"])

        async with scheduling(api.connection, "argosy", growth=growth, said=said):
            api.put(PODS, worker(0))
            await api.until(lambda: wanted() > 1)
            assert wanted() == 4
            notes = (api.document(BATCH_JOBS, "j") or {})["metadata"]["annotations"]
            assert notes[job_growth.ASKED] == "1"
            assert notes[job_growth.GIVEN] == "4"
            for number in range(1, 4):
                api.put(PODS, worker(number))
            await api.until(lambda: all(api.nodes_of_pods.values()))
            api.put(PODS, pod_document("other", cpu="2", memory="1Mi"))
            await api.until(lambda: wanted() < 4)
            assert wanted() == 2
        assert said == [
            "job default/j has 4 pods in parallel, and asked for 1",
            "job default/j has 2 pods in parallel, and asked for 1",
        ]


# Plans.


async def plan(api: SmallApiServer, *documents: Any, entry: Document = OMEGA) -> PodPlan:
    return await plan_pods(api.connection, dict(entry), documents, "default")


def deployment(name: str, cpu: str, **spec: Any) -> Document:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": cpu}}}
    return {
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"containers": [container]}}, **spec},
    }


@asynchronous
async def test_a_plan_says_where_pods_would_go_and_changes_nothing() -> None:
    async with cluster(a_node("n0"), a_node("n1")) as api:
        api.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        api.put(PODS, pod_document("there", "other", nodeName="n0", priority=5000))
        api.put(PODS, pod_document("waits", "other", cpu="2"))
        both = {"kind": "List", "items": [deployment("web", "1", replicas=2), None]}
        plans = await plan(api, both, {"kind": "Service", "metadata": {"name": "s"}})
        assert plans.engine == "omega"
        assert [(each.namespace, each.of, each.name) for each in plans.pods] == [
            ("default", "Deployment/web", "web-0"),
            ("default", "Deployment/web", "web-1"),
        ]
        assert {each.node for each in plans.pods} <= {"n0", "n1"}
        assert plans.fits
        assert plans.displaced == ()
        plans = await plan(api, deployment("big", "1500m", replicas=2))
        assert [each.node for each in plans.pods].count("n1") == 1
        [waiting] = [each for each in plans.pods if not each.node]
        assert waiting.why.startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert not plans.fits
        assert api.written == []


@asynchronous
async def test_a_plan_names_those_that_would_have_to_go() -> None:
    async with cluster(a_node("n0")) as api:
        api.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        api.put(PODS, pod_document("low", cpu="2", nodeName="n0", priority=0))
        urgent = pod_document("urgent", cpu="2", priorityClassName="high")
        plans = await plan(api, urgent, entry=KUBE)
        assert [each.node for each in plans.pods] == ["n0"]
        assert plans.displaced == ("default/low",)


@asynchronous
async def test_a_plan_knows_gangs_volumes_and_what_is_no_manifest() -> None:
    async with cluster(a_node("n0")) as api:
        group = {
            "apiVersion": COSCHEDULING_GROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {"minMember": 2},
        }
        members = []
        for number in range(2):
            document = pod_document(f"m{number}", cpu="2")
            document["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
            members.append(document)
        plans = await plan(api, group, *members)
        assert [each.node for each in plans.pods] == ["", ""]
        api.put(NODES, a_node("n1"))
        plans = await plan(api, group, *members)
        assert sorted(each.node for each in plans.pods) == ["n0", "n1"]
        for wrong, said in (
            ("text", "an object has no kind"),
            ({"kind": "Deployment", "metadata": {"name": "w"}}, "Deployment w has no template"),
            ({"kind": "DaemonSet", "metadata": {"generateName": "d-"}}, "DaemonSet d- cannot be"),
            ({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"priority": "x"}}, "is no pod"),
            ({**group, "spec": {"minMember": "x"}}, "PodGroup g: "),
        ):
            with pytest.raises(ArgosyError, match=said):
                await plan(api, wrong)


# Shadows and recordings.


@asynchronous
async def test_a_shadow_places_what_comes_and_writes_nothing() -> None:
    async with cluster(a_node("n0"), a_node("n1")) as api:
        api.put(PODS, pod_document("before", "other", nodeName="n0"))
        stop = asyncio.Event()
        ready: asyncio.Future[ShadowSession] = asyncio.get_running_loop().create_future()
        options = ShadowOptions(connection=api.connection, fleet=(dict(OMEGA), dict(KUBE)))
        running = asyncio.create_task(run_shadow(options, stop, ready.set_result, print))
        session = await ready
        assert session.nodes == 2
        api.put(PODS, pod_document("a", "other", cpu="2"))
        api.put(PODS, pod_document("late", "other", schedulingGates=[{"name": "g"}]))
        api.put(PODS, pod_document("big", "other", cpu="3"))
        engines = session.engines
        await eventually(lambda: all(len(each.record.waits) == 1 for each in engines))
        # Both can only choose n1, and so does the cluster.
        api.put(PODS, pod_document("a", "other", cpu="2", nodeName="n1"))
        api.put(PODS, pod_document("b", "other", cpu="1"))
        await eventually(lambda: all(len(each.record.waits) == 2 for each in engines))
        api.put(PODS, pod_document("b", "other", cpu="1", nodeName="n1"))
        await eventually(lambda: all(each.reason_to_wait("pods-7") for each in engines))
        assert engines[0].reason_to_wait("pods-7").startswith("0/2 nodes are available")
        api.remove(PODS, "big")
        await eventually(lambda: all("pods-7" not in each.pods.pods for each in engines))
        stop.set()
        report = await running
        assert (report.nodes, report.pods, report.pods_before) == (2, 3, 1)
        rows = {each.scheduler: each for each in report.schedulers}
        assert list(rows) == ["the cluster", "omega", "kube"]
        for name in ("omega", "kube"):
            row = rows[name]
            assert (row.placed, row.waiting, row.missed, row.unsupported) == (2, 0, 1, 0)
            assert row.same_node == 0.5
            assert (row.broken_rules, row.overcommitted_nodes) == (0, 0)
            assert row.nodes_used == 2
        real = rows["the cluster"]
        assert (real.placed, real.missed, real.overcommitted_nodes) == (2, 1, 1)
        assert api.written == []


@asynchronous
async def test_a_recording_has_the_lives_of_all_pods() -> None:
    async with cluster(a_node("n0"), a_node("n1")) as api:
        api.put(PODS, pod_document("before", "other", nodeName="n0"))
        api.put(PODS, pod_document("gated", "other", schedulingGates=[{"name": "g"}]))
        api.put(PERSISTENT_VOLUMES, {"metadata": {"name": "v"}})
        api.put(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "c"}})
        stop = asyncio.Event()
        ready: asyncio.Future[PodRecorder] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(record_cluster(api.connection, stop, ready.set_result))
        recorder = await ready
        assert (recorder.nodes, recorder.pods) == (2, 2)
        api.put(PODS, pod_document("new", "other"))
        await eventually(lambda: recorder.pods == 3)
        api.put(PODS, pod_document("new", nodeName="n1"))
        api.remove(PODS, "gated")
        api.remove(NODES, "n1")
        stop.set()
        recording = await running
        lives = {life.pod.name: life for life in recording.lives}
        assert sorted(lives) == ["before", "gated", "new"]
        assert lives["before"].arrived <= recording.start
        assert lives["before"].bound is not None
        assert lives["before"].ended is None
        assert lives["gated"].bound is None
        assert lives["gated"].ended is not None
        assert lives["new"].bound is not None
        assert recording.start < lives["new"].arrived <= lives["new"].bound <= recording.end
        assert sorted(each.name for each in recording.nodes) == ["n0", "n1"]
        assert set(recording.volumes.volumes) == {"v"}
        assert set(recording.volumes.claims) == {("default", "c")}
        assert api.written == []


@pytest.mark.parametrize("allowed", [0, 1])
@asynchronous
async def test_a_budget_is_heeded_before_the_server_is_asked(allowed: int) -> None:
    async with cluster(a_node("n0")) as api:
        api.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        spec = {"selector": {"matchLabels": {"app": "kept"}}}
        named = {"name": "b", "namespace": "default"}
        low = pod_document("low", cpu="2", priority=0)
        low["metadata"]["labels"] = {"app": "kept"}
        async with scheduling(api.connection, "argosy", [KUBE]) as server:
            api.put(PODS, low)
            await api.until(lambda: api.nodes_of_pods["low"])
            budget = {"metadata": named, "spec": spec, "status": {"disruptionsAllowed": allowed}}
            api.put(POD_DISRUPTION_BUDGETS, budget)
            overseer: Any = server._overseer
            await eventually(lambda: overseer.pods._budgets._left)
            api.put(PODS, pod_document("urgent", cpu="2", priority=1000))
            if allowed:
                await api.until(lambda: api.nodes_of_pods["urgent"] == "n0")
            else:
                await api.until(lambda: any(name == "urgent" for name, _, _ in api.notes))
                assert api.nodes_of_pods == {"low": "n0", "urgent": ""}
                assert not any(path.endswith("/eviction") for _, path, _ in api.written)


# What cannot go on.

ODD = {"name": "odd", "engine": "omega", "settings": {"attempts": "many"}}


@asynchronous
async def test_settings_that_no_engine_has_are_named_before_anything_is_done() -> None:
    async with cluster(a_node("n0")) as api:

        async def scheduled() -> None:
            async with scheduling(api.connection, "argosy", [ODD]):
                raise AssertionError

        async def shadowed() -> None:
            options = ShadowOptions(connection=api.connection, fleet=(dict(ODD),))
            await run_shadow(options, asyncio.Event(), lambda session: None, print)

        async def planned() -> None:
            await plan(api, pod_document("p"), entry=ODD)

        for begin in (scheduled, shadowed, planned):
            with pytest.raises(ArgosyError) as caught:
                await begin()
            assert caught.value.field == "fleet[0].settings.attempts"
        assert api.written == []


@asynchronous
async def test_a_scheduler_that_hears_of_nothing_any_more_ends_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(self: object) -> None:
        raise RuntimeError("deaf")

    monkeypatch.setattr(driver.KubernetesDriver, "_look_again", fail)
    async with cluster(a_node("n0")) as api:

        async def ended() -> None:
            async with scheduling(api.connection, "argosy") as server:
                await eventually(lambda: server.cluster.is_stopping)

        with pytest.raises(RuntimeError, match="deaf"):
            await ended()
