"""A workload made from a journal alone: what was observed is the truth of the next run."""

from __future__ import annotations

import io
from typing import Any

import msgspec

from argosy.engines.registry import ENGINES
from argosy.experiments.execute import execute
from argosy.host.journal import Journal
from argosy.host.records import (
    CancelledRecord,
    CrashedRecord,
    EndedRecord,
    FailedRecord,
    MachineRecord,
    PhaseEndedRecord,
    PlacedRecord,
    RestartedRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    ConstantLatency,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Network,
    Output,
    Partition,
    Scenario,
    SchedulerCrash,
)
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    RelabelMachine,
    RemoveMachine,
    ReviveMachine,
)
from argosy.model.truth import GroupTruth, group_with_truth, simulated_job
from argosy.records.journal_file import JournalFile
from argosy.records.observed import PATIENCE, observed_scenario
from argosy.records.state import RunState
from argosy.records.steps import JournalSteps
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND, job, scenario, shared_job
from argosy.worlds.sim import SimulatedWorld

FAULTS = (
    MachineCrash(at=2 * SECOND, machine="m3", down=6 * SECOND),
    MachineDrain(at=3 * SECOND, machine="m4", lasts=SECOND),
    MachineDrain(at=4 * SECOND, machine="m6"),
    MachineResize(at=4 * SECOND, machine="m5", capacity=Resources(2_000, 8 * GIB)),
    SchedulerCrash(at=SECOND, scheduler="s-1", down=5 * SECOND),
    SchedulerCrash(at=9 * SECOND, scheduler="s-0"),
    Partition(at=5 * SECOND, lasts=SECOND, isolated=("s-0",)),
)


def recorded(spec: Scenario) -> tuple[SimulatedWorld, RunState]:
    stream = io.BytesIO()
    journal = Journal(stream)
    world = SimulatedWorld(spec, ENGINES, journal)
    world.run()
    journal.flush()
    return world, RunState.of(JournalFile(stream.getvalue()), until=world.host.runtime.now)


def test_what_was_recorded_whole_gives_the_same_run_again() -> None:
    jobs = [*conformance.workload(40), shared_job("shared", 2, (6, 2), (0.5, 1.0))]
    network = Network(latency=ConstantLatency(delay=7_000))
    spec = scenario("omega", jobs, faults=FAULTS, network=network, failover=5)
    world, state = recorded(spec)
    observed = observed_scenario(state)
    for kept in ("name", "seed", "cell", "fleet", "network", "machines", "failover", "federation"):
        assert getattr(observed, kept) == getattr(spec, kept), kept
    assert observed.left_out == ()
    assert observed.horizon == PATIENCE * state.until
    again, same = recorded(msgspec.structs.replace(observed, output=Output(), audit=True))
    assert again.host.board.counts().tolist() == world.host.board.counts().tolist()
    assert same.finished.machines.tolist() == state.finished.machines.tolist()
    assert same.finished.finished.tolist() == state.finished.finished.tolist()


def test_faults_come_when_they_came() -> None:
    _, state = recorded(scenario("omega", conformance.workload(60), faults=FAULTS))
    assert sorted(map(repr, observed_scenario(state).faults)) == sorted(map(repr, FAULTS))


def test_tasks_that_never_ended_run_as_long_as_estimated_or_as_they_have_run() -> None:
    jobs = [
        job("done", 1, seconds=3),
        job("runs", 1, seconds=100),
        job("web", 1, seconds=None),
        job("giant", 2, cpu=64_000, seconds=7),
    ]
    _, state = recorded(scenario("omega", jobs, horizon=20 * SECOND, replicas=1))
    observed = observed_scenario(state)
    durations = {made.id: made.truth[0].durations for made in observed.jobs}
    assert durations == {
        "done": (3 * SECOND,),
        "runs": (100 * SECOND,),
        "web": (),
        "giant": (7 * SECOND,),
    }
    assert observed.left_out == (
        "3 tasks had not ended: their estimates are taken for their running times",
    )
    assert observed.horizon == 20 * SECOND


def test_engines_get_the_same_estimates_as_before() -> None:
    guessed = simulated_job(
        "a", group_with_truth(4, Resources(1_000, GIB), (3 * SECOND,), estimate=9 * SECOND)
    )
    _, state = recorded(scenario("omega", [guessed, job("b", 2, seconds=5)]))
    assert [made.job for made in observed_scenario(state).jobs] == [
        guessed.job,
        job("b", 2, seconds=5).job,
    ]


def test_the_workload_runs_under_any_engine() -> None:
    from argosy.scenarios.variants import with_engine

    _, state = recorded(scenario("omega", conformance.workload(30), faults=FAULTS))
    observed = observed_scenario(state)
    for engine in ("murmuration", "sparrow", "kube"):
        assert execute(with_engine(observed, engine), None).counts.tasks_finished


