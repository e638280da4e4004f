"""Control planes for tests.

`control_plane` is shared by all tests of a process: etcd, kube-apiserver and kwok. A test gets a
namespace of its own (`namespace`) and makes nodes with `nodes`; they are removed afterwards, as are its
pods. Tests that kill or configure a control plane start their own with `start_control_plane`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from control_planes import skip_without_kube_tools

from argosy.kubernetes.control_plane import ControlPlane, KubeTools

#: Seconds after which a test is taken to hang.
PATIENCE = 120.0

Start = Callable[..., ControlPlane]
CreateNodes = Callable[..., list[str]]


@pytest.fixture(scope="session")
def kube_tools() -> KubeTools:
    return skip_without_kube_tools()


@pytest.fixture(scope="session")
def control_plane(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(directory, tools=kube_tools, timeout=PATIENCE) as plane:
        yield plane


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def namespace(control_plane: ControlPlane, numbers: Iterator[int]) -> Iterator[str]:
    """The name of a new namespace of the shared control plane."""
    name = f"test-{next(numbers)}"
    control_plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})


@pytest.fixture
def nodes(control_plane: ControlPlane, namespace: str) -> Iterator[CreateNodes]:
    """`ControlPlane.create_nodes` of the shared control plane; names begin with the namespace's."""
    made: list[str] = []

    def create(count: int, **options: Any) -> list[str]:
        names = control_plane.create_nodes(count, **{"name": namespace, **options})
        made.extend(names)
        return names

    yield create
    control_plane.delete_nodes(made)


@pytest.fixture
def start_control_plane(kube_tools: KubeTools, tmp_path: Path) -> Iterator[Start]:
    """`ControlPlane.start` with the tools; what it starts is closed after the test."""
    numbers = itertools.count(1)
    with ExitStack() as planes:

        def start(**options: Any) -> ControlPlane:
            directory = tmp_path / f"control-plane-{next(numbers)}"
            settings = {"tools": kube_tools, "timeout": PATIENCE, **options}
            return planes.enter_context(ControlPlane.start(directory, **settings))

        yield start
