"""A small mixed workload on a control plane that is thrown away, scheduled by Argosy."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.control_plane import ControlPlane, KubeTools
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.objects import Pod
from argosy.kubernetes.watching import ObjectWatch
from argosy.model.errors import ArgosyError
from argosy.service.kubernetes.serving import ANY, KubernetesOptions, run_kubernetes
from argosy.service.server import Server, ServerOptions
from argosy.worlds.kubernetes.pod_jobs import controller_of

NAMESPACE: Final = "demo"
ZONES: Final = ("east", "north", "west")
#: What the workload needs of kube-controller-manager; its other controllers only take time to start.
CONTROLLERS: Final = (
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
    "garbage-collector-controller",
    "namespace-controller",
)
NODES: Final = 9
_CPUS: Final = 8
#: Seconds until the demonstration gives up.
_PATIENCE: Final = 40.0
_HOSTNAME: Final = "kubernetes.io/hostname"
_ZONE: Final = "topology.kubernetes.io/zone"


class DemoPod(msgspec.Struct, frozen=True):
    #: The deployment or job it is of, or its own name.
    application: str
    name: str
    node: str
    zone: str
    #: Why it has no node.
    waiting: str


class DemoResult(msgspec.Struct, frozen=True):
    engine: str
    nodes: int
    pods: tuple[DemoPod, ...]
    #: From the first object of the workload until the last pod was bound.
    seconds: float

    @property
    def bound(self) -> int:
        return sum(1 for pod in self.pods if pod.node)

    @property
    def rate(self) -> float:
        return self.bound / self.seconds if self.seconds else 0.0


class DemoFailed(ArgosyError):
    """The workload of the demonstration was not placed in time."""

    code = "kubernetes-demo"


class Demo:
    """`tell` hears what happens."""

    def __init__(
        self,
        plane: ControlPlane,
        engine: str,
        directory: Path,
        tell: Callable[[str], None],
        *,
        is_kept: bool = False,
    ) -> None:
        self._plane = plane
        self._engine = engine
        self._tell = tell
        self._options = KubernetesOptions(
            connection=load_connection(plane.kubeconfig),
            fleet=({"name": engine, "engine": engine},),
            server=ServerOptions(
                directory=directory,
                port=0,
                is_lasting=False,
            ),
        )
        self._is_kept = is_kept

    async def run(
        self, serving: Callable[[str], None], show: Callable[[DemoResult, str], None]
    ) -> bool:
        """`serving` hears where the server is, before there are pods; `show` gets the result, and where
        the server is. Returns false if it was interrupted before there was a result."""
        async with self._serving() as (server, over):
            serving(server.url)
            working = asyncio.create_task(self._work())
            await asyncio.wait((working, over), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)
                over.result()
                return False
            show(working.result(), server.url)
            if self._is_kept:
                await over
        return True

    @contextlib.asynccontextmanager
    async def _serving(self) -> AsyncIterator[tuple[Server, asyncio.Task[None]]]:
        ready: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            run_kubernetes(self._options, ready.set_result, lambda line: self._tell(line))
        )
        await asyncio.wait((ready, serving), return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            serving.result()
        server = ready.result()
        self._tell(f"{self._engine} schedules the pods of schedulerName {ANY}")
        try:
            yield server, serving
        finally:
            server.stop()
            await serving

    async def _work(self) -> DemoResult:
        documents = workload()
        began = time.monotonic()
        creating = asyncio.create_task(asyncio.to_thread(self._create, documents))
        async with (
            KubernetesClient(self._options.connection) as client,
            ObjectWatch(client, PODS, NAMESPACE) as watch,
        ):
            try:
                seconds = await asyncio.wait_for(self._followed(watch, began), _PATIENCE)
            except TimeoutError:
                raise DemoFailed(
                    f"not all pods have a node after {_PATIENCE:g} s",
                    hint="look around with --keep, or try again when the computer is less busy",
                ) from None
            finally:
                await creating
            pods = tuple(sorted(map(self._shown, watch.objects.values()), key=_order))
        return DemoResult(self._engine, NODES, pods, seconds)

    def _create(self, documents: list[tuple[str, dict[str, Any]]]) -> None:
        for path, document in documents:
            self._plane.request("POST", path, document)

    async def _followed(self, watch: ObjectWatch[Pod], began: float) -> float:
        """Seconds until every pod that fits is bound; returns when the other one says why it waits."""
        last = began
        bound: set[str] = set()
        told = 0
        async for batch in watch:
            for change in batch.changes:
                pod = change.new
                if pod is not None and pod.spec.node_name and pod.uid not in bound:
                    bound.add(pod.uid)
                    last = time.monotonic()
            if len(bound) >= told + 10 or (len(bound) == FITTING and told < FITTING):
                told = len(bound)
                self._tell(f"{told} of {FITTING} pods have a node")
            if len(bound) >= FITTING and any(map(reason_to_wait, watch.objects.values())):
                break
        return last - began

    def _shown(self, pod: Pod) -> DemoPod:
        node = pod.spec.node_name
        zone = ZONES[int(node.rpartition("-")[2]) % len(ZONES)] if node else ""
        return DemoPod(_application(pod), pod.name, node, zone, reason_to_wait(pod))


def reason_to_wait(pod: Pod) -> str:
    """What the pod's status says of why it has no node."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""


def _order(pod: DemoPod) -> tuple[bool, str, str, str]:
    return not pod.node, pod.application, pod.node, pod.name


def _application(pod: Pod) -> str:
    kind, _, name = controller_of(pod).partition("/")
    # A deployment's pods belong to a replica set that is named after it.
    return name.rpartition("-")[0] if kind == "ReplicaSet" else name or pod.name


def start_plane(tools: KubeTools, tell: Callable[[str], None]) -> ControlPlane:
    plane = ControlPlane.start(tools=tools, controller_manager=True, controllers=CONTROLLERS)
    try:
        plane.create_nodes(NODES, cpu=str(_CPUS), memory="32Gi", zones=ZONES)
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    except BaseException:
        plane.close()
        raise
    tell(f"{NODES} nodes of {_CPUS} CPUs are ready, in the zones {', '.join(ZONES)}")
    return plane


def workload() -> list[tuple[str, dict[str, Any]]]:
    """Paths of the API, and what to create there."""
    apps = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    spread = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": _ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
    apart = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": _HOSTNAME,
                        "labelSelector": {"matchLabels": {"app": "database"}},
                    }
                ]
            }
        }
    }
    return [
        (apps, _deployment("web", _WEB, "500m", spread)),
        (apps, _deployment("database", _DATABASES, "2", apart)),
        (jobs, _job("crunch", _CRUNCHERS, "1")),
        (pods, {"metadata": {"name": "too-large"}, "spec": _pod(str(2 * _CPUS), {})}),
    ]


_WEB: Final = 12
_DATABASES: Final = 6
_CRUNCHERS: Final = 20
#: How many pods of the workload get a node.
FITTING: Final = _WEB + _DATABASES + _CRUNCHERS


def _pod(cpu: str, rules: dict[str, Any]) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "256Mi"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    return {"schedulerName": ANY, "containers": [container], **rules}


def _deployment(name: str, replicas: int, cpu: str, rules: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(cpu, rules)},
        },
    }


def _job(name: str, count: int, cpu: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "completions": count,
            "parallelism": count,
            "template": {"spec": {**_pod(cpu, {}), "restartPolicy": "Never"}},
        },
    }
