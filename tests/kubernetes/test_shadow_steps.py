"""A shadowed engine and its session step by step, and a replica that leads or has lost its lease."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest
from test_placements import APART, judged, node, pod
from test_shadow_session import Bench
from test_shadow_session import pod as plain_pod
from tracked_pods import tracked

from argosy.kubernetes.failures import ServerFailed
from argosy.model.explanations import Explanation, Why
from argosy.service.kubernetes import serving
from argosy.service.kubernetes.rights import LeadershipLost
from argosy.service.kubernetes.shadow import session as session_module
from argosy.service.kubernetes.shadow.engine import ShadowedEngine
from argosy.service.kubernetes.shadow.placements import PlacementRecord
from argosy.worlds.kubernetes.requests import node_capacity
from argosy.worlds.kubernetes.tracked import BindOrder, CreateOrder, EvictOrder, PodState


class TestJudging:
    def test_pods_on_nodes_that_are_gone_count_for_nothing(self) -> None:
        found = judged([node("m")], p=(pod("p", "9"), "gone"), q=(pod("q"), "m"))
        assert (found.overcommitted, found.nodes_used, found.nodes_spare) == (0, 1, 0)
        assert found.broken_rules == 0

    def test_a_node_that_cannot_be_emptied_altogether_keeps_its_pods(self) -> None:
        nodes = [node("m"), node("n"), node("o")]
        # Of the two pods on m, one fits on n; the other fits nowhere, so the first stays as well.
        found = judged(
            nodes,
            a=(pod("a"), "m"),
            b=(pod("b", "2"), "m"),
            q=(pod("q", "3"), "n"),
            r=(pod("r", "3500m"), "o"),
        )
        assert (found.nodes_used, found.nodes_spare, found.overcommitted) == (3, 0, 0)
        again = judged(nodes, a=(pod("a"), "m"), b=(pod("b", "2"), "m"), q=(pod("q"), "n"))
        assert (again.nodes_used, again.nodes_spare) == (2, 2)

    def test_what_is_full_to_the_brim_is_not_overcommitted(self) -> None:
        found = judged([node("m", "2"), node("n", "2")], p=(pod("p", "2"), "m"))
        assert (found.overcommitted, found.nodes_used, found.nodes_spare) == (0, 1, 1)

    def test_a_pod_does_not_stand_in_its_own_way(self) -> None:
        found = judged([node("m")], p=(pod("p", affinity=APART), "m"))
        assert found.broken_rules == 0


class TestRecords:
    def test_time_that_goes_back_counts_for_nothing(self) -> None:
        record = PlacementRecord(10.0)
        record.set_capacity("m", node_capacity(node("m"), ["pods"]))
        record.put(pod("p", "1"), "m")
        record.advance(12.0)
        record.advance(11.0)
        record.advance(14.0)
        assert record.utilisation("cpu") == pytest.approx(0.25)
        record.set_capacity("m", node_capacity(node("m", "2"), ["pods"]))
        record.advance(18.0)
        # Four seconds a quarter, four seconds a half.
        assert record.utilisation("cpu") == pytest.approx((4 * 1 + 4 * 1) / (4 * 4 + 4 * 2))
        record.set_capacity("m", None)
        record.advance(99.0)
        assert record._total["cpu"] == 0
        assert PlacementRecord(0.0).utilisation("cpu") == 0.0
        assert record.waits == {}
        assert not record.pods["p"].is_compared

    def test_waits_are_told_by_their_quantiles(self) -> None:
        record = PlacementRecord(0.0)
        for at in range(1, 11):
            record.advance(float(at))
            record.put(pod(f"p{at}"), "m", since=0.0)
        assert (record.wait(0.5), record.wait(0.9), record.wait(1.0)) == (5.0, 9.0, 10.0)
        assert (record.wait(0.91), record.wait(0.0)) == (10.0, 1.0)


def engine(**fields: Any) -> Any:
    """An engine whose pods and record only remember."""
    made = object.__new__(ShadowedEngine)
    made.name = "s"
    made.pods = Mock(orders=deque(), refused=deque(), pods={}, has_unformed=False)
    made.pods.is_short.return_value = False
    made.record = Mock(evictions=0)
    made.cluster = SimpleNamespace(tell=lambda action: action(None))  # type: ignore[assignment]
    made._real, made._nodes, made._explained, made.evicted = {}, {}, {}, []
    made._since = lambda uid: 3.0
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class TestShadowedEngines:
    def test_what_is_decided_happens_at_once_and_only_here(self) -> None:
        made = engine()
        here, there = plain_pod("a"), plain_pod("b", "n0")
        made._real = {"a": here, "b": there}
        made._nodes = {"b": "n0"}
        made.pods.refused.append("x")
        made.pods.orders.extend(
            [
                CreateOrder("j", {}),
                BindOrder(here, "n1"),
                BindOrder(plain_pod("gone"), "n1"),
                EvictOrder(there, Why.PREEMPTED),
                EvictOrder(plain_pod("gone"), Why.PREEMPTED),
            ]
        )
        made._pump()
        assert made._nodes == {"a": "n1"}
        assert made.record.put.mock_calls == [call(here, "n1", since=3.0)]
        assert made.pods.bound.mock_calls == [call("a")]
        assert (made.evicted, made.record.evictions) == ([there], 1)
        # Another pod like it waits.
        assert made.record.remove.mock_calls == [call("b")]
        assert made.pods.remove_pod.mock_calls == [call("b")]
        [again] = [each.args[0] for each in made.pods.set_pod.mock_calls]
        assert (again.uid, again.spec.node_name, again.spec.scheduler_name) == ("b", "", "s")
        assert made.record.advance.call_count == 4
        assert not made.pods.refused

    @pytest.mark.parametrize("is_fixed", [False, True])
    def test_a_pod_that_is_fixed_stays_where_it_is(self, is_fixed: bool) -> None:
        made, shown = engine(), plain_pod("a", "n0")
        made.show(shown, is_fixed=is_fixed)
        [seen] = [each.args[0] for each in made.pods.set_pod.mock_calls]
        assert seen.spec.node_name == ("n0" if is_fixed else "")
        assert made.record.put.mock_calls == ([call(shown, "n0")] if is_fixed else [])
        assert made._real == {"a": shown}
        assert made.pods.flush.call_count == 1

    def test_what_has_ended_is_forgotten(self) -> None:
        made, ended = engine(), plain_pod("a")
        made._real, made._nodes, made._explained = ({"a": 1, "b": 2} for _ in range(3))
        made.end(ended)
        assert made._real == made._nodes == made._explained == {"b": 2}
        assert made.record.remove.mock_calls == [call("a")]
        assert made.pods.remove_pod.mock_calls == [call("a", by_itself=True)]

    def test_it_looks_again_if_there_is_a_reason(self) -> None:
        made = engine()
        for needs in (False, True):
            made.pods.needs_look = needs
            made.look_again()
            assert made.pods.look_again.call_count == int(needs)

    def test_pods_that_it_does_not_take_say_why_and_others_once_it_is_explained(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = engine()
        made.pods.pods = {
            "refused": tracked(PodState.OUTSIDE, "refused", obstacle="no volumes"),
            "free": tracked(PodState.OUTSIDE, "free"),
            "waits": tracked(PodState.WAITING, "waits", obstacle="old"),
        }
        made.pods.rulebook.nodes = {"n0": 0}
        view = SimpleNamespace(machine_name=lambda number: f"n{number}")
        world = SimpleNamespace(
            host=SimpleNamespace(view=view), take_explained=lambda: {"j": Explanation()}
        )
        monkeypatch.setattr(ShadowedEngine, "_world", property(lambda self: world))
        assert made.unsupported == 1
        assert made.reason_to_wait("refused") == "no volumes"
        assert made.reason_to_wait("waits") == ""
        made.pods.waits.side_effect = lambda job: [made.pods.pods["waits"]]
        made._turn_ended(0.0)
        assert made.reason_to_wait("waits") == "0/1 nodes are available."
        assert made.pods.found_short.mock_calls == []
        assert made.pods.flush.call_count == 0
        made.pods.is_short.return_value = True
        made.pods.has_unformed = True
        made._turn_ended(0.0)
        assert made.pods.found_short.mock_calls == [call("j")]
        assert made.pods.flush.call_count == 2

    def test_closing_waits_for_the_world_and_closes_the_database(self) -> None:
        did: list[str] = []

        async def live() -> None:
            did.append("lived")

        async def close() -> None:
            made = engine(
                cluster=SimpleNamespace(stop=lambda: did.append("stop")),
                _store=SimpleNamespace(close=lambda: did.append("closed")),
                _living=None,
            )
            await made.close()
            made._living = asyncio.ensure_future(live())
            await made.close()

        asyncio.run(close())
        assert did == ["stop", "closed", "stop", "lived", "closed"]


class TestSessions:
    def test_engines_are_compared_with_the_cluster(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bench = Bench(monkeypatch, plain_pod("before", "m"))
        shadow = engine(record=PlacementRecord(100.0))
        shadow.show = lambda pod, is_fixed: None
        shadow.end = lambda pod: None
        shadow.pods.pods = {"x": tracked(PodState.OUTSIDE, obstacle="no")}
        bench.session.engines.append(shadow)
        for name in ("p", "q", "r", "s"):
            bench.tell(None, plain_pod(name), at=1)
        for name in ("p", "q"):
            bench.tell(plain_pod(name), plain_pod(name, "m"), at=2)
        shadow.record.advance(104.0)
        shadow.record.put(plain_pod("p"), "m", since=101.0)
        shadow.record.put(plain_pod("q"), "other", since=101.0)
        shadow.record.put(plain_pod("r"), "m", since=102.0)
        shadow.record.evictions = 3
        bench.tell(plain_pod("s"), None, at=9)
        bench.now = 110.0
        real, row = bench.session.report().schedulers
        assert (real.same_node, row.same_node) == (None, 0.5)
        assert (row.scheduler, row.placed, row.waiting) == ("s", 3, 0)
        assert (row.unsupported, row.missed, row.evictions) == (1, 1, 3)
        assert (row.wait_median, row.wait_90, row.wait_longest) == (3.0, 3.0, 3.0)
        assert (real.unsupported, real.missed, real.evictions) == (0, 1, 0)
        assert (real.placed, real.waiting) == (2, 1)
        assert bench.session.report().seconds == 10.0

    def test_progress_is_told_if_there_is_any(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bench = Bench(monkeypatch)
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 3:
                bench.tell(None, plain_pod("p"), at=1)
            if len(slept) > 3:
                raise asyncio.CancelledError

        monkeypatch.setattr(session_module.asyncio, "sleep", sleep)
        told: list[str] = []
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(bench.session.tell_progress(told.append))
        real = session_module.REAL
        assert told == [f"0 pods seen; {real} has placed 0", f"1 pod seen; {real} has placed 0"]

    def test_a_session_is_settled_when_every_engine_has_acted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench, did = Bench(monkeypatch), []

        async def do(action: Any) -> None:
            did.append(action(None))

        for _ in range(2):
            bench.session.engines.append(engine(cluster=SimpleNamespace(do=do)))
        asyncio.run(bench.session.settle())
        assert did == [None, None]


class Replica:
    """A replica over a server and a driver that only remember."""

    def __init__(self, *lists: Any, is_held: bool = True) -> None:
        self.did: list[Any] = []
        self.leadership = SimpleNamespace(is_held=is_held, fencing=7, lost=self._lost)
        answers = list(lists)

        async def list_all(kind: Any) -> Any:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(items=answer)

        async def lead() -> Any:
            return self.leadership

        async def close() -> None:
            self.did.append("closed")

        async def run(started: Any) -> None:
            started()
            await self.stopped.wait()

        self.election: Any = SimpleNamespace(lead=lead)
        self.stopped: asyncio.Event
        self.driver = SimpleNamespace(
            start=lambda: self.did.append("start"),
            lead=lambda right, pods: self.did.append((right, pods)),
            close=close,
            error=None,
            failed=None,
        )
        self.server = SimpleNamespace(run=run, stop=lambda: self.stopped.set())
        self.client = SimpleNamespace(list_all=list_all)
        self.log: list[str] = []

    async def _lost(self) -> None:
        self.did.append("lost")

    def make(self, **options: Any) -> Any:
        self.stopped = asyncio.Event()
        self.driver.failed = asyncio.Event()
        return serving._Replica(
            SimpleNamespace(election=None, **options),  # type: ignore[arg-type]
            self.client,  # type: ignore[arg-type]
            self.server,  # type: ignore[arg-type]
            self.driver,  # type: ignore[arg-type]
            self.log.append,
        )


class TestReplicas:
    def test_a_leader_begins_with_the_pods_there_are_and_ends_when_it_has_lost(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        crashed = ServerFailed("LIST it", "crashed")
        bench = Replica(crashed, ["pod"])
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        async def take_part() -> Any:
            made = bench.make()
            with monkeypatch.context() as patch:
                patch.setattr(serving.asyncio, "sleep", sleep)
                await made._take_part(bench.election)
            return made

        made = asyncio.run(take_part())
        assert bench.did == [(bench.leadership, ["pod"]), "lost"]
        assert slept == [0.5]
        assert bench.log == ["standing by", str(crashed), "leading with fencing number 7"]
        assert made._has_lost
        assert bench.stopped.is_set()

    def test_a_lease_that_is_lost_before_anything_was_read_leads_nowhere(self) -> None:
        bench = Replica(["pod"], is_held=False)

        async def take_part() -> None:
            await bench.make()._take_part(bench.election)

        asyncio.run(take_part())
        assert bench.did == ["lost"]
        assert bench.log == ["standing by"]

    def test_a_driver_that_fails_ends_the_server_with_its_error(self) -> None:
        bench = Replica()

        async def run() -> None:
            made = bench.make()
            bench.driver.error = KeyError("watch")
            bench.driver.failed.set()
            await asyncio.wait_for(made.run(bench.did.append), 20)

        with pytest.raises(KeyError, match="watch"):
            asyncio.run(run())
        assert bench.did == ["start", bench.server, "closed"]

    def test_who_has_lost_the_lease_says_so(self) -> None:
        bench = Replica()

        async def run() -> None:
            made = bench.make()

            async def lose() -> None:
                made._has_lost = True
                bench.stopped.set()

            made.parts.append(lose)
            await asyncio.wait_for(made.run(lambda server: None), 20)

        with pytest.raises(LeadershipLost, match="the lease is lost") as caught:
            asyncio.run(run())
        assert caught.value.hint == "start it again, and it stands by"

    def test_a_part_that_breaks_is_an_error_of_the_whole(self) -> None:
        bench = Replica()

        async def run() -> None:
            made = bench.make()

            async def fail() -> None:
                bench.stopped.set()
                raise ValueError("part")

            made.parts.append(fail)
            await asyncio.wait_for(made.run(lambda server: None), 20)

        with pytest.raises(ValueError, match="part"):
            asyncio.run(run())

    def test_a_candidate_stands_for_the_lease_it_was_told(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[Any] = []
        monkeypatch.setattr(
            serving, "LeaderElection", lambda *given, **named: made.append((given, named))
        )

        async def stand() -> None:
            options: Any = SimpleNamespace(
                name="lease", namespace="space", identity="me", settings="settings"
            )
            Replica().make(connection="there")._candidate(options)

        asyncio.run(stand())
        named = {"identity": "me", "settings": "settings"}
        assert made == [(("there", "lease", "space"), named)]
