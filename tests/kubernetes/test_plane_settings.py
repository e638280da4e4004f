"""How the programs of a control plane are called, and the nodes that it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argosy.kubernetes.control_plane import programs
from argosy.kubernetes.control_plane.nodes import is_ready, node_document, parse_taint
from argosy.kubernetes.control_plane.programs import (
    ControlPlaneFiles,
    ControlPlanePorts,
    KubeProgram,
)

FILES = ControlPlaneFiles(Path("/plane"))
PORTS = ControlPlanePorts(
    etcd=1001, etcd_peers=1002, api_server=1003, controller_manager=1004, scheduler=1005
)


def test_everything_of_a_control_plane_is_in_its_directory() -> None:
    assert FILES.logs == Path("/plane/logs")
    assert FILES.kubeconfig == Path("/plane/kubeconfig")
    assert FILES.certificates == Path("/plane/certificates")
    assert FILES.authority == Path("/plane/certificates/apiserver.crt")
    assert FILES.tokens == Path("/plane/tokens.csv")
    assert FILES.account_key == Path("/plane/service-accounts.pem")
    assert FILES.scheduler_configuration == Path("/plane/kube-scheduler.json")
    assert FILES.log(KubeProgram.ETCD) == Path("/plane/logs/etcd.log")


def test_each_program_that_says_so_is_asked_at_its_own_port() -> None:
    assert programs.health_addresses(PORTS) == {
        "etcd": "http://127.0.0.1:1001/readyz",
        "kube-apiserver": "https://127.0.0.1:1003/readyz",
        "kube-controller-manager": "https://127.0.0.1:1004/healthz",
        "kube-scheduler": "https://127.0.0.1:1005/readyz",
    }


def options(flags: list[str]) -> dict[str, str]:
    """By name; none is given twice."""
    pairs = [flag.removeprefix("--").partition("=") for flag in flags]
    found = {name: value for name, _, value in pairs}
    assert len(found) == len(flags)
    return found


def test_etcd_keeps_its_data_in_the_directory_and_waits_for_no_disk() -> None:
    assert options(programs.etcd_flags(FILES, PORTS)) == {
        "name": "only",
        "data-dir": "/plane/etcd",
        "listen-client-urls": "http://127.0.0.1:1001",
        "advertise-client-urls": "http://127.0.0.1:1001",
        "listen-peer-urls": "http://127.0.0.1:1002",
        "initial-advertise-peer-urls": "http://127.0.0.1:1002",
        "initial-cluster": "only=http://127.0.0.1:1002",
        "unsafe-no-fsync": "true",
        "quota-backend-bytes": str(8 << 30),
        "socket-reuse-port": "true",
        "log-level": "warn",
    }


def test_the_api_server_knows_etcd_and_its_administrator() -> None:
    flags = programs.api_server_flags(FILES, PORTS, ["--v=4", "--feature-gates=A=true"])
    assert flags[-2:] == ["--v=4", "--feature-gates=A=true"]
    assert options(flags[:-2]) == {
        "etcd-servers": "http://127.0.0.1:1001",
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "secure-port": "1003",
        "permit-port-sharing": "true",
        "cert-dir": "/plane/certificates",
        "token-auth-file": "/plane/tokens.csv",
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": "/plane/service-accounts.pem",
        "service-account-signing-key-file": "/plane/service-accounts.pem",
        "service-cluster-ip-range": "10.0.0.0/24",
        "endpoint-reconciler-type": "none",
        "disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
        "enable-priority-and-fairness": "false",
        "max-requests-inflight": "0",
        "max-mutating-requests-inflight": "0",
    }


def served(program: str, port: int) -> dict[str, str]:
    """What is the same for the controller manager and the scheduler."""
    return {
        "bind-address": "127.0.0.1",
        "secure-port": str(port),
        "permit-port-sharing": "true",
        "cert-dir": f"/plane/certificates/{program}",
        "authentication-kubeconfig": "/plane/kubeconfig",
        "authorization-kubeconfig": "/plane/kubeconfig",
        "authentication-skip-lookup": "true",
    }


def test_the_controller_manager_runs_the_controllers_that_are_wanted() -> None:
    flags = programs.controller_manager_flags(FILES, PORTS, ["disruption", "-cronjob"])
    assert options(flags) == {
        **served("kube-controller-manager", 1004),
        "kubeconfig": "/plane/kubeconfig",
        "controllers": "disruption,-cronjob",
        "service-account-private-key-file": "/plane/service-accounts.pem",
        "root-ca-file": "/plane/certificates/apiserver.crt",
        "leader-elect": "false",
        "kube-api-qps": "5000",
        "kube-api-burst": "5000",
    }


def test_the_scheduler_is_told_everything_else_by_its_file() -> None:
    assert options(programs.scheduler_flags(FILES, PORTS)) == {
        **served("kube-scheduler", 1005),
        "config": "/plane/kube-scheduler.json",
    }
    assert programs.scheduler_configuration(FILES) == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/plane/kubeconfig", "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
    }


def test_kwok_looks_after_nodes_with_its_annotation_only() -> None:
    assert options(programs.kwok_flags(FILES, Path("/tools/stages.yaml"))) == {
        "kubeconfig": "/plane/kubeconfig",
        "config": "/tools/stages.yaml",
        "manage-all-nodes": "false",
        "manage-nodes-with-annotation-selector": "kwok.x-k8s.io/node=fake",
        "cidr": "10.1.0.0/16",
        "node-ip": "127.0.0.1",
        "node-lease-duration-seconds": "40",
        "v": "WARN",
    }


def test_the_kubeconfig_has_one_context_with_all_that_a_client_needs() -> None:
    made: Any = programs.kubeconfig(FILES, "https://127.0.0.1:1003", "secret")
    assert made == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "argosy",
                "cluster": {
                    "server": "https://127.0.0.1:1003",
                    "certificate-authority": "/plane/certificates/apiserver.crt",
                },
            }
        ],
        "users": [{"name": "argosy", "user": {"token": "secret"}}],
        "contexts": [{"name": "argosy", "context": {"cluster": "argosy", "user": "argosy"}}],
        "current-context": "argosy",
    }


@pytest.mark.parametrize("born_ready", [False, True])
def test_a_node_offers_all_that_it_has(born_ready: bool) -> None:
    room, labels = {"cpu": "8", "pods": "110"}, {"disk": "ssd", "kubernetes.io/os": "other"}
    made = node_document("n", room, labels, ["a=b:NoExecute", "c:NoSchedule"], is_ready=born_ready)
    status: dict[str, Any] = {"allocatable": room, "capacity": room}
    if born_ready:
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    assert made == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n",
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": "n",
                "kubernetes.io/os": "other",
                "kubernetes.io/arch": "amd64",
                "disk": "ssd",
            },
        },
        "spec": {
            "taints": [
                {"key": "a", "value": "b", "effect": "NoExecute"},
                {"key": "c", "value": "", "effect": "NoSchedule"},
            ]
        },
        "status": status,
    }
    assert is_ready(made) is born_ready


def test_taints_may_have_colons_and_equals_signs_in_their_values() -> None:
    assert parse_taint("k=v=w:PreferNoSchedule") == {
        "key": "k",
        "value": "v=w",
        "effect": "PreferNoSchedule",
    }
    assert parse_taint("a:b=c:NoSchedule") == {"key": "a:b", "value": "c", "effect": "NoSchedule"}
    assert parse_taint("k=:NoExecute") == {"key": "k", "value": "", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, False),
        ({"conditions": None}, False),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, False),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, False),
        ({"conditions": [{"type": "DiskPressure", "status": "True"}]}, False),
        (
            {
                "conditions": [
                    {"type": "DiskPressure", "status": "False"},
                    {"type": "Ready", "status": "True"},
                ]
            },
            True,
        ),
    ],
)
def test_a_node_is_ready_by_the_condition_of_that_name(
    status: dict[str, Any], expected: bool
) -> None:
    assert is_ready({"status": status}) is expected
    assert is_ready({}) is False
