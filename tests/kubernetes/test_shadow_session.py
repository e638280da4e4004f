"""What a shadow session reports about the cluster's own scheduler, from the changes that it is told."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.kubernetes import kinds
from argosy.kubernetes.objects import Node, Pod
from argosy.kubernetes.watching import ChangeKind, ObjectChange
from argosy.service.kubernetes import planning
from argosy.service.kubernetes.shadow import session as module
from argosy.service.kubernetes.shadow.engine import ShadowedEngine
from argosy.service.kubernetes.shadow.session import REAL, ShadowRow, ShadowSession
from argosy.worlds.kubernetes.tracked import BindOrder


def pod(name: str, node: str = "", phase: str = "Pending", **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [container], **({"nodeName": node} if node else {}), **spec},
        "status": {"phase": phase},
    }
    return kinds.PODS.decode(msgspec.json.encode(document))


def a_node(name: str) -> Node:
    document = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    return kinds.NODES.decode(msgspec.json.encode(document))


class Bench:
    """A session without engines, whose clock stands still until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *pods: Pod) -> None:
        self.now = 100.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        stores = {
            name: SimpleNamespace(objects={})
            for name in ("nodes", "pods", "namespaces", "volumes", "claims", "budgets")
        }
        stores["nodes"].objects["m"] = a_node("m")
        stores["pods"].objects.update({each.uid: each for each in pods})
        self.session = ShadowSession(SimpleNamespace(**stores, groups=()))  # type: ignore[arg-type]
        self.session.take_all()

    def tell(self, old: Pod | None, new: Pod | None, *, at: float) -> None:
        self.now = 100.0 + at
        self.session._advance()
        self.session._changed(ObjectChange(ChangeKind.CHANGED, old, new))

    def row(self) -> ShadowRow:
        (row,) = self.session.report().schedulers
        assert row.scheduler == REAL
        return row


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch, pod("before", "m"))


def test_pods_on_nodes_before_it_began_count_apart(bench: Bench) -> None:
    report, row = bench.session.report(), bench.row()
    assert (report.pods, report.pods_before, report.nodes) == (0, 1, 1)
    assert (row.placed, row.waiting, row.missed, row.nodes_used) == (0, 0, 0, 1)


def test_a_pod_waits_from_when_it_may_be_scheduled_until_it_has_a_node(bench: Bench) -> None:
    gated = pod("p", schedulingGates=[{"name": "later"}])
    bench.tell(None, gated, at=1)
    assert (bench.session.report().pods, bench.row().waiting) == (0, 0)
    bench.tell(gated, pod("p"), at=5)
    assert (bench.session.report().pods, bench.row().waiting) == (1, 1)
    bench.tell(pod("p"), pod("p", "m"), at=7)
    bench.tell(pod("p", "m"), pod("p", "m", "Running"), at=9)
    row = bench.row()
    assert (row.placed, row.waiting, row.missed) == (1, 0, 0)
    assert (row.wait_median, row.wait_90, row.wait_longest) == (2.0, 2.0, 2.0)


def test_a_pod_that_ends_without_a_node_was_missed(bench: Bench) -> None:
    bench.tell(None, pod("p"), at=1)
    bench.tell(pod("p"), None, at=2)
    # One that had a node was not, nor one that was never there.
    bench.tell(None, pod("q"), at=3)
    bench.tell(pod("q"), pod("q", "m"), at=4)
    bench.tell(pod("q", "m"), pod("q", "m", "Succeeded"), at=5)
    bench.tell(pod("x"), None, at=6)
    row = bench.row()
    assert (row.placed, row.waiting, row.missed) == (1, 0, 1)


def test_what_has_ended_is_used_no_more(bench: Bench) -> None:
    bench.tell(None, pod("p"), at=0)
    bench.tell(pod("p"), pod("p", "m"), at=0)
    bench.tell(pod("p", "m"), None, at=5)
    bench.now = 110.0
    # One of four processors all the time, and another for half of it.
    assert bench.row().cpu_used == pytest.approx(0.375)


def test_a_pod_of_the_same_name_that_replaces_another_is_a_new_one(bench: Bench) -> None:
    first, second = pod("p"), pod("q")
    bench.tell(None, first, at=1)
    bench.tell(first, second, at=2)
    row = bench.row()
    assert (bench.session.report().pods, row.waiting, row.missed) == (2, 1, 1)


def test_a_pod_stays_where_a_shadow_bound_it_when_it_changes() -> None:
    made = pod("a")
    bound: list[str] = []
    engine: Any = SimpleNamespace(
        name="s",
        pods=SimpleNamespace(
            orders=deque([BindOrder(made, "n1")]), refused=set(), bound=bound.append
        ),
        record=SimpleNamespace(advance=lambda now: None, put=lambda pod, node, since: None),
        _real={made.uid: made},
        _nodes={},
        _since=lambda uid: 0.0,
    )
    ShadowedEngine._pump(engine)
    assert bound == [made.uid]
    assert ShadowedEngine._as_if(engine, made).spec.node_name == "n1"


def test_a_plan_is_made_when_every_pod_is_decided_on() -> None:
    decided, asked = {"a"}, ["a", "b", "c"]
    left = iter(asked[1:])

    async def do(change: object) -> None: ...

    engine: Any = SimpleNamespace(
        cluster=SimpleNamespace(do=do),
        record=SimpleNamespace(pods=decided),
        reason_to_wait=lambda uid: "",
        look_again=lambda: decided.add(next(left)),
    )
    asyncio.run(planning._decided(engine, asked))
    assert decided == set(asked)
