"""The conformance suite: checks that an engine follows the contract.

    from argosy.testing import conformance

    @pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
    def test_my_engine_conforms(check):
        check(MyEngine)

Each check runs the engine with the cell audited after every commit, and raises AssertionError with what
went wrong. The check's second argument is the world to run it in: `SIMULATED`, or `SCRIPTED`, where time
is moved on by a script and machines fail, answer late and lose reports (`testing.scripted_world`).
In the simulated world every event and effect goes through both wire formats (`argosy.testing.wired`), so
an engine that conforms can run in another process. Every run is replayed from its journal,
which must lead to the same decisions byte for byte.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final, Protocol, TypeAlias, TypeVar

import msgspec

from argosy.engines.api import Engine
from argosy.host import TaskState
from argosy.host.journal import Journal
from argosy.host.records import (
    AbandonedRecord,
    EndedRecord,
    EnqueuedRecord,
    ExplainedRecord,
    FailedRecord,
    PhaseEndedRecord,
    PlacedRecord,
    RefusedRecord,
    StartedRecord,
)
from argosy.model.constraints.meaning import Container, Meaning
from argosy.model.constraints.parts import of_job, tags_at
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Explanation
from argosy.model.jobs import index_of, job_of
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    Fault,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Network,
    Partition,
    RandomCrashes,
    Scenario,
    SchedulerCrash,
    UniformLatency,
)
from argosy.model.tasks import first_tasks, task_numbers
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.records.journal_file import Fact, JournalFile
from argosy.records.replay import Replay
from argosy.testing.builders import GIB, SECOND, cell, job, scenario, shared_job
from argosy.testing.hidden_truth import Observation, observed, watched
from argosy.testing.scripted_world import ScriptedWorld
from argosy.testing.wired import wired
from argosy.worlds.sim import SimulatedWorld

R = TypeVar("R")
#: Inputs that tell how long something took.
EndOfAttempt: TypeAlias = EndedRecord | FailedRecord | PhaseEndedRecord
PENDING, QUEUED, RUNNING, FINISHED, ABANDONED, *_ = TaskState


World: TypeAlias = SimulatedWorld | ScriptedWorld
Script: TypeAlias = Callable[[World], None]


class ConformanceRun:
    """A finished run: the world and its journal. `script` may act on the world."""

    def __init__(
        self,
        engine: type[Engine],
        spec: Scenario,
        also: Sequence[type[Engine]] = (),
        *,
        world: type[World] = SimulatedWorld,
        is_wired: bool = True,
        script: Script | None = None,
    ) -> None:
        stream = io.BytesIO()
        log = Journal(stream)
        engines = {known.name: wired(known) if is_wired else known for known in (engine, *also)}
        self.world: World = world(spec, engines, log)
        if script is not None:
            script(self.world)
        self.world.run()
        self.digest = log.digest()
        self.log = stream.getvalue()
        Replay(JournalFile(self.log), {known.name: known for known in (engine, *also)}).run()
        self.facts: list[Fact] = list(JournalFile(self.log).facts())
        self.counts = self.world.host.board.counts().tolist()

    def of(self, kind: type[R], job: str | None = None) -> list[R]:
        """The records of one kind, in order; of one job, if given."""
        return [
            fact
            for fact in self.facts
            if isinstance(fact, kind) and (job is None or getattr(fact, "job", None) == job)
        ]

    def number(self, name: str) -> int:
        return self.world.host.jobs.names.index(name)

    def tasks_of(self, number: int) -> list[int]:
        tasks: list[int] = first_tasks(number, self.world.host.board.tasks(number)).tolist()
        return tasks

    def require_all_finished(self) -> None:
        total = sum(self.counts)
        assert self.counts[FINISHED] == total, (
            f"of {total} tasks, {self.counts[PENDING]} are pending, {self.counts[QUEUED]} queued, "
            f"{self.counts[RUNNING]} running and {self.counts[ABANDONED]} abandoned"
        )
        self.require_nothing_claimed()

    def require_nothing_claimed(self) -> None:
        used = self.world.host.cell.used_total()
        assert not any(used.values()), f"the cell still holds {used} after every task ended"
        assert self.world.host.cell.audit() == []

    def require_accounted_for(self) -> None:
        """Every task is placed, queued or finished, or the journal says why not: in the scheduler's
        explanation or in the cell's refusal."""
        explained: set[tuple[str, int]] = set()
        for fact in self.facts:
            match fact:
                case RefusedRecord(job=name, indices=indices, whys=whys):
                    assert whys, f"no reason: {fact}"
                case ExplainedRecord(job=name, indices=indices, explanation=told):
                    assert told != Explanation(), f"no reason: {fact}"
                case AbandonedRecord(job=name, indices=indices, explanation=told):
                    assert told != Explanation(), f"no reason: {fact}"
                case _:
                    continue
            explained.update((name, index) for index in indices)
        for number in range(len(self.world.host.jobs)):
            name = self.world.host.jobs.name(number)
            for state in (PENDING, ABANDONED):
                for task in self.world.host.board.tasks_in(number, state).tolist():
                    index = index_of(task)
                    assert (name, index) in explained, f"{name}/{index} waits and nobody says why"


