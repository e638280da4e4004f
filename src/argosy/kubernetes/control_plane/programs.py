"""The programs of a control plane, and how each is called."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

#: kwok looks after nodes with this annotation.
KWOK_NODE: Final = ("kwok.x-k8s.io/node", "fake")
#: Requests per second that clients allow themselves. With the usual 50, a benchmark would measure that.
CLIENT_RATE: Final = 5000
HOST: Final = "127.0.0.1"


class KubeProgram(enum.StrEnum):
    ETCD = "etcd"
    API_SERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"
    KWOK = "kwok"


class ControlPlaneFiles(msgspec.Struct, frozen=True):
    """Where everything of one control plane is."""

    directory: Path

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def certificates(self) -> Path:
        return self.directory / "certificates"

    @property
    def authority(self) -> Path:
        """The API server's certificate and its authority's, written when it first starts."""
        return self.certificates / "apiserver.crt"

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens.csv"

    @property
    def account_key(self) -> Path:
        return self.directory / "service-accounts.pem"

    @property
    def scheduler_configuration(self) -> Path:
        return self.directory / "kube-scheduler.json"

    def log(self, program: KubeProgram) -> Path:
        return self.logs / f"{program}.log"


class ControlPlanePorts(msgspec.Struct, frozen=True):
    etcd: int
    etcd_peers: int
    api_server: int
    controller_manager: int
    scheduler: int


def health_addresses(ports: ControlPlanePorts) -> Mapping[KubeProgram, str]:
    """Where each program says that it is ready. kwok does not: it would need a port that cannot be held
    for it, and its work is easy to see."""
    return {
        KubeProgram.ETCD: f"http://{HOST}:{ports.etcd}/readyz",
        KubeProgram.API_SERVER: f"https://{HOST}:{ports.api_server}/readyz",
        KubeProgram.CONTROLLER_MANAGER: f"https://{HOST}:{ports.controller_manager}/healthz",
        KubeProgram.SCHEDULER: f"https://{HOST}:{ports.scheduler}/readyz",
    }


def etcd_flags(files: ControlPlaneFiles, ports: ControlPlanePorts) -> list[str]:
    clients, peers = f"http://{HOST}:{ports.etcd}", f"http://{HOST}:{ports.etcd_peers}"
    return [
        "--name=only",
        f"--data-dir={files.directory / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=only={peers}",
        # What a killed process has written survives it; only a power failure would lose data.
        "--unsafe-no-fsync=true",
        "--quota-backend-bytes=8589934592",
        "--socket-reuse-port=true",
        "--log-level=warn",
    ]


def api_server_flags(
    files: ControlPlaneFiles, ports: ControlPlanePorts, extra: Sequence[str]
) -> list[str]:
    return [
        f"--etcd-servers=http://{HOST}:{ports.etcd}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={ports.api_server}",
        "--permit-port-sharing=true",
        f"--cert-dir={files.certificates}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={files.account_key}",
        f"--service-account-signing-key-file={files.account_key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        # Without a controller manager nobody makes accounts for namespaces or untaints new nodes.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        # Nobody is throttled.
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=0",
        "--max-mutating-requests-inflight=0",
        *extra,
    ]


def controller_manager_flags(
    files: ControlPlaneFiles, ports: ControlPlanePorts, controllers: Sequence[str]
) -> list[str]:
    return [
        *_server_flags(files, KubeProgram.CONTROLLER_MANAGER, ports.controller_manager),
        f"--kubeconfig={files.kubeconfig}",
        f"--controllers={','.join(controllers)}",
        f"--service-account-private-key-file={files.account_key}",
        f"--root-ca-file={files.authority}",
        "--leader-elect=false",
        f"--kube-api-qps={CLIENT_RATE}",
        f"--kube-api-burst={CLIENT_RATE}",
    ]


def scheduler_flags(files: ControlPlaneFiles, ports: ControlPlanePorts) -> list[str]:
    return [
        *_server_flags(files, KubeProgram.SCHEDULER, ports.scheduler),
        f"--config={files.scheduler_configuration}",
    ]


def _server_flags(files: ControlPlaneFiles, program: KubeProgram, port: int) -> list[str]:
    return [
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        f"--cert-dir={files.certificates / program}",
        f"--authentication-kubeconfig={files.kubeconfig}",
        f"--authorization-kubeconfig={files.kubeconfig}",
        # The API server has no authority for clients' certificates, so there is none to look up.
        "--authentication-skip-lookup=true",
    ]


def kwok_flags(files: ControlPlaneFiles, stages: Path) -> list[str]:
    return [
        f"--kubeconfig={files.kubeconfig}",
        f"--config={stages}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={'='.join(KWOK_NODE)}",
        "--cidr=10.1.0.0/16",
        f"--node-ip={HOST}",
        "--node-lease-duration-seconds=40",
        # It would log every change of every node and pod.
        "--v=WARN",
    ]


def scheduler_configuration(files: ControlPlaneFiles) -> dict[str, object]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": str(files.kubeconfig),
            "qps": CLIENT_RATE,
            "burst": CLIENT_RATE,
        },
        "leaderElection": {"leaderElect": False},
    }


def kubeconfig(files: ControlPlaneFiles, server: str, token: str) -> dict[str, object]:
    name = "argosy"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": server, "certificate-authority": str(files.authority)},
            }
        ],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
