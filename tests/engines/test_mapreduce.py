"""Jobs whose tasks share work, and the scheduler that gives them more workers."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.engines.mapreduce import MapReduce
from argosy.engines.mapreduce.prediction import History, Workers, best_addition, time_with
from argosy.engines.registry import ENGINES
from argosy.host.records import (
    AttemptRecord,
    LostRecord,
    PlacedRecord,
    RefusedRecord,
    ReleasedRecord,
)
from argosy.measures.measure import summarise
from argosy.model.errors import ModelError
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.scenario import (
    FleetEntry,
    MachineCrash,
    RandomCrashes,
    SchedulerCrash,
    Takes,
)
from argosy.model.truth import GroupTruth, SimulatedJob
from argosy.testing.builders import GIB, SECOND, cell, job, scenario, shared_job
from argosy.testing.conformance import ConformanceRun

AT_ONCE = {"t_job": 0, "t_task": 0}


def pools(trial: ConformanceRun) -> dict[str, tuple[int, int]]:
    """When each job's first worker began and its last activity ended."""
    workbook = trial.world.host.jobs
    columns = trial.world.host.runtime.pool_columns()[:3]
    return {
        workbook.name(number): (began, ended)
        for number, began, ended in zip(*(column.tolist() for column in columns), strict=True)
    }


def seconds(trial: ConformanceRun, name: str) -> float:
    began, ended = pools(trial)[name]
    return (ended - began) / SECOND


def run(
    *jobs: SimulatedJob, engine: str = "mapreduce", machines: int = 8, **fields: Any
) -> ConformanceRun:
    fields.setdefault("settings", AT_ONCE)
    fields.setdefault("replicas", 1)
    fields.setdefault("cell", cell(machines))
    return ConformanceRun(ENGINES[engine], scenario(engine, list(jobs), **fields))


def test_workers_do_the_activities_of_one_phase_after_the_other() -> None:
    # 8 maps of 10 s by 4 workers, then 2 reduces of 5 s by as many of them.
    trial = run(shared_job("j", 4, (8, 2), (10, 5)), engine="omega")
    trial.require_all_finished()
    assert seconds(trial, "j") == 25


def test_a_phase_takes_no_less_than_one_activity() -> None:
    assert seconds(run(shared_job("j", 6, (2,), (10,)), engine="omega"), "j") == 10


def test_a_lost_worker_s_activity_is_done_again() -> None:
    # Both workers are on the only machine that is up, which is lost 4 s into the second round.
    crash = MachineCrash(at=14 * SECOND, machine="m0", down=SECOND)
    trial = run(
        shared_job("j", 2, (4,), (10,)),
        engine="omega",
        machines=1,
        faults=(crash,),
        settings={**AT_ONCE, "backoff": 1_000_000},
    )
    trial.require_all_finished()
    began, ended = pools(trial)["j"]
    # Two activities are left when the workers are back, 1 to 2 s later.
    assert 14 + 1 + 10 <= (ended - began) / SECOND <= 14 + 2 + 10


def test_a_worker_that_comes_too_late_ends_at_once() -> None:
    # One of two workers fits; when the other does, its work is done already.
    blocker = job("blocker", 1, cpu=2_500, seconds=60)
    shared = shared_job("j", 2, (2,), (10,), cpu=1_500, submit=1)
    trial = run(blocker, shared, engine="omega", machines=1)
    trial.require_all_finished()
    assert seconds(trial, "j") == 20
    tasks, _, _, started, finished = trial.world.host.runtime.task_columns()
    ran = dict(zip(tasks.tolist(), ((finished - started) / SECOND).tolist(), strict=True))
    assert sorted(ran.values()) == [0, 20, 60]


def history_of(*runs: SimulatedJob) -> list[SimulatedJob]:
    """Runs of the same program one after the other: from the second on, it is known."""
    return [
        SimulatedJob(
            msgspec.structs.replace(run.job, id=f"{run.id}-{i}"),
            run.submit + i * 300 * SECOND,
            run.truth,
        )
        for i, run in enumerate(runs)
    ]


def twice(**settings_: Any) -> tuple[float, float, ConformanceRun]:
    one = shared_job("j", 2, (40, 2), (10, 5), program="count")
    trial = run(*history_of(one, one), settings={**AT_ONCE, **settings_})
    trial.require_all_finished()
    return seconds(trial, "j-0"), seconds(trial, "j-1"), trial


