"""Flow schedulers in detail: observed use, many gangs in one round, input of some of several groups,
and installed policies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flow_bench import Bench
from serial_attempts import tasks_of
from test_flow_policies import numbers

from argosy.engines.families.flow import policies
from argosy.engines.families.flow.explaining import Explainer
from argosy.engines.families.flow.gangs import MOST_FLOWS, decide
from argosy.engines.families.flow.policies import find_policy, policy_mismatch
from argosy.engines.families.flow.policies.load_spreading import LoadSpreading
from argosy.engines.families.flow.policies.quincy import QuincyPolicy
from argosy.engines.families.flow.policy import NewGroup, Policy
from argosy.engines.families.flow.settings import DataSettings, FlowSettings
from argosy.engines.families.flow.tasks import RUNNING
from argosy.model.errors import SettingError
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, DrainMachine, Transaction
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, cell, job


class TestObservedUse:
    def bench(self, use: str = "observed") -> Bench:
        """Four machines of four cores; a task reserves three of one's."""
        bench = Bench(cell(4), policy="network-aware", bandwidth="cpu", bandwidth_use=use)
        number = bench.add(job("a", 1, cpu=3_000))
        bench.round()
        [self.at] = bench.where(number)
        return bench

    def free(self, bench: Bench, used: dict[int, int] | None) -> list[int]:
        bench.graph.observe(bench.view, used)
        bench.graph.refresh(0)
        statistics = bench.graph.statistics
        assert statistics is not None
        others: list[int] = np.delete(statistics.free[:, 0], self.at).tolist()
        return [int(statistics.free[self.at, 0]), *others]

    def test_more_than_is_reserved_is_not_free_and_less_changes_nothing(self) -> None:
        bench = self.bench()
        others = [at for at in range(4) if at != self.at]
        before = bench.view.free().tolist()
        cases: list[tuple[dict[int, int] | None, list[int], int]] = [
            (None, [1_000, 4_000, 4_000, 4_000], 0),
            ({self.at: 3_000}, [1_000, 4_000, 4_000, 4_000], 0),
            ({self.at: 3_001}, [999, 4_000, 4_000, 4_000], 1),
            ({self.at: 10, others[1]: 1_500}, [1_000, 4_000, 2_500, 4_000], 1),
            ({others[2]: 9_000, self.at: 3_500}, [500, 4_000, 4_000, 0], 2),
            ({}, [1_000, 4_000, 4_000, 4_000], 0),
        ]
        for used, expected, overused in cases:
            assert self.free(bench, used) == expected
            assert bench.graph.overused == overused
        assert bench.view.free().tolist() == before

    def test_where_only_what_is_reserved_counts_nothing_is_observed(self) -> None:
        bench = self.bench("reserved")
        assert self.free(bench, {self.at: 4_000}) == [1_000, 4_000, 4_000, 4_000]
        assert bench.graph.overused == 0


