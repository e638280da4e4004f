"""Mesos as in the published simulator: an offer is used for all queued jobs at once, and a framework's
decisions do not keep it from further offers."""

from __future__ import annotations

from typing import Any

from serial_attempts import cell_of, only, take, tasks_of
from test_mesos_offers import answer, decide, large, of, offer, submit

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.mesos import Mesos, MesosSettings
from argosy.experiments.execute import execute
from argosy.model.effects import Abandon, Commit, Explain, Think, WakeMe
from argosy.model.events import JobCancelled, TimerFired
from argosy.model.random import Random
from argosy.model.transactions import OPERATOR, Transaction
from argosy.testing.builders import GIB, SECOND, job, scenario


def at_once(**settings: Any) -> Mesos:
    told = {"refuse": 0, "rest": SECOND, "t_job": 100, "t_task": 10, **settings}
    return Mesos(MesosSettings(uses="queue-at-once", **told), Context("s", (), Random(1)))


def two_jobs(engine: Mesos, cell: Cell) -> Any:
    for number, name in enumerate(("a", "b")):
        submit(engine, cell, large(name, 1), number)
    return offer(engine, cell)


def test_all_queued_jobs_are_decided_on_at_once_and_answered_together() -> None:
    engine, cell = at_once(), cell_of(4, 4, 4)
    first, second = of(two_jobs(engine, cell), Think)
    # The wait of both is over; the answer comes after the time of both.
    assert [first.job, second.job] == [0, 1]
    assert [first.duration, second.duration] == [220, 0]
    assert decide(engine, cell, second) == ()
    commits = of(decide(engine, cell, first, 220), Commit)
    claimed = [commit.transaction.claims.tasks.tolist() for commit in commits]
    assert claimed == [tasks_of(0, 0).tolist(), tasks_of(1, 0).tolist()]


def test_decisions_do_not_keep_a_framework_from_further_offers() -> None:
    engine, cell = at_once(), cell_of(4, 4)
    take(cell, 1, 4)
    submit(engine, cell, large("a", 1), 0)
    only(offer(engine, cell), Think)
    submit(engine, cell, large("b", 1), 1)
    # All that was free is locked by the first offer.
    assert not of(offer(engine, cell), Think)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    assert only(offer(engine, cell), Think).job == 1


def test_the_whole_offer_is_locked_until_every_job_has_its_answer() -> None:
    engine, cell = at_once(), cell_of(4, 4, 4)
    thinking = of(two_jobs(engine, cell), Think)[0]
    submit(engine, cell, large("other", 1, kind="service"), 2)
    assert not of(offer(engine, cell), Think)
    first, second = of(decide(engine, cell, thinking), Commit)
    answer(engine, cell, first)
    assert not of(offer(engine, cell), Think)
    answer(engine, cell, second)
    assert only(offer(engine, cell), Think).job == 2


def test_what_remains_of_a_job_rests_from_the_offer_on_and_not_from_the_answer() -> None:
    engine, cell = at_once(), cell_of(4)
    submit(engine, cell, large("wide", 2), 0)
    effects = offer(engine, cell, 50)
    assert WakeMe(50 + SECOND, "rest") in effects
    # It is queued again while its first task waits for the answer.
    engine.handle(TimerFired("rest"), cell, 50 + SECOND)
    cell_before = cell.used_total()
    assert not of(offer(engine, cell, 60 + SECOND), Think)
    commit = only(decide(engine, cell, only(effects, Think), 2 * SECOND), Commit)
    answer(engine, cell, commit)
    assert cell.used_total() != cell_before
    assert commit.transaction.claims.tasks.tolist() == tasks_of(0, 0).tolist()


def test_jobs_like_one_that_found_no_machine_count_an_attempt_too() -> None:
    engine, cell = at_once(attempts=2, rest=0), cell_of(4)
    giant = {"cpu": 64_000, "memory": GIB}
    for number in range(2):
        submit(engine, cell, job(f"giant-{number}", 1, **giant), number)
    effects = offer(engine, cell)
    assert [thinking.job for thinking in of(effects, Think)] == [0, 1]
    assert not of(effects, Abandon)
    decide(engine, cell, of(effects, Think)[0])
    gone = of(offer(engine, cell), Abandon)
    assert [each.tasks.tolist() for each in gone] == [tasks_of(n, 0).tolist() for n in range(2)]


def test_claims_that_are_always_refused_are_given_up_in_the_end() -> None:
    engine, cell = at_once(attempts=3), cell_of(4, 4)
    submit(engine, cell, large("a", 1), 0)
    for _ in range(2):
        commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
        machine = int(commit.transaction.claims.machines[0])
        take(cell, machine, 4)
        answer(engine, cell, commit)
        cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    take(cell, 0, 3)
    take(cell, 1, 3, number=98)
    assert only(offer(engine, cell), Abandon).tasks.tolist() == tasks_of(0, 0).tolist()


