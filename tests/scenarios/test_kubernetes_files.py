"""A Kubernetes cluster as a workload: from a file that kubectl has printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.cli.app import run as main
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import ScenarioError
from argosy.model.scenario import Scenario
from argosy.scenarios.loader import load

BOUND = "2026-03-01T10:00:00Z"
LATER = "2026-03-01T10:10:00Z"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(name: str, zone: str = "a", **more: Any) -> dict[str, Any]:
    labels = {HOST: name, "topology.kubernetes.io/zone": zone, **more.pop("labels", {})}
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10", **more.pop("allocatable", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": more,
        "status": {"allocatable": allocatable, "conditions": None},
    }


def pod(
    name: str,
    *,
    on: str = "",
    owner: str = "",
    cpu: str = "500m",
    created: str = BOUND,
    status: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    kind, _, owner_name = owner.partition("/")
    owners = [{"kind": kind, "name": owner_name, "uid": owner, "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "creationTimestamp": created,
            "labels": {"app": owner_name or name} if labels is None else labels,
            "ownerReferences": owners if owner else None,
        },
        "spec": {
            "nodeName": on,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}],
            **spec,
        },
        "status": status or {"phase": "Running" if on else "Pending"},
    }


def ended(on: str, started: str, finished: str) -> dict[str, Any]:
    state = {"terminated": {"exitCode": 0, "startedAt": started, "finishedAt": finished}}
    return {
        "phase": "Succeeded",
        "startTime": started,
        "containerStatuses": [{"name": "c", "state": state}],
    }


NODES = [node("n1"), node("n2", "b"), node("n3", "b")]


def write(path: Path, *items: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def cluster(tmp_path: Path, *pods: dict[str, Any], nodes: list[dict[str, Any]] = NODES) -> Scenario:
    return load(write(tmp_path / "cluster.json", *nodes, *pods))


def admitted(scenario: Scenario, job: str) -> set[str]:
    """The machines that have what the job requires."""
    requires = next(each for each in scenario.jobs if each.id == job).groups[0].requires.items()
    return {each.name for each in scenario.cell.machines if requires <= each.attributes.items()}


def test_nodes_are_machines_and_pods_of_a_controller_are_one_job(tmp_path: Path) -> None:
    pods = [pod(f"web-{i}", owner="ReplicaSet/web", on="n1") for i in range(3)]
    scenario = cluster(tmp_path, *pods, pod("alone", cpu="2"))
    assert [machine.name for machine in scenario.cell.machines] == ["n1", "n2", "n3"]
    capacity = scenario.cell.machines[0].capacity
    assert (capacity.cpu, capacity.memory, capacity.extras) == (4000, 8 << 30, {"pods": 10})
    assert {job.id: job.tasks for job in scenario.jobs} == {"shop.web": 3, "shop.alone": 1}
    web = scenario.jobs[0]
    assert (web.groups[0].request.cpu, web.groups[0].tags) == (500, ("app:web",))
    assert (web.job.owner, web.job.program, web.kind) == ("shop", "ReplicaSet/web", "service")
    assert web.is_endless
    assert scenario.horizon is not None
    assert scenario.left_out == ()


def test_zones_racks_and_named_topologies_are_node_groups(tmp_path: Path) -> None:
    nodes = [node("n1", labels={"example.com/rack": "r1", "row": "x"}), node("n2", "b")]
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "row"}
    scenario = cluster(
        tmp_path, pod("a", affinity={"podAntiAffinity": {REQUIRED: [term]}}), nodes=nodes
    )
    groups = {group.name: group.sets for group in scenario.cell.groups}
    assert groups == {"zone": ("a", "b"), "rack": ("r1",), "row": ("x",)}
    assert scenario.cell.machines[1].joins == {"zone": ("b",)}


def test_pods_require_just_the_nodes_that_their_rules_admit(tmp_path: Path) -> None:
    nodes = [
        node("n1", labels={"disk": "ssd"}),
        node("n2", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
        node("n3", unschedulable=True),
        node("n4", labels={"disk": "ssd"}),
    ]
    wanted = [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": wanted}}}
    scenario = cluster(
        tmp_path,
        pod("plain"),
        pod("selects", nodeSelector={"disk": "ssd"}),
        pod("exists", affinity=affinity),
        pod("tolerates", tolerations=[{"operator": "Exists"}]),
        pod("here", nodeSelector={HOST: "n4"}),
        nodes=nodes,
    )
    assert admitted(scenario, "shop.plain") == {"n1", "n4"}
    assert admitted(scenario, "shop.selects") == {"n1", "n4"}
    assert admitted(scenario, "shop.exists") == {"n1", "n4"}
    assert admitted(scenario, "shop.tolerates") == {"n1", "n2", "n3", "n4"}
    assert admitted(scenario, "shop.here") == {"n4"}
    by_name = {each.name: each.attributes for each in scenario.cell.machines}
    assert by_name["n2"]["taint/gpu"] == "yes:NoSchedule"
    selects = next(job for job in scenario.jobs if job.id == "shop.selects")
    assert selects.groups[0].requires == {"disk": "ssd"}


def test_rules_about_other_pods_are_constraints_within_the_namespace(tmp_path: Path) -> None:
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    near = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "topology.kubernetes.io/zone",
    }
    affinity = {
        "podAntiAffinity": {REQUIRED: [apart]},
        "podAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": near}]},
    }
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 8080}]}]
    scenario = cluster(
        tmp_path, pod("web", affinity=affinity, containers=ports), pod("db", cpu="1")
    )
    web = next(job for job in scenario.jobs if job.id == "shop.web")
    assert [format_constraint(each) for each in web.job.constraints] == [
        "appID:self -> {owner:shop & app:db, 1, inf} in zone weight 0.5",
        "appID:self -> {owner:shop & app:web, 0, 0} in machine hard",
        "appID:self -> {hostPort:TCP-8080, 0, 0} in machine hard",
    ]
    assert web.groups[0].tags == ("app:web", "hostPort:TCP-8080")


def test_affinity_to_pods_like_itself_does_not_keep_the_first_from_running(tmp_path: Path) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    scenario = cluster(tmp_path, pod("web", affinity={"podAffinity": {REQUIRED: [term]}}))
    assert not scenario.jobs[0].job.constraints[0].hard
    assert len(scenario.left_out) == 1


def test_what_has_no_counterpart_is_said_once_for_all_pods(tmp_path: Path) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pods = [
        pod(f"web-{i}", owner="ReplicaSet/web", topologySpreadConstraints=[spread])
        for i in range(3)
    ]
    never = pod("never", preemptionPolicy="Never")
    gated = pod("gated", schedulingGates=[{"name": "x"}])
    scenario = cluster(tmp_path, *pods, never, gated)
    assert scenario.left_out == (
        "not carried over: pods that scheduling gates hold (1 pod)",
        "not carried over: preemptionPolicy Never (1 pod)",
        "not carried over: topologySpreadConstraints: a skew against the emptiest domain has no"
        " counterpart (3 pods)",
    )


def test_pods_that_could_run_nowhere_are_left_out_and_counted(tmp_path: Path) -> None:
    gpu = [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]
    scenario = cluster(
        tmp_path,
        pod("fits"),
        pod("gpu", containers=gpu),
        pod("lost", nodeSelector={"disk": "tape"}),
    )
    assert [job.id for job in scenario.jobs] == ["shop.fits"]
    assert scenario.left_out == (
        "not carried over: pods that ask for nvidia.com/gpu, which no node has (1 pod)",
        "not carried over: pods that no node admits (1 pod)",
    )


def test_pods_that_have_ended_count_only_as_far_back_as_asked_for(tmp_path: Path) -> None:
    over = ended("n1", "2026-03-01T10:05:10Z", "2026-03-01T10:07:10Z")
    pods = [
        pod("old", on="n1"),
        pod("work", on="n1", created="2026-03-01T10:05:00Z", status=over, restartPolicy="Never"),
        pod("new", on="n2", created=LATER),
    ]
    write(tmp_path / "cluster.json", *NODES, *pods)
    text = """
