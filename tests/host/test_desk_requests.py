"""Single steps of an agent's desk: its requests, what they require, and when they are answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from argosy.host.agent_desks import AgentDesk, AgentHealth, CommitRequest, OpenSample
from argosy.host.protocols import agent_of
from argosy.model.effects import Commit, CommitPipeline, Sample
from argosy.model.events import Committed, SampleReturned
from argosy.model.explanations import Why
from argosy.model.jobs import Job, TaskGroup, task_number
from argosy.model.resources import Resources
from argosy.model.scenario import AgentDown, AgentModel, AgentSlow, AgentStale
from argosy.model.transactions import Claims, Transaction

PIPELINE = CommitPipeline()


class Bench:
    """A desk of the north whose host notes what is posted and what is due later."""

    def __init__(self, *faults: Any, **model: int) -> None:
        self.posted: list[tuple[int, str, Any]] = []
        self.later: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, str, int]] = []
        self.scheduler: Any = SimpleNamespace(name="s", epoch=3)
        self.host: Any = Mock()
        self.host.view.dimensions = ("cpu", "memory")
        self.host.post = lambda at, scheduler, event: self.posted.append(
            (at, scheduler.name, event)
        )
        self.host.later = lambda at, action: self.later.append((at, action))
        self.host.links.reliable_delay = self._delay
        desk = self.desk = object.__new__(AgentDesk)
        desk._host, desk._cluster = self.host, "north"
        desk._health, desk._model = AgentHealth(list(faults)), AgentModel(**model)
        desk._effects, desk._facts, desk._arrivals = Mock(), Mock(), 0
        desk._shards = [Mock(number=number, locks={}) for number in range(2)]

    def _delay(self, sender: str, to: str, now: int) -> int:
        self.asked.append((sender, to, now))
        return 40


def commit(machines: int = 5, alternatives: list[int] | None = None, index: int = 0) -> Commit:
    claims = Claims(
        np.array([task_number(0, index)]),
        np.array([machines], np.int32),
        np.array([0], np.int32),
        np.array([0]),
        alternatives=None if alternatives is None else np.array([alternatives], np.int32),
    )
    return Commit(8, Transaction("s", claims), pipeline=PIPELINE)


@pytest.mark.parametrize(
    ("alternatives", "candidates"),
    [(None, [5]), ([], [5]), ([0, 7], [5, 0, 7]), ([7, -1, 2], [5, 7, 2]), ([-1, -1], [5])],
)
def test_candidates_are_the_machine_and_then_those_alternatives_that_there_are(
    alternatives: list[int] | None, candidates: list[int]
) -> None:
    bench = Bench()
    effect = commit(5, alternatives)
    request = CommitRequest(bench.scheduler, effect, 4)
    assert list(request.candidates) == candidates
    assert (request.scheduler, request.effect, request.number) == (bench.scheduler, effect, 4)
    assert (request.claims, request.pipeline) == (effect.transaction.claims, PIPELINE)
    assert (request.reservation, request.began, request.epoch) == (None, 0, 3)


def test_a_request_is_wanted_until_its_scheduler_crashes() -> None:
    bench = Bench()
    request = CommitRequest(bench.scheduler, commit(), 1)
    assert request.is_wanted
    bench.scheduler.epoch += 1
    assert not request.is_wanted


def test_a_transaction_for_a_machine_has_no_other() -> None:
    request = CommitRequest(Bench().scheduler, commit(5, [7]), 1)
    transaction = request.transaction_for(7)
    assert transaction.claims is not None
    assert transaction.claims.machines.tolist() == [7]
    assert transaction.claims.alternatives is None
    assert transaction.claims.tasks.tolist() == request.claims.tasks.tolist()
    assert transaction.scheduler == "s"


def test_a_task_requires_what_its_own_group_does() -> None:
    def group(count: int, cpu: int) -> TaskGroup:
        return TaskGroup(
            count=count,
            request=Resources(cpu, 0),
            requires={"zone": f"z{cpu}"},
            demands={"volume": f"v{cpu}"},
        )

    bench = Bench()
    job = Job(id="j", groups=(group(2, 1), group(1, 2), group(3, 3)))
    bench.host.jobs.job = {0: job}.__getitem__
    found = []
    for index in range(6):
        request = CommitRequest(bench.scheduler, commit(index=index), 1)
        needs = bench.desk._requirements(request)
        assert needs.requires == {"zone": f"z{needs.request.cpu}"}
        assert needs.demands == {"volume": f"v{needs.request.cpu}"}
        found.append(needs.request.cpu)
    assert found == [1, 1, 2, 3, 3, 3]


def drawn(machine: int) -> Any:
    return SimpleNamespace(
        machines=np.array([machine]),
        free=np.array([[machine]]),
        versions=np.array([machine]),
        scores=np.array([machine]),
        drawn=1,
        ruled_out={},
    )


def open_sample(bench: Bench, began: int = 100) -> OpenSample:
    effect = Sample(token=6, request=Resources(1, 1), count=1, cluster="north", pipeline=Mock())
    return OpenSample(bench.scheduler, effect, began, 2)


def test_a_sample_is_answered_when_its_last_shard_is_done_and_each_turn_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("argosy.host.agent_desks.merged", lambda parts: parts[1])
    bench = Bench()
    request = open_sample(bench)
    first, second = bench.desk._shards
    bench.desk._drew(second, request, drawn(21), 200)
    assert (bench.posted, request.missing) == ([], 1)
    second.sampling.leave.assert_called_once_with(200)  # type: ignore[attr-defined]
    bench.desk._drew(first, request, drawn(20), 300)
    first.sampling.leave.assert_called_once_with(300)  # type: ignore[attr-defined]
    # Parts are in the order of shards, whichever came first.
    assert [part.machines.tolist() for part in request.parts] == [[20], [21]]
    [(at, name, event)] = bench.posted
    assert (at, name, type(event)) == (340, "s", SampleReturned)
    assert (event.token, event.machines.tolist(), event.cluster) == (6, [21], "north")
    assert (event.drawn, event.reached) == (1, True)
    assert bench.asked == [(agent_of("north"), "s", 300)]


@pytest.mark.parametrize(
    ("at", "lasts", "reached"),
    [
        (50, 50, True),
        (50, 51, False),
        (150, 10, False),
        (300, 10, False),
        (301, 10, True),
        (99, None, False),
    ],
)
def test_a_sample_is_lost_if_the_agent_was_down_at_any_time_of_it(
    monkeypatch: pytest.MonkeyPatch, at: int, lasts: int | None, reached: bool
) -> None:
    monkeypatch.setattr("argosy.host.agent_desks.merged", lambda parts: parts[1])
    bench = Bench(AgentDown(cluster="north", at=at, lasts=lasts))
    request = open_sample(bench)
    for shard in bench.desk._shards:
        bench.desk._drew(shard, request, drawn(20), 300)
    [(_, _, event)] = bench.posted
    assert (event.reached, len(event.machines)) == (reached, int(reached))
    assert [shard.sampling.leave.call_count for shard in bench.desk._shards] == [1, 1]  # type: ignore[attr-defined]


def test_a_scheduler_that_crashed_gets_no_answer() -> None:
    bench = Bench()
    request, asked = CommitRequest(bench.scheduler, commit(), 1), open_sample(bench)
    bench.scheduler.epoch += 1
    bench.desk._give_up(request, 10)
    bench.desk._answer_sample(asked, None, 10)
    assert bench.posted == []


def test_an_agent_that_is_down_refuses_by_the_claimed_machine_and_takes_no_number() -> None:
    bench = Bench(AgentDown(cluster="north", at=100, lasts=100))
    bench.desk.commit(bench.scheduler, commit(5, [7]), 199)
    [(at, name, event)] = bench.posted
    assert (at, name, event.token, event.reached) == (239, "s", 8, False)
    assert isinstance(event, Committed)
    outcome = event.outcome
    assert (outcome.machines.tolist(), outcome.whys.tolist()) == ([5], [int(Why.MACHINE_GONE)])
    assert (outcome.all_accepted, outcome.dimensions) == (False, ("cpu", "memory"))
    bench.desk.sample(bench.scheduler, open_sample(bench).effect, 150)
    assert [(at, event.reached) for at, _, event in bench.posted[1:]] == [(190, False)]
    assert not any(shard.mock_calls for shard in bench.desk._shards)  # type: ignore[attr-defined]


def test_what_takes_no_time_is_done_at_once() -> None:
    bench = Bench()
    done: list[int] = []
    bench.desk._after(0, done.append, 10)
    assert (done, bench.later) == ([10], [])
    bench.desk._after(1, done.append, 10)
    assert (done, bench.later) == ([10], [(11, done.append)])


def test_a_slow_agent_fetches_longer() -> None:
    bench = Bench(AgentSlow(cluster="north", at=0, lasts=100, extra=7), t_fetch=20)
    request = CommitRequest(bench.scheduler, commit(), 1)
    bench.desk._fetch(request, 50)
    bench.desk._fetch(request, 100)
    assert [at for at, _ in bench.later] == [77, 120]


def test_a_machine_is_passed_on_in_the_order_of_arrival_and_then_free() -> None:
    bench = Bench(t_fetch=5)
    locks = bench.desk._shard_of(5).locks
    requests = [CommitRequest(bench.scheduler, commit(), number) for number in range(3)]
    for request in requests:
        request.reservation = SimpleNamespace(machine=5)  # type: ignore[assignment]
        bench.desk._lock(request, 10)
    # Only the first has begun.
    assert [at for at, _ in bench.later] == [15]
    assert list(locks[5]) == requests[1:]
    bench.later.clear()
    for follower in requests[1:]:
        bench.desk._unlock(5, 30)
        [(at, action)] = bench.later
        assert (at, action.args) == (30, (follower,))
        bench.later.clear()
    assert 5 in locks
    bench.desk._unlock(5, 30)
    assert (locks, bench.later) == ({}, [])


def test_health_is_judged_by_each_kind_of_fault() -> None:
    faults = [
        AgentDown(cluster="north", at=10, lasts=10),
        AgentSlow(cluster="north", at=30, lasts=None, extra=3),
        AgentSlow(cluster="north", at=40, lasts=5, extra=4),
        AgentStale(cluster="north", at=50, lasts=5),
    ]
    health = AgentHealth(faults)
    assert [at for at in range(60) if health.is_down(at, at)] == list(range(10, 20))
    assert [at for at in range(60) if health.is_cut_off(at)] == list(range(50, 55))
    extra = [health.extra(at) for at in (29, 30, 39, 40, 44, 45, 10**9)]
    assert extra == [0, 3, 3, 7, 7, 3, 3]
    well = AgentHealth([])
    assert (well.is_down(0, 10**9), well.is_cut_off(0), well.extra(0)) == (False, False, 0)