class Runs(Protocol):
    """Runs an engine in some world."""

    def __call__(
        self,
        engine: type[Engine],
        spec: Scenario,
        also: Sequence[type[Engine]] = (),
        *,
        is_wired: bool = True,
        script: Script | None = None,
    ) -> ConformanceRun: ...


Check: TypeAlias = Callable[[type[Engine], Runs], None]
#: The worlds in which an engine can be checked.
SIMULATED: Final[Runs] = ConformanceRun
SCRIPTED: Final[Runs] = partial(ConformanceRun, world=ScriptedWorld, is_wired=False)


def workload(jobs: int = 40, seed: int = 7, spacing: float = 0.4) -> list[SimulatedJob]:
    """A small mixed load that needs about two thirds of the builders' default cell."""
    random = Random(seed)
    return [
        job(
            f"j{i}",
            1 + random.below(6),
            cpu=250 * (1 + random.below(6)),
            memory=GIB * (1 + random.below(3)),
            seconds=1 + random.below(5),
            submit=i * spacing,
            kind="service" if i % 5 == 0 else "batch",
            precedence=random.below(3),
        )
        for i in range(jobs)
    ]


def nothing_is_oversubscribed_or_lost(engine: type[Engine], run: Runs = SIMULATED) -> None:
    run(engine, scenario(engine.name, workload(60, spacing=0.05))).require_all_finished()


def one_scheduler_alone_works(engine: type[Engine], run: Runs = SIMULATED) -> None:
    run(engine, scenario(engine.name, workload(), replicas=1)).require_all_finished()


def many_schedulers_work(engine: type[Engine], run: Runs = SIMULATED) -> None:
    run(engine, scenario(engine.name, workload(), replicas=5)).require_all_finished()


def the_same_seed_gives_the_same_log(engine: type[Engine], run: Runs = SIMULATED) -> None:
    first, again = (run(engine, scenario(engine.name, workload())) for _ in range(2))
    assert first.log == again.log, "the journal differs between two runs of one seed"
    assert first.digest == again.digest


def events_that_were_written_and_read_give_the_same_decisions(
    engine: type[Engine], run: Runs = SIMULATED
) -> None:
    faults = (
        MachineCrash(at=SECOND, machine="m2", down=5 * SECOND),
        SchedulerCrash(at=2 * SECOND, scheduler="s-1", down=5 * SECOND),
    )
    shared = shared_job("shared", 3, (12, 4), (3, 5), submit=0.5)
    jobs = [*workload(30, spacing=0.02), shared, job("gang", 6, gang=True, submit=1)]
    spec = scenario(engine.name, jobs, replicas=3, faults=faults)
    direct, over_wire = (run(engine, spec, is_wired=is_wired) for is_wired in (False, True))
    assert direct.log == over_wire.log, "decisions depend on more than the values of events"


