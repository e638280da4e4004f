"""What a scheduler for Kubernetes does otherwise if it is told to, and which changes of nodes count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kube_cases import asynchronous
from kube_schedulers import pod_document
from small_api_server import SmallApiServer
from test_against_a_small_server import OMEGA, a_node, cluster

from argosy.kubernetes.kinds import NODES, PODS
from argosy.kubernetes.watching import ChangeKind, ObjectChange
from argosy.model.machine_model import MachineModel
from argosy.service.kubernetes import driver
from argosy.service.kubernetes.recorder import PodRecorder
from argosy.service.kubernetes.serving import ANY, KubernetesOptions, run_kubernetes
from argosy.service.server import Server, ServerOptions
from argosy.worlds.kubernetes.volumes import KnownVolumes


@asynccontextmanager
async def running(
    api: SmallApiServer, directory: Path, said: list[str], **options: Any
) -> AsyncIterator[Server]:
    started: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
    made = KubernetesOptions(
        connection=api.connection,
        fleet=(OMEGA,),
        server=ServerOptions(directory=directory / "s", host=None, is_lasting=False),
        **options,
    )
    serving = asyncio.ensure_future(run_kubernetes(made, started.set_result, said.append))
    await asyncio.wait({started, serving}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    server = await started
    try:
        yield server
    finally:
        server.stop()
        await serving


@pytest.mark.parametrize(
    ("options", "annotations", "events"),
    [
        ({}, True, [("p", "Scheduled"), ("big", "FailedScheduling")]),
        ({"explains": False}, False, [("p", "Scheduled"), ("big", "FailedScheduling")]),
        # Those of pods that wait are always written.
        ({"writes_events": False}, True, [("big", "FailedScheduling")]),
    ],
)
@asynchronous
async def test_pods_are_told_as_much_as_the_options_say(
    options: dict[str, bool], annotations: bool, events: list[tuple[str, str]], tmp_path: Path
) -> None:
    async with cluster(a_node("n0")) as api, running(api, tmp_path, [], **options):
        api.put(PODS, pod_document("p"))
        await api.until(lambda: api.nodes_of_pods["p"] == "n0")
        api.put(PODS, pod_document("big", cpu="3"))
        await api.until(lambda: len(api.notes) == len(events))
        assert sorted((name, reason) for name, reason, _ in api.notes) == sorted(events)
        bound = api.document(PODS, "p")
        assert bound is not None
        told = bound["metadata"].get("annotations", {})
        assert ("argosy.dev/why" in told) == annotations
        assert told["argosy.dev/placed-by"] == ANY


@asynchronous
async def test_a_scheduler_serves_a_cluster_of_its_own_name_and_says_whether_it_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, said = MachineModel(limit=3), list[str]()
    async with (
        cluster(a_node("n0")) as api,
        running(api, tmp_path, said, name="other", machines=model, serves_commits=True) as server,
    ):
        made = server.cluster.world.cluster
        assert (made.name, made.machines) == ("kubernetes", model)
        assert [entry.name for entry in made.fleet] == ["omega"]
        assert server.agent is not None
        assert server.backend.health() == ("ok", "")
        monkeypatch.setattr(driver, "LONGEST_LAG", -1.0)
        kinds = (
            "nodes, namespaces, priorityclasses, persistentvolumes, persistentvolumeclaims, "
            "poddisruptionbudgets, podgroups, podgroups, pods"
        )
        assert server.backend.health() == ("lagging", f"no news of {kinds} from Kubernetes")
        api.put(PODS, pod_document("p", "other"))
        api.put(PODS, pod_document("q", ANY))
        await api.until(lambda: api.nodes_of_pods["p"])
        assert api.nodes_of_pods == {"p": "n0", "q": ""}


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"name": "n", "labels": {"zone": "east"}}},
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
        {"status": {"allocatable": {"cpu": "3"}}},
    ],
)
def test_a_node_has_changed_if_other_pods_may_go_there_or_more_of_them(
    change: dict[str, Any],
) -> None:
    usual = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
    before, after = (
        NODES.decode(msgspec.json.encode(document)) for document in (usual, {**usual, **change})
    )
    recorder = PodRecorder(lambda: 0)
    nothing: Any = SimpleNamespace(objects={})
    recorder.begin(SimpleNamespace(objects={"n": before}), nothing)  # type: ignore[arg-type]
    for new, changed in ((before, 0), (after, 1), (after, 1)):
        recorder.hear(ObjectChange(ChangeKind.CHANGED, before, new))
        assert recorder.recording(KnownVolumes()).changed_nodes == changed
