"""Wait views are made by the host and fed with plain values; the core's fast path does the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.cell.waits import WaitView, columns_of, feed, state_of
from argosy.engines.api import wait_view_for
from argosy.engines.murmuration import Murmuration, MurmurationSettings
from argosy.engines.omega import Omega, OmegaSettings
from argosy.host.journal import Journal
from argosy.host.mail import Mail
from argosy.host.scheduler import Scheduler
from argosy.model.effects import Send
from argosy.model.messages import EndsReported, WaitUpdate
from argosy.model.random import Random
from argosy.model.scenario import (
    ConstantLatency,
    MachineCrash,
    Network,
    Output,
    Scenario,
    SchedulerCrash,
    UniformLatency,
)
from argosy.model.tasks import first_tasks
from argosy.model.wire import decode_wait_report, encode
from argosy.testing import conformance
from argosy.testing.builders import SECOND, job, scenario
from argosy.worlds.sim import SimulatedWorld

HOP = 500


class FedWorld(SimulatedWorld):
    """Nothing reaches a wait view but through `feed`, each report written and read on its way."""

    def __init__(self, spec: Scenario, log: Journal) -> None:
        super().__init__(spec, {"murmuration": Murmuration}, log)
        self.host.links.plain_hop = -1
        self.runtime.set_hop(-1)
        self.runtime.hear_all()
        self.fed = 0
        self.host._effects._methods[Send] = self.send

    def send(self, scheduler: Scheduler, effect: Send, now: int) -> None:
        if not isinstance(effect.payload, WaitUpdate):
            Mail(self.host).send(scheduler, effect, now)
            return
        report = decode_wait_report(encode(effect.payload, "msgpack"), "msgpack")
        for name in effect.peers:
            peer = self.host.scheduler(name)
            assert peer is not None
            if peer.waits is not None:
                feed(peer.waits, report, now + HOP, now)
                self.fed += 1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"gossip": "task", "update_delay": 2_000},
        {"t_update": 20_000},
        {"order": "shortest-job", "estimates": "learnt"},
        {"as_published": True, "t_job": 100_003, "t_task": 5_007},
    ],
    ids=str,
)
def test_a_view_fed_with_values_is_the_view_that_the_core_keeps(settings: dict[str, Any]) -> None:
    faults = (
        SchedulerCrash(at=SECOND, scheduler="s-1", down=3 * SECOND),
        MachineCrash(at=2 * SECOND, machine="m3", down=3 * SECOND),
    )
    jobs = conformance.workload(60, spacing=0.05)
    if settings.get("as_published"):
        # Such a view depends on the order of what comes at one instant. Odd times, and tasks that have
        # their machine for themselves, keep that apart; what is lost is told to nobody.
        jobs = [
            job(f"j{i}", 1 + i % 4, cpu=4_000, seconds=1 + i % 3, submit=i / 7) for i in range(40)
        ]
        faults = ()
    spec = scenario(
        "murmuration",
        jobs,
        replicas=3,
        settings=settings,
        network=Network(latency=ConstantLatency(delay=HOP)),
        faults=faults,
        output=Output(log="decisions"),
    )
    logs = Journal(), Journal()
    native = SimulatedWorld(spec, {"murmuration": Murmuration}, logs[0])
    fed = FedWorld(spec, logs[1])
    native.run()
    fed.run()
    assert fed.fed
    assert logs[0].digest() == logs[1].digest()
    for one, other in zip(native.host.schedulers, fed.host.schedulers, strict=True):
        assert one.waits is not None
        assert other.waits is not None
        for waits in (one.waits, other.waits):
            waits.settle(2**60)
        assert one.waits.work().tolist() == other.waits.work().tolist()
        assert one.waits.held().tolist() == other.waits.held().tolist()
        assert one.waits.digest == other.waits.digest


def test_only_an_engine_that_declares_it_gets_a_wait_view() -> None:
    assert wait_view_for(Omega, OmegaSettings()) is None
    assert isinstance(wait_view_for(Murmuration, MurmurationSettings()), WaitView)


def a_view(machines: int) -> WaitView:
    view = WaitView()
    view.learn(np.full(machines, 1_000, np.int64), np.ones(machines, np.uint8))
    return view


def an_update(machine: int) -> WaitUpdate:
    one = np.zeros(1, np.int64)
    where = np.array([machine], np.int32)
    return WaitUpdate(one, np.array([2], np.uint8), where, 100, 4, (500,), 1, 0)


def test_a_scheduler_that_has_not_started_gets_no_placements() -> None:
    view = WaitView()
    feed(view, an_update(0), 0, 0)
    assert view.waiting == 0


def test_a_machine_that_is_not_known_yet_may_be_by_the_time_a_report_is_due() -> None:
    view = a_view(1)
    feed(view, an_update(1), 10, 0)
    view.learn(np.full(2, 1_000, np.int64), np.ones(2, np.uint8))
    view.settle(10)
    assert view.work().tolist() == [0, 50]
    never = a_view(1)
    feed(never, an_update(1), 10, 0)
    never.settle(10)
    assert never.work().tolist() == [0]


def test_reports_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown machine"):
        feed(a_view(1), an_update(-2), 0, 0)
    ends = EndsReported(*(np.zeros(1, kind) for kind in (np.int64, np.int32, np.int64)),
                        np.zeros(1, np.int32), np.zeros(2, np.int64))  # fmt: skip
    with pytest.raises(ValueError, match="different lengths"):
        feed(a_view(1), ends, 0, 0)


def a_busy_view() -> WaitView:
    view, random = a_view(4), Random(1)
    view.know_shape(7, np.array([250], np.int64))
    view.know_shape(9, np.array([1_000], np.int64))
    for number in range(5):
        tasks = first_tasks(number, 3)
        view.choose(tasks, 3, 7 if number % 2 else 9, 100 + number, 0, random)
    view.undo(first_tasks(1, 1))
    done = first_tasks(2, 3)
    zeros = np.zeros(3, np.int64)
    view.post_ended(0, 0, done, zeros.astype(np.int32), zeros, zeros.astype(np.int32), zeros)
    view.settle(0)
    return view


def test_a_view_that_joins_anothers_columns_knows_the_same() -> None:
    view, other = a_busy_view(), a_view(4)
    other.know_shape(9, np.array([1_000], np.int64))
    other.join(state_of(columns_of(view.state())))
    assert other.work().tolist() == view.work().tolist()
    assert other.held().tolist() == view.held().tolist()
    assert other.digest == view.digest


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("requests", np.zeros(3, np.int64)),
        ("jobs", np.array([0, 1, 2, 3, -4], np.int64)),
        ("totals", np.full(5, 2**30, np.int64)),
        ("counts", np.full(5, 2**40, np.int64)),
        ("counts", np.zeros(5, np.int64)),
        ("work", np.zeros(1, np.int64)),
        ("indices", None),
        ("task_shapes", None),
    ],
)
def test_columns_that_make_no_sense_are_refused(column: str, value: Any) -> None:
    columns = columns_of(a_busy_view().state())
    told = {name: getattr(columns, name) for name in columns.__struct_fields__}
    if value is None:
        value = np.full_like(told[column], min(2**25, np.iinfo(told[column].dtype).max))
    told[column] = value
    with pytest.raises(ValueError, match=r"."):
        state_of(type(columns)(**told))


@pytest.mark.parametrize("gossip", ["job", "task"])
def test_a_latency_that_is_drawn_from_one_value_is_that_value(gossip: str) -> None:
    """The core's fast path for equal hops, and the slow one for every message by itself, agree."""
    runs = []
    for latency in (ConstantLatency(delay=HOP), UniformLatency(low=HOP, high=HOP)):
        spec = scenario(
            "murmuration",
            conformance.workload(40, spacing=0.02),
            replicas=3,
            network=Network(latency=latency),
            settings={"gossip": gossip},
        )
        world = SimulatedWorld(spec, {"murmuration": Murmuration})
        world.run()
        runs.append([column.tolist() for column in world.runtime.task_columns()])
    assert runs[0] == runs[1]
