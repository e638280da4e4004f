"""Messages between schedulers in the simulated world: hops, losses, partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scripted_engine import (
    Scripted,
    claim,
    world_of,
)

from argosy.cell import View
from argosy.host.setup import HostSetup
from argosy.model.effects import Effect, Enqueue, Send, WakeMe
from argosy.model.events import (
    Committed,
    Event,
    JobSubmitted,
    MessageReceived,
    Started,
    TimerFired,
)
from argosy.model.messages import Note
from argosy.model.scenario import (
    ConstantLatency,
    Network,
    PairLatency,
    Partition,
    UniformLatency,
)
from argosy.testing.builders import SECOND, job, scenario
from argosy.worlds.sim import SimulatedWorld
from argosy.worlds.sim.network import SimulatedNetwork


def greet(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    """s-0 says hello each second for ten seconds; everyone places what they are given."""
    match event:
        case Started() if engine.context.name == "s-0":
            return [WakeMe(i * SECOND, str(i)) for i in range(10)]
        case TimerFired(name):
            return [Send(engine.context.peers, Note(name))]
        case JobSubmitted(_, _, tasks):
            return [Enqueue(tasks, np.zeros(len(tasks), np.int32))]
    return ()


def greetings(**fields: Any) -> tuple[SimulatedWorld, list[tuple[int, str]]]:
    long_job = [job("keeps-the-world-going", 1, seconds=60)]
    world, heard = world_of(greet, long_job, replicas=2, **fields)
    return world, [
        (now, event.payload.kind) for now, _, event in heard if isinstance(event, MessageReceived)
    ]


def test_messages_take_a_hop() -> None:
    _, got = greetings(network=Network(latency=ConstantLatency(delay=700)))
    assert got == [(i * SECOND + 700, str(i)) for i in range(10)]


def test_latency_can_be_drawn_evenly() -> None:
    _, got = greetings(network=Network(latency=UniformLatency(low=100, high=900)))
    delays = [now % SECOND for now, _ in got]
    assert all(100 <= delay <= 900 for delay in delays)
    assert len(set(delays)) > 5


def test_latency_can_depend_on_the_pair() -> None:
    _, got = greetings(network=Network(latency=PairLatency(default=1, delays={"s-0>s-1": 5_000})))
    assert {now % SECOND for now, _ in got} == {5_000}


def test_all_messages_can_be_lost() -> None:
    world, got = greetings(network=Network(loss=1.0))
    assert got == []
    assert world.host.links.counts["lost"] == 10


def test_messages_can_come_twice() -> None:
    world, got = greetings(network=Network(duplication=1.0))
    assert len(got) == 20
    assert world.host.links.counts["duplicated"] == 10


def test_late_messages_are_overtaken() -> None:
    network = Network(reordering=0.5, extra_delay=5 * SECOND)
    _, got = greetings(network=network)
    assert len(got) == 10
    assert [name for _, name in got] != sorted(name for _, name in got)


def test_a_partition_cuts_messages_both_ways_while_it_lasts() -> None:
    cut = Partition(at=int(2.5 * SECOND), lasts=3 * SECOND, isolated=("s-1",))
    world, got = greetings(faults=(cut,))
    assert [name for _, name in got] == ["0", "1", "2", "6", "7", "8", "9"]
    assert world.host.links.counts["cut"] == 3


def test_partitions_that_overlap_cut_messages_until_the_last_of_them_heals() -> None:
    cuts = (
        Partition(at=int(2.5 * SECOND), lasts=3 * SECOND, isolated=("s-1",)),
        Partition(at=int(3.5 * SECOND), lasts=4 * SECOND, isolated=("s-1",)),
    )
    world, got = greetings(faults=cuts)
    assert [name for _, name in got] == ["0", "1", "2", "8", "9"]
    assert world.host.links.counts["cut"] == 5


def test_schedulers_that_are_isolated_together_hear_each_other() -> None:
    cut = Partition(at=0, lasts=60 * SECOND, isolated=("s-0", "s-1"))
    world, got = greetings(faults=(cut,))
    assert len(got) == 10
    assert world.host.links.counts["cut"] == 0


def test_requests_wait_until_a_partition_heals() -> None:
    cut = Partition(at=0, lasts=4 * SECOND, isolated=("s",))

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [claim(view, event, 0, engine.context.name)]
        return ()

    _, heard = world_of(script, [job("a", 1, submit=1)], faults=(cut,))
    assert [now for now, _, event in heard if isinstance(event, Committed)] == [4 * SECOND]


def test_answers_wait_for_a_partition_to_heal_like_requests() -> None:
    cut = Partition(at=SECOND + 100, lasts=4 * SECOND, isolated=("s",))

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [claim(view, event, 0, engine.context.name)]
        return ()

    network = Network(latency=ConstantLatency(delay=300))
    _, heard = world_of(script, [job("a", 1, submit=1)], faults=(cut,), network=network)
    answered = [now for now, _, event in heard if isinstance(event, Committed)]
    assert answered == [5 * SECOND + 100 + 300]


def test_partitions_need_not_be_listed_in_order() -> None:
    cuts = (
        Partition(at=2 * SECOND, lasts=SECOND, isolated=("s",)),
        Partition(at=SECOND, lasts=SECOND, isolated=("s",)),
    )

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [claim(view, event, 0, engine.context.name)]
        return ()

    _, heard = world_of(script, [job("a", 1, submit=1)], faults=cuts)
    assert [now for now, _, event in heard if isinstance(event, Committed)] == [3 * SECOND]


@pytest.mark.parametrize(
    ("spans", "healed"), [([(1, 3), (2, 4)], 6), ([(1, 6), (2, 2)], 7), ([(2, 2), (1, 6)], 7)]
)
def test_requests_wait_for_the_last_of_the_partitions_that_overlap(
    spans: list[tuple[int, int]], healed: int
) -> None:
    cuts = tuple(
        Partition(at=at * SECOND, lasts=lasts * SECOND, isolated=("s",)) for at, lasts in spans
    )

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [claim(view, event, 0, engine.context.name)]
        return ()

    _, heard = world_of(script, [job("a", 1, submit=3)], faults=cuts)
    answered = [now for now, _, event in heard if isinstance(event, Committed)]
    assert answered == [healed * SECOND]


def test_a_round_trip_of_drawn_latency_is_twice_its_mean() -> None:
    spec = scenario("omega", [], network=Network(latency=UniformLatency(low=100, high=900)))
    assert SimulatedNetwork.of(HostSetup.of(spec)).round_trip == 1_000
