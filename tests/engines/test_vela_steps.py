"""Vela as a function from events to effects: one task's way through its three phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from serial_attempts import only, tasks_of

from argosy.agents.committing import refused
from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.vela import Vela, VelaSettings
from argosy.model.effects import Abandon, Commit, Explain, Sample, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobSubmitted,
    SampleReturned,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import UNANSWERED, Refusal, Why
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Outcome, Transaction
from argosy.testing.builders import GIB, SECOND, job

MS = 1_000


def federation(**machines: int) -> Cell:
    """Clusters with so many machines each, numbered through."""
    cell = Cell(("cpu", "memory"), {CLUSTER_GROUP: tuple(machines)}, audited=True)
    for cluster, count in machines.items():
        for at in range(count):
            joins = {CLUSTER_GROUP: (cluster,)}
            machine = Machine(f"{cluster}/m{at}", Resources(4_000, 16 * GIB), {}, joins)
            cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    return cell


def a_vela(names: str = "ab", seed: int = 1, **settings: Any) -> Vela:
    clusters = tuple(Cluster(name, name) for name in names)
    context = Context("v", (), Random(seed), clusters=clusters)
    return Vela(VelaSettings(**{"clusters": 1.0, **settings}), context)


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def submit(engine: Vela, cell: Cell, name: str, number: int, now: int = 0, **fields: Any) -> Any:
    made = job(name, fields.pop("tasks", 1), **fields)
    event = JobSubmitted(made.job, number, tasks_of(number, *range(made.tasks)))
    return engine.handle(event, cell, now)


def due(engine: Vela, cell: Cell, effects: Any, now: int) -> Any:
    return engine.handle(DecisionDue(only(effects, Think).token), cell, now)


def found(
    sample: Sample, machines: Sequence[int], scores: Sequence[int] = (), **fields: Any
) -> SampleReturned:
    """The agent's answer; the first of the two scores of each machine is given."""
    count = len(machines)
    rows = np.zeros((count, 2), np.int64)
    rows[:, 0] = scores or [0] * count
    return SampleReturned(
        sample.token,
        np.array(machines, np.int32),
        np.full((count, 2), 4_000, np.int64),
        np.zeros(count, np.uint32),
        sample.cluster,
        rows,
        **{"drawn": count, **fields},
    )


def refusal(why: Why, machine: int = 0) -> Outcome:
    return refused(Refusal(why, machine=machine), ("cpu", "memory"))


def ready_to_commit(engine: Vela, cell: Cell, machines: Sequence[int]) -> Commit:
    """The commit of a task for which cluster a returned these machines, best first."""
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    scores = list(range(len(machines), 0, -1))
    effects: Any = ()
    for sample in of(asked, Sample):
        mine = machines if sample.cluster == "a" else []
        effects = engine.handle(found(sample, mine, scores if mine else ()), cell, 0)
    commit: Commit = only(due(engine, cell, effects, 0), Commit)
    return commit


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({}, {"free": False}),
        ({"decision_filters": ("ResourcesFit",)}, {"free": True}),
        ({"decision_scores": {"ResourcesFit": 1.0}}, {"free": True}),
        ({"rounds": 3}, {"rounds": 3}),
        ({"rounds": 3, "asks": "machines"}, {"rounds": 1}),
        ({"sampling_limit": 70}, {"limit": 70}),
        ({"repeats": True}, {"repeats": True}),
        ({"overshoot": True}, {"overshoot": True}),
        ({"strategy": "learned"}, {"strategy": "learned"}),
    ],
)
def test_agents_are_asked_as_it_is_set(settings: dict[str, Any], fields: dict[str, Any]) -> None:
    engine = a_vela(**settings)
    assert {name: getattr(engine._pipeline, name) for name in fields} == fields


