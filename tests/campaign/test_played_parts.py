"""The parts of worlds that are played: time, processes, how tries end, and when faults strike."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from argosy.campaign.local_runs import FOREVER, LONGEST_STOP, PlayedProcesses, VirtualTime
from argosy.campaign.played_ends import PlayedEnd, PlayedEnds
from argosy.campaign.scheduled_faults import ScheduledFaults
from argosy.campaign.worlds import WORLDS
from argosy.engines.registry import ENGINES
from argosy.host import records
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentDown,
    AgentSlow,
    AgentStale,
    Fault,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Partition,
    RandomCrashes,
    Scenario,
    SchedulerCrash,
)
from argosy.model.transactions import RemoveMachine, ResizeMachine, ReviveMachine
from argosy.model.truth import group_with_truth, simulated_job
from argosy.records.journal_file import JournalFile
from argosy.testing.builders import SECOND, job, scenario
from argosy.testing.scripted_world import FAILING, RETRIES
from argosy.worlds.local.turn import TryResult


class Scripted:
    """Random numbers as they are given; `below` is as large as it can be."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def uniform(self) -> float:
        return self.numbers.pop(0)

    exponential = uniform

    def below(self, end: int) -> int:
        return end - 1


def ends(*jobs: Any, numbers: Iterable[float] = ()) -> Any:
    random: Any = Scripted(*numbers)
    return PlayedEnds(scenario("omega", [*jobs], replicas=1), random)


class TestEndsOfTries:
    def test_each_task_takes_its_own_time_and_extra_workers_that_of_the_last(self) -> None:
        group = group_with_truth(3, Resources(1), (4, 5, 6))
        played = ends(simulated_job("a", group), job("b", 2, seconds=1), numbers=[1.0] * 9)
        assert [played.draw("a", index).after for index in (0, 1, 2, 3, 9)] == [4, 5, 6, 6, 6]
        assert played.draw("b", 1) == PlayedEnd(SECOND)

    def test_what_runs_until_it_is_stopped_or_ends_at_once_never_fails(self) -> None:
        played = ends(job("web", seconds=None), job("short", seconds=0))
        assert played.draw("web", 0) is None
        assert played.draw("short", 0) == PlayedEnd(0)

    def test_only_so_many_tries_of_a_task_fail(self) -> None:
        played = ends(job("a", 2, seconds=3), job("b", seconds=3), numbers=[0.0] * 99)
        fails, ends_well = PlayedEnd(3 * SECOND - 1, fails=True), PlayedEnd(3 * SECOND)
        for task in (("a", 0), ("a", 1), ("b", 0)):
            drawn = [played.draw(*task) for _ in range(RETRIES + 2)]
            assert drawn == [fails] * RETRIES + [ends_well] * 2

    def test_a_try_fails_below_the_limit_alone(self) -> None:
        played = ends(job("a"), numbers=[FAILING, FAILING - 0.001])
        assert [played.draw("a", 0).fails for _ in range(2)] == [False, True]


def test_what_is_due_at_the_same_time_happens_in_the_order_in_which_it_was_planned() -> None:
    time, happened = VirtualTime(), list[str]()
    assert (time.next_at, time.take()) == (FOREVER, None)
    for at, what in ((5, "late"), (3, "b"), (3, "a"), (3, "c")):
        time.at(at, partial(happened.append, what))
    assert (time.next_at, time.take()) == (3, None)
    time.now = 3
    while (action := time.take()) is not None:
        action()
    assert happened == ["b", "a", "c"]
    assert time.next_at == 5


