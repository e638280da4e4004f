"""Vela's queue, workers and decision pipeline by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, only, tasks_of
from test_vela_steps import MS, a_vela, due, federation, found, of, refusal, submit

from argosy.agents.api import Requirements
from argosy.agents.registry import make_sorting
from argosy.engines.vela import VelaSettings
from argosy.engines.vela.decision import DecisionPipeline, sampled
from argosy.engines.vela.work import RankedMachine, SamplingQueue, ScheduledTask, WorkerPool
from argosy.model.effects import Abandon, Commit, Explain, Sample
from argosy.model.events import Committed, SampleReturned
from argosy.model.explanations import EXCLUDED_BY, Explanation, Refusal, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.testing.builders import GIB

TASK = Requirements(Resources(2_000, GIB))
BATTERY = Requirements(Resources(2_000, GIB), {}, {"battery": "50"})


def answer(
    cluster: str,
    machines: list[int],
    scores: list[list[int]],
    free: int = 4_000,
    ruled_out: dict[str, int] | None = None,
    drawn: int = 0,
) -> SampleReturned:
    count = len(machines)
    return SampleReturned(
        0,
        np.array(machines, np.int32),
        np.full((count, 2), [free, 64 * GIB], np.int64),
        np.array([100 + machine for machine in machines], np.uint32),
        cluster,
        np.array(scores, np.int64).reshape(count, len(scores[0]) if scores else 2),
        drawn or count,
        ruled_out or {},
    )


def pipeline(seed: int = 1, **settings: Any) -> DecisionPipeline:
    return DecisionPipeline(VelaSettings(**settings), {"b": "south"}, Random(seed))


def test_a_pool_gives_its_lowest_number_and_says_when_none_is_left() -> None:
    pool = WorkerPool("sampler", 3)
    assert [pool.take() for _ in range(3)] == [0, 1, 2]
    assert not pool.has_free
    for slot in (2, 0, 1):
        pool.give(slot)
    assert [pool.lane(pool.take()) for _ in range(2)] == ["sampler 0", "sampler 1"]
    assert pool.has_free


@pytest.mark.parametrize(
    ("put_back", "expected"), [("tail", [2, 0, 1, 3, 4]), ("head", [2, 4, 3, 0, 1])]
)
def test_tasks_put_back_go_to_the_end_or_the_beginning_of_their_rank(
    put_back: Any, expected: list[int]
) -> None:
    queue = SamplingQueue(make_sorting("Priority"), put_back)
    group = TaskGroup(1, Resources(1_000, GIB))

    def item(number: int, precedence: int = 0) -> ScheduledTask:
        made = Job(f"j{number}", (group,), precedence=precedence)
        [task] = tasks_of(number, 0).tolist()
        return ScheduledTask(made, number, group, task, 10 - number)

    assert (len(queue), bool(queue)) == (0, False)
    for number in (0, 1):
        queue.push(item(number))
    queue.push(item(2, precedence=1))
    for number in (3, 4):
        queue.put_back(item(number))
    assert len(queue) == 5
    assert [queue.pop().number for _ in range(5)] == expected


def test_a_scheduled_task_begins_as_it_came() -> None:
    group = TaskGroup(1, Resources(1_000, GIB), requires={"disk": "ssd"}, demands={"battery": "5"})
    item = ScheduledTask(Job("j", (group,)), 3, group, tasks_of(3, 0).tolist()[0], 7)
    assert item.tasks.tolist() == tasks_of(3, 0).tolist()
    assert (item.submitted, item.queued, item.began) == (7, 7, 7)
    assert item.requirements == Requirements(group.request, {"disk": "ssd"}, {"battery": "5"})


class TestRanking:
    def test_the_best_of_all_samples_come_with_their_cluster_and_version(self) -> None:
        settings = {"scores": {"ResourcesFit": 2.0, "GeoLocation": 0.5}, "candidates": 3}
        samples = [
            answer("a", [0, 1], [[10, 90], [40, 10]], ruled_out={"cpu": 2}, drawn=5),
            answer("none", [], [], ruled_out={"cpu": 1, "memory": 4}, drawn=5),
            answer("b", [2, 3], [[40, 12], [5, 100]]),
        ]
        ranked, told = pipeline(**settings).decide(TASK, samples, cell_of(4, 4, 4, 4))
        # 65, 85, 86 and 60.
        assert ranked == [
            RankedMachine(2, "b", 102),
            RankedMachine(1, "a", 101),
            RankedMachine(0, "a", 100),
        ]
        assert told == Explanation(
            looked_at=12,
            feasible=4,
            ruled_out={"cpu": 3, "memory": 4},
            rule="highest score",
            score=86,
            second=1,
            second_score=85,
            measure="points",
            points={"ResourcesFit": 80, "GeoLocation": 6},
            second_points={"ResourcesFit": 80, "GeoLocation": 5},
        )

    def test_the_lowest_score_wins_where_that_is_set_and_one_score_needs_no_points(self) -> None:
        settings = {"scores": {"ResourcesFit": 1.0}, "candidates": 1, "prefer": "lowest"}
        samples = [answer("a", [0, 1, 2], [[30], [20], [50]])]
        ranked, told = pipeline(**settings).decide(TASK, samples, cell_of(4, 4, 4))
        assert ranked == [RankedMachine(1, "a", 101)]
        # Of candidates there is only one.
        assert told == Explanation(
            looked_at=3, feasible=3, rule="lowest score", score=20, measure="points"
        )

    @pytest.mark.parametrize(("candidates", "seen"), [(1, {(1,), (2,), (3,)}), (9, None)])
    def test_of_equal_machines_any_may_be_the_last_candidate(
        self, candidates: int, seen: set[tuple[int, ...]] | None
    ) -> None:
        samples = [answer("a", [0, 1, 2, 3], [[10], [70], [70], [70]])]
        cell = cell_of(4, 4, 4, 4)
        found = set()
        for seed in range(12):
            made = pipeline(seed, scores={"ResourcesFit": 1.0}, candidates=candidates)
            ranked, _ = made.decide(TASK, samples, cell)
            found.add(tuple(each.machine for each in ranked))
        if seen is not None:
            assert found == seen
        else:
            assert {each[-1] for each in found} == {0}
            assert {tuple(sorted(each)) for each in found} == {(0, 1, 2, 3)}
            assert len(found) > 2

    def test_nothing_found_is_what_was_seen(self) -> None:
        samples = [
            answer("a", [], [], ruled_out={"cpu": 2}, drawn=2),
            answer("b", [], [], ruled_out={"cpu": 1, "filtered": 3}, drawn=4),
        ]
        ranked, told = pipeline().decide(TASK, samples, cell_of(4))
        assert (ranked, told) == ([], sampled(samples))
        assert told == Explanation(looked_at=6, ruled_out={"cpu": 3, "filtered": 3})


class TestOwnPlugins:
    def test_own_filters_count_what_each_drops_beside_what_agents_dropped(self) -> None:
        settings = {
            "scores": {"ResourcesFit": 1.0},
            "decision_filters": ("ResourcesFit", "BatteryLevel"),
            "candidates": 9,
        }
        cell = cell_of(4, 4, 4, 4, m1={"battery": "49"}, m2={"battery": "50"})
        samples = [
            answer(
                "a", [0], [[90]], free=1_000, ruled_out={f"{EXCLUDED_BY}ResourcesFit": 5}, drawn=6
            ),
            answer("b", [1, 2, 3], [[50], [60], [70]]),
        ]
        plain, told = pipeline(**settings).decide(TASK, samples, cell)
        # A task that demands no level is not asked for one.
        assert [each.machine for each in plain] == [3, 2, 1]
        assert told.ruled_out == {f"{EXCLUDED_BY}ResourcesFit": 6}
        ranked, told = pipeline(**settings).decide(BATTERY, samples, cell)
        assert ranked == [RankedMachine(3, "b", 103), RankedMachine(2, "b", 102)]
        assert (told.looked_at, told.feasible, told.score) == (9, 2, 70)
        assert told.ruled_out == {f"{EXCLUDED_BY}ResourcesFit": 6, f"{EXCLUDED_BY}BatteryLevel": 1}

    def test_own_filters_may_leave_nothing_and_say_so(self) -> None:
        samples = [answer("a", [0], [[90]], free=1_000)]
        made = pipeline(scores={"ResourcesFit": 1.0}, decision_filters=("ResourcesFit",))
        ranked, told = made.decide(TASK, samples, cell_of(4))
        assert ranked == []
        assert (told.looked_at, told.feasible, told.rule) == (1, 0, "")
        assert told.ruled_out == {f"{EXCLUDED_BY}ResourcesFit": 1}
        assert told.remedy == "relax what the scheduler's own filters ask for"

    def test_own_scores_are_added_by_their_weight(self) -> None:
        settings = {
            "scores": {"ResourcesFit": 1.0},
            "decision_scores": {"BatteryLevel": 2.0, "GeoLocation": 1.0},
        }
        cell = cell_of(4, 4, 4, m1={"battery": "30"})
        samples = [answer("a", [0, 1], [[10], [100]]), answer("b", [2], [[20]])]
        ranked, told = pipeline(**settings).decide(TASK, samples, cell)
        # Without a location demanded, all are as near as can be.
        assert [each.machine for each in ranked] == [2, 0, 1]
        assert (told.score, told.second, told.second_score) == (320, 0, 310)
        assert told.points == {"ResourcesFit": 20, "BatteryLevel": 200, "GeoLocation": 100}
        assert told.second_points == {
            "ResourcesFit": 10,
            "BatteryLevel": 200,
            "GeoLocation": 100,
        }
        assert (told.looked_at, told.feasible, told.remedy) == (3, 3, "")


class TestOutcomes:
    def test_who_gives_up_after_a_conflict_tells_what_was_seen_and_what_refused_it(self) -> None:
        engine, cell = a_vela("a", reschedules=0), federation(a=4)
        asked = due(engine, cell, submit(engine, cell, "j", 0, 5 * MS), 5 * MS)
        seen = found(only(asked, Sample), [1, 2], [9, 4], drawn=7, ruled_out={"cpu": 5})
        commit = only(due(engine, cell, engine.handle(seen, cell, 6 * MS), 7 * MS), Commit)
        assert commit.transaction.claims.machines.tolist() == [1]
        assert commit.transaction.claims.alternatives.tolist() == [[2]]
        refused = Committed(commit.token, refusal(Why.NO_ROOM, 2))
        told = only(engine.handle(refused, cell, 9 * MS), Abandon).explanation
        assert (told.looked_at, told.feasible, told.ruled_out) == (7, 2, {"cpu": 5})
        assert told.refused == Refusal(Why.ATTEMPTS, lacking=1)
        assert told.nearest_miss is None
        figures = {name: value for name, value in engine.figures().items() if value}
        assert figures == {
            "attempts": 1,
            "conflicts": 1,
            "commits refused": 2,
            "abandoned": 1,
            "machines drawn": 7,
            "machines eligible": 2,
            "samples asked": 1,
            "attempting s": 0.004,
            "mean sampling ms": 1.0,
            "mean commit ms": 2.0,
        }

    def test_a_task_without_a_machine_counts_once_and_waits_or_is_given_up(self) -> None:
        engine, cell = a_vela("ab", reschedules=1, backoff=0), federation(a=1, b=1)
        effects = submit(engine, cell, "j", 0, 3 * MS)
        for attempt in (1, 2):
            asked = due(engine, cell, effects, 4 * MS)
            for sample in of(asked, Sample):
                nothing = found(sample, [], drawn=1, ruled_out={"cpu": 1})
                effects = engine.handle(nothing, cell, 8 * MS)
            told = only(effects, Explain)
            assert told.tasks.tolist() == tasks_of(0, 0).tolist()
            assert told.explanation.ruled_out == {"cpu": 2}
            assert told.explanation.remedy == "free room, or ask for less"
            figures = engine.figures()
            assert (figures["attempts"], figures["no machine found"]) == (attempt, attempt)
            assert figures["attempting s"] == 0.005
            assert figures["rescheduled"] == 1
        gone = only(effects, Abandon)
        assert gone.explanation.refused == Refusal(Why.ATTEMPTS, lacking=2)
        assert (figures["abandoned"], figures["placed"]) == (1, 0)
