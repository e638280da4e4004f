"""Fairness across schedulers without enforcement: shares follow weights, and bind only when they
must."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.engines.api import Context, Settings
from argosy.engines.omega import Omega, OmegaSettings
from argosy.engines.omega.fairness import LEASE, CurrentShare, FairShare, fair_shares
from argosy.host.records import ExplainedRecord, PlacedRecord
from argosy.host.runtime import build_cell
from argosy.host.setup import HostSetup
from argosy.model.effects import Abandon, Commit, Explain, Think
from argosy.model.events import Committed, DecisionDue, JobSubmitted, TimerFired
from argosy.model.explanations import Why
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, SchedulerCrash, Takes
from argosy.model.tasks import first_tasks
from argosy.model.transactions import OPERATOR, Transaction, Wants
from argosy.model.truth import SimulatedJob
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun

CORES = 32


def backlog(kind: str, tasks: int, *, each: int = 4, **fields: Any) -> list[SimulatedJob]:
    """Many small jobs at once, more than the cell can hold."""
    fields = {"seconds": 3, **fields}
    return [job(f"{kind}{i}", each, kind=kind, **fields) for i in range(tasks // each)]


def trial(weights: dict[str, float], jobs: list[SimulatedJob], **fields: Any) -> ConformanceRun:
    fleet = tuple(
        FleetEntry(
            name=kind,
            engine="omega",
            takes=Takes(kinds=(kind,)),
            settings={"t_job": 20_000, "t_task": 1_000, "weight": weight, "backoff": 0},
        )
        for kind, weight in weights.items()
    )
    return ConformanceRun(Omega, scenario("omega", jobs, fleet=fleet, **fields))


def shares(result: ConformanceRun, begin: float, end: float) -> dict[str, float]:
    """The part of the cell's cores that each scheduler held on average between two times: recounted
    from the decision log, every task being a core for three seconds."""
    held: dict[str, float] = defaultdict(float)
    for line in result.of(PlacedRecord):
        at = line.at / SECOND
        lasted = max(0.0, min(at + 3, end) - max(at, begin))
        held[line.scheduler] += lasted * len(line.indices)
    return {name: amount / (end - begin) / CORES for name, amount in held.items()}


def test_the_example_of_the_drf_paper() -> None:
    """9 cores and 18 GB; tasks of 1 core and 4 GB against tasks of 3 cores and 1 GB: 3 against 2."""
    asks = np.array([[1 / 9, 4 / 18], [3 / 9, 1 / 18]])
    found = fair_shares(np.ones(2), asks * 100, [1, 1])
    assert found == pytest.approx([2 / 3, 2 / 3])
    assert (found / asks.max(axis=1)).round(9).tolist() == [3, 2]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_everybody_is_content_or_has_a_bottleneck_where_nobody_has_more(
    data: st.DataObject,
) -> None:
    """That is what weighted dominant resource fairness is, whatever computes it."""
    owners, resources = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    amounts = st.one_of(st.just(0.0), st.floats(0.01, 3))
    rows = st.lists(amounts, min_size=resources, max_size=resources)
    demands = np.array(data.draw(st.lists(rows, min_size=owners, max_size=owners)))
    weights = np.array(data.draw(st.lists(st.floats(0.1, 10), min_size=owners, max_size=owners)))
    room = np.array(data.draw(st.lists(st.floats(0, 1), min_size=resources, max_size=resources)))
    found = fair_shares(room, demands, weights.tolist())
    wanted = demands.max(axis=1)
    given_out = demands * (found / np.maximum(wanted, 1e-12))[:, None]
    used = given_out.sum(axis=0)
    assert (used <= room + 1e-9).all()
    assert (found <= wanted + 1e-9).all()
    for owner in range(owners):
        if found[owner] >= wanted[owner] - 1e-9:
            continue
        full = [d for d in range(resources) if used[d] >= room[d] - 1e-9 and demands[owner, d]]
        assert any(
            found[owner] / weights[owner] >= found[other] / weights[other] - 1e-9
            for d in full
            for other in [
                max(
                    (j for j in range(owners) if demands[j, d]), key=lambda j: found[j] / weights[j]
                )
            ]
        )


@pytest.mark.parametrize(
    "weights", [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 5, "b": 2, "c": 1}], ids=str
)
def test_shares_under_contention_are_as_the_weights(weights: dict[str, float]) -> None:
    jobs = [job for kind in weights for job in backlog(kind, 600)]
    found = shares(trial(weights, jobs, horizon=30 * SECOND), 8, 30)
    for kind, weight in weights.items():
        # A task is a 32nd of the cell, and a scheduler looks once a second.
        assert found[kind] == pytest.approx(weight / sum(weights.values()), abs=1.6 / CORES)
    assert sum(found.values()) > 0.9


def test_without_weights_the_shares_are_whoever_is_faster() -> None:
    jobs = backlog("a", 600) + backlog("b", 600, each=1)
    found = shares(trial({"a": 0, "b": 0}, jobs, horizon=30 * SECOND), 8, 30)
    assert found["a"] > 1.5 * found["b"]


def test_dominant_shares_are_equal_where_different_resources_are_wanted() -> None:
    """Both get more than half of what they want most, as the paper on DRF says."""
    jobs = backlog("a", 400, memory=GIB) + backlog("b", 400, cpu=250, memory=4 * GIB)
    result = trial({"a": 1, "b": 1}, jobs, horizon=30 * SECOND)
    found = shares(result, 8, 30)
    # Tasks of b are a quarter of a core, and a 32nd of the memory like those of a of the cores.
    assert found["a"] == pytest.approx(found["b"], abs=2 / CORES)
    assert found["a"] > 0.6


def test_an_idle_cell_is_not_limited() -> None:
    jobs = backlog("a", 256)
    alone = trial({"a": 0}, jobs).world.host.runtime.now
    fair = trial({"a": 1, "b": 9}, jobs)
    fair.require_all_finished()
    assert fair.world.host.runtime.now == alone


def test_what_one_does_not_want_is_for_the_others() -> None:
    few = [job(f"b{i}", 1, kind="b", seconds=3, submit=i * 0.5) for i in range(60)]
    found = shares(trial({"a": 1, "b": 1}, [*backlog("a", 900), *few], horizon=30 * SECOND), 8, 30)
    assert found["b"] == pytest.approx(6 / CORES, abs=1 / CORES)
    assert found["a"] > 0.7


def test_a_latecomer_gets_its_share_as_tasks_end() -> None:
    jobs = backlog("a", 900) + backlog("b", 600, submit=10)
    result = trial({"a": 1, "b": 1}, jobs, horizon=40 * SECOND)
    assert shares(result, 3, 10)["a"] > 0.9
    late = shares(result, 18, 40)
    assert late["b"] == pytest.approx(0.5, abs=1.6 / CORES)


@pytest.mark.parametrize(("gang", "claimed"), [(False, CORES // 2), (True, 20)])
def test_only_what_is_placed_together_goes_beyond_the_share(gang: bool, claimed: int) -> None:
    spec = build_cell(HostSetup.of(scenario("omega", [])))
    everything = tuple(spec.capacity_total().values())
    spec.commit(Transaction("rival", wants=Wants(1.0, everything, LEASE)))
    engine = Omega(OmegaSettings(weight=1.0), Context("s", (), Random(1)))
    wide = job("wide", 20, gang=gang)
    thinking, *_, told = engine.handle(JobSubmitted(wide.job, 0, np.arange(20)), spec, 0)
    assert thinking.duration == 100_000 + claimed * 5_000
    assert told.transaction.wants.amounts == (20_000, 20 * GIB)
    (commit,) = engine.handle(DecisionDue(thinking.token), spec, SECOND)
    assert len(commit.transaction.claims) == claimed


def test_a_job_of_which_only_the_share_was_asked_for_is_not_worn_out() -> None:
    spec = build_cell(HostSetup.of(scenario("omega", [])))
    everything = tuple(spec.capacity_total().values())
    spec.commit(Transaction("rival", wants=Wants(1.0, everything, LEASE)))
    engine = Omega(OmegaSettings(weight=1.0, attempts=1), Context("s", (), Random(1)))
    wide = job("wide", 20)
    thinking, *_ = engine.handle(JobSubmitted(wide.job, 0, np.arange(20)), spec, 0)
    (commit,) = engine.handle(DecisionDue(thinking.token), spec, SECOND)
    outcome = spec.commit(commit.transaction)
    assert outcome.all_accepted
    effects = engine.handle(Committed(commit.token, outcome), spec, SECOND)
    assert not [effect for effect in effects if isinstance(effect, Abandon)]
    assert [len(effect.tasks) for effect in effects if isinstance(effect, Explain)] == [4]


def test_a_job_that_comes_to_wait_for_the_share_again_is_told_again() -> None:
    spec = build_cell(HostSetup.of(scenario("omega", [])))
    everything = tuple(spec.capacity_total().values())
    spec.commit(Transaction("rival", wants=Wants(1.0, everything, LEASE)))
    engine = Omega(OmegaSettings(weight=1.0), Context("s", (), Random(1)))
    now, told = 0, []
    effects = engine.handle(JobSubmitted(job("wide", 20).job, 0, np.arange(20)), spec, now)
    for _ in range(2):
        thinking = next(effect for effect in effects if isinstance(effect, Think))
        now += SECOND
        (commit, *_) = engine.handle(DecisionDue(thinking.token), spec, now)
        outcome = spec.commit(commit.transaction)
        effects = engine.handle(Committed(commit.token, outcome), spec, now)
        told.append([len(effect.tasks) for effect in effects if isinstance(effect, Explain)])
        # One of its tasks ends.
        spec.commit(Transaction(OPERATOR, releases=commit.transaction.claims.tasks[:1]))
        now += SECOND
        effects = engine.handle(TimerFired("rest"), spec, now)
    assert told == [[4], [3]]


def test_what_is_abandoned_is_no_longer_wanted() -> None:
    spec = build_cell(HostSetup.of(scenario("omega", [])))
    engine = Omega(OmegaSettings(weight=1.0, attempts=1), Context("s", (), Random(1)))
    large = job("large", 33)
    thinking, told = engine.handle(JobSubmitted(large.job, 0, np.arange(33)), spec, 0)
    assert told.transaction.wants.amounts[0] == 33_000
    small = job("small", 2)
    engine.handle(JobSubmitted(small.job, 1, first_tasks(1, 2)), spec, 0)
    (commit,) = engine.handle(DecisionDue(thinking.token), spec, SECOND)
    outcome = spec.commit(commit.transaction)
    effects = engine.handle(Committed(commit.token, outcome), spec, SECOND)
    assert [len(effect.tasks) for effect in effects if isinstance(effect, Abandon)] == [1]
    (said,) = (effect for effect in effects if isinstance(effect, Commit))
    assert said.transaction.wants.amounts[0] == 2_000


def test_wants_are_said_again_before_they_expire() -> None:
    spec = build_cell(HostSetup.of(scenario("omega", [])))
    fair = FairShare("s", 1.0)
    fair.want(job("a", 4).job, np.arange(4), spec)
    said = fair.to_say(0)
    assert said is not None
    assert said.until == LEASE
    assert fair.to_say(LEASE // 2) is None
    again = fair.to_say(LEASE // 2 + 1)
    assert again is not None
    assert (again.amounts, again.until) == (said.amounts, LEASE // 2 + 1 + LEASE)


def test_what_no_machine_could_hold_keeps_nothing_free() -> None:
    giants = [job(f"g{i}", 9, cpu=64_000, kind="b", seconds=3) for i in range(4)]
    found = shares(
        trial({"a": 1, "b": 1}, [*backlog("a", 900), *giants], horizon=20 * SECOND), 5, 20
    )
    assert found["a"] > 0.9


def test_nobody_waits_forever_for_a_scheduler_that_stopped() -> None:
    end = LEASE // SECOND + 60
    jobs = backlog("a", 32 * end // 3, each=96) + backlog("b", 4_000, each=400)
    crash = SchedulerCrash(at=5 * SECOND, scheduler="b")
    result = trial({"a": 1, "b": 1}, jobs, horizon=end * SECOND, faults=(crash,), audit=False)
    assert shares(result, 20, end - 70)["a"] == pytest.approx(0.5, abs=2 / CORES)
    assert shares(result, end - 40, end)["a"] > 0.9


def test_tasks_that_the_share_keeps_out_of_a_decision_are_told_why() -> None:
    wide = [job(f"{kind}-wide", 64, kind=kind, seconds=None) for kind in "ab"]
    result = trial({"a": 1.0, "b": 1.0}, wide, horizon=60 * SECOND)
    for made in wide:
        placed = {i for line in result.of(PlacedRecord, made.job.id) for i in line.indices}
        told = {i for line in result.of(ExplainedRecord, made.job.id) for i in line.indices}
        assert told >= set(range(64)) - placed
    assert len(result.of(PlacedRecord)) >= 1


def test_every_job_of_a_scheduler_at_its_share_is_told_why_it_waits() -> None:
    jobs = [*backlog("a", 64, seconds=None), *backlog("b", 64, seconds=None)]
    late = [job(f"a-late{n}", 1, kind="a", submit=5 + n, seconds=None) for n in range(3)]
    result = trial({"a": 1.0, "b": 1.0}, [*jobs, *late], horizon=60 * SECOND)
    explained = {line.job for line in result.of(ExplainedRecord)}
    placed = {line.job for line in result.of(PlacedRecord)}
    waiting = {made.job.id for made in (*jobs, *late)} - placed
    assert "a-late2" in waiting
    assert waiting <= explained


def test_a_task_held_back_by_the_share_says_so() -> None:
    jobs = backlog("a", 600) + backlog("b", 600)
    result = trial({"a": 1, "b": 1}, jobs, horizon=10 * SECOND)
    remedies = [
        line.explanation.remedy
        for line in result.of(ExplainedRecord)
        if line.explanation.refused is not None
    ]
    assert any("weight" in remedy for remedy in remedies)


def test_the_refusal_says_by_how_much_a_task_would_exceed_the_share() -> None:
    view = build_cell(HostSetup.of(scenario("omega", [], cell=cell(8)))).view()
    whole = np.array(list(view.capacity_total().values()), np.float64)
    # It holds 10 of 32 cores and may hold 8.
    share = CurrentShare(0.25, np.array([10 / 32, 0.1]), whole)
    refusal = share.refusal(Resources(1_000, GIB), view)
    assert (refusal.why, refusal.dimension, refusal.lacking) == (Why.RESOURCE_LIMIT, "cpu", 3_000)


class FairSettings(OmegaSettings, frozen=True):
    weight: float = 1.0
    patience: int = 5


class FairOmega(Omega):
    settings_type: ClassVar[type[Settings]] = FairSettings


@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
def test_fair_and_patient_schedulers_conform(check: Any) -> None:
    check(FairOmega)


def test_cells_are_as_the_recount_assumes() -> None:
    assert sum(machine.capacity.cpu for machine in cell().machines) == CORES * 1_000
