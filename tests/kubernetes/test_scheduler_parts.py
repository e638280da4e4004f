"""Parts of a scheduler for Kubernetes on their own: who takes which pod, what is counted, and what
manifests ask for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import msgspec
import pytest
from tracked_pods import tracked

from argosy.engines.registry import find_engine
from argosy.kubernetes import kinds
from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, Takes
from argosy.service.kubernetes import overseer as overseer_module
from argosy.service.kubernetes import planning, serving
from argosy.service.kubernetes.agent_terms import PodTerms
from argosy.service.kubernetes.driver import ClusterWatches
from argosy.service.kubernetes.kube_metrics import KubernetesMetrics, _queue_of
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.kubernetes.pod_fleet import PodFleet
from argosy.service.kubernetes.rights import LastingRight, NoRight, own_identity
from argosy.worlds.kubernetes.tracked import PodState
from argosy.worlds.local.overruled import GONE

# Fleets.


def entry(name: str, engine: str, *kinds: str, **settings: Any) -> FleetEntry:
    return FleetEntry(name=name, engine=engine, takes=Takes(kinds=kinds), settings=settings)


def owned(scheduler: str, restarts: str = "Always") -> Pod:
    """One that ends by itself is a batch pod; one that always restarts a service's."""
    document = {
        "metadata": {"name": "p", "uid": "p", "namespace": "s"},
        "spec": {"schedulerName": scheduler, "restartPolicy": restarts},
    }
    return kinds.PODS.decode(msgspec.json.encode(document))


class TestFleets:
    FLEET = PodFleet("argosy", (entry("fast", "omega", "batch"), entry("calm", "medea")))

    def test_pods_are_taken_by_the_scheduler_they_name_or_by_their_kind(self) -> None:
        fleet = self.FLEET
        assert fleet.names == {"argosy", "fast", "calm"}
        assert fleet.kind_of(owned("calm", "Never")) == "calm"
        assert fleet.kind_of(owned("fast")) == "fast"
        assert fleet.kind_of(owned("argosy", "Never")) == "batch"
        assert fleet.kind_of(owned("argosy")) == "service"
        assert [each.takes.kinds for each in fleet.entries] == [
            ("fast", "batch"),
            ("calm", "batch", "service"),
        ]
        assert fleet.kinds == {"fast", "calm", "batch", "service"}
        assert fleet.engines == {"fast": "omega", "calm": "medea"}

    def test_a_kind_that_nobody_takes_is_the_first_schedulers(self) -> None:
        fleet = PodFleet("argosy", (entry("a", "omega", "batch"), entry("b", "kube", "batch")))
        assert fleet.kind_of(owned("argosy")) == "a"
        assert fleet.kind_of(owned("argosy", "Never")) == "batch"

    def test_what_a_former_fleet_took_is_left_to_the_first_scheduler(self) -> None:
        fleet = PodFleet("argosy", self.FLEET.entries[:1], ("gone", "batch", "calm"))
        assert fleet.entries[0].takes.kinds == ("fast", "batch", "calm", "gone")
        assert fleet.kinds == {"fast", "batch", "calm", "gone"}
        # Bound pods may have it; no new pod gets it.
        assert fleet.kind_of(owned("argosy")) == "fast"

    def test_what_runs_stays_unless_an_entry_says_otherwise(self) -> None:
        still = PodFleet("argosy", (entry("f", "firmament"), entry("o", "omega")))
        assert still.entries[0].settings == {"reschedule": False, "moves_per_minute": 10}
        assert still.entries[1].settings == {}
        moving = PodFleet("argosy", (entry("f", "firmament", reschedule=True),))
        assert moving.entries[0].settings == {"reschedule": True, "moves_per_minute": 10}

    def test_wishes_groups_and_constraints_need_every_scheduler_of_the_kind(self) -> None:
        able = {
            name: find_engine(name).capabilities for name in ("omega", "medea", "kube", "sparrow")
        }
        assert able["kube"].wishes
        assert not able["medea"].wishes
        both = PodFleet("argosy", (entry("k", "kube"), entry("o", "medea", "batch")))
        assert both.heeds_wishes(owned("k"))
        assert both.heeds_wishes(owned("argosy"))
        assert not both.heeds_wishes(owned("argosy", "Never"))
        assert not both.heeds_wishes(owned("o"))
        assert self.FLEET.acts_on_constraints
        assert able["medea"].constraints
        assert not able["sparrow"].constraints
        mixed = PodFleet("argosy", (entry("m", "medea"), entry("s", "sparrow", "batch")))
        assert mixed.ignoring_constraints(owned("argosy", "Never")) == "sparrow"
        assert mixed.ignoring_constraints(owned("argosy")) == ""
        assert mixed.ignoring_constraints(owned("s")) == "sparrow"
        assert mixed.acts_on_constraints
        assert not PodFleet("argosy", (entry("s", "sparrow"),)).acts_on_constraints
        assert not able["sparrow"].gang
        assert mixed.obstacle_to_groups("batch") == (
            "engine sparrow of scheduler s places pods one by one: it cannot schedule groups"
        )
        assert mixed.obstacle_to_groups("service") == ""


