"""The demonstration step by step, without a control plane."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.objects import Pod
from argosy.service.kubernetes import demo
from argosy.service.kubernetes.demo import FITTING, Demo, DemoPod, DemoResult


def a_pod(name: str, node: str = "", why: str = "") -> Pod:
    conditions = [{"type": "PodScheduled", "status": "False", "message": why}] if why else []
    document = {
        "metadata": {"name": name, "uid": name},
        "spec": {"nodeName": node} if node else {},
        "status": {"conditions": conditions},
    }
    return PODS.decode(msgspec.json.encode(document))


class Watch:
    """Tells of pods batch by batch; a second passes with each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *batches: list[Pod | None]) -> None:
        self._batches = batches
        self.objects: dict[str, Pod] = {}
        self.read = 0
        monkeypatch.setattr(demo.time, "monotonic", lambda: 100.0 + self.read)

    async def __aiter__(self) -> Any:
        for batch in self._batches:
            self.read += 1
            self.objects.update({pod.uid: pod for pod in batch if pod is not None})
            yield SimpleNamespace(changes=[SimpleNamespace(new=pod) for pod in batch])


def followed(*batches: list[Pod | None], monkeypatch: pytest.MonkeyPatch) -> Any:
    told: list[str] = []
    made = object.__new__(Demo)
    made._tell = told.append
    watch = Watch(monkeypatch, *batches)
    seconds = asyncio.run(made._followed(watch, 100.0))  # type: ignore[arg-type]
    return seconds, told, watch.read


def bound(first: int, last: int) -> list[Pod | None]:
    return [a_pod(f"p{at}", "n-0") for at in range(first, last)]


def test_pods_are_followed_until_all_that_fit_have_a_node_and_the_other_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = a_pod("large", why="too large")
    seconds, told, read = followed(
        [a_pod("p0"), None],
        bound(0, 9),
        bound(8, 10),
        bound(10, FITTING - 1),
        bound(0, FITTING),
        bound(0, FITTING),
        [waits],
        bound(0, FITTING),
        monkeypatch=monkeypatch,
    )
    # The last pod came with the fifth batch; the reason with the seventh.
    assert (seconds, read) == (5.0, 7)
    assert told == [
        f"{count} of {FITTING} pods have a node" for count in (10, FITTING - 1, FITTING)
    ]


def test_a_pod_that_says_why_it_waits_does_not_end_it_while_others_may_still_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = a_pod("large", why="too large")
    batches = [[waits], bound(0, FITTING - 1), bound(FITTING - 1, FITTING), bound(0, FITTING)]
    seconds, told, read = followed(*batches, monkeypatch=monkeypatch)  # type: ignore[arg-type]
    assert (seconds, read) == (3.0, 3)
    assert told == [f"{count} of {FITTING} pods have a node" for count in (FITTING - 1, FITTING)]


def test_a_result_has_its_rate() -> None:
    pods = (DemoPod("a", "p", "n", "", ""), DemoPod("a", "q", "", "", "full"))
    result = DemoResult("omega", 9, pods, 0.5)
    assert (result.bound, result.rate) == (1, 2.0)
    assert DemoResult("omega", 9, pods, 0.0).rate == 0.0


class Show:
    """A demonstration whose server and work are told what to do."""

    def __init__(self, *, is_kept: bool = False) -> None:
        self.did: list[Any] = []
        self.made = object.__new__(Demo)
        self.made._is_kept = is_kept
        self.over: asyncio.Future[None]

        @contextlib.asynccontextmanager
        async def serving() -> Any:
            self.over = asyncio.get_running_loop().create_future()
            yield SimpleNamespace(url="http://here"), self.over
            self.did.append("left")

        self.made._serving = serving  # type: ignore[method-assign]

    def run(self, work: Any) -> bool:
        self.made._work = work  # type: ignore[method-assign]

        async def run() -> bool:
            return await asyncio.wait_for(
                self.made.run(
                    lambda url: self.did.append(("serving", url)),
                    lambda result, url: self.did.append(("shown", result, url)),
                ),
                20,
            )

        return asyncio.run(run())


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_demonstration_shows_its_result_and_stays_if_it_is_kept(is_kept: bool) -> None:
    bench = Show(is_kept=is_kept)

    async def work() -> str:
        if is_kept:
            asyncio.get_running_loop().call_soon(
                lambda: asyncio.get_running_loop().call_soon(bench.over.set_result, None)
            )
        return "result"

    assert bench.run(work) is True
    assert bench.did == [
        ("serving", "http://here"),
        ("shown", "result", "http://here"),
        "left",
    ]
    assert bench.over.done() is is_kept


def test_a_demonstration_that_is_interrupted_has_no_result() -> None:
    bench, ended = Show(), []

    async def work() -> None:
        bench.over.set_result(None)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    assert bench.run(work) is False
    assert ended == [True]
    assert bench.did == [("serving", "http://here"), "left"]


def test_a_server_that_fails_ends_the_demonstration_with_its_error() -> None:
    bench = Show()

    async def work() -> None:
        bench.over.set_exception(ValueError("no lease"))
        await asyncio.Event().wait()

    with pytest.raises(ValueError, match="no lease"):
        bench.run(work)
    assert bench.did == [("serving", "http://here")]


@pytest.mark.parametrize("fails", [False, True])
def test_a_plane_has_nodes_and_a_namespace_or_is_closed(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    did: list[Any] = []

    def request(*given: Any) -> None:
        did.append(given)
        if fails:
            raise OSError

    plane = SimpleNamespace(
        create_nodes=lambda count, **options: did.append((count, options)),
        request=request,
        close=lambda: did.append("closed"),
    )

    def start(**options: Any) -> Any:
        did.append(options)
        return plane

    monkeypatch.setattr(demo, "ControlPlane", SimpleNamespace(start=start))
    tools: Any = "tools"
    if fails:
        with pytest.raises(OSError):  # noqa: PT011
            demo.start_plane(tools, did.append)
    else:
        assert demo.start_plane(tools, did.append) is plane
    zones = demo.ZONES
    assert did[:3] == [
        {"tools": "tools", "controller_manager": True, "controllers": demo.CONTROLLERS},
        (9, {"cpu": "8", "memory": "32Gi", "zones": zones}),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": demo.NAMESPACE}}),
    ]
    said = f"9 nodes of 8 CPUs are ready, in the zones {', '.join(zones)}"
    assert did[3:] == (["closed"] if fails else [said])