def test_figures_count_a_task_on_its_way() -> None:
    engine, cell = a_vela(samplers=1, t_sampling=3 * MS), federation(a=4, b=4)
    effects = submit(engine, cell, "first", 0)
    assert not submit(engine, cell, "second", 1, 1 * MS)
    asked = due(engine, cell, effects, 3 * MS)
    one, other = sorted(of(asked, Sample), key=lambda sample: sample.cluster)
    assert not engine.handle(found(one, [0, 1], [5, 9], drawn=3), cell, 10 * MS)
    effects = engine.handle(found(other, [4], [7], drawn=2), cell, 13 * MS)
    # The sampler is free for the second task, which has waited for 12 ms, the first not at all.
    thinking = {effect.lane: effect for effect in of(effects, Think)}
    second, deciding = thinking["sampler 0"], thinking["decider 0"]
    commit = only(engine.handle(DecisionDue(deciding.token), cell, 15 * MS), Commit)
    outcome = cell.commit(commit.transaction)
    engine.handle(Committed(commit.token, outcome), cell, 20 * MS)
    told = engine.figures()
    assert {name: value for name, value in told.items() if value} == {
        "attempts": 1,
        "attempting s": 0.02,
        "placed": 1,
        "machines drawn": 5,
        "machines eligible": 3,
        "samples asked": 2,
        "mean queueing ms": 6.0,
        "mean sampling ms": 13.0,
        "mean commit ms": 5.0,
        "mean end to end ms": 20.0,
        "mean end to end without queue ms": 20.0,
    }
    # The second task is placed 7 ms after the first, with a wait of 12 ms for a sampler.
    asked = engine.handle(DecisionDue(second.token), cell, 20 * MS)
    for sample in of(asked, Sample):
        effects = engine.handle(found(sample, [2] if sample.cluster == "a" else []), cell, 22 * MS)
    commit = only(due(engine, cell, effects, 24 * MS), Commit)
    engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 27 * MS)
    told = engine.figures()
    assert told["placing s"] == 0.007
    assert told["mean end to end ms"] == (20 + 26) / 2
    assert told["mean end to end without queue ms"] == (20 + 14) / 2


def test_figures_count_refusals_by_candidate_and_tasks_placed_elsewhere() -> None:
    engine, cell = a_vela(candidates=3), federation(a=3, b=1)
    commit = ready_to_commit(engine, cell, [2, 1, 0])
    assert commit.transaction.claims is not None
    assert commit.transaction.claims.machines.tolist() == [2]
    assert commit.transaction.claims.alternatives is not None
    assert commit.transaction.claims.alternatives.tolist() == [[1, 0]]
    engine.handle(Committed(commit.token, refusal(Why.NO_ROOM)), cell, 5 * MS)
    told = engine.figures()
    assert (told["commits refused"], told["conflicts"], told["rescheduled"]) == (3, 1, 1)
    assert told["agents not reached"] == 0
    assert told["mean commit ms"] == 5


def test_an_agent_that_was_not_reached_has_refused_nothing() -> None:
    engine, cell = a_vela(candidates=2), federation(a=2, b=1)
    commit = ready_to_commit(engine, cell, [0, 1])
    gone = Committed(commit.token, refusal(Why.MACHINE_GONE), reached=False)
    engine.handle(gone, cell, 0)
    told = engine.figures()
    assert (told["commits refused"], told["agents not reached"]) == (0, 1)


@pytest.mark.parametrize(("candidates", "expected"), [(1, None), (2, [[1]]), (9, [[1, 0, 3]])])
def test_a_commit_has_as_many_candidates_as_the_settings_allow(
    candidates: int, expected: list[list[int]] | None
) -> None:
    engine, cell = a_vela(candidates=candidates), federation(a=4, b=1)
    claims = ready_to_commit(engine, cell, [2, 1, 0, 3]).transaction.claims
    assert claims is not None
    others = claims.alternatives
    assert (None if others is None else others.tolist()) == expected


def test_only_a_reason_of_one_machine_leads_to_candidates_of_another_cluster() -> None:
    for why, goes_on in ((Why.NO_ROOM, True), (Why.FILTERED, True), (Why.JOB_LIMIT, False)):
        engine, cell = a_vela(), federation(a=1, b=1)
        asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
        for sample in of(asked, Sample):
            machine, score = (0, 9) if sample.cluster == "a" else (1, 5)
            effects = engine.handle(found(sample, [machine], [score]), cell, 0)
        commit = only(due(engine, cell, effects, 0), Commit)
        assert commit.cluster == "a"
        effects = engine.handle(Committed(commit.token, refusal(why)), cell, 0)
        assert [commit.cluster for commit in of(effects, Commit)] == ["b"] * goes_on
        assert bool(of(effects, WakeMe)) == (not goes_on)


