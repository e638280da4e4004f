"""What each check of the conformance suite runs: the jobs, faults and networks that it is about."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.engines.registry import ENGINES
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
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
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND
from argosy.testing.placements import random_constraint, random_instance

OMEGA, MEDEA = ENGINES["omega"], ENGINES["medea"]
DEFAULT = Network()


class Enough(Exception):
    """The check has said what it wants to run."""


def asked(check: Any, engine: Any = OMEGA) -> Scenario:
    """The first scenario that a check runs."""
    seen: list[Scenario] = []

    def run(engine: Any, spec: Scenario, *more: Any, **options: Any) -> Any:
        seen.append(spec)
        raise Enough

    with pytest.raises(Enough):
        check(engine, run)
    return seen[0]


CRASH = SchedulerCrash(at=SECOND, scheduler="s-1", down=10 * SECOND)
MACHINES = RandomCrashes(what="machines", every=SECOND, down=3 * SECOND, end=30 * SECOND)
SCHEDULERS = RandomCrashes(what="schedulers", every=SECOND, down=2 * SECOND, end=30 * SECOND)


@pytest.mark.parametrize(
    ("check", "faults", "network"),
    [
        (
            conformance.survives_a_machine_crash,
            (MachineCrash(at=SECOND, machine="m2", down=10 * SECOND),),
            DEFAULT,
        ),
        (
            conformance.survives_a_machine_that_never_returns,
            (MachineCrash(at=SECOND, machine="m2"),),
            DEFAULT,
        ),
        (
            conformance.survives_a_drain_and_a_resize,
            (
                MachineDrain(at=SECOND, machine="m2", lasts=20 * SECOND),
                MachineResize(at=SECOND, machine="m5", capacity=Resources(1_000, 4 * GIB)),
            ),
            DEFAULT,
        ),
        (conformance.survives_a_scheduler_crash, (CRASH,), DEFAULT),
        (
            conformance.survives_a_scheduler_that_never_returns,
            (SchedulerCrash(at=SECOND, scheduler="s-1"),),
            DEFAULT,
        ),
        (
            conformance.survives_all_schedulers_crashing,
            tuple(
                SchedulerCrash(at=SECOND, scheduler=f"s-{at}", down=3 * SECOND) for at in range(3)
            ),
            DEFAULT,
        ),
        (conformance.survives_random_crashes, (MACHINES, SCHEDULERS), DEFAULT),
        (conformance.survives_lost_messages, (), Network(loss=0.3)),
        (conformance.survives_doubled_messages, (), Network(duplication=0.5)),
        (
            conformance.survives_late_and_reordered_messages,
            (),
            Network(
                latency=UniformLatency(low=100, high=50_000),
                reordering=0.5,
                extra_delay=2 * SECOND,
            ),
        ),
        (
            conformance.survives_a_partition,
            (Partition(at=SECOND, lasts=6 * SECOND, isolated=("s-0",)),),
            DEFAULT,
        ),
        (
            conformance.faults_do_not_break_determinism,
            (SCHEDULERS,),
            Network(loss=0.1, duplication=0.1, reordering=0.2, extra_delay=SECOND),
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_faults_hit_three_schedulers_at_work(
    check: Any, faults: tuple[Any, ...], network: Network
) -> None:
    spec = asked(check)
    assert (spec.faults, spec.network) == (faults, network)
    assert (spec.fleet[0].replicas, spec.horizon, spec.audit) == (3, None, True)
    # They come within two seconds: faster than three schedulers decide.
    assert (len(spec.jobs), spec.jobs[-1].submit) == (90, 1_780_000)


@pytest.mark.parametrize(
    ("check", "engine", "jobs", "replicas", "horizon", "faults"),
    [
        (conformance.nothing_is_oversubscribed_or_lost, OMEGA, 60, 2, None, 0),
        (conformance.one_scheduler_alone_works, OMEGA, 40, 1, None, 0),
        (conformance.many_schedulers_work, OMEGA, 40, 5, None, 0),
        (conformance.the_same_seed_gives_the_same_log, OMEGA, 40, 2, None, 0),
        (
            conformance.events_that_were_written_and_read_give_the_same_decisions,
            OMEGA,
            32,
            3,
            None,
            2,
        ),
        (conformance.what_cannot_be_placed_is_explained, OMEGA, 12, 2, 60, 0),
        (conformance.endless_services_stay_up, OMEGA, 11, 2, 120, 0),
        (conformance.jobs_with_several_groups_are_placed, OMEGA, 11, 2, None, 0),
        (conformance.jobs_whose_tasks_share_work_are_done, OMEGA, 32, 2, None, 1),
        (conformance.nobody_sees_how_long_tasks_really_run, OMEGA, 34, 2, 60, 2),
        (conformance.nothing_depends_on_how_long_tasks_really_run, OMEGA, 31, 3, 40, 0),
        (conformance.required_attributes_are_obeyed, OMEGA, 11, 1, None, 0),
        (conformance.gangs_start_together, OMEGA, 31, 2, None, 0),
        (conformance.hard_constraints_are_kept, MEDEA, 4, 1, 200, 2),
        (conformance.cancelled_jobs_are_over, OMEGA, 21, 2, None, 0),
        (conformance.jobs_grow_and_shrink, OMEGA, 11, 2, None, 0),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_other_checks_have_their_jobs(
    check: Any, engine: Any, jobs: int, replicas: int, horizon: int | None, faults: int
) -> None:
    spec = asked(check, engine)
    assert (len(spec.jobs), spec.fleet[0].replicas, len(spec.faults)) == (jobs, replicas, faults)
    assert spec.horizon == (None if horizon is None else horizon * SECOND)
    assert spec.network == DEFAULT


def test_true_times_of_tasks_and_of_phases_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()

    def watched(engine: Any, durations: set[int], leaks: list[str]) -> Any:
        seen.update(durations)
        return engine

    monkeypatch.setattr(conformance, "watched", watched)
    asked(conformance.nobody_sees_how_long_tasks_really_run, OMEGA)
    assert {1_234_567, 1_242_486, 1_357_911, 753_197} <= seen


def test_every_check_is_one_of_the_suite() -> None:
    checks = {
        name
        for name, each in vars(conformance).items()
        if not name.startswith("_")
        and getattr(each, "__module__", "") == conformance.__name__
        and getattr(each, "__annotations__", {}).get("run") == "Runs"
    }
    assert {check.__name__ for check in conformance.CHECKS} == checks
    assert len(conformance.CHECKS) == len(checks) == 28


def test_engines_are_held_only_to_what_they_claim() -> None:
    plain: Any = SimpleNamespace(capabilities=SimpleNamespace(gang=False, constraints=False))
    never: Any = None
    conformance.gangs_start_together(plain, never)
    conformance.hard_constraints_are_kept(plain, never)


def test_the_mixed_load_has_services_ranks_and_sizes() -> None:
    jobs = conformance.workload(60, spacing=0.5)
    assert [made.id for made in jobs] == [f"j{at}" for at in range(60)]
    assert {b.submit - a.submit for a, b in pairwise(jobs)} == {SECOND // 2}
    assert [made.kind for made in jobs[:6]] == ["service", *["batch"] * 4, "service"]
    assert {made.tasks for made in jobs} == {1, 2, 3, 4, 5, 6}
    assert {made.job.precedence for made in jobs} == {0, 1, 2}
    requests = [made.groups[0].request for made in jobs]
    assert {each.cpu for each in requests} == {250 * n for n in range(1, 7)}
    assert {each.memory for each in requests} == {GIB, 2 * GIB, 3 * GIB}
    assert {made.truth[0].durations[0] for made in jobs} == {n * SECOND for n in range(1, 6)}
    assert jobs == conformance.workload(60, seed=7, spacing=0.5)
    assert jobs[:40] != conformance.workload(40, seed=8, spacing=0.5)
    assert len(conformance.workload()) == 40


class TestRuns:
    def run(
        self, states: tuple[int, ...], *facts: Any, used: int = 0, faults: tuple[str, ...] = ()
    ) -> Any:
        """A finished run with these numbers of pending, queued, running, finished and abandoned."""
        made = conformance.ConformanceRun.__new__(conformance.ConformanceRun)
        cell = SimpleNamespace(used_total=lambda: {"cpu": used}, audit=lambda: list(faults))
        board = SimpleNamespace(
            tasks_in=lambda number, state: SimpleNamespace(
                tolist=lambda: [2] if states[int(state)] else []
            )
        )

        class Jobs:
            def __len__(self) -> int:
                return 1

            def name(self, number: int) -> str:
                return "a"

        host: Any = SimpleNamespace(cell=cell, board=board, jobs=Jobs())
        made.world = SimpleNamespace(host=host)  # type: ignore[assignment]
        made.counts = list(states)
        made.facts = list(facts)
        return made

    def test_what_did_not_finish_is_told_by_states(self) -> None:
        self.run((0, 0, 0, 9, 0)).require_all_finished()
        with pytest.raises(AssertionError) as caught:
            self.run((1, 2, 3, 4, 5)).require_all_finished()
        assert str(caught.value).startswith(
            "of 15 tasks, 1 are pending, 2 queued, 3 running and 5 abandoned"
        )
        with pytest.raises(AssertionError, match=r"the cell still holds \{'cpu': 7\}"):
            self.run((0, 0, 0, 9, 0), used=7).require_all_finished()
        with pytest.raises(AssertionError):
            self.run((0, 0, 0, 9, 0), faults=("claims differ",)).require_all_finished()

    def test_whoever_waits_has_a_reason(self) -> None:
        from argosy.host.records import AbandonedRecord, ExplainedRecord, RefusedRecord
        from argosy.model.explanations import Explanation

        said, nothing = Explanation(remedy="wait"), Explanation()
        waits = (1, 0, 0, 0, 0)
        self.run((0, 1, 1, 1, 0)).require_accounted_for()
        with pytest.raises(AssertionError, match="a/2 waits and nobody says why"):
            self.run((0, 0, 0, 1, 1)).require_accounted_for()
        for fact in (
            RefusedRecord(0, "a", [2], [0], "s", [1], [0], [0]),
            ExplainedRecord(0, "a", [1, 2], "s", said),
            AbandonedRecord(0, "a", [2], "s", said),
        ):
            self.run(waits, fact).require_accounted_for()
        for facts, says in (
            ((), "a/2 waits and nobody says why"),
            ((ExplainedRecord(0, "a", [1], "s", said),), "a/2 waits and nobody says why"),
            ((ExplainedRecord(0, "b", [2], "s", said),), "a/2 waits and nobody says why"),
            ((ExplainedRecord(0, "a", [2], "s", nothing),), "no reason"),
            ((AbandonedRecord(0, "a", [2], "s", nothing),), "no reason"),
            ((RefusedRecord(0, "a", [2], [0], "s", [], [], []),), "no reason"),
        ):
            with pytest.raises(AssertionError, match=says):
                self.run(waits, *facts).require_accounted_for()


class TestRandomInstances:
    """Whatever the searches are tried on has to occur."""

    def test_drawn_problems_have_all_that_a_problem_can_have(self) -> None:
        seen: Counter[str] = Counter()
        for seed in range(200):
            made = random_instance(Random(seed))
            assert len(made.machines) in (3, 4)
            assert 1 <= len(made.constraints) <= 3
            assert 1 <= len(made.kinds) <= 4
            assert sum(kind[3] for kind in made.kinds) <= 8
            room = [machine.capacity.memory for machine in made.machines]
            assert all(4 <= each <= 8 for each in room)
            for _, at, memory in made.running:
                room[at] -= memory
            assert min(room) >= 0
            seen["several applications"] += len({kind[0] for kind in made.kinds}) > 1
            seen["something runs"] += bool(made.running)
            seen["attributes"] += any(machine.attributes for machine in made.machines)
            seen["overlapping sets"] += any(
                len(machine.joins.get("zone", ())) > 1 for machine in made.machines
            )
            seen["machines in no set"] += "zone" not in made.machines[0].joins
            seen["hard"] += any(each.hard for each in made.constraints)
            seen["more than fits"] += sum(kind[2] * kind[3] for kind in made.kinds) > sum(room)
        assert all(count >= 20 for what, count in seen.items() if what != "more than fits"), seen
        assert seen["machines in no set"] == 200

    def test_every_form_of_constraint_is_drawn(self) -> None:
        forms: Counter[str] = Counter()
        for seed in range(400):
            text = repr(random_constraint(Random(seed)))
            for form in ("Spread", "AnyTags", "AllTags", "NotTags", "AnyOf", "AllOf", "'gpu'"):
                forms[form] += form in text
            forms["hard"] += "hard=True" in text
            for group in ("machine", "rack", "zone"):
                forms[group] += f"group='{group}'" in text
            for weight in (1.0, 2.0, 3.0):
                forms[f"weight {weight}"] += f"weight={weight}" in text
        assert all(count >= 15 for count in forms.values()), forms

    def test_plain_constraints_are_single_bounds_in_sets_that_do_not_overlap(self) -> None:
        for seed in range(100):
            plain = random_constraint(Random(seed), plain=True, hard=0.0)
            assert not plain.hard
            rule: Any = plain.rule
            assert type(rule).__name__ == "PlacementConstraint"
            assert type(rule.expression).__name__ == "TagConstraint"
            assert rule.group in ("machine", "rack")
            assert random_constraint(Random(seed), plain=True, hard=1.0).hard
            made = random_instance(Random(seed), plain=True, running=0)
            assert made.running == ()
            assert all(each.joins["zone"] for each in made.machines)

    def test_the_same_numbers_draw_the_same_problem(self) -> None:
        one, same, other = (random_instance(Random(seed)) for seed in (1, 1, 2))
        assert msgspec.json.encode(one.machines) == msgspec.json.encode(same.machines)
        assert one == same
        assert one != other