class TestManyGangs:
    def decided(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[int]]:
        """The decision, and the arcs scanned for each of its flows."""
        graph, scans = bench.graph, list[int]()
        solve = graph.solve

        def counted() -> Any:
            solution = solve()
            scans.append(solution.scans)
            return solution

        graph.observe(bench.view)
        graph.refresh(0)
        monkeypatch.setattr(graph, "solve", counted)
        return decide(graph), scans

    def impossible(self, number: int, **fields: Any) -> SimulatedJob:
        """One of its two tasks is too large for any machine."""
        groups = [group_with_truth(1, Resources(cpu, GIB), (30 * SECOND,)) for cpu in (100, 64_000)]
        return simulated_job(f"g{number}", *groups, gang=True, **fields)

    @pytest.mark.parametrize(("gangs", "flows"), [(0, 1), (1, 2), (2, 5), (3, 7)])
    def test_a_round_takes_time_for_the_arcs_of_all_its_flows(
        self, gangs: int, flows: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench = Bench(cell(2), policy="load-spreading", t_round=7_000, t_arcs=100_000)
        for number in range(gangs):
            bench.add(self.impossible(number))
        bench.add(job("others", 1))
        decision, scans = self.decided(bench, monkeypatch)
        assert len(scans) == flows
        assert decision.duration == 7_000 + 100 * sum(scans)
        assert bench.graph.parked == dict.fromkeys(range(gangs), (1, 2))
        assert len(decision.plan.rows) == 1

    def test_a_round_gives_up_on_gangs_after_so_many_flows(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench, tried = Bench(cell(2), policy="load-spreading"), list[int]()
        unpark = bench.graph.unpark
        for number in range(MOST_FLOWS + 3):
            bench.add(self.impossible(number, precedence=5 if number in (2, 4) else 0))

        def noted(gangs: Any) -> None:
            tried.extend(gangs)
            unpark(gangs)

        monkeypatch.setattr(bench.graph, "unpark", noted)
        decision, scans = self.decided(bench, monkeypatch)
        # The first by precedence and age is tried alone, and then each of the others beside it.
        assert tried == [0, 1, 3, 4, 5]
        assert len(scans) == MOST_FLOWS + 1
        assert bench.graph.parked == dict.fromkeys(range(MOST_FLOWS + 3), (1, 2))
        assert len(decision.plan.rows) == 0

    def test_of_gangs_that_fit_one_at_a_time_one_of_highest_precedence_is_placed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench = Bench(cell(2), policy="load-spreading")
        for number in range(8):
            bench.add(job(f"g{number}", 6, gang=True, precedence=number % 4))
        decision, _ = self.decided(bench, monkeypatch)
        jobs = bench.graph.classes["job"][bench.graph.tasks["task_class"][decision.plan.rows]]
        [placed] = set(jobs.tolist())
        assert (placed in (3, 7), len(jobs)) == (True, 6)
        assert sorted(bench.graph.parked) == [each for each in range(8) if each != placed]
        assert {wanted for _, wanted in bench.graph.parked.values()} == {6}

    def test_gangs_left_out_are_tried_again_in_the_next_round(self) -> None:
        bench = Bench(cell(2), policy="load-spreading")
        first, second = (bench.add(job(name, 6, gang=True)) for name in ("a", "b"))
        bench.round()
        assert sorted(bench.graph.parked) == [second]
        bench.finish(tasks_of(first, *range(6)).tolist())
        bench.round()
        assert bench.graph.parked == {}
        assert -1 not in bench.where(second)

    def test_one_that_is_over_is_left_out_no_longer(self) -> None:
        bench = Bench(cell(2), policy="load-spreading")
        _, second = (bench.add(job(name, 6, gang=True)) for name in ("a", "b"))
        bench.round()
        bench.graph.drop(tasks_of(second, *range(6)))
        bench.round()
        assert bench.graph.parked == {}


class TestWaitingTasks:
    def bench(self, **options: Any) -> tuple[Bench, Explainer]:
        bench = Bench(cell(1), policy="load-spreading", explain=1_000, **options)
        bench.add(job("runs", 4, precedence=3))
        bench.round()
        bench.add(job("a", 2))
        bench.add(job("b", 1))
        bench.solve()
        return bench, Explainer(bench.settings, Random(1))

    def told(self, bench: Bench, explainer: Explainer, now: int) -> list[list[int]]:
        explainer.begin()
        effects = explainer.waiting(bench.graph, None, bench.view, now)
        return [effect.tasks.tolist() for effect in effects]

    @pytest.mark.parametrize("explain_arcs", [0, 100_000])
    def test_an_explanation_is_told_once_and_again_only_to_new_tasks(
        self, explain_arcs: int
    ) -> None:
        bench, explainer = self.bench(explain_arcs=explain_arcs)
        first, second = (tasks_of(1, 0, 1).tolist(), tasks_of(2, 0).tolist())
        assert sorted(self.told(bench, explainer, 0)) == [first, second]
        assert self.told(bench, explainer, 999) == []
        assert self.told(bench, explainer, 1_000) == []
        number = bench.add(job("c", 3))
        bench.solve()
        # The next time counts from the last one at which something was looked at.
        assert self.told(bench, explainer, 1_999) == []
        assert self.told(bench, explainer, 2_000) == [tasks_of(number, 0, 1, 2).tolist()]
        bench.graph.drop(tasks_of(1, 0, 1))
        bench.solve()
        assert self.told(bench, explainer, 3_000) == []

    def test_without_waiting_tasks_there_is_nothing_to_tell(self) -> None:
        bench = Bench(cell(1), policy="load-spreading")
        bench.solve()
        assert self.told(bench, Explainer(bench.settings, Random(1)), 0) == []

    def test_a_round_that_may_look_at_nothing_more_searches_instead(self) -> None:
        bench, explainer = self.bench(explain_arcs=1)
        explainer.begin()
        effects = explainer.waiting(bench.graph, None, bench.view, 0)
        # The first search is completed; the second class has no price, but a reason.
        prices = [effect.explanation.price is not None for effect in effects]
        assert prices == [True, False]
        assert [effect.explanation.feasible for effect in effects] == [0, 0]
        assert effects[0].explanation.looked_at == effects[1].explanation.looked_at == 1
        # In the next one, it is the turn of the other one.
        explainer.begin()
        [again] = explainer.waiting(bench.graph, None, bench.view, 1_000)
        assert again.tasks.tolist() == effects[1].tasks.tolist()
        assert again.explanation.price is not None

    def test_what_is_found_is_looked_for_again_each_time(self) -> None:
        bench, explainer = self.bench(explain_arcs=0)
        first, second = (tasks_of(1, 0, 1).tolist(), tasks_of(2, 0).tolist())
        assert sorted(self.told(bench, explainer, 0)) == [first, second]
        bench.cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0, draining=True),)))
        assert sorted(self.told(bench, explainer, 1_000)) == [first, second]
        assert self.told(bench, explainer, 2_000) == []

    def test_of_a_class_only_tasks_that_wait_since_then_are_told(self) -> None:
        bench = Bench(cell(1), policy="load-spreading", explain=1_000, explain_arcs=0)
        bench.add(job("a", 6))
        bench.round()
        waiting = sorted(bench.waiting(0))
        assert len(waiting) == 2
        explainer = Explainer(bench.settings, Random(1))
        assert self.told(bench, explainer, 0) == [waiting]
        back = np.flatnonzero(bench.graph.tasks["state"] == RUNNING)[1:2]
        bench.graph.stop(back, 0)
        assert self.told(bench, explainer, 1_000) == [bench.graph.tasks["number"][back].tolist()]
        assert self.told(bench, explainer, 2_000) == []

    def test_who_is_placed_in_a_round_holds_the_places_that_others_wait_for(self) -> None:
        bench = Bench(cell(1), policy="load-spreading", explain=1_000, explain_arcs=100_000)
        bench.add(job("high", 4, precedence=3))
        bench.add(job("low", 1))
        bench.solve()
        plan = decide(bench.graph).plan
        explainer = Explainer(bench.settings, Random(1))
        explainer.begin()
        [effect] = explainer.waiting(bench.graph, plan, bench.view, 0)
        assert effect.tasks.tolist() == tasks_of(1, 0).tolist()
        price = effect.explanation.price
        assert price is not None
        assert (price.machine, price.holder in tasks_of(0, *range(4)).tolist()) == (0, True)


