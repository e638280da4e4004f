"""Schedulers that crash and restart: who gets their pending tasks, once, and who counts their jobs."""

from __future__ import annotations

import pytest
from host_bench import Bench, web
from msgspec.structs import replace

from argosy.host.scheduler import Scheduler
from argosy.model.events import JobSubmitted, Started
from argosy.testing.builders import SECOND


def begun(replicas: int) -> tuple[Bench, dict[str, list[int]]]:
    """Twelve jobs that nobody places, and their numbers by the names of their schedulers."""
    bench = Bench(lambda *_: (), replicas=replicas)
    for at in range(12):
        bench.host.submit(replace(web(2), id=f"web-{at}"))
    bench.go(1)
    mine: dict[str, list[int]] = {each.name: [] for each in bench.host.schedulers}
    for number in range(12):
        mine[bench.host.schedulers[bench.host.board.owner(number)].name].append(number)
    assert all(mine.values())
    assert [each.jobs for each in bench.host.schedulers] == [len(own) for own in mine.values()]
    bench.heard.clear()
    return bench, mine


def told(bench: Bench, scheduler: Scheduler) -> list[int]:
    """The jobs that a scheduler was told of since the last call, always with both tasks."""
    found = [
        event
        for _, name, event in bench.heard
        if isinstance(event, JobSubmitted) and name == scheduler.name
    ]
    assert all(len(event.tasks) == 2 for event in found)
    return [event.number for event in found]


def test_who_restarts_gets_what_is_its_own_and_what_all_that_were_given_up_had() -> None:
    bench, mine = begun(3)
    first, second, third = bench.host.schedulers
    failover = bench.host.setup.failover / SECOND
    for each in (first, second, third):
        bench.host.crash(each)
    bench.go(2 + failover)
    assert [each.is_given_up for each in (first, second, third)] == [True] * 3
    assert [bench.host.board.owner(number) for number in mine[first.name]] == (
        [first.index] * len(mine[first.name])
    ), "there is nobody to inherit"
    bench.host.restart(third)
    bench.go(3 + failover)
    assert [event for _, _, event in bench.heard if isinstance(event, Started)] == [Started(True)]
    assert told(bench, third) == mine[third.name] + mine[first.name] + mine[second.name]
    assert (first.jobs, second.jobs, third.jobs) == (
        len(mine[first.name]),
        len(mine[second.name]),
        12,
    )
    assert {bench.host.board.owner(number) for number in range(12)} == {third.index}
    assert not third.is_given_up
    bench.heard.clear()
    # There is nothing left for whoever comes next.
    bench.host.restart(first)
    bench.go(4 + failover)
    assert told(bench, first) == []
    bench.replay()


def test_who_restarts_before_others_take_over_keeps_its_tasks() -> None:
    bench, mine = begun(2)
    first, second = bench.host.schedulers
    failover = bench.host.setup.failover / SECOND
    bench.host.crash(first)
    bench.host.restart(first)
    bench.go(2 + failover)
    assert (told(bench, first), told(bench, second)) == (mine[first.name], [])
    assert not first.is_given_up
    assert [bench.host.board.owner(number) for number in mine[first.name]] == (
        [first.index] * len(mine[first.name])
    )
    bench.replay()


def test_peers_take_over_when_the_time_is_up_and_not_before() -> None:
    bench, mine = begun(2)
    first, second = bench.host.schedulers
    failover = bench.host.setup.failover / SECOND
    bench.host.crash(second)
    bench.go(1 + failover - 0.001)
    assert (second.is_given_up, told(bench, first)) == (False, [])
    bench.go(1 + failover)
    assert (second.is_given_up, told(bench, first)) == (True, mine[second.name])
    assert first.jobs == 12
    bench.replay()


@pytest.mark.parametrize("is_resumed", [False, True])
def test_what_was_on_its_way_to_a_scheduler_that_crashed_does_not_arrive(is_resumed: bool) -> None:
    bench = Bench(lambda *_: (), is_resumed=is_resumed)
    bench.go(1)
    assert [event for _, _, event in bench.heard] == [Started(is_resumed)]
    bench.heard.clear()
    [scheduler] = bench.host.schedulers
    called: list[int] = []
    bench.host.submit(web(2))
    bench.host.later(2 * SECOND, called.append)
    bench.host.crash(scheduler)
    bench.go(1.5)
    assert bench.heard == []
    bench.host.restart(scheduler)
    bench.go(3)
    assert [type(event) for _, _, event in bench.heard] == [Started, JobSubmitted]
    assert called == [2 * SECOND], "though the scheduler is another now"
    assert bench.host.events == 3
