"""The state folded from a journal alone, held against what the host counted as it went."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.engines.registry import ENGINES
from argosy.host import TaskState
from argosy.host.journal import Journal
from argosy.host.records import (
    CancelledRecord,
    EndedRecord,
    FailedRecord,
    PlacedRecord,
    RetriedRecord,
    ScaledRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.errors import RunDirectoryError
from argosy.model.scenario import (
    MachineCrash,
    MachineDrain,
    Network,
    Scenario,
    SchedulerCrash,
)
from argosy.model.truth import SimulatedJob
from argosy.records.journal_file import JournalFile
from argosy.records.state import RunState
from argosy.records.steps import JournalSteps, Step
from argosy.testing import conformance
from argosy.testing.builders import SECOND, job, scenario, shared_job
from argosy.testing.scripted_world import ScriptedWorld
from argosy.worlds.sim import SimulatedWorld


def run(spec: Scenario) -> tuple[SimulatedWorld, JournalFile]:
    stream = io.BytesIO()
    journal = Journal(stream)
    world = SimulatedWorld(spec, ENGINES, journal)
    world.run()
    journal.flush()
    return world, JournalFile(stream.getvalue())


def stormy(engine: str, **fields: Any) -> Scenario:
    return scenario(
        engine,
        conformance.workload(70, spacing=0.02),
        replicas=3,
        network=Network(loss=0.05, duplication=0.05, reordering=0.1, extra_delay=SECOND),
        faults=(
            SchedulerCrash(at=SECOND, scheduler="s-1", down=8 * SECOND),
            MachineCrash(at=2 * SECOND, machine="m3", down=6 * SECOND),
            MachineDrain(at=3 * SECOND, machine="m4", lasts=SECOND),
        ),
        **fields,
    )


def require_agreement(world: SimulatedWorld | ScriptedWorld, state: RunState) -> None:
    board, runtime = world.host.board, world.host.runtime
    assert list(state.counts.values()) == board.counts().tolist()
    jobs = state.jobs
    for host, fold in zip(
        (*board.job_columns(), board.thought_by_job(), board.abandoned_by_job()),
        (
            *(jobs.submitted, jobs.first_attempt, jobs.all_placed, jobs.done),
            *(jobs.thought, jobs.abandoned),
        ),
        strict=True,
    ):
        assert host.tolist() == fold.tolist()
    for host, rows, order in (
        (runtime.task_columns(), state.finished, slice(None)),
        (runtime.running_columns(), state.running, np.argsort(runtime.running_columns()[0])),
    ):
        fold = (rows.tasks, rows.machines, rows.placed, rows.started, rows.finished)
        assert [column[order].tolist() for column in host] == [column.tolist() for column in fold]
    for scheduler in world.host.schedulers:
        tally = state.steps.schedulers[scheduler.name]
        assert (tally.jobs, tally.crashes) == (scheduler.jobs, scheduler.crashes)
        assert tally.refused == scheduler.refused
        # The journal does not tell transactions of one instant apart, of which only Vela has several.
        assert tally.conflicts <= scheduler.conflicts
        assert tally.conflicts == scheduler.conflicts or scheduler.entry.engine == "vela"
    samples, first = runtime.samples(), 1 + 2 * len(world.host.view.dimensions)
    series = state.over_time(samples[:, 0])
    for at, name in enumerate(("pending", "queued", "running")):
        assert series[name].tolist() == samples[:, first + at].tolist()


@pytest.mark.parametrize("horizon", [None, 4 * SECOND], ids=["to the end", "cut off"])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_fold_agrees_with_the_host(engine: str, horizon: int | None) -> None:
    world, journal = run(stormy(engine, horizon=horizon))
    require_agreement(world, RunState.of(journal, until=world.host.runtime.now))


@pytest.mark.parametrize("engine", ["omega", "mapreduce", "murmuration", "sparrow"])
def test_the_fold_agrees_where_tasks_are_preempted_given_up_or_share_work(engine: str) -> None:
    jobs = [
        *(job(f"low{i}", 4, cpu=2_000, seconds=30, submit=i) for i in range(4)),
        job("high", 4, cpu=4_000, seconds=5, submit=5, precedence=9),
        job("giant", 2, cpu=64_000, submit=6),
        shared_job("shared", 3, (9, 2), (2.0, 3.0), submit=7),
    ]
    knows = ENGINES[engine].settings_type.__struct_fields__
    settings = {"preempt": True, "attempts": 3}
    spec = scenario(
        engine,
        jobs,
        settings={name: value for name, value in settings.items() if name in knows},
        horizon=60 * SECOND,
    )
    world, journal = run(spec)
    require_agreement(world, RunState.of(journal, until=world.host.runtime.now))


@pytest.mark.parametrize("engine", ["omega", "murmuration", "sparrow", "firmament", "mapreduce"])
def test_the_fold_agrees_where_machines_act_and_users_change_their_minds(engine: str) -> None:
    """Tries fail, reports come late, jobs grow and shrink and are cancelled."""
    stream = io.BytesIO()
    journal = Journal(stream)
    small, large, less = (job("web", count, cpu=500, seconds=20) for count in (4, 9, 6))
    spec = stormy(engine)
    spec = msgspec.structs.replace(spec, jobs=(small, *spec.jobs))
    world = ScriptedWorld(spec, ENGINES, journal)

    def scale(made: SimulatedJob) -> None:
        world.tell_times(0, made)
        world.host.scale(0, made.job)

    world.inject(4 * SECOND, lambda: scale(large))
    world.inject(6 * SECOND, lambda: scale(less))
    world.inject(30 * SECOND, lambda: scale(large))
    world.inject(SECOND, lambda: world.host.cancel(5))
    world.inject(3 * SECOND, lambda: world.host.cancel(len(world.host.jobs) - 1))
    world.run()
    journal.flush()
    state = RunState.of(JournalFile(stream.getvalue()), until=world.runtime.now)
    assert state.count(Step.FAILED)
    assert state.counts[TaskState.CANCELLED]
    require_agreement(world, state)


def test_the_fold_of_part_of_a_journal_is_the_state_at_that_time() -> None:
    _, journal = run(stormy("murmuration"))
    half = journal.data[: len(journal.data) // 2]
    state = RunState.of(JournalFile(half))
    assert 0 < state.until < journal.reached()
    assert sum(state.counts.values()) == state.jobs.tasks.sum()
    whole = RunState.of(journal)
    seen = len(state.finished.tasks)
    assert 0 < seen < len(whole.finished.tasks)
    assert state.finished.finished.tolist() == whole.finished.finished[:seen].tolist()


def test_claims_last_from_the_start_to_the_end_of_a_task() -> None:
    _, journal = run(scenario("murmuration", [job("a", 3, cpu=4_000, seconds=10)], replicas=1))
    state = RunState.of(journal)
    assert (state.claims.end - state.claims.begin).tolist() == [10 * SECOND] * 3
    assert state.claims.begin.tolist() == state.finished.started.tolist()


def folded(*facts: Any) -> RunState:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    for fact in facts:
        steps.read(fact)
    return RunState(steps, facts[-1].at)


def test_tasks_fail_are_tried_again_and_are_cancelled() -> None:
    state = folded(
        SubmittedRecord(0, 0, job("a", 4).job, "s-0"),
        PlacedRecord(1, "a", [0, 1, 2], [0, 0, 0], "s-0"),
        FailedRecord(2, 0, 1, 1, ""),
        RetriedRecord(2, "a", [0], 1, ""),
        FailedRecord(3, 1, 1, 1, ""),
        RetriedRecord(3, "a", [1], 1, "", True),
        EndedRecord(4, [2]),
        CancelledRecord(5, 0, [2, 3]),
    )
    assert {where: count for where, count in state.counts.items() if count} == {
        TaskState.PENDING: 1,
        TaskState.FAILED: 1,
        TaskState.FINISHED: 1,
        TaskState.CANCELLED: 1,
    }


@pytest.mark.parametrize(
    ("placed", "again", "first"),
    [([0, 1], [1], 1), ([0, 2], [2], 1), ([1, 2], [2], 0), ([0, 1, 2], [], 3)],
)
def test_the_first_task_that_is_pending_may_have_been_placed_before_or_not(
    placed: list[int], again: list[int], first: int
) -> None:
    state = folded(
        SubmittedRecord(0, 0, job("a", 4).job, "s-0"),
        PlacedRecord(1, "a", placed, [0] * len(placed), "s-0"),
        *(FailedRecord(2, index, 1, 1, "") for index in again),
        RetriedRecord(2, "a", again, 1, ""),
    )
    assert state.open_tasks(TaskState.PENDING).tolist() == [first]


def test_a_job_that_grows_has_more_pending_tasks_and_one_that_shrinks_cancelled_ones() -> None:
    submitted = SubmittedRecord(0, 0, job("a", 2).job, "s-0")
    grown = folded(submitted, ScaledRecord(1, 0, job("a", 5).job))
    assert grown.counts[TaskState.PENDING] == 5
    shrunk = folded(submitted, ScaledRecord(1, 0, job("a", 1).job))
    assert (shrunk.counts[TaskState.PENDING], shrunk.counts[TaskState.CANCELLED]) == (1, 1)


def test_a_journal_without_jobs_has_an_empty_state() -> None:
    state = RunState.of(run(scenario("omega", []))[1])
    assert not any(state.counts.values())
    assert len(state.finished.tasks) == len(state.claims.tasks) == len(state.jobs.done) == 0


def test_a_line_that_cannot_be_read_is_named() -> None:
    _, journal = run(scenario("omega", [job("a")]))
    lines = journal.data.splitlines(keepends=True)
    broken = JournalFile(b"".join([*lines[:2], b'{"what":"placed","at":"soon"}\n', *lines[2:]]))
    with pytest.raises(RunDirectoryError, match="journal:3"):
        RunState.of(broken)


def test_kinds_of_line_that_a_later_version_writes_are_skipped() -> None:
    _, journal = run(scenario("omega", [job("a", 2)], replicas=1))
    news = b'{"what":"moved-house","at":0,"job":"a","number":0,"indices":[0]}\n'
    lines = journal.data.splitlines(keepends=True)
    newer = JournalFile(b"".join([lines[0], *(line + news for line in lines[1:])]))
    assert list(newer.records()) == list(journal.records())
    assert list(newer.facts()) == list(journal.facts())
    assert list(newer.about("a", 0, 0)) == list(journal.about("a", 0, 0))
    assert RunState.of(newer).counts == RunState.of(journal).counts


def test_every_kind_of_line_is_a_fact_or_left_out() -> None:
    """A new kind of record must be thought of: facts are decoded, all others are passed over."""
    from typing import get_args

    from argosy.host.records import JournalRecord
    from argosy.records.journal_file import _REST, Fact

    for kind in get_args(JournalRecord):
        line = b'{"what":"%b","at":1}\n' % str(kind.__struct_config__.tag).encode()
        assert (kind in get_args(Fact)) != bool(_REST.match(line)), kind


def test_a_journal_of_another_version_is_refused() -> None:
    _, journal = run(scenario("omega", [job("a")]))
    other = journal.data.replace(b'"version":1', b'"version":99', 1)
    with pytest.raises(RunDirectoryError, match="a journal of version 99; expected version 1"):
        RunState.of(JournalFile(other))
