"""What requests to Kubernetes cost the client, against a real API server. Run by hand:

    python bench/kubernetes_client.py [--pods 2000] [--concurrent 24]

CPU time of this process alone, per pod: created, bound, listed, decoded, and streamed as the first
objects of a watch; and the memory that 50,000 such pods take once they are decoded.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.control_plane import ControlPlane, KubeToolsMissing, find_tools
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import (
    Pod,
    PodContainer,
    PodSpec,
    ResourceRequirements,
    Toleration,
)
from argosy.kubernetes.requests import KubernetesCall, RequestSettings
from argosy.kubernetes.watching import UNFINISHED_PODS, ObjectWatch

NAMESPACE = "default"
#: Pods whose memory is measured: few would fit into what is free already.
STORED = 50_000


def pod(number: int) -> Pod:
    request = {"cpu": "500m", "memory": "1Gi"}
    return Pod(
        metadata=ObjectMeta(
            name=f"web-6d4b75cb6d-{number:06}",
            namespace=NAMESPACE,
            labels={"app": f"web-{number % 100}", "pod-template-hash": "6d4b75cb6d"},
        ),
        spec=PodSpec(
            scheduler_name="argosy",
            containers=(
                PodContainer(
                    name="main",
                    image="registry.example.com/shop/web:1.2.3",
                    resources=ResourceRequirements(requests=request, limits=request),
                ),
            ),
            tolerations=(Toleration(key="dedicated", operator="Exists"),),
        ),
    )


async def at_most(count: int, actions: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Carries the actions out, so many at a time."""
    left = iter(actions)

    async def worker() -> None:
        for action in left:
            await action()

    await asyncio.gather(*(worker() for _ in range(count)))


class Measured:
    """Prints what a block cost, per pod."""

    def __init__(self, what: str, pods: int) -> None:
        self.what = what
        self.pods = pods

    def __enter__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        cpu = (time.process_time() - self.cpu) / self.pods
        rate = self.pods / (time.perf_counter() - self.wall)
        print(f"{self.what:28} {cpu * 1e6:8.1f} us CPU per pod, {rate:9.0f} pods/s", flush=True)


def resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


async def measure(client: KubernetesClient, count: int, concurrent: int) -> None:
    pods = [pod(number) for number in range(count)]
    with Measured("create", count):
        await at_most(concurrent, (lambda each=each: client.create(PODS, each) for each in pods))
    listed = (await client.list_all(PODS)).items
    why = {"argosy.example/why": "the roomiest of 5000 nodes"}

    def bind(each: Pod) -> Callable[[], Awaitable[None]]:
        return lambda: client.bind(
            NAMESPACE,
            each.name,
            f"node-{hash(each.name) % 100}",
            uid=each.uid,
            resource_version=each.metadata.resource_version,
            annotations=why,
        )

    with Measured("bind", count):
        await at_most(concurrent, map(bind, listed))
    with Measured("list, pages of 500", count):
        listed = (await client.list_all(PODS)).items
    assert all(each.spec.node_name for each in listed)
    del listed, pods
    call = KubernetesCall(verb="list", method="GET", path=PODS.path(), resource="pods")
    body = await client.sender.send(call)
    print(f"{'size':28} {len(body) / count:8.0f} bytes of JSON per pod")
    with Measured("decode", count):
        PODS.decode_list(body)
    del body
    with Measured("watch, first objects", count):
        async with ObjectWatch(client, PODS, fields=UNFINISHED_PODS) as watch:
            async for batch in watch:
                if batch.is_complete:
                    break
    first = PODS.path(NAMESPACE, pod(0).name)
    served = await client.sender.send(KubernetesCall(verb="get", method="GET", path=first))
    print(f"{'store':28} {stored(served) / STORED:8.0f} bytes of memory per pod")


def stored(served: bytes) -> int:
    """The memory that so many pods like the one that was served take, each decoded from its own text."""
    line = b'{"type":"ADDED","object":' + served.strip() + b"}"
    name = pod(0).name.encode()
    gc.collect()
    before = resident()
    kept = [PODS.decode_line(line.replace(name, pod(at).name.encode())) for at in range(STORED)]
    after = resident()
    assert len(kept) == STORED
    return after - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--concurrent", type=int, default=24)
    options = parser.parse_args()
    try:
        tools = find_tools()
    except KubeToolsMissing as missing:
        print(f"skipped: {missing}")
        return

    async def run(plane: ControlPlane) -> None:
        settings = RequestSettings(concurrent=options.concurrent)
        async with KubernetesClient(load_connection(plane.kubeconfig), settings) as client:
            print(f"Kubernetes {(await client.version()).git_version}, {options.pods} pods")
            await measure(client, options.pods, options.concurrent)

    with ControlPlane.start(tools=tools, kwok=False) as plane:
        asyncio.run(run(plane))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{'peak':28} {peak / 1024:8.0f} MiB of memory")


if __name__ == "__main__":
    main()
