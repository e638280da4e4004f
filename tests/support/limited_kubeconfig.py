"""A kubeconfig of an account that may do some things only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from argosy.kubernetes.control_plane import ControlPlane


def kubeconfig_with(
    cluster: ControlPlane, name: str, rules: Sequence[dict[str, Any]], folder: Path
) -> Path:
    account = "/api/v1/namespaces/default/serviceaccounts"
    cluster.request("POST", account, {"metadata": {"name": name}})
    roles = "/apis/rbac.authorization.k8s.io/v1"
    cluster.request(
        "POST", f"{roles}/clusterroles", {"metadata": {"name": name}, "rules": [*rules]}
    )
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    reference = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    cluster.request(
        "POST",
        f"{roles}/clusterrolebindings",
        {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference},
    )
    asked = {"spec": {"expirationSeconds": 3600}}
    token = cluster.request("POST", f"{account}/{name}/token", asked)["status"]["token"]
    document = json.loads(cluster.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    return path