class TestInput:
    def policy(self, *racks: int) -> tuple[QuincyPolicy, Any]:
        settings = FlowSettings(policy="quincy", data=DataSettings(rate=2**27, spread=0.5))
        cluster: Any = SimpleNamespace(racks=numbers(*racks))
        return QuincyPolicy(settings, cluster, ("cpu", "memory")), cluster

    def groups(self, *fields: dict[str, Any]) -> list[NewGroup]:
        found = []
        for number, own in enumerate(fields):
            made = job(f"j{number}", 2, **{"seconds": 30, **own}).job
            tasks = tasks_of(number, 0, 1)
            found.append(NewGroup(made, number, made.groups[0], tasks, np.arange(2), 0, 0, 0))
        return found

    def arcs(self, wishes: Any) -> list[tuple[int, int, bool, int]]:
        near = wishes.preferences
        columns = (near.tasks, near.places, near.is_aggregator, near.costs)
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    def test_input_of_some_groups_is_that_of_their_tasks_alone(self) -> None:
        policy, _ = self.policy(0, 0, 1, 1, 2, 2)
        mixed = self.groups(
            {"kind": "service"}, {}, {"seconds": None}, {"kind": "service"}, {"seconds": 90}
        )
        together = policy.wishes(mixed)
        assert together.each.tolist() == [False, True, False, False, True]
        expected, pool = [], np.zeros(10, np.int64)
        for at in (1, 4):
            alone = policy.wishes(mixed[at : at + 1])
            assert alone.each.tolist() == [True]
            pool[2 * at : 2 * at + 2] = alone.pool
            expected += [(task + 2 * at, *rest) for task, *rest in self.arcs(alone)]
        assert together.pool.tolist() == pool.tolist()
        assert (pool[[2, 3, 8, 9]] > 0).all()
        assert self.arcs(together) == sorted(expected)
        assert together.waiting.tolist() == [10_000] * 5

    def test_without_input_nothing_is_preferred(self) -> None:
        policy, _ = self.policy(0, 0, 1)
        wishes = policy.wishes(self.groups({"kind": "service"}, {"seconds": None}))
        assert wishes.preferences is None
        assert (wishes.pool.tolist(), wishes.each.tolist()) == ([0] * 4, [False] * 2)

    def test_machines_that_have_joined_store_input_of_new_tasks(self) -> None:
        policy, cluster = self.policy(0, 0)
        groups = self.groups({}, {}, {}, {})
        before = self.arcs(policy.wishes(groups))
        assert {place for _, place, is_rack, _ in before if not is_rack} == {0, 1}
        cluster.racks = numbers(0, 0, 1, 1, 1)
        after = self.arcs(policy.wishes(groups))
        assert after == self.arcs(self.policy(0, 0, 1, 1, 1)[0].wishes(groups))
        assert {place for _, place, is_rack, _ in after if is_rack} == {0, 1}