def what_cannot_be_placed_is_explained(engine: type[Engine], run: Runs = SIMULATED) -> None:
    jobs = [
        *workload(10),
        job("giant", 2, cpu=64_000, submit=1),
        job("wide", 100, cpu=4_000, submit=2),
    ]
    trial = run(engine, scenario(engine.name, jobs, horizon=60 * SECOND))
    giant = next(
        number for number in range(len(jobs)) if trial.world.host.jobs.name(number) == "giant"
    )
    placed = [
        task
        for state in (QUEUED, RUNNING, FINISHED)
        for task in trial.world.host.board.tasks_in(giant, state).tolist()
    ]
    assert not placed, "a task larger than every machine was placed"
    trial.require_accounted_for()


def endless_services_stay_up(engine: type[Engine], run: Runs = SIMULATED) -> None:
    jobs = [job("web", 6, seconds=None, kind="service"), *workload(10)]
    trial = run(engine, scenario(engine.name, jobs, horizon=120 * SECOND))
    assert trial.counts[RUNNING] == 6, "an endless service is not running at the end"
    others = sum(trial.counts) - 6
    assert trial.counts[FINISHED] == others, f"beside it, {others} tasks should have finished"


def jobs_with_several_groups_are_placed(engine: type[Engine], run: Runs = SIMULATED) -> None:
    large, small = (
        group_with_truth(count, Resources(cpu, GIB), (10 * SECOND,))
        for count, cpu in ((2, 2_000), (5, 500))
    )
    jobs = [simulated_job("mixed", large, small), *workload(10)]
    run(engine, scenario(engine.name, jobs)).require_all_finished()


def jobs_whose_tasks_share_work_are_done(engine: type[Engine], run: Runs = SIMULATED) -> None:
    """Even if workers are lost: their unfinished activities are done again."""
    faults = RandomCrashes(what="machines", every=4 * SECOND, down=3 * SECOND, end=30 * SECOND)
    shared = [shared_job(f"shared-{i}", 3, (12, 4), (3, 5), submit=i * 0.5) for i in range(12)]
    spec = scenario(engine.name, [*workload(20), *shared], faults=(faults,))
    trial = run(engine, spec)
    trial.require_all_finished()
    # Even with as many workers as activities, a phase takes as long as one activity.
    submit, _, _, done = trial.world.host.board.job_columns()
    numbers = [n for n in range(len(submit)) if trial.world.host.board.shares_work(n)]
    assert len(numbers) == 12
    assert ((done - submit)[numbers] >= 8 * SECOND).all(), (
        "work was done faster than its activities take"
    )


def nobody_sees_how_long_tasks_really_run(engine: type[Engine], run: Runs = SIMULATED) -> None:
    """Uses durations that are equal to no other number, and estimates far from them."""
    plain = [
        job(
            f"j{i}",
            1 + i % 4,
            seconds=1.234567 + 0.007919 * i,
            estimate=2 * SECOND + i,
            submit=0.3 * i,
            constraints=(parse_constraint("appID:self -> {guest, 0, 0} in rack"),) * (i % 2),
        )
        for i in range(30)
    ]
    shared = [
        shared_job(f"s{i}", 2, (6, 3), (1.357911, 0.753197), estimate=9 * SECOND, submit=2 * i)
        for i in range(3)
    ]
    jobs = [*plain, *shared, job("web", 2, seconds=None, kind="service")]
    truths = [truth for made in jobs for truth in made.truth]
    durations = {time for truth in truths for time in (*truth.durations, *truth.phases)}
    faults = (
        MachineCrash(at=3 * SECOND, machine="m2", down=2 * SECOND),
        SchedulerCrash(at=5 * SECOND, scheduler="s-1", down=SECOND),
    )
    leaks: list[str] = []
    spec = scenario(engine.name, jobs, faults=faults, horizon=60 * SECOND)
    trial = run(watched(engine, durations, leaks), spec)
    others = sum(trial.counts) - 2
    assert trial.counts[FINISHED] == others, f"{others} tasks should have finished"
    assert not leaks, leaks[0]


