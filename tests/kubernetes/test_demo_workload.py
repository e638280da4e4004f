"""What a demonstration runs, how it serves, and how it shows its pods, without a control plane."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.objects import Pod
from argosy.service.kubernetes import demo
from argosy.service.kubernetes.demo import Demo, DemoFailed, DemoPod, workload


def a_pod(name: str, node: str = "", owner: str = "", *conditions: tuple[str, str, str]) -> Pod:
    kind, _, maker = owner.partition("/")
    owners = [{"kind": kind, "name": maker, "uid": "u", "controller": True}] if owner else []
    document = {
        "metadata": {"name": name, "uid": name, "ownerReferences": owners},
        "spec": {"nodeName": node},
        "status": {
            "conditions": [
                {"type": type_, "status": status, "message": text}
                for type_, status, text in conditions
            ]
        },
    }
    return PODS.decode(msgspec.json.encode(document))


def test_the_workload_has_two_applications_a_job_and_a_pod_that_fits_nowhere() -> None:
    def pod(cpu: str, **rules: Any) -> dict[str, Any]:
        requests = {"cpu": cpu, "memory": "256Mi"}
        container = {"name": "main", "image": "none", "resources": {"requests": requests}}
        return {"schedulerName": "argosy", "containers": [container], **rules}

    def deployment(name: str, replicas: int, spec: dict[str, Any]) -> dict[str, Any]:
        labels = {"app": name}
        return {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }

    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "database"}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    apps = f"/apis/apps/v1/namespaces/{demo.NAMESPACE}/deployments"
    assert workload() == [
        (apps, deployment("web", 12, pod("500m", topologySpreadConstraints=[spread]))),
        (apps, deployment("database", 6, pod("2", affinity={"podAntiAffinity": required}))),
        (
            f"/apis/batch/v1/namespaces/{demo.NAMESPACE}/jobs",
            {
                "metadata": {"name": "crunch"},
                "spec": {
                    "completions": 20,
                    "parallelism": 20,
                    "template": {"spec": pod("1", restartPolicy="Never")},
                },
            },
        ),
        (
            f"/api/v1/namespaces/{demo.NAMESPACE}/pods",
            {"metadata": {"name": "too-large"}, "spec": pod("16")},
        ),
    ]
    assert demo.FITTING == 12 + 6 + 20


@pytest.mark.parametrize(
    ("pod", "application", "zone", "waiting"),
    [
        (a_pod("web-1-x", "n-4", "ReplicaSet/web-front-5f"), "web-front", 1, ""),
        (a_pod("crunch-x", "n-2", "Job/crunch"), "crunch", 2, ""),
        (a_pod("alone", "n-3"), "alone", 0, ""),
        (
            a_pod("large", "", "", ("PodScheduled", "False", "too large")),
            "large",
            None,
            "too large",
        ),
        (
            a_pod("r", "", "", ("Ready", "False", "no"), ("PodScheduled", "True", "yes")),
            "r",
            None,
            "",
        ),
        (
            a_pod("q", "", "", ("Ready", "False", "no"), ("PodScheduled", "False", "full")),
            "q",
            None,
            "full",
        ),
    ],
)
def test_a_pod_is_shown_with_its_application_its_zone_and_why_it_waits(
    pod: Pod, application: str, zone: int | None, waiting: str
) -> None:
    where = "" if zone is None else demo.ZONES[zone]
    node = pod.spec.node_name
    shown = DemoPod(application, pod.name, node, where, waiting)
    assert object.__new__(Demo)._shown(pod) == shown


class TestServing:
    @pytest.fixture
    def made(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
        """A demonstration, with what it said and what its server did."""
        did: list[Any] = []
        monkeypatch.setattr(demo, "load_connection", lambda path: f"connection of {path}")
        plane: Any = SimpleNamespace(kubeconfig="config", request=lambda *given: did.append(given))
        it = Demo(plane, "omega", tmp_path, did.append, is_kept=True)
        return SimpleNamespace(it=it, did=did)

    def test_it_serves_one_engine_on_any_port_for_as_long_as_it_lasts(
        self, made: Any, tmp_path: Path
    ) -> None:
        options = made.it._options
        assert options.connection == "connection of config"
        assert options.fleet == ({"name": "omega", "engine": "omega"},)
        server = options.server
        assert (server.directory, server.port, server.is_lasting) == (tmp_path, 0, False)
        assert made.it._is_kept

    def test_the_server_is_stopped_and_waited_for_in_the_end(
        self, made: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def serve(options: Any, ready: Any, log: Any) -> None:
            assert options is made.it._options
            stopped = asyncio.Event()
            await asyncio.sleep(0)
            log("begins")
            ready(SimpleNamespace(stop=stopped.set))
            await stopped.wait()
            await asyncio.sleep(0)
            log("has ended")

        monkeypatch.setattr(demo, "run_kubernetes", serve)

        async def run() -> None:
            async with made.it._serving() as (_, over):
                made.did.append(over.done())
            assert over.done()

        asyncio.run(run())
        told = "omega schedules the pods of schedulerName argosy"
        assert made.did == ["begins", told, False, "has ended"]

    def test_a_server_that_cannot_start_says_why(
        self, made: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def serve(options: Any, ready: Any, log: Any) -> None:
            raise OSError("no room")

        monkeypatch.setattr(demo, "run_kubernetes", serve)

        async def run() -> None:
            async with made.it._serving():
                pass

        with pytest.raises(OSError, match="no room"):
            asyncio.run(asyncio.wait_for(run(), 20))
        assert made.did == []

    @pytest.fixture
    def worked(self, made: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
        """The work over these pods; it has been followed for 2.5 s."""
        pods = [
            a_pod("large", "", "", ("PodScheduled", "False", "too large")),
            a_pod("w-2", "n-1", "ReplicaSet/web-5f"),
            a_pod("w-0", "n-2", "ReplicaSet/web-5f"),
            a_pod("w-1", "n-1", "ReplicaSet/web-5f"),
            a_pod("c-0", "n-8", "Job/crunch"),
        ]
        watch = SimpleNamespace(objects={pod.uid: pod for pod in pods})

        @contextlib.asynccontextmanager
        async def client(connection: Any) -> Any:
            assert connection == "connection of config"
            yield "client"

        @contextlib.asynccontextmanager
        async def watching(*given: Any) -> Any:
            assert given == ("client", PODS, demo.NAMESPACE)
            yield watch

        async def followed(given: Any, began: float) -> float:
            assert given is watch
            return 2.5

        monkeypatch.setattr(demo, "KubernetesClient", client)
        monkeypatch.setattr(demo, "ObjectWatch", watching)
        monkeypatch.setattr(made.it, "_followed", followed)
        return made

    def test_the_result_has_pods_with_a_node_first_by_application_and_node(
        self, worked: Any
    ) -> None:
        result = asyncio.run(worked.it._work())
        assert (result.engine, result.nodes, result.seconds) == ("omega", 9, 2.5)
        assert [pod.name for pod in result.pods] == ["c-0", "w-1", "w-2", "w-0", "large"]
        assert (result.bound, result.rate) == (4, 4 / 2.5)
        # The whole workload was made.
        assert worked.did == [("POST", path, document) for path, document in workload()]

    def test_a_demonstration_that_takes_too_long_says_how_to_look_around(
        self, worked: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def forever(watch: Any, began: float) -> float:
            await asyncio.Event().wait()
            return 0.0

        monkeypatch.setattr(worked.it, "_followed", forever)
        monkeypatch.setattr(demo, "_PATIENCE", 0.001)
        with pytest.raises(DemoFailed) as caught:
            asyncio.run(worked.it._work())
        assert str(caught.value) == (
            "not all pods have a node after 0.001 s; look around with --keep, or try again when the "
            "computer is less busy"
        )
        assert len(worked.did) == 4

    def test_what_is_kept_goes_on_until_it_is_interrupted(
        self, made: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @contextlib.asynccontextmanager
        async def serving() -> Any:
            over = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(
                0.01, lambda: (made.did.append("interrupted"), over.set_result(None))
            )
            yield SimpleNamespace(url="http://here"), over
            made.did.append("left")

        async def work() -> str:
            return "result"

        monkeypatch.setattr(made.it, "_serving", serving)
        monkeypatch.setattr(made.it, "_work", work)
        run = made.it.run(lambda url: None, lambda result, url: made.did.append(result))
        assert asyncio.run(run) is True
        assert made.did == ["result", "interrupted", "left"]
