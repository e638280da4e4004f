"""Kubernetes' scheduler, as the Murmuration paper describes and varies it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from argosy.cell import View
from argosy.engines.api import Context, Settings
from argosy.engines.kube import Kube, KubeSettings
from argosy.engines.kube.engine import looks_at
from argosy.engines.kube.queues import Batch, QueuedPod, ReadyQueue, TaskKind
from argosy.engines.kube.room import Room
from argosy.engines.omega import Omega
from argosy.host.records import (
    AbandonedRecord,
    AttemptRecord,
    ExplainedRecord,
    LostRecord,
    PlacedRecord,
    RefusedRecord,
)
from argosy.model.explanations import Explanation, Why
from argosy.model.jobs import job_of
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    FleetEntry,
    MachineCrash,
    MachineResize,
    Network,
    Scenario,
    SchedulerLimits,
    Takes,
)
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun


class ChanceByAttempt(Kube):
    """Which of several equally good machines a task gets depends on the task and the time alone, not on
    how many searches there were before."""

    def _choose(self, pod: QueuedPod, view: View, now: int) -> bool:
        self._context = structs.replace(self._context, random=Random(pod.task ^ now))
        return super()._choose(pod, view, now)


class OneByOne(ChanceByAttempt):
    """The same scheduler, which makes and looks at every single attempt."""

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, KubeSettings)
        super().__init__(structs.replace(settings, skip_hopeless_attempts=False), context)
        self._room = _Unknown(preempts=settings.preempt)


class _Unknown(Room):
    def found_none(self, kind: TaskKind, explanation: Explanation, view: View, now: int) -> None:
        return


AT_ONCE = Network(latency=ConstantLatency(delay=0))


def run(jobs: list[SimulatedJob], machines: int = 1, **fields: Any) -> ConformanceRun:
    fields.setdefault("cell", cell(machines, cpu=1_000))
    return ConformanceRun(Kube, scenario("kube", jobs, replicas=1, network=AT_ONCE, **fields))


def placed(trial: ConformanceRun, name: str) -> list[PlacedRecord]:
    return trial.of(PlacedRecord, name)


def placed_at(trial: ConformanceRun, name: str) -> list[float]:
    return [line.at / SECOND for line in placed(trial, name)]


def test_tasks_are_decided_on_one_by_one() -> None:
    trial = run([job("a", 3, cpu=100)])
    assert placed_at(trial, "a") == pytest.approx([0.005, 0.010, 0.015])


def test_the_least_allocated_machine_is_taken_or_the_most_allocated() -> None:
    jobs = [job("first", 1, cpu=300), job("then", 2, cpu=300, submit=1)]
    spread = run(jobs, 3)
    [taken] = placed(spread, "first")[0].machines
    assert taken not in [line.machines[0] for line in placed(spread, "then")]
    packed = run(jobs, 3, settings={"score": "most-allocated"})
    [taken] = placed(packed, "first")[0].machines
    assert {line.machines[0] for line in placed(packed, "then")} == {taken}


def test_among_equal_machines_chance_decides() -> None:
    jobs = [job(f"j{i}", cpu=1_000, seconds=0.5, submit=i) for i in range(200)]
    chosen = Counter(line.machines[0] for line in run(jobs, 4).of(PlacedRecord))
    assert len(chosen) == 4
    assert min(chosen.values()) > 25


@pytest.mark.parametrize(
    ("retry", "expected"),
    # The machine is free at 10.005 s. Every attempt takes 5 ms and begins when the last one is over.
    [("30s", 30.015), ("1s", 10.06), ("0s", 10.01)],
)
def test_a_task_without_room_waits_before_it_is_tried_again(retry: str, expected: float) -> None:
    jobs = [job("first", cpu=1_000), job("second", cpu=1_000)]
    micros = int(float(retry.removesuffix("s")) * SECOND)
    trial = run(jobs, settings={"retry": micros})
    assert placed_at(trial, "second") == pytest.approx([expected], abs=0.006)


def test_a_later_task_may_be_tried_just_when_room_appears() -> None:
    """Why the paper's tail comes from scheduling: the earlier task still waits."""
    jobs = [
        job("running", cpu=1_000),
        job("earlier", cpu=1_000, submit=1),
        job("later", cpu=1_000, submit=12),
    ]
    trial = run(jobs)
    assert placed_at(trial, "later")[0] < placed_at(trial, "earlier")[0]


