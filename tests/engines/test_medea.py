"""Medea and its baselines as engines: intervals, all or nothing, conflicts, whose constraints hold."""

from __future__ import annotations

from typing import Any

import pytest
from application_runs import run, service, where
from hypothesis import given
from hypothesis import settings as tuned
from hypothesis import strategies as st
from msgspec import structs

from argosy.engines.families.lra import sight
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.scheduler import LraScheduler
from argosy.host.records import (
    AbandonedRecord,
    AttemptRecord,
    ExplainedRecord,
    LostRecord,
    PlacedRecord,
    RefusedRecord,
)
from argosy.model.constraints.meaning import Container, Meaning
from argosy.model.constraints.parts import container_tags, of_job
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.jobs import TaskGroup
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    FleetEntry,
    MachineCrash,
    Scenario,
    SchedulerCrash,
    Takes,
)
from argosy.model.truth import GroupTruth, SimulatedJob, group_with_truth, simulated_job
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import RUNNING, ConformanceRun

AWARE = ["medea", "jkube", "jkube++", "kube-modern", "ilp-all"]


def judged(trial: ConformanceRun, spec: Scenario) -> float:
    """The reference's judgement of everything that runs."""
    names = {job.id: job for job in spec.jobs}
    containers = []
    for name, each in names.items():
        machines = where(trial, name)
        at = 0
        for group in each.groups:
            for _ in range(group.count):
                if at < len(machines):
                    machine = spec.cell.machines[machines[at]].name
                    containers.append(
                        Container(frozenset(container_tags(each.job, group)), machine)
                    )
                at += 1
    constraints = [c for each in names.values() for c in of_job(each.id, each.job.constraints)]
    return Meaning(spec.cell.machines).judge(constraints, containers).total


def test_applications_of_one_interval_are_placed_together_when_it_is_over() -> None:
    trial = run("medea", [service("a", 2, submit=1), service("b", 2, submit=7)])
    placed = trial.of(PlacedRecord)
    assert len({line.at for line in placed}) == 1
    assert placed[0].at > 10 * SECOND
    attempts = trial.of(AttemptRecord)
    assert [line.at for line in attempts] == [10 * SECOND] * 2


@pytest.mark.parametrize("engine", ["medea", "jkube++", "kube-modern", "ilp-all"])
def test_constraints_are_kept_where_they_can_be(engine: str) -> None:
    hard = " hard" if engine == "kube-modern" else ""
    jobs = [
        service("a", 4, "w & appID:self -> {w, 0, 0} in machine" + hard, cpu=500),
        service("b", 4, "w & appID:self -> {w, 0, 0} in machine" + hard, cpu=500, submit=20),
    ]
    trial = run(engine, jobs)
    assert len(set(where(trial, "a") + where(trial, "b"))) == 8