class TestOverseer:
    def test_pods_are_ours_while_we_lead(self) -> None:
        overseer = PodOverseer("argosy")
        assert not overseer._is_ours(owned("argosy"))
        overseer.fleet((entry("fast", "omega"),))
        assert overseer._is_ours(owned("argosy"))
        assert overseer._is_ours(owned("fast"))
        assert not overseer._is_ours(owned("default-scheduler"))
        overseer.is_leading = False
        assert not overseer._is_ours(owned("argosy"))

    def test_pods_of_a_former_fleet_have_a_scheduler_in_the_next(self) -> None:
        overseer = PodOverseer("argosy")
        overseer.fleet((entry("fast", "omega"),))
        [calm] = overseer.fleet((entry("calm", "medea"),))
        assert calm.takes.kinds == ("calm", "batch", "service", "fast")
        assert overseer._is_ours(owned("calm"))
        assert not overseer._is_ours(owned("fast"))

    @pytest.mark.parametrize("annotates", [False, True])
    def test_pods_are_told_why_they_are_there_if_that_is_wanted(self, annotates: bool) -> None:
        overseer = PodOverseer("argosy", annotates=annotates)
        told: list[Any] = []
        overseer._annotate = lambda *given: told.append(given)  # type: ignore[method-assign]
        overseer.pods = Mock()
        job: Any = SimpleNamespace(id="j")
        overseer.launch(1, job, 4, SimpleNamespace(name="n"))  # type: ignore[arg-type]
        assert told == ([("j", 4, "n")] if annotates else [])

    @pytest.mark.parametrize(
        ("state", "has_choice", "is_told"),
        [
            (PodState.CLAIMED, True, True),
            (PodState.CLAIMED, False, False),
            (PodState.WAITING, True, False),
            (None, True, False),
        ],
    )
    def test_only_a_pod_that_was_just_chosen_is_annotated(
        self,
        monkeypatch: pytest.MonkeyPatch,
        state: PodState | None,
        has_choice: bool,
        is_told: bool,
    ) -> None:
        overseer = PodOverseer("argosy")
        overseer.fleet((entry("fast", "omega"),))
        given: list[Any] = []

        def annotations(*arguments: Any) -> dict[str, str]:
            given.append(arguments)
            return {"why": "so"}

        monkeypatch.setattr(overseer_module, "placement_annotations", annotations)
        choice = "choice" if has_choice else None
        taken: list[Any] = []

        def take(job: str, index: int) -> Any:
            taken.append((job, index))
            return choice, "told"

        world: Any = SimpleNamespace(projection=SimpleNamespace(take_choice=take))
        overseer._world = world
        pod = None if state is None else tracked(state)
        overseer.pods = Mock()
        overseer.pods.of_job.return_value = pod
        overseer._annotate("j", 4, "n")
        assert taken == [("j", 4)]
        assert given == ([(world, {"fast": "omega"}, "choice", "told", 4, "n")] if is_told else [])
        if pod is not None:
            assert getattr(pod, "annotations", None) == ({"why": "so"} if is_told else None)

    def test_what_has_no_pod_any_more_is_gone_soon(self) -> None:
        overseer = PodOverseer("argosy", annotates=False)
        ended: list[Any] = []
        soon: list[Any] = []
        woken: list[str] = []
        overseer.connect(lambda number, result: ended.append((number, result)), soon.append)
        overseer.wake = lambda: woken.append("wake")
        overseer.pods = Mock()
        overseer.pods.launch.side_effect = [True, False, False]
        overseer.pods.commit.side_effect = [True, False]
        job: Any = SimpleNamespace(id="j")
        machine: Any = SimpleNamespace(name="n")
        for number in (1, 2, 3):
            overseer.launch(number, job, 4, machine)
        assert overseer.pods.launch.mock_calls == [call(number, "j", 4) for number in (1, 2, 3)]
        assert overseer.pods.commit.mock_calls == [call(number, job, "n") for number in (2, 3)]
        assert woken == ["wake", "wake"]
        overseer.pods.is_leaving.side_effect = [True, False]
        overseer.stop(5)
        overseer.stop(6)
        assert woken == ["wake"] * 3
        assert ended == []
        for each in soon:
            each()
        assert ended == [(3, GONE), (6, GONE)]


