"""`argosy record` of a cluster that kube-scheduler schedules, by somebody who may only read."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import process
from killable_server import until
from limited_kubeconfig import kubeconfig_with

from argosy.kubernetes.control_plane import ControlPlane, KubeTools
from argosy.model.resources import Resources
from argosy.scenarios.loader import load

PODS = "/api/v1/namespaces/default/pods"
PATIENCE = 240.0
READER = "recorder"


@pytest.fixture(scope="module")
def cluster(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("recorded")
    plane = ControlPlane.start(directory, tools=kube_tools, scheduler=True, timeout=PATIENCE)
    with plane:
        plane.create_nodes(4, cpu="4", memory="16Gi", zones=("east", "west"))
        yield plane


@pytest.fixture(scope="module")
def reader(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig of somebody who may read what is recorded, and do nothing else."""
    resources = ["nodes", "pods", "persistentvolumes", "persistentvolumeclaims"]
    rules = [{"apiGroups": [""], "resources": resources, "verbs": ["list", "watch"]}]
    return kubeconfig_with(cluster, READER, rules, tmp_path_factory.mktemp("reader"))


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    metadata = {"name": name, "labels": {"app": name.rpartition("-")[0]}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def wait_until_bound(cluster: ControlPlane, count: int) -> None:
    def all_bound() -> bool | None:
        pods = cluster.request("GET", PODS)["items"]
        return sum(1 for each in pods if each["spec"].get("nodeName")) >= count or None

    until(all_bound, f"{count} pods to be bound", PATIENCE)


def requested(cluster: ControlPlane) -> dict[str, Any]:
    """What the cluster's own API says, added up here."""
    pods = cluster.request("GET", PODS)["items"]
    cpu = {"500m": 500, "1": 1000, "2": 2000}
    amounts = [cpu[each["spec"]["containers"][0]["resources"]["requests"]["cpu"]] for each in pods]
    nodes = cluster.request("GET", "/api/v1/nodes")["items"]
    return {"pods": len(pods), "cpu": sum(amounts), "nodes": len(nodes)}


def test_a_recorded_cluster_has_its_pods_machines_and_requests_under_every_engine(
    cluster: ControlPlane, reader: Path, tmp_path: Path
) -> None:
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "apart"}},
    }
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    for number in range(4):
        cluster.request("POST", PODS, pod(f"standing-{number}", "1"))
    for number in range(3):
        spec = {"affinity": {"podAntiAffinity": rule}}
        cluster.request("POST", PODS, pod(f"apart-{number}", "500m", **spec))
    wait_until_bound(cluster, 7)
    recorder = subprocess.Popen(
        [sys.executable, "-m", "argosy.cli", "record", "--kubeconfig", str(reader), "-o", "recorded"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert recorder.stderr is not None
        first = recorder.stderr.readline()
        assert first == ("argosy: recording 4 nodes and 7 pods until Ctrl-C, changing nothing\n")
        for number in range(3):
            cluster.request("POST", PODS, pod(f"late-{number}", "2"))
        wait_until_bound(cluster, 10)
        source = requested(cluster)
        cluster.request("DELETE", f"{PODS}/late-0", {"gracePeriodSeconds": 0})
        until(
            lambda: len(cluster.request("GET", PODS)["items"]) == 9 or None,
            "the pod to go",
            PATIENCE,
        )
        recorder.send_signal(signal.SIGINT)
        _, rest = recorder.communicate(timeout=PATIENCE)
    finally:
        recorder.kill()
    assert recorder.returncode == 0, rest
    assert "recorded/scenario.toml: 4 machines, 10 pods in 10 jobs" in rest

    scenario = load(tmp_path / "recorded" / "scenario.toml")
    total = Counter[str]()
    for job in scenario.jobs:
        for group in job.groups:
            total["pods"] += group.count
            total["cpu"] += group.count * group.request.cpu
    assert {**total, "nodes": len(scenario.cell.machines)} == source
    capacity = Resources(4000, 16 << 30, {"pods": 110})
    assert [machine.capacity for machine in scenario.cell.machines] == 4 * [capacity]
    assert {group.name: set(group.sets) for group in scenario.cell.groups}["zone"] == {
        "east",
        "west",
    }
    at_start = [job.id for job in scenario.jobs if job.submit == 0]
    assert sorted(at_start) == [
        *(f"default.apart-{number}" for number in range(3)),
        *(f"default.standing-{number}" for number in range(4)),
    ]
    deleted = [job.id for job in scenario.jobs if not job.is_endless]
    assert deleted == ["default.late-0"]

    for engine in ("kube", "omega", "medea", "firmament"):
        run = process(
            "run", "recorded/scenario.toml", "--engine", engine, "-o", "json", cwd=tmp_path
        )
        assert run.returncode == 0, run.stderr
        summary = json.loads(run.stdout)
        counts = summary["counts"]
        assert counts["tasks"] == 10, engine
        assert counts["tasks_finished"] + counts["tasks_running"] == 10, engine
    compared = process(
        "compare", "recorded/scenario.toml", "--engine", "kube", "--engine", "medea", "--seeds", "1",
        cwd=tmp_path,
    )  # fmt: skip
    assert compared.returncode == 0, compared.stderr


def test_what_is_recorded_is_what_kubectl_prints(
    cluster: ControlPlane, reader: Path, tmp_path: Path
) -> None:
    listed = {
        "kind": "List",
        "items": [
            {**each, "kind": kind}
            for kind, path in (("Node", "/api/v1/nodes"), ("Pod", "/api/v1/pods"))
            for each in cluster.request("GET", path)["items"]
        ],
    }
    (tmp_path / "cluster.json").write_text(json.dumps(listed))
    done = process("record", "--kubeconfig", reader, "--for", "1ms", "-o", tmp_path / "recorded")
    assert done.returncode == 0, done.stderr
    watched, printed = (
        load(tmp_path / "recorded" / "scenario.toml"),
        load(tmp_path / "cluster.json"),
    )
    assert watched.cell.machines == printed.cell.machines
    assert set(map(str, watched.jobs)) == set(map(str, printed.jobs))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--for", "10min"), "--for without --kubeconfig"),
        (("--pinned",), "--pinned without --kubeconfig"),
        (("--kubeconfig", "gone"), "nowhere to write to"),
        (("--kubeconfig", "gone", "--journal", "j"), "a server of Argosy and a cluster"),
        (("--kubeconfig", "gone", "-o", "x"), "gone"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    done = process("record", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
