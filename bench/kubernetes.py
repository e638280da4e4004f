"""How fast pods of a Kubernetes cluster are scheduled. Run by hand (needs `make kube-tools`):

python bench/kubernetes.py decisions [--nodes N] [--pods N] [--engine NAME ...]
python bench/kubernetes.py bound [--nodes N] [--pods N] [--kind KIND ...] [--rounds N] [--engine NAME]
python bench/kubernetes.py start [--nodes N] [--pods N]

decisions  pods/s without an API server, for each engine: of deciding alone, as jobs in a host; and of
           the whole way from a pod that is seen to its order to bind, with rules, journal and database.
bound      pods/s and CPU per pod with a real API server and etcd. Pods are there before the scheduler
           starts; measured from the first bind to the last. Peer in the same run, taking turns:
           kube-scheduler with a client QPS of 5,000.
start      seconds until ready, and memory, with many nodes and pods that are bound already.

Kinds of pods: plain, anti (required anti-affinity by host), spread (over zones).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from argosy.host.host import Host
from argosy.host.protocols import DirectLinks
from argosy.host.setup import HostSetup
from argosy.kubernetes.control_plane import ControlPlane, find_tools
from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Node, NodeStatus, Pod, PodSpec
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, NotModelled, Output
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.server import FoundEngines
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster, LocalMachines

TICK = os.sysconf("SC_CLK_TCK")
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
APP = {"app": "bench"}
PEER, OURS = "default-scheduler", "argosy"
#: Pods that the watch brings at once.
BATCH = 50


def pod_spec(kind: str, scheduler: str) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "200Mi"}
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "containers": [{"name": "c", "image": "none", "resources": {"requests": requests}}],
    }
    selector = {"matchLabels": APP}
    if kind == "anti":
        term = {"topologyKey": HOST, "labelSelector": selector}
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif kind == "spread":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 5,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    return spec


# Without an API server.


def decisions(arguments: argparse.Namespace) -> None:
    print(f"{arguments.nodes:,} nodes, {arguments.pods:,} pods; CPU of this process")
    print(f"{'engine':<14} {'kind':<8} {'pods/s':>10} {'µs/pod':>8}")

    def show(engine: str, kind: str, runs: list[float]) -> None:
        rate = arguments.pods / statistics.median(runs)
        print(f"{engine:<14} {kind:<8} {rate:>10,.0f} {1e6 / rate:>8.0f}", flush=True)

    for engine in arguments.engine or ["omega", "murmuration", "sparrow", "kube", "firmament"]:
        alone = [decide_alone(engine, arguments.nodes, arguments.pods) for _ in range(3)]
        show(engine, "alone", alone)
        for kind in arguments.kind or ["plain", "anti", "spread"]:
            runs = [decide(engine, kind, arguments.nodes, arguments.pods) for _ in range(3)]
            show(engine, kind, runs)


def decide_alone(engine: str, nodes: int, count: int) -> float:
    """Seconds of CPU until a host has a machine for every job, all of which require one mark."""
    names = [f"n{at}" for at in range(nodes)]
    capacity = Resources(32_000, 256 << 30, {"pods": 110})
    cell = CellSpec(machines=tuple(Machine(name, capacity) for name in names))
    fleet = tuple(
        replace(entry, decision_time=NotModelled())
        for entry in read_fleet([{"name": engine, "engine": engine}], cell)
    )
    setup = HostSetup(
        name="bench",
        seed=1,
        cell=cell,
        fleet=fleet,
        machines=MachineModel(),
        network=None,
        partitions=(),
        failover=0,
        audit=False,
        output=Output(tasks=False),
        is_overruled=True,
    )
    machines = LocalMachines()
    host = Host(setup, FoundEngines(), machines, DirectLinks())
    host.start()
    host.mark("admitted", "machine", names)
    request = Resources(100, 200 << 20, {"pods": 1})
    group = TaskGroup(1, request, requires={"admitted": "true"})
    began, now = time.process_time(), 0
    for at in range(count):
        host.submit(Job(f"p{at}", (group,)))
        if at % BATCH == 0:
            now += 1_000
            host.run_until(now)
    while len(started := machines.take()) and now < 60_000_000:
        count -= len(started)
        now += 1_000
        host.run_until(now)
    seconds = time.process_time() - began
    assert count == 0, f"{count:,} pods have no node"
    return seconds


def decide(engine: str, kind: str, nodes: int, count: int) -> float:
    """Seconds of CPU until every pod has its order."""
    overseer = PodOverseer(OURS)
    overseer.connect(lambda number, result: None, lambda action: action())
    pods = overseer.pods
    allocatable = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    made = [
        Node(
            metadata=ObjectMeta(name=f"n{at}", labels={HOST: f"n{at}", ZONE: f"z{at % 3}"}),
            status=NodeStatus(allocatable=allocatable),
        )
        for at in range(nodes)
    ]
    spec = msgspec.convert(pod_spec(kind, OURS), PodSpec)
    wanted = [
        Pod(
            metadata=ObjectMeta(
                name=f"p{at}", generate_name="p", namespace="default", uid=f"u{at}", labels=APP
            ),
            spec=spec,
        )
        for at in range(count)
    ]
    cell = CellSpec(machines=tuple(map(pods.machine_of, made)))
    fleet = read_fleet([{"name": engine, "engine": engine}], cell)
    with tempfile.TemporaryDirectory() as directory:
        store = LocalStore(Path(directory), is_lasting=False)
        world = OverruledWorld(
            store,
            FoundEngines(),
            overseer,
            lambda: time.monotonic_ns() // 1000,
            overseer,
            cluster=LocalCluster(name="bench", cell=cell, fleet=fleet),
        )
        for node in made:
            pods.set_node(node)
        world.commit()
        began, bound = time.process_time(), 0
        batches = [wanted[at : at + BATCH] for at in range(0, count, BATCH)]
        while bound < count:
            world.settle()
            for pod in batches.pop(0) if batches else ():
                pods.set_pod(pod)
            pods.flush()
            world.commit()
            while pods.orders:
                pods.bound(pods.orders.popleft().pod.uid)
                bound += 1
        seconds = time.process_time() - began
        store.close()
    return seconds


# With one.


def bound(arguments: argparse.Namespace) -> None:
    with ControlPlane.start(tools=find_tools(), kwok=False) as plane:
        zones = [f"z{at}" for at in range(3)]
        plane.create_nodes(arguments.nodes, zones=zones, wait=False)
        for kind in arguments.kind or ["plain"]:
            results: dict[str, list[tuple[float, float]]] = {PEER: [], OURS: []}
            for turn in range(arguments.rounds):
                for scheduler in (PEER, OURS) if turn % 2 == 0 else (OURS, PEER):
                    figures = schedule(plane, scheduler, kind, arguments)
                    results[scheduler].append(figures)
                    print(f"  {kind} {scheduler}: {figures[0]:,.0f} pods/s, ", end="")
                    print(f"{1e3 * figures[1]:.2f} ms of CPU a pod", flush=True)
            report(kind, arguments, results)


def report(
    kind: str, arguments: argparse.Namespace, results: dict[str, list[tuple[float, float]]]
) -> None:
    rates, costs = (
        {name: statistics.median(run[at] for run in runs) for name, runs in results.items()}
        for at in (0, 1)
    )
    print(
        f"{kind}, {arguments.nodes:,} nodes, {arguments.pods:,} pods, {arguments.engine}: "
        f"{rates[OURS] / rates[PEER]:.2f}x kube-scheduler's bound pods/s, "
        f"{costs[OURS] / costs[PEER]:.2f}x its CPU a pod",
        flush=True,
    )


def schedule(
    plane: ControlPlane, scheduler: str, kind: str, arguments: argparse.Namespace
) -> tuple[float, float]:
    """Pods/s and seconds of CPU a pod, from the first bind to the last."""
    path = "/api/v1/namespaces/default/pods"
    spec = pod_spec(kind, scheduler)
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "bench-", "labels": APP},
        "spec": spec,
    }
    plane.for_each(lambda _: plane.request("POST", path, document), range(arguments.pods))
    binds = BindCounter(plane, path)
    with running(plane, scheduler, arguments.engine) as pid:
        figures = binds.measure(arguments.pods, pid)
    plane.request("DELETE", path, {"gracePeriodSeconds": 0})
    return figures


class BindCounter:
    """Watches binds from another thread."""

    def __init__(self, plane: ControlPlane, path: str) -> None:
        self._events = plane.watch(path)
        self._bound: set[str] = set()
        self._changed = threading.Condition()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        for event in self._events:
            pod = event["object"]
            if pod.get("spec", {}).get("nodeName"):
                with self._changed:
                    self._bound.add(pod["metadata"]["uid"])
                    self._changed.notify()

    def measure(self, pods: int, pid: int) -> tuple[float, float]:
        with self._changed:
            self._changed.wait_for(lambda: self._bound, 120)
            first, began, cpu = len(self._bound), time.perf_counter(), cpu_of(pid)
            if not self._changed.wait_for(lambda: len(self._bound) >= pods, 600):
                raise SystemExit(f"only {len(self._bound):,} of {pods:,} pods were bound")
        seconds, spent = time.perf_counter() - began, cpu_of(pid) - cpu
        return (pods - first) / seconds, spent / (pods - first)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


@contextmanager
def running(plane: ControlPlane, scheduler: str, engine: str) -> Iterator[int]:
    if scheduler == PEER:
        plane.run("kube-scheduler")
        try:
            yield plane.running["kube-scheduler"]  # type: ignore[index]
        finally:
            plane.kill("kube-scheduler")
        return
    with ours(plane, engine) as process:
        yield process.pid


@contextmanager
def ours(plane: ControlPlane, engine: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "argosy.cli", "kubernetes", "--kubeconfig"]
    process = subprocess.Popen(
        [*command, str(plane.kubeconfig), "--engine", engine, "--listen", "none", "-o", "json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        json.loads(process.stdout.readline())
        yield process
    finally:
        process.terminate()
        process.wait()


def start(arguments: argparse.Namespace) -> None:
    with ControlPlane.start(tools=find_tools(), kwok=False) as plane:
        names = plane.create_nodes(arguments.nodes, wait=False)
        path = "/api/v1/namespaces/default/pods"
        spec = pod_spec("plain", PEER)

        def create(at: int) -> None:
            plane.request(
                "POST",
                path,
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"p{at}", "labels": APP},
                    "spec": {**spec, "nodeName": names[at % len(names)]},
                },
            )

        plane.for_each(create, range(arguments.pods))
        for _ in range(arguments.rounds):
            began = time.perf_counter()
            with ours(plane, arguments.engine) as process:
                seconds = time.perf_counter() - began
                status = Path(f"/proc/{process.pid}/status").read_text()
                memory = int(status.partition("VmHWM:")[2].split()[0]) / 1024
                print(
                    f"{arguments.nodes:,} nodes, {arguments.pods:,} pods: ready after "
                    f"{seconds:.1f} s ({cpu_of(process.pid):.1f} s of CPU), {memory:,.0f} MiB at most",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    modes = parser.add_subparsers(required=True)
    for mode, nodes, pods in (
        (decisions, 5_000, 5_000),
        (bound, 1_000, 2_000),
        (start, 5_000, 50_000),
    ):
        options = modes.add_parser(mode.__name__)
        options.set_defaults(run=mode)
        options.add_argument("--nodes", type=int, default=nodes)
        options.add_argument("--pods", type=int, default=pods)
        options.add_argument("--kind", nargs="*", choices=["plain", "anti", "spread"])
        options.add_argument("--rounds", type=int, default=3)
        if mode is decisions:
            options.add_argument("--engine", nargs="*")
        else:
            options.add_argument("--engine", default="omega")
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