class TestProcesses:
    ENDED = TryResult(0)
    STOPPED = TryResult(-15, "stopped", was_stopped=True)

    @pytest.fixture
    def spec(self) -> Scenario:
        return scenario("omega", [job("a", 3, seconds=3)], replicas=1)

    @pytest.fixture
    def played(self, spec: Scenario) -> PlayedProcesses:
        self.heard: list[tuple[int, int, TryResult | None]] = []
        self.time = VirtualTime()
        made = PlayedProcesses(
            spec,
            self.time,
            lambda number, end: self.heard.append((self.time.now, number, end)),
        )
        drawn: Any = ends(*spec.jobs, numbers=[1.0] * 9)
        made._ends = drawn
        random: Any = Scripted()
        made._random = random
        return made

    def launch(self, played: PlayedProcesses, spec: Scenario, number: int, index: int = 0) -> None:
        played.launch(number, spec.jobs[0].job, index, spec.cell.machines[number])

    def go_on(self, until: int = FOREVER) -> None:
        while self.time.next_at < until:
            self.time.now = self.time.next_at
            action = self.time.take()
            assert action is not None
            action()
        self.time.now = min(until, self.time.now if until == FOREVER else until)

    def test_a_process_ends_after_its_time_and_its_task_may_run_again(
        self, spec: Scenario, played: PlayedProcesses
    ) -> None:
        self.launch(played, spec, 1)
        assert played.adopt(1) is True
        assert played.on_machines() == {"a/0": "m1"}
        self.go_on()
        assert self.heard == [(3 * SECOND, 1, self.ENDED)]
        assert played.adopt(1) == self.ENDED
        assert played.on_machines() == {}
        self.launch(played, spec, 2)
        assert played.on_machines() == {"a/0": "m2"}

    def test_a_process_that_fails_says_so(self, spec: Scenario, played: PlayedProcesses) -> None:
        drawn: Any = ends(*spec.jobs, numbers=[0.0])
        played._ends = drawn
        self.launch(played, spec, 1)
        self.go_on()
        assert self.heard == [(3 * SECOND - 1, 1, TryResult(1, "the script says so"))]

    def test_a_process_that_is_stopped_ends_once(
        self, spec: Scenario, played: PlayedProcesses
    ) -> None:
        self.launch(played, spec, 1)
        self.go_on(SECOND)
        played.stop(1)
        self.go_on()
        assert self.heard == [(SECOND + LONGEST_STOP - 1, 1, self.STOPPED)]
        assert played.adopt(1) == self.STOPPED

    def test_who_stops_what_is_over_or_never_began_hears_how_it_ended(
        self, spec: Scenario, played: PlayedProcesses
    ) -> None:
        self.launch(played, spec, 1)
        self.go_on()
        played.stop(1)
        played.stop(7)
        self.go_on()
        stopped = 3 * SECOND + LONGEST_STOP - 1
        assert self.heard[1:] == [(stopped, 1, self.ENDED), (stopped, 7, None)]
        assert played.adopt(7) is False

    def test_numbers_of_tries_go_on_after_the_largest(
        self, spec: Scenario, played: PlayedProcesses
    ) -> None:
        assert played.discard_after(3) == 3
        self.launch(played, spec, 5)
        self.launch(played, spec, 4, index=1)
        assert [played.discard_after(number) for number in (3, 6)] == [5, 6]


class Struck:
    """Keeps what strikes, and when."""

    def __init__(self, time: VirtualTime) -> None:
        self.time = time
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self.told.append((self.time.now, name, *values))


def struck(*faults: Fault, numbers: Iterable[float] = ()) -> list[tuple[Any, ...]]:
    time = VirtualTime()
    target: Any = Struck(time)
    random: Any = Scripted(*numbers)
    spec = scenario("omega", [], faults=faults)
    ScheduledFaults(spec, target, random, time.at, lambda: time.now).begin()
    while time.next_at < FOREVER:
        time.now = time.next_at
        action = time.take()
        assert action is not None
        action()
    return target.told  # type: ignore[no-any-return]