def test_higher_precedence_is_decided_on_first_and_pushes_out_lower() -> None:
    jobs = [
        job("low", 1, cpu=1_000, precedence=0),
        job("middle", 1, cpu=1_000, submit=1, precedence=1),
        job("high", 1, cpu=1_000, submit=1, precedence=2),
    ]
    trial = run(jobs)
    assert placed_at(trial, "high") == pytest.approx([1.01], abs=0.006)
    assert next(line.why for line in trial.of(LostRecord)) == "preempted"
    trial.require_all_finished()
    assert not run(jobs, settings={"preempt": False}).of(LostRecord)


def test_a_task_that_never_fits_is_explained_and_given_up_after_its_attempts() -> None:
    trial = run([job("giant", cpu=5_000)], settings={"retry": SECOND, "attempts": 20})
    explained = trial.of(ExplainedRecord)
    assert len(explained) == 1, "nothing changes, and nothing new is said"
    [given_up] = trial.of(AbandonedRecord)
    assert "even if empty" in given_up.explanation.remedy
    assert given_up.at == 20 * 5_000 + 19 * SECOND
    [one] = trial.world.host.schedulers
    assert one.lanes[""].total(trial.world.host.runtime.now) == 20 * 5_000


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("engine", [Kube, OneByOne])
def test_tasks_that_are_never_tried_are_told_which_task_goes_first(
    engine: type[Kube], others: int
) -> None:
    jobs = [
        job("giant", 1 + others, cpu=5_000, precedence=2),
        job("small", 2, submit=1),
        job("later", 2, submit=2, precedence=1),
    ]
    spec = scenario("kube", jobs, replicas=1, settings={"retry": 0}, horizon=20 * SECOND)
    trial = ConformanceRun(engine, spec)
    assert not trial.of(PlacedRecord)
    for name in ("small", "later"):
        [told] = trial.of(ExplainedRecord, name)
        assert list(told.indices) == [0, 1]
        assert told.explanation.refused is not None
        assert told.explanation.refused.why is Why.BEHIND
        assert job_of(told.explanation.refused.task) == trial.number("giant")


def test_tasks_are_told_anew_when_another_task_goes_first() -> None:
    jobs = [
        job("runs", 4, cpu=4_000, seconds=10, precedence=3),
        job("first", cpu=4_000, seconds=100, submit=1, precedence=2),
        job("giant", cpu=5_000, submit=2, precedence=1),
        job("small", submit=3),
    ]
    spec = scenario("kube", jobs, replicas=1, settings={"retry": 0}, cell=cell(4))
    trial = ConformanceRun(Kube, structs.replace(spec, horizon=60 * SECOND))
    ahead = [
        job_of(told.explanation.refused.task)
        for told in trial.of(ExplainedRecord, "small")
        if told.explanation.refused is not None
    ]
    assert ahead == [trial.number("first"), trial.number("giant")]


def test_tasks_whose_turn_comes_are_not_told_that_others_go_first() -> None:
    jobs = [job("giant", cpu=5_000, precedence=2), job("small", 2, submit=1)]
    trial = run(jobs, machines=2, horizon=120 * SECOND)
    assert not trial.of(ExplainedRecord, "small")


@pytest.mark.parametrize(
    ("machines", "looks"),
    [(1, 1), (100, 100), (101, 100), (250, 120), (1_000, 420), (5_000, 500), (15_000, 750)],
)
def test_as_many_machines_are_scored_as_by_kubernetes(machines: int, looks: int) -> None:
    assert looks_at(machines) == looks


