"""The played way to an API server: how long requests take, what becomes of them, and of watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from argosy.kubernetes.failures import KubernetesUnreachable
from argosy.kubernetes.kinds import COSCHEDULING_GROUPS, NAMESPACES, NODES, PODS
from argosy.kubernetes.requests import KubernetesCall, RequestAttempt, RequestSettings
from argosy.model.random import Random
from argosy.model.scenario import ConstantLatency, Network, PairLatency, UniformLatency
from argosy.service.kubernetes.played import servers
from argosy.service.kubernetes.played.api import LONGEST_GRACE, PlayedApi
from argosy.service.kubernetes.played.network import PlayedNetwork, PlayedSender, PlayedWatch
from argosy.testing.virtual_loop import VirtualLoop

HOP = 200
POD = {"metadata": {"name": "p", "namespace": "default"}, "spec": {}}


class Dice:
    """Falls as it is told to; otherwise nothing happens."""

    def __init__(self) -> None:
        self.shares: list[float] = []
        self.numbers: list[int] = []
        self.asked: list[int] = []

    def uniform(self) -> float:
        return self.shares.pop(0) if self.shares else 0.999

    def below(self, bound: int) -> int:
        self.asked.append(bound)
        return self.numbers.pop(0) if self.numbers else 0


class Bench:
    def __init__(self, **network: Any) -> None:
        self.loop, self.dice = VirtualLoop(), Dice()
        self.api = PlayedApi(self.loop, Random(1))
        told = Network(**{"latency": ConstantLatency(delay=HOP), **network})
        self.network = PlayedNetwork(self.loop, self.api, told, self.dice)  # type: ignore[arg-type]
        self.sender = PlayedSender(self.network, RequestSettings(timeout=0.005), 1)

    def send(
        self, verb: str = "get", path: str = "", method: str = "GET", body: Any = None
    ) -> tuple[int, Any]:
        """When an answer came, and what it is: its code and how long to wait, or whether the request may
        have been carried out."""
        call = KubernetesCall(
            verb=verb,
            method=method,
            path=path or PODS.path("default", "p"),
            body=None if body is None else msgspec.json.encode(body),
        )

        async def work() -> tuple[int, Any]:
            began = self.loop.micros
            try:
                found: RequestAttempt = await self.sender.exchange(call)
            except KubernetesUnreachable as error:
                return self.loop.micros - began, error.may_have_happened
            return self.loop.micros - began, (found.code, found.retry_after)

        return self.loop.run_until_complete(work())

    def wait(self, micros: int) -> None:
        self.loop.run_until_complete(asyncio.sleep(micros / 1_000_000))


@pytest.fixture
def make() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def one(**network: Any) -> Bench:
        made.append(Bench(**network))
        return made[-1]

    yield one
    for bench in made:
        bench.loop.close()


Make = Callable[..., Bench]


def test_a_request_takes_two_hops_and_is_carried_out_after_the_first(make: Make) -> None:
    bench = make()
    assert bench.send("create", PODS.path("default"), "POST", POD) == (2 * HOP, (201, None))
    assert [(record.at, record.kind, record.is_gone) for record in bench.api.records] == [
        (HOP, "pod", False)
    ]
    assert bench.send() == (2 * HOP, (200, None))
    assert bench.send(path=PODS.path("default", "q")) == (2 * HOP, (404, None))


@pytest.mark.parametrize(
    ("trouble", "answer", "is_made"),
    [
        (0, (2 * HOP, True), True),
        (1, (HOP, False), False),
        (2, (2 * HOP, (429, 1.0)), False),
        (3, (2 * HOP, (500, None)), False),
    ],
    ids=["lost", "broken", "busy", "failed"],
)
def test_each_trouble_has_its_answer(
    make: Make, trouble: int, answer: tuple[int, Any], is_made: bool
) -> None:
    bench = make(loss=0.5)
    bench.dice.shares, bench.dice.numbers = [0.249], [trouble]
    assert bench.send("create", PODS.path("default"), "POST", POD) == answer
    assert bool(bench.api.documents(PODS)) is is_made
    assert bench.dice.asked == [4]
    # The next has none.
    bench.dice.shares = [0.25]
    assert bench.send("get", PODS.path("default", "q"))[1] == (404, None)


@pytest.mark.parametrize(
    ("verb", "trouble", "code", "wait", "is_there"),
    [
        ("bind", 0, 404, None, False),
        ("bind", 1, 409, None, True),
        ("bind", 4, 429, 1.0, True),
        ("evict", 0, 429, None, True),
        ("evict", 3, 429, 1.0, True),
        ("evict", 4, 500, None, True),
        ("delete", 2, 429, 1.0, True),
    ],
)
def test_pods_have_troubles_of_their_own(
    make: Make, verb: str, trouble: int, code: int, wait: float | None, is_there: bool
) -> None:
    bench = make(loss=0.5)
    bench.api.put(PODS, POD)
    bench.dice.shares, bench.dice.numbers = [0.0], [trouble]
    part = {"bind": "binding", "evict": "eviction", "delete": ""}[verb]
    path = PODS.path("default", "p", part)
    target = {"target": {"kind": "Node", "name": "n"}} if verb == "bind" else {}
    assert bench.send(verb, path, "POST", target) == (2 * HOP, (code, wait))
    assert (bench.api.document(PODS, "p") is not None) is is_there
    assert bench.dice.asked == [{"bind": 6, "evict": 5}.get(verb, 4)]


def test_nothing_is_sent_while_the_way_is_cut_and_all_that_is_on_it_is_lost(make: Make) -> None:
    bench = make()
    bench.network.cut(1_000)
    assert bench.send("create", PODS.path("default"), "POST", POD) == (HOP, False)
    bench.wait(1_000)
    bench.loop.at(bench.loop.micros + HOP // 2, lambda: bench.network.cut(1_000))
    assert bench.send("create", PODS.path("default"), "POST", POD) == (2 * HOP, True)
    assert bench.api.documents(PODS) == []
    bench.wait(2_000)
    bench.loop.at(bench.loop.micros + 3 * HOP // 2, lambda: bench.network.cut(1_000))
    # It was carried out and answered already.
    assert bench.send("create", PODS.path("default"), "POST", POD) == (2 * HOP, (201, None))


def test_the_way_is_open_again_when_the_last_cut_is_over(make: Make) -> None:
    bench = make()
    bench.network.cut(300)
    bench.network.cut(500)
    seen = []
    for _ in range(6):
        seen.append(bench.network.is_cut)
        bench.wait(100)
    assert seen == [True] * 5 + [False]
    bench.network.cut(500)
    bench.network.heal()
    assert not bench.network.is_cut


def test_an_answer_that_takes_too_long_may_have_happened(make: Make) -> None:
    bench = make()
    bench.network.slow_down(4_000, 50_000)
    assert bench.send("create", PODS.path("default"), "POST", POD) == (5_000, True)
    assert len(bench.api.documents(PODS)) == 1


def test_requests_of_one_that_is_succeeded_do_not_arrive(make: Make) -> None:
    bench = make()
    bench.loop.at(HOP // 2, lambda: setattr(bench.sender, "is_succeeded", True))
    assert bench.send("create", PODS.path("default"), "POST", POD) == (5_000, True)
    assert bench.api.documents(PODS) == []


def test_slowness_adds_up_and_ends(make: Make) -> None:
    bench = make()
    bench.network.slow_down(100, 300)
    bench.network.slow_down(10, 500)
    hops = []
    for _ in range(6):
        hops.append(bench.network.hop())
        bench.wait(100)
    assert hops == [310, 310, 310, 210, 210, 200]


@pytest.mark.parametrize(
    ("latency", "hop", "asked"),
    [
        (ConstantLatency(delay=70), 70, []),
        (UniformLatency(low=50, high=80), 59, [30]),
        (UniformLatency(low=50, high=50), 59, [1]),
        (PairLatency(default=90, delays={"a>b": 1}), 90, []),
    ],
)
def test_each_network_has_its_hops_until_it_is_healed(
    make: Make, latency: Any, hop: int, asked: list[int]
) -> None:
    bench = make(latency=latency)
    bench.dice.numbers = [9]
    bench.network.extra = 1_000
    assert bench.network.hop() == hop + 1_000
    assert bench.dice.asked == asked
    bench.network.heal()
    assert (bench.network.hop(), bench.network.extra) == (500, 0)


def test_chances_are_those_of_the_network_and_none_when_it_is_healed(make: Make) -> None:
    bench = make(loss=1.0)
    bench.dice.shares = [0.3, 0.3]
    assert (bench.network.chance(0.31), bench.network.chance(0.3)) == (True, False)
    bench.dice.shares = [0.0]
    assert bench.network.chance(0.0) is False
    bench.network.heal()
    assert bench.network.chance(1.0) is False
    assert bench.dice.shares == [0.0]


# Watches.


def watch(bench: Bench, path: str = "") -> PlayedWatch:
    made = PlayedWatch(bench.network, path or PODS.path())
    bench.network.watches.append(made)
    return made


def heard(bench: Bench, made: PlayedWatch, until: int) -> tuple[list[tuple[int, str]], bool]:
    """What came by then, and whether the connection broke."""

    async def read() -> tuple[list[tuple[int, str]], bool]:
        found: list[tuple[int, str]] = []
        try:
            async for line in made.iter_any():
                event = msgspec.json.decode(line)
                found.append((bench.loop.micros, event["object"]["metadata"]["name"]))
        except KubernetesUnreachable as error:
            return found, error.may_have_happened
        return found, False

    def end() -> None:
        if made in bench.network.watches:
            made.end(is_broken=False)

    bench.loop.at(until, end)
    return bench.loop.run_until_complete(read())


def news(bench: Bench, name: str, kind: Any = PODS) -> None:
    bench.api.put(kind, {"metadata": {"name": name}})


def test_news_reach_the_watches_of_their_kind_a_hop_later(make: Make) -> None:
    bench = make()
    pods, nodes = watch(bench), watch(bench, NODES.path())
    bench.loop.at(100, lambda: news(bench, "p"))
    assert heard(bench, pods, 1_000) == ([(300, "p")], False)
    bench.loop.at(1_150, lambda: news(bench, "n", NODES))
    assert heard(bench, nodes, 2_000) == ([(1_350, "n")], False)


def test_news_may_be_late_and_come_twice_and_keep_their_order(make: Make) -> None:
    bench = make(reordering=0.5, duplication=0.5, extra_delay=400)
    pods = watch(bench)
    # Reordered by 90 and not doubled; neither; doubled only.
    bench.dice.shares, bench.dice.numbers = [0.1, 0.9, 0.9, 0.9, 0.9, 0.1], [90]
    for name in "abc":
        news(bench, name)
    told = [(290, "a"), (290, "b"), (290, "c"), (290, "c")]
    assert heard(bench, pods, 1_000) == (told, False)
    assert bench.dice.asked == [400]


def test_nothing_is_heard_while_it_is_silent(make: Make) -> None:
    bench = make()
    pods = watch(bench)
    bench.network.silence(900)
    bench.network.silence(400)
    news(bench, "a")
    bench.loop.at(800, lambda: news(bench, "b"))
    assert heard(bench, pods, 2_000) == ([(900, "a"), (1_000, "b")], False)
    bench.network.silence(10**9)
    bench.network.heal()
    assert bench.network.silent_until == 0


@pytest.mark.parametrize(("number", "is_broken"), [(0, True), (1, False)])
@pytest.mark.parametrize("forgets", [False, True])
def test_a_watch_may_break_or_end_and_its_version_be_forgotten(
    make: Make, number: int, is_broken: bool, forgets: bool
) -> None:
    bench = make(loss=0.8)
    pods, nodes = watch(bench), watch(bench, NODES.path())
    news(bench, "first", NAMESPACES)
    # A twentieth of losses.
    bench.dice.shares = [0.041, 0.039, 0.29 if forgets else 0.31]
    bench.dice.numbers = [number]
    news(bench, "a")
    news(bench, "b")
    assert heard(bench, pods, 1_000) == ([], is_broken)
    assert bench.network.watches == [nodes]
    assert (bench.api._oldest > 0) is forgets
    # Those that broke hear of nothing afterwards.
    news(bench, "c")
    assert bench.dice.shares == []


def test_a_cut_breaks_every_watch(make: Make) -> None:
    bench = make()
    made = [watch(bench), watch(bench, NODES.path())]
    bench.dice.numbers, bench.dice.shares = [1, 0], [0.5]
    bench.network.cut(1_000)
    assert bench.network.watches == []
    assert [heard(bench, each, 500) for each in made] == [([], False), ([], True)]
    assert bench.api._oldest == 0
    news(bench, "a")
    bench.dice.shares = [0.1]
    bench.network.cut(1_000)
    assert bench.api._oldest == bench.api._version > 0


def streamed(bench: Bench, seconds: str = "1") -> tuple[int, list[int]]:
    """When a watch began and ended, and how many watches there were meanwhile and afterwards."""
    call = KubernetesCall(
        verb="watch",
        method="GET",
        path=PODS.path(),
        parameters={"timeoutSeconds": seconds, "watch": "true"},
    )

    async def work() -> tuple[int, list[int]]:
        counts = []
        async with bench.sender.stream(call) as made:
            began = bench.loop.micros
            counts.append(len(bench.network.watches))
            counts += [bench.loop.micros - began async for _ in made.iter_any()]
            counts.append(bench.loop.micros - began)
        counts.append(len(bench.network.watches))
        return began, counts

    return bench.loop.run_until_complete(work())


def test_a_stream_begins_after_a_hop_with_what_there_is_and_ends_in_time(make: Make) -> None:
    bench = make()
    news(bench, "p")
    began, counts = streamed(bench, "2")
    assert began == HOP
    assert (counts[0], counts[-1], counts[-2]) == (1, 0, 2_000_000)
    # The pod, and that there is no more.
    assert counts[1:-2] == [HOP, HOP]


def test_no_stream_begins_while_the_way_is_cut(make: Make) -> None:
    bench = make()
    bench.network.cut(1_000)
    with pytest.raises(KubernetesUnreachable) as caught:
        streamed(bench)
    assert caught.value.may_have_happened is False
    assert (bench.loop.micros, bench.network.watches) == (HOP, [])


# The API server.


def test_what_matters_to_recounts_is_recorded_with_its_time(make: Make) -> None:
    bench = make()
    news(bench, "n", NODES)
    news(bench, "s", NAMESPACES)
    bench.wait(70)
    news(bench, "g", COSCHEDULING_GROUPS)
    news(bench, "p")
    bench.api.remove(PODS, "p")
    seen = [(each.at, each.kind, each.is_gone) for each in bench.api.records]
    assert seen == [
        (0, "node", False),
        (70, "group", False),
        (70, "pod", False),
        (70, "pod", True),
    ]


def test_a_pod_on_a_node_leaves_it_after_a_while_unless_it_is_another_by_then(make: Make) -> None:
    bench = make()
    news(bench, "n", NODES)
    for name in ("old", "again"):
        bench.api.put(PODS, {"metadata": {"name": name, "uid": name}, "spec": {"nodeName": "n"}})
        bench.api.remove(PODS, name)
    # Deleted once more it is gone, and its name is another's.
    bench.api.remove(PODS, "again")
    bench.api.put(PODS, {"metadata": {"name": "again", "uid": "new"}, "spec": {"nodeName": "n"}})
    names = [each["metadata"]["name"] for each in bench.api.documents(PODS)]
    assert sorted(names) == ["again", "old"]
    bench.wait(LONGEST_GRACE)
    assert [each["metadata"]["uid"] for each in bench.api.documents(PODS)] == ["new"]


def test_how_long_a_pod_takes_to_leave_is_drawn() -> None:
    ends = []
    for seed in range(6):
        loop = VirtualLoop()
        api = PlayedApi(loop, Random(seed))
        api.put(NODES, {"metadata": {"name": "n"}})
        api.put(PODS, {"metadata": {"name": "p", "uid": "p"}, "spec": {"nodeName": "n"}})
        api.remove(PODS, "p")
        loop.run_until_complete(asyncio.sleep(2 * LONGEST_GRACE / 1_000_000))
        ends.append(api.records[-1].at)
        assert api.records[-1].is_gone
        loop.close()
    assert len(set(ends)) == 6
    assert max(ends) < LONGEST_GRACE


@pytest.mark.parametrize("node", ["", "gone"])
def test_a_pod_without_its_node_is_gone_at_once(make: Make, node: str) -> None:
    bench = make()
    bench.api.put(PODS, {"metadata": {"name": "p"}, "spec": {"nodeName": node}})
    bench.api.remove(PODS, "p")
    assert bench.api.documents(PODS) == []


# Servers.


class Servers:
    """One server, and what is heard of it."""

    def __init__(self, bench: Bench, directory: Any) -> None:
        self.failed: list[BaseException] = []
        self.gave_up = 0
        self.loop = bench.loop
        self.loop.set_task_factory(servers.owned_task)  # type: ignore[arg-type]
        self.server = servers.PlayedServer(
            None,  # type: ignore[arg-type]
            {},
            bench.network,
            directory,
            7,
            self.failed.append,
            self._give_up,
        )

    def _give_up(self) -> None:
        self.gave_up += 1

    def run(self, work: Callable[[], Any], micros: int = 1_000) -> None:
        self.server._run = work  # type: ignore[method-assign]
        self.server.start()
        self.loop.run_until_complete(asyncio.sleep(micros / 1_000_000))


def test_a_server_that_cannot_read_what_there_is_gives_up_and_others_fail(
    make: Make, tmp_path: Any
) -> None:
    found = Servers(make(), tmp_path)

    async def unreachable() -> None:
        raise KubernetesUnreachable("get", "broke", may_have_happened=False)

    async def wrong() -> None:
        raise ValueError("x")

    found.run(unreachable)
    assert (found.gave_up, found.failed) == (1, [])
    found.run(wrong)
    assert (found.gave_up, [str(each) for each in found.failed]) == (1, ["x"])
    found.server.pods = object()  # type: ignore[assignment]
    found.run(unreachable)
    assert (found.gave_up, len(found.failed)) == (1, 2)
    assert found.server._tasks == {}


def test_killing_a_server_cancels_all_its_tasks_and_those_that_come(
    make: Make, tmp_path: Any
) -> None:
    found, ended = Servers(make(), tmp_path), []
    closed: list[int] = []
    found.server._store = type("S", (), {"close": lambda self: closed.append(1)})()

    async def part(name: str) -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            ended.append(name)
            raise

    async def work() -> None:
        tasks = [asyncio.create_task(part(name)) for name in "ab"]
        await asyncio.gather(*tasks)

    found.run(work)
    assert len(found.server._tasks) == 3
    found.server.kill()
    found.server.kill()
    assert (found.server.is_dead, closed) == (True, [1])
    found.loop.run_until_complete(asyncio.sleep(0.001))
    assert sorted(ended) == ["a", "b"]
    assert (found.server._tasks, found.failed, found.gave_up) == ({}, [], 0)
    found.run(work)
    assert found.server._tasks == {}


def test_a_server_may_be_killed_once_its_turn_is_written(make: Make, tmp_path: Any) -> None:
    server = Servers(make(), tmp_path).server
    server._turn_written(0.1)
    server.after_writing = server.kill
    with pytest.raises(servers.ServerKilled):
        server._turn_written(0.1)
    assert server.directory == tmp_path


def test_what_is_no_error_becomes_one() -> None:
    known = ValueError("x")
    assert servers.as_error(known) is known
    assert "KeyboardInterrupt" in str(servers.as_error(KeyboardInterrupt()))