class TestFaults:
    def test_every_fault_strikes_when_and_whom_it_says(self) -> None:
        small = Resources(1, 2)
        others = (
            Partition(at=6, lasts=1, isolated=("s-0",)),
            AgentDown(at=7),
            AgentSlow(at=8, extra=1),
            AgentStale(at=9),
        )
        told = struck(
            MachineCrash(at=1, machine="m1", down=5),
            MachineCrash(at=2, machine="m2"),
            MachineResize(at=3, machine="m3", capacity=small),
            SchedulerCrash(at=4, scheduler="s-0", down=0),
            SchedulerCrash(at=5, scheduler="s-1"),
            *others,
        )
        assert told == [
            (1, "crash_machine", "m1", 5),
            (2, "crash_machine", "m2", None),
            (3, "resize_machine", "m3", small),
            (4, "kill_server", 0),
            (5, "kill_server", None),
            *((fault.at, "disturb", fault) for fault in others),
        ]

    @pytest.mark.parametrize(("lasts", "over"), [(None, []), (0, [20]), (5, [25])])
    def test_a_drain_lasts_as_long_as_it_says(self, lasts: int | None, over: list[int]) -> None:
        told = struck(MachineDrain(at=20, machine="m0", lasts=lasts))
        undone = [(at, "drain_machine", "m0", False) for at in over]
        assert told == [(20, "drain_machine", "m0", True), *undone]

    def test_crashes_at_random_follow_each_other_until_their_end(self) -> None:
        every = RandomCrashes(what="machines", every=10, down=3, start=5, end=21)
        # The last of three comes right at the end; between two, there is always some time.
        told = struck(every, numbers=[1.0, 0.5, 0.01, 0.0])
        assert told == [(at, "crash_machine", "m7", 3) for at in (15, 20, 21)]

    def test_servers_are_killed_at_random_too_and_without_an_end(self) -> None:
        every = RandomCrashes(what="schedulers", every=10, down=3)
        told = struck(every, numbers=[1.0, 2.0, FOREVER])
        assert told == [(10, "kill_server", 3), (30, "kill_server", 3)]


def changes(*faults: Fault, seconds: float | None = 20) -> list[tuple[int, Any]]:
    """What happens to machines in the local world, besides drains."""
    spec = scenario("omega", [job("a", seconds=seconds)], replicas=1, faults=faults)
    recording = WORLDS["local"].run(spec, ENGINES)
    return [
        (record.at, record.change)
        for journal in recording.journals
        for record in JournalFile(journal).records()
        if isinstance(record, records.MachineRecord)
    ]


def test_a_machine_comes_back_with_the_capacity_that_it_has_by_then() -> None:
    larger = Resources(9_000, 2**40)
    found = changes(
        MachineCrash(at=SECOND, machine="m7", down=3 * SECOND),
        # It is away, so this changes nothing before it is back.
        MachineCrash(at=2 * SECOND, machine="m7", down=SECOND),
        MachineResize(at=2 * SECOND, machine="m7", capacity=larger),
    )
    assert found[:3] == [
        (SECOND, RemoveMachine(7)),
        (4 * SECOND, ReviveMachine(7)),
        (4 * SECOND, ResizeMachine(7, larger)),
    ]


def test_a_machine_that_is_down_for_no_time_comes_back_at_once() -> None:
    found = changes(MachineCrash(at=SECOND, machine="m7", down=0))
    assert found[:2] == [(SECOND, RemoveMachine(7)), (SECOND, ReviveMachine(7))]


@pytest.mark.parametrize(("down", "away"), [(None, SECOND), (0, 1), (5, 5)])
def test_the_next_server_comes_when_the_scenario_says_or_else_soon(
    down: int | None, away: int
) -> None:
    kill = SchedulerCrash(at=3 * SECOND, scheduler="s", down=down)
    spec = scenario("omega", [job("a", seconds=20)], replicas=1, faults=(kill,))
    recording = WORLDS["local"].run(spec, ENGINES)
    header = JournalFile(recording.later[0]).header()
    assert (len(recording.later), header.setup.began) == (1, 3 * SECOND + away)


@pytest.mark.parametrize(("horizon", "state"), [(SECOND, "running"), (60 * SECOND, "finished")])
def test_a_local_run_ends_with_its_last_task_or_at_its_horizon(horizon: int, state: str) -> None:
    spec = scenario("omega", [job("a", seconds=9)], replicas=1, horizon=horizon)
    recording = WORLDS["local"].run(spec, ENGINES)
    assert recording.counts is not None
    assert {where.value for where, count in recording.counts.items() if count} == {state}
    if state == "running":
        assert recording.ended_at == horizon
        return
    # What happens right at the horizon belongs to the run.
    exact = scenario("omega", [job("a", seconds=9)], replicas=1, horizon=recording.ended_at)
    assert WORLDS["local"].run(exact, ENGINES).counts == recording.counts
