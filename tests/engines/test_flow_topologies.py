"""Policies of one's own: aggregators of any kind between pools and machines, found by entry point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from typing import ClassVar

import numpy as np
import pytest
from flow_bench import Bench

from argosy.engines.api import RunFacts
from argosy.engines.families.flow import policies
from argosy.engines.families.flow.policies import find_policy, policy_mismatch
from argosy.engines.families.flow.policies.load_spreading import LoadSpreading
from argosy.engines.families.flow.policy import (
    POOL,
    ArcCosts,
    LinkTerms,
    NewGroup,
    Policy,
    Preferences,
    Topology,
    Wishes,
    plain_wishes,
)
from argosy.engines.families.flow.settings import FlowSettings
from argosy.model.errors import SettingError
from argosy.solvers.flow.arrays import Numbers
from argosy.testing.builders import cell, job


class ZonesAndRows(Policy):
    """Eight machines in four rows of two. Zone 0 (aggregator 0) has the rows 0 and 1 (aggregators 2 and
    3), zone 1 the rows 1 to 3: row 1 can be reached from both. Zone 1 costs 100 a task, and takes at
    most three; machines of higher numbers cost more. Single tasks of jobs called `near` prefer row 3."""

    name: ClassVar[str] = "zones-and-rows"

    def topology(self) -> Topology:
        tails = np.array([POOL, POOL, 0, 0, 1, 1, 1])
        heads = np.array([0, 1, 2, 3, 3, 4, 5])
        return Topology(6, tails, heads, 2 + np.arange(self.cluster.machines) // 2)

    def link_terms(self, request: Numbers) -> LinkTerms:
        many = 1_000
        return LinkTerms(
            np.array([many, 3, many, many, many, many, many]),
            ArcCosts(np.array([0, 100, 0, 0, 0, 0, 0])),
        )

    def pool_terms(self, requests: Numbers, machines: Numbers) -> ArcCosts:
        return ArcCosts(machines[None, :])

    def wishes(self, groups: Sequence[NewGroup]) -> Wishes:
        plain = plain_wishes(groups, self.settings)
        near = [group.job.id.startswith("near") for group in groups]
        if not any(near):
            return plain
        assert len(groups) == 1
        tasks = np.arange(len(groups[0].tasks))
        row = np.full(len(tasks), 5)
        is_above = np.ones(len(tasks), np.bool_)
        wanted = Preferences(tasks, row, is_above, np.zeros(len(tasks), np.int64))
        return Wishes(plain.pool, plain.waiting, np.array(near), plain.preemption, wanted)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = metadata.EntryPoint("zones-and-rows", f"{__name__}:ZonesAndRows", policies.ENTRY_POINTS)
    other = metadata.EntryPoint("mistaken", f"{__name__}:ZonesAndRows", policies.ENTRY_POINTS)
    gone = metadata.EntryPoint("gone", "no_such_module:Gone", policies.ENTRY_POINTS)

    def entry_points(*, group: str) -> list[metadata.EntryPoint]:
        return [mine, other, gone] if group == policies.ENTRY_POINTS else []

    monkeypatch.setattr(policies.metadata, "entry_points", entry_points)


def bench() -> Bench:
    return Bench(cell(8), policy="zones-and-rows", slots=2, migration=1)


def test_tasks_reach_machines_through_any_aggregators_within_their_limits() -> None:
    trial = bench()
    # Four machines of zone 0 with two slots each, and three tasks through zone 1: one must wait.
    number = trial.add(job("a", 12, cpu=100))
    trial.round()
    placed = Counter(trial.where(number))
    assert placed == {0: 2, 1: 2, 2: 2, 3: 2, 4: 2, 5: 1, -1: 1}


def test_tasks_with_preferences_for_an_aggregator_go_there_first() -> None:
    trial = bench()
    far = trial.add(job("a", 8, cpu=100))
    near = trial.add(job("near", 5, cpu=100))
    trial.round()
    assert Counter(trial.where(far)) == {0: 2, 1: 2, 2: 2, 3: 2}
    # Row 3 has four slots; the fifth task goes through zone 1.
    assert Counter(trial.where(near)) == {6: 2, 7: 2, 4: 1}


def test_a_round_after_another_changes_nothing_without_a_reason() -> None:
    trial = bench()
    number = trial.add(job("a", 9, cpu=100))
    trial.round()
    before, cost = trial.where(number), trial.solve()
    trial.round()
    assert trial.where(number) == before
    assert trial.solve() == cost


def test_aggregators_are_added_for_machines_that_join() -> None:
    trial = bench()
    trial.add(job("a", 1, cpu=100))
    pools = trial.graph.pools
    pool, before = next(iter(pools.by_number.values())), pools.topology
    pools.topology = Topology(
        7, np.append(before.tails, 1), np.append(before.heads, 6), before.machines
    )
    pools._add_aggregators(pool)
    assert (len(pool.aggregators), len(pool.links)) == (7, len(before.tails) + 1)
    network, last = trial.graph.network, pool.links[-1:]
    assert network.tails(last).tolist() == [pool.aggregators[1]]
    assert network.heads(last).tolist() == [pool.aggregators[6]]


def test_policies_are_found_by_name_and_refused_by_name() -> None:
    assert find_policy("zones-and-rows") is ZonesAndRows
    assert find_policy("load-spreading") is LoadSpreading
    for name, said in (
        ("zones-and-row", "did you mean 'zones-and-rows'"),
        ("mistaken", "is no policy of that name"),
        ("gone", "cannot be imported"),
    ):
        with pytest.raises(SettingError, match=said):
            find_policy(name)


def test_an_unknown_policy_is_reported_before_the_run() -> None:
    facts = RunFacts(("cpu", "memory"), 2, {}, frozenset(), (), ())
    found = policy_mismatch(FlowSettings(policy="no-such"), facts)
    assert found is not None
    assert found.place == ("policy",)
    assert "load-spreading" in (found.expected or "")
    assert policy_mismatch(FlowSettings(policy="zones-and-rows"), facts) is None