def nothing_depends_on_how_long_tasks_really_run(
    engine: type[Engine], run: Runs = SIMULATED
) -> None:
    """Two runs with the same estimates are the same until the first task ends."""
    seen: tuple[list[Observation], list[Observation]] = ([], [])
    horizon, firsts = 40 * SECOND, []
    for observations, seconds in zip(seen, (20, 31), strict=True):
        jobs = [
            job(f"j{i}", 1 + i % 4, seconds=seconds + i, estimate=5 * SECOND, submit=0.3 * i)
            for i in range(30)
        ]
        shared = shared_job("shared", 3, (6, 3), (seconds, seconds), estimate=9 * SECOND, submit=1)
        spec = scenario(engine.name, [*jobs, shared], replicas=3, horizon=horizon)
        facts = run(observed(engine, observations), spec).facts
        ends = (fact.at for fact in facts if isinstance(fact, EndOfAttempt))
        firsts.append(min(ends, default=horizon))
    until = min(firsts)
    first, second = ([event for event in events if event.at < until] for events in seen)
    assert len(first) > 10, "too little happens before the first task ends"
    different = (pair for pair in zip_longest(first, second) if pair[0] != pair[1])
    assert not (pair := next(different, None)), f"a real running time shows: {pair}"


def required_attributes_are_obeyed(engine: type[Engine], run: Runs = SIMULATED) -> None:
    spec = cell()
    with_gpu = tuple(
        msgspec.structs.replace(machine, attributes={"gpu": "yes"}) if i >= 6 else machine
        for i, machine in enumerate(spec.machines)
    )
    group = group_with_truth(5, Resources(1_000, GIB), (10 * SECOND,), requires={"gpu": "yes"})
    picky = simulated_job("picky", group)
    # One scheduler: a second one might get no suitable machine from an engine that partitions them.
    built = scenario(
        engine.name,
        [picky, *workload(10)],
        cell=msgspec.structs.replace(spec, machines=with_gpu),
        replicas=1,
    )
    trial = run(engine, built)
    trial.require_all_finished()
    placings: list[PlacedRecord | EnqueuedRecord] = [
        *trial.of(PlacedRecord, "picky"),
        *trial.of(EnqueuedRecord, "picky"),
    ]
    used = [machine for record in placings for machine in record.machines]
    # Probes bring tasks to machines without a decision about each: only the start is recorded.
    number = trial.number("picky")
    for started in trial.of(StartedRecord):
        pairs = zip(started.tasks, started.machines, strict=True)
        used += [machine for task, machine in pairs if job_of(task) == number]
    assert len(used) >= 5, "the journal does not say where tasks ran"
    assert min(used) >= 6, "required attributes ignored"


def gangs_start_together(engine: type[Engine], run: Runs = SIMULATED) -> None:
    if not engine.capabilities.gang:
        return
    jobs = [*workload(30, spacing=0.1), job("gang", 12, gang=True, seconds=5, submit=1)]
    trial = run(engine, scenario(engine.name, jobs))
    trial.require_all_finished()
    placed = trial.of(PlacedRecord, "gang")
    # A task that failed is placed again on its own.
    assert len(placed[0].indices) == 12, f"the gang was placed in {len(placed)} parts"