# Metrics.


@pytest.mark.parametrize(
    ("state", "fields", "queue"),
    [
        (PodState.WAITING, {}, "active"),
        (PodState.CLAIMED, {}, "active"),
        (PodState.HELD, {}, "held"),
        (PodState.BINDING, {}, "binding"),
        (PodState.BOUND, {}, ""),
        (PodState.LEAVING, {}, ""),
        (PodState.OUTSIDE, {}, "backoff"),
        (PodState.OUTSIDE, {"obstacle": "x"}, "unschedulable"),
        (PodState.OUTSIDE, {"obstacle": "x", "gates": ("g",)}, "gated"),
        (PodState.OUTSIDE, {"node_name": "n"}, ""),
    ],
)
def test_pods_that_wait_are_counted_where_they_are(
    state: PodState, fields: dict[str, Any], queue: str
) -> None:
    assert _queue_of(tracked(state, **fields)) == queue


def watch(plural: str, *, is_complete: bool = True, lag: float = 0.0, relists: int = 0) -> Any:
    return SimpleNamespace(
        kind=SimpleNamespace(plural=plural), is_complete=is_complete, lag=lag, relists=relists
    )


def test_what_goes_on_with_kubernetes_is_counted_to_the_letter() -> None:
    metrics = KubernetesMetrics()
    assert list(metrics.lines()) == []
    states = (PodState.WAITING, PodState.BOUND, PodState.BOUND, PodState.HELD)
    pods: Any = SimpleNamespace(
        pods={str(at): tracked(state) for at, state in enumerate(states)}, moved=4
    )
    right = SimpleNamespace(is_held=True, fencing=7)
    writer: Any = SimpleNamespace(right=right)
    watches: Any = SimpleNamespace(
        all=(
            watch("podgroups", relists=1, lag=2.5),
            watch("podgroups", relists=2, lag=0.5),
            watch("pods", relists=5),
        )
    )
    metrics.attach(pods, writer, watches)
    metrics.answered("GET", "pods", 200, 0.5)
    metrics.answered("GET", "pods", 200, 0.25)
    metrics.answered("GET", "nodes", 500, 0.25)
    metrics.answered("POST", "pods", 201, 1.0)
    metrics.repeated("GET", "nodes", 3.0)
    metrics.watch_restarted("pods", "gone")
    metrics.watch_restarted("pods", "gone")
    metrics.bound(0.125)
    metrics.bound(0.5)
    metrics.refused()
    metrics.evicted(Why.MOVED)
    metrics.evicted(Why.MOVED)

    def values() -> dict[str, str]:
        lines = [line for line in metrics.lines() if not line.startswith("#")]
        kept = (line.removeprefix("argosy_") for line in lines if "_bucket" not in line)
        return dict(line.rsplit(" ", 1) for line in kept)

    expected = {
        **{
            f'scheduler_pending_pods{{queue="{queue}"}}': count
            for queue, count in (
                ("active", "1"),
                ("backoff", "0"),
                ("unschedulable", "0"),
                ("gated", "0"),
                ("held", "1"),
                ("binding", "0"),
            )
        },
        "scheduler_bound_pods": "2",
        "scheduler_binding_duration_seconds_sum": "0.625000",
        "scheduler_binding_duration_seconds_count": "2",
        "scheduler_bindings_refused_total": "1",
        'scheduler_preemption_victims_total{reason="moved"}': "2",
        'scheduler_preemption_victims_total{reason="preempted"}': "0",
        "scheduler_pods_moved_total": "4",
        "leader_election_master_status": "1",
        "leader_election_fencing_number": "7",
        'rest_client_requests_total{verb="GET",resource="nodes",code="500"}': "1",
        'rest_client_requests_total{verb="GET",resource="pods",code="200"}': "2",
        'rest_client_requests_total{verb="POST",resource="pods",code="201"}': "1",
        'rest_client_request_retries_total{verb="GET",resource="nodes"}': "1",
        'rest_client_request_duration_seconds_sum{verb="GET"}': "1.000000",
        'rest_client_request_duration_seconds_count{verb="GET"}': "3",
        'rest_client_request_duration_seconds_sum{verb="POST"}': "1.000000",
        'rest_client_request_duration_seconds_count{verb="POST"}': "1",
        'kubernetes_watch_restarts_total{resource="pods",cause="gone"}': "2",
        'kubernetes_watch_relists_total{resource="podgroups"}': "3",
        'kubernetes_watch_relists_total{resource="pods"}': "5",
        'kubernetes_watch_lag_seconds{resource="podgroups"}': "2.5",
        'kubernetes_watch_lag_seconds{resource="pods"}': "0",
    }
    assert values() == expected
    right.is_held, right.fencing = False, None
    del expected["leader_election_fencing_number"]
    assert values() == {**expected, "leader_election_master_status": "0"}


