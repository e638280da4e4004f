"""How a simulated run goes on: when it ends, how far it says it is, when it is watched, and what its
faults tell the host."""

from __future__ import annotations

import io
from typing import Any

import pytest
from scripted_engine import NO_LATENCY, first_fit, of, scripted

from argosy.engines.api import Capabilities, Finishes
from argosy.host.journal import Journal
from argosy.host.records import MachineRecord, ObservedRecord
from argosy.model.events import UsageObserved
from argosy.model.scenario import MachineCrash, MachineRelabel, MachineUse
from argosy.model.transactions import RelabelMachine
from argosy.model.truth import SimulatedJob
from argosy.records.journal_file import JournalFile
from argosy.testing.builders import SECOND, job, scenario, shared_job
from argosy.worlds.sim import SimulatedWorld


def world(jobs: list[SimulatedJob], also: Any = None, **fields: Any) -> SimulatedWorld:
    spec = scenario("scripted", jobs, replicas=1, network=NO_LATENCY, **fields)
    engine = scripted(first_fit, Capabilities(finishes=Finishes.OWN))
    return SimulatedWorld(spec, {"scripted": engine}, jobs=also)


THREE = [job("a", submit=0), job("b", submit=4), job("c", submit=8)]


class TestEnds:
    def test_a_run_ends_with_its_last_task(self) -> None:
        run = world(THREE, faults=(MachineCrash(at=500 * SECOND, machine="m0"),))
        run.run()
        assert (run.runtime.now, run.runtime.open_tasks) == (18 * SECOND, 0)

    @pytest.mark.parametrize(("horizon", "is_done"), [(17, False), (18, True), (19, True)])
    def test_time_goes_on_to_the_horizon_only_if_something_is_left(
        self, horizon: int, is_done: bool
    ) -> None:
        run = world(THREE, horizon=horizon * SECOND)
        run.run()
        assert run.runtime.now == min(horizon, 18) * SECOND
        assert (run.runtime.open_tasks == 0) is is_done

    def test_a_run_that_waits_for_ever_ends_without_a_horizon_and_advances_to_one(self) -> None:
        endless = [job("a", seconds=None, submit=3)]
        for horizon, now in ((None, 3), (50, 50)):
            run = world(endless, horizon=None if horizon is None else horizon * SECOND)
            run.run()
            assert (run.runtime.now, run.runtime.open_tasks) == (now * SECOND, 1)

    def test_jobs_may_come_from_elsewhere_one_by_one(self) -> None:
        drawn: list[str] = []

        def source() -> Any:
            for made in THREE:
                drawn.append(f"{made.job.id} at {run.runtime.now // SECOND}")
                yield made

        run = world([], also=source())
        run.run()
        # The next is drawn as soon as one is submitted, and none of the scenario's own is.
        assert drawn == ["a at 0", "b at 0", "c at 4"]
        assert len(run.host.jobs) == 3

    def test_workers_take_activities_of_their_phases_for_as_long_as_each_takes(self) -> None:
        run = world([shared_job("a", 2, (4, 1), (3, 5))])
        run.run()
        assert run.runtime.now == (3 + 3 + 5) * SECOND


class TestProgress:
    def shares(self, run: SimulatedWorld) -> list[float]:
        told: list[float] = []
        run.run(told.append)
        return told

    def test_without_a_horizon_it_is_the_share_of_jobs_submitted(self) -> None:
        assert self.shares(world(THREE)) == [1 / 3, 2 / 3, 1]

    def test_with_a_horizon_it_is_the_share_of_time(self) -> None:
        assert self.shares(world(THREE, horizon=16 * SECOND)) == [0, 0.25, 0.5]

    def test_it_is_unknown_if_nobody_knows_how_many_jobs_come(self) -> None:
        assert self.shares(world([], also=iter(THREE))) == [0, 0, 0]


class TestWatching:
    def watched(self, step: int, **fields: Any) -> list[tuple[int, int]]:
        """Seconds at which it was looked, and how much processor was taken."""
        run, seen = world(THREE, **fields), []

        def look(at: int) -> int:
            seen.append((at // SECOND, run.host.view.used_total()["cpu"]))
            return at + step * SECOND

        run.watch(2 * SECOND, look)
        run.run()
        return seen

    def test_a_watcher_sees_what_has_happened_by_each_time_it_asked_for(self) -> None:
        assert self.watched(4) == [(2, 1000), (6, 2000), (10, 2000), (14, 1000)]
        # What is due at that very time has happened.
        assert self.watched(2)[:5] == [(2, 1000), (4, 2000), (6, 2000), (8, 3000), (10, 2000)]

    def test_nobody_looks_beyond_the_horizon(self) -> None:
        assert self.watched(4, horizon=13 * SECOND) == [(2, 1000), (6, 2000), (10, 2000)]

    def test_actions_happen_when_they_were_asked_for(self) -> None:
        run, seen = world(THREE), []
        for second in (9, 3):
            run.inject(second * SECOND, lambda: seen.append(run.runtime.now // SECOND))
        run.run()
        assert seen == [3, 9]


class TestFaults:
    def test_another_label_and_observed_use_reach_the_host_as_the_scenario_has_them(self) -> None:
        faults = (
            MachineRelabel(
                at=2 * SECOND, machine="m3", attributes={"os": "new"}, joins={"rack": ("r1",)}
            ),
            MachineUse(at=3 * SECOND, machine="m5", used={"cpu": 700, "memory": 9}),
        )
        spec = scenario("scripted", [job("a", seconds=5)], replicas=1, faults=faults)
        engine = scripted(first_fit, Capabilities(observations=True))
        stream = io.BytesIO()
        journal = Journal(stream)
        run = SimulatedWorld(spec, {"scripted": engine}, journal)
        run.run()
        journal.flush()
        told = list(JournalFile(stream.getvalue()).records())
        assert of(told, MachineRecord) == [
            MachineRecord(2 * SECOND, RelabelMachine(3, {"os": "new"}, {"rack": ("r1",)}))
        ]
        assert of(told, ObservedRecord) == [
            ObservedRecord(3 * SECOND, "cpu", [5], [700]),
            ObservedRecord(3 * SECOND, "memory", [5], [9]),
        ]
        heard = [event for _, _, event in engine.heard if isinstance(event, UsageObserved)]
        assert [(e.resource, e.machines.tolist(), e.used.tolist()) for e in heard] == [
            ("cpu", [5], [700]),
            ("memory", [5], [9]),
        ]
        assert run.host.view.sets_of(3, "rack") == ("r1",)