def test_medea_gathers_an_application_in_a_rack_and_its_constraints_outlive_the_decision() -> None:
    together = "appID:self -> {appID:self, 3, inf} in rack"
    jobs = [
        service("a", 4, together, "appID:self -> {guest, 0, 0} in rack", cpu=1_000),
        job("guest", 2, kind="service", seconds=None, tags=("guest",), submit=25, cpu=500),
    ]
    trial = run("medea", jobs)
    racks = {machine // 4 for machine in where(trial, "a")}
    assert len(racks) == 1
    assert racks.isdisjoint(machine // 4 for machine in where(trial, "guest"))


@pytest.mark.parametrize("engine", AWARE)
def test_an_application_is_placed_whole_or_not_at_all(engine: str) -> None:
    jobs = [service("big", 9, cpu=4_000), service("small", 2, cpu=4_000)]
    trial = run(engine, jobs, {"interval": 1_000_000})
    assert where(trial, "big") == []
    assert len(where(trial, "small")) == 2
    trial.require_accounted_for()


def test_a_hard_constraint_that_nothing_can_keep_is_named_in_the_explanation() -> None:
    text = "appID:self -> {appID:self, 0, 0} in rack hard"
    trial = run("medea", [service("a", 3, text)])
    assert where(trial, "a") == []
    (told, *_) = trial.of(ExplainedRecord)
    assert told.explanation.remedy == (
        "relax the hard constraint 'appID:a -> {appID:a, 0, 0} in rack hard'"
    )


def test_a_violated_soft_constraint_is_reported_with_its_extent() -> None:
    trial = run("medea", [service("a", 3, "appID:self -> {appID:self, 0, 0} in rack")])
    (placed,) = trial.of(PlacedRecord)
    (told,) = placed.explanation.violated
    assert (
        "'appID:a -> {appID:a, 0, 0} in rack' is broken for 2 containers of a, by 2 in all" in told
    )


@pytest.mark.parametrize("kinds", [("service",), ("batch",)])
def test_a_constraint_of_an_unknown_group_is_refused_on_submission(kinds: tuple[str, ...]) -> None:
    """Also for jobs that are not placed as applications."""
    settings = {"routing": "kind", "long_running": kinds}
    trial = run("medea", [service("a", 1, "w -> {w, 0, 0} in hall"), service("b", 1)], settings)
    (line,) = trial.of(AbandonedRecord)
    assert line.job == "a"
    assert "there is no node group 'hall'" in line.explanation.remedy
    assert len(where(trial, "b")) == 1


def conflicted(**settings: Any) -> ConformanceRun:
    """A machine has room for the application when it is decided on; then tasks take it."""
    jobs = [
        service("app", 2, cpu=3_000, precedence=1),
        job("short", 8, cpu=3_000, seconds=40, submit=10.05),
    ]
    settings = {"t_lra": 2_000_000, "t_job": 10_000, "t_task": 100, **settings}
    return run("medea", jobs, settings)


def test_a_conflict_means_the_next_interval() -> None:
    trial = conflicted()
    refused = trial.of(RefusedRecord, "app")
    assert refused
    placed = trial.of(PlacedRecord, "app")
    assert placed[0].at > 50 * SECOND


def test_reserving_keeps_tasks_away_from_what_an_application_is_to_get() -> None:
    trial = conflicted(conflict="reserve")
    assert not trial.of(RefusedRecord)
    placed = trial.of(PlacedRecord, "app")
    assert placed[0].at < 15 * SECOND
    trial.require_accounted_for()


def test_killing_pushes_out_tasks_of_lower_precedence() -> None:
    trial = conflicted(conflict="kill")
    assert trial.of(LostRecord, "short")
    placed = trial.of(PlacedRecord, "app")
    assert placed[0].at < 15 * SECOND


def test_relaxing_finds_another_machine_of_the_rack_at_once() -> None:
    jobs = [
        service("app", 1, cpu=3_000),
        job("short", 1, cpu=3_000, seconds=40, submit=10.05),
    ]
    settings = {"t_lra": 2_000_000, "t_job": 10_000, "placement": "worst-fit"}
    plain = run("medea", jobs, settings)
    relaxed = run("medea", jobs, {**settings, "conflict": "relax"})
    assert where(plain, "short") == [0]
    (line,) = relaxed.of(PlacedRecord, "app")
    assert line.at < 15 * SECOND
    assert 0 < where(relaxed, "app")[0] < 4


def test_relaxing_keeps_to_machines_that_have_what_a_container_requires() -> None:
    """Of the rack, the first and the last machine have a fast disk; a task takes the first."""
    fast = {0: {"disk": "fast", "first": "yes"}, 3: {"disk": "fast"}}
    plain = cell()
    machines = tuple(
        structs.replace(machine, attributes=fast.get(at, {}))
        for at, machine in enumerate(plain.machines)
    )
    jobs = [
        service("app", 1, cpu=3_000, requires={"disk": "fast"}),
        job("short", 1, cpu=3_000, seconds=40, submit=10.05, requires={"first": "yes"}),
    ]
    settings = {"t_lra": 2_000_000, "t_job": 10_000, "conflict": "relax"}
    trial = run("medea", jobs, settings, cell=structs.replace(plain, machines=machines))
    assert trial.of(RefusedRecord, "app")
    (line,) = trial.of(PlacedRecord, "app")
    assert (line.at < 15 * SECOND, line.machines) == (True, [3])


def test_an_application_is_abandoned_after_exactly_its_attempts() -> None:
    trial = run("medea", [service("big", 9, cpu=4_000)], {"attempts": 3})
    assert len(trial.of(AttemptRecord, "big")) == 3
    (line,) = trial.of(AbandonedRecord)
    assert line.explanation.refused is not None
    assert line.explanation.refused.lacking == 3


def share(trial: ConformanceRun, owner: str) -> float:
    """What the scheduler counts for an owner at the end."""
    engine = trial.world.host.schedulers[0].engine
    assert isinstance(engine, LraScheduler)
    return engine._shares.share(owner, trial.world.host.view)


def test_a_container_that_moves_is_counted_once_for_its_owner() -> None:
    text = "appID:self -> {appID:self, 0, 0} in machine"
    full = [job(f"t{i}", 1, cpu=4_000, seconds=25) for i in range(7)]
    late = service("late", 1, cpu=100, submit=41)
    jobs = [service("a", 2, text, cpu=1_000, owner="mover"), *full, late]
    trial = run("medea", jobs, {"migrate": 4})
    assert len(set(where(trial, "a"))) == 2
    assert share(trial, "mover") == 2_000 / 32_000


def test_containers_that_lost_their_machine_are_counted_once_for_their_owner() -> None:
    crash = MachineCrash(machine="m0", at=30 * SECOND, down=60 * SECOND)
    jobs = [service("a", 7, cpu=3_000, owner="loser")]
    trial = run("medea", jobs, faults=(crash,))
    assert trial.of(LostRecord, "a")
    assert trial.counts[RUNNING] == 7
    assert share(trial, "loser") == 21_000 / 32_000


def test_queues_share_by_their_weights() -> None:
    """Two owners with endless work; one has three times the weight."""
    jobs = [
        job(f"{owner}{i}", 1, cpu=4_000, seconds=10, owner=owner, submit=0.001 * i)
        for i in range(60)
        for owner in ("a", "b")
    ]
    # Without a back-off, all jobs of both owners are there whenever one is chosen.
    trial = run("medea", jobs, {"queues": {"a": 3.0}, "t_job": 20_000, "t_task": 0, "backoff": 0})
    first = [x.job[0] for x in trial.of(PlacedRecord)][:40]
    assert (first.count("a"), first.count("b")) == (30, 10)


def test_task_jobs_may_have_constraints_too() -> None:
    jobs = [
        service("cache", 1, tags=("cache",)),
        job(
            "map",
            6,
            cpu=500,
            submit=20,
            constraints=(parse_constraint("appID:self -> {cache, 1, inf} in rack"),),
        ),
    ]
    trial = run("medea", jobs)
    (home,) = {machine // 4 for machine in where(trial, "cache")}
    assert {machine // 4 for machine in where(trial, "map")} == {home}


def test_containers_that_lost_their_machine_are_placed_again_under_their_constraints() -> None:
    text = "appID:self -> {appID:self, 0, 0} in machine hard"
    crash = MachineCrash(machine="m0", at=30 * SECOND, down=60 * SECOND)
    trial = run("medea", [service("a", 7, text, cpu=3_000)], faults=(crash,))
    assert trial.counts[RUNNING] == 7
    assert len(set(where(trial, "a"))) == 7


def test_a_restarted_scheduler_knows_what_runs() -> None:
    crash = SchedulerCrash(scheduler="s", at=30 * SECOND, down=SECOND)
    apart = "w -> {w, 0, 0} in machine hard"
    jobs = [service("a", 4, cpu=100), service("b", 4, apart, cpu=100, submit=40)]
    trial = run("medea", jobs, faults=(crash,))
    assert set(where(trial, "a")).isdisjoint(where(trial, "b"))


def test_a_running_container_moves_where_it_breaks_nothing() -> None:
    text = "appID:self -> {appID:self, 0, 0} in machine"
    full = [job(f"t{i}", 1, cpu=4_000, seconds=25) for i in range(7)]
    jobs = [service("a", 2, text, cpu=1_000), *full, service("late", 1, cpu=100, submit=41)]
    still = run("medea", jobs)
    assert len(set(where(still, "a"))) == 1
    moved = run("medea", jobs, {"migrate": 4})
    assert len(set(where(moved, "a"))) == 2


@pytest.mark.parametrize(
    ("text", "kube", "plus", "modern"),
    [
        ("a -> {b, 1, inf} in rack", "same", "same", "same"),
        (
            "a -> {b, 9, inf} in rack",
            "a -> {b, 1, inf} in rack",
            "same",
            "a -> {b, 1, inf} in rack",
        ),
        ("a -> {b, 0, 0} in rack", "same", "same", "same"),
        ("a -> {b, 0, 2} in rack", None, "same", "a -> {b, 0, 2} in rack hard"),
        ("a -> {b, 1, 2} in rack", None, "same", None),
        ("a -> {b, 1, inf} or {c, 1, inf} in rack", None, None, None),
        ("a -> not {b, 1, inf} in rack", *["a -> {b, 0, 0} in rack"] * 3),
        ("a -> spread {2, inf} over rack", None, None, None),
    ],
)
def test_each_baseline_sees_what_its_system_can_say(text, kube, plus, modern) -> None:
    constraint = parse_constraint(text)
    for look, expected in (
        (sight.kube, kube),
        (sight.kube_plus, plus),
        (sight.kube_modern, modern),
    ):
        seen = look(constraint)
        shown = None if seen is None else format_constraint(seen)
        assert shown == (text if expected == "same" else expected)
    assert sight.nothing(constraint) is None


def test_medea_keeps_what_a_scheduler_that_sees_no_constraints_breaks() -> None:
    """Eight applications of the paper's kind on 24 machines."""
    texts = (
        "appID:self -> {appID:self, 3, inf} in rack",
        "appID:self -> {w, 0, 1} in machine",
    )
    jobs = [service(f"a{i}", 4, *texts, cpu=500, submit=2.0 * i) for i in range(8)]
    spec = scenario("medea", jobs, replicas=1, cell=cell(24), horizon=120 * SECOND)
    medea, yarn = (judged(run(engine, jobs, cell=cell(24)), spec) for engine in ("medea", "yarn"))
    assert medea == 0
    assert yarn > 10


def test_a_scheduler_that_begins_again_keeps_the_constraints_of_what_runs_whole() -> None:
    """The first application is fully placed when the scheduler crashes, and is not submitted again."""
    crash = SchedulerCrash(scheduler="s", at=30 * SECOND, down=SECOND)
    alone = "appID:self -> {guest, 0, 0} in rack hard"
    guest = job("guest", 2, kind="service", seconds=None, tags=("guest",), submit=40, cpu=500)
    jobs = [service("a", 2, alone, "appID:self -> {appID:self, 1, inf} in rack", cpu=500), guest]
    for faults in ((), (crash,)):
        trial = run("medea", jobs, faults=faults)
        racks = {machine // 4 for machine in where(trial, "a")}
        assert len(racks) == 1
        assert len(where(trial, "guest")) == 2
        assert racks.isdisjoint(machine // 4 for machine in where(trial, "guest"))


def test_constraints_of_an_application_that_is_over_have_no_effect() -> None:
    """Even if the scheduler crashed in between, and if part of it was abandoned."""
    crash = SchedulerCrash(scheduler="s", at=15 * SECOND, down=30 * SECOND)
    texts = ("w -> {w, 0, 0} in rack hard", "v -> {w, 0, 0} in machine hard")
    for faults in ((), (crash,)):
        jobs = [service("a", 2, *texts, seconds=20), service("b", 6, submit=60)]
        trial = run("medea", jobs, faults=faults)
        assert len(where(trial, "b")) == 6
    never = service("never", 9, "w -> {w, 0, 0} in machine hard", cpu=4_000)
    trial = run("medea", [never, service("b", 9, submit=60, cpu=100)], {"attempts": 2})
    assert [line.job for line in trial.of(AbandonedRecord)] == ["never"]
    assert len(where(trial, "b")) == 9


def test_schedulers_of_a_fleet_see_each_others_containers_and_constraints() -> None:
    apart = "w -> {w, 0, 0} in machine hard"
    fleet = tuple(
        FleetEntry(name=name, engine="medea", takes=Takes(kinds=(kind,)),
                   settings={"long_running": ("first", "second")})
        for name, kind in (("s", "first"), ("t", "second"))
    )  # fmt: skip
    jobs = [
        service("a", 4, apart, cpu=100, kind="first"),
        service("b", 4, cpu=100, submit=20, kind="second"),
    ]
    trial = run("medea", jobs, fleet=fleet)
    assert len(where(trial, "b")) == 4
    assert len(set(where(trial, "a") + where(trial, "b"))) == 8


@given(seed=st.integers(0, 10_000))
@tuned(max_examples=12)
def test_what_a_scheduler_remembers_is_what_the_cell_holds(seed: int) -> None:
    """Whatever was placed, moved, lost and ended: at the end its ledger equals a new one."""
    random = Random(seed)
    texts = ("w -> {w, 0, 1} in machine", "appID:self -> {appID:self, 1, inf} in rack")
    jobs = [
        service(f"a{i}", 1 + random.below(3), texts[i % 2], cpu=500, submit=float(random.below(60)),
                seconds=None if i % 3 else 5 + random.below(30))
        for i in range(8)
    ]  # fmt: skip
    faults = (
        MachineCrash(
            machine=f"m{random.below(8)}", at=(15 + random.below(40)) * SECOND, down=SECOND
        ),
        SchedulerCrash(scheduler="s", at=(15 + random.below(60)) * SECOND, down=SECOND),
    )
    trial = run("medea", jobs, {"migrate": 2}, faults=faults)
    engine = trial.world.host.schedulers[0].engine
    assert isinstance(engine, LraScheduler)
    view = trial.world.host.view
    kept, fresh = engine._known(view), Memory(view, "s")
    assert kept.ledger._running == fresh.ledger._running
    assert sorted(kept.manager.numbers()) == sorted(view.applications())


def governed(*texts: str) -> CellSpec:
    """The usual cell with constraints of its operator."""
    return structs.replace(cell(), constraints=tuple(map(parse_constraint, texts)))


def test_the_operators_constraints_of_the_cell_bind_every_application() -> None:
    trial = run("medea", [service("a", 8, cpu=100)], cell=governed("w -> {w, 0, 0} in machine"))
    assert len(set(where(trial, "a"))) == 8


def test_several_hard_constraints_that_must_go_together_are_named_and_no_others() -> None:
    """Three of them are needless to relax: one is kept anyway, one is the operator's and keeps nobody
    out, one is another application's about others."""
    texts = (
        "appID:self -> {appID:self, 0, 0} in rack hard",
        "appID:self -> {appID:self, 3, inf} in machine hard",
        "appID:self -> {appID:self, 0, 5} in rack hard",
    )
    jobs = [service("other", 1, "w -> {v, 0, 0} in machine hard"), service("a", 4, *texts)]
    trial = run("medea", jobs, cell=governed("w -> {w, 0, 9} in rack hard"))
    told = [x.explanation for x in trial.of(ExplainedRecord, "a")]
    assert told[0].remedy == "relax the hard constraint 'appID:a -> {appID:a, 0, 0} in rack hard'"
    jobs = [
        service("a", 4, texts[0], "appID:self -> {appID:self, 0, 0} in machine hard", cpu=2_000)
    ]
    full = [service(f"f{i}", 1, cpu=4_000, submit=0) for i in range(6)]
    trial = run("medea", [*full, *[structs.replace(jobs[0], submit=20 * SECOND)]])
    told = [x.explanation for x in trial.of(ExplainedRecord, "a")]
    assert told[0].remedy == (
        "relax these 2 hard constraints together: 'appID:a -> {appID:a, 0, 0} in rack hard'; "
        "'appID:a -> {appID:a, 0, 0} in machine hard'"
    )


def test_a_hard_constraint_of_another_application_or_the_operator_is_named_with_its_owner() -> None:
    host = service("host", 8, "appID:self -> {guest, 0, 0} in machine hard", cpu=500)
    guest = job("guest", 1, kind="service", seconds=None, tags=("guest",), submit=20, cpu=500)
    trial = run("medea", [host, guest, service("late", 1, submit=41, cpu=100)])
    assert len(set(where(trial, "host"))) == 8
    told = [x.explanation for x in trial.of(ExplainedRecord)]
    assert told[0].remedy == (
        "relax the hard constraint 'appID:host -> {guest, 0, 0} in machine hard', of host"
    )
    trial = run("medea", [guest], cell=governed("guest -> {guest, 1, inf} in rack hard"))
    told = [x.explanation for x in trial.of(ExplainedRecord)]
    assert told[0].remedy.endswith("in rack hard', the operator's")


def test_a_violation_names_the_containers_it_concerns() -> None:
    apart = "w -> {w, 0, 0} in rack"
    trial = run("medea", [service("a", 2, apart), service("b", 1)])
    (placed, *_) = trial.of(PlacedRecord)
    (told,) = placed.explanation.violated
    assert told.startswith(f"'{apart}' is broken for ")
    assert "of a" in told
    assert "of b" in told


def test_what_running_containers_suffer_is_told_too() -> None:
    """The guest has no constraints; where it goes, those of its hosts are broken."""
    host = service("host", 8, "appID:self -> {guest, 0, 0} in machine", cpu=500)
    guest = job("guest", 2, kind="service", seconds=None, tags=("guest",), submit=20, cpu=500)
    trial = run("medea", [host, guest])
    assert len(set(where(trial, "host"))) == 8
    (placed,) = trial.of(PlacedRecord, "guest")
    (told,) = placed.explanation.violated
    assert told.startswith("'appID:host -> {guest, 0, 0} in machine' is broken for ")
    assert told.endswith("of host, by 2 in all")


def task_job(
    name: str, groups: tuple[tuple[TaskGroup, GroupTruth], ...], *texts: str, **fields: Any
) -> SimulatedJob:
    constraints = tuple(map(parse_constraint, texts))
    return simulated_job(name, *groups, constraints=constraints, **fields)


def test_each_group_of_a_task_job_keeps_its_own_constraints() -> None:
    groups = tuple(
        group_with_truth(3, Resources(100), (SECOND,), tags=(tag,)) for tag in ("map", "reduce")
    )
    texts = ("map -> {cache, 1, inf} in rack hard", "reduce -> {cache, 0, 0} in rack hard")
    late = task_job("t", groups, *texts, submit=20 * SECOND)
    trial = run("medea", [service("cache", 1, tags=("cache",)), late])
    (home,) = {machine // 4 for machine in where(trial, "cache")}
    machines = where(trial, "t")
    assert {machine // 4 for machine in machines[:3]} == {home}
    assert home not in {machine // 4 for machine in machines[3:]}


def test_tasks_of_one_job_keep_hard_constraints_among_each_other() -> None:
    """Eight machines, ten tasks that may not meet: eight run at once, two wait for the next attempt."""
    groups = (group_with_truth(10, Resources(100), (5 * SECOND,), tags=("t",)),)
    apart = task_job("t", groups, "t -> {t, 0, 0} in machine hard")
    trial = run("medea", [apart], {"backoff": SECOND})
    placed = trial.of(PlacedRecord)
    assert sorted(placed[0].machines) == list(range(8))
    assert sum(len(line.machines) for line in placed) == 10
    assert placed[1].at >= 5 * SECOND
    told = trial.of(ExplainedRecord)
    assert "relax the hard constraint 't -> {t, 0, 0} in machine hard'" in str(told[0])
    trial.require_accounted_for()