def test_a_first_conflict_is_tried_again_at_once_and_a_second_one_later() -> None:
    engine, cell = a_vela("a"), federation(a=1)
    effects = submit(engine, cell, "j", 0)
    for is_first in (True, False):
        [sample] = of(due(engine, cell, effects, 0), Sample)
        effects = engine.handle(found(sample, [0]), cell, 0)
        commit = only(due(engine, cell, effects, 0), Commit)
        effects = engine.handle(Committed(commit.token, refusal(Why.NO_ROOM)), cell, 0)
        assert bool(of(effects, Think)) == is_first
        assert bool(of(effects, WakeMe)) == (not is_first)


def test_a_task_that_is_put_back_waits_in_the_queue_from_then_on() -> None:
    engine, cell = a_vela("a"), federation(a=1)
    [sample] = of(due(engine, cell, submit(engine, cell, "j", 0), 0), Sample)
    effects = engine.handle(found(sample, [0]), cell, 0)
    commit = only(due(engine, cell, effects, 0), Commit)
    effects = engine.handle(Committed(commit.token, refusal(Why.NO_ROOM)), cell, 50 * MS)
    [sample] = of(due(engine, cell, effects, 50 * MS), Sample)
    engine.handle(found(sample, [0]), cell, 50 * MS)
    assert engine.figures()["mean queueing ms"] == 0


@pytest.mark.parametrize("why", [Why.CANCELLED, Why.DUPLICATE, Why.NOT_YOURS])
def test_a_task_that_was_placed_by_others_or_cancelled_is_not_tried_again(why: Why) -> None:
    engine, cell = a_vela(), federation(a=1, b=1)
    commit = ready_to_commit(engine, cell, [0])
    effects = engine.handle(Committed(commit.token, refusal(why)), cell, 0)
    assert not effects
    assert engine.figures()["rescheduled"] == 0


def test_a_refusal_that_is_neither_conflict_nor_limit_reschedules_the_task_and_says_why() -> None:
    """A third party's check may refuse for any reason."""
    engine, cell = a_vela("a", reschedules=1, backoff=MS), federation(a=1)
    effects = submit(engine, cell, "j", 0)
    for is_first in (True, False):
        [sample] = of(due(engine, cell, effects, 0), Sample)
        effects = engine.handle(found(sample, [0]), cell, 0)
        commit = only(due(engine, cell, effects, 0), Commit)
        effects = engine.handle(Committed(commit.token, refusal(Why.FILTERED)), cell, 0)
        if is_first:
            [told] = of(effects, Explain)
            assert told.explanation.refused == Refusal(Why.FILTERED, task=0, machine=0)
            effects = engine.handle(TimerFired(only(effects, WakeMe).name), cell, 2 * MS)
    given_up = only(effects, Abandon).explanation
    assert given_up.refused.why is Why.ATTEMPTS
    assert given_up.nearest_miss == Refusal(Why.FILTERED, task=0, machine=0)
    assert "machine" in given_up.remedy


def test_a_lost_task_is_another_one_and_the_answer_about_the_old_one_is_dropped() -> None:
    engine, cell = a_vela(), federation(a=2, b=1)
    commit = ready_to_commit(engine, cell, [0])
    lost = TasksLost(job("j", 1).job, 0, tasks_of(0, 0), np.zeros(1, np.int32), Why.MACHINE_GONE)
    only(engine.handle(lost, cell, 0), Think)
    assert not engine.handle(Committed(commit.token, refusal(Why.NO_ROOM)), cell, 0)
    assert engine.figures()["rescheduled"] == 0