def test_a_program_that_ran_before_gets_more_workers() -> None:
    first, second, _ = twice()
    # 20 rounds of maps and one of reduces; then 40 workers at once, for which there is just room.
    assert first == 205
    assert second == pytest.approx(15, abs=1)


def test_relative_job_size_gives_four_times_the_workers() -> None:
    first, second, _ = twice(policy="relative-job-size")
    assert first == 205
    # 2 workers for an instant, then 8 for the maps.
    assert second == pytest.approx(40 * 10 / 8 + 5, abs=1)


def test_global_cap_leaves_the_cell_as_full_as_the_cap() -> None:
    # 32 cores in all: 60 % are 38 workers of half a core.
    first, second, trial = twice(policy="global-cap")
    assert first == 205
    assert second == pytest.approx(400 / 38 + 5, abs=1)
    busiest = max(row[1] for row in trial.world.host.runtime.samples().tolist())
    assert busiest <= 0.6 * 32_000


def test_none_adds_none() -> None:
    assert twice(policy="none")[:2] == (205, 205)


def test_workers_that_the_reduces_have_no_use_for_are_released() -> None:
    trial = twice()[2]
    released = trial.of(ReleasedRecord)
    assert sum(len(line.indices) for line in released) == 38
    # Those that the user asked for stay.
    assert min(index for line in released for index in line.indices) >= 2


def test_adding_takes_decision_time_and_is_not_done_where_it_would_not_pay() -> None:
    # Two rounds of 10 s: a decision of 25 s would come too late.
    one = shared_job("j", 2, (4,), (10,), program="count")
    slow = {"t_job": 25 * SECOND, "t_task": 0, "at_start": False}
    trial = run(*history_of(one, one), settings=slow)
    assert seconds(trial, "j-1") == 20
    quick = run(*history_of(one, one), settings={**slow, "t_job": SECOND})
    assert seconds(quick, "j-1") < 20


def test_extra_workers_cost_the_decision_that_adds_them_and_no_later_one() -> None:
    one = shared_job("j", 2, (40,), (10,), program="count")
    *before, last = history_of(one, one)
    plain = job("plain", 3, cpu=100, submit=last.submit / SECOND + 20)
    costs = {"t_job": SECOND, "t_task": 1_000}
    trial = run(*before, last, plain, settings=costs)
    takes = {line.job: line.takes for line in trial.of(AttemptRecord)}
    assert takes["j-0"] == SECOND + 2 * 1_000
    assert takes["j-1"] > SECOND + 20 * 1_000
    assert takes["plain"] == SECOND + 3 * 1_000


def test_extra_workers_are_beyond_the_tasks_that_are_counted() -> None:
    trial = twice()[2]
    assert sum(trial.counts) == 4
    assert trial.world.host.runtime.task_columns()[0].size == 4


def test_extra_workers_make_way_for_workers_that_were_asked_for() -> None:
    # From the second run on the cell is full of extra workers; then a job comes that needs half of it.
    long = shared_job("j", 2, (400, 2), (10, 5), program="count")
    first, second = history_of(long, long)
    second = msgspec.structs.replace(second, submit=2_200 * SECOND)
    other = shared_job("other", 32, (32,), (10,), submit=2_210)
    trial = run(first, second, other)
    trial.require_all_finished()
    assert seconds(trial, "j-1") < seconds(trial, "j-0") / 10
    (placed,) = trial.of(PlacedRecord, "other")
    assert placed.at < 2_211 * SECOND
    lost = trial.of(LostRecord)
    assert {line.job for line in lost} == {"j-1"}
    assert min(index for line in lost for index in line.indices) >= 2


def test_a_job_that_lost_extra_workers_gets_others_when_there_is_room_again() -> None:
    long = shared_job("j", 2, (400, 2), (10, 5), program="count")
    first, second = history_of(long, long)
    second = msgspec.structs.replace(second, submit=2_200 * SECOND)
    other = shared_job("other", 32, (32,), (10,), submit=2_210)
    trial = run(first, second, other)
    trial.require_all_finished()
    assert trial.of(LostRecord, "j-1")
    assert trial.of(PlacedRecord, "j-1")[-1].at > pools(trial)["other"][1]