def hard_constraints_are_kept(engine: type[Engine], run: Runs = SIMULATED) -> None:
    """Including those of applications placed before the scheduler crashed, and for tasks that lost
    their machine. Judged by the reference implementation, at the end."""
    if not engine.capabilities.constraints:
        return
    apart = parse_constraint("w -> {w, 0, 0} in machine hard")
    alone = parse_constraint("appID:self -> {guest, 0, 0} in rack hard")
    jobs = [
        job("a", 3, cpu=500, seconds=None, kind="service", tags=("w",), constraints=(apart,)),
        job("host", 2, cpu=500, seconds=None, kind="service", submit=1, constraints=(alone,)),
        job("b", 3, cpu=500, seconds=None, kind="service", submit=50, tags=("w",)),
        job("guest", 1, cpu=500, seconds=None, kind="service", submit=50, tags=("guest",)),
    ]
    faults = (
        SchedulerCrash(at=30 * SECOND, scheduler="s", down=3 * SECOND),
        MachineCrash(at=80 * SECOND, machine="m0", down=10 * SECOND),
    )
    spec = scenario(engine.name, jobs, replicas=1, faults=faults, horizon=200 * SECOND)
    trial = run(engine, spec)
    tasks, machines, *_ = trial.world.host.runtime.running_columns()
    running = [
        Container(
            tags_at(spec.jobs[job_of(task)].job, index_of(task)),
            spec.cell.machines[machine].name,
        )
        for task, machine in zip(tasks.tolist(), machines.tolist(), strict=True)
    ]
    # The host may be in both racks; then there is no place for the guest.
    assert len(running) >= 8, "applications were not placed"
    constraints = [c for each in spec.jobs for c in of_job(each.id, each.job.constraints)]
    judged = Meaning(spec.cell.machines).judge(constraints, running)
    assert not judged.violations, "a hard constraint is broken"


def _survives(
    engine: type[Engine], run: Runs, *faults: Fault, network: Network | None = None
) -> ConformanceRun:
    """Jobs arrive faster than three schedulers decide, so that a fault hits work in progress."""
    trial = run(
        engine,
        scenario(
            engine.name,
            workload(90, spacing=0.02),
            replicas=3,
            faults=faults,
            network=network or Network(),
        ),
    )
    trial.require_all_finished()
    return trial


