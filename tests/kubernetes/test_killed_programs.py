"""`kill -9` of everything, one after the other, while pods are created: none is bound twice, none is
lost, and no node gets more than it has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_schedulers import (
    PodLoad,
    PodWitness,
    SchedulerProcess,
    bound_twice,
    overcommitted,
    pod_document,
)

from argosy.kubernetes.control_plane import ControlPlane, KubeTools
from argosy.kubernetes.control_plane.programs import KubeProgram

NAMESPACE = "default"


@pytest.fixture(scope="module")
def own_plane(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("killed-control-plane")
    with ControlPlane.start(directory, tools=kube_tools, timeout=120.0) as plane:
        plane.create_nodes(8, cpu="16")
        yield plane


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"p{at}" for at in itertools.count())


def documents(names: Iterator[str]) -> Iterator[dict[str, Any]]:
    return (pod_document(name, cpu="100m", memory="16Mi") for name in names)


@pytest.mark.parametrize(
    "victim", [KubeProgram.API_SERVER, KubeProgram.ETCD, KubeProgram.KWOK, "scheduler"]
)
def test_nothing_is_lost_when_something_is_killed(
    own_plane: ControlPlane, names: Iterator[str], victim: str, tmp_path: Path
) -> None:
    options = ("--engine", "omega", "--dir", str(tmp_path / "journal"))
    load = PodLoad(own_plane, NAMESPACE, documents(names), rate=60)
    scheduler = SchedulerProcess(own_plane.kubeconfig, *options).wait_until_up()
    with PodWitness(own_plane, NAMESPACE) as witness:
        try:
            load.start()
            witness.until(lambda w: load.made >= 20 and len(w.bound) >= 20, "pods are bound")
            if victim == "scheduler":
                scheduler.kill()
                scheduler = SchedulerProcess(own_plane.kubeconfig, *options).wait_until_up()
            else:
                own_plane.restart(victim)
            before = load.made
            witness.until(lambda w: load.made >= before + 20, "pods are created again")
            load.finish()
            there = own_plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
            witness.until(lambda w: len(w.bound) == len(there), "all pods are bound")
            assert not witness.waiting
            assert bound_twice(witness) == []
            assert overcommitted(own_plane) == []
            assert scheduler.get("/readyz") == (200, "ok")
            assert "the fleet failed" not in scheduler.said
            assert scheduler.terminate() == 0
        finally:
            scheduler.__exit__()