name = "back"
[workload.kubernetes]
path = "cluster.json"
{since}
[[fleet]]
name = "s"
engine = "omega"
"""
    (tmp_path / "now.toml").write_text(text.format(since=""))
    (tmp_path / "back.toml").write_text(text.format(since='since = "8min"'))
    now, back = load(tmp_path / "now.toml"), load(tmp_path / "back.toml")
    assert {job.id: job.submit for job in now.jobs} == {"shop.old": 0, "shop.new": 0}
    assert now.left_out == ("not carried over: pods that had ended before (1 pod)",)
    assert {job.id: job.submit for job in back.jobs} == {
        "shop.old": 0,
        "shop.work": 180_000_000,
        "shop.new": 480_000_000,
    }
    work = next(job for job in back.jobs if job.id == "shop.work")
    assert (work.truth[0].durations, work.kind) == ((120_000_000,), "batch")


def test_pinned_pods_stay_where_they_run(tmp_path: Path) -> None:
    write(tmp_path / "cluster.json", *NODES, pod("a", on="n2"), pod("b"))
    (tmp_path / "pinned.toml").write_text(
        'name = "pinned"\nworkload.kubernetes = { path = "cluster.json", pinned = true }\n'
        'fleet = [{ name = "s", engine = "omega" }]\n'
    )
    scenario = load(tmp_path / "pinned.toml")
    assert admitted(scenario, "shop.a") == {"n2"}
    assert admitted(scenario, "shop.b") == {"n1", "n2", "n3"}


def test_yaml_lists_and_documents_read_as_json_does(tmp_path: Path) -> None:
    pods = [pod("a", on="n1"), pod("b")]
    from_json = cluster(tmp_path, *pods)
    listed = tmp_path / "cluster.yaml"
    listed.write_text(yaml.safe_dump({"kind": "List", "items": [*NODES, *pods]}))
    lists = [
        {"kind": "NodeList", "items": [{**each, "kind": None} for each in NODES]},
        {"kind": "PodList", "items": pods},
    ]
    single = tmp_path / "cluster.yml"
    single.write_text(yaml.safe_dump_all(lists))
    for path in (listed, single):
        scenario = load(path)
        assert (scenario.cell, scenario.jobs) == (from_json.cell, from_json.jobs)


def test_a_scenario_may_name_the_file_alone(tmp_path: Path) -> None:
    write(tmp_path / "cluster.json", *NODES, pod("a"))
    (tmp_path / "short.toml").write_text(
        'name = "short"\nworkload.kubernetes = "cluster.json"\n'
        'fleet = [{ name = "s", engine = "omega" }]\n'
    )
    assert [job.id for job in load(tmp_path / "short.toml").jobs] == ["shop.a"]


def test_run_and_compare_take_the_file_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pods = [pod(f"web-{i}", owner="ReplicaSet/web", on="n1") for i in range(4)]
    write(tmp_path / "cluster.json", *NODES, *pods)
    assert main(["run", "cluster.json", "--engine", "firmament", "-o", "json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["counts"]["tasks_running"] == 4
    arguments = ["compare", "cluster.json", "--engine", "kube", "--engine", "omega", "--seeds", "1"]
    assert main([*arguments, "-o", "json"]) == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"items": []}', "an object without a kind"),
        ('{"kind": "List"}', "a List without items"),
        ('{"kind": "List", "items": []}', "no nodes and no pods"),
        ('{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a"}}]}', "no nodes among 1"),
        ('{"kind": "List", "items": [{"kind": "Node"}]}', "items[0]"),
        (
            '{"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x"}}}',
            "Node that cannot be read",
        ),
        ('{"kind": "Node", "metadata": {"name": 5}}', "Node that cannot be read"),
        ('{"kind": "Node", "metadata": {"name": "n"}}', "no pods that run or wait"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_error(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"gone\.json"):
        load(tmp_path / "gone.json")


@pytest.mark.parametrize(
    "spec",
    [
        {"overhead": {"cpu": "many"}},
        {"resources": {"requests": {"cpu": "many"}}},
        {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "many"}}}]},
        {"containers": [{"name": "i", "resources": {"requests": {"cpu": "many"}}}]},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_an_amount_that_is_none_is_refused_wherever_it_stands(
    spec: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=r"Pod that cannot be read: .*'many'") as caught:
        cluster(tmp_path, pod("a"), {**pod("b"), "spec": spec})
    assert caught.value.field == "items[4]"


def test_a_node_without_pods_and_one_named_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        cluster(tmp_path, pod("a"), nodes=[*NODES, node("n2")])
    assert (caught.value.problem, caught.value.expected) == ("node 'n2' again", "each once")
    with pytest.raises(ScenarioError) as caught:
        cluster(tmp_path, pod("a"), pod("b"), nodes=[])
    assert caught.value.problem == "no nodes among 2 objects"
    assert caught.value.hint == "it has 2 pods: ask for nodes as well"
    with pytest.raises(ScenarioError) as caught:
        cluster(tmp_path, nodes=[])
    assert (caught.value.problem, caught.value.hint) == ("no nodes and no pods", None)
