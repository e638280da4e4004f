"""Shadow mode against a cluster whose own scheduler is kube-scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import process
from limited_kubeconfig import kubeconfig_with

from argosy.kubernetes.control_plane import ControlPlane, KubeTools

PODS = "/api/v1/namespaces/default/pods"
READER = "argosy-reader"
PATIENCE = 240.0


@pytest.fixture(scope="module")
def cluster(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("shadow")
    plane = ControlPlane.start(directory, tools=kube_tools, scheduler=True, timeout=PATIENCE)
    with plane:
        plane.create_nodes(4, cpu="4", memory="16Gi", zones=("east", "west"))
        yield plane


@pytest.fixture(scope="module")
def reader(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig of somebody who may look at everything and change nothing."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    return kubeconfig_with(cluster, READER, rules, tmp_path_factory.mktemp("reader"))


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": {"app": name.rpartition("-")[0]}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "apart"}},
                }
            ]
        }
    }
}


def shadowing(kubeconfig: Path, *options: str) -> subprocess.Popen[str]:
    """Returns as soon as it watches."""
    command = [sys.executable, "-m", "argosy.cli", "kubernetes", "--shadow"]
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(kubeconfig), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "changing nothing" in line, line + process.stderr.read()
    return process


def ended(process: subprocess.Popen[str], line: str) -> str:
    """Interrupts it when it has written this line."""
    assert process.stderr is not None
    for each in process.stderr:
        if line in each:
            break
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Traceback" in errors) == (0, False)
    return out


def wait_for(cluster: ControlPlane, bound: set[str]) -> None:
    """Until kube-scheduler has bound these pods."""
    missing = set(bound)
    for event in cluster.watch(PODS):
        if event["object"]["spec"].get("nodeName"):
            missing.discard(event["object"]["metadata"]["name"])
        if not missing:
            return


@pytest.fixture(scope="module")
def report(cluster: ControlPlane, reader: Path) -> dict[str, Any]:
    cluster.request("POST", PODS, pod("before-0", "1"))
    wait_for(cluster, {"before-0"})
    shadow = shadowing(reader, "--engine", "omega", "--engine", "kube", "-o", "json")
    names = {f"plain-{number}" for number in range(6)}
    for name in sorted(names):
        cluster.request("POST", PODS, pod(name, "1"))
    apart = {f"apart-{number}" for number in range(4)}
    for name in sorted(apart):
        cluster.request("POST", PODS, pod(name, "100m", **APART))
    cluster.request("POST", PODS, pod("apart-one-too-many", "64"))
    wait_for(cluster, names | apart)
    cluster.request("DELETE", f"{PODS}/plain-0", {"gracePeriodSeconds": 0})
    cluster.request("POST", PODS, pod("last-0", "100m"))
    line = "12 pods seen; the cluster has placed 11, omega 11, kube 11"
    document: dict[str, Any] = json.loads(ended(shadow, line))
    return document


def row(report: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in report["schedulers"] if each["scheduler"] == name]
    return dict(found)


@pytest.mark.parametrize("name", ["the cluster", "omega", "kube"])
def test_every_scheduler_places_the_pods_that_fit(report: dict[str, Any], name: str) -> None:
    assert (report["pods"], report["pods_before"], report["nodes"]) == (12, 1, 4)
    found = row(report, name)
    assert (found["placed"], found["waiting"], found["missed"]) == (11, 1, 0)
    assert 0 <= found["wait_median"] <= found["wait_longest"]


@pytest.mark.parametrize("name", ["the cluster", "omega", "kube"])
def test_nobody_breaks_rules_or_overcommits(report: dict[str, Any], name: str) -> None:
    found = row(report, name)
    assert (found["broken_rules"], found["overcommitted_nodes"]) == (0, 0)
    assert 0 < found["cpu_used"] < 1
    # Pods that have to be apart are on every node.
    assert (found["nodes_used"], found["nodes_spare"]) == (4, 0)


def test_nothing_is_changed_in_the_cluster(report: dict[str, Any], cluster: ControlPlane) -> None:
    pods = cluster.request("GET", PODS)["items"]
    assert not any("argosy" in json.dumps(each) for each in pods)
    events = cluster.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    assert not any("argosy" in json.dumps(each.get("reportingController")) for each in events)


def test_the_report_is_a_table_for_people(
    report: dict[str, Any], cluster: ControlPlane, reader: Path
) -> None:
    shadow = shadowing(reader, "--for", "1ms")
    out, errors = shadow.communicate(timeout=PATIENCE)
    assert (shadow.returncode, errors) == (0, "")
    lines = out.splitlines()
    assert any(line.startswith("the cluster") for line in lines)
    assert any("could be emptied" in line for line in lines)
    # The pod that fits nowhere waits for everyone.
    assert lines[0].startswith("1 pod in ")


def manifests(folder: Path, *documents: dict[str, Any]) -> Path:
    path = folder / "app.yaml"
    path.write_text("---\n".join(json.dumps(each) + "\n" for each in documents))
    return path


def deployment(name: str, replicas: int, cpu: str) -> dict[str, Any]:
    template = pod(f"{name}-", cpu)
    template["spec"]["containers"][0]["resources"] = {"limits": {"cpu": cpu}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": template},
    }


def planned(kubeconfig: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return process("kubernetes", "plan", "--kubeconfig", kubeconfig, *arguments)


def test_manifests_that_fit_are_planned_without_being_made(
    report: dict[str, Any], cluster: ControlPlane, reader: Path, tmp_path: Path
) -> None:
    before = {each["metadata"]["name"] for each in cluster.request("GET", PODS)["items"]}
    file = manifests(tmp_path, deployment("web", 3, "500m"), {"kind": "Service", "spec": {}})
    told = planned(reader, "-f", file, "-o", "json")
    assert (told.returncode, told.stderr) == (0, "")
    document = json.loads(told.stdout)
    assert [each["of"] for each in document["pods"]] == ["Deployment/web"] * 3
    assert all(each["node"].startswith("node-") for each in document["pods"])
    after = {each["metadata"]["name"] for each in cluster.request("GET", PODS)["items"]}
    assert after == before


def test_pods_that_do_not_fit_are_explained_and_the_exit_code_says_so(
    report: dict[str, Any], reader: Path, tmp_path: Path
) -> None:
    file = manifests(tmp_path, deployment("big", 1, "64"), deployment("web", 1, "500m"))
    told = planned(reader, "-f", file)
    assert told.returncode == 1
    assert told.stdout.startswith("does not fit: 1 of 2 pods would wait\n")
    assert "0/4 nodes are available: 4 Insufficient cpu" in told.stdout


def test_daemon_sets_cannot_be_planned(reader: Path, tmp_path: Path) -> None:
    file = manifests(tmp_path, {"kind": "DaemonSet", "metadata": {"name": "agent"}})
    told = planned(reader, "-f", file)
    assert told.returncode == 2
    assert "DaemonSet agent cannot be planned" in told.stderr
