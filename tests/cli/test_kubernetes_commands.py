"""Commands for Kubernetes in this process, with an API server in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from command_line import Call
from kube_schedulers import pod_document
from small_api_server import SmallApiServer, kubeconfig_of, served_elsewhere

from argosy.cli.kubernetes_demo import _show
from argosy.cli.kubernetes_growth import read_growth
from argosy.cli.kubernetes_shadow import show_report
from argosy.kubernetes.control_plane.nodes import node_document
from argosy.kubernetes.kinds import NAMESPACES, NODES, PODS
from argosy.kubernetes.leases import lease_settings
from argosy.kubernetes.objects import Pod
from argosy.model.errors import ArgosyError
from argosy.scenarios.loader import load
from argosy.service.kubernetes import demo
from argosy.service.kubernetes.demo import DemoPod, DemoResult
from argosy.service.kubernetes.shadow.session import ShadowReport, ShadowRow


@pytest.fixture
def api() -> SmallApiServer:
    server = SmallApiServer()
    server.put(NAMESPACES, {"metadata": {"name": "default"}})
    for at, zone in enumerate(("east", "west")):
        offered = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        labels = {"topology.kubernetes.io/zone": zone}
        server.put(NODES, node_document(f"n{at}", offered, labels, (), is_ready=True))
    return server


@pytest.fixture
def kubeconfig(api: SmallApiServer, tmp_path: Path) -> Iterator[Path]:
    with served_elsewhere(api):
        yield kubeconfig_of(api, tmp_path, "space")


def deployment(replicas: int, cpu: str) -> dict[str, Any]:
    template = {"spec": pod_document("x", cpu=cpu)["spec"]}
    spec = {"replicas": replicas, "template": template}
    return {"kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_a_plan_that_fits_is_a_table(argosy: Call, kubeconfig: Path, tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(json.dumps(deployment(1, "4")) + "\n---\n" + json.dumps(pod_document("p")))
    told = argosy("kubernetes", "plan", "--kubeconfig", kubeconfig, "-f", file, "-o", "json")
    assert (told.code, told.err) == (0, "")
    plan = json.loads(told.out)
    assert (plan["engine"], plan["fits"], plan["displaced"]) == ("omega", True, [])
    places = {(each["namespace"], each["of"], each["name"]): each["node"] for each in plan["pods"]}
    assert list(places) == [("space", "Deployment/web", "web-0"), ("space", "Pod/p", "p")]
    assert sorted(places.values()) == ["n0", "n1"]
    options = ("--kubeconfig", kubeconfig, "-f", file, "-n", "other", "--engine", "kube")
    told = argosy("kubernetes", "plan", *options)
    assert told.out.splitlines()[0] == "fits"
    assert told.out.count("other") == 2


def test_a_plan_that_does_not_fit_says_so_with_its_exit_code(
    argosy: Call, kubeconfig: Path, tmp_path: Path
) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(json.dumps(deployment(3, "4")))
    told = argosy("kubernetes", "plan", "--kubeconfig", kubeconfig, "-f", file)
    assert told.code == 1
    assert told.out.startswith("does not fit: 1 of 3 pods would wait\n")
    assert "0/2 nodes are available: 2 Insufficient cpu." in " ".join(told.out.split())
    file.write_text("a: [")
    told = argosy("kubernetes", "plan", "--kubeconfig", kubeconfig, "-f", file)
    assert told.code == 2
    assert "app.yaml: cannot be read: while parsing" in told.complaint


def test_a_cluster_becomes_a_scenario(argosy: Call, api: SmallApiServer, tmp_path: Path) -> None:
    api.put(PODS, pod_document("a", "other", cpu="2", nodeName="n0"))
    api.put(PODS, pod_document("b", "other", cpu="1"))
    with served_elsewhere(api):
        given = ("record", "--kubeconfig", kubeconfig_of(api, tmp_path), "--for", "50ms")
        told = argosy(*given, "-o", tmp_path / "recorded")
    assert told.code == 0
    first, *_, last = told.err.splitlines()
    assert first == "argosy: recording 2 nodes and 2 pods for 50ms, changing nothing"
    assert last.endswith("recorded/scenario.toml: 2 machines, 2 pods in 2 jobs")
    scenario = load(tmp_path / "recorded" / "scenario.toml")
    assert [machine.name for machine in scenario.cell.machines] == ["n0", "n1"]
    assert {job.id: job.groups[0].request.cpu for job in scenario.jobs} == {
        "default.a": 2000,
        "default.b": 1000,
    }
    assert [each.engine for each in scenario.fleet] == ["kube"]


def test_a_cluster_without_pods_is_no_scenario(
    argosy: Call, kubeconfig: Path, tmp_path: Path
) -> None:
    told = argosy("record", "--kubeconfig", kubeconfig, "--for", "10ms", "-o", tmp_path / "r")
    assert told.code == 2
    assert "no pods that ran or waited" in told.err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("record", "--kubeconfig", "k", "-o", "d", "--journal", "j"), "a server of Argosy and"),
        (("record", "--kubeconfig", "k", "-o", "d", "--life", "1"), "a server of Argosy and"),
        (("record", "--kubeconfig", "k"), "nowhere to write to"),
        (("record", "--context", "k"), "nowhere to write to"),
        (("record", "--for", "1s", "-o", "d"), "--for without --kubeconfig"),
        (("record", "--pinned", "-o", "d"), "--pinned without --kubeconfig"),
        (("kubernetes", "--fleet", "f", "--engine", "kube"), "both --fleet and --engine"),
        (("kubernetes", "--lease-name", "l"), "--lease-name without --leader-elect"),
        (("kubernetes", "--identity", "i"), "--identity without --leader-elect"),
        (("kubernetes", "--lease-namespace", "n"), "--lease-namespace without --leader-elect"),
        (("kubernetes", "--for", "1s"), "--for without --shadow"),
        (("kubernetes", "guard", "--apply", "--remove"), "both --apply and --remove"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    argosy: Call, tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    for name in ("k", "f"):
        (tmp_path / name).touch()
    told = argosy(*options)
    assert told.code == 2
    assert complaint in told.complaint


def test_a_guard_is_printed_without_asking_anybody(argosy: Call) -> None:
    told = argosy("kubernetes", "guard")
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(told.out)] == 2 * [
        "argosy-fencing"
    ]
    named = ("--name", "x", "--lease-namespace", "s", "--node", "n2", "--node", "n1")
    policy, binding, nodes, *others = yaml.safe_load_all(argosy("kubernetes", "guard", *named).out)
    assert policy["metadata"]["name"] == "x-fencing"
    assert binding["spec"]["paramRef"]["name"] == "x"
    assert binding["spec"]["paramRef"]["namespace"] == "s"
    assert (nodes["metadata"]["namespace"], list(nodes["data"])) == ("s", ["n1", "n2"])
    assert len(others) == 4
    _, binding = yaml.safe_load_all(argosy("kubernetes", "guard", "--lease-name", "l").out)
    assert binding["spec"]["paramRef"]["name"] == "l"
    assert binding["spec"]["paramRef"]["namespace"] == "kube-system"


def test_a_guard_is_applied_to_nodes_with_labels_and_removed(
    argosy: Call, api: SmallApiServer, kubeconfig: Path
) -> None:
    guard = ("kubernetes", "guard", "--kubeconfig", kubeconfig)
    west = ("--node-selector", "topology.kubernetes.io/zone=west")
    assert argosy(*guard, "--apply").err == "argosy: bindings of argosy are guarded\n"
    assert len(api.written) == 2
    told = argosy(*guard, "--apply", *west, "--node", "n9")
    assert told.err == "argosy: bindings of argosy and 2 nodes are guarded\n"
    listed = [body for _, path, body in api.written if path.endswith("configmaps/argosy-nodes")]
    assert [list(each["data"]) for each in listed] == [["n1", "n9"]]
    assert len(list(yaml.safe_load_all(argosy(*guard, *west).out))) == 7
    told = argosy(*guard, "--apply", "--node-selector", "zone=north")
    assert "no node has the labels 'zone=north'" in told.complaint
    api.written.clear()
    assert argosy(*guard, "--remove").err == "argosy: the guard is removed\n"
    # Nodes or none: all that may have been applied goes.
    assert len(api.written) == 7


def test_a_shadow_reports_when_its_time_is_over(
    argosy: Call, api: SmallApiServer, tmp_path: Path
) -> None:
    api.put(PODS, pod_document("before", "other", nodeName="n0"))
    api.put(PODS, pod_document("waits", "other", cpu="9"))
    with served_elsewhere(api):
        config = kubeconfig_of(api, tmp_path)
        shadow = ("kubernetes", "--shadow", "--kubeconfig", config, "--engine", "omega")
        told = argosy(*shadow, "--engine", "kube", "--for", "100ms", "-o", "json")
    assert told.code == 0
    line = "argosy: watching 2 nodes for 100ms, changing nothing; in the shadow: omega, kube\n"
    assert told.err == line
    report = json.loads(told.out)
    assert (report["nodes"], report["pods"], report["pods_before"]) == (2, 1, 1)
    rows = [(each["scheduler"], each["placed"], each["waiting"]) for each in report["schedulers"]]
    assert rows == [("the cluster", 0, 1), ("omega", 0, 1), ("kube", 0, 1)]
    assert api.written == []


def test_a_report_of_a_shadow_is_two_tables(capsys: pytest.CaptureFixture[str]) -> None:
    row = ShadowRow(
        scheduler="omega",
        placed=11,
        waiting=1,
        unsupported=2,
        missed=3,
        wait_median=0.25,
        wait_90=1.5,
        wait_longest=90.0,
        cpu_used=0.5,
        memory_used=0.25,
        evictions=4,
        broken_rules=5,
        overcommitted_nodes=6,
        nodes_used=7,
        nodes_spare=8,
        same_node=0.75,
    )
    none = msgspec.structs.replace(row, scheduler="none", wait_median=None, same_node=None)
    report = ShadowReport(seconds=62.5, nodes=4, pods=12, pods_before=1, schedulers=(row, none))
    show_report(report, "table")
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "12 pods in 1.04 min" in lines
    assert "omega 11 1 2 3 250 ms 1.5 s 1.5 min 4 75 %" in lines
    assert any(line.startswith("none 11 1 2 3") and "250 ms" not in line for line in lines)
    assert "4 nodes: requested on average, and at the end" in lines
    assert "omega 50 % 25 % 5 6 7 8" in lines


def test_a_demonstration_shows_nodes_and_what_waits(capsys: pytest.CaptureFixture[str]) -> None:
    pods = (
        DemoPod("database", "d-0", "n1", "west", ""),
        DemoPod("web", "w-0", "n0", "east", ""),
        DemoPod("web", "w-1", "n0", "east", ""),
        DemoPod("too-large", "too-large", "", "", "no room"),
    )
    result = DemoResult("kube", 2, pods, 0.5)
    assert (result.bound, result.rate) == (3, 6.0)
    assert DemoResult("kube", 2, pods, 0.0).rate == 0.0
    _show("table", result)
    out = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line]
    assert out[0] == "kube: 3 pods on 2 nodes in 0.5 s (6 pods/s)"
    assert out[1] == "node zone database web"
    assert next(line for line in out if line.startswith("n0 east")).endswith(" 2")
    assert next(line for line in out if line.startswith("n1 west")).split()[2] == "1"
    assert out[-2:] == ["too-large waits", "no room"]
    _show("json", result)
    document = json.loads(capsys.readouterr().out)
    assert (document["bound"], document["pods_per_second"]) == (3, 6.0)


def test_the_workload_of_the_demonstration_is_what_it_waits_for() -> None:
    documents = demo.workload()
    assert [path.rpartition("/")[2] for path, _ in documents] == [
        "deployments",
        "deployments",
        "jobs",
        "pods",
    ]
    (_, web), (_, database), (_, crunch), (_, large) = documents
    counts = [
        web["spec"]["replicas"],
        database["spec"]["replicas"],
        crunch["spec"]["parallelism"],
    ]
    assert sum(counts) == demo.FITTING
    assert crunch["spec"]["completions"] == crunch["spec"]["parallelism"]
    for made in (web, database):
        template = made["spec"]["template"]
        assert made["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
        assert template["metadata"]["labels"] == {"app": made["metadata"]["name"]}

    def cpus(spec: dict[str, Any]) -> float:
        [container] = spec["containers"]
        text = container["resources"]["requests"]["cpu"]
        return int(text[:-1]) / 1000 if text.endswith("m") else int(text)

    templates = [each["spec"]["template"]["spec"] for each in (web, database, crunch)]
    asked = sum(count * cpus(each) for count, each in zip(counts, templates, strict=True))
    # All but one fit, with one database on a node; the last is larger than any node.
    assert asked <= demo.NODES * demo._CPUS
    assert counts[1] <= demo.NODES
    assert cpus(large["spec"]) > demo._CPUS
    assert {each["schedulerName"] for each in (*templates, large["spec"])} == {"argosy"}
    assert templates[2]["restartPolicy"] == "Never"
    [rule] = templates[0]["topologySpreadConstraints"]
    assert (rule["maxSkew"], rule["whenUnsatisfiable"]) == (1, "DoNotSchedule")


def a_pod(**document: Any) -> Pod:
    return PODS.decode(msgspec.json.encode({"metadata": {"name": "p"}, **document}))


def test_pods_of_the_demonstration_are_told_by_application() -> None:
    def owned(kind: str, name: str) -> Pod:
        owner = {"kind": kind, "name": name, "uid": "u", "controller": True}
        return a_pod(metadata={"name": "p", "ownerReferences": [owner]})

    assert demo._application(owned("ReplicaSet", "web-5d")) == "web"
    assert demo._application(owned("Job", "crunch-it")) == "crunch-it"
    assert demo._application(a_pod()) == "p"

    def waiting(*conditions: tuple[str, str]) -> str:
        told = [{"type": a, "status": b, "message": f"{a} {b}"} for a, b in conditions]
        return demo.reason_to_wait(a_pod(status={"conditions": told}))

    assert waiting(("Ready", "False"), ("PodScheduled", "False")) == "PodScheduled False"
    assert waiting(("Ready", "False"), ("PodScheduled", "True")) == ""


def test_pods_of_the_demonstration_are_shown_with_their_zone() -> None:
    shown = object.__new__(demo.Demo)._shown
    zones = [
        shown(a_pod(spec={"nodeName": f"node-{at:05}"})).zone for at in range(len(demo.ZONES) + 1)
    ]
    assert zones == [*demo.ZONES, demo.ZONES[0]]
    waiting = shown(a_pod())
    assert (waiting.application, waiting.node, waiting.zone, waiting.waiting) == ("p", "", "", "")
    late, first, second = (
        DemoPod("a", "p1", "", "", "x"),
        DemoPod("a", "p2", "n0", "", ""),
        DemoPod("b", "p0", "n0", "", ""),
    )
    assert sorted([late, second, first], key=demo._order) == [first, second, late]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("max-parallelism", ("max-parallelism", 0.6, 4.0)),
        ("global-cap", ("global-cap", 0.6, 4.0)),
        ("global-cap=0.5", ("global-cap", 0.5, 4.0)),
        ("global-cap=1", ("global-cap", 1.0, 4.0)),
        ("relative-job-size=2", ("relative-job-size", 0.6, 2.0)),
        ("relative-job-size=1", ("relative-job-size", 0.6, 1.0)),
        ("max-parallelism=2", None),
        ("global-cap=0", None),
        ("global-cap=1.1", None),
        ("global-cap=", None),
        ("relative-job-size=0.9", None),
        ("relative-job-size=1001", None),
        ("other", None),
    ],
)
def test_policies_of_growth_and_their_bounds(text: str, found: tuple[str, float, float]) -> None:
    if found is None:
        with pytest.raises(ArgosyError, match="is no policy"):
            read_growth(text)
    else:
        settings = read_growth(text)
        assert (settings.policy, settings.cap, settings.times) == found


def test_the_times_of_a_lease_follow_from_its_duration() -> None:
    usual = lease_settings(15)
    assert (usual.duration, usual.renew_deadline, usual.retry_period) == (15, 10.0, 2.0)