def test_what_a_cluster_requires_of_all_pods_cannot_be_asked_away() -> None:
    overseer: Any = SimpleNamespace(pods=SimpleNamespace(required={"open": "yes"}))
    terms = PodTerms(overseer)
    assert terms.requires({"open": "no", "disk": "ssd"}) == {"open": "yes", "disk": "ssd"}
    assert terms.request(Resources(1, 2, {"gpu": 3, "pods": 9})) == Resources(
        1, 2, {"gpu": 3, "pods": 1}
    )


def test_rights_say_who_may_write() -> None:
    assert (LastingRight.is_held, LastingRight.remaining, LastingRight.fencing) == (
        True,
        None,
        None,
    )
    assert (NoRight.is_held, NoRight.remaining, NoRight.fencing) == (False, 0.0, None)
    assert own_identity() != own_identity()


def test_a_scheduler_lags_if_a_watch_is_incomplete_or_silent_for_long() -> None:
    watches = object.__new__(ClusterWatches)
    parts = ("nodes", "namespaces", "priority_classes", "volumes", "claims", "budgets", "pods")
    for name in parts:
        setattr(watches, name, watch(name))
    watches.groups = [watch("podgroups")]
    assert [each.kind.plural for each in watches.all] == [*parts[:-1], "podgroups", "pods"]
    assert (watches.lagging, serving._lag(watches)) == ([], "")
    watches.nodes = watch("nodes", lag=10.0)
    assert watches.lagging == []
    watches.nodes = watch("nodes", lag=10.1)
    watches.pods = watch("pods", is_complete=False)
    assert watches.lagging == ["nodes", "pods"]
    assert serving._lag(watches) == "no news of nodes, pods from Kubernetes"


# Manifests.


def manifest(kind: str, name: str = "a", spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, **metadata}, "spec": spec or {}}


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}], **spec}}


