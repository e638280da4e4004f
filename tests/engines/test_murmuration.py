"""Murmuration as a function from events to effects, without a world around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.cell import Cell, View
from argosy.cell.waits import feed
from argosy.engines.api import Context, wait_view_for
from argosy.engines.murmuration import Murmuration, MurmurationSettings
from argosy.engines.murmuration.estimates import Learner
from argosy.engines.registry import ENGINES
from argosy.experiments.execute import execute
from argosy.model.effects import Effect, Enqueue, Explain, Send, Think, WakeMe
from argosy.model.events import (
    DecisionDue,
    Event,
    JobCancelled,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    MessageReceived,
    Started,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.messages import AskWaits, EndsReported, WaitUpdate
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import first_tasks
from argosy.model.transactions import OPERATOR, AddMachine, RelabelMachine, Transaction
from argosy.model.truth import SimulatedJob
from argosy.model.units import LARGEST
from argosy.testing.builders import GIB, SECOND, job, machines, scenario
from argosy.testing.builders import cell as cell_of
from argosy.testing.conformance import ConformanceRun
from argosy.worlds.sim import SimulatedWorld

PEERS = ("s-1", "s-2", "s-3")


#: Nothing that has been reported is yet to be learnt.
NONE_TO_COME = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def a_cell(count: int) -> Cell:
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1")})
    changes = tuple(AddMachine(machine) for machine in machines(count))
    cell.commit(Transaction(OPERATOR, machines=changes))
    return cell


class Told(Murmuration):
    """Shows its wait view, which the host has made and feeds."""

    def __init__(self, settings: MurmurationSettings, peers: tuple[str, ...]) -> None:
        waits = wait_view_for(Murmuration, settings)
        assert waits is not None
        self.waits = waits
        super().__init__(settings, Context("s-0", peers, Random(1), waits=waits))


def a_murmuration(peers: tuple[str, ...] = PEERS, **settings: Any) -> Told:
    return Told(MurmurationSettings(**settings), peers)


def submitted(submission: SimulatedJob, number: int) -> JobSubmitted:
    return JobSubmitted(submission.job, number, first_tasks(number, submission.tasks))


def only(effects: Any, kind: type[Effect]) -> Any:
    found = [effect for effect in effects if isinstance(effect, kind)]
    assert len(found) == 1, effects
    return found[0]


def place(engine: Murmuration, cell: Cell, submission: SimulatedJob, number: int) -> Any:
    thinking = only(engine.handle(submitted(submission, number), cell, 0), Think)
    return engine.handle(DecisionDue(thinking.token), cell, 0)


def whole(name: str, tasks: int, seconds: float) -> SimulatedJob:
    """Each task takes a machine of the builders' size for itself."""
    return job(name, tasks, cpu=4_000, seconds=seconds)


def test_every_task_goes_to_a_machine_of_its_own_while_there_are_any() -> None:
    engine, cell = a_murmuration(), a_cell(4)
    placed = only(place(engine, cell, whole("a", 4, 10), 0), Enqueue)
    assert sorted(placed.machines.tolist()) == [0, 1, 2, 3]


def test_a_full_cell_is_filled_where_the_expected_wait_is_smallest() -> None:
    engine, cell = a_murmuration(), a_cell(3)
    first = only(place(engine, cell, whole("long", 2, 100), 0), Enqueue).machines.tolist()
    short = only(place(engine, cell, whole("short", 1, 10), 1), Enqueue).machines.tolist()
    assert sorted(first + short) == [0, 1, 2]
    after = only(place(engine, cell, whole("next", 3, 10), 2), Enqueue).machines.tolist()
    assert after == short * 3


