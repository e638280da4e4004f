"""Omega's regions and fair shares, without a world around them."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, end, only, placed, submit, take, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.omega import Omega, OmegaSettings
from argosy.engines.omega.fairness import LEASE, CurrentShare, FairShare
from argosy.model.effects import Commit, Explain, Think, WakeMe
from argosy.model.events import Committed, DecisionDue, JobCancelled, TimerFired
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import jobs_of
from argosy.model.transactions import OPERATOR, AddMachine, Transaction, Wants
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, job


def an_omega(name: str = "s", peers: tuple[str, ...] = (), **settings: Any) -> Omega:
    return Omega(OmegaSettings(**settings), Context(name, peers, Random(1)))


def rival(cell: Cell, cores: int, weight: float = 1.0, until: int = LEASE) -> None:
    """Another scheduler wants so many cores."""
    wants = Wants(weight, (1_000 * cores, 0), until)
    cell.commit(Transaction("rival", wants=wants))


def test_replicas_begin_in_regions_far_apart() -> None:
    names = ("s-0", "s-1")
    first = []
    for name in names:
        engine = an_omega(name, tuple(set(names) - {name}), regions=4)
        first += placed(engine, cell_of(4, 4, 4, 4), job("a", 1).job, 0)
    assert (first[1] - first[0]) % 4 == 2


@pytest.mark.parametrize("name", ["s", "t", "u", "v"])
def test_regions_are_drawn_anew_when_machines_join(name: str) -> None:
    engine, cell = an_omega(name, regions=2), cell_of(4, 4)
    own = zlib.crc32(name.encode()) % 2
    assert placed(engine, cell, job("a", 1).job, 0) == [own]
    for at in range(2, 8):
        joins = AddMachine(Machine(f"m{at}", Resources(4_000, 64 * GIB)))
        cell.commit(Transaction(OPERATOR, machines=(joins,)))
    machines = placed(engine, cell, job("b", 3, cpu=4_000).job, 1)
    assert all(machine // 4 == own for machine in machines)


def test_a_scheduler_at_its_share_never_looks_again_at_the_same_instant() -> None:
    engine, cell = an_omega(weight=1.0, backoff=0, t_job=0, t_task=0), cell_of(8)
    rival(cell, 8)
    _, effects = end(engine, cell, only(submit(engine, cell, job("a", 8).job, 0), Think), SECOND)
    assert only(effects, WakeMe).at == SECOND + 1_000


def test_waiting_jobs_are_told_again_after_each_decision() -> None:
    engine, cell = an_omega(weight=1.0, backoff=SECOND), cell_of(8)
    rival(cell, 8)
    thinking = only(submit(engine, cell, job("a", 8).job, 0), Think)
    submit(engine, cell, job("b", 8).job, 1)
    for now in (SECOND, 3 * SECOND):
        claims, effects = end(engine, cell, thinking, now)
        explains = [effect for effect in effects if isinstance(effect, Explain)]
        assert {jobs_of(each.tasks)[0] for each in explains} == {0, 1}
        # While it rests, nobody is told twice.
        again = engine.handle(TimerFired("rest"), cell, now + 1)
        assert not [effect for effect in again if isinstance(effect, Explain)]
        cell.commit(Transaction(OPERATOR, releases=claims.tasks[:1]))
        thinking = only(engine.handle(TimerFired("rest"), cell, now + SECOND), Think)


def test_a_starving_job_is_still_placed_as_a_whole_or_not_at_all() -> None:
    settings = {"transaction": "atomic", "detection": "coarse", "patience": 1}
    engine, cell = an_omega(**settings), cell_of(4)
    thinking = only(submit(engine, cell, job("a", 2).job, 0), Think)
    commit = only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)
    assert (commit.transaction.atomic, commit.transaction.coarse) == (True, True)
    take(cell, 0, 1)
    outcome = cell.commit(commit.transaction)
    assert not outcome.accepted.any()
    effects = engine.handle(Committed(commit.token, outcome), cell, 0)
    again = only(engine.handle(DecisionDue(only(effects, Think).token), cell, 0), Commit)
    terms = again.transaction
    assert (terms.atomic, terms.coarse, terms.preempt) == (True, False, True)


def test_who_wants_nothing_does_not_bound_the_share_of_others() -> None:
    cell, fair = cell_of(8), FairShare("s", 1.0)
    fair.want(job("a", 20).job, tasks_of(0, *range(20)), cell)
    rival(cell, 0)
    assert fair.share(cell, 0).most == np.inf
    rival(cell, 20)
    assert fair.share(cell, 0).most == pytest.approx(0.5)
    # A demand counts until it expires.
    assert fair.share(cell, LEASE).most == pytest.approx(0.5)
    assert fair.share(cell, LEASE + 1).most == np.inf


def test_what_others_hold_without_wanting_more_is_not_shared_out() -> None:
    cell, fair = cell_of(8), FairShare("s", 1.0)
    fair.want(job("a", 20).job, tasks_of(0, *range(20)), cell)
    take(cell, 0, 4)
    rival(cell, 20)
    assert fair.share(cell, 0).most == pytest.approx(0.25)


def test_a_demand_is_announced_again_when_it_has_changed_by_more_than_a_tenth() -> None:
    cell, fair = cell_of(200), FairShare("s", 1.0)
    fair.want(job("a", 100).job, tasks_of(0, *range(100)), cell)
    assert fair.to_say(0) is not None
    fair.want(job("b", 11).job, tasks_of(1, *range(11)), cell)
    assert fair.to_say(0) is None
    fair.want(job("c", 1).job, tasks_of(2, 0), cell)
    said = fair.to_say(0)
    assert said is not None
    assert said.amounts[0] == 112_000


def test_tasks_that_ask_for_what_no_machine_has_are_not_announced() -> None:
    cell, fair = cell_of(8), FairShare("s", 1.0)
    odd = job("a", 1, request=Resources(1_000, GIB, {"gpu": 1})).job
    fair.want(odd, tasks_of(0, 0), cell)
    assert fair.to_say(0) is None


def test_groups_of_one_job_share_what_the_job_may_claim() -> None:
    cell = cell_of(32)
    groups = [group_with_truth(n, Resources(1_000, GIB), (SECOND,)) for n in (5, 10)]
    both = simulated_job("a", *groups).job
    whole = np.array([32_000.0, 64.0 * GIB])
    share = CurrentShare(0.25, np.zeros(2), whole)
    assert share.first(both, tasks_of(0, *range(15)), cell) == 8
    assert CurrentShare(np.inf, np.zeros(2), whole).first(both, tasks_of(0, 1, 2), cell) == 2


def test_cancelled_tasks_are_no_longer_announced() -> None:
    engine, cell = an_omega(weight=1.0), cell_of(32)
    submit(engine, cell, job("a", 4).job, 0)
    waits = job("b", 20).job
    said = only(submit(engine, cell, waits, 1), Commit).transaction.wants
    assert said.amounts[0] == 24_000
    cancelled = JobCancelled(waits, 1, tasks_of(1, *range(20)))
    said = only(engine.handle(cancelled, cell, 0), Commit).transaction.wants
    assert said.amounts[0] == 4_000


def test_a_demand_is_announced_while_its_job_waits_for_another_attempt() -> None:
    """Four cores of eight are taken, so a job for six waits after its attempt."""
    engine, cell = an_omega(weight=1.0, backoff=60 * SECOND), cell_of(8)
    take(cell, 0, 4)
    effects = submit(engine, cell, job("a", 1, cpu=6_000).job, 0)
    assert only(effects, Commit).transaction.wants.amounts[0] == 6_000
    thinking = only(effects, Think)
    decided = engine.handle(DecisionDue(thinking.token), cell, 0)
    assert only(decided, WakeMe).at == 60 * SECOND
    # What it wants has not changed, so nothing is announced until the lease is half over.
    assert not [effect for effect in decided if isinstance(effect, Commit)]
    assert not engine.handle(TimerFired("rest"), cell, LEASE // 2)
    said = only(engine.handle(TimerFired("rest"), cell, LEASE // 2 + 1), Commit).transaction.wants
    assert (said.amounts[0], said.until) == (6_000, LEASE // 2 + 1 + LEASE)


def test_a_demand_is_announced_while_it_is_being_decided_and_taken_back_once_it_is_met() -> None:
    engine, cell = an_omega(weight=1.0), cell_of(8)
    effects = submit(engine, cell, job("a", 2).job, 0)
    assert only(effects, Commit).transaction.wants.amounts[0] == 2_000
    commit = only(engine.handle(DecisionDue(only(effects, Think).token), cell, 0), Commit)
    # The answer is under way: not a word about its demand.
    assert commit.transaction.wants is None
    assert not engine.handle(TimerFired("rest"), cell, 1)
    answered = engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 2)
    assert only(answered, Commit).transaction.wants.amounts == (0, 0)
    assert not engine.handle(TimerFired("rest"), cell, LEASE)
