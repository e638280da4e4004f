"""Job completion times under the Murmuration paper's arrival patterns, on a real API server, with
kube-scheduler and with Argosy by turns. Run by hand (needs `make kube-tools`):

python bench/kubernetes_jct.py [--pattern A ...] [--seconds N] [--rounds N] [--seed N]
    [--engine NAME] [--queue fcfs shortest-first]

Everything but the arrival rates (figure 2) is scaled down. Jobs are drawn with the shape of the Yahoo
trace and `--fanout` of its tasks; rates change every second instead of every ten; pods arrive for about
`--seconds`. Tasks run for real, `MEAN` seconds on average and `LONGEST` at most. There are so many nodes
that the offered load is the paper's: 1.22 (A), 1.43 (B), 2.08 (C) and 2.80 (D). Nodes run 3, 4 and 4
pods at a time, in the proportions of the paper's 80, 110 and 110.

This program plays the kubelets: a pod that is bound has ended when its time is over. A job's completion
time is from the creation of its first pod to the end of its last. Jobs count that came once the
cluster was full, as in the paper. Estimates have the paper's error: normal, 21 %.

kube-scheduler has a client QPS of 5,000 and its usual back-off of 1 to 10 s. Each round has another
seed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.control_plane import ControlPlane, find_tools
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.watching import ObjectWatch
from argosy.model.random import Random
from argosy.workloads import fanout

PEER = "kube-scheduler"
#: In which order pods wait at nodes, with Argosy.
QUEUES: Final = ("fcfs", "shortest-first")
PATH: Final = "/api/v1/namespaces/default/pods"
FANOUT: Final = 1 / 2
MEAN: Final = 6.0
LONGEST: Final = 24.0
SHORTEST: Final = 0.05
ERROR: Final = 0.21
FULL: Final = 0.95
#: Seconds per task, and slots, in the paper's cluster.
PAPER_WORK: Final = 702.1
PAPER_SLOTS: Final = 4_990
#: Pods at a time on the three kinds of nodes.
SLOTS: Final = (3, 4, 4)
CORES: Final = ("8", "16", "32")
#: Seconds after which a run that has not ended never will.
PATIENCE: Final = 600


class Task(msgspec.Struct, frozen=True):
    name: str
    job: str
    submit: float
    duration: float
    estimate: float


def tasks_of(pattern: str, seconds: float, seed: int, share: float) -> list[Task]:
    """As many as arrive in `seconds` at the pattern's mean rate."""
    random = Random(seed).child("kubernetes").child(pattern)
    wanted = round(seconds * fanout.PATTERNS[pattern].mean)
    source = fanout.generate(fanout.shape("yahoo"), wanted, random, scale=share)
    jobs, count = [], 0
    for job in source:
        # No job is as large as the run.
        if job.tasks > wanted // 8:
            continue
        jobs.append(job)
        count += job.tasks
        if count >= wanted:
            break
    single = list(fanout.one_by_one(jobs, pattern, random.child("pattern"), burst=1_000_000))
    raw = [(job.truth[0].duration(0) or 0) / 1e6 for job in single]
    durations = scaled(raw)
    mistakes = random.child("mistakes")
    factor: dict[str, float] = {}
    tasks = []
    for job, duration in zip(single, durations, strict=True):
        owner = job.job.owner or job.id
        if owner not in factor:
            factor[owner] = min(max(1 + ERROR * mistakes.normal(), 0.1), 1.9)
        name = job.id.replace(".", "-")
        estimate = duration * factor[owner]
        tasks.append(Task(name, owner, job.submit / 1e6, duration, estimate))
    return tasks


def scaled(raw: Sequence[float]) -> list[float]:
    """Durations in the same order, `MEAN` on average after the longest have been cut."""
    low, high = 1e-9, 1e3
    for _ in range(100):
        middle = math.sqrt(low * high)
        mean = statistics.fmean(_cut(middle * each) for each in raw)
        low, high = (middle, high) if mean < MEAN else (low, middle)
    return [_cut(low * each) for each in raw]