class TestInstalledPolicies:
    def offered(self, monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
        monkeypatch.setattr(
            policies,
            "installed",
            lambda group, name, what: (
                (found, "pack:Thing")
                if (group, name, what) == ("argosy.flow_policies", "own", "policy")
                else None
            ),
        )

    def test_one_of_that_name_is_found_and_built_in_ones_go_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own: Any = type("Own", (Policy,), {"name": "own"})
        self.offered(monkeypatch, own)
        assert find_policy("own") is own
        assert find_policy("load-spreading") is LoadSpreading
        with pytest.raises(SettingError, match="there is no policy 'other'"):
            find_policy("other")

    @pytest.mark.parametrize(
        "found",
        [
            5,
            type("Alone", (), {"name": "own"}),
            type("Other", (Policy,), {"name": "other"}),
            type("Nameless", (Policy,), {}),
        ],
        ids=lambda found: getattr(found, "__name__", "number"),
    )
    def test_what_is_no_policy_of_that_name_is_refused(
        self, found: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.offered(monkeypatch, found)
        with pytest.raises(SettingError) as caught:
            find_policy("own")
        error = caught.value
        assert error.problem == "policy 'own': pack:Thing is no policy of that name"
        assert error.expected == (
            "a class derived from Policy whose `name` is that of its entry point"
        )
        facts: Any = None
        found = policy_mismatch(FlowSettings(policy="own"), facts)
        assert found is not None
        assert (found.place, found.problem, found.expected, found.hint) == (
            ("policy",),
            error.problem,
            error.expected,
            None,
        )