def test_machines_are_looked_at_in_turn_and_all_of_them_before_giving_up() -> None:
    jobs = [job(f"j{i}", cpu=1_000, seconds=100, submit=i) for i in range(6)]
    trial = run(jobs, 6, settings={"looks": 2})
    order = [line.machines[0] // 2 for line in trial.of(PlacedRecord)]
    assert order == [0, 1, 2, 0, 1, 2]
    full = run([job("most", 3, cpu=1_000, seconds=100), *jobs[3:4]], 4, settings={"looks": 1})
    assert placed_at(full, "j3") == pytest.approx([3.005])


def test_a_turn_that_passes_the_last_machine_goes_on_at_the_first() -> None:
    room = Resources(1_000, 16 * GIB)
    machines = (Machine("m0", room), Machine("m1", room), Machine("m2", room, {"disk": "ssd"}))
    jobs = [
        job("half", cpu=500, seconds=100, requires={"disk": "ssd"}),
        job("next", cpu=100, submit=1),
    ]
    trial = run(jobs, cell=CellSpec(machines=machines), settings={"looks": 2})
    # The second turn is that of m2, which is half full, and m0.
    assert placed(trial, "next")[0].machines == [0]


def test_two_schedulers_that_want_one_machine_try_again_at_once() -> None:
    jobs = [job(f"j{i}", cpu=1_000, seconds=1) for i in range(2)]
    small, large = (Machine(f"m{gib}", Resources(1_000, gib * GIB)) for gib in (16, 64))
    spec = CellSpec(machines=(small, large))
    fleet = (FleetEntry(name="s", engine="kube", replicas=2, split="round-robin"),)
    trial = ConformanceRun(Kube, scenario("kube", jobs, fleet=fleet, network=AT_ONCE, cell=spec))
    trial.require_all_finished()
    assert len(trial.of(RefusedRecord)) == 1
    assert max(placed_at(trial, "j0") + placed_at(trial, "j1")) == pytest.approx(0.010)


@pytest.mark.parametrize(
    "limits",
    [
        SchedulerLimits(jobs=1),
        SchedulerLimits(precedence=2),
        SchedulerLimits(resources=Resources(1_000, GIB)),
    ],
)
def test_a_task_beyond_a_limit_waits_before_it_is_tried_again(limits: SchedulerLimits) -> None:
    jobs = [job("runs", seconds=None), job("more", submit=1, precedence=3)]
    settings = {"retry": 5 * SECOND, "attempts": 3}
    spec = scenario("kube", jobs, replicas=1, settings=settings, horizon=60 * SECOND)
    entry = structs.replace(spec.fleet[0], limits=limits)
    trial = ConformanceRun(Kube, structs.replace(spec, fleet=(entry,)))
    attempts = [line.at for line in trial.of(AttemptRecord, "more")]
    assert len(attempts) == 3
    assert all(later - earlier >= 5 * SECOND for earlier, later in pairwise(attempts))
    assert len(trial.of(AbandonedRecord, "more")) == 1


def test_withdrawn_tasks_no_longer_stand_before_a_batch_that_was_never_tried() -> None:
    ready, kind = ReadyQueue(), TaskKind(0, 0, {})
    ready.add(Batch(0, kind, np.arange(4), 0))
    ready.add(Batch(1, kind, np.arange(4, 7), 0))
    first = ready.pop()
    assert first.batch is not None
    ready.explained(first.batch)
    assert ready.ahead_of_fresh == 3
    ready.keep(lambda task: task not in (2, 5))
    assert ready.ahead_of_fresh == 2


#: Nothing comes from outside at the very microsecond at which an attempt ends.
_JOBS = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.sampled_from([500, 1_000, 3_000]),
        st.sampled_from([0.004, 2.5, 10.0, 61.0]),
        st.sampled_from([0.0, 0.005_3, 1.000_7, 33.300_1]),
        st.sampled_from([0, 0, 0, 2]),
    ),
    min_size=1,
    max_size=8,
)


_WITH_ANOTHER = {
    "drawn": [(7, 500, 10.0, 0.0, 2), (11, 3_000, 10.0, 0.0, 0), (1, 3_000, 61.0, 33.3001, 2)],
    "retry": 30 * SECOND,
    "looks": 1,
    "preempt": True,
    "with_another": True,
    "with_faults": True,
}
_FULL_CELLS = {
    "drawn": _JOBS,
    "retry": st.sampled_from([0, 7_000, SECOND, 30 * SECOND]),
    "looks": st.sampled_from([0, 1]),
    "preempt": st.booleans(),
    "with_another": st.booleans(),
    "with_faults": st.booleans(),
    "order": st.sampled_from(["ready", "created"]),
}


def _full_cell(
    machines: CellSpec,
    drawn: list[tuple[int, int, float, float, int]],
    with_another: bool,
    with_faults: bool,
    **told: Any,
) -> Scenario:
    jobs = [
        job(f"j{i}", n, cpu=cpu, seconds=seconds, submit=at, precedence=rank, kind=kind)
        for i, (n, cpu, seconds, at, rank) in enumerate(drawn)
        for kind in ["other" if with_another and i % 3 == 2 else "batch"]
    ]
    told["attempts"] = 60
    fleet = [FleetEntry(name="s", engine="kube", takes=Takes(kinds=("batch",)), settings=told)]
    if with_another:
        fleet.append(FleetEntry(name="o", engine="omega", takes=Takes(kinds=("other",))))
    faults = (
        MachineCrash(at=3_000_300, machine="m0", down=4 * SECOND),
        MachineResize(at=9_000_300, machine="m1", capacity=Resources(3_100, 17 * GIB)),
    )
    return scenario(
        "kube",
        jobs,
        fleet=tuple(fleet),
        network=AT_ONCE,
        cell=machines,
        faults=faults if with_faults else (),
    )


