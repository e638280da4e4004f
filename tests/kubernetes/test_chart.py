"""The Helm chart, rendered by Helm and applied to a real API server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import REPOSITORY

from argosy.kubernetes.control_plane import ControlPlane, KubeTools

CHART = REPOSITORY / "charts" / "argosy"
SPACE = "argosy-system"
PATIENCE = 240.0

Render = Callable[..., list[dict[str, Any]]]
#: All that the scheduler may do.
RIGHTS = {
    ("", "namespaces", "list"),
    ("", "namespaces", "watch"),
    ("", "nodes", "list"),
    ("", "nodes", "watch"),
    ("", "persistentvolumeclaims", "list"),
    ("", "persistentvolumeclaims", "watch"),
    ("", "persistentvolumes", "list"),
    ("", "persistentvolumes", "watch"),
    ("", "pods", "get"),
    ("", "pods", "list"),
    ("", "pods", "watch"),
    ("", "pods/binding", "create"),
    ("", "pods/eviction", "create"),
    ("", "pods/status", "patch"),
    ("events.k8s.io", "events", "create"),
    ("policy", "poddisruptionbudgets", "list"),
    ("policy", "poddisruptionbudgets", "watch"),
    ("scheduling.k8s.io", "podgroups", "list"),
    ("scheduling.k8s.io", "podgroups", "watch"),
    ("scheduling.k8s.io", "priorityclasses", "list"),
    ("scheduling.k8s.io", "priorityclasses", "watch"),
    ("scheduling.x-k8s.io", "podgroups", "list"),
    ("scheduling.x-k8s.io", "podgroups", "watch"),
}
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}


@pytest.fixture(scope="session")
def helm() -> Path:
    builder = REPOSITORY / "tools" / "helm" / "build"
    told = subprocess.run(
        [sys.executable, str(builder), "--where"], capture_output=True, text=True, check=True
    )
    path = Path(told.stdout.strip())
    if not path.is_file():
        pytest.skip("Helm is not built: run `make helm`")
    return path


def rendered(helm: Path, *values: str) -> subprocess.CompletedProcess[str]:
    settings = [part for value in values for part in ("--set", value)]
    command = [helm, "template", "argosy", CHART, "--namespace", SPACE, *settings]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)


@pytest.fixture
def render(helm: Path) -> Render:
    def call(*values: str) -> list[dict[str, Any]]:
        done = rendered(helm, *values)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return call


def only(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [each for each in documents if each["kind"] == kind]
    return found


def test_the_chart_is_of_the_projects_version() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == project["version"]


def test_the_image_runs_as_the_user_of_the_chart() -> None:
    lines = (REPOSITORY / "Containerfile").read_text().splitlines()
    (user,) = [line.removeprefix("USER ") for line in lines if line.startswith("USER ")]
    context = yaml.safe_load((CHART / "values.yaml").read_text())["podSecurityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_helm_finds_no_fault_with_the_chart(helm: Path) -> None:
    done = subprocess.run(
        [helm, "lint", "--strict", CHART], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def rights(documents: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in only(documents, "ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_growing_jobs_needs_rights_to_jobs(render: Render) -> None:
    documents = render("growJobs=global-cap=0.6")
    jobs = {("batch", "jobs", verb) for verb in ("list", "patch", "watch")}
    assert rights(documents) == RIGHTS | jobs
    container = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert "--grow-jobs=global-cap=0.6" in container["args"]


def test_an_agent_needs_the_right_to_create_pods(render: Render) -> None:
    documents = render("agent.enabled=true")
    assert rights(documents) == RIGHTS | {("", "pods", "create")}
    container = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert "--agent" in container["args"]


def test_the_rights_are_these_and_no_others(render: Render) -> None:
    documents = render()
    assert rights(documents) == RIGHTS
    assert not [each for each in documents if each["kind"] == "Role"]


def test_electing_a_leader_needs_rights_to_one_lease(render: Render) -> None:
    documents = render("leaderElection.enabled=true", "replicaCount=2")
    create, others = only(documents, "Role")["rules"]
    assert (create["resources"], create["verbs"]) == (["leases"], ["create"])
    assert (others["resourceNames"], others["verbs"]) == (["argosy"], ["get", "update"])
    container = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert "--leader-elect" in container["args"]
    assert f"--lease-namespace={SPACE}" in container["args"]


def test_two_replicas_without_a_leader_are_refused(helm: Path) -> None:
    done = rendered(helm, "replicaCount=2")
    assert done.returncode != 0
    assert "leaderElection.enabled" in done.stderr


def test_a_pod_monitor_comes_only_if_it_is_wanted(render: Render) -> None:
    assert "PodMonitor" not in {each["kind"] for each in render()}
    values = ("podMonitor.enabled=true", "server.tokenSecret.name=secret")
    monitor = only(render(*values), "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "secret", "key": "token"}


def test_the_container_has_no_more_privileges_than_it_needs(render: Render) -> None:
    pod = only(render(), "Deployment")["spec"]["template"]["spec"]
    context = pod["containers"][0]["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.fixture(scope="module")
def plane(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("chart")
    with ControlPlane.start(directory, tools=kube_tools, timeout=PATIENCE) as plane:
        plane.create_nodes(2, cpu="4")
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
        yield plane


def pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "argosy", "containers": [container]},
    }


def test_what_is_rendered_applies_and_its_account_may_schedule(
    render: Render, plane: ControlPlane, tmp_path: Path
) -> None:
    documents = render("leaderElection.enabled=true")
    for document in documents:
        plane.request("POST", PATHS[document["kind"]].format(SPACE), document)
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(only(documents, "ConfigMap")["data"]["fleet.toml"])

    account = only(documents, "ServiceAccount")["metadata"]["name"]
    tokens = f"{PATHS['ServiceAccount'].format(SPACE)}/{account}/token"
    token = plane.request("POST", tokens, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    document = json.loads(plane.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(document))

    command = [sys.executable, "-m", "argosy.cli", "kubernetes", "--listen", "none"]
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(kubeconfig), "--fleet", str(fleet)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    try:
        pods = "/api/v1/namespaces/default/pods"
        plane.request("POST", pods, pod("small", "1"))
        plane.request("POST", pods, pod("huge", "64"))
        decided: dict[str, bool] = {}
        for event in plane.watch(pods):
            found = event["object"]
            conditions = found.get("status", {}).get("conditions") or ()
            for each in conditions:
                if each["type"] == "PodScheduled":
                    decided[found["metadata"]["name"]] = each["status"] == "True"
            if len(decided) == 2:
                break
        notes = set()
        for event in plane.watch("/apis/events.k8s.io/v1/namespaces/default/events"):
            notes.add(event["object"].get("reason"))
            if {"Scheduled", "FailedScheduling"} <= notes:
                break
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE)
    assert decided == {"small": True, "huge": False}
    assert "forbidden" not in errors