class TestManifests:
    @pytest.mark.parametrize(
        ("document", "found"),
        [
            (manifest("Pod"), ["Pod/a default/a"]),
            (manifest("Pod", namespace="s"), ["Pod/a s/a"]),
            ({"kind": "Pod", "metadata": {"generateName": "g-"}}, ["Pod/g- default/g-"]),
            ({"kind": "Pod"}, ["Pod/pod default/pod"]),
            (manifest("Service"), []),
            (
                manifest("Deployment", spec={"replicas": 2, "template": template()}),
                ["Deployment/a default/a-0", "Deployment/a default/a-1"],
            ),
            (manifest("StatefulSet", spec={"template": template()}), ["StatefulSet/a default/a-0"]),
            (manifest("ReplicaSet", spec={"replicas": 0, "template": template()}), []),
            (
                manifest("Job", spec={"parallelism": 1, "replicas": 9, "template": template()}),
                ["Job/a default/a-0"],
            ),
            (
                {"kind": "List", "items": [manifest("Pod", "b"), None, manifest("Pod", "c")]},
                ["Pod/b default/b", "Pod/c default/c"],
            ),
            ({"kind": "List"}, []),
        ],
    )
    def test_objects_make_pods(self, document: Any, found: list[str]) -> None:
        made = planning.pods_of([document], "default", {})
        assert [f"{each.of} {each.pod.namespace}/{each.pod.name}" for each in made] == found
        assert [each.pod.uid for each in made] == [
            f"plan/{each.pod.namespace}/{each.pod.name}" for each in made
        ]

    @pytest.mark.parametrize(
        ("document", "problem"),
        [
            ([], "an object has no kind"),
            ({"kind": 3}, "an object has no kind"),
            (manifest("DaemonSet"), "DaemonSet a cannot be planned"),
            (manifest("Deployment"), "Deployment a has no template"),
        ],
    )
    def test_what_cannot_be_planned_is_refused(self, document: Any, problem: str) -> None:
        with pytest.raises(planning.ManifestError) as caught:
            planning.pods_of([document], "default", {})
        assert caught.value.problem == problem

    def test_a_pod_that_is_none_is_refused(self) -> None:
        with pytest.raises(planning.ManifestError, match="s/a is no pod"):
            planning.pods_of([manifest("Pod", spec={"nodeName": 3})], "s", {})

    def test_a_pod_has_the_priority_of_its_class_unless_it_has_its_own(self) -> None:
        def priority(**spec: Any) -> int | None:
            [made] = planning.pods_of([manifest("Pod", spec=spec)], "s", {"high": 7})
            return made.pod.spec.priority

        assert priority(priorityClassName="high") == 7
        assert priority(priorityClassName="high", priority=3) == 3
        assert priority(priorityClassName="low") == priority()

    def test_what_is_limited_and_not_requested_is_requested(self) -> None:
        resources = {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": "500m"}}
        container = {"name": "c", "image": "i", "resources": resources}
        assert planning._defaulted(container) == {
            "name": "c",
            "image": "i",
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {}},
        }
        assert planning._defaulted({})["resources"] == {"requests": {}, "limits": {}}
        spec = {
            "containers": [container],
            "initContainers": [{"resources": {"limits": {"cpu": 1}}}],
        }
        [made] = planning.pods_of([manifest("Pod", spec=spec)], "s", {})
        assert made.pod.spec.containers[0].resources.requests == {"cpu": "500m", "memory": "1Gi"}
        assert made.pod.spec.init_containers[0].resources.requests == {"cpu": "1"}

    def test_groups_among_the_objects_are_known(self) -> None:
        groups = [
            {"apiVersion": kind.api_version, **manifest("PodGroup", name, {"minMember": 2})}
            for kind, name in ((kinds.COSCHEDULING_GROUPS, "a"), (kinds.COSCHEDULING_GROUPS, "b"))
        ]
        groups[1]["metadata"]["namespace"] = "own"
        other = {"apiVersion": "example.org/v1", **manifest("PodGroup", "c")}
        found = planning.groups_of([groups[0], other, groups[1], manifest("Pod")], "s")
        assert [(each.namespace, each.name) for each in found] == [("s", "a"), ("own", "b")]
        groups[0]["spec"] = {"minMember": "many"}
        with pytest.raises(planning.ManifestError, match="PodGroup a: "):
            planning.groups_of([groups[0]], "s")

    def test_a_plan_says_where_a_pod_goes_or_why_it_waits(self) -> None:
        seen = {"plan/s/a": SimpleNamespace(node="n1")}
        engine: Any = SimpleNamespace(
            record=SimpleNamespace(pods=seen),
            reason_to_wait=lambda uid: "full" if uid == "plan/s/b" else "",
        )
        asked = [planning.pods_of([manifest("Pod", name)], "s", {})[0] for name in "abc"]
        planned = tuple(planning._planned(engine, each) for each in asked)
        assert [(each.name, each.node, each.why) for each in planned] == [
            ("a", "n1", ""),
            ("b", "", "full"),
            ("c", "", "no node was found in time"),
        ]
        assert (planned[0].namespace, planned[0].of) == ("s", "Pod/a")
        assert not planning.PodPlan("omega", planned, ()).fits
        assert planning.PodPlan("omega", planned[:1], ("s/x",)).fits