@settings(max_examples=30)
# Another scheduler's task ends while none of the others fits.
@example(**_WITH_ANOTHER, order="ready")
@example(**_WITH_ANOTHER, order="created")
# Preemption takes one task on either machine.
@example(
    drawn=[
        (11, 500, 2.5, 1.0007, 0),
        (12, 3_000, 61.0, 0.0053, 0),
        (5, 1_000, 2.5, 33.3001, 2),
        (7, 1_000, 10.0, 33.3001, 0),
        (2, 3_000, 2.5, 0.0053, 0),
        (1, 500, 2.5, 33.3001, 0),
        (7, 500, 10.0, 0.0, 2),
        (7, 500, 0.004, 33.3001, 0),
    ],
    retry=30 * SECOND,
    looks=0,
    preempt=True,
    with_another=False,
    with_faults=True,
    order="ready",
)
@given(**_FULL_CELLS)
def test_attempts_that_are_passed_over_leave_what_they_would_have_left(**drawn: Any) -> None:
    machines = (
        Machine("m0", Resources(1_000, 16 * GIB)),
        Machine("m1", Resources(1_100, 17 * GIB)),
    )
    spec = _full_cell(CellSpec(machines=machines), **drawn)
    passed_over, made = (
        ConformanceRun(engine, spec, [Omega]) for engine in (ChanceByAttempt, OneByOne)
    )
    assert _what_happened(passed_over) == _what_happened(made)


@settings(max_examples=30)
@example(**_WITH_ANOTHER, order="ready")
# Twelve tasks for three equal machines, again and again for longer than an explanation holds.
@example(
    drawn=[(12, 1_000, 10.0, 0.0053, 0)],
    retry=SECOND,
    looks=0,
    preempt=True,
    with_another=True,
    with_faults=False,
    order="ready",
)
@given(**_FULL_CELLS)
def test_passing_over_attempts_does_not_change_which_of_equal_machines_a_task_gets(
    **drawn: Any,
) -> None:
    equal = cell(3, cpu=1_000)
    passed_over, made = (
        ConformanceRun(Kube, _full_cell(equal, **drawn, skip_hopeless_attempts=is_on), [Omega])
        for is_on in (True, False)
    )
    assert _what_happened(passed_over) == _what_happened(made)


@pytest.mark.parametrize("retry", [0, 7_000, SECOND])
def test_failures_that_take_longer_are_passed_over_as_well(retry: int) -> None:
    jobs = [job(f"j{i}", 4 + i, cpu=700, seconds=3.1, submit=1.3 * i) for i in range(4)]
    told = {"retry": retry, "preempt": False, "order": "created", "t_failed": 1_700}
    machines = tuple(Machine(f"m{i}", Resources(1_000 + i, 16 * GIB)) for i in range(2))
    spec = scenario("kube", jobs, cell=CellSpec(machines=machines), settings=told)
    passed_over, made = (ConformanceRun(engine, spec) for engine in (Kube, OneByOne))
    assert _what_happened(passed_over) == _what_happened(made)
    quick = scenario("kube", jobs, cell=spec.cell, settings={**told, "t_failed": 0})
    assert _what_happened(made) != _what_happened(ConformanceRun(OneByOne, quick))


def _what_happened(trial: ConformanceRun) -> tuple[Any, ...]:
    """Everything about a run except how attempts were reported."""
    lines = [
        (type(x), x.at, x.job, x.indices, getattr(x, "machines", None))
        for x in trial.facts
        if isinstance(x, PlacedRecord | LostRecord | AbandonedRecord)
    ]
    simulator = trial.world.host.runtime
    _, first_attempt, _, _ = simulator.board.job_columns()
    busy = [scheduler.lanes[""].total(simulator.now) for scheduler in trial.world.host.schedulers]
    return lines, first_attempt.tolist(), simulator.board.thought_by_job().tolist(), busy
