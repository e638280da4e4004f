"""All that `argosy kubernetes` runs beside its REST API, over a played API server with drawn objects.

These are the driver and writer, growing jobs, metrics, a shadow session, a recorder, and plans. What is
written to the server, logged and reported is the outcome.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import pytest
from drawn_pods import SPACES, DrawnObjects

from argosy.kubernetes.batch import BATCH_JOBS
from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.failures import KubernetesError
from argosy.kubernetes.kinds import (
    COSCHEDULING_GROUPS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    ResourceKind,
)
from argosy.kubernetes.requests import RequestSettings
from argosy.kubernetes.watching import ObjectWatch
from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.random import Random as Stream
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, ConstantLatency, Network
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes import planning, recorder
from argosy.service.kubernetes.driver import ClusterWatches, KubernetesDriver, complete, prepare
from argosy.service.kubernetes.job_growth import MALLEABLE, JobGrowth
from argosy.service.kubernetes.kube_metrics import KubernetesMetrics
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.kubernetes.played.api import PlayedApi
from argosy.service.kubernetes.played.network import PlayedNetwork, PlayedSender
from argosy.service.kubernetes.rights import LastingRight, NoRight, WriteRight
from argosy.service.kubernetes.shadow import engine as shadow_engine
from argosy.service.kubernetes.shadow import session as shadow_session
from argosy.service.live import LiveCluster
from argosy.service.server import FoundEngines
from argosy.testing.api_objects import ApiChange
from argosy.testing.virtual_loop import VirtualLoop, others_ended
from argosy.worlds.kubernetes.malleable import GrowthSettings
from argosy.worlds.kubernetes.pod_jobs import ESTIMATE
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster

SECOND: Final = 1_000_000
_TIMES: Final = re.compile(r"20\d\d-\d\d-\d\dT[0-9:.]+(Z|\+00:00)")
_EVENT_NAME: Final = re.compile(r'("name":"[^"]*)\.[0-9a-f]{12,}"')


def plain(value: Any) -> str:
    text = msgspec.json.encode(value, order="sorted", enc_hook=str).decode()
    return _EVENT_NAME.sub(r'\1.N"', _TIMES.sub("T", text))


class PlayedTime:
    """Stands for the module `time`: the loop's."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.time()

    def monotonic_ns(self) -> int:
        return self._loop.micros * 1_000

    def time_ns(self) -> int:
        return 1_800_000_000 * 10**9 + self._loop.micros * 1_000


class FencedRight:
    """Of a leader, until a time."""

    def __init__(self, loop: VirtualLoop, until: float, fencing: int) -> None:
        self._loop, self._until, self.fencing = loop, until, fencing

    @property
    def is_held(self) -> bool:
        return self._loop.time() < self._until

    @property
    def remaining(self) -> float:
        return max(0.0, self._until - self._loop.time())