def _cut(seconds: float) -> float:
    return min(max(seconds, SHORTEST), LONGEST)


def nodes_for(pattern: str, tasks: Sequence[Task]) -> list[int]:
    """The pods that each node can run, for the paper's offered load at the pattern's mean rate."""
    mean = fanout.PATTERNS[pattern].mean
    load = mean * PAPER_WORK / PAPER_SLOTS
    offered = mean * statistics.fmean(task.duration for task in tasks)
    sizes: list[int] = []
    while sum(sizes) < offered / load:
        sizes.append(SLOTS[len(sizes) % 3])
    return sizes


class Run:
    """One pattern under one scheduler."""

    def __init__(self, client: KubernetesClient, scheduler: str, tasks: Sequence[Task]) -> None:
        self._client = client
        self._scheduler = scheduler
        self._tasks = {task.name: task for task in tasks}
        self._under_way: set[asyncio.Task[None]] = set()
        self.created: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self._done = asyncio.Event()

    async def go(self) -> None:
        async with ObjectWatch(self._client, PODS, namespace="default") as watch:
            following = asyncio.create_task(self._follow(watch))
            began = time.monotonic()
            for task in self._tasks.values():
                await asyncio.sleep(max(0.0, began + task.submit - time.monotonic()))
                self.created[task.name] = time.monotonic()
                self._spawn(self._create(task))
            async with asyncio.timeout(PATIENCE):
                await self._done.wait()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._ended_work)

    def _ended_work(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            print(f"  {error}", file=sys.stderr)

    async def _create(self, task: Task) -> None:
        await self._client.create(PODS, pod_of(task, self._scheduler))

    async def _follow(self, watch: ObjectWatch[Any]) -> None:
        async for batch in watch:
            for change in batch.changes:
                pod = change.new
                if pod is None or not pod.spec.node_name or pod.name in self.bound:
                    continue
                if pod.name not in self._tasks:
                    continue
                self.bound[pod.name] = time.monotonic()
                self._spawn(self._run(pod.name))

    async def _run(self, name: str) -> None:
        await asyncio.sleep(self._tasks[name].duration)
        status = {"status": {"phase": "Succeeded"}}
        await self._client.patch(
            PODS, name, status, "default", form=PatchForm.MERGE, subresource="status"
        )
        self.ended[name] = time.monotonic()
        if len(self.ended) == len(self._tasks):
            self._done.set()


def pod_of(task: Task, scheduler: str) -> dict[str, Any]:
    requests = {"cpu": "100m"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": task.name,
            "namespace": "default",
            "labels": {"job": task.job},
            "annotations": {"argosy.dev/estimate": f"{round(1000 * task.estimate)}ms"},
        },
        "spec": {
            "schedulerName": "default-scheduler" if scheduler == PEER else "argosy",
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "none", "resources": {"requests": requests}}],
        },
    }


class Figures(msgspec.Struct, frozen=True):
    jobs: int
    full: float
    jct: list[float]
    waits: list[float]
    #: Until the last task has ended.
    makespan: float


def measured(run: Run, tasks: Sequence[Task], slots: int) -> Figures:
    changes = sorted(
        [(at, 1) for at in run.bound.values()] + [(at, -1) for at in run.ended.values()]
    )
    began, last = min(run.created.values()), max(run.created.values())
    running, since, full, before = 0, None, 0.0, began
    for at, change in changes:
        if since is not None and running >= FULL * slots and at <= last:
            full += at - before
        running, before = running + change, at
        if since is None and running >= FULL * slots:
            since = at
    start = began if since is None else since
    by_job: defaultdict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_job[task.job].append(task)
    counted = [
        job for job in by_job.values() if min(run.created[each.name] for each in job) >= start
    ]
    jct = sorted(
        max(run.ended[each.name] for each in job) - min(run.created[each.name] for each in job)
        for job in counted
    )
    waits = sorted(run.bound[each.name] - run.created[each.name] for job in counted for each in job)
    return Figures(
        len(jct), full / max(last - start, 1e-9), jct, waits, max(run.ended.values()) - began
    )


def quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


