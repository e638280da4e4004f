"""The checkers that other tests rely on: they find what is wrong, and count as their definitions say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.engines.registry import ENGINES
from argosy.model.constraints.text import parse_constraint
from argosy.model.events import TimerFired
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.truth import GroupTruth
from argosy.solvers.placement.answer import Objective
from argosy.testing import wired as wiring
from argosy.testing.builders import (
    GIB,
    SECOND,
    cell,
    federated_cell,
    job,
    machines,
    scenario,
    shared_job,
)
from argosy.testing.hidden_truth import Observation, observed, reachable, watched
from argosy.testing.placements import PlacementInstance
from argosy.testing.residual import FAR, Residual
from argosy.testing.wired import wired


class Box(msgspec.Struct):
    inside: Any


class Slotted:
    __slots__ = ("hidden",)

    def __init__(self, hidden: Any) -> None:
        self.hidden = hidden


class TestHiddenTruth:
    @pytest.mark.parametrize(
        "holder",
        [
            77,
            [1, (2, {77})],
            {"a": {77: 1}},
            {"a": [{"b": 77}]},
            Box(Box(77)),
            SimpleNamespace(a=SimpleNamespace(b=77)),
            Slotted([77]),
            np.array([[1, 2], [3, 77]]),
        ],
    )
    def test_whatever_holds_a_value_leads_to_it(self, holder: Any) -> None:
        assert 77 in [found for found in reachable(holder) if isinstance(found, int)]

    def test_what_leads_to_itself_has_an_end(self) -> None:
        loop: list[Any] = [5]
        loop.append(loop)
        assert 5 in [found for found in reachable(loop) if isinstance(found, int)]

    def test_a_leak_is_noted_with_what_leads_to_it(self) -> None:
        class Deaf:
            def __init__(self, settings: Any, context: Any) -> None:
                pass

            def handle(self, event: Any, view: Any, now: int) -> list[Any]:
                return ["effect"]

        leaks: list[str] = []
        view: Any = SimpleNamespace(applications=dict)
        engine: Any = watched(Deaf, {123_457}, leaks)(None, Box([GroupTruth((5,))]))  # type: ignore[arg-type]
        assert len(leaks) == 1
        assert leaks[0].startswith("the context leads to GroupTruth")
        assert engine.handle(Box(3), view, 0) == ["effect"]
        assert len(leaks) == 1
        engine.handle(Box(123_457), view, 0)
        assert leaks[1:] == ["Box leads to 123457"]

    def test_all_that_is_given_is_recorded(self) -> None:
        class Deaf:
            def __init__(self, settings: Any, context: Any) -> None:
                pass

            def handle(self, event: Any, view: Any, now: int) -> list[Any]:
                return []

        seen: list[Observation] = []
        view: Any = SimpleNamespace(free=lambda: np.array([4, 5]), versions=lambda: np.array([6]))
        engine: Any = observed(Deaf, seen)(None, SimpleNamespace(name="s-1"))  # type: ignore[arg-type]
        engine.handle(TimerFired("tick"), view, 9)
        [one] = seen
        assert (one.at, one.scheduler) == (9, "s-1")
        assert (one.free, one.versions) == (
            np.array([4, 5]).tobytes(),
            np.array([6]).tobytes(),
        )
        assert b"tick" in one.event


class TestWires:
    def test_what_comes_back_different_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        back = {"json": 5, "msgpack": 6}
        monkeypatch.setattr(wiring, "encode", lambda value, format: b"")
        monkeypatch.setattr(wiring, "same", lambda one, other: one == other)
        with pytest.raises(AssertionError, match="not the same after msgpack: 5 came back as 6"):
            wiring._carried(5, lambda data, format: back[format])
        assert wiring._carried(5, lambda data, format: 5) == 5

    def test_a_wired_engine_is_the_same_engine_for_others(self) -> None:
        omega = wired(ENGINES["omega"])
        assert (omega.__name__, omega.name) == (ENGINES["omega"].__name__, "omega")
        assert omega is wired(ENGINES["omega"])
        assert omega.handle is not ENGINES["omega"].handle


class TestResidual:
    def network(self) -> Any:
        """0 -> 1 -> 2 of capacity 2 and cost 3 each, with one unit on its way; 0 -> 2 for 7, full."""
        problem = SimpleNamespace(
            tails=np.array([0, 1, 0]),
            heads=np.array([1, 2, 2]),
            capacities=np.array([2, 2, 1]),
            costs=np.array([3, 4, 7]),
        )
        return SimpleNamespace(
            all_vertices=lambda: np.array([0, 1, 2]),
            problem=lambda: problem,
            segment_flows=lambda: np.array([1, 0, 1]),
        )

    def test_arcs_go_on_where_there_is_room_and_back_where_there_is_flow(self) -> None:
        residual = Residual(self.network())
        arcs = sorted(
            zip(
                residual.tails.tolist(),
                residual.heads.tolist(),
                residual.costs.tolist(),
                strict=True,
            )
        )
        assert arcs == [(0, 1, 3), (1, 0, -3), (1, 2, 4), (2, 0, -7)]
        assert (len(residual), residual.vertices) == (4, 3)

    def test_the_cheapest_way_avoids_what_it_is_told_to(self) -> None:
        residual = Residual(self.network())
        ways = residual.to(2)
        assert ways.distances.tolist() == [7, 4, 0]
        assert (ways.path(0), ways.path(2)) == ([0, 1, 2], [2])
        assert residual.to(2, [1]).distances.tolist() == [FAR, FAR, 0]


class TestPlacements:
    AIM = Objective()

    def instance(self, *texts: str, **fields: Any) -> PlacementInstance:
        made = tuple(Machine(f"m{n}", Resources(memory=4), {}, {"rack": ("r",)}) for n in range(2))
        known: dict[str, Any] = {
            "machines": made,
            "running": (),
            "kinds": ((0, frozenset("a"), 2, 2),),
            "constraints": tuple(parse_constraint(text) for text in texts),
        }
        return PlacementInstance(**{**known, **fields})

    def test_the_value_is_what_the_objective_says(self) -> None:
        plain, aim = self.instance(), self.AIM
        whole = aim.placed + aim.first
        assert plain.value([], [], aim) == 0
        assert plain.value([0, 0], [0, 1], aim) == whole
        # Two on one machine fill it up: one machine of two containers is fragmented.
        assert plain.value([0, 0], [0, 0], aim) == pytest.approx(whole - aim.fragmented / 2)
        assert plain.value([0], [0], aim) is None, "an application is placed as a whole"
        large = self.instance(kinds=((0, frozenset("a"), 3, 2),))
        assert large.value([0, 0], [0, 0], aim) is None, "there is no room"

    def test_a_violation_costs_its_share_and_a_hard_one_is_not_allowed(self) -> None:
        apart = "a -> {a, 0, 0} in machine"
        aim = self.AIM
        soft = self.instance(apart, smallest=0)
        whole = aim.placed + aim.first
        assert soft.value([0, 0], [0, 1], aim) == pytest.approx(whole)
        extent = soft.judge([0, 0], [0, 0]).total
        assert extent > 0
        concerned = soft._concerned(soft.constraints[0])
        assert concerned == 2
        assert soft.value([0, 0], [0, 0], aim) == pytest.approx(
            whole - aim.violation * extent / concerned
        )
        hard = self.instance(f"{apart} hard")
        assert hard.value([0, 0], [0, 0], aim) is None
        assert hard.breaks_hard([0, 0], [0, 0])
        assert not hard.breaks_hard([0, 0], [0, 1])

    def test_what_is_there_already_counts(self) -> None:
        there = self.instance("a -> {a, 0, 0} in machine hard", running=((frozenset("a"), 0, 2),))
        assert there.breaks_hard([0], [0])
        assert not there.breaks_hard([0], [1])
        problem = there.problem()
        assert problem is not None
        assert len(there.containers([0], [1])) == 2

    def test_answers_place_some_of_the_applications_as_a_whole(self) -> None:
        kinds = ((0, frozenset("a"), 1, 2), (1, frozenset("b"), 1, 1))
        answers = list(self.instance(kinds=kinds).answers())
        assert len(answers) == 1 + 3 + 2 + 3 * 2
        assert ([], []) in answers
        assert ([0, 0, 1], [0, 1, 1]) in answers


class TestBuilders:
    def test_machines_are_in_racks_of_four(self) -> None:
        made = machines(5, cpu=7, memory=8)
        assert [machine.joins["rack"] for machine in made] == [("r0",)] * 4 + [("r1",)]
        assert (made[4].name, made[4].capacity) == ("m4", Resources(7, 8))
        assert cell(5).groups[0].sets == ("r0", "r1")
        assert cell().machines[0].capacity == Resources(4_000, 16 * GIB)
        assert len(cell().machines) == 8

    def test_clusters_have_machines_and_racks_of_their_own(self) -> None:
        made = federated_cell(["n", "s"], 1)
        assert [machine.name for machine in made.machines] == ["n/m0", "s/m0"]
        assert {group.name: group.sets for group in made.groups}["rack"] == ("n/r0", "s/r0")

    def test_jobs_have_what_is_said_and_defaults(self) -> None:
        made = job("a", 3, seconds=2.5, submit=1.5, precedence=4, tags=("t",), cpu=7)
        assert (made.submit, made.truth[0].durations) == (1_500_000, (2_500_000,))
        assert (made.job.precedence, made.job.groups[0].tags) == (4, ("t",))
        assert made.job.groups[0].request == Resources(7, GIB)
        assert job("b", seconds=None).job.groups[0].endless
        shared = shared_job("c", 2, (4, 1), (3, 5))
        assert shared.job.activities == (4, 1)
        assert shared.truth[0].phases == (3 * SECOND, 5 * SECOND)

    def test_a_scenario_is_audited_and_in_the_order_of_submission(self) -> None:
        made = scenario("omega", [job("late", submit=5), job("early")])
        assert [each.id for each in made.jobs] == ["early", "late"]
        assert (made.audit, made.fleet[0].replicas, made.seed) == (True, 2, 1)
        assert scenario("medea", []).fleet[0].settings["budget"] == 600 * SECOND
        assert "budget" not in scenario("omega", []).fleet[0].settings
