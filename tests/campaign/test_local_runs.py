"""Campaigns in the local world: servers that are killed, and what the next ones restore."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from argosy.campaign.draw import ScenarioSource
from argosy.campaign.local_runs import PlayedProcesses, RestartedCluster, VirtualTime
from argosy.campaign.recordings import WorldRecording
from argosy.campaign.trial import judge, run_trial
from argosy.campaign.worlds import WORLDS
from argosy.engines.registry import ENGINES
from argosy.host import records
from argosy.model.errors import ScenarioError
from argosy.model.resources import Resources
from argosy.model.scenario import (
    MachineCrash,
    MachineDrain,
    MachineResize,
    RandomCrashes,
    Scenario,
    SchedulerCrash,
)
from argosy.model.transactions import ResizeMachine
from argosy.records.journal_file import JournalFile
from argosy.scenarios.toml_text import to_toml
from argosy.testing.builders import SECOND, job, scenario, shared_job

LOCAL = WORLDS["local"]
#: Two for each engine.
FIXED_RUNS = 2 * len(ENGINES)


def killed(*times: float, down: float = 1, engine: str = "omega", **more: object) -> Scenario:
    """Three jobs, and servers that are killed at these times."""
    jobs = [
        job("a", 4, cpu=3_000, seconds=10),
        job("short", 2, seconds=1),
        job("late", 3, seconds=5, submit=6),
    ]
    faults = tuple(
        SchedulerCrash(at=int(at * SECOND), scheduler="s", down=int(down * SECOND)) for at in times
    )
    spec = scenario(engine, jobs, replicas=1, horizon=600 * SECOND)
    return msgspec.structs.replace(spec, faults=(*faults, *more.pop("faults", ())), **more)


def found(spec: Scenario, recording: WorldRecording) -> dict[str, str]:
    """What is wrong, but for the replay, which no tampered journal survives."""
    findings = judge(spec, ENGINES, recording, is_exact=False)
    return {finding.check: finding.kind for finding in findings if finding.check != "replay"}


def tampered(
    recording: WorldRecording,
    change: Callable[[records.JournalRecord], records.JournalRecord | None],
) -> WorldRecording:
    """Another second life: each record is replaced, or left out."""
    stream = io.BytesIO()
    for record in JournalFile(recording.later[0]).records():
        made = change(record)
        if made is not None:
            stream.write(msgspec.json.encode(made) + b"\n")
    return msgspec.structs.replace(recording, later=(stream.getvalue(),), counts=None)


@pytest.mark.parametrize("number", range(FIXED_RUNS))
def test_nothing_is_wrong_in_a_fixed_part(number: int, tmp_path: Path) -> None:
    source = ScenarioSource(1, ENGINES, without=LOCAL.lacks)
    file = tmp_path / "scenario.toml"
    file.write_text(to_toml(source.draw(number).document), "utf-8")
    assert run_trial(file, LOCAL).findings == []


@pytest.mark.parametrize("engine", ["omega", "sparrow", "medea", "murmuration"])
@pytest.mark.parametrize("seed", range(4))
def test_a_server_goes_on_after_each_kill_whenever_it_comes(engine: str, seed: int) -> None:
    spec = killed(0, 0.5, 3, 3.5, 6, 9, engine=engine, seed=seed)
    recording = LOCAL.run(spec, ENGINES)
    assert len(recording.journals) >= 4
    assert judge(spec, ENGINES, recording, is_exact=False) == []
    counts = {where.value: count for where, count in (recording.counts or {}).items() if count}
    assert counts == {"finished": 9}
    assert recording.processes == {}


def test_a_run_without_kills_has_one_journal_and_the_same_times_as_the_scenario() -> None:
    spec = killed()
    recording = LOCAL.run(spec, ENGINES)
    assert recording.later == ()
    submitted = {
        record.job.id: record.at
        for record in JournalFile(recording.journal).records()
        if isinstance(record, records.SubmittedRecord)
    }
    assert submitted == {"a": 0, "short": 0, "late": 6 * SECOND}


def test_machines_and_servers_that_crash_at_random_are_survived() -> None:
    every = {"every": 3 * SECOND, "down": SECOND, "end": 60 * SECOND}
    faults = (
        RandomCrashes(what="machines", **every),
        RandomCrashes(what="schedulers", **every),
        MachineDrain(at=SECOND, machine="m0", lasts=4 * SECOND),
        MachineResize(at=2 * SECOND, machine="m1", capacity=killed().cell.machines[1].capacity),
        MachineCrash(at=5 * SECOND, machine="m2", down=None),
    )
    spec = killed(faults=faults)
    recording = LOCAL.run(spec, ENGINES)
    assert len(recording.later) > 3
    assert judge(spec, ENGINES, recording, is_exact=False) == []


@pytest.fixture(scope="module")
def two_lives() -> tuple[Scenario, WorldRecording]:
    spec = killed(3)
    recording = LOCAL.run(spec, ENGINES)
    assert len(recording.later) == 1
    assert found(spec, recording) == {}
    return spec, recording


def restored(
    name: str, **state: object
) -> Callable[[records.JournalRecord], records.JournalRecord]:
    def change(record: records.JournalRecord) -> records.JournalRecord:
        if isinstance(record, records.RestoredRecord) and record.job.id == name:
            return msgspec.structs.replace(
                record, state=msgspec.structs.replace(record.state, **state)
            )
        return record

    return change


def test_a_job_that_is_not_restored_is_noticed(
    two_lives: tuple[Scenario, WorldRecording],
) -> None:
    spec, recording = two_lives

    def leave_out(record: records.JournalRecord) -> records.JournalRecord | None:
        return None if isinstance(record, records.RestoredRecord) else record

    with_loss = tampered(recording, leave_out)
    first = JournalFile(with_loss.later[0]).records()
    header = msgspec.structs.replace(
        with_loss, later=(msgspec.json.encode(next(iter(first))) + b"\n",)
    )
    assert found(spec, header)["restored"] == "missing"


def test_a_task_that_is_restored_as_over_or_elsewhere_is_noticed(
    two_lives: tuple[Scenario, WorldRecording],
) -> None:
    spec, recording = two_lives
    over = tampered(recording, restored("a", running=(), machines=(), finished=(0, 1, 2, 3)))
    assert found(spec, over)["restored"] == "running as finished"
    elsewhere = tampered(recording, restored("a", machines=(3, 3, 3, 3)))
    assert found(spec, elsewhere)["restored"] == "elsewhere"


def test_machines_that_come_back_otherwise_are_noticed(
    two_lives: tuple[Scenario, WorldRecording],
) -> None:
    spec, recording = two_lives

    def change(record: records.JournalRecord) -> records.JournalRecord:
        if not isinstance(record, records.Header):
            return record
        first, *rest = record.setup.cell.machines
        larger = msgspec.structs.replace(first, attributes={"disk": "ssd"})
        machines = msgspec.structs.replace(record.setup.cell, machines=(larger, *rest))
        return msgspec.structs.replace(
            record, setup=msgspec.structs.replace(record.setup, cell=machines)
        )

    assert found(spec, tampered(recording, change))["restored"] == "machine"


def test_processes_without_tasks_and_tasks_without_processes_are_noticed() -> None:
    spec = msgspec.structs.replace(killed(), horizon=5 * SECOND)
    recording = LOCAL.run(spec, ENGINES)
    assert found(spec, recording) == {}
    assert recording.processes is not None
    assert sorted(recording.processes) == ["a/0", "a/1", "a/2", "a/3"]
    fewer = dict(list(recording.processes.items())[1:])
    for processes in (fewer, recording.processes | {"short/0": "m0"}):
        changed = msgspec.structs.replace(recording, processes=processes)
        assert found(spec, changed) == {"processes": ""}


def test_no_try_is_launched_twice_and_no_task_runs_twice_at_once() -> None:
    spec = killed()
    time = VirtualTime()
    processes = PlayedProcesses(spec, time, lambda number, end: None)
    made, machine = spec.jobs[0].job, spec.cell.machines[0]
    processes.launch(1, made, 0, machine)
    with pytest.raises(AssertionError, match="try 1 is launched twice"):
        processes.launch(1, made, 1, machine)
    with pytest.raises(AssertionError, match="a/0 runs already"):
        processes.launch(2, made, 0, machine)


def test_a_process_that_was_told_to_stop_does_not_count() -> None:
    spec = killed()
    processes = PlayedProcesses(spec, VirtualTime(), lambda number, end: None)
    made, machine = spec.jobs[0].job, spec.cell.machines[0]
    for index in range(2):
        processes.launch(1 + index, made, index, machine)
    processes.stop(1)
    assert processes.on_machines() == {"a/1": machine.name}


def test_jobs_whose_tasks_share_work_are_refused() -> None:
    spec = killed()
    LOCAL.check(spec)
    shared = scenario("mapreduce", [shared_job("maps", 3, (9,), (2.0,))])
    with pytest.raises(ScenarioError, match="the tasks of job maps share work"):
        LOCAL.check(shared)


def test_what_was_not_written_when_the_server_was_killed_is_asked_again(tmp_path: Path) -> None:
    """All moments at which a server can be killed occur, and in one of them a job is submitted late."""
    late = set()
    for seed in range(8):
        spec = killed(6, seed=seed)
        directory = tmp_path / str(seed)
        directory.mkdir()
        recording = RestartedCluster(spec, ENGINES, directory).run()
        late |= {
            record.at
            for journal in recording.journals
            for record in JournalFile(journal).records()
            if isinstance(record, records.SubmittedRecord) and record.job.id == "late"
        }
        assert judge(spec, ENGINES, recording, is_exact=False) == []
    assert late == {6 * SECOND, 7 * SECOND}


def test_a_machine_that_is_resized_while_there_is_no_server_is_resized_by_the_next() -> None:
    larger = Resources(9_000, 2**40)
    resize = MachineResize(at=2 * SECOND, machine="m1", capacity=larger)
    recording = LOCAL.run(killed(1, down=3, faults=(resize,)), ENGINES)
    assert [
        (record.at, record.change)
        for record in JournalFile(recording.later[0]).records()
        if isinstance(record, records.MachineRecord)
    ] == [(4 * SECOND, ResizeMachine(1, larger))]
