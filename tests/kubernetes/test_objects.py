"""Objects as the server writes them become typed objects, nulls and unknown fields included."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import msgspec
import pytest

from argosy.kubernetes.kinds import EVENTS, LEASES, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES
from argosy.kubernetes.meta import WatchBookmark, WatchError, WatchEvent, micro_time
from argosy.kubernetes.objects import Lease, LeaseSpec, Pod

POD = b"""{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","uid":"u1",
"resourceVersion":"42","creationTimestamp":"2026-02-03T04:05:06Z","labels":{"app":"web"},
"managedFields":[{"manager":"kubectl","fieldsV1":{"f:metadata":{}}}],
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u0","controller":true}]},
"spec":{"schedulerName":"argosy","nodeSelector":{"disk":"ssd"},"priority":7,"futureField":{"a":[1]},
"affinity":{"nodeAffinity":{
 "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
  {"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}],
   "matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]},
 "preferredDuringSchedulingIgnoredDuringExecution":[
  {"weight":3,"preference":{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}}]},
 "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
  {"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"web"}},
   "namespaceSelector":{},"matchLabelKeys":["pod-template-hash"]}],
  "preferredDuringSchedulingIgnoredDuringExecution":[
  {"weight":9,"podAffinityTerm":{"topologyKey":"zone","namespaces":["x"]}}]}},
"tolerations":[{"key":"dedicated","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],
"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule",
 "labelSelector":{"matchLabels":{"app":"web"}},"minDomains":2,"nodeTaintsPolicy":"Honor"}],
"containers":[{"name":"main","image":"x","resources":{"requests":{"cpu":"500m","memory":"1Gi"},
 "limits":{"example.com/gpu":"1"}},"ports":[{"containerPort":80,"hostPort":8080,"hostIP":"10.0.0.1",
 "protocol":"UDP"}]}],
"initContainers":[{"name":"side","restartPolicy":"Always"}],
"overhead":{"cpu":"10m"},"schedulingGates":[{"name":"wait"}],"schedulingGroup":{"podGroupName":"g"},
"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"c"}},{"name":"t","emptyDir":{}},
 {"name":"d","downwardAPI":{"items":[]}},{"name":"new","notYetInvented":{}}]},
"status":{"phase":"Failed","nominatedNodeName":"n2","startTime":"2026-02-03T04:05:07Z",
"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room",
 "lastProbeTime":null,"lastTransitionTime":"2026-02-03T04:05:07Z"}],
"containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":137,"reason":"OOMKilled",
 "startedAt":"2026-02-03T04:05:08Z","finishedAt":"2026-02-03T04:05:09Z"}}}]}}"""


def test_every_field_that_scheduling_needs_is_read() -> None:
    pod = PODS.decode(POD)
    assert pod.key == ("shop", "web-0")
    assert pod.metadata.creation_timestamp == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert pod.metadata.owner_references[0].controller
    spec = pod.spec
    assert (spec.scheduler_name, spec.priority, spec.node_selector) == (
        "argosy",
        7,
        {"disk": "ssd"},
    )
    assert spec.affinity is not None
    nodes = spec.affinity.node_affinity
    assert nodes is not None
    assert nodes.required_during_scheduling_ignored_during_execution is not None
    (term,) = nodes.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert term.match_expressions[0].values == ("a", "b")
    assert term.match_fields[0].key == "metadata.name"
    assert nodes.preferred_during_scheduling_ignored_during_execution[0].weight == 3
    apart = spec.affinity.pod_anti_affinity
    assert apart is not None
    (required,) = apart.required_during_scheduling_ignored_during_execution
    assert required.namespace_selector is not None, "an empty selector differs from none"
    assert required.match_label_keys == ("pod-template-hash",)
    (preferred,) = apart.preferred_during_scheduling_ignored_during_execution
    assert (preferred.weight, preferred.pod_affinity_term.namespaces) == (9, ("x",))
    assert spec.tolerations[0].toleration_seconds == 300
    (spread,) = spec.topology_spread_constraints
    assert (spread.min_domains, spread.node_taints_policy) == (2, "Honor")
    assert spread.node_affinity_policy == "Honor"
    (container,) = spec.containers
    assert container.resources.requests == {"cpu": "500m", "memory": "1Gi"}
    assert (container.ports[0].host_ip, container.ports[0].host_port) == ("10.0.0.1", 8080)
    assert spec.init_containers[0].restart_policy == "Always"
    assert [gate.name for gate in spec.scheduling_gates] == ["wait"]
    assert spec.scheduling_group is not None
    assert spec.scheduling_group.pod_group_name == "g"
    assert [volume.source for volume in spec.volumes] == [
        "persistentVolumeClaim",
        "emptyDir",
        "downwardAPI",
        "",
    ]
    ended = pod.status.container_statuses[0].state.terminated
    assert ended is not None
    assert (ended.exit_code, ended.finished_at) == (137, datetime(2026, 2, 3, 4, 5, 9, tzinfo=UTC))
    assert pod.status.conditions[0].last_probe_time is None


def test_a_null_means_the_same_as_an_absent_field() -> None:
    pod = PODS.decode(b'{"metadata":{"name":"a","labels":null},"spec":{"containers":null}}')
    assert pod == Pod(metadata=msgspec.structs.replace(pod.metadata, name="a", labels={}))


def test_a_bookmark_with_an_empty_object_is_read() -> None:
    line = (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9",'
        b'"creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},'
        b'"spec":{"containers":null},"status":{}}}'
    )
    bookmark = PODS.decode_line(line)
    assert isinstance(bookmark, WatchBookmark)
    assert bookmark.object.metadata.resource_version == "9"
    assert bookmark.object.metadata.annotations == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize("spaced", [False, True])
def test_lines_of_a_watch_are_told_apart_in_any_spelling(spaced: bool) -> None:
    def line(text: bytes) -> bytes:
        return text.replace(b":", b": ", 1) if spaced else text

    added = PODS.decode_line(line(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}'))
    assert isinstance(added, WatchEvent)
    assert (added.type, added.object.name) == ("ADDED", "a")
    marked = PODS.decode_line(line(b'{"type":"BOOKMARK","object":{"spec":{"containers":null}}}'))
    assert isinstance(marked, WatchBookmark)
    failed = PODS.decode_line(
        line(b'{"type":"ERROR","object":{"status":"Failure","reason":"Expired","code":410}}')
    )
    assert isinstance(failed, WatchError)
    assert failed.object.code == 410


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        PODS.decode(b'{"metadata":{"name":7}}')
    with pytest.raises(msgspec.DecodeError):
        PODS.decode_line(b"[1]")


def test_only_what_is_set_is_written() -> None:
    lease = Lease(
        metadata=msgspec.structs.replace(Lease().metadata, name="a"),
        spec=LeaseSpec(holder_identity="", lease_transitions=0),
    )
    written = msgspec.json.decode(msgspec.json.encode(lease))
    assert written == {
        "metadata": {"name": "a"},
        "spec": {"holderIdentity": "", "leaseTransitions": 0},
    }


def test_micro_times_always_have_six_decimals() -> None:
    assert micro_time(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000000Z"


def test_kinds_know_their_paths() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("shop", "web-0", "binding") == "/api/v1/namespaces/shop/pods/web-0/binding"
    assert NODES.path(name="n1") == "/api/v1/nodes/n1"
    assert (
        LEASES.path("kube-system") == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    )
    assert PRIORITY_CLASSES.path("ignored", "high").endswith("/v1/priorityclasses/high")
    assert POD_GROUPS.api_version == "scheduling.k8s.io/v1alpha2"
    assert EVENTS.name == "Event"


WITHOUT_AIOHTTP = """
import sys
sys.modules["aiohttp"] = None
import argosy.kubernetes.kubeconfig, argosy.kubernetes.objects, argosy.kubernetes.quantities
from argosy.model.errors import MissingExtra
try:
    import argosy.kubernetes.client
except MissingExtra as error:
    print(error)
"""


def test_only_requests_need_more_than_the_plain_installation() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_AIOHTTP], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Kubernetes needs the extra 'kubernetes'")