def test_placements_are_sent_to_every_peer_in_one_message_and_peers_avoid_them() -> None:
    engine, peer, cell = a_murmuration(), a_murmuration(), a_cell(4)
    effects = place(engine, cell, whole("a", 3, 10), 0)
    gossip = only(effects, Send)
    assert gossip.peers == PEERS
    tell(peer, gossip.payload, cell)
    taken = set(only(effects, Enqueue).machines.tolist())
    chosen = only(place(peer, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert set(chosen).isdisjoint(taken)


def tell(engine: Told, update: WaitUpdate, cell: Cell) -> None:
    """What a world does with gossip."""
    engine.handle(Started(), cell, 0)
    feed(engine.waits, update, 0, 0)


def end(engine: Told, effect: Enqueue, count: int, shape: int, seconds: int) -> None:
    """The first `count` of what was enqueued has ended."""
    ends = EndsReported(
        effect.tasks[:count],
        effect.machines[:count],
        np.full(count, seconds * SECOND, np.int64),
        np.full(count, shape, np.int32),
        np.zeros(count, np.int64),
    )
    feed(engine.waits, ends, 0, 0)


def test_a_machine_whose_task_ended_is_chosen_again() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    placed = only(place(engine, cell, whole("a", 2, 50), 0), Enqueue)
    end(engine, placed, 1, cell.shape(Resources(4_000, GIB)), 50)
    chosen = only(place(engine, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert chosen == placed.machines[:1].tolist()


def test_notices_that_come_twice_do_not_make_a_machine_look_less_than_empty() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    placed = only(place(engine, cell, whole("a", 1, 50), 0), Enqueue)
    for _ in range(3):
        end(engine, placed, 1, cell.shape(Resources(4_000, GIB)), 50)
    both = only(place(engine, cell, whole("b", 2, 10), 1), Enqueue).machines.tolist()
    assert sorted(both) == [0, 1]


def test_the_shortest_job_can_come_first() -> None:
    engine, cell = a_murmuration(order="shortest-job"), a_cell(4)
    first = only(engine.handle(submitted(whole("now", 1, 10), 0), cell, 0), Think)
    engine.handle(submitted(whole("long", 3, 100), 1), cell, 0)
    engine.handle(submitted(whole("short", 2, 5), 2), cell, 0)
    following = only(engine.handle(DecisionDue(first.token), cell, 0), Think)
    assert following.job == 2


def test_the_order_stays_when_a_waiting_job_is_cancelled() -> None:
    engine, cell = a_murmuration(order="shortest-job"), a_cell(4)
    thought = only(engine.handle(submitted(whole("now", 1, 1), 0), cell, 0), Think)
    for number, seconds in enumerate((2, 9, 3, 11, 10, 5, 4), 1):
        engine.handle(submitted(whole(f"j{number}", 1, seconds), number), cell, 0)
    gone = whole("j1", 1, 2).job
    engine.handle(JobCancelled(gone, 1, first_tasks(1, 1)), cell, 0)
    order = []
    for _ in range(6):
        thought = only(engine.handle(DecisionDue(thought.token), cell, 0), Think)
        order.append(thought.job)
    assert order == [3, 7, 6, 2, 5, 4]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 8))
def test_later_jobs_overtake_with_at_most_the_slack_times_a_jobs_own_work(
    lengths: list[int], slack: int
) -> None:
    engine, cell = a_murmuration(order="shortest-job", slack=slack), a_cell(4)
    thought = only(engine.handle(submitted(whole("now", 1, 1), 0), cell, 0), Think)
    for number, seconds in enumerate(lengths):
        engine.handle(submitted(whole(f"j{number}", 1, seconds), number + 1), cell, 0)
    order = []
    for _ in lengths:
        thought = only(engine.handle(DecisionDue(thought.token), cell, 0), Think)
        order.append(thought.job - 1)
    for place_of, number in enumerate(order):
        overtaken_by = sum(lengths[other] for other in order[:place_of] if other > number)
        assert overtaken_by <= slack * lengths[number]


@pytest.mark.parametrize(("slack", "overtaking"), [(1, 0), (2, 8), (3, 17)])
def test_a_larger_slack_lets_more_short_jobs_overtake(slack: int, overtaking: int) -> None:
    engine, cell = a_murmuration(order="shortest-job", slack=slack), a_cell(4)
    thought = only(engine.handle(submitted(whole("now", 1, 1), 0), cell, 0), Think)
    engine.handle(submitted(whole("long", 1, 10), 1), cell, 0)
    for number in range(2, 32):
        engine.handle(submitted(whole(f"short-{number}", 1, 1), number), cell, 0)
    order = []
    for _ in range(31):
        thought = only(engine.handle(DecisionDue(thought.token), cell, 0), Think)
        order.append(thought.job)
    # The long job ranks at slack x 10 s of work, short number i at 10 s + i + slack x 1 s.
    assert order.index(1) == overtaking


def test_a_scheduler_that_starts_again_takes_its_view_from_the_first_of_two_peers() -> None:
    peer, engine, cell = a_murmuration(), a_murmuration(), a_cell(2)
    taken = only(place(peer, cell, whole("a", 1, 50), 0), Enqueue).machines.tolist()
    asked = only(engine.handle(Started(again=True), cell, 0), Send)
    assert len(set(asked.peers)) == 2
    answer = only(peer.handle(MessageReceived("s-0", asked.payload), cell, 0), Send)
    assert answer.peers == ("s-0",)
    engine.handle(MessageReceived("s-1", answer.payload), cell, 0)
    chosen = only(place(engine, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert chosen != taken


def test_a_task_larger_than_every_machine_waits_for_one_that_joins() -> None:
    engine, cell = a_murmuration(), a_cell(1)
    explained = only(place(engine, cell, job("giant", 1, cpu=8_000), 0), Explain)
    assert explained.explanation.nearest_miss.lacking == 4_000
    large = machines(2, cpu=16_000)[1]
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(large),)))
    thinking = only(engine.handle(MachineJoined(1), cell, 0), Think)
    placed = only(engine.handle(DecisionDue(thinking.token), cell, 0), Enqueue)
    assert placed.machines.tolist() == [1]


def test_a_lost_machine_holds_nothing_when_it_comes_back() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    place(engine, cell, whole("a", 2, 50), 0)
    engine.handle(MachineLost(1), cell, 0)
    chosen = only(place(engine, cell, whole("b", 4, 10), 1), Enqueue).machines.tolist()
    assert chosen == [1] * 4


def test_lost_tasks_are_taken_off_everybodys_view() -> None:
    engine, peer, cell = a_murmuration(), a_murmuration(), a_cell(2)
    whole_cell = whole("a", 2, 50)
    effects = place(engine, cell, whole_cell, 0)
    placed = only(effects, Enqueue)
    tell(peer, only(effects, Send).payload, cell)
    lost = TasksLost(whole_cell.job, 0, placed.tasks[:1], placed.machines[:1], Why.NO_ROOM)
    removed = only(engine.handle(lost, cell, 0), Send)
    tell(peer, removed.payload, cell)
    chosen = only(place(peer, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert chosen == placed.machines[:1].tolist()


def test_lost_tasks_do_not_wait_anywhere_until_they_are_placed_again() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    whole_cell = whole("a", 2, 50)
    placed = only(place(engine, cell, whole_cell, 0), Enqueue)
    lost = TasksLost(whole_cell.job, 0, placed.tasks[:1], placed.machines[:1], Why.NO_ROOM)
    engine.handle(lost, cell, 0)
    assert engine.waits.work()[placed.machines].tolist() == [0, 50 * SECOND]


def test_a_scheduler_whose_questions_were_lost_asks_two_more_and_then_begins_with_nothing() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    asked: set[str] = set()
    effects = engine.handle(Started(again=True), cell, 0)
    for expected in (2, 1):
        question, wake = only(effects, Send), only(effects, WakeMe)
        assert len(question.peers) == expected
        assert asked.isdisjoint(question.peers)
        asked.update(question.peers)
        # A scheduler without a view has none to give, and places nothing yet.
        assert engine.handle(MessageReceived("s-1", question.payload), cell, 0) == []
        assert not [e for e in effects if isinstance(e, Think)]
        engine.handle(submitted(whole(f"j{expected}", 1, 1), expected), cell, 0)
        effects = engine.handle(TimerFired(wake.name), cell, wake.at)
    assert asked == set(PEERS)
    assert only(effects, Think)
    assert only(engine.handle(MessageReceived("s-1", question.payload), cell, wake.at), Send)


def test_a_view_that_comes_after_the_time_out_is_still_the_first() -> None:
    peer, engine, cell = a_murmuration(), a_murmuration(), a_cell(2)
    taken = only(place(peer, cell, whole("a", 1, 50), 0), Enqueue).machines.tolist()
    asked = engine.handle(Started(again=True), cell, 0)
    question, wake = only(asked, Send), only(asked, WakeMe)
    answer = only(peer.handle(MessageReceived("s-0", question.payload), cell, 0), Send)
    engine.handle(TimerFired(wake.name), cell, wake.at)
    engine.handle(MessageReceived("s-1", answer.payload), cell, wake.at)
    # The second answer comes to one that has begun.
    engine.handle(MessageReceived("s-2", answer.payload), cell, wake.at)
    assert only(place(engine, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist() != taken


def test_a_view_is_handed_out_after_other_work() -> None:
    peer, cell = a_murmuration(answer_delay=3_000_000), a_cell(2)
    wake = only(peer.handle(MessageReceived("s-1", AskWaits()), cell, 0), WakeMe)
    assert 0 <= wake.at <= 3_000_000
    assert only(peer.handle(TimerFired(wake.name), cell, wake.at), Send).peers == ("s-1",)


def test_a_comparison_repairs_what_was_lost_on_either_side() -> None:
    mine, theirs, cell = a_murmuration(), a_murmuration(), a_cell(6)
    # Neither learns of the other's placements, and one end is known on one side only.
    placed = only(place(mine, cell, whole("a", 3, 50), 0), Enqueue)
    only(place(theirs, cell, whole("b", 2, 20), 1), Enqueue)
    end(mine, placed, 1, cell.shape(Resources(4_000, GIB)), 50)
    sides = {"mine": mine, "theirs": theirs}
    messages = [("mine", mine.handle(TimerFired("compare"), cell, SECOND))]
    while messages:
        sender, effects = messages.pop()
        receiver = "theirs" if sender == "mine" else "mine"
        for effect in effects:
            if isinstance(effect, Send):
                event = MessageReceived(sender, effect.payload)
                messages.append((receiver, sides[receiver].handle(event, cell, SECOND)))
    assert mine.waits.work().tolist() == theirs.waits.work().tolist()
    assert mine.waits.work().sum() == 2 * 50 * SECOND + 2 * 20 * SECOND
    assert mine.waits.digest == theirs.waits.digest


def test_schedulers_that_agree_exchange_one_message() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    digest = only(engine.handle(TimerFired("compare"), cell, SECOND), Send).payload
    assert a_murmuration().handle(MessageReceived("s-0", digest), cell, SECOND) == []


def test_comparisons_end_when_nothing_has_changed_since_the_last_one() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    place(engine, cell, whole("a", 1, 50), 0)
    first, second = (engine.handle(TimerFired("compare"), cell, n * SECOND) for n in (1, 2))
    only(first, WakeMe)
    assert [type(effect) for effect in second] == [Send]


def test_a_machine_whose_queue_was_full_is_left_alone_until_something_ends_there() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    first = whole("a", 2, 50)
    placed = only(place(engine, cell, first, 0), Enqueue)
    lost = TasksLost(first.job, 0, placed.tasks[:1], placed.machines[:1], Why.QUEUE_FULL)
    thinking = only(engine.handle(lost, cell, 0), Think)
    again = only(engine.handle(DecisionDue(thinking.token), cell, 0), Enqueue)
    assert again.machines.tolist() == placed.machines[1:].tolist()
    other = TasksLost(first.job, 0, again.tasks, again.machines, Why.QUEUE_FULL)
    thinking = only(engine.handle(other, cell, 0), Think)
    effects = engine.handle(DecisionDue(thinking.token), cell, 0)
    assert only(effects, Explain)
    wake = only(effects, WakeMe)
    end(engine, Enqueue(placed.tasks[1:], placed.machines[1:]), 1, 0, 50)
    thinking = only(engine.handle(TimerFired(wake.name), cell, wake.at), Think)
    third = only(engine.handle(DecisionDue(thinking.token), cell, wake.at), Enqueue)
    assert third.machines.tolist() == placed.machines[1:].tolist()


def test_a_task_waits_for_a_machine_near_its_data_as_long_as_that_is_worth() -> None:
    cell = Cell(("cpu", "memory"), {})
    for at in range(3):
        near = Machine(f"m{at}", Resources(4_000, GIB), {"rack": "r1" if at == 1 else "r0"})
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(near),)))
    wants = job("a", 4, cpu=4_000, prefers={"rack": "r1"})
    engine = a_murmuration(locality=25 * SECOND)
    machines = only(place(engine, cell, wants, 0), Enqueue).machines.tolist()
    # Waits of 0, 10 and 20 s are worth it, 30 s is not.
    assert machines[:3] == [1, 1, 1]
    assert machines[3] != 1
    indifferent = only(place(a_murmuration(), cell, wants, 0), Enqueue)
    assert sorted(indifferent.machines.tolist()[:3]) == [0, 1, 2]


def zoned(*zones: str) -> Cell:
    cell = Cell(("cpu", "memory"), {})
    for at, zone in enumerate(zones):
        machine = Machine(f"m{at}", Resources(4_000, GIB), {"zone": zone})
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    return cell


@pytest.mark.parametrize("wish", ["requires", "prefers"])
def test_jobs_that_want_different_machines_are_told_apart(wish: str) -> None:
    engine, cell = a_murmuration(locality=1_000 * SECOND), zoned("a", "b", "c")
    for number, zone in enumerate("bca"):
        wants = job(f"j{number}", 2, cpu=4_000, **{wish: {"zone": zone}})
        placed = only(place(engine, cell, wants, number), Enqueue)
        assert placed.machines.tolist() == ["abc".index(zone)] * 2


def test_what_machines_have_is_learnt_again_when_one_changes() -> None:
    engine, cell = a_murmuration(), zoned("a", "b")
    first = only(place(engine, cell, job("j0", 1, requires={"zone": "b"}), 0), Enqueue)
    assert first.machines.tolist() == [1]
    swap = (RelabelMachine(0, {"zone": "b"}), RelabelMachine(1, {"zone": "a"}))
    cell.commit(Transaction(OPERATOR, machines=swap))
    engine.handle(MachineChanged(0), cell, 0)
    second = only(place(engine, cell, job("j1", 1, requires={"zone": "b"}), 1), Enqueue)
    assert second.machines.tolist() == [0]


def test_an_explanation_names_a_second_machine_only_if_there_is_one() -> None:
    alone = only(place(a_murmuration(), a_cell(1), whole("a", 1, 10), 0), Enqueue).explanation
    assert (alone.second, alone.second_score) == (None, None)
    placed = only(place(a_murmuration(), a_cell(2), whole("a", 1, 10), 0), Enqueue)
    assert placed.explanation.second == 1 - placed.machines[0]


@pytest.mark.parametrize(("gossip", "messages"), [("job", 1), ("task", 5)])
def test_gossip_is_one_message_a_job_or_one_a_task(gossip: str, messages: int) -> None:
    engine, cell = a_murmuration(gossip=gossip), a_cell(5)
    update = only(place(engine, cell, whole("a", 5, 1), 0), Send).payload
    assert update.messages == messages


def test_messages_per_job_are_as_the_paper_counts_them() -> None:
    # (1 + f) x S - 1 when batched, f x (2 S - 1) when not; ends are f x S of either.
    for gossip, expected in (("job", 4), ("task", 4 * 6)):
        spec = scenario(
            "murmuration",
            [job("a", 6, cpu=1_000, seconds=1)],
            replicas=5,
            settings={"gossip": gossip, "anti_entropy": 0},
        )
        world = SimulatedWorld(spec, {"murmuration": Murmuration})
        world.run()
        assert world.host.links.counts["sent"] == expected
        assert sum(scheduler.messages_sent for scheduler in world.host.schedulers) == expected


def test_running_times_are_learnt_from_jobs_of_the_same_name() -> None:
    learner = Learner(0.5)
    short, long = (job(f"{name}-1", 6, seconds=1) for name in ("short", "long"))
    assert learner.estimate(short.job, 0) is None
    assert learner.estimate(long.job, 1) is None
    for number, time in ((0, 10), (1, 500)):
        tasks = first_tasks(number, 6)
        learner.learn(tasks, np.full(6, time, np.int64))
    assert learner.estimate(job("short-2", 1).job, 2) == 10
    assert learner.estimate(job("long-2", 1).job, 3) == 500
    # Of another name there is only what all have in common.
    assert learner.estimate(job("new-1", 1).job, 4) in range(10, 501)
    learner.learn(first_tasks(2, 1), np.array([20], np.int64))
    assert learner.figures(*NONE_TO_COME) == {
        "estimates": 1.0,
        "estimate_error_p50": 0.5,
        "estimate_error_p90": 0.5,
    }


def learnt(times: list[int], quantile: float = 0.5, owner: str = "o") -> Learner:
    """A learner after one job of an owner, called a-1."""
    learner = Learner(quantile)
    learner.estimate(job("a-1", len(times), owner=owner).job, 0)
    learner.learn(first_tasks(0, len(times)), np.array(times, np.int64))
    return learner


@pytest.mark.parametrize(("count", "expected"), [(4, None), (5, 7)])
def test_five_running_times_are_enough_for_an_estimate(count: int, expected: int | None) -> None:
    assert learnt([7] * count).estimate(job("a-2", 1, owner="o").job, 1) == expected


def test_jobs_of_the_same_name_but_other_owners_are_not_taken_for_the_same() -> None:
    learner = learnt([10] * 5, owner="one")
    learner.estimate(job("a-1", 5, owner="two").job, 1)
    learner.learn(first_tasks(1, 5), np.full(5, 90, np.int64))
    assert learner.estimate(job("a-2", 1, owner="one").job, 2) == 10
    assert learner.estimate(job("a-2", 1, owner="two").job, 3) == 90
    # Another job of the first owner is like that owner's, not like all.
    assert learner.estimate(job("b-1", 1, owner="one").job, 4) == 10


def test_estimates_are_from_the_latest_thousand_running_times() -> None:
    learner = learnt([5] * 600 + [9] * 999, quantile=0.0)
    assert learner.estimate(job("a-2", 1, owner="o").job, 1) == 5
    learner = learnt([5] * 600 + [9] * 1_000, quantile=0.0)
    assert learner.estimate(job("a-2", 1, owner="o").job, 1) == 9


def test_a_job_all_of_whose_tasks_have_ended_is_not_learnt_from_again() -> None:
    learner = learnt([10] * 5, quantile=1.0)
    learner.learn(first_tasks(0, 5), np.full(5, 1_000, np.int64))
    assert learner.estimate(job("a-2", 1, owner="o").job, 1) == 10


def test_the_error_of_estimates_is_relative_to_the_running_time() -> None:
    learner = learnt([100] * 5)
    learner.estimate(job("a-2", 11, owner="o").job, 1)
    learner.learn(first_tasks(1, 11), np.array([100] * 8 + [50, 200, 200], np.int64))
    figures = learner.figures(*NONE_TO_COME)
    assert figures["estimates"] == 11
    assert figures["estimate_error_p50"] == 0
    assert figures["estimate_error_p90"] == 0.5


class Scraped(Murmuration):
    """Is asked for its figures before every event."""

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        self.figures()
        return super().handle(event, view, now)


@pytest.mark.parametrize(
    "gossip",
    [{}, {"t_update": 2_000}, {"update_delay": 2 * SECOND}, {"as_published": True}],
)
def test_asking_for_figures_changes_no_decision(gossip: dict[str, int]) -> None:
    jobs = [
        job(f"{'slow' if i % 4 == 0 else 'fast'}-{i}", 4, cpu=4_000, seconds=7 if i % 4 == 0 else 2,
            submit=i / 4)
        for i in range(60)
    ]  # fmt: skip
    settings = {"estimates": "learnt", **gossip}
    spec = scenario("murmuration", jobs, replicas=2, settings=settings)
    asked, left_alone = (ConformanceRun(engine, spec) for engine in (Scraped, Murmuration))
    assert asked.digest == left_alone.digest
    for one, other in zip(
        asked.world.host.schedulers, left_alone.world.host.schedulers, strict=True
    ):
        told = one.figures()
        assert told == other.figures()
        assert told["estimates"] > 0
        # They include what has been reported but is not due yet.
        assert isinstance(one.engine, Scraped)
        one.engine._view.settle(LARGEST)
        assert one.figures() == told


def test_learnt_estimates_come_close_to_given_ones_and_report_their_error() -> None:
    jobs = [
        job(f"{'slow' if i % 4 == 0 else 'fast'}-{i}", 4, cpu=4_000, seconds=20 if i % 4 == 0 else 2,
            submit=i)
        for i in range(80)
    ]  # fmt: skip

    def run(**settings: Any) -> Any:
        spec = scenario("murmuration", jobs, replicas=1, settings=settings)
        return execute(spec, None)

    told, learnt = run(), run(estimates="learnt")
    blind = run(estimates="learnt", quantile=1.0)
    assert told.schedulers[0].figures == {}
    figures = learnt.schedulers[0].figures
    assert figures["estimates"] > 200
    assert figures["estimate_error_p50"] < 0.05
    assert learnt.jct.mean < 1.2 * told.jct.mean
    assert blind.schedulers[0].figures["estimates"] > 0


def test_as_published_tasks_leave_one_by_one_while_the_job_is_decided_on() -> None:
    engine, cell = a_murmuration(as_published=True, t_job=70, t_task=3), a_cell(4)
    effects = engine.handle(submitted(job("a", 5), 0), cell, 0)
    assert only(effects, Think).duration == 70 + 5 * 3
    pace = only(effects, Enqueue).pace
    assert (pace.first, pace.every) == (73, 3)
    plain = a_murmuration(t_job=70, t_task=3)
    thinking = only(plain.handle(submitted(job("a", 5), 0), cell, 0), Think)
    assert thinking.duration == 70 + 5 * 3
    assert only(plain.handle(DecisionDue(thinking.token), cell, 0), Enqueue).pace is None


@pytest.mark.parametrize(
    "settings",
    [
        {"t_update": 2 * SECOND},
        # More tasks wait for a queue than can be tried in the pause between two attempts.
        {"t_update": SECOND, "t_task": SECOND // 5, "decide": "task"},
    ],
)
def test_attempts_in_vain_leave_time_to_read_that_a_queue_has_room(
    settings: dict[str, Any],
) -> None:
    jobs = [job("first", 2, seconds=10), job("later", 6, seconds=1, submit=5)]
    spec = scenario(
        "murmuration",
        jobs,
        replicas=1,
        settings=settings,
        cell=cell_of(1, cpu=1_000),
        machines=MachineModel(limit=1),
        horizon=200 * SECOND,
    )
    world = SimulatedWorld(spec, ENGINES)
    world.run()
    assert world.runtime.open_tasks == 0