def test_idle_resources_are_shared_evenly_by_the_jobs_that_want_more_workers() -> None:
    """Two jobs wait for extra workers while those of a third are decided on."""
    jobs = [
        shared_job(name, 1, (activities,), (10,), program="count", submit=300)
        for name, activities in (("small", 8), ("a", 400), ("b", 400))
    ]
    known = shared_job("known", 2, (40,), (10,), program="count")
    settings = {"t_job": 100_000, "t_task": 100_000, "at_start": False}
    trial = run(known, *jobs, settings=settings, horizon=310 * SECOND)
    extra = {
        name: sum(index > 0 for line in trial.of(PlacedRecord, name) for index in line.indices)
        for name in ("small", "a", "b")
    }
    # 64 workers have room: three that were asked for, seven for the small job, and half the rest each.
    assert extra == {"small": 7, "a": 27, "b": 27}


def test_a_run_tells_of_its_speed_ups() -> None:
    found = summarise(twice()[2].world, "").speed_up
    assert found is not None
    assert (found.jobs, found.faster) == (2, 0.5)
    assert found.largest == pytest.approx(205 / 15, rel=0.1)
    assert found.quantiles[0] == 1.0
    assert len(found.quantiles) == 101
    assert found.quantiles[-1] == found.largest
    plain = run(job("j", 2), engine="omega")
    assert summarise(plain.world, "").speed_up is None


def test_other_schedulers_go_on_beside_it() -> None:
    fleet = (
        FleetEntry(
            name="mr", engine="mapreduce", settings=AT_ONCE, takes=Takes(kinds=("mapreduce",))
        ),
        FleetEntry(name="batch", engine="omega", takes=Takes(kinds=("batch",)), replicas=2),
    )
    one = shared_job("j", 2, (400, 2), (1, 5), program="count", kind="mapreduce")
    others = [job(f"b{i}", 3, seconds=5, submit=i) for i in range(300)]
    spec = scenario("omega", [*history_of(one, one), *others], fleet=fleet)
    trial = ConformanceRun(ENGINES["omega"], spec, also=(MapReduce,))
    trial.require_all_finished()
    assert seconds(trial, "j-1") < seconds(trial, "j-0") / 2


def test_a_job_whose_extra_workers_were_refused_is_considered_again() -> None:
    slow = {"t_job": 10 * SECOND, "t_task": 0, "interval": 30 * SECOND, "at_start": False}
    fleet = (
        FleetEntry(name="mr", engine="mapreduce", settings=slow, takes=Takes(kinds=("mapreduce",))),
        FleetEntry(name="batch", engine="omega", takes=Takes(kinds=("batch",))),
    )
    one = shared_job("j", 2, (40, 2), (100, 5), program="count", kind="mapreduce")
    first, second = history_of(one, one)
    second = msgspec.structs.replace(second, submit=2_200 * SECOND)
    # Takes most of the cell while extra workers for the second run are decided on.
    rival = job("rival", 8, cpu=3_000, seconds=20, submit=2_215)
    spec = scenario("omega", [first, second, rival], fleet=fleet)
    trial = ConformanceRun(ENGINES["omega"], spec, also=(MapReduce,))
    trial.require_all_finished()
    assert trial.of(RefusedRecord, "j-1")
    assert trial.of(PlacedRecord, "j-1")[-1].at > 2_235 * SECOND


def test_history_is_the_mean_over_activities() -> None:
    history = History()
    small, large = (shared_job("j", 1, (n,), (1,), program="p").job for n in (1, 3))
    unknown = shared_job("j", 1, (1,), (1,), program="q").job
    assert history.average(small, 0) is None
    history.learn(small, 0, 8)
    history.learn(large, 0, 4)
    assert history.average(small, 0) == (8 + 3 * 4) // 4
    assert history.average(unknown, 0) == 5


def test_a_prediction_counts_what_was_done() -> None:
    history, one = History(), shared_job("j", 2, (10, 1), (1, 1)).job
    workers = Workers(one)
    workers.own = 2
    for phase in (0, 1):
        history.learn(one, phase, SECOND)
    left = workers.time_left(history, 3 * SECOND)
    assert left == [(4 * SECOND, 10), (SECOND, 1)]
    assert time_with(left, 4) == 2 * SECOND
    # Slower than ever before: at least one activity is left.
    assert workers.time_left(history, 60 * SECOND) == [(SECOND, 10), (SECOND, 1)]