def test_what_a_scenario_cannot_say_is_told() -> None:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    machine = Machine("late", Resources(1_000, GIB))
    facts: list[Any] = [
        SubmittedRecord(0, 0, job("a", 2).job, "s-0"),
        MachineRecord(5, AddMachine(machine)),
        PlacedRecord(6, "a", [0], [8], "s-0"),
        FailedRecord(7, 0, 1, 1, ""),
        CancelledRecord(9, 0, [0, 1]),
    ]
    for fact in facts:
        steps.read(fact)
    observed = observed_scenario(RunState(steps, 9))
    assert observed.cell.machines[-1] == machine
    assert observed.faults == (MachineCrash(at=0, machine="late", down=5),)
    assert observed.left_out[1:] == (
        "1 machine joined later: engines know of it from the beginning",
        "2 tasks were cancelled: here they run",
        "1 try of a task failed: here each task runs once",
    )


def read(*facts: Any, until: int) -> RunState:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    for fact in facts:
        steps.read(fact)
    return RunState(steps, until)


def test_a_task_that_never_ended_runs_for_its_estimate_or_longer_if_it_had() -> None:
    room = Resources(1, 1)
    made = simulated_job("a", group_with_truth(4, room, (9,)), group_with_truth(1, room, (3,)))
    placed = PlacedRecord(10, "a", [0, 1, 2, 4], [0, 0, 0, 0], "s-0")
    state = read(
        SubmittedRecord(5, 0, made.job, "s-0"),
        placed,
        EndedRecord(12, [0]),
        until=30,
    )
    (found,) = observed_scenario(state).jobs
    # The first was observed, two have run for 20, and one has not begun; the other group's has.
    assert found.truth == (GroupTruth((2, 20, 20, 9)), GroupTruth((20,)))
    assert found.submit == 5
    # With an estimate beyond what was observed, the estimate counts.
    assert observed_scenario(RunState(state.steps, 11)).jobs[0].truth[0].durations == (2, 9, 9, 9)


def test_phases_that_did_not_end_take_what_the_estimate_implies() -> None:
    shared = shared_job("a", 2, (6, 4), (1.0, 2.0))
    submitted = SubmittedRecord(0, 0, shared.job, "s-0")
    ended = PhaseEndedRecord(7 * SECOND, 0, 0, 1_500_000)
    state = read(submitted, ended, until=8 * SECOND)
    guess = (3 + 4) * SECOND * 2 // 10
    assert observed_scenario(state).jobs[0].truth == (GroupTruth(phases=(1_500_000, guess)),)
    assert observed_scenario(state).left_out == (
        "2 tasks had not ended: their estimates are taken for their running times",
    )
    assert observed_scenario(state).horizon == 8 * SECOND
    over = read(submitted, ended, PhaseEndedRecord(8 * SECOND, 0, 1, 5), until=9 * SECOND)
    assert observed_scenario(over).jobs[0].truth == (GroupTruth(phases=(1_500_000, 5)),)
    assert observed_scenario(over).left_out == ()
    assert observed_scenario(over).horizon == PATIENCE * 9 * SECOND


def test_one_is_told_in_the_singular_and_more_in_the_plural() -> None:
    def said(*facts: Any) -> tuple[str, ...]:
        return observed_scenario(read(*facts, until=9)).left_out

    submitted = SubmittedRecord(0, 0, job("a", 1, seconds=None).job, "s-0")
    relabel = MachineRecord(3, RelabelMachine(0, {"arch": "arm"}))
    new = [MachineRecord(3, AddMachine(Machine(f"n{n}", Resources(1, 1)))) for n in range(2)]
    failed = [FailedRecord(4, 0, n, 1, "") for n in range(2)]
    assert said(submitted) == ()
    assert said(relabel) == ("1 machine was relabelled: here it keeps its labels",)
    assert said(relabel, relabel) == (
        "2 times a machine was relabelled: here all keep their labels",
    )
    assert said(*new) == ("2 machines joined later: engines know of them from the beginning",)
    assert said(submitted, CancelledRecord(5, 0, [0])) == ("1 task was cancelled: here it runs",)
    assert said(submitted, *failed) == ("2 tries of tasks failed: here each task runs once",)
    assert said(SubmittedRecord(0, 0, job("a", 1).job, "s-0")) == (
        "1 task had not ended: its estimate is taken for its running time",
    )


def test_what_comes_back_comes_back_when_it_did_and_nothing_else_does() -> None:
    changes = [
        (1, RemoveMachine(0)),
        (2, RemoveMachine(1)),
        (3, ReviveMachine(1)),
        (4, DrainMachine(2)),
        (5, DrainMachine(3)),
        (6, DrainMachine(3, False)),
        (7, RemoveMachine(1)),
        (9, ReviveMachine(1)),
    ]
    facts: list[Any] = [MachineRecord(at, change) for at, change in changes]
    facts += [CrashedRecord(10, "s-0"), CrashedRecord(11, "s-1"), RestartedRecord(13, "s-1")]
    assert observed_scenario(read(*facts, until=20)).faults == (
        MachineCrash(at=1, machine="m0"),
        MachineCrash(at=2, machine="m1", down=1),
        MachineDrain(at=4, machine="m2"),
        MachineDrain(at=5, machine="m3", lasts=1),
        MachineCrash(at=7, machine="m1", down=2),
        SchedulerCrash(at=10, scheduler="s-0"),
        SchedulerCrash(at=11, scheduler="s-1", down=2),
    )
