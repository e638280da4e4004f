"""The network of a played cluster: how long a hop takes, what becomes of requests, and what watches
hear."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest
from told_dice import ToldDice

from argosy.kubernetes.failures import KubernetesUnreachable
from argosy.kubernetes.kinds import NODES, PODS
from argosy.kubernetes.requests import KubernetesCall, RequestSettings
from argosy.model.scenario import ConstantLatency, Network, PairLatency, UniformLatency
from argosy.service.kubernetes.played.api import PlayedApi
from argosy.service.kubernetes.played.network import PlayedNetwork, PlayedSender, PlayedWatch
from argosy.testing.virtual_loop import VirtualLoop

PATH = "/api/v1/namespaces/default/pods"
BIND = KubernetesCall(
    verb="bind",
    method="POST",
    path=f"{PATH}/p/binding",
    body=msgspec.json.encode({"metadata": {}, "target": {"name": "n"}}),
)
EVICT = KubernetesCall(verb="evict", method="POST", path=f"{PATH}/p/eviction", body=b"{}")
GET = KubernetesCall(verb="get", method="GET", path=f"{PATH}/p")
WATCH = KubernetesCall(
    verb="watch", method="GET", path=PATH, parameters={"timeoutSeconds": "7", "watch": "1"}
)
Make = Callable[..., PlayedNetwork]


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


@pytest.fixture
def make(loop: VirtualLoop) -> Make:
    def network(dice: ToldDice | None = None, **conditions: Any) -> PlayedNetwork:
        """With a node and a pod, and hops of 1 ms."""
        api = PlayedApi(loop, ToldDice())  # type: ignore[arg-type]
        api.put(NODES, {"metadata": {"name": "n"}})
        api.put(PODS, {"metadata": {"name": "p"}, "spec": {}, "status": {}})
        known = Network(**{"latency": ConstantLatency(delay=1_000), **conditions})
        return PlayedNetwork(loop, api, known, dice or ToldDice())  # type: ignore[arg-type]

    return network


class TestConditions:
    @pytest.mark.parametrize(
        ("latency", "drawn", "bound", "hop"),
        [
            (ConstantLatency(delay=70), 0, [], 70),
            (UniformLatency(low=100, high=400), 0, [300], 100),
            (UniformLatency(low=100, high=400), 299, [300], 399),
            (UniformLatency(low=100, high=100), 0, [1], 100),
            (PairLatency(default=60, delays={"a>b": 9}), 0, [], 60),
        ],
    )
    def test_a_hop_takes_as_long_as_the_scenario_says(
        self, make: Make, loop: VirtualLoop, latency: Any, drawn: int, bound: list[int], hop: int
    ) -> None:
        dice = ToldDice(below=[drawn, drawn])
        network = make(dice, latency=latency)
        assert network.hop() == hop
        assert dice.bounds == bound
        network.slow_down(1_000, 5)
        assert network.hop() == hop + 1_000
        network.heal()
        assert network.hop() == 500

    def test_what_slows_hops_down_adds_up_and_ends_each_in_its_time(
        self, make: Make, loop: VirtualLoop
    ) -> None:
        network = make()
        network.slow_down(10, 5)
        network.slow_down(200, 8)
        seen = []
        for at in (4, 6, 9):
            loop.at(at, lambda: seen.append(network.hop()))
        loop.run_until_complete(asyncio.sleep(0.001, None))
        assert seen == [1_210, 1_200, 1_000]

    def test_a_cut_lasts_until_the_last_one_has_mended(self, make: Make, loop: VirtualLoop) -> None:
        network = make()
        network.cut(5)
        network.cut(9)
        seen = []
        for at in (4, 6, 10):
            loop.at(at, lambda: seen.append(network.is_cut))
        loop.run_until_complete(asyncio.sleep(0.001, None))
        assert seen == [True, True, False]
        network.cut(5)
        network.heal()
        assert not network.is_cut

    def test_chances_are_taken_only_while_something_may_go_wrong(self, make: Make) -> None:
        dice = ToldDice(uniform=[0.3, 0.29])
        network = make(dice)
        assert not network.chance(0)
        assert dice.drawn == 0
        assert [network.chance(0.3), network.chance(0.3)] == [False, True]
        network.heal()
        assert not network.chance(1)
        assert dice.drawn == 2

    def test_silence_lasts_until_the_latest_end(self, make: Make) -> None:
        network = make()
        network.silence(100)
        network.silence(40)
        assert network.silent_until == 100
        network.heal()
        assert network.silent_until == 0

    @pytest.mark.parametrize(
        ("call", "kinds"),
        [
            (BIND, ["gone", "conflict", "lost", "broken", "busy", "failed"]),
            (EVICT, ["budget", "lost", "broken", "busy", "failed"]),
            (GET, ["lost", "broken", "busy", "failed"]),
        ],
    )
    def test_half_of_what_is_lost_of_messages_is_the_trouble_of_requests(
        self, make: Make, call: KubernetesCall, kinds: list[str]
    ) -> None:
        for number, kind in enumerate(kinds):
            dice = ToldDice([0.19], [number])
            assert make(dice, loss=0.4).trouble(call) == kind
            assert dice.bounds == [len(kinds)]
        assert make(ToldDice([0.2]), loss=0.4).trouble(call) == ""


class TestWatches:
    @pytest.fixture
    def watches(self, loop: VirtualLoop) -> Callable[..., list[tuple[int, bytes]]]:
        """What a watch of pods hears, with the times; it ends after so many microseconds."""

        def hear(network: PlayedNetwork, *steps: tuple[int, Callable[[], object]]) -> Any:
            watch = PlayedWatch(network, PODS.path())
            network.watches.append(watch)
            heard = []

            async def read() -> None:
                async for line in watch.iter_any():
                    document = msgspec.json.decode(line)["object"]
                    heard.append((loop.micros, document["metadata"]["name"]))

            for at, step in steps:
                loop.at(at, step)
            loop.at(50_000, lambda: watch.end(is_broken=False))
            loop.run_until_complete(read())
            return heard

        return hear

    def put(self, network: PlayedNetwork, name: str, kind: Any = PODS) -> Callable[[], object]:
        return lambda: network.api.put(kind, {"metadata": {"name": name}, "spec": {}})

    def test_news_of_its_kind_arrive_after_a_hop(self, make: Make, watches: Any) -> None:
        network = make()
        steps = [(10, self.put(network, "a")), (20, self.put(network, "b", NODES))]
        heard = watches(network, *steps, (30, lambda: network.api.remove(PODS, "a")))
        assert heard == [(1_010, "a"), (1_030, "a")]
        assert network.watches == []

    @pytest.mark.parametrize(
        ("drawn", "bounds", "heard"),
        [
            ([0.3, 0.9], [], [(1_010, "a")]),
            ([0.29, 0.9], [600], [(1_410, "a")]),
            # What is told twice comes twice.
            ([0.9, 0.19], [], [(1_010, "a"), (1_010, "a")]),
            ([0.29, 0.19], [600], [(1_410, "a"), (1_410, "a")]),
        ],
    )
    def test_news_may_be_late_and_be_told_twice(
        self, make: Make, watches: Any, drawn: list[float], bounds: list[int], heard: Any
    ) -> None:
        dice = ToldDice(drawn, [400])
        network = make(dice, reordering=0.3, extra_delay=600, duplication=0.2)
        assert watches(network, (10, self.put(network, "a"))) == heard
        assert dice.bounds == bounds

    def test_nothing_is_late_if_there_is_no_delay(self, make: Make, watches: Any) -> None:
        dice = ToldDice([0.0])
        network = make(dice, reordering=0.5)
        assert watches(network, (10, self.put(network, "a"))) == [(1_010, "a")]
        assert dice.bounds == [1]

    def test_nothing_is_heard_while_it_is_silent(self, make: Make, watches: Any) -> None:
        network = make()
        steps = [(5, lambda: network.silence(3_000)), (10, self.put(network, "a"))]
        heard = watches(network, *steps, (2_500, self.put(network, "b")))
        assert heard == [(3_005, "a"), (3_500, "b")]

    @pytest.mark.parametrize(("drawn", "ends"), [(0.009, True), (0.01, False)])
    def test_a_twentieth_of_what_is_lost_of_messages_ends_watches(
        self, make: Make, drawn: float, ends: bool
    ) -> None:
        network = make(ToldDice([drawn]), loss=0.2)
        first, other = (PlayedWatch(network, kind.path()) for kind in (PODS, NODES))
        network.watches += [other, first]
        network.api.put(PODS, {"metadata": {"name": "a"}, "spec": {}})
        assert network.watches == ([other] if ends else [other, first])

    @pytest.mark.parametrize(("drawn", "forgets"), [(0.29, True), (0.3, False)])
    def test_with_a_watch_that_ends_what_it_knew_may_be_forgotten(
        self, make: Make, drawn: float, forgets: bool
    ) -> None:
        network = make(ToldDice([0.0, drawn]), loss=0.2)
        network.watches.append(PlayedWatch(network, PODS.path()))
        network.api.put(PODS, {"metadata": {"name": "a"}, "spec": {}})
        [line] = network.api.opening(PODS.path(), {"resourceVersion": "2"})
        assert (b'"ERROR"' in line) == forgets

    @pytest.mark.parametrize(("drawn", "is_broken"), [(0, True), (1, False)])
    @pytest.mark.parametrize(("forgets", "lines"), [(0.3, 1), (0.29, 0)])
    def test_a_cut_ends_all_watches_and_what_they_knew_may_be_forgotten(
        self,
        make: Make,
        loop: VirtualLoop,
        drawn: int,
        is_broken: bool,
        forgets: float,
        lines: int,
    ) -> None:
        dice = ToldDice([forgets], [drawn])
        network = make(dice)
        watch = PlayedWatch(network, PODS.path())
        network.watches.append(watch)
        network.cut(10)
        assert network.watches == []
        assert dice.bounds == [2]

        async def read() -> list[bytes]:
            return [line async for line in watch.iter_any()]

        if is_broken:
            with pytest.raises(KubernetesUnreachable, match="the connection broke") as caught:
                loop.run_until_complete(read())
            assert caught.value.may_have_happened
        else:
            assert loop.run_until_complete(read()) == []
        opening = list(network.api.opening(PODS.path(), {"resourceVersion": "1"}))
        assert [b'"ADDED"' in line for line in opening] == [True] * lines + [False] * (1 - lines)


class TestRequests:
    @pytest.fixture
    def send(self, loop: VirtualLoop) -> Callable[..., Any]:
        """The outcome of a request, and when it was there."""

        def send(network: PlayedNetwork, call: KubernetesCall, **known: Any) -> Any:
            sender = PlayedSender(network, RequestSettings(timeout=3.0), 1)
            sender.is_succeeded = known.get("is_succeeded", False)

            async def outcome() -> Any:
                try:
                    return await sender.exchange(call)
                except KubernetesUnreachable as error:
                    return error

            return loop.run_until_complete(outcome()), loop.micros

        return send

    def node_of(self, network: PlayedNetwork) -> str | None:
        document = network.api.document(PODS, "p")
        return None if document is None else document["spec"].get("nodeName", "")

    def test_an_answer_takes_a_hop_there_and_a_hop_back(self, make: Make, send: Any) -> None:
        network = make()
        answer, at = send(network, BIND)
        assert (answer.code, answer.retry_after, at) == (200, None, 2_000)
        assert self.node_of(network) == "n"
        answer, at = send(network, GET)
        assert msgspec.json.decode(answer.body)["spec"]["nodeName"] == "n"

    @pytest.mark.parametrize(
        ("trouble", "code", "wait", "node"),
        [
            ("gone", 404, None, None),
            ("conflict", 409, None, ""),
            ("busy", 429, 1.0, ""),
            ("failed", 500, None, ""),
        ],
    )
    def test_each_trouble_has_its_answer(
        self, make: Make, send: Any, trouble: str, code: int, wait: float | None, node: str | None
    ) -> None:
        number = ["gone", "conflict", "lost", "broken", "busy", "failed"].index(trouble)
        network = make(ToldDice([0.0], [number]), loss=1.0)
        answer, at = send(network, BIND)
        assert (answer.code, answer.retry_after, at) == (code, wait, 2_000)
        assert msgspec.json.decode(answer.body)["code"] == code
        assert self.node_of(network) == node

    def test_a_budget_keeps_a_pod(self, make: Make, send: Any) -> None:
        network = make(ToldDice([0.0], [0]), loss=1.0)
        answer, _ = send(network, EVICT)
        document = msgspec.json.decode(answer.body)
        assert (answer.code, answer.retry_after) == (429, None)
        assert document["details"]["causes"] == [{"reason": "DisruptionBudget"}]
        assert self.node_of(network) == ""

    def test_a_pod_that_is_gone_already_cannot_be_taken_away(self, make: Make, send: Any) -> None:
        network = make(ToldDice([0.0], [0]), loss=1.0)
        network.api.remove(PODS, "p")
        assert send(network, BIND)[0].code == 404

    @pytest.mark.parametrize(
        ("trouble", "happened", "at", "node"),
        [("lost", True, 2_000, "n"), ("broken", False, 1_000, "")],
    )
    def test_without_an_answer_it_may_have_happened_if_it_was_sent(
        self, make: Make, send: Any, trouble: str, happened: bool, at: int, node: str
    ) -> None:
        number = ["gone", "conflict", "lost", "broken"].index(trouble)
        network = make(ToldDice([0.0], [number]), loss=1.0)
        error, when = send(network, BIND)
        assert isinstance(error, KubernetesUnreachable)
        assert (error.may_have_happened, when, self.node_of(network)) == (happened, at, node)
        told = (error.request, error.problem)
        assert told[0] == "POST /api/v1/namespaces/default/pods/p/binding"
        assert "the connection to http://played broke" in told[1]

    @pytest.mark.parametrize(
        ("cut_at", "lasts", "happened", "at"),
        [(0, 100, False, 1_000), (500, 1_000, True, 2_000), (500, 100, None, 2_000)],
    )
    def test_a_cut_stops_what_arrives_meanwhile(
        self,
        make: Make,
        loop: VirtualLoop,
        send: Any,
        cut_at: int,
        lasts: int,
        happened: bool | None,
        at: int,
    ) -> None:
        network = make()
        if cut_at:
            loop.at(cut_at, lambda: network.cut(lasts))
        else:
            network.cut(lasts)
        outcome, when = send(network, BIND)
        assert when == at
        assert getattr(outcome, "may_have_happened", None) is happened
        assert self.node_of(network) == ("n" if happened is None else "")

    def test_an_answer_that_takes_too_long_is_not_waited_for(
        self, make: Make, loop: VirtualLoop, send: Any
    ) -> None:
        network = make(latency=ConstantLatency(delay=2_000_000))
        error, at = send(network, BIND)
        assert (error.may_have_happened, at, self.node_of(network)) == (True, 3_000_000, "n")
        # The answer that comes later meets nobody.
        loop.run_until_complete(asyncio.sleep(5))

    def test_what_a_former_scheduler_has_sent_does_not_arrive(self, make: Make, send: Any) -> None:
        network = make()
        error, at = send(network, BIND, is_succeeded=True)
        assert (error.may_have_happened, at, self.node_of(network)) == (True, 3_000_000, "")

    def test_delays_of_a_sender_are_drawn_from_its_seed(self, make: Make) -> None:
        network = make()
        drawn = [
            PlayedSender(network, RequestSettings(), seed).random.random() for seed in (3, 3, 4)
        ]
        assert drawn == [random.Random(seed).random() for seed in (3, 3, 4)]

    def test_a_watch_begins_with_what_there_is_and_ends_in_its_time(
        self, make: Make, loop: VirtualLoop
    ) -> None:
        network = make()
        sender = PlayedSender(network, RequestSettings(), 1)

        async def read() -> list[Any]:
            async with sender.stream(WATCH) as watch:
                assert network.watches == [watch]
                assert watch.path == PODS.path()
                return [
                    (loop.micros, msgspec.json.decode(x)["type"]) async for x in watch.iter_any()
                ]

        assert loop.run_until_complete(read()) == [(2_000, "ADDED"), (2_000, "BOOKMARK")]
        assert loop.micros == 7_001_000
        assert network.watches == []

    def test_a_watch_that_is_left_hears_no_more(self, make: Make, loop: VirtualLoop) -> None:
        network = make()

        async def leave() -> None:
            async with PlayedSender(network, RequestSettings(), 1).stream(WATCH):
                pass

        loop.run_until_complete(leave())
        assert network.watches == []
        assert loop.micros == 1_000

    def test_there_is_no_watch_while_it_is_cut(self, make: Make, loop: VirtualLoop) -> None:
        network = make()
        network.cut(5_000)
        stream = PlayedSender(network, RequestSettings(), 1).stream(WATCH)
        work: Awaitable[Any] = stream.__aenter__()
        with pytest.raises(KubernetesUnreachable) as caught:
            loop.run_until_complete(work)  # type: ignore[arg-type]
        assert not caught.value.may_have_happened
        assert loop.micros == 1_000
        assert network.watches == []
