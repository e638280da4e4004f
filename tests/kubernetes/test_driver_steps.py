"""What a driver tells the world and Kubernetes: at the start, after each turn, and now and then."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import msgspec
import pytest
from small_pod_cluster import node, pod
from test_written_orders import Client, a_pod
from tracked_pods import tracked

from argosy.kubernetes import kinds
from argosy.model.explanations import Explanation
from argosy.service.kubernetes import driver as driver_module
from argosy.service.kubernetes.driver import ClusterWatches, KubernetesDriver, prepare
from argosy.service.kubernetes.rights import LastingRight, NoRight
from argosy.worlds.kubernetes.tracked import BindOrder, PodState


class DriverBench:
    """A driver over a world that takes what it is told, or does not."""

    def __init__(self) -> None:
        self.takes = True
        self.pods = Mock()
        self.pods.orders, self.pods.refused = deque(), deque()
        self.pods.has_unformed = False
        self.pods.is_short.return_value = False
        self.writer = Mock()
        self.writer.right = LastingRight()
        self.world: Any = SimpleNamespace(
            life=1,
            take_explained=dict,
            host=SimpleNamespace(view=SimpleNamespace(machine_name=lambda number: f"n{number}")),
        )
        self.driver = driver = object.__new__(KubernetesDriver)
        driver._pods, driver.writer = self.pods, self.writer
        driver._overseer = Mock()
        driver._unheard, driver._life = [], 1
        driver._queue_notes = Mock()
        driver._cluster = SimpleNamespace(  # type: ignore[assignment]
            world=self.world, tell=lambda action: action(self.world) if self.takes else None
        )
        driver._watches = Mock()
        for name in ("namespaces", "nodes", "volumes", "claims", "budgets", "pods"):
            getattr(driver._watches, name).objects = {}
        driver._watches.groups = []


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> DriverBench:
    made = DriverBench()
    monkeypatch.setattr(KubernetesDriver, "_world", property(lambda self: made.world))
    return made


class TestDriver:
    def test_all_there_is_is_taken_in_and_the_rest_forgotten(self, bench: DriverBench) -> None:
        stores = bench.driver._watches
        bench.pods.rulebook.nodes = {"n0": None, "gone": None}
        bench.pods.pods = {"p0": None, "lost": None}
        here, bound = pod("p0"), pod("p1", nodeName="n0")
        first = node(1)
        stores.namespaces.objects = {"s": "space"}  # type: ignore[dict-item]
        stores.nodes.objects = {("", "n0"): first}
        stores.volumes.objects = {"v": "volume"}  # type: ignore[dict-item]
        stores.claims.objects = {"c": "claim"}  # type: ignore[dict-item]
        stores.budgets.objects = {"b": "budget"}  # type: ignore[dict-item]
        stores.groups = [SimpleNamespace(objects={"g": "group"})]  # type: ignore[list-item]
        stores.pods.objects = {("s", "p0"): here, ("s", "p1"): bound}
        groups: list[Any] = []
        bench.pods.set_groups.side_effect = lambda given: groups.extend(given)
        bench.driver._take_all()
        names = [each[0] for each in bench.pods.mock_calls]
        assert names == [
            "remove_node",
            "remove_pod",
            "set_namespace",
            "set_node",
            "prepare_commits",
            "set_volume",
            "set_claim",
            "set_budgets",
            "set_groups",
            "set_pod",
            "set_pod",
        ]
        assert bench.pods.remove_node.mock_calls == [call("gone")]
        assert bench.pods.remove_pod.mock_calls == [call("lost")]
        assert bench.pods.set_pod.mock_calls == [call(bound), call(here)]
        assert list(bench.pods.set_budgets.call_args[0][0]) == ["budget"]
        assert groups == ["group"]

    def test_what_the_world_does_not_take_is_told_to_the_next_one(self, bench: DriverBench) -> None:
        driver, told = bench.driver, []
        driver._hear(lambda: told.append("first"))
        assert (told, driver._unheard) == (["first"], [])
        assert bench.pods.flush.call_count == 1
        bench.takes = False
        driver._hear(lambda: told.append("second"))
        assert told == ["first"]
        bench.takes = True
        bench.pods.rulebook.nodes, bench.pods.pods = {}, {}
        driver._turn_ended(0.0)
        # The world is the same: nothing is due.
        assert told == ["first"]
        bench.world.life = 2
        driver._turn_ended(0.0)
        assert (told, driver._unheard, driver._life) == (["first", "second"], [], 2)
        assert bench.pods.prepare_commits.call_count == 1
        driver._turn_ended(0.0)
        assert bench.pods.prepare_commits.call_count == 1

    def test_orders_are_carried_out_and_refusals_noted(self, bench: DriverBench) -> None:
        bench.pods.orders.extend(["bind", "evict"])
        for state, obstacle in (
            (PodState.OUTSIDE, "no image"),
            (PodState.OUTSIDE, ""),
            (PodState.WAITING, "late"),
        ):
            bench.pods.refused.append(tracked(state, obstacle=obstacle))
        first = bench.pods.refused[0].pod
        bench.driver._pump()
        assert bench.writer.carry_out.mock_calls == [call("bind"), call("evict")]
        assert bench.writer.note_waiting.mock_calls == [call(first, "no image")]
        assert not bench.pods.orders
        assert not bench.pods.refused

    @pytest.mark.parametrize("heeds", [False, True])
    def test_pods_are_told_why_they_wait_and_short_jobs_found(
        self, bench: DriverBench, monkeypatch: pytest.MonkeyPatch, heeds: bool
    ) -> None:
        monkeypatch.setattr(driver_module, "described_wishes", lambda pod: ("soft",))
        bench.pods.rulebook.nodes = {"n0": 0, "n1": 0}
        bench.pods.rulebook.reasons.return_value = {}
        bench.pods.heeds_wishes_of.return_value = heeds
        bench.pods.is_short.side_effect = lambda job: job == "b"
        waiting = {"a": [tracked(PodState.WAITING, "p"), tracked(PodState.WAITING, "q")], "b": []}
        bench.pods.waits.side_effect = waiting.__getitem__
        bench.world.take_explained = lambda: {"a": Explanation(), "b": Explanation()}
        bench.driver._turn_ended(0.0)
        wishes = "" if heeds else " ignored: soft."
        text = f"0/2 nodes are available.{wishes}"
        assert bench.writer.note_waiting.mock_calls == [
            call(each.pod, text) for each in waiting["a"]
        ]
        assert bench.pods.found_short.mock_calls == [call("b")]
        bench.world.take_explained = dict
        before = bench.pods.flush.call_count
        bench.driver._turn_ended(0.0)
        assert bench.pods.flush.call_count == before
        bench.pods.has_unformed = True
        bench.driver._turn_ended(0.0)
        assert bench.pods.flush.call_count == before + 1

    def test_what_a_turn_has_decided_is_carried_out_at_its_end(self, bench: DriverBench) -> None:
        bench.pods.orders.append("bind")
        bench.driver._turn_ended(0.0)
        assert bench.writer.carry_out.mock_calls == [call("bind")]

    def test_a_leader_begins_with_what_the_last_one_has_done(self, bench: DriverBench) -> None:
        right: Any = SimpleNamespace(is_held=True, remaining=None, fencing=3)
        bench.driver._watches.pods.resource_version = ""
        documents = [
            kinds.PODS.decode(
                msgspec.json.encode(
                    {
                        "metadata": {"name": name, "uid": name, "resourceVersion": "3"},
                        "spec": {"nodeName": where} if where else {},
                    }
                )
            )
            for name, where in (("p", ""), ("q", "n0"))
        ]
        bench.driver.lead(right, documents)
        assert bench.writer.right is right
        assert bench.driver._overseer.is_leading is True
        assert [each.args[0].name for each in bench.pods.set_pod.mock_calls] == ["q", "p"]

    def test_what_is_due_now_and_then_is_done_if_there_is_a_reason(
        self, bench: DriverBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pods, driver = bench.pods, bench.driver
        slept: list[float] = []
        now = [0.0]

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) > 3:
                raise asyncio.CancelledError
            now[0] += 15.0

        async def look() -> None:
            monkeypatch.setattr(driver_module.asyncio, "sleep", sleep)
            loop = SimpleNamespace(time=lambda: now[0])
            monkeypatch.setattr(driver_module.asyncio, "get_running_loop", lambda: loop)
            with pytest.raises(asyncio.CancelledError):
                await driver._look_again()

        def looked() -> list[int]:
            counts = [
                each.call_count
                for each in (
                    pods.look_again,
                    driver._queue_notes.write,  # type: ignore[attr-defined]
                    pods.expire_places,
                    pods.tell_groups,
                    pods.forget_budgets,
                )
            ]
            pods.reset_mock()
            driver._queue_notes.reset_mock()  # type: ignore[attr-defined]
            slept.clear()
            return counts

        pods.needs_look = pods.has_places = pods.has_protected = True
        driver._overseer.annotates = True
        asyncio.run(look())
        assert slept == [1.0] * 4
        # Budgets are forgotten after 30 seconds: at the second of three looks.
        assert looked() == [3, 3, 3, 3, 1]
        bench.writer.right = NoRight()
        pods.needs_look = pods.has_places = pods.has_protected = False
        asyncio.run(look())
        assert looked() == [0, 0, 0, 3, 0]
        bench.writer.right = LastingRight()
        driver._overseer.annotates = False
        asyncio.run(look())
        assert looked() == [0, 0, 0, 3, 0]


@pytest.mark.parametrize("right", [LastingRight(), NoRight(), None])
def test_a_driver_listens_to_the_world_and_leads_if_it_may(bench: DriverBench, right: Any) -> None:
    overseer, cluster = Mock(), SimpleNamespace(listeners=[])
    log, observer = Mock(), Mock()
    driver = KubernetesDriver(
        Mock(),
        Mock(),
        overseer,
        cluster,
        "argosy",
        log,
        observer=observer,
        right=right,  # type: ignore[arg-type]
    )
    assert overseer.wake == driver._pump
    assert cluster.listeners == [driver._turn_ended]
    assert overseer.is_leading == (right is None or right.is_held)
    assert driver.pods is overseer.pods
    assert (driver.error, driver.failed.is_set()) == (None, False)
    writer = driver.writer
    assert (writer._name, writer._log, writer._observer) == ("argosy", log, observer)
    assert writer._writes_events
    assert writer._bound == overseer.pods.bound


def test_reports_of_the_writer_reach_the_pods(bench: DriverBench) -> None:
    cluster: Any = bench.driver._cluster
    cluster.listeners = []
    made = KubernetesDriver(Mock(), Mock(), Mock(pods=bench.pods), cluster, "argosy", Mock())
    made.writer._failed("p")
    made.writer._stayed("q")
    made.writer._unmade("j", "no room")
    made.writer._bound("r")
    told = [each for each in bench.pods.mock_calls if each[0] != "flush"]
    assert told == [
        call.bind_failed("p"),
        call.eviction_failed("q"),
        call.unmade("j", "no room"),
        call.bound("r"),
    ]


def test_watches_of_a_server_that_is_back_begin_promptly() -> None:
    client: Any = Mock()

    async def made() -> list[float]:
        return [each._settings.longest_delay for each in ClusterWatches(client).all]

    assert asyncio.run(made()) == [3.0] * 7


def test_priorities_and_resources_are_known_before_there_is_a_world() -> None:
    pods: Any = Mock()
    priorities: list[int] = []
    pods.set_priorities.side_effect = lambda given: priorities.extend(given)
    watches: Any = SimpleNamespace(
        priority_classes=SimpleNamespace(objects={"a": SimpleNamespace(value=5)}),
        pods=SimpleNamespace(objects={"p": pod("p", cpu="2")}),
    )
    prepare(pods, watches)
    assert priorities == [5]
    [known] = [each.args[0] for each in pods.know_resources.mock_calls]
    assert known.cpu == 2_000


@pytest.mark.parametrize("writes", [True, False])
def test_whether_bindings_have_events_is_told_to_the_writer(writes: bool) -> None:
    client = Client()

    async def bind() -> None:
        driver = KubernetesDriver(
            client,  # type: ignore[arg-type]
            Mock(),
            Mock(),
            Mock(),
            "argosy",
            Mock(),
            writes_events=writes,
        )
        driver.writer.start()
        driver.writer.carry_out(BindOrder(a_pod(), "n"))
        for _ in range(100):
            await asyncio.sleep(0)
        await driver.writer.close()

    asyncio.run(bind())
    assert len(client.of("bind")) == 1
    assert len(client.of("create")) == writes
