"""The simulated network and its faults, hop by hop and second by second."""

from __future__ import annotations

import io
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.host.records import CrashedRecord, MachineRecord, RestartedRecord
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    ConstantLatency,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Network,
    PairLatency,
    Partition,
    RandomCrashes,
    SchedulerCrash,
    UniformLatency,
)
from argosy.records.journal_file import JournalFile
from argosy.testing.builders import GIB, SECOND, job, scenario
from argosy.worlds.sim import SimulatedWorld
from argosy.worlds.sim.network import SimulatedNetwork

CONSTANT = ConstantLatency(delay=100)


def network(*partitions: Partition, **fields: Any) -> SimulatedNetwork:
    return SimulatedNetwork(Network(**{"latency": CONSTANT, **fields}), partitions, Random(1))


class TestHops:
    def test_drawn_latency_reaches_both_its_ends(self) -> None:
        drawn = network(latency=UniformLatency(low=3, high=6))
        assert {drawn.hop("a", "b") for _ in range(200)} == {3, 4, 5, 6}
        assert (drawn.plain_hop, drawn.round_trip) == (-1, 9)

    def test_the_delay_of_a_pair_is_that_of_its_direction(self) -> None:
        pairs = network(latency=PairLatency(default=7, delays={"a>b": 2}))
        assert [pairs.hop(*pair) for pair in (("a", "b"), ("b", "a"), ("a", "c"))] == [2, 7, 7]
        assert (pairs.plain_hop, pairs.round_trip) == (-1, 14)

    @pytest.mark.parametrize(
        "fault",
        [{"loss": 0.1}, {"duplication": 0.1}, {"reordering": 0.1}, {"extra_delay": 1}],
    )
    def test_a_hop_is_plain_only_if_nothing_can_go_wrong(self, fault: dict[str, Any]) -> None:
        assert (network().plain_hop, network().round_trip) == (100, 200)
        assert network(**fault).plain_hop == -1
        assert network(Partition(at=0, lasts=1, isolated=())).plain_hop == -1
        assert network().deliveries("a", "b", 0) == (100,)


class TestMessages:
    def test_every_message_is_accounted_for(self) -> None:
        faulty = network(loss=0.25, duplication=0.5, reordering=0.5, extra_delay=2)
        arrived: Counter[int] = Counter()
        copies: Counter[int] = Counter()
        for _ in range(2_000):
            delays = faulty.deliveries("a", "b", 0)
            copies[len(delays)] += 1
            arrived.update(delays)
        counts = faulty.counts
        assert counts["sent"] == 2_000
        assert (counts["lost"], counts["duplicated"], counts["cut"]) == (copies[0], copies[2], 0)
        assert set(arrived) == {100, 101, 102}
        assert 0 < arrived[101] + arrived[102] < counts["delayed"]
        assert copies[0] == pytest.approx(500, abs=60)
        assert copies[2] == pytest.approx(750, abs=70)
        assert counts["delayed"] == pytest.approx((copies[1] + 2 * copies[2]) / 2, abs=80)

    @pytest.mark.parametrize(
        ("fault", "key", "copies"), [("loss", "lost", 0), ("duplication", "duplicated", 2)]
    )
    def test_what_is_certain_always_happens(self, fault: str, key: str, copies: int) -> None:
        sure = network(**{fault: 1.0})
        assert {len(sure.deliveries("a", "b", 0)) for _ in range(20)} == {copies}
        assert sure.counts[key] == sure.counts["sent"] == 20

    def test_a_delay_needs_both_a_chance_and_a_length(self) -> None:
        for fields in ({"reordering": 1.0}, {"extra_delay": 9}):
            calm = network(**fields)
            assert {calm.deliveries("a", "b", 0) for _ in range(20)} == {(100,)}
            assert calm.counts["delayed"] == 0

    def test_a_partition_cuts_from_its_beginning_until_before_its_end(self) -> None:
        cut = network(Partition(at=10, lasts=5, isolated=("a", "b")))
        for now, is_cut in ((9, False), (10, True), (14, True), (15, False)):
            assert (cut.deliveries("a", "c", now) == ()) is is_cut
            assert (cut.deliveries("c", "b", now) == ()) is is_cut
            assert cut.deliveries("a", "b", now) == cut.deliveries("c", "d", now) == (100,)
        assert (cut.counts["cut"], cut.counts["lost"]) == (4, 0)

    def test_requests_wait_for_the_end_of_what_isolates_either_end(self) -> None:
        parts = [
            Partition(at=15, lasts=5, isolated=("a",)),
            Partition(at=10, lasts=5, isolated=("a", "b")),
            Partition(at=21, lasts=9, isolated=("a",)),
        ]
        cut = network(*parts)
        waits = {now: cut.reliable_delay("a", "cell", now) - 100 for now in (9, 10, 14, 15, 20, 21)}
        # The second begins as the first ends; the third only later.
        assert waits == {9: 0, 10: 10, 14: 6, 15: 5, 20: 0, 21: 9}
        assert cut.reliable_delay("cell", "b", 12) == 3 + 100
        assert cut.reliable_delay("cell", "c", 12) == 100