@given(
    work=st.integers(1, 10**9),
    activities=st.integers(1, 2_000),
    workers=st.integers(1, 100),
    most=st.integers(0, 2_000),
    t_job=st.integers(0, 10**6),
    t_task=st.integers(0, 10**4),
)
def test_the_addition_chosen_is_never_worse_than_none(
    work: int, activities: int, workers: int, most: int, t_job: int, t_task: int
) -> None:
    left = [(work, activities)]
    added = best_addition(left, workers, most, t_job, t_task)
    assert 0 <= added <= most
    if added:
        decision = t_job + t_task * added
        done = min(work, min(workers, activities) * decision)
        after = time_with([(work - done, activities)], workers + added)
        assert decision + after < time_with(left, workers)


def replayed(trial: ConformanceRun, made: SimulatedJob) -> int | None:
    """When the job's work ends, from the journal alone and with exact sums."""
    joined: dict[int, int] = {}
    activities, durations = made.job.activities, made.truth[0].phases
    phase, left, at, began = 0, activities[0] * durations[0], 0, 0
    steps = (PlacedRecord, LostRecord, ReleasedRecord)
    lines = [line for line in trial.facts if isinstance(line, steps) and line.job == made.id]
    for line in [*lines, ReleasedRecord(2**60, made.id, [], "")]:
        while joined:
            rate = min(len(joined), activities[phase])
            due = at + -(-left // rate)
            if due > line.at:
                break
            phase, at, began = phase + 1, due, due
            if phase == len(durations):
                return due
            left = activities[phase] * durations[phase]
        if joined:
            left -= min(len(joined), activities[phase]) * (line.at - at)
        at = line.at
        for index in line.indices:
            if isinstance(line, PlacedRecord):
                joined[index] = at
            elif index in joined:
                each = durations[phase]
                if len(joined) <= activities[phase]:
                    again = (at - max(joined[index], began)) % each
                    left = min(left + again, activities[phase] * each)
                del joined[index]
    return None


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(["max-parallelism", "relative-job-size", "global-cap", "none"]),
    schedulers=st.integers(1, 2),
)
def test_work_takes_as_long_as_its_workers_allow(seed: int, policy: str, schedulers: int) -> None:
    """Under crashes of machines and schedulers, against a replay of the log."""
    jobs = [
        shared_job(
            f"j{i}",
            1 + i % 4,
            (5 + 7 * i % 30, 1 + i % 5),
            (2, 3),
            submit=3 * i,
            program=f"p{i % 2}",
        )
        for i in range(12)
    ]
    faults = (
        RandomCrashes(what="machines", every=5 * SECOND, down=4 * SECOND, end=50 * SECOND),
        SchedulerCrash(at=20 * SECOND, scheduler="s" if schedulers == 1 else "s-0", down=SECOND),
    )
    trial = run(
        *jobs,
        seed=seed,
        faults=faults,
        replicas=schedulers,
        settings={"t_job": 50_000, "t_task": 1_000, "policy": policy, "interval": 2_000_000},
    )
    trial.require_all_finished()
    for each in jobs:
        assert pools(trial)[each.id][1] == replayed(trial, each), each.id


def test_a_group_has_durations_or_phases() -> None:
    with pytest.raises(ModelError, match="both phases and durations"):
        GroupTruth((1,), (1,))
    with pytest.raises(ModelError, match="0 activities"):
        TaskGroup(1, Resources(1), activities=(0,))
    one = TaskGroup(1, Resources(1), activities=(1,))
    with pytest.raises(ModelError, match="several groups"):
        Job("j", (one, TaskGroup(1, Resources(1))))


def test_an_estimate_follows_from_the_phases() -> None:
    assert shared_job("j", 4, (8, 2), (10, 5)).groups[0].estimate == 25 * SECOND


def test_only_a_malleable_engine_may_claim_workers_nobody_asked_for() -> None:
    trial = run(shared_job("j", 1, (4,), (1,), memory=GIB))
    simulator = trial.world.host.runtime
    extra = np.array([7], np.int64)
    assert simulator.board.first_misplaced(extra, -1, False) == 0
    assert simulator.board.first_misplaced(extra, -1, False, True) == -1
