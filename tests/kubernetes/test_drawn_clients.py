"""Clients, watches, candidates for a lease and writers whose server answers whatever it likes.

Time is virtual, answers are drawn, and of each run a digest is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest
from drawn_pods import DrawnObjects, read
from drawn_sender import CONNECTION, REFUSALS, DrawnSender, Told, plain
from pinned_digests import require_digests

from argosy.kubernetes import guards
from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.failures import KubernetesError, KubernetesUnreachable
from argosy.kubernetes.kinds import LEASES, NODES, PODS, PRIORITY_CLASSES
from argosy.kubernetes.leases import LeaderElection, lease_settings
from argosy.kubernetes.pacing import JitteredBackoff, RequestLimiter
from argosy.kubernetes.requests import (
    KubernetesCall,
)
from argosy.kubernetes.watching import ObjectWatch, WatchSettings
from argosy.model.explanations import Why
from argosy.service.kubernetes.rights import LastingRight, NoRight
from argosy.service.kubernetes.writer import KubernetesWriter
from argosy.testing.api_objects import refusal, watch_line
from argosy.testing.virtual_loop import VirtualLoop, others_ended
from argosy.worlds.kubernetes.tracked import BindOrder, CreateOrder, EvictOrder, NominateOrder

PINNED = Path(__file__).parent / "pinned"


def outcome(act: Callable[[Told], Coroutine[Any, Any, None]]) -> str:
    tell, loop = Told(), VirtualLoop()

    async def whole() -> None:
        try:
            await act(tell)
        except (KubernetesError, ValueError) as error:
            tell(f"{type(error).__name__} {error.args}")
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await others_ended()

    try:
        loop.run_until_complete(whole())
    finally:
        loop.close()
    return "\n".join(tell.lines)


# Clients.


async def requests(seed: int, tell: Told) -> None:
    sender = DrawnSender(f"client {seed}", tell, (0.0, 0.3, 0.7)[seed % 3])
    draw, dice = DrawnObjects(f"client {seed}", 0.1), Random(f"client {seed}")
    async with KubernetesClient(CONNECTION, sender=sender) as client:
        for at in range(3):
            sender.api.put(PODS, {**draw.pod(f"p{at}"), "spec": {"schedulerName": "argosy"}})
            sender.api.put(NODES, draw.node(f"n{at}"))

        async def one() -> object:
            name, space = f"p{dice.randrange(4)}", dice.choice((None, "", "default", "one"))
            match dice.randrange(14):
                case 0:
                    return await client.get(PODS, name, space)
                case 1:
                    return await client.get(NODES, f"n{dice.randrange(4)}", space)
                case 2:
                    page = dice.choice((1, 2, 500))
                    labels, fields = dice.choice((("", ""), ("app=web", ""), ("", "a=b")))
                    found = await client.list_all(
                        PODS, space, labels=labels, fields=fields, page=page
                    )
                    return [each.key for each in found.items], found.metadata
                case 3:
                    metadata = {"name": f"new{dice.randrange(3)}"}
                    if dice.random() < 0.5:
                        metadata["namespace"] = "two"
                    manager = dice.choice(("", "me"))
                    return await client.create(
                        PODS, {"metadata": metadata, "spec": {}}, space, field_manager=manager
                    )
                case 4:
                    body = dice.choice(sender.api.documents(PODS))
                    if dice.random() < 0.5:
                        return await client.replace(PODS, body, space, subresource="status")
                    return await client.replace(PODS, read(PODS, body))
                case 5:
                    form = dice.choice(tuple(PatchForm))
                    return await client.patch(
                        PODS,
                        name,
                        {"metadata": {"name": name, "labels": {"a": "b"}}},
                        space,
                        form=form,
                        subresource=dice.choice(("", "status")),
                        field_manager=dice.choice(("", "me")),
                        force=dice.random() < 0.5,
                    )
                case 6:
                    await client.delete(
                        PODS,
                        name,
                        space,
                        uid=dice.choice(("", "u")),
                        resource_version=dice.choice(("", "3")),
                        grace_seconds=dice.choice((None, 0, 5)),
                        propagation=dice.choice(("", "Background")),
                    )
                case 7 | 8:
                    await client.bind(
                        space or "default",
                        name,
                        "n1",
                        uid=dice.choice(("", f"{name}-1")),
                        resource_version=dice.choice(("", "1")),
                        annotations=dice.choice((None, {"why": "so"})),
                        labels=dice.choice((None, {"a": "b"})),
                    )
                case 9:
                    uid, grace = dice.choice(("", "u")), dice.choice((None, 0))
                    await client.evict(space or "default", name, uid=uid, grace_seconds=grace)
                case 10:
                    return await client.version()
                case 11:
                    api = dice.choice(
                        (("", "v1", "pods"), ("g", "v2", "podgroups"), ("g", "v", "x"))
                    )
                    return await client.has_api(*api)
                case 12:
                    return await client.serves(PRIORITY_CLASSES)
                case _:
                    nodes = draw.some(("n0", "n1", "it's"))
                    made = dice.choice(
                        (
                            guards.node_guard("argosy", nodes, "one", placed_by="by"),
                            guards.fencing_guard("a\\b", "l", "one", placed_by="by", fencing="f"),
                        )
                    )
                    act = dice.choice((guards.apply_manifests, guards.remove_manifests))
                    await act(client, made)
            return None

        for _ in range(25):
            try:
                tell(f"= {plain(await one())}")
            except KubernetesError as error:
                details = (error.code, error.reason, getattr(error, "may_have_happened", None))
                tell(f"! {type(error).__name__} {error} {details}")


def test_requests_fare_as_before_whatever_the_server_answers(pytestconfig: pytest.Config) -> None:
    outcomes = {
        f"requests-{seed}": outcome(lambda tell, seed=seed: requests(seed, tell))  # type: ignore[misc]
        for seed in range(24)
    }
    require_digests(PINNED / "requests.txt", outcomes, pytestconfig)


# Watches.


class DrawnWatch:
    """What a server says of its pods."""

    def __init__(self, seed: int, sender: DrawnSender) -> None:
        self.dice, self.draw = Random(f"watch {seed}"), DrawnObjects(f"watch {seed}", 0.05)
        self.api, self.seed = sender.api, seed
        self.sender = sender

    def change(self) -> None:
        name = f"p{self.dice.randrange(5)}"
        known = self.api.document(PODS, name, "one")
        if known is not None and self.dice.random() < 0.4:
            self.api.remove(PODS, name, "one")
            return
        document = self.draw.pod(name)
        document["metadata"] |= {"namespace": "one"}
        del document["metadata"]["resourceVersion"]
        if self.dice.random() < 0.5 and known is not None:
            document["metadata"]["uid"] = known["metadata"]["uid"]
        document["status"]["phase"] = self.dice.choice(("Pending", "Running", "Succeeded"))
        self.api.put(PODS, document)

    def lines(self, call: KubernetesCall) -> list[bytes | float | Exception]:
        chunks: list[bytes | float | Exception] = [*self.api.opening(PODS.path(), call.parameters)]
        version = str(self.api._version)
        for _ in range(self.dice.randrange(8)):
            for _ in range(self.dice.randrange(3)):
                before = len(self.api._changes)
                self.change()
                chunks += [each.line() for each in self.api._changes[before:]]
            match self.dice.randrange(12):
                case 0:
                    metadata = {"resourceVersion": str(self.api._version)}
                    chunks.append(watch_line("BOOKMARK", {"metadata": metadata}))
                case 1:
                    code, reason = self.dice.choice(REFUSALS)
                    cause = self.dice.choice(("", "ResourceVersionTooLarge"))
                    said = refusal(code, reason, cause=cause).document
                    chunks.append(watch_line("ERROR", said))
                case 2:
                    chunks.append(self.dice.choice((0.5, 3.0, 100.0)))
                case 3:
                    odd = {
                        "metadata": {"name": "odd", "namespace": "one", "resourceVersion": version}
                    }
                    bad = {**odd, "spec": {"priority": "high"}}
                    kind = self.dice.choice(("ADDED", "MODIFIED", "DELETED"))
                    chunks.append(watch_line(kind, self.dice.choice((bad, odd))))
                case 4:
                    chunks.append(self.dice.choice((b"garbage\n", b"\n\n", b'{"type": 3}\n')))
                case 5:
                    # A line in two parts, with a null.
                    null = {"metadata": {"name": "null", "namespace": "one", "labels": None}}
                    line = watch_line("ADDED", null)
                    chunks += [line[:20], 0.1, line[20:]]
                case 6:
                    error = KubernetesUnreachable(str(call), "it broke", may_have_happened=True)
                    chunks.append(error)
                case 7:
                    # In another order, so that the type does not come first.
                    line = b'{"object":{"metadata":{"resourceVersion":"' + version.encode()
                    chunks.append(line + b'"}},"type":"BOOKMARK"}\n')
        if self.dice.random() < 0.2:
            self.api.forget_changes()
        return chunks


async def watching(seed: int, tell: Told) -> None:
    sender = DrawnSender(f"watch {seed}", tell, (0.0, 0.15, 0.4)[seed % 3])
    drawn = DrawnWatch(seed, sender)
    for _ in range(4):
        drawn.change()
    sender.watched = drawn.lines
    settings = WatchSettings(timeout=20.0, grace=5.0, longest_delay=4.0, page=2)
    keeps: Callable[[Any], bool] = lambda pod: seed % 2 == 0 or pod.status.phase != "Succeeded"  # noqa: E731
    client = KubernetesClient(CONNECTION, sender=sender)
    options: dict[str, str] = {"labels": "app=web"} if seed % 5 == 0 else {}
    if seed % 11 == 10:
        options = {"fields": "spec.nodeName=n1"}
    watch = ObjectWatch(
        client, PODS, "one" if seed % 4 else None, keeps=keeps, settings=settings, **options
    )
    try:
        await watch.__anext__()
    except RuntimeError as error:
        tell(error)

    async def follow() -> None:
        async for batch in watch:
            tell(f"batch {batch.is_complete}")
            for change in batch.changes:
                sides = (change.old, change.new, change.final)
                told = [each and (each.uid, each.metadata.resource_version) for each in sides]
                tell(f"  {change.kind.value} {told}")
            if watch.relists > 6 or asyncio.get_running_loop().time() > 90:
                return

    async with watch:
        try:
            async with asyncio.timeout(120):
                await follow()
        except TimeoutError:
            tell("nothing more")
        tell(
            f"{sorted(watch.objects)} version {watch.resource_version} complete {watch.is_complete}"
            f" silence {watch.silence:.3f} lag {watch.lag:.3f} {sorted(watch.restarts.items())}"
            f" {watch.relists} {watch.events} {watch.bookmarks} {sorted(watch.unreadable.items())}"
        )


def test_watches_tell_as_before_whatever_the_server_says(pytestconfig: pytest.Config) -> None:
    outcomes = {
        f"watch-{seed}": outcome(lambda tell, seed=seed: watching(seed, tell))  # type: ignore[misc]
        for seed in range(30)
    }
    require_digests(PINNED / "watches.txt", outcomes, pytestconfig)


# Pacing and leases.


async def pacing(seed: int, tell: Told) -> None:
    dice = Random(f"pacing {seed}")
    backoff = JitteredBackoff(dice.choice((0.1, 1.0)), dice.choice((2.0, 30.0)), Random(seed))
    for _ in range(12):
        match dice.randrange(8):
            case 0:
                backoff.reset()
            case 1:
                tell(f"spread {backoff.spread(dice.choice((0.0, 5.0))):.6f}")
            case _:
                tell(f"next {backoff.next():.6f}")
    limiter = RequestLimiter(dice.choice((1, 2, 5, 9)))

    async def use(number: int) -> None:
        async with limiter.turn():
            tell(f"{number} begins: {limiter.under_way} of {limiter.width}")
            await asyncio.sleep(dice.choice((0.1, 0.5, 2.0)))
            (limiter.throttled if dice.random() < 0.35 else limiter.answered)()
        tell(f"{number} is over: {limiter.under_way} of {limiter.width}")

    tasks = []
    for number in range(20):
        tasks.append(asyncio.create_task(use(number)))
        await asyncio.sleep(dice.choice((0.0, 0.0, 0.05, 0.6)))
        if dice.random() < 0.2:
            dice.choice(tasks).cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tell(f"{limiter.under_way} of {limiter.width}")


async def electing(seed: int, tell: Told) -> None:
    """Two candidates for one lease, of whom one is in trouble."""
    clock = asyncio.get_running_loop().time
    first = DrawnSender(f"lease {seed}", tell, (0.0, 0.3, 0.6)[seed % 3])
    second = DrawnSender(f"other lease {seed}", tell, 0.0)
    second.api = first.api
    if seed % 4 == 0:
        spec: dict[str, Any] = {"holderIdentity": ("gone", "", None)[seed % 3]}
        spec |= {"leaseDurationSeconds": 9, "leaseTransitions": 4} if seed % 8 else {}
        metadata = {"name": "argosy", "namespace": "kube-system"}
        first.api.put(LEASES, {"metadata": metadata, "spec": spec})
    settings = lease_settings((6, 15)[seed % 2])

    async def stand(name: str, sender: DrawnSender) -> None:
        election = LeaderElection(
            CONNECTION,
            "argosy",
            identity=name,
            settings=settings,
            on_lost=lambda leadership: tell(f"{name} has lost {leadership.fencing}"),
            clock=clock,
            random=Random(f"{name} {seed}"),
            client=KubernetesClient(CONNECTION, sender=sender),
        )
        async with election:
            for _ in range(2):
                try:
                    leadership = await election.lead()
                except KubernetesError as error:
                    tell(f"{name} {type(error).__name__}")
                    continue
                assert await election.lead() is leadership
                tell(f"{name} leads {leadership.fencing} for {leadership.remaining:.6f}")
                try:
                    async with asyncio.timeout(12):
                        await leadership.lost()
                except TimeoutError:
                    await election.release()
                tell(
                    f"{name} held {leadership.is_held} {leadership.remaining:.6f},"
                    f" holder {election.holder!r}"
                )

    try:
        async with asyncio.timeout(120):
            await asyncio.gather(stand("a", first), stand("b", second))
    except TimeoutError:
        tell("enough")
    tell(plain(first.api.documents(LEASES)))


def test_pacing_and_leases_are_as_before(pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for seed in range(18):
        outcomes[f"pacing-{seed}"] = outcome(lambda tell, seed=seed: pacing(seed, tell))  # type: ignore[misc]
        outcomes[f"lease-{seed}"] = outcome(lambda tell, seed=seed: electing(seed, tell))  # type: ignore[misc]
    require_digests(PINNED / "leases.txt", outcomes, pytestconfig)


# The writer.


class BriefRight:
    """Held by turns."""

    def __init__(self, seed: int) -> None:
        self.fencing = 3 + seed

    @property
    def _phase(self) -> float:
        return asyncio.get_running_loop().time() % 10

    @property
    def is_held(self) -> bool:
        return self._phase < 6

    @property
    def remaining(self) -> float:
        return max(0.0, 6 - self._phase)


class TellingObserver:
    def __init__(self, tell: Told) -> None:
        self._tell = tell

    def bound(self, seconds: float) -> None:
        self._tell(f"observed bound {seconds:.6f}")

    def refused(self) -> None:
        self._tell("observed refused")

    def evicted(self, why: Why) -> None:
        self._tell(f"observed evicted {why.name}")


async def writing(seed: int, tell: Told) -> None:
    sender = DrawnSender(f"writer {seed}", tell, (0.0, 0.35, 0.7)[seed % 3])
    draw, dice = DrawnObjects(f"writer {seed}", 0.15), Random(f"writer {seed}")
    rights = (LastingRight(), BriefRight(seed), LastingRight(), NoRight())
    client = KubernetesClient(CONNECTION, sender=sender)
    writer = KubernetesWriter(
        client,
        "argosy",
        bound=lambda uid: tell(f"* bound {uid}"),
        failed=lambda uid: tell(f"* failed {uid}"),
        stayed=lambda uid: tell(f"* stayed {uid}"),
        unmade=lambda job, why: tell(f"* unmade {job}: {why}"),
        log=lambda line: tell(f"log {line}"),
        writes_events=seed % 4 > 0,
        observer=TellingObserver(tell) if seed % 5 else None,
        right=rights[seed % 4],
    )
    writer.start()
    pods = []
    for at in range(6):
        document = draw.pod(f"p{at}")
        del document["metadata"]["resourceVersion"]
        if dice.random() < 0.3:
            document["metadata"]["annotations"]["argosy.dev/queue"] = "n1"
        if dice.random() < 0.8:
            pods.append(sender.api.put(PODS, document))
        else:
            pods.append(read(PODS, document))
    for at in range(24):
        pod = dice.choice(pods)
        match dice.randrange(9):
            case 0 | 1 | 2:
                writer.carry_out(BindOrder(pod, dice.choice(("n0", "n1")), {"why": "so"}))
            case 3 | 4:
                why = dice.choice((Why.PREEMPTED, Why.MOVED, Why.CANCELLED))
                writer.carry_out(EvictOrder(pod, why))
            case 5:
                metadata = {"name": f"made-{at % 3}", "namespace": "one"}
                writer.carry_out(CreateOrder(f"job-{at}", {"metadata": metadata, "spec": {}}))
            case 6:
                writer.carry_out(NominateOrder(pod, "n2"))
            case 7:
                place = {"argosy.dev/queue": dice.choice((None, "n0"))}
                writer.annotate(pod, place, dice.choice(("", "waits")))
                if dice.random() < 0.2:
                    writer.forget(pod.uid)
            case _:
                writer.note_waiting(pod, dice.choice(("no room", "x" * 1_200)))
        await asyncio.sleep(dice.choice((0.0, 0.1, 3.0, 12.0)))
    await asyncio.sleep(60)
    tell(f"counts {sorted(writer.counts.items())}")
    writer.carry_out(BindOrder(pods[0], "n3"))
    await writer.close()


def test_orders_are_written_as_before_whatever_the_server_answers(
    pytestconfig: pytest.Config,
) -> None:
    outcomes = {
        f"writer-{seed}": outcome(lambda tell, seed=seed: writing(seed, tell))  # type: ignore[misc]
        for seed in range(24)
    }
    require_digests(PINNED / "writer.txt", outcomes, pytestconfig)