@asynccontextmanager
async def running(plane: ControlPlane, scheduler: str, engine: str) -> AsyncIterator[None]:
    if scheduler == PEER:
        await asyncio.to_thread(plane.run, "kube-scheduler")
        try:
            yield
        finally:
            await asyncio.to_thread(plane.kill, "kube-scheduler")
        return
    command = [sys.executable, "-m", "argosy.cli", "kubernetes", "--engine", engine]
    options = ["--queue", scheduler, "--listen", "none", "-o", "json"]
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(plane.kubeconfig), *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        json.loads(await asyncio.to_thread(process.stdout.readline))
        yield
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


async def one_run(
    plane: ControlPlane, scheduler: str, engine: str, tasks: Sequence[Task], slots: int
) -> Figures:
    async with (
        KubernetesClient(load_connection(plane.kubeconfig)) as client,
        running(plane, scheduler, engine),
    ):
        first = Task("first", "first", 0, SHORTEST, SHORTEST)
        await Run(client, scheduler, [first]).go()
        run = Run(client, scheduler, tasks)
        await run.go()
    await asyncio.to_thread(plane.request, "DELETE", PATH, {"gracePeriodSeconds": 0})
    return measured(run, tasks, slots)


def compare(plane: ControlPlane, pattern: str, arguments: argparse.Namespace) -> None:
    ours = tuple(arguments.queue)
    results: dict[str, list[Figures]] = {who: [] for who in (PEER, *ours)}
    for turn in range(arguments.rounds):
        tasks = tasks_of(pattern, arguments.seconds, arguments.seed + turn, arguments.fanout)
        sizes = nodes_for(pattern, tasks)
        nodes = [
            name
            for at, size in enumerate(sizes)
            for name in plane.create_nodes(
                1,
                name=f"{pattern.lower()}{turn}-{at}",
                cpu=str((8, 16, 32)[at % 3]),
                pods=size,
                wait=False,
            )
        ]
        jobs = len({task.job for task in tasks})
        print(
            f"pattern {pattern}: {len(tasks):,} pods of {jobs} jobs in {tasks[-1].submit:.0f} s, "
            f"{len(nodes)} nodes for {sum(sizes)} pods",
            flush=True,
        )
        for scheduler in (PEER, *ours) if turn % 2 == 0 else (*ours, PEER):
            figures = asyncio.run(one_run(plane, scheduler, arguments.engine, tasks, sum(sizes)))
            results[scheduler].append(figures)
            print(f"  {scheduler:<15} {line(figures)}", flush=True)
        plane.delete_nodes(nodes)
    for who in ours:
        for share, name in ((0.5, "median"), (0.9, "90 %"), (0.99, "99 %")):
            mine, theirs = (
                statistics.median(quantile(each.jct, share) for each in results[each_of])
                for each_of in (who, PEER)
            )
            print(
                f"pattern {pattern}, {name} of JCT: {mine:.1f} s with {arguments.engine} ({who}), "
                f"{theirs:.1f} s with kube-scheduler: {100 * (mine / theirs - 1):+.0f} %",
                flush=True,
            )


def line(figures: Figures) -> str:
    jct = ", ".join(f"{quantile(figures.jct, share):.1f}" for share in (0.5, 0.9, 0.99))
    waits = ", ".join(f"{quantile(figures.waits, share):.1f}" for share in (0.5, 0.9, 0.99))
    return (
        f"JCT {jct} s; waits {waits} s (50, 90, 99 %); {figures.jobs} jobs count, full for "
        f"{100 * figures.full:.0f} % of the time, all done after {figures.makespan:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pattern", nargs="*", choices=list(fanout.PATTERNS))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fanout", type=float, default=FANOUT)
    parser.add_argument("--queue", nargs="*", choices=QUEUES, default=QUEUES)
    parser.add_argument("--engine", default="murmuration")
    arguments = parser.parse_args()
    with ControlPlane.start(tools=find_tools(), kwok=False) as plane:
        for pattern in arguments.pattern or list(fanout.PATTERNS):
            compare(plane, pattern, arguments)


if __name__ == "__main__":
    main()
