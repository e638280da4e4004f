"""How an agent commits: which reservations count, who checks, who writes; and what plug-ins refuse."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from agent_caches import a_cache, amounts
from msgspec import structs
from serial_attempts import cell_of

from argosy.agents import registry
from argosy.agents.api import ClaimCheck, Filter, Nodes, Requirements, Sorting, amounts_in
from argosy.agents.builtin import ResourcesFit
from argosy.agents.committing import ConflictCheck, refused
from argosy.agents.facts import CellFacts, ToldFacts
from argosy.agents.learned import LearnedStrategy
from argosy.agents.objectives import BatchShare, BatchSort, ServiceLevel
from argosy.model.effects import CommitPipeline
from argosy.model.errors import SettingError
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    Transaction,
)
from argosy.testing.builders import GIB, job


class TestCommits:
    def conflict(self, check: ConflictCheck, own: Any, cpu: int, **pipeline: Any) -> Refusal | None:
        return check.conflict(Requirements(Resources(cpu, GIB)), own, CommitPipeline(**pipeline))

    def test_earlier_reservations_count_or_all(self) -> None:
        cache = a_cache(cell_of(4, 4))
        check = ConflictCheck(cache)
        first, own, _later = (cache.reserve(n, 1, amounts(1_000)) for n in (1, 2, 3))
        assert self.conflict(check, own, 3_000) is None
        assert self.conflict(check, own, 3_001) == Refusal(
            Why.NO_ROOM, machine=1, dimension="cpu", lacking=1
        )
        told = self.conflict(check, own, 3_000, reservations="all")
        assert told == Refusal(Why.NO_ROOM, machine=1, dimension="cpu", lacking=1_000)
        assert self.conflict(check, own, 2_000, reservations="all") is None
        assert self.conflict(check, first, 4_000) is None

    def test_a_reservation_of_the_same_number_does_not_count(self) -> None:
        cache = a_cache(cell_of(4))
        own = cache.reserve(1, 0, amounts(1_000))
        cache.reserve(1, 0, amounts(1_000))
        assert self.conflict(ConflictCheck(cache), own, 4_000) is None

    def test_every_check_is_asked_and_the_first_refusal_told(self) -> None:
        cache = a_cache(cell_of(4))
        check, own = ConflictCheck(cache), cache.reserve(1, 0, amounts(1_000))
        task = Requirements(Resources(3_000, GIB), demands={"batch_share": "0.5"})
        for checks, lacking in (
            (("ResourcesFit",), None),
            (("ResourcesFit", "BatchShare"), 1_000),
            (("BatchShare", "ResourcesFit"), 1_000),
            ((), None),
        ):
            told = check.conflict(task, own, CommitPipeline(checks=checks))
            assert (told.lacking if told else None) == lacking
        both = structs.replace(task, request=Resources(5_000, GIB))
        told = check.conflict(both, own, CommitPipeline(checks=("BatchShare", "ResourcesFit")))
        assert told is not None
        assert told.lacking == 3_000

    def test_the_claim_is_written_by_the_binding(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = []

        class AsOperator:
            name: ClassVar[str] = "AsOperator"

            def __init__(self) -> None:
                made.append(self)

            def bind(self, transaction: Transaction) -> Transaction:
                return structs.replace(transaction, scheduler=OPERATOR)

        monkeypatch.setitem(registry.PLUGINS, "AsOperator", AsOperator)
        check = ConflictCheck(a_cache(cell_of(4)))
        plain = Transaction("s")
        assert check.bound(plain, CommitPipeline()) is plain
        for _ in range(2):
            assert check.bound(plain, CommitPipeline(commit="AsOperator")).scheduler == OPERATOR
        assert len(made) == 1

    @pytest.mark.parametrize(
        ("refusal", "detail", "dimensions"),
        [
            (Refusal(Why.NO_ROOM, machine=7, dimension="memory", lacking=5), 1, ()),
            (Refusal(Why.NO_ROOM, machine=7, dimension="gpu", lacking=5), 2, ("gpu",)),
            (Refusal(Why.STALE, machine=7), -1, ()),
        ],
    )
    def test_a_refusal_is_the_outcome_of_its_one_claim(
        self, refusal: Refusal, detail: int, dimensions: tuple[str, ...]
    ) -> None:
        outcome = refused(refusal, ("cpu", "memory"))
        assert not outcome.all_accepted
        assert outcome.accepted.tolist() == [False]
        assert outcome.whys.tolist() == [int(refusal.why)]
        assert outcome.details.tolist() == [detail]
        assert outcome.amounts.tolist() == [refusal.lacking]
        assert outcome.machines.tolist() == [7]
        assert outcome.dimensions == ("cpu", "memory", *dimensions)
        assert (len(outcome.evicted), outcome.unreleased) == (0, ())


class TestRequests:
    @pytest.mark.parametrize(
        ("extras", "expected"),
        [
            ({}, (5, 6)),
            ({"gpu": 0}, (5, 6)),
            ({"gpu": 1}, None),
        ],
    )
    def test_a_resource_that_no_machine_has_counts_unless_none_of_it_is_asked_for(
        self, extras: dict[str, int], expected: tuple[int, ...] | None
    ) -> None:
        assert amounts_in(Resources(5, 6, extras), ("cpu", "memory")) == expected
        named = amounts_in(Resources(5, 6, {"gpu": 2}), ("cpu", "memory", "gpu"))
        assert named == (5, 6, 2)

    def test_the_resource_that_is_told_is_one_that_is_asked_for(self) -> None:
        cell = cell_of(4)
        seen = a_cache(cell).sample(np.array([0], np.int32), 0, is_cut_off=False)
        task = Requirements(Resources(1, 1, {"disk": 0, "gpu": 3}))
        assert ResourcesFit().reasons(task, seen) == {"gpu": 1}
        told = ResourcesFit().conflict(task, seen)
        assert told == Refusal(Why.NO_ROOM, machine=0, dimension="gpu", lacking=3)
        share = structs.replace(task, demands={"batch_share": "1"})
        assert BatchShare().conflict(share, seen) == Refusal(Why.STALE, machine=0)

    def test_a_share_is_exceeded_by_the_least_unit(self) -> None:
        cell = cell_of(4)
        seen = a_cache(cell).sample(np.array([0], np.int32), 0, is_cut_off=False)
        for cpu, lacking in ((2_000, None), (2_001, 1)):
            task = Requirements(Resources(cpu, 0), demands={"batch_share": "0.5"})
            assert BatchShare().keeps(task, seen).tolist() == [lacking is None]
            told = BatchShare().conflict(task, seen)
            assert (told.lacking if told else None) == lacking
        memory = Requirements(Resources(0, 32 * GIB + 1), demands={"batch_share": "0.5"})
        told = BatchShare().conflict(memory, seen)
        assert told == Refusal(Why.NO_ROOM, machine=0, dimension="memory", lacking=1)
        one = Requirements(Resources(1, 0), demands={"batch_share": "0"})
        assert BatchShare().keeps(one, seen).tolist() == [False]


def test_a_batch_job_is_as_long_as_its_longest_group() -> None:
    [group] = job("a", seconds=3).job.groups
    groups = tuple(structs.replace(group, estimate=estimate) for estimate in (5, 9, 7))
    many: Job = structs.replace(job("a").job, groups=groups)
    assert BatchSort().rank(many, 0) == (1, 0, 0, 9)
    unknown = structs.replace(many, groups=(groups[0], structs.replace(group, estimate=None)))
    assert BatchSort().rank(unknown, 0) == (1, 0, 1, 5)


def test_the_way_to_users_is_from_the_machine_to_them() -> None:
    class Source:
        def delay(self, one: str, other: str) -> int | None:
            return {("oslo", "rome"): 5_000, ("rome", "oslo"): 50_000}.get((one, other))

        def labels(self, key: str, machines: Any) -> list[str]:
            return [""] * len(machines)

    row = np.array([[1_000, GIB]], np.int64)
    source: Any = Source()
    seen = Nodes(np.array([0], np.int32), row, row, ("cpu", "memory"), source, ("oslo",))
    task = Requirements(Resources(1, 1), demands={"objective": "40", "users": "rome"})
    assert ServiceLevel().score(task, seen).tolist() == [75]


def test_exploring_reaches_every_machine_that_is_not_known() -> None:
    strategy, machines = LearnedStrategy(), np.arange(40, dtype=np.int32)
    task = Requirements(Resources(1, 1))
    strategy.learn(task, machines[:4], np.ones(4, np.bool_))
    strategy.learn(task, machines[:0], np.ones(0, np.bool_))
    explored: set[int] = set()
    for seed in range(200):
        drawn = set(strategy.draw(task, machines, 8, Random(seed)).tolist())
        assert set(range(4)) <= drawn
        explored |= drawn
    assert explored == set(range(40))


def test_distances_have_a_direction() -> None:
    delays = {("rome", "oslo"): 3, ("oslo", "rome"): 9}
    facts = CellFacts(cell_of(4), lambda one, other: delays[one, other])
    assert (facts.delay("rome", "oslo"), facts.delay("oslo", "rome")) == (3, 9)


def test_labels_of_one_kind_are_not_mixed_with_others() -> None:
    cell = cell_of(4, 4, m0={"a": "1", "b": "2"}, m1={"b": "3"})
    facts, both = CellFacts(cell), np.array([1, 0], np.int32)
    assert facts.labels("a", both) == ["", "1"]
    assert facts.labels("b", both) == ["3", "2"]
    told = ToldFacts(cell, "rome", "48,16")
    assert told.labels("a", both) == ["", "1"]


class TestRegistry:
    def test_the_first_plug_in_that_cannot_be_used_is_told(self) -> None:
        assert registry.check((), Filter) is None
        assert registry.check(("ResourcesFit", "Volume"), Filter) is None
        told = registry.check(("ResourcesFit", "Bind", "Nothing"), Filter)
        assert told is not None
        assert told.problem == "plug-in 'Bind' is no filter"
        unknown = registry.check(("Arival",), Sorting)
        assert unknown is not None
        assert unknown.problem == "there is no sort 'Arival'"
        assert unknown.expected == "one of Priority, Arrival, Batch, or an installed plug-in"
        assert unknown.hint == "did you mean 'Arrival'?"

    def test_a_plug_in_that_cannot_be_made_says_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Broken:
            name: ClassVar[str] = "Broken"

            def __init__(self) -> None:
                raise ValueError("no licence")

        monkeypatch.setitem(registry.PLUGINS, "Broken", Broken)
        with pytest.raises(SettingError) as caught:
            registry.make("Broken", ClaimCheck)
        assert caught.value.problem == "plug-in 'Broken' cannot be made: no licence"