@pytest.mark.parametrize("when", ["thinking", "asking", "deciding", "committing", "waiting"])
def test_a_cancelled_task_gives_back_its_worker_wherever_it_is(when: str) -> None:
    one = {"samplers": 1, "deciders": 1, "committers": 1}
    engine, cell = a_vela("a", **one, t_sampling=MS), federation(a=2)
    steps = ["thinking", "asking", "deciding", "committing"]
    made = job("j", 1)
    effects, answer = submit(engine, cell, "j", 0), None
    for step in steps[: steps.index(when) + 1 if when in steps else 2]:
        if step in ("asking", "committing"):
            effects = due(engine, cell, effects, 0)
        elif step == "deciding":
            effects = engine.handle(found(only(effects, Sample), [0]), cell, 0)
        answer = effects
    if when == "waiting":
        effects = engine.handle(found(only(effects, Sample), []), cell, 0)
        answer = only(effects, WakeMe)
    cancelled = JobCancelled(made.job, 0, tasks_of(0, 0))
    after = [*engine.handle(cancelled, cell, 0)]
    if when in ("thinking", "deciding"):
        after += due(engine, cell, answer, 0)
    elif when == "committing":
        token = only(answer, Commit).token
        after += engine.handle(Committed(token, refusal(Why.CANCELLED)), cell, 0)
    elif when == "waiting":
        after += engine.handle(TimerFired(answer.name), cell, answer.at)
    assert not after
    # The next task passes through all three phases, though there is one worker for each.
    asked = due(engine, cell, submit(engine, cell, "next", 1), 0)
    effects = engine.handle(found(only(asked, Sample), [1]), cell, 0)
    assert only(due(engine, cell, effects, 0), Commit).transaction.claims.machines.tolist() == [1]


def test_the_sampler_of_a_cancelled_task_goes_to_one_that_waits() -> None:
    engine, cell = a_vela("a", samplers=1), federation(a=1)
    first = job("j", 1).job
    due(engine, cell, submit(engine, cell, "j", 0), 0)
    assert not of(submit(engine, cell, "next", 1, cpu=700), Think)
    effects = engine.handle(JobCancelled(first, 0, tasks_of(0, 0)), cell, 0)
    (sample,) = of(due(engine, cell, effects, 0), Sample)
    assert sample.request.cpu == 700


