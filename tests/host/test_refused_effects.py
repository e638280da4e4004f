"""Effects that are refused before they do anything, and those that come too late to do all they say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from serial_attempts import tasks_of
from test_single_effects import Bench

from argosy.cell import Cell
from argosy.host import TaskState, records
from argosy.host.agent_desks import CommitRequest
from argosy.host.agents import Agents
from argosy.host.assumed_claims import AssumedClaims
from argosy.model.effects import (
    Abandon,
    Commit,
    CommitPipeline,
    Enqueue,
    Pace,
    Sample,
    SamplingPipeline,
    Think,
)
from argosy.model.errors import EngineFault
from argosy.model.explanations import Explanation, Why
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction

ROOM = Resources(1_000, 1_000)


def claims_of(*machines: int, alternatives: Any = None) -> Claims:
    rows = np.array(machines, np.int32)
    zeros = np.zeros(len(machines), np.int32)
    return Claims(
        tasks_of(0, *range(len(machines))),
        rows,
        zeros,
        zeros.astype(np.uint32),
        alternatives=None if alternatives is None else np.array(alternatives, np.int32),
    )


class TestShapes:
    @pytest.mark.parametrize("effects", [5, None, Think(1, 2)])
    def test_effects_come_in_a_list(self, effects: Any) -> None:
        bench = Bench()
        with pytest.raises(EngineFault) as caught:
            bench.runner.carry_out(bench.scheduler, effects, 0)
        assert caught.value.problem == f"s (omega) returned {type(effects).__name__}"
        assert caught.value.expected == "a list or tuple of effects"

    def test_whatever_is_no_effect_is_named(self) -> None:
        bench = Bench()
        did: list[Any] = []
        bench.runner._methods = {Think: lambda who, effect, now: did.append((effect, now))}
        with pytest.raises(EngineFault) as caught:
            bench.runner.carry_out(bench.scheduler, [Think(1, 2), "wait"], 9)  # type: ignore[list-item]
        assert caught.value.problem == "s (omega) returned str among its effects"
        assert caught.value.expected == "one of the effects of argosy.engine"
        assert did == [(Think(1, 2), 9)]

    @pytest.mark.parametrize(
        ("effects", "is_alone"),
        [((1,), True), ((1, 1), False), ([1], False), (iter((1,)), False), ((), False)],
    )
    def test_only_a_single_effect_in_a_tuple_is_alone(self, effects: Any, is_alone: bool) -> None:
        bench = Bench()
        seen: list[bool] = []
        bench.runner._methods = {int: lambda *_: seen.append(bench.runner._is_alone)}
        bench.runner.carry_out(bench.scheduler, effects, 0)
        assert set(seen) <= {is_alone}
        assert bench.runner._is_alone is is_alone


class TestWays:
    def test_claims_for_a_cluster_are_checked_against_it(self) -> None:
        bench = Bench()
        bench.runner._commit(bench.scheduler, Commit(1, Transaction("s"), cluster="north"), 50)
        assert [each[0] for each in bench.did] == ["check", "request"]
        assert bench.did[0][2:] == ("north", None)
        plain = Bench()
        plain.runner._commit(plain.scheduler, Commit(1, Transaction("s")), 50)
        assert [each[0] for each in plain.did] == ["request"]

    def test_a_pipeline_needs_an_agent(self) -> None:
        bench = Bench()
        transaction = Transaction("s", claims_of(1))
        effect = Commit(1, transaction, cluster="north", pipeline=CommitPipeline())
        with pytest.raises(EngineFault, match="a pipeline without a cluster"):
            bench.runner._commit(bench.scheduler, effect, 0)
        asked = Sample(ROOM, 1, 2, pipeline=SamplingPipeline())
        with pytest.raises(EngineFault, match="Sample: a pipeline without a cluster"):
            bench.runner._sample(bench.scheduler, asked, 0)

    def test_what_is_enqueued_travels_to_the_machines(self) -> None:
        bench = Bench()
        sent: list[Any] = []
        bench.runner._runtime = SimpleNamespace(enqueue=lambda *all: sent.append(all))  # type: ignore[assignment]
        bench.runner._decisions = SimpleNamespace(  # type: ignore[assignment]
            enqueued=lambda *all: sent.append(all)
        )
        bench.scheduler.number = 4
        tasks, machines = tasks_of(0, 2, 1), np.array([7, 8], np.int32)
        effect = Enqueue(tasks, machines, Explanation(rule="x"), Pace(5, 6), 70)
        bench.runner._enqueue(bench.scheduler, effect, 50)
        (at, number, *columns, estimate, required, first, every), told = sent
        assert (at, number, estimate, required, first, every) == (80, 4, 70, (), 5, 6)
        assert [column.tolist() for column in columns] == [[2, 1], [7, 8]]
        assert (told[0], told[3], told[4], told[5]) == (50, "s", Explanation(rule="x"), Pace(5, 6))

    def test_a_hop_that_is_always_the_same_is_not_asked_for(self) -> None:
        bench = Bench()
        assert bench.runner._way_to_machines(bench.scheduler, 9) == 30
        for hop in (0, 12):
            bench.runner._hop = hop
            assert bench.runner._way_to_machines(bench.scheduler, 9) == hop


class TestLate:
    def test_only_what_is_still_wanted_is_abandoned(self) -> None:
        bench = Bench()
        over: list[Any] = []
        bench.runner._runtime = SimpleNamespace(  # type: ignore[assignment]
            set_over=lambda tasks, state: over.append((tasks.tolist(), state))
        )
        bench.runner._host.note_given_up = lambda tasks: over.append(tasks.tolist())  # type: ignore[method-assign]
        bench.runner._abandon(bench.scheduler, Abandon(tasks_of(0, 1, 2), Explanation()), 0)
        assert over == [([1, 2], TaskState.ABANDONED), [1, 2]]
        assert bench.did == [(records.AbandonedRecord, [1, 2])]
        bench.did.clear()
        over.clear()
        bench.runner._still_wanted = (  # type: ignore[method-assign]
            lambda who, tasks, does="place": np.array([False, True])
        )
        bench.runner._abandon(bench.scheduler, Abandon(tasks_of(0, 1, 2), Explanation()), 0)
        assert over == [([2], TaskState.ABANDONED), [2]]
        assert bench.did == [(records.AbandonedRecord, [2])]

    def test_who_may_not_abandon_is_told_so(self) -> None:
        bench = Bench()
        bench.misplaced = 0
        bench.runner._why_over = lambda *_, **__: Why.NONE  # type: ignore[method-assign]
        with pytest.raises(EngineFault) as caught:
            bench.runner._abandon(bench.scheduler, Abandon(tasks_of(1, 3), Explanation()), 0)
        assert caught.value.problem == "s abandons task j1/3, which it may not abandon"
        assert caught.value.expected == "a pending task of its own"


class TestAgents:
    def agents(self, *clusters: str) -> tuple[Agents, Any]:
        cell = Cell(("cpu", "memory"), {CLUSTER_GROUP: ("north", "south")})
        for at in range(40):
            name = "north" if at < 20 else "south"
            machine = Machine(f"m{at}", ROOM, {}, {CLUSTER_GROUP: (name,)})
            cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(Machine("lone", ROOM)),)))
        names = tuple(Cluster(name, "") for name in clusters)
        return Agents(names, cell.view(), Random(1)), SimpleNamespace(name="s")

    @pytest.mark.parametrize(
        ("clusters", "expected", "hint"),
        [
            (("north", "south"), "one of north, south", "did you mean 'north'?"),
            ((), "the one cluster, which has no name", None),
        ],
    )
    def test_a_cluster_that_there_is_not_is_named(
        self, clusters: tuple[str, ...], expected: str, hint: str | None
    ) -> None:
        agents, who = self.agents(*clusters)
        with pytest.raises(EngineFault) as caught:
            agents.check_known(who, "nord", "samples")
        error = caught.value
        assert error.problem == ("s samples a cluster of another name: there is no cluster 'nord'")
        assert (error.expected, error.hint) == (expected, hint)
        agents.check_known(who, "", "samples")

    @pytest.mark.parametrize("many", [1, 16, 17])
    def test_every_claim_is_of_a_machine_of_the_cluster(self, many: int) -> None:
        agents, who = self.agents("north", "south")
        agents.check_claims(who, "north", claims_of(*range(many)))
        agents.check_claims(who, "north", None)
        # What is no machine at all is the cell's to refuse.
        agents.check_claims(who, "north", claims_of(*range(many), -1, 41, 99))
        for machine, where in ((20, "south"), (40, "no cluster")):
            with pytest.raises(EngineFault) as caught:
                agents.check_claims(who, "north", claims_of(*range(many - 1), machine))
            name = "lone" if machine == 40 else f"m{machine}"
            assert caught.value.problem == (
                f"s commits to cluster 'north' a claim of machine '{name}', which is in {where}"
            )
            assert caught.value.expected == "machines of north, or a commit without a cluster"

    def test_candidates_are_the_first_choice_and_its_alternatives(self) -> None:
        who: Any = SimpleNamespace(epoch=3)
        for alternatives, expected in (
            (None, [5]),
            ([[0, 7, -1]], [5, 0, 7]),
            ([[-1, -1]], [5]),
        ):
            transaction = Transaction("s", claims_of(5, alternatives=alternatives))
            effect = Commit(1, transaction, cluster="n", pipeline=CommitPipeline())
            request = CommitRequest(who, effect, 9)
            assert [*request.candidates] == expected
            one = request.transaction_for(7)
            assert one.claims is not None
            assert (one.claims.machines.tolist(), one.claims.alternatives) == ([7], None)
        assert request.is_wanted
        who.epoch += 1
        assert not request.is_wanted


@pytest.mark.parametrize(
    ("is_overruled", "is_assumed", "incarnations", "expected"),
    [
        (False, True, (5, 6), [1, 2]),
        (False, True, (5, 9), [1]),
        (False, False, (5, 6), []),
        (True, False, (5, 6), [1, 2]),
        (True, False, (4, 6), [2]),
    ],
)
def test_an_answer_is_about_the_current_claim_of_a_task(
    is_overruled: bool, is_assumed: bool, incarnations: tuple[int, int], expected: list[int]
) -> None:
    host: Any = SimpleNamespace(
        setup=SimpleNamespace(is_overruled=is_overruled),
        runtime=SimpleNamespace(incarnation={1: 5, 2: 6}.get),
        cell=SimpleNamespace(is_assumed=lambda task: is_assumed),
    )
    tasks, given = np.array([1, 2], np.int64), np.array(incarnations, np.int64)
    settled, current = AssumedClaims(host)._current(tasks, given)
    assert settled.tolist() == expected
    assert current.tolist() == [{1: 5, 2: 6}[task] for task in expected]