def survives_a_machine_crash(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(engine, run, MachineCrash(at=SECOND, machine="m2", down=10 * SECOND))


def survives_a_machine_that_never_returns(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(engine, run, MachineCrash(at=SECOND, machine="m2"))


def survives_a_drain_and_a_resize(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(
        engine,
        run,
        MachineDrain(at=SECOND, machine="m2", lasts=20 * SECOND),
        MachineResize(at=SECOND, machine="m5", capacity=Resources(1_000, 4 * GIB)),
    )


def survives_a_scheduler_crash(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(engine, run, SchedulerCrash(at=SECOND, scheduler="s-1", down=10 * SECOND))


def survives_a_scheduler_that_never_returns(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(engine, run, SchedulerCrash(at=SECOND, scheduler="s-1"))


def survives_all_schedulers_crashing(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(
        engine,
        run,
        *(SchedulerCrash(at=SECOND, scheduler=f"s-{i}", down=3 * SECOND) for i in range(3)),
    )


def survives_random_crashes(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(
        engine,
        run,
        RandomCrashes(what="machines", every=SECOND, down=3 * SECOND, end=30 * SECOND),
        RandomCrashes(what="schedulers", every=SECOND, down=2 * SECOND, end=30 * SECOND),
    )


def survives_lost_messages(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(engine, run, network=Network(loss=0.3))


def survives_doubled_messages(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(engine, run, network=Network(duplication=0.5))


def survives_late_and_reordered_messages(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(
        engine,
        run,
        network=Network(
            latency=UniformLatency(low=100, high=50_000), reordering=0.5, extra_delay=2 * SECOND
        ),
    )


def survives_a_partition(engine: type[Engine], run: Runs = SIMULATED) -> None:
    _survives(engine, run, Partition(at=SECOND, lasts=6 * SECOND, isolated=("s-0",)))


def faults_do_not_break_determinism(engine: type[Engine], run: Runs = SIMULATED) -> None:
    first, again = (
        _survives(
            engine,
            run,
            RandomCrashes(what="schedulers", every=SECOND, down=2 * SECOND, end=30 * SECOND),
            network=Network(loss=0.1, duplication=0.1, reordering=0.2, extra_delay=SECOND),
        )
        for _ in range(2)
    )
    assert first.log == again.log, "the journal differs between two runs of one seed"


def cancelled_jobs_are_over(engine: type[Engine], run: Runs = SIMULATED) -> None:
    """Whatever state they were in when cancelled: waiting, in transit, queued or running."""
    jobs = [*workload(20, spacing=0.1), job("victim", 40, cpu=500, seconds=30, submit=0.5)]
    spec = scenario(engine.name, jobs)

    def script(world: World) -> None:
        world.inject(SECOND, lambda: _cancel(world, "victim", range(3)))
        world.inject(3 * SECOND, lambda: _cancel(world, "victim", None))

    trial = run(engine, spec, script=script)
    number = trial.number("victim")
    states = [trial.world.host.board.state(task) for task in trial.tasks_of(number)]
    over = {TaskState.CANCELLED, TaskState.FINISHED, TaskState.ABANDONED}
    assert set(states) <= over, f"tasks of a cancelled job are {_names(set(states) - over)}"
    assert states[:3] == [TaskState.CANCELLED] * 3, f"cancelled tasks are {_names(states[:3])}"
    others = sum(trial.counts) - 40
    assert trial.counts[FINISHED] >= others, "other jobs did not finish"
    trial.require_nothing_claimed()


def _names(states: Iterable[TaskState]) -> str:
    return ", ".join(state.name.lower() for state in states)


def _cancel(world: World, name: str, indices: range | None) -> None:
    number = world.host.jobs.names.index(name)
    tasks = None if indices is None else task_numbers(number, list(indices))
    world.host.cancel(number, tasks)


def jobs_grow_and_shrink(engine: type[Engine], run: Runs = SIMULATED) -> None:
    small, *sizes = (job("web", count, cpu=500, seconds=20, submit=0.2) for count in (4, 9, 5, 6))
    spec = scenario(engine.name, [small, *workload(10)])

    def script(world: World) -> None:
        for second, made in zip((2, 6, 7), sizes, strict=True):
            world.inject(second * SECOND, partial(_scale, world, made))

    trial = run(engine, spec, script=script)
    number = trial.number("web")
    states = [trial.world.host.board.state(task) for task in trial.tasks_of(number)]
    wanted = [TaskState.FINISHED] * 6 + [TaskState.CANCELLED] * 3
    assert states == wanted, f"tasks of a job that grew and shrank are {_names(states)}"
    trial.require_nothing_claimed()


def _scale(world: World, made: SimulatedJob) -> None:
    number = world.host.jobs.names.index(made.job.id)
    world.tell_times(number, made)
    retries = world.host.jobs.job(number).groups[0].retries
    groups = tuple(msgspec.structs.replace(group, retries=retries) for group in made.job.groups)
    world.host.scale(number, msgspec.structs.replace(made.job, groups=groups))


CHECKS: Final[tuple[Check, ...]] = (
    nothing_is_oversubscribed_or_lost,
    one_scheduler_alone_works,
    many_schedulers_work,
    the_same_seed_gives_the_same_log,
    events_that_were_written_and_read_give_the_same_decisions,
    what_cannot_be_placed_is_explained,
    endless_services_stay_up,
    jobs_with_several_groups_are_placed,
    jobs_whose_tasks_share_work_are_done,
    nobody_sees_how_long_tasks_really_run,
    nothing_depends_on_how_long_tasks_really_run,
    required_attributes_are_obeyed,
    gangs_start_together,
    hard_constraints_are_kept,
    survives_a_machine_crash,
    survives_a_machine_that_never_returns,
    survives_a_drain_and_a_resize,
    survives_a_scheduler_crash,
    survives_a_scheduler_that_never_returns,
    survives_all_schedulers_crashing,
    survives_random_crashes,
    survives_lost_messages,
    survives_doubled_messages,
    survives_late_and_reordered_messages,
    survives_a_partition,
    faults_do_not_break_determinism,
    cancelled_jobs_are_over,
    jobs_grow_and_shrink,
)
