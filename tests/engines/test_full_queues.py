"""Machines' queues that are full: tasks wait at their scheduler until a queue has room."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from scripted_engine import finish_order

from argosy.engines.api import Context
from argosy.engines.registry import ENGINES
from argosy.engines.shared.backlog import with_room
from argosy.host.records import EnqueuedRecord, ExplainedRecord, LostRecord
from argosy.host.runtime import build_cell
from argosy.host.scheduler import make_settings
from argosy.host.setup import HostSetup
from argosy.model.effects import AskQueues, Enqueue, Explain
from argosy.model.events import JobSubmitted, QueuesReported, TasksLost
from argosy.model.explanations import Refusal, Why
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    MachineCrash,
    Network,
    Scenario,
    SchedulerCrash,
)
from argosy.model.tasks import first_tasks
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun, World

#: With jobs that `hawk` and `eagle` take for long ones.
LONG = {"cutoff": 1}
CASES = [
    ("sparrow", {}),
    ("hawk", {}),
    ("hawk", LONG),
    ("eagle", {}),
    ("eagle", LONG),
    ("yaq-c", {}),
    ("yaq-d", {}),
]
every_case = pytest.mark.parametrize(
    ("engine", "settings"), CASES, ids=[name + ("-long" if told else "") for name, told in CASES]
)


def whole(name: str, tasks: int, seconds: float, submit: float = 0, **fields: Any) -> SimulatedJob:
    """Tasks as large as a machine."""
    return job(name, tasks, cpu=4_000, seconds=seconds, submit=submit, **fields)


def limited(
    engine: str,
    settings: dict[str, int],
    jobs: list[SimulatedJob],
    machines: int,
    *,
    delay: int = 0,
    limit: int = 1,
    replicas: int = 1,
    **fields: Any,
) -> Scenario:
    return scenario(
        engine,
        jobs,
        **{
            "settings": settings,
            "replicas": 1 if ENGINES[engine].capabilities.alone else replicas,
            "cell": cell(machines),
            "machines": MachineModel(limit=limit, long_above=1 if settings else 0),
            "network": Network(latency=ConstantLatency(delay=delay)),
            **fields,
        },
    )


@pytest.mark.parametrize("delay", [0, 500])
@every_case
def test_tasks_wait_for_room_without_asking_again_and_again(
    engine: str, settings: dict[str, int], delay: int
) -> None:
    spec = limited(engine, settings, [whole("a", 3, 600)], 1, delay=delay)
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    assert trial.world.host.events <= 6
    # The machine is never without work.
    assert trial.world.host.runtime.now <= 1_800 * SECOND + 10 * delay


@pytest.mark.parametrize("engine", ["yaq-c", "yaq-d"])
def test_a_queue_is_no_longer_than_the_schedulers_own_limit(engine: str) -> None:
    jobs = [whole(name, 1, 10, submit=at) for at, name in enumerate("abc")]
    spec = scenario(engine, jobs, replicas=1, cell=cell(1), settings={"limit": 1})
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    # The first runs and the second is queued, so the third waits until the first is over.
    (sent,) = trial.of(EnqueuedRecord, "c")
    assert sent.at >= 10 * SECOND


@every_case
def test_a_long_backlog_costs_a_few_events_per_task(engine: str, settings: dict[str, int]) -> None:
    jobs = [whole(f"j{i}", 4, 30, submit=i * 0.01) for i in range(60)]
    spec = limited(engine, settings, jobs, 5, delay=500, limit=2, replicas=2)
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    tasks = sum(made.job.tasks for made in jobs)
    assert trial.world.host.events <= 5 * tasks
    lost = sum(len(record.indices) for record in trial.of(LostRecord))
    assert lost <= 2 * tasks


@every_case
def test_a_task_that_waits_for_room_says_so(engine: str, settings: dict[str, int]) -> None:
    spec = limited(engine, settings, [whole("a", 5, 600)], 1)
    trial = ConformanceRun(ENGINES[engine], msgspec.structs.replace(spec, horizon=60 * SECOND))
    assert trial.counts[:3] == [3, 1, 1] or (engine == "eagle" and not settings)
    trial.require_accounted_for()
    for record in trial.of(ExplainedRecord):
        assert record.explanation.ruled_out == {"queue full": 1}
        assert record.explanation.nearest_miss == Refusal(Why.QUEUE_FULL, machine=0)
        assert "raise `limit`" in record.explanation.remedy


@pytest.mark.parametrize("engine", ["sparrow", "hawk", "eagle"])
def test_a_probe_that_a_full_queue_turned_away_gives_that_as_the_reason(engine: str) -> None:
    jobs = [whole("a", 1, 60), whole("b", 1, 60, submit=1), whole("c", 1, 60, submit=2)]
    trial = ConformanceRun(ENGINES[engine], limited(engine, {}, jobs, 1))
    assert [record.why for record in trial.of(LostRecord, "c")] == ["queue_full"]


@every_case
def test_room_elsewhere_is_no_room_for_tasks_that_require_other_machines(
    engine: str, settings: dict[str, int]
) -> None:
    size = Resources(4_000, 16 * 2**30)
    machines = (Machine("arm", size, attributes={"arch": "arm"}), Machine("plain", size))
    jobs = [whole("picky", 4, 60, requires={"arch": "arm"}), whole("other", 1, 60, submit=1)]
    spec = limited(engine, settings, jobs, 2, cell=CellSpec(machines=machines))
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    assert trial.world.host.runtime.now <= 300 * SECOND
    assert trial.world.host.events <= 12
    tasks, where, *_ = trial.world.host.runtime.task_columns()
    assert {int(m) for task, m in zip(tasks, where, strict=True) if task < 2**32} == {0}


@every_case
def test_a_machine_that_comes_back_takes_tasks_that_wait(
    engine: str, settings: dict[str, int]
) -> None:
    crash = MachineCrash(at=SECOND, machine="m1", down=20 * SECOND)
    spec = limited(engine, settings, [whole("a", 8, 100, submit=2)], 2, faults=(crash,))
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    # Four each, the second machine's from 21 s on: with one machine alone it would be twice as long.
    assert trial.world.host.runtime.now <= 530 * SECOND


@every_case
def test_tasks_that_wait_for_room_can_be_cancelled(engine: str, settings: dict[str, int]) -> None:
    def script(world: World) -> None:
        def cancel() -> None:
            world.host.cancel(1)

        world.inject(5 * SECOND, cancel)

    jobs = [whole("a", 2, 60), whole("b", 6, 60, submit=1), whole("c", 2, 60, submit=2)]
    trial = ConformanceRun(ENGINES[engine], limited(engine, settings, jobs, 1), script=script)
    assert trial.counts == [0, 0, 0, 4, 0, 0, 6]
    assert trial.world.host.runtime.now == 240 * SECOND


def test_a_scheduler_that_comes_back_finds_its_tasks_and_no_answer_to_old_questions() -> None:
    for engine in ("sparrow", "yaq-c"):
        crash = SchedulerCrash(at=SECOND, scheduler="s", down=SECOND)
        spec = limited(engine, {}, [whole("a", 6, 60)], 1, delay=500, faults=(crash,))
        ConformanceRun(ENGINES[engine], spec).require_all_finished()


@pytest.mark.parametrize("engine", ["yaq-c", "yaq-d"])
def test_tasks_that_wait_for_room_are_served_in_order_of_arrival(engine: str) -> None:
    jobs = [whole(f"j{i}", 2, 60, submit=i) for i in range(5)]
    world = ConformanceRun(ENGINES[engine], limited(engine, {}, jobs, 1)).world
    assert finish_order(world) == [f"j{i}" for i in range(5) for _ in range(2)]


@pytest.mark.parametrize("engine", ["yaq-c", "yaq-d"])
def test_a_new_job_waits_behind_tasks_of_its_kind_though_a_queue_has_room(engine: str) -> None:
    """Its report is from just before the answer that those who wait have asked for."""
    made = ENGINES[engine](make_settings(ENGINES[engine], {}), Context("s", (), Random(1)))
    view = build_cell(HostSetup.of(scenario(engine, [], cell=cell(2)))).view()
    first, late = whole("first", 1, 1).job, whole("late", 1, 1).job
    tasks, nothing, room = first_tasks(0, 1), np.zeros(2, np.int64), np.array([0, 1])
    back = TasksLost(first, 0, tasks, np.array([0], np.int32), Why.QUEUE_FULL)
    [asked] = [x for x in made.handle(back, view, 0) if isinstance(x, AskQueues)]
    [question] = made.handle(JobSubmitted(late, 1, first_tasks(1, 1)), view, 0)
    assert isinstance(question, AskQueues)
    report = QueuesReported(question.token, nothing, nothing, room.copy())
    [explained] = made.handle(report, view, 0)
    assert isinstance(explained, Explain)
    report = QueuesReported(asked.token, nothing, nothing, room.copy())
    [sent] = [x for x in made.handle(report, view, 0) if isinstance(x, Enqueue)]
    assert sent.tasks.tolist() == tasks.tolist()


def test_places_with_room_are_taken_by_the_smallest_wait() -> None:
    room, waits = np.array([2, 0, 1, 9]), np.array([5, 0, 7, 90])
    machines = np.arange(4, dtype=np.int32)
    chosen = with_room(machines, room, 4, Random(1), waits, step=3)
    assert chosen.tolist() == [0, 2, 0, 3]
    assert with_room(machines[1:2], room, 4, Random(1), waits).tolist() == []
    assert sorted(with_room(machines, room, 20, Random(1)).tolist()) == [0, 0, 2] + [3] * 9
