"""Jobs of higher precedence that were passed over: by hand, by brute force, and in whole runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.experiments.execute import execute
from argosy.host.job_table import MOST_DEMANDS
from argosy.measures.passed_over import JobMilestones, JobPriorities, TaskStarts, passed_over
from argosy.model.constraints.text import parse_constraint
from argosy.model.jobs import Job, TaskGroup, task_number
from argosy.model.machine_model import MachineModel
from argosy.model.resources import Resources
from argosy.model.scenario import Output
from argosy.records.summary import Counts
from argosy.testing.builders import cell, job, scenario


class Life(NamedTuple):
    """A job, its milestones, and when each of its tasks was placed and started."""

    job: Job
    submit: int
    first_attempt: int = 0
    thought: int = 0
    all_placed: int = -1
    tasks: tuple[tuple[int, int], ...] = ()


def judged(*lives: Life) -> tuple[int, int]:
    milestones = np.array(
        [(life.submit, life.first_attempt, life.thought, life.all_placed) for life in lives],
        np.int64,
    ).reshape(-1, 4)
    starts = np.array(
        [
            (task_number(number, index), *times)
            for number, life in enumerate(lives)
            for index, times in enumerate(life.tasks)
        ],
        np.int64,
    ).reshape(-1, 3)
    return passed_over(
        JobPriorities.of([life.job for life in lives]),
        JobMilestones(*milestones.T),
        TaskStarts(*starts.T),
    )


def made(precedence: int = 0, **fields: Any) -> Job:
    return job("some", precedence=precedence, **fields).job


#: Tried from 10 to 12, and placed at 50.
URGENT = Life(made(5), submit=8, first_attempt=10, thought=2, all_placed=50, tasks=((50, 50),))


def plain(started: int, *, submit: int = 9, **fields: Any) -> Life:
    return Life(made(**fields), submit, submit, 0, started, ((started, started),))


@pytest.mark.parametrize(
    ("other", "passes"),
    [
        (plain(20), True),
        (plain(12), False),
        (plain(13), True),
        (plain(49), True),
        (plain(50), False),
        (plain(20, submit=8), False),
        (plain(20, precedence=5), False),
        (plain(20, precedence=4), True),
        (plain(20, cpu=2_000), True),
        (plain(20, cpu=999), False),
        (plain(20, cpu=2_000, memory=1), False),
        (plain(20, requires={"disk": "ssd"}), True),
        (plain(20, request=Resources(1_000, 2**30, {"gpu": 1})), True),
    ],
)
def test_who_passes_a_job_that_waits(other: Life, passes: bool) -> None:
    lowest = plain(0, submit=0)
    higher = 1 + (other.job.precedence > 0)
    assert judged(lowest, URGENT, other) == (higher, int(passes))


def test_machines_that_could_not_serve_the_job_do_not_count() -> None:
    fussy = {"requires": {"disk": "ssd"}}
    waiting = URGENT._replace(job=made(5, **fussy))
    assert judged(waiting, plain(20)) == (1, 0)
    assert judged(waiting, plain(20, requires={"disk": "hdd"})) == (1, 0)
    assert judged(waiting, plain(20, requires={"disk": "ssd", "arch": "x86"})) == (1, 1)
    on_gpu = URGENT._replace(job=made(5, request=Resources(1_000, 2**30, {"gpu": 1})))
    assert judged(on_gpu, plain(20)) == (1, 0)


def test_gangs_are_passed_only_by_gangs_of_as_many_tasks() -> None:
    gang = URGENT._replace(job=made(5, tasks=3, gang=True))
    assert judged(gang, plain(20)) == (1, 0)
    assert judged(gang, plain(20, tasks=2, gang=True)) == (1, 0)
    assert judged(gang, plain(20, tasks=3, gang=True)) == (1, 1)
    assert judged(gang, plain(20, tasks=4, gang=True)) == (1, 1)
    assert judged(URGENT, plain(20, tasks=4, gang=True)) == (1, 1)


def test_jobs_with_constraints_wait_for_machines_of_their_own() -> None:
    apart = parse_constraint("web -> {web, 0, 0} in machine")
    picky = made(5, tags=("web",), constraints=(apart,))
    assert judged(URGENT._replace(job=picky), plain(20)) == (1, 0)


def test_every_task_must_be_able_to_replace_every_task_of_the_other() -> None:
    small, large = (TaskGroup(1, Resources(cpu, 1)) for cpu in (1_000, 4_000))
    mixed, both = Job("mixed", (small, large), precedence=5), Job("both", (small, large))
    waiting, other = URGENT._replace(job=mixed), plain(20)._replace(job=both)
    assert judged(waiting, other) == (1, 0)
    assert judged(waiting, other._replace(job=Job("large", (large,)))) == (1, 1)
    fast = TaskGroup(1, Resources(4_000, 1), requires={"disk": "ssd"})
    picky = URGENT._replace(job=Job("picky", (fast,), precedence=5))
    assert judged(picky, other._replace(job=Job("some", (fast, large)))) == (1, 0)
    assert judged(picky, other._replace(job=Job("fast", (fast, fast)))) == (1, 1)
    half = URGENT._replace(job=Job("half", (fast, large), precedence=5))
    assert judged(half, other._replace(job=Job("large", (large,)))) == (1, 0)
    assert judged(half, other._replace(job=Job("fast", (fast,)))) == (1, 1)


def test_a_task_in_a_queue_waits_but_one_on_its_way_does_not() -> None:
    queued = Life(made(5), 8, -1, 0, 10, ((10, 30),))
    # All tasks take one unit of time to reach their machines.
    on_time = Life(made(), 0, -1, 0, 1, ((1, 2),))
    assert judged(on_time, queued, plain(20)._replace(tasks=((19, 20),))) == (1, 1)
    assert judged(on_time, queued, plain(11)._replace(tasks=((10, 11),))) == (1, 0)
    assert judged(on_time, queued._replace(tasks=((10, 11),)), plain(20)) == (1, 0)


def test_a_job_that_is_never_placed_waits_to_the_end() -> None:
    waiting = URGENT._replace(all_placed=-1, tasks=())
    assert judged(waiting, plain(1_000)) == (1, 1)
    assert judged(waiting._replace(first_attempt=-1), plain(1_000)) == (1, 0)


def test_without_different_precedences_nobody_is_judged() -> None:
    assert judged() == (0, 0)
    assert judged(URGENT, plain(20, precedence=5)) == (0, 0)


def test_demands_beyond_those_kept_are_not_judged() -> None:
    many = [plain(5, submit=0, cpu=10_000 + n) for n in range(MOST_DEMANDS - 1)]
    assert judged(*many, URGENT, plain(20, cpu=10_000)) == (1, 1)
    assert judged(*many, plain(5, submit=0, cpu=1), URGENT, plain(20, cpu=10_000)) == (1, 0)


times = st.integers(0, 12)
lives = st.builds(
    lambda precedence, cpu, memory, submit, tried, thought, waits, queued: Life(
        made(precedence, cpu=cpu, memory=memory),
        submit,
        submit + tried,
        thought,
        submit + tried + thought + waits,
        tuple(
            (submit + tried + thought + waits, submit + tried + thought + waits + each)
            for each in queued
        ),
    ),
    *(st.integers(0, 2), st.integers(1, 3), st.integers(1, 3), times, times, times, times),
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
)


@given(st.lists(lives, min_size=1, max_size=12))
def test_the_answer_is_that_of_comparing_everyone_with_everyone(drawn: list[Life]) -> None:
    # A first task that starts at once: otherwise the shortest time in a queue counts as the way to it.
    at_once = plain(0, submit=0, memory=1, cpu=1)
    everyone = [at_once, *drawn]
    lowest = min(life.job.precedence for life in everyone)
    higher = [life for life in everyone if life.job.precedence > lowest]
    assert judged(*everyone) == (len(higher), sum(_is_passed(life, everyone) for life in higher))


def _is_passed(life: Life, everyone: list[Life]) -> bool:
    request = life.job.groups[0].request
    waits = [(life.first_attempt + life.thought, life.all_placed), *life.tasks]
    return any(
        after < started < before
        for other in everyone
        for asked in [other.job.groups[0].request]
        if other.job.precedence < life.job.precedence and other.submit > life.submit
        if asked.cpu >= request.cpu and asked.memory >= request.memory
        for _, started in other.tasks
        for after, before in waits
    )


def counts(engine: str, **fields: Any) -> Counts:
    """One machine for one task at a time, of four tasks that nobody ranks above others; then comes one
    that is ranked above, and then four more that are not."""
    jobs = [
        *(job(f"early-{n}", cpu=4_000, submit=n / 100) for n in range(4)),
        job("urgent", cpu=4_000, submit=1, precedence=5),
        *(job(f"late-{n}", cpu=4_000, submit=2 + n) for n in range(4)),
    ]
    return execute(scenario(engine, jobs, cell=cell(1), replicas=1, **fields), None).counts


def test_an_engine_that_preempts_passes_nobody_over() -> None:
    found = counts("omega", settings={"preempt": True})
    assert (found.jobs_preceding, found.jobs_passed_over) == (1, 0)
    assert found.preemptions


def test_machines_that_take_the_shortest_task_first_pass_over_the_longest() -> None:
    """Murmuration's queues, the estimate of the urgent task being longer."""
    jobs = [
        job("first", cpu=4_000, estimate=10_000_000),
        job("urgent", cpu=4_000, seconds=60, estimate=60_000_000, submit=1, precedence=5),
        *(job(f"late-{n}", cpu=4_000, estimate=10_000_000, submit=2 + n) for n in range(3)),
    ]
    shortest = MachineModel(queue="shortest-first")
    asked = scenario("murmuration", jobs, cell=cell(1), replicas=1, machines=shortest)
    found = execute(asked, None).counts
    assert (found.jobs_preceding, found.jobs_passed_over) == (1, 1)


def test_it_is_not_counted_if_tasks_are_not_kept() -> None:
    assert counts("omega").jobs_preceding == 1
    assert counts("omega", output=Output(tasks=False)).jobs_preceding == 0


@pytest.mark.parametrize(("started", "passed"), [(10, 0), (21, 1), (20, 0)])
def test_a_task_waits_at_its_machine_if_another_starts_there_at_once(
    started: int, passed: int
) -> None:
    """The first of the job's tasks starts as it is placed; the other is in a queue until then."""
    urgent = Life(made(5, tasks=2), 5, 5, 0, 10, ((10, 10), (10, started)))
    assert judged(urgent, plain(20)) == (1, passed)
