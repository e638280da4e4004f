"""`kubectl argosy`, called by the real kubectl."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import REPOSITORY

from argosy.kubernetes.control_plane import ControlPlane, KubeTools

SPACE = "plugin"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
ENTRY = "argosy.cli:kubectl_plugin"
PATIENCE = 240.0


def pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "argosy", "containers": [container]},
    }


class Scheduled:
    """Argosy on a control plane, with a pod that has a node and one that waits."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        command = [sys.executable, "-m", "argosy.cli", "kubernetes", "--kubeconfig"]
        self.process = subprocess.Popen(
            [*command, str(plane.kubeconfig), "-o", "json"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]
        plugin = folder / "kubectl-argosy"
        module, _, function = ENTRY.partition(":")
        plugin.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
        plugin.chmod(0o755)
        self._path = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def kubectl(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.plane.tools.kubectl, "argosy", *arguments],
            env={
                **os.environ,
                "PATH": self._path,
                "KUBECONFIG": str(self.plane.kubeconfig),
                "ARGOSY_URL": self.url,
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def wait(self) -> None:
        """Until both pods were decided on."""
        decided = set()
        for event in self.plane.watch(PODS):
            found = event["object"]
            conditions = found.get("status", {}).get("conditions") or ()
            if any(each["type"] == "PodScheduled" for each in conditions):
                decided.add(found["metadata"]["name"])
            if decided == {"small", "huge"}:
                return


@pytest.fixture(scope="module")
def scheduled(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scheduled]:
    folder = tmp_path_factory.mktemp("plugin")
    with ControlPlane.start(folder / "plane", tools=kube_tools, timeout=PATIENCE) as plane:
        plane.create_nodes(2, cpu="4")
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
        running = Scheduled(plane, folder)
        try:
            plane.request("POST", PODS, pod("small", "1"))
            plane.request("POST", PODS, pod("huge", "64"))
            running.wait()
            yield running
        finally:
            running.process.send_signal(signal.SIGTERM)
            running.process.communicate(timeout=PATIENCE)


def test_the_plugin_is_installed_under_the_name_that_kubectl_looks_for() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert project["project"]["scripts"]["kubectl-argosy"] == ENTRY


def test_why_explains_a_pod_that_waits(scheduled: Scheduled) -> None:
    told = scheduled.kubectl("why", "huge", "-n", SPACE)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith(f"{SPACE}/huge: pending\n")
    assert "has tasks that ask for 64 cores; the largest machine has 4 cores." in told.stdout


def test_why_says_the_node_of_a_pod_that_has_one(scheduled: Scheduled) -> None:
    told = scheduled.kubectl("why", "small", "-n", SPACE, "-o", "json")
    document = json.loads(told.stdout)
    assert (document["namespace"], document["pod"], document["state"]) == (
        SPACE,
        "small",
        "running",
    )


def test_ps_lists_pods_by_namespace(scheduled: Scheduled) -> None:
    rows = json.loads(scheduled.kubectl("ps", "-n", SPACE, "-o", "json").stdout)
    states = {row["pod"]: (row["state"], bool(row["node"])) for row in rows}
    assert states == {"small": ("running", True), "huge": ("pending", False)}
    # The kubeconfig's own namespace is another one.
    assert json.loads(scheduled.kubectl("ps", "-o", "json").stdout) == []
    assert len(json.loads(scheduled.kubectl("ps", "-A", "-o", "json").stdout)) == 2


def test_story_tells_what_happened(scheduled: Scheduled) -> None:
    told = scheduled.kubectl("story", "small", "-n", SPACE)
    assert told.returncode == 0
    assert "submitted" in told.stdout


def test_without_a_namespace_that_of_the_context_counts(
    scheduled: Scheduled, tmp_path: Path
) -> None:
    config = yaml.safe_load(scheduled.plane.kubeconfig.read_text())
    for each in config["contexts"]:
        each["context"]["namespace"] = SPACE
    own = tmp_path / "kubeconfig"
    own.write_text(yaml.safe_dump(config))
    for command in ("why", "story"):
        told = scheduled.kubectl(command, "small", KUBECONFIG=str(own))
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout.startswith(f"{SPACE}/small")
    rows = json.loads(scheduled.kubectl("ps", "-o", "json", KUBECONFIG=str(own)).stdout)
    assert {row["pod"] for row in rows} == {"small", "huge"}


def test_top_shows_nodes(scheduled: Scheduled) -> None:
    told = scheduled.kubectl("top", "--once")
    assert told.returncode == 0
    assert "node-00000" in told.stdout


def test_the_option_names_a_server_rather_than_the_environment(scheduled: Scheduled) -> None:
    told = scheduled.kubectl(
        "ps", "-A", "-o", "json", "--server", scheduled.url, ARGOSY_URL="http://127.0.0.1:1"
    )
    assert len(json.loads(told.stdout)) == 2


def test_an_unknown_pod_is_one_clear_line(scheduled: Scheduled) -> None:
    told = scheduled.kubectl("why", "nobody", "-n", SPACE)
    (line, *_) = told.stderr.splitlines()
    assert (told.returncode, told.stdout) == (2, "")
    assert f"Argosy knows no pod {SPACE}/nobody" in line
