"""What a demonstration runs: one scheduler of the chosen engine, for as long as it lasts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.service.kubernetes import demo
from argosy.service.kubernetes.demo import Demo, DemoPod, _application, _order


@pytest.mark.parametrize("is_kept", [None, True, False])
def test_the_server_of_a_demonstration_leaves_nothing_behind(
    tmp_path: Path, is_kept: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    connection: Any = object()

    def load(kubeconfig: Any) -> Any:
        asked.append(kubeconfig)
        return connection

    monkeypatch.setattr(demo, "load_connection", load)
    told: list[str] = []
    plane: Any = SimpleNamespace(kubeconfig="config")
    kept = {} if is_kept is None else {"is_kept": is_kept}
    made = Demo(plane, "kube", tmp_path, told.append, **kept)
    options = made._options
    assert (asked, options.connection) == (["config"], connection)
    assert options.fleet == ({"name": "kube", "engine": "kube"},)
    assert (options.server.directory, options.server.port) == (tmp_path, 0)
    assert (options.server.host, options.server.is_lasting) == ("127.0.0.1", False)
    assert made._is_kept is bool(is_kept)
    made._tell("x")
    assert (told, made._engine) == (["x"], "kube")


def a_pod(name: str, kind: str = "", owner: str = "") -> Any:
    owners = [SimpleNamespace(kind=kind, name=owner, controller=True)] if kind else []
    return SimpleNamespace(name=name, metadata=SimpleNamespace(owner_references=owners, name=name))


@pytest.mark.parametrize(
    ("kind", "owner", "application"),
    [
        ("ReplicaSet", "web-front-5d4f", "web-front"),
        ("Job", "crunch-1", "crunch-1"),
        ("", "", "alone"),
    ],
)
def test_a_pod_belongs_to_what_created_it(
    kind: str, owner: str, application: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "controller_of", lambda pod: f"{kind}/{owner}" if kind else "")
    assert _application(a_pod("alone")) == application


def test_pods_without_a_node_are_shown_last_and_the_others_by_application_node_and_name() -> None:
    rows = [
        DemoPod("web", "w2", "n-1", "z", ""),
        DemoPod("web", "w1", "n-1", "z", ""),
        DemoPod("web", "w3", "n-0", "z", ""),
        DemoPod("a", "large", "", "", "full"),
        DemoPod("database", "d", "n-9", "z", ""),
    ]
    assert [pod.name for pod in sorted(rows, key=_order)] == ["d", "w3", "w1", "w2", "large"]
