"""Faults of a Kubernetes cluster under load, one after the other, and how long Argosy takes to recover.
Run by hand:

    python bench/kubernetes_faults.py [--rate PODS] [--seconds S] [--engine NAME] [FAULT ...]

Pods are created all the time. The table has a row for each fault: how long it lasted by itself (until
what was killed is back), when the next pod that was created afterwards had a node, and what an
independent watch has seen: pods bound twice, pods that got no node, and nodes with more than they have.
The exit code is 1 if any of these is not 0.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import msgspec
from faulty_proxy import Fault, FaultyProxy
from kube_schedulers import (
    PodLoad,
    PodWitness,
    SchedulerProcess,
    bound_twice,
    overcommitted,
    pod_document,
)

from argosy.kubernetes.control_plane import ControlPlane, find_tools
from argosy.kubernetes.control_plane.programs import KubeProgram
from argosy.kubernetes.kubeconfig import load_connection

NODES = 100
#: Pods that are bound before the fault.
BEFORE = 100
#: Seconds that a disturbance of the connection lasts.
DISTURBANCE = 5.0
LEASE = ("--leader-elect", "--lease-namespace", "default")
GONE = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}'
)
BUSY = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":429}'
COLUMNS = ("fault", "pods", "lasted", "recovered", "longest wait", "twice", "lost", "over")


class FaultResult(msgspec.Struct, frozen=True):
    fault: str
    pods: int
    #: Seconds: of the fault itself, from its end until a new pod had a node, and that any pod waited.
    lasted: float
    recovered: float
    longest_wait: float
    twice: int
    lost: int
    over: int

    @property
    def is_wrong(self) -> bool:
        return bool(self.twice or self.lost or self.over)

    def cells(self) -> tuple[str, ...]:
        times = (f"{each:.2f} s" for each in (self.lasted, self.recovered, self.longest_wait))
        return (
            self.fault,
            str(self.pods),
            *times,
            str(self.twice),
            str(self.lost),
            str(self.over),
        )


class ProxyThread:
    """A proxy in a loop of its own, and a kubeconfig that goes through it."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.proxy = FaultyProxy(load_connection(plane.kubeconfig))
        self.call(self.proxy.__aenter__())
        settings = json.loads(plane.kubeconfig.read_text())
        settings["clusters"][0]["cluster"] = {"server": self.proxy.connection.server}
        self.kubeconfig = directory / "through-proxy"
        self.kubeconfig.write_text(json.dumps(settings))

    async def _end(self) -> None:
        await self.proxy.__aexit__()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def soon(self, action: Callable[..., object], *arguments: object) -> None:
        self.loop.call_soon_threadsafe(action, *arguments)

    def close(self) -> None:
        self.call(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


class FaultBench:
    def __init__(self, plane: ControlPlane, rate: float, seconds: float, engine: str) -> None:
        self.plane, self._rate, self._seconds, self._engine = plane, rate, seconds, engine
        self._stack = ExitStack()
        self._numbers = itertools.count(1)

    def scheduler(
        self, name: str, *options: str, kubeconfig: Path | None = None
    ) -> SchedulerProcess:
        process = SchedulerProcess(
            kubeconfig or self.plane.kubeconfig, "--name", name, "--engine", self._engine, *options
        )
        self._stack.enter_context(process)
        return process.wait_until_up()

    def measured(self, fault: str) -> FaultResult:
        name = f"faults-{next(self._numbers)}"
        self.plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        with self._stack, self._prepared(fault, name) as strike:
            return self._under_load(fault, name, strike)

    def _under_load(self, fault: str, name: str, strike: Callable[[], None]) -> FaultResult:
        documents = (
            pod_document(f"p{at}", name, cpu="100m", memory="16Mi") for at in itertools.count()
        )
        load = PodLoad(self.plane, name, documents, self._rate)
        with PodWitness(self.plane, name) as witness:
            load.start()
            witness.until(lambda w: len(w.bound) >= BEFORE, "pods are bound")
            began = time.monotonic()
            strike()
            ended, made = time.monotonic(), load.made + 1
            # One was perhaps being created.
            witness.until(lambda w: bound_after(w, made), "pods are bound again")
            recovered = time.monotonic()
            time.sleep(self._seconds)
            load.finish()
            try:
                witness.until(lambda w: len(w.bound) == load.made, "all pods are bound")
            except AssertionError as error:
                print(error, file=sys.stderr)
            waits = [
                witness.bound_at.get(uid, time.monotonic()) - seen
                for uid, seen in witness.seen_at.items()
            ]
            return FaultResult(
                fault=fault,
                pods=load.made,
                lasted=ended - began,
                recovered=recovered - ended,
                longest_wait=max(waits),
                twice=len(bound_twice(witness)),
                lost=load.made - len(witness.bound),
                over=len(overcommitted(self.plane)),
            )

    @contextmanager
    def _prepared(self, fault: str, name: str) -> Iterator[Callable[[], None]]:
        """Schedulers for the fault, and what brings it about and returns when it is over."""
        plane = self.plane
        match fault:
            case "none":
                self.scheduler(name)
                yield lambda: None
            case "scheduler":
                first = self.scheduler(name)

                def again() -> None:
                    first.kill()
                    self.scheduler(name)

                yield again
            case "leader" | "leader frozen" | "leader stops":
                first = self.scheduler(name, *LEASE, "--lease-name", name)
                self.scheduler(name, *LEASE, "--lease-name", name)
                if fault == "leader":
                    yield first.kill
                elif fault == "leader stops":
                    yield lambda: None if first.terminate() == 0 else sys.exit("it ended badly")
                else:
                    yield lambda: first.signal(signal.SIGSTOP)
                    first.signal(signal.SIGCONT)
                    first.wait()
            case "kube-apiserver" | "etcd" | "kwok":
                self.scheduler(name)
                yield lambda: plane.restart(KubeProgram(fault))
            case _:
                with tempfile.TemporaryDirectory() as directory:
                    through = ProxyThread(plane, Path(directory))
                    self.scheduler(name, kubeconfig=through.kubeconfig)
                    try:
                        yield lambda: disturb(through, fault)
                    finally:
                        self._stack.close()
                        through.close()


def bound_after(witness: PodWitness, made: int) -> bool:
    """Whether a pod has a node that was created later than so many others."""
    return any(int(pod["metadata"]["name"][1:]) >= made for pod in witness.bound)


def disturb(through: ProxyThread, fault: str) -> None:
    proxy = through.proxy
    end = time.monotonic() + DISTURBANCE
    match fault:
        case "watches cut":
            while time.monotonic() < end:
                through.soon(proxy.end_streams)
                time.sleep(0.2)
        case "versions gone":
            for _ in range(5):
                expired = Fault(status=410, body=GONE)
                through.soon(proxy.inject, expired, lambda r: "watch" in r.rel_url.query)
                through.soon(proxy.end_streams)
                time.sleep(DISTURBANCE / 5)
        case "throttled":
            throttled = Fault(status=429, headers={"Retry-After": "1"}, body=BUSY)
            through.soon(
                proxy.inject,
                throttled,
                lambda r: r.method != "GET" and time.monotonic() < end,
                1_000_000,
            )
            time.sleep(DISTURBANCE)
        case "answers lost":
            through.soon(
                proxy.inject,
                Fault(breaks="after"),
                lambda r: r.path.endswith("/binding") and time.monotonic() < end,
                1_000_000,
            )
            time.sleep(DISTURBANCE)
        case "silence":
            gate = asyncio.Event()
            through.soon(proxy.inject, Fault(gate=gate), lambda r: not gate.is_set(), 1_000_000)
            through.soon(proxy.end_streams)
            time.sleep(DISTURBANCE)
            through.soon(gate.set)
        case "unreachable":
            through.call(proxy.go_away())
            time.sleep(DISTURBANCE)
            through.call(proxy.come_back())


FAULTS = (
    "none",
    "scheduler",
    "leader",
    "leader frozen",
    "leader stops",
    "kube-apiserver",
    "etcd",
    "kwok",
    "watches cut",
    "versions gone",
    "throttled",
    "answers lost",
    "silence",
    "unreachable",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=", ".join(FAULTS))
    parser.add_argument("--rate", type=float, default=100.0, help="pods created in a second")
    parser.add_argument("--seconds", type=float, default=3.0, help="of load after the recovery")
    parser.add_argument("--engine", default="omega")
    given = parser.parse_args()
    unknown = sorted({*given.faults} - {*FAULTS})
    if unknown:
        parser.error(f"unknown fault {unknown[0]!r}; expected one of {', '.join(FAULTS)}")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    is_wrong = False
    with ControlPlane.start(tools=find_tools(), timeout=120.0) as plane:
        plane.create_nodes(NODES, zones=["a", "b", "c"])
        bench = FaultBench(plane, given.rate, given.seconds, given.engine)
        for fault in given.faults or FAULTS:
            result = bench.measured(fault)
            print("| " + " | ".join(result.cells()) + " |", flush=True)
            is_wrong = is_wrong or result.is_wrong
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