class DrawnService:
    def __init__(
        self, seed: int, fleet: list[dict[str, Any]], loop: VirtualLoop, folder: Path
    ) -> None:
        self.seed, self.fleet, self.loop, self.folder = seed, fleet, loop, folder
        self.random = Random(f"service {seed}")
        self.draw = DrawnObjects(f"service {seed}", (0.02, 0.08, 0.25)[seed % 3])
        self.lines: list[str] = []
        self.api = PlayedApi(loop, Stream(seed).child("grace"))
        loss = (0.0, 0.3, 0.8)[seed % 3 if seed > 2 else 0]
        conditions = Network(latency=ConstantLatency(delay=1_000), loss=loss)
        self.network = PlayedNetwork(loop, self.api, conditions, Stream(seed).child("network"))
        # Who cannot begin gives up, so nothing goes wrong in the first second.
        self.network.is_healed = True
        loop.at(SECOND, partial(setattr, self.network, "is_healed", False))
        self._made = 0
        self._senders = 0
        self.api.listeners.append(self._changed)

    def tell(self, line: str) -> None:
        self.lines.append(f"{self.loop.micros} {_TIMES.sub('T', line)}")

    def sender(self) -> PlayedSender:
        self._senders += 1
        settings = RequestSettings(longest_delay=2.0)
        return PlayedSender(self.network, settings, self.seed * 10 + self._senders)

    def client(self, connection: object = None, settings: object = None) -> KubernetesClient:
        sender = self.sender()
        return KubernetesClient(sender.connection, sender=sender)

    # Objects.

    def begin(self) -> None:
        draw, api = self.draw, self.api
        for space in SPACES:
            api.put(NAMESPACES, draw.namespace(space))
        for name, value in (("low", 1), ("high", 1_000), ("below", -10)):
            api.put(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        for at in range(3):
            node = draw.node(f"n{at}")
            node["spec"]["taints"] = node["spec"]["taints"][: at % 2]
            cpu = ("6", "3", "2")[self.seed % 3]
            node["status"]["allocatable"] |= {"cpu": cpu, "memory": "16Gi", "pods": "20"}
            api.put(NODES, node)
            api.put(PERSISTENT_VOLUMES, draw.persistent_volume(at))
            api.put(PERSISTENT_VOLUME_CLAIMS, draw.claim(at))
        api.put(COSCHEDULING_GROUPS, draw.coscheduling_group(0))
        api.put(POD_GROUPS, draw.pod_group(1))
        api.put(POD_DISRUPTION_BUDGETS, draw.budget(0))
        for _ in range(3):
            self.new_pods()
        if self.seed % 2:
            self.new_job()

    def new_pods(self) -> None:
        self._made += 1
        scheduler = self.draw.one(("argosy", "argosy", "argosy", "other"))
        document = self.draw.pod(f"p{self._made}", scheduler)
        if self.draw.maybe(0.15):
            document = self.draw.in_group(document)
        document["spec"]["priority"] = self.draw.one((0, 1, self._made, self._made))
        if self.draw.maybe(0.5):
            requests = {"cpu": self.draw.one(("500m", "1", "2")), "memory": "256Mi"}
            document["spec"] = {
                "schedulerName": scheduler,
                "priority": document["spec"]["priority"],
                "restartPolicy": self.draw.one(("Always", "Never")),
                "containers": [{"name": "c", "resources": {"requests": requests}}],
            }
        for copy in range(self.draw.one((1, 2, 3))):
            again = msgspec.json.decode(msgspec.json.encode(document))
            again["metadata"]["name"] += f"-{copy}"
            again["metadata"]["uid"] += f"-{copy}"
            self.api.put(PODS, again)

    def new_job(self) -> None:
        """A Job that says that it is malleable, or nearly."""
        self._made += 1
        name = f"job{self._made}"
        annotations = {MALLEABLE: self.draw.one(("true", "true", "True", "no"))}
        template = {"metadata": {"annotations": {ESTIMATE: self.draw.one(("8s", "1min", "soon"))}}}
        spec: dict[str, Any] = {"parallelism": 1 + self.draw.below(2), "template": template}
        if not self.draw.maybe(0.1):
            spec["completions"] = self.draw.one((4, 9, 20))
        owners = [{"kind": "CronJob", "name": "cron", "uid": "cron", "controller": True}]
        metadata: dict[str, Any] = {"name": name, "annotations": annotations}
        if self.draw.maybe(0.5):
            metadata["ownerReferences"] = owners
        self.api.put(BATCH_JOBS, {"metadata": metadata, "spec": spec, "status": {"succeeded": 0}})

    def _make_pods_of(self, job: dict[str, Any]) -> None:
        """As many as the Job wants now."""
        spec, metadata = job["spec"], job["metadata"]
        there = [each for each in self.api.documents(PODS) if _maker(each) == metadata["uid"]]
        living = [each for each in there if each["status"].get("phase") in ("Pending", "Running")]
        left = spec.get("completions", 3) - job["status"].get("succeeded", 0)
        for _ in range(min(spec["parallelism"], left) - len(living)):
            self._made += 1
            owner = {"kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
            requests = {"cpu": "1", "memory": "512Mi"}
            pod = {
                "metadata": {
                    "name": f"{metadata['name']}-{self._made}",
                    "generateName": metadata["name"],
                    "ownerReferences": [{**owner, "controller": True}],
                },
                "spec": {
                    "schedulerName": "argosy",
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "resources": {"requests": requests}}],
                },
                "status": {"phase": "Pending"},
            }
            self.api.put(PODS, pod)
        for extra in living[spec["parallelism"] :]:
            self.api.remove(PODS, extra["metadata"]["name"])

    def _changed(self, change: ApiChange) -> None:
        document = change.document
        if change.path == BATCH_JOBS.path() and change.type != "DELETED":
            self.loop.at(self.loop.micros + 50_000, partial(self._make_pods_of, document))
        if change.path != PODS.path() or change.type == "DELETED":
            return
        metadata = document["metadata"]
        if document["spec"].get("nodeName") and document["status"].get("phase") == "Pending":
            name, space = metadata["name"], metadata["namespace"]
            start = partial(self._set_phase, name, space, metadata["uid"], "Running")
            self.loop.at(self.loop.micros + 300_000, start)
            if document["spec"].get("restartPolicy") in ("Never", "OnFailure"):
                phase = self.draw.one(("Succeeded", "Succeeded", "Succeeded", "Failed"))
                end = partial(self._set_phase, name, space, metadata["uid"], phase)
                self.loop.at(self.loop.micros + self.draw.one((3, 9, 40)) * SECOND, end)

    def _set_phase(self, name: str, space: str, uid: str, phase: str) -> None:
        pod = self.api.document(PODS, name, space)
        if pod is None or pod["metadata"]["uid"] != uid or pod["status"]["phase"] == "Succeeded":
            return
        self.api.put(PODS, {**pod, "status": {**pod["status"], "phase": phase}})
        for job in self.api.documents(BATCH_JOBS):
            if job["metadata"]["uid"] == _maker(pod) and phase == "Succeeded":
                done = job["status"]["succeeded"] + 1
                status: dict[str, Any] = {"succeeded": done}
                if done >= job["spec"].get("completions", 3):
                    status["conditions"] = [{"type": "Complete", "status": "True"}]
                self.api.put(BATCH_JOBS, {**job, "status": status})

    def disturb(self) -> None:
        api, draw = self.api, self.draw
        pods, nodes = api.documents(PODS), api.documents(NODES)
        pod = self.random.choice(pods) if pods else None
        match self.random.randrange(16):
            case 0 | 1 | 2 | 3:
                self.new_pods()
            case 4:
                self.new_job()
            case 5 if pod is not None:
                api.remove(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
            case 6 if pod is not None:
                annotations = {**pod["metadata"].get("annotations", {}), **draw.annotations()}
                api.put(PODS, {**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
            case 7 if pod is not None:
                api.put(PODS, {**pod, "spec": {**pod["spec"], "schedulingGates": []}})
            case 8 if pod is not None and not pod["spec"].get("nodeName"):
                api.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "n1"}})
            case 9:
                api.put(NODES, draw.node(f"n{draw.below(5)}"))
            case 10 if len(nodes) > 2:
                api.remove(NODES, nodes[-1]["metadata"]["name"])
            case 11:
                api.put(POD_DISRUPTION_BUDGETS, draw.budget(draw.below(2)))
            case 12:
                api.put(PERSISTENT_VOLUME_CLAIMS, draw.claim(draw.below(3)))
            case 14:
                self._remove_something()
            case 13:
                self.network.cut(draw.one((300_000, 4 * SECOND, 12 * SECOND)))
            case _:
                api.put(COSCHEDULING_GROUPS, draw.coscheduling_group(draw.below(2)))

    def _remove_something(self) -> None:
        kinds: tuple[ResourceKind[Any], ...] = (
            PERSISTENT_VOLUMES,
            PERSISTENT_VOLUME_CLAIMS,
            POD_DISRUPTION_BUDGETS,
            POD_GROUPS,
            COSCHEDULING_GROUPS,
            BATCH_JOBS,
        )
        for kind in kinds:
            documents = self.api.documents(kind)
            if documents and self.draw.maybe(0.4):
                metadata = self.draw.one(documents)["metadata"]
                self.api.remove(kind, metadata["name"], metadata.get("namespace", ""))

    # The service.

    async def run(self, seconds: int) -> None:
        self.begin()
        for at in range(2, seconds, 2):
            self.loop.at(at * SECOND, self.disturb)
        metrics = KubernetesMetrics()
        client = self.client()
        client.sender.observer = metrics
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(client)
            watches = await stack.enter_async_context(ClusterWatches(client))
            await watches.complete()
            serves = self.seed % 5 == 1
            overseer = PodOverseer("argosy", annotates=self.seed % 4 > 0, serves_commits=serves)
            prepare(overseer.pods, watches)
            cluster, store = self._cluster(overseer, watches)
            stack.callback(store.close)
            right: WriteRight = LastingRight() if self.seed % 2 else NoRight()
            driver = KubernetesDriver(
                client,
                watches,
                overseer,
                cluster,
                "argosy",
                log=self.tell,
                writes_events=self.seed % 3 > 0,
                observer=metrics,
                right=right,
            )
            metrics.attach(overseer.pods, driver.writer, watches)
            living = asyncio.create_task(cluster.run())
            driver.start()
            if serves:
                for at in range(4, seconds, 8):
                    self.loop.at(at * SECOND, partial(self._commit_job, overseer, cluster))
            growing = await self._growth(stack, client, driver, cluster)
            if not self.seed % 2:
                await asyncio.sleep(3)
                self.tell("leads")
                fenced = FencedRight(self.loop, seconds - 12.5, 7)
                driver.lead(fenced, await self._all_pods(client))
            await asyncio.sleep(max(0.0, seconds / 2 - self.loop.time()))
            self.lines += metrics.lines()
            await asyncio.sleep(max(0.0, seconds - self.loop.time()))
            self.network.heal()
            await asyncio.sleep(15)
            self.lines += metrics.lines()
            self.tell(f"counts {sorted(driver.writer.counts.items())} lag {watches.lagging}")
            for pod in overseer.pods.pods.values():
                self.tell(f"{pod.uid} {pod.state.value} {pod.node} {pod.obstacle}")
            growing.cancel()
            await asyncio.gather(growing, return_exceptions=True)
            await driver.close()
            cluster.stop()
            await living
        self._written()

    async def _all_pods(self, client: KubernetesClient) -> tuple[Any, ...]:
        while True:
            try:
                return (await client.list_all(PODS)).items
            except KubernetesError as error:
                self.tell(str(error))
                await asyncio.sleep(0.5)

    def _commit_job(self, overseer: PodOverseer, cluster: LiveCluster) -> None:
        self._made += 1
        group = TaskGroup(
            count=1,
            request=Resources(self.draw.one((500, 1_500)), 2**27, {"pods": 1}),
            requires=overseer.pods.required,
            demands={"image": "registry/image:1"},
            execution=Execution(command=("run",), timeout=self.draw.one((0, 2_500_000))),
            estimate=self.draw.one((None, 4 * SECOND)),
        )
        job = Job(id=f"committed-{self._made}", groups=(group,), kind="batch")
        cluster.tell(lambda world: world.submit(job))

    def _cluster(
        self, overseer: PodOverseer, watches: ClusterWatches
    ) -> tuple[LiveCluster, LocalStore]:
        nodes = watches.nodes.objects.values()
        cell = CellSpec(machines=tuple(map(overseer.pods.machine_of, nodes)))
        store = LocalStore(self.folder / "store", is_lasting=False)
        made = LocalCluster(name="kubernetes", cell=cell, fleet=read_fleet(self.fleet, cell))
        cluster = LiveCluster(
            lambda deliberator: OverruledWorld(
                store,
                FoundEngines(),
                overseer,
                lambda: self.loop.micros,
                overseer,
                cluster=made,
                deliberator=deliberator,
                began=self.loop.micros,
            ),
            overseer,
        )
        overseer.connect(cluster.ended, self.loop.call_soon)
        cluster.fault_listeners.append(lambda error: self.tell(f"fault {error}"))
        return cluster, store

    async def _growth(
        self,
        stack: AsyncExitStack,
        client: KubernetesClient,
        driver: KubernetesDriver,
        cluster: LiveCluster,
    ) -> asyncio.Task[None]:
        jobs = await stack.enter_async_context(ObjectWatch(client, BATCH_JOBS))
        await complete(jobs)
        policies: tuple[GrowthSettings, ...] = (
            GrowthSettings(interval=2.0),
            GrowthSettings(policy="global-cap", cap=0.7, interval=3.0),
            GrowthSettings(policy="relative-job-size", times=3.0, interval=2.0),
        )
        growth = JobGrowth(
            client,
            jobs,
            driver.pods,
            policies[self.seed % 3],
            view=lambda: cluster.world.host.view,
            now=lambda: cluster.world.now,
            right=lambda: driver.writer.right,
            log=self.tell,
        )
        return asyncio.create_task(growth.run())

    def _written(self) -> None:
        for (method, path, body), query in zip(self.api.written, self.api.queries, strict=True):
            self.lines.append(f"{method} {path} {plain(query)} {plain(body)}")

    async def shadow(self, seconds: int) -> None:
        """Engines beside another scheduler, a recording of the same time, and plans before and after."""
        self.begin()
        for at in range(2, seconds, 2):
            self.loop.at(at * SECOND, self.disturb)
            self.loop.at(at * SECOND + 500_000, self._bind_some)
        stop = asyncio.Event()
        self.loop.at(seconds * SECOND, stop.set)
        connection = self.sender().connection
        await self._plan(connection)
        options = shadow_session.ShadowOptions(connection=connection, fleet=tuple(self.fleet))
        found = await asyncio.gather(
            shadow_session.run_shadow(options, stop, lambda session: None, self.tell),
            recorder.record_cluster(connection, stop, lambda made: self.tell(f"{made.pods} pods")),
        )
        report, recording = found
        self.lines.append(plain(report))
        self.lines.append(plain([recording.start, recording.end, recording.changed_nodes]))
        self.lines += [plain(each) for each in (*recording.nodes, *recording.lives)]
        self.network.heal()
        await self._plan(connection)
        self._written()

    async def _plan(self, connection: Any) -> None:
        pods = [self.draw.pod(f"planned{at}") for at in range(3)]
        template = {"metadata": pods[0]["metadata"], "spec": pods[0]["spec"]}
        kind = self.draw.one(("Deployment", "Job", "StatefulSet"))
        amount = {planning.TEMPLATES[kind]: self.draw.one((0, 2, 4, None))}
        documents: list[Any] = [
            {**pods[1], "kind": "Pod"},
            {
                "kind": "List",
                "items": [
                    {
                        "kind": kind,
                        "metadata": {"name": "many"},
                        "spec": {"template": template, **amount},
                    },
                    {"kind": "ConfigMap", "metadata": {"name": "not-a-pod"}},
                    None,
                ],
            },
            {**pods[2], "kind": "Pod"},
        ]
        group = {"apiVersion": COSCHEDULING_GROUPS.api_version, "kind": "PodGroup"}
        documents.append({**group, **self.draw.coscheduling_group(0)})
        plan = await planning.plan_pods(connection, dict(self.fleet[0]), documents, "one")
        self.lines.append(f"plan {plan.fits} {plain(plan)}")

    def _bind_some(self) -> None:
        """The cluster's own scheduler."""
        nodes = [each["metadata"]["name"] for each in self.api.documents(NODES)]
        for pod in list(self.api.documents(PODS)):
            is_open = not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGates")
            if is_open and self.draw.maybe(0.6):
                spec = {**pod["spec"], "nodeName": self.draw.one(nodes)}
                self.api.put(PODS, {**pod, "spec": spec})


def _maker(pod: dict[str, Any]) -> str:
    owners = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))


@contextmanager
def _played(service: DrawnService, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever asks for the time, or opens a connection, gets those of the play."""
    time = PlayedTime(service.loop)
    with patch.context() as patched:
        for module in (planning, recorder, shadow_engine, shadow_session):
            patched.setattr(module, "time", time)
        for module in (planning, recorder, shadow_session):
            patched.setattr(module, "KubernetesClient", service.client)
        yield


def run_service(
    seed: int,
    fleet: list[dict[str, Any]],
    folder: Path,
    patch: pytest.MonkeyPatch,
    act: Callable[[DrawnService], Any],
) -> str:
    thinking = Stream(seed).child("thinking")
    loop = VirtualLoop(lambda: thinking.below(200_000) / 1_000_000)
    service = DrawnService(seed, fleet, loop, folder)

    async def whole() -> None:
        await act(service)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await others_ended()

    try:
        with _played(service, patch):
            loop.run_until_complete(whole())
    finally:
        loop.close()
    return "\n".join(service.lines)