def test_a_world_abandons_jobs_that_fit_nowhere() -> None:
    jobs = [job("giant", 1, cpu=64_000), job("small", 1, cpu=1_000, seconds=1)]
    settings = {"uses": "queue-at-once", "refuse": 0, "rest": SECOND, "attempts_in_vain": 3}
    world = execute(scenario("mesos", jobs, settings=settings, replicas=1), None)
    assert (world.counts.jobs_finished, world.counts.jobs_abandoned) == (1, 1)


def test_a_gang_takes_part_of_one_offer_or_nothing() -> None:
    engine, cell = at_once(), cell_of(4, 4)
    submit(engine, cell, large("gang", 3, gang=True), 0)
    submit(engine, cell, large("small", 1), 1)
    thinking = of(offer(engine, cell), Think)[0]
    commit = only(decide(engine, cell, thinking), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(1, 0).tolist()


def test_tasks_cancelled_before_the_answer_are_not_claimed() -> None:
    engine, cell = at_once(), cell_of(4, 4, 4)
    thinking = of(two_jobs(engine, cell), Think)[0]
    engine.handle(JobCancelled(large("a", 1).job, 0, tasks_of(0, 0)), cell, 0)
    commit = only(decide(engine, cell, thinking), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(1, 0).tolist()


def test_refused_claims_are_tried_again_unless_they_were_cancelled_meanwhile() -> None:
    engine, cell = at_once(), cell_of(4, 4)
    thinking = of(two_jobs(engine, cell), Think)[0]
    commits = of(decide(engine, cell, thinking), Commit)
    # Somebody else takes both machines at the last moment.
    take(cell, 0, 4)
    take(cell, 1, 4, number=98)
    engine.handle(JobCancelled(large("a", 1).job, 0, tasks_of(0, 0)), cell, 0)
    for commit in commits:
        answer(engine, cell, commit)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    assert only(offer(engine, cell), Think).job == 1


def test_a_framework_is_charged_for_what_it_has_not_answered() -> None:
    engine, cell = at_once(), cell_of(4, 4)
    take(cell, 1, 4)
    submit(engine, cell, large("a", 1), 0)
    only(offer(engine, cell), Think)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    submit(engine, cell, large("b", 1), 1)
    submit(engine, cell, large("other", 1, kind="service"), 2)
    assert only(offer(engine, cell), Think).job == 2


def test_an_answer_for_several_jobs_is_charged_once() -> None:
    engine, cell = at_once(), cell_of(4, 4)
    thinking = of(two_jobs(engine, cell), Think)[0]
    framework = engine._frameworks["batch"]
    deciding = engine._charged(framework, cell).tolist()
    commits = of(decide(engine, cell, thinking), Commit)
    # Both claims are on their way to the cell.
    assert len(commits) == 2
    assert engine._charged(framework, cell).tolist() == deciding
    answer(engine, cell, commits[0])
    assert len(engine._open_answers()) == 1
    answer(engine, cell, commits[1])
    assert engine._open_answers() == []


def test_the_allocator_gathers_and_makes_no_small_offers() -> None:
    engine, cell = at_once(gather=SECOND, least_cores=5), cell_of(*[4] * 200)
    [wake] = submit(engine, cell, large("a", 1), 0)
    assert wake == WakeMe(SECOND + 1_000, "offer")
    for machine in range(199):
        take(cell, machine, 4, number=100 + machine)
    assert not of(offer(engine, cell), Think)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(100, 0, 1, 2, 3)))
    assert only(offer(engine, cell), Think).job == 0


def test_a_hundredth_of_a_small_cell_is_enough_for_an_offer() -> None:
    engine, cell = at_once(least_cores=100), cell_of(4)
    submit(engine, cell, large("a", 1), 0)
    assert only(offer(engine, cell), Think).job == 0


def test_tasks_without_a_machine_are_told_at_first_and_whenever_others_of_their_job_get_one() -> (
    None
):
    engine, cell = at_once(rest=0), cell_of(4)
    take(cell, 0, 1)
    submit(engine, cell, large("a", 2), 0)

    def told() -> list[list[int]]:
        effects = offer(engine, cell)
        thinking = only(effects, Think)
        for commit in of(decide(engine, cell, thinking), Commit):
            answer(engine, cell, commit)
        return [each.tasks.tolist() for each in of(effects, Explain)]

    assert told() == [tasks_of(0, 0, 1).tolist()]
    assert told() == []
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
    assert told() == [tasks_of(0, 1).tolist()]
