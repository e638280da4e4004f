"""Manifests as people have them are translated, or refused with the place of what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argosy.cli import main
from argosy.model.constraints.kubernetes_manifests import from_manifests
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import Untranslatable

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APART = {
    "podAntiAffinity": {
        REQUIRED: [
            {
                "labelSelector": {"matchLabels": {"app": "web"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}], **spec},
    }


def manifest(kind: str, template: dict[str, Any]) -> dict[str, Any]:
    head = {"apiVersion": "v1", "kind": kind}
    match kind:
        case "Pod":
            return {**head, **template}
        case "CronJob":
            inner = {"spec": {"template": template}}
            return {**head, "metadata": {"name": "w"}, "spec": {"jobTemplate": inner}}
    return {**head, "metadata": {"name": "w"}, "spec": {"replicas": 3, "template": template}}


def texts(*documents: Any) -> list[str]:
    return [format_constraint(each) for each in from_manifests(list(documents))]


WANTED = ["app:web -> {app:web, 0, 0} in machine hard"]


@pytest.mark.parametrize(
    "kind", ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"]
)
def test_every_object_with_pods_is_read(kind: str) -> None:
    assert texts(manifest(kind, pod(affinity=APART))) == WANTED


def test_a_node_selector_is_a_hard_constraint_on_machines() -> None:
    made = manifest("Pod", pod(nodeSelector={"disk": "ssd", "gpu": "true"}))
    assert texts(made) == ["app:web -> {disk:ssd, 1, inf} and {gpu, 1, inf} in machine hard"]


def test_several_documents_and_lists_are_read_and_other_objects_left_out() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": []}}
    listed = {"kind": "List", "items": [service, manifest("Pod", pod(affinity=APART))]}
    again = manifest("Deployment", pod(affinity=APART))
    assert texts(service, None, listed, again) == WANTED
    assert texts(manifest("Deployment", pod())) == []


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"kind": "Service"}, "no manifest with pods"),
        ({"kind": "Deployment", "metadata": {"name": "w"}}, "Deployment w has no spec.template"),
        (
            manifest("Deployment", {"metadata": {}, "spec": {"affinity": APART}}),
            "Deployment w: spec.template.metadata.labels: a pod without labels",
        ),
        (
            manifest("Deployment", pod(affinity={"podAffinity": {"soon": 1}})),
            "Deployment w: spec.template.spec.affinity.podAffinity",
        ),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(document: Any, problem: str) -> None:
    with pytest.raises(Untranslatable) as refused:
        from_manifests([document])
    assert problem in str(refused.value)


def test_the_command_takes_a_file_of_several_manifests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(
        """\
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {disk: ssd}
      containers: [{name: web, image: nginx}]
""",
        "utf-8",
    )
    with pytest.raises(SystemExit) as stop:
        main(["constraints", "translate", str(file), "--from", "kubernetes"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == "app:web -> {disk:ssd, 1, inf} in machine hard\n"