def changes(*faults: Any, horizon: int = 60) -> list[tuple[int, str]]:
    """What befell machines and schedulers, with the second."""
    stream = io.BytesIO()
    journal = Journal(stream)
    spec = scenario("omega", [job("a", 1, seconds=None)], faults=faults, horizon=horizon * SECOND)
    SimulatedWorld(spec, ENGINES, journal).run()
    journal.flush()
    told = []
    for record in JournalFile(stream.getvalue()).facts():
        match record:
            case MachineRecord(at, change):
                told.append((at, f"{type(change).__name__} {change.machine}"))
            case CrashedRecord(at, name):
                told.append((at, f"crash {name}"))
            case RestartedRecord(at, name):
                told.append((at, f"restart {name}"))
    return told


class TestFaults:
    def test_each_fault_strikes_when_it_is_due_and_passes_when_it_is_over(self) -> None:
        told = changes(
            MachineCrash(at=2 * SECOND, machine="m3", down=4 * SECOND),
            # It is down already: nothing happens, and it does not come back twice.
            MachineCrash(at=3 * SECOND, machine="m3", down=SECOND),
            MachineCrash(at=5 * SECOND, machine="m0"),
            MachineDrain(at=7 * SECOND, machine="m4", lasts=2 * SECOND),
            MachineDrain(at=8 * SECOND, machine="m5"),
            MachineResize(at=8 * SECOND, machine="m6", capacity=Resources(1_000, GIB)),
            SchedulerCrash(at=10 * SECOND, scheduler="s-1", down=3 * SECOND),
            SchedulerCrash(at=11 * SECOND, scheduler="s-1", down=SECOND),
            SchedulerCrash(at=14 * SECOND, scheduler="s-0"),
        )
        assert [(at / SECOND, what) for at, what in told] == [
            (2, "RemoveMachine 3"),
            (5, "RemoveMachine 0"),
            (6, "ReviveMachine 3"),
            (7, "DrainMachine 4"),
            (8, "DrainMachine 5"),
            (8, "ResizeMachine 6"),
            (9, "DrainMachine 4"),
            (10, "crash s-1"),
            (13, "restart s-1"),
            (14, "crash s-0"),
        ]

    @pytest.mark.parametrize(
        ("what", "down", "back"),
        [("machines", "RemoveMachine", "ReviveMachine"), ("schedulers", "crash", "restart")],
    )
    def test_random_crashes_come_between_their_bounds_and_pass(
        self, what: Any, down: str, back: str
    ) -> None:
        crashes = RandomCrashes(
            what=what, every=SECOND, down=SECOND // 4, start=5 * SECOND, end=25 * SECOND
        )
        told = changes(crashes)
        struck = [(at, each.split()[1]) for at, each in told if each.startswith(down)]
        returned = [(at, each.split()[1]) for at, each in told if each.startswith(back)]
        assert sorted(returned) == [(at + SECOND // 4, who) for at, who in struck]
        assert 5 * SECOND < struck[0][0] <= struck[-1][0] <= 25 * SECOND
        # About one a second; hardly any hits what is down.
        assert 10 < len(struck) < 32
        gaps = [after - before for before, after in pairwise(at for at, _ in struck)]
        assert np.mean(gaps) == pytest.approx(SECOND, rel=0.5)
        assert len(set(gaps)) > 5
        assert len({who for _, who in struck}) == (2 if what == "schedulers" else 8)

    def test_random_crashes_without_an_end_go_on(self) -> None:
        told = changes(RandomCrashes(what="machines", every=SECOND, down=SECOND))
        assert told[-1][0] > 50 * SECOND

    def test_a_fault_that_lasts_no_time_is_over_at_once(self) -> None:
        told = changes(
            MachineCrash(at=2 * SECOND, machine="m3", down=0),
            MachineDrain(at=3 * SECOND, machine="m4", lasts=0),
            SchedulerCrash(at=4 * SECOND, scheduler="s-1", down=0),
        )
        assert [(at / SECOND, what) for at, what in told] == [
            (2, "RemoveMachine 3"),
            (2, "ReviveMachine 3"),
            (3, "DrainMachine 4"),
            (3, "DrainMachine 4"),
            (4, "crash s-1"),
            (4, "restart s-1"),
        ]

    def test_a_random_crash_at_the_very_end_still_strikes(self) -> None:
        def struck(end: int | None) -> list[int]:
            crashes = RandomCrashes(what="machines", every=30 * SECOND, down=SECOND, end=end)
            return [at for at, what in changes(crashes) if what.startswith("RemoveMachine")]

        first = struck(None)[0]
        assert struck(first) == [first]
        assert struck(first - 1) == []