def test_the_decider_of_a_cancelled_task_goes_to_one_that_waits() -> None:
    engine, cell = a_vela("a", deciders=1), federation(a=2)
    first = job("j", 1).job
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    deciding = engine.handle(found(only(asked, Sample), [0]), cell, 0)
    asked = due(engine, cell, submit(engine, cell, "next", 1), 0)
    assert not of(engine.handle(found(only(asked, Sample), [1]), cell, 0), Think)
    assert not of(engine.handle(JobCancelled(first, 0, tasks_of(0, 0)), cell, 0), Think)
    effects = due(engine, cell, deciding, 0)
    commit = only(due(engine, cell, effects, 0), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(1, 0).tolist()


def test_the_time_out_of_an_earlier_attempt_does_not_end_the_next() -> None:
    engine, cell = a_vela("a", timeout=50 * MS, backoff=MS, reschedules=5), federation(a=1)
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    wake = only(asked, WakeMe)
    effects = engine.handle(found(only(asked, Sample), []), cell, MS)
    again = only(effects, WakeMe)
    assert again.at < wake.at
    asked = due(engine, cell, engine.handle(TimerFired(again.name), cell, again.at), again.at)
    assert not engine.handle(TimerFired(wake.name), cell, wake.at)
    effects = engine.handle(found(only(asked, Sample), [0]), cell, wake.at + 1)
    commit = only(due(engine, cell, effects, wake.at + 1), Commit)
    assert commit.transaction.claims.machines.tolist() == [0]


def test_after_the_time_out_the_answers_that_have_come_are_used() -> None:
    engine, cell = a_vela(timeout=50 * MS), federation(a=1, b=1)
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    wake = only(asked, WakeMe)
    assert wake.at == 50 * MS
    one, late = of(asked, Sample)
    at = 0 if one.cluster == "a" else 1
    assert not engine.handle(found(one, [at]), cell, MS)
    effects = engine.handle(TimerFired(wake.name), cell, wake.at)
    commit = only(due(engine, cell, effects, wake.at), Commit)
    assert commit.transaction.claims.machines.tolist() == [at]
    # What comes later is counted, and used for nothing.
    assert not engine.handle(found(late, [1 - at]), cell, 60 * MS)
    assert engine.figures()["samples overdue"] == 1


def test_a_time_out_after_all_answers_means_nothing() -> None:
    engine, cell = a_vela("a", timeout=50 * MS), federation(a=1)
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    engine.handle(found(only(asked, Sample), [0]), cell, MS)
    assert not engine.handle(TimerFired(only(asked, WakeMe).name), cell, 50 * MS)


def test_a_task_is_told_how_many_machines_belong_to_agents_that_did_not_answer() -> None:
    engine, cell = a_vela(reschedules=0), federation(a=2, b=3)
    effects: Any = ()
    for sample in of(due(engine, cell, submit(engine, cell, "j", 0), 0), Sample):
        full = {"drawn": 2, "ruled_out": {"cpu": 2}}
        silent = {"drawn": 0, "reached": False}
        answer = found(sample, [], **(full if sample.cluster == "a" else silent))
        effects = engine.handle(answer, cell, 0)
    told = only(effects, Explain).explanation
    assert (told.looked_at, told.feasible) == (2, 0)
    assert told.ruled_out == {"cpu": 2, UNANSWERED: 3}
    assert told.remedy == "bring back the agents that do not answer; free room, or ask for less"
    assert only(effects, Abandon).explanation.refused.lacking == 1
    assert engine.figures()["agents not reached"] == 1


@pytest.mark.parametrize(("clusters", "says"), [(0.5, True), (1.0, False)])
def test_only_a_scheduler_that_asks_some_clusters_is_advised_to_ask_more(
    clusters: float, says: bool
) -> None:
    engine, cell = a_vela(clusters=clusters), federation(a=1, b=1)
    effects: Any = ()
    for sample in of(due(engine, cell, submit(engine, cell, "j", 0), 0), Sample):
        effects = engine.handle(found(sample, [], drawn=1, ruled_out={"cpu": 1}), cell, 0)
    assert ("`clusters`" in only(effects, Explain).explanation.remedy) == says


def test_waits_double_up_to_64_times_the_first_and_differ_at_random() -> None:
    delays: list[list[int]] = [[] for _ in range(9)]
    for seed in range(8):
        engine, cell = a_vela("a", seed, backoff=SECOND, reschedules=20), federation(a=1)
        now, effects = 0, submit(engine, cell, "j", 0)
        for turn in delays:
            [sample] = of(due(engine, cell, effects, now), Sample)
            wake = only(engine.handle(found(sample, []), cell, now), WakeMe)
            turn.append(wake.at - now)
            now = wake.at
            effects = engine.handle(TimerFired(wake.name), cell, now)
    for turn, each in enumerate(delays):
        mean = SECOND << min(turn, 6)
        assert mean // 2 <= min(each) < max(each) <= mean // 2 + mean
        assert max(each) > mean


def test_of_equal_machines_chance_decides() -> None:
    chosen = set()
    for seed in range(12):
        engine, cell = a_vela("a", seed, candidates=1), federation(a=3)
        asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
        effects = engine.handle(found(only(asked, Sample), [0, 1, 2], [5, 5, 5]), cell, 0)
        commit = only(due(engine, cell, effects, 0), Commit)
        chosen.update(commit.transaction.claims.machines.tolist())
    assert chosen == {0, 1, 2}


def test_a_decision_is_explained_by_the_best_two_scores() -> None:
    engine, cell = a_vela("a", scores={"ResourcesFit": 2.0, "GeoLocation": 1.0}), federation(a=3)
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    sample = found(only(asked, Sample), [0, 1, 2], [5, 30, 8], drawn=7, ruled_out={"cpu": 4})
    commit = only(due(engine, cell, engine.handle(sample, cell, 0), 0), Commit)
    told = commit.explanation
    assert (told.looked_at, told.feasible, told.ruled_out) == (7, 3, {"cpu": 4})
    assert (told.rule, told.score, told.second, told.second_score) == ("highest score", 60, 2, 16)


def test_each_score_has_its_own_weight() -> None:
    weights = {"ResourcesFit": 2.0, "GeoLocation": 1.0}
    engine, cell = (
        a_vela("a", scores=weights, decision_scores={"BatteryLevel": 5.0}),
        federation(a=1),
    )
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    effects = engine.handle(found(only(asked, Sample), [0], [30]), cell, 0)
    # A machine without a battery has the highest level.
    told = only(due(engine, cell, effects, 0), Commit).explanation
    assert told.score == 2 * 30 + 5 * 100


def test_agents_are_asked_in_turn_or_at_once() -> None:
    for asks, first in (("at-once", 2), ("in-turn", 1)):
        engine, cell = a_vela(asks=asks), federation(a=1, b=1)
        asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
        assert len(of(asked, Sample)) == first
        if asks == "in-turn":
            [sample] = of(asked, Sample)
            [other] = of(engine.handle(found(sample, []), cell, 0), Sample)
            assert {sample.cluster, other.cluster} == {"a", "b"}
