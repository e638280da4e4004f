"""Answers of agents elsewhere, claims that come too late in an atomic transaction, messages, and
observations."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_bench import Bench
from scripted_engine import Scripted
from serial_attempts import cell_of, take, tasks_of

from argosy.cell import View
from argosy.engines.api import Capabilities
from argosy.host import records
from argosy.host.late_claims import drop_late_claims, with_refusals
from argosy.host.mail import Mail
from argosy.host.remote_desks import RemoteCommit, RemoteDesks, RemoteSample
from argosy.model.effects import Commit, Effect, Sample, Send
from argosy.model.errors import EngineFault
from argosy.model.events import Committed, Event, MessageReceived, SampleReturned, UsageObserved
from argosy.model.explanations import Refusal, Why
from argosy.model.messages import Note
from argosy.model.resources import Resources
from argosy.model.transactions import Claims, Transaction
from argosy.testing.builders import GIB

ROOM = Resources(1_000, GIB)
WHO: Any = SimpleNamespace(name="s", label="s (vela)", epoch=0, messages_sent=0)


class Remote:
    """Desks over a cell of two machines with two cores each; what they post, record and conclude."""

    def __init__(self) -> None:
        self.cell = cell_of(2, 2)
        self.posted: list[Any] = []
        self.recorded: list[Any] = []
        self.concluded: list[Any] = []
        self.asked: list[Any] = []
        host: Any = SimpleNamespace(
            setup=SimpleNamespace(clusters=(SimpleNamespace(name="north"),)),
            runtime=SimpleNamespace(now=5),
            decisions=SimpleNamespace(input=self.recorded.append),
            view=self.cell.view(),
            cell=self.cell,
            post=lambda now, scheduler, event: self.posted.append((now, event)),
        )
        effects: Any = SimpleNamespace(
            judge=lambda scheduler, transaction: self.cell.commit(transaction),
            conclude=lambda *told: self.concluded.append(told),
        )
        agents: Any = SimpleNamespace(
            sample=lambda name, effect: self.asked.append((name, effect)),
            commit=lambda name, effect: self.asked.append((name, effect)),
        )
        self.desks = RemoteDesks(effects, host, agents)

    def commit(self, machine: int = 0) -> Commit:
        """Of one task, with the other machine as its alternative."""
        shape = np.array([self.cell.shape(ROOM)], np.int32)
        machines = np.array([machine], np.int32)
        others = np.array([[1 - machine]], np.int32)
        versions = self.cell.versions(machines)
        claims = Claims(tasks_of(0, 0), machines, shape, versions, alternatives=others)
        effect = Commit(7, Transaction("s", claims), cluster="north")
        self.desks.commit(WHO, effect, 0)
        return effect


def test_a_sample_is_passed_on_with_all_that_the_agent_said() -> None:
    remote = Remote()
    assert "north" in remote.desks
    assert "south" not in remote.desks
    effect = Sample(ROOM, 2, 7, cluster="north")
    remote.desks.sample(WHO, effect, 0)
    assert remote.asked == [("s", effect)]
    answer = RemoteSample([1, 0], [[5, 6], [7, 8]], [[1, 2], [3, 4]], 9, {"down": 3})
    remote.desks.sampled(WHO, 7, answer)
    [(now, event)] = remote.posted
    assert isinstance(event, SampleReturned)
    assert (now, event.token, event.cluster, event.drawn) == (5, 7, "north", 9)
    assert event.machines.tolist() == [1, 0]
    assert (event.scores.tolist(), event.free.tolist()) == ([[5, 6], [7, 8]], [[1, 2], [3, 4]])
    assert event.versions.tolist() == remote.cell.versions(event.machines).tolist()
    assert (event.ruled_out, event.reached) == ({"down": 3}, True)
    assert remote.recorded == [
        records.SampleAnswerRecord(
            5, "s", 7, [1, 0], [[5, 6], [7, 8]], [[1, 2], [3, 4]], 9, {"down": 3}
        )
    ]


def test_a_claim_is_made_where_the_agent_has_made_it() -> None:
    remote = Remote()
    effect = remote.commit()
    assert remote.asked == [("s", effect)]
    assert remote.desks.committed(WHO, 7, RemoteCommit(machine=1))
    assert remote.cell.machine_of(int(tasks_of(0, 0)[0])) == 1
    assert remote.cell.assumed().tolist() == tasks_of(0, 0).tolist()
    [(now, event)] = remote.posted
    assert isinstance(event, Committed)
    assert (now, event.token, event.outcome.all_accepted, event.reached) == (5, 7, True, True)
    [(who, concluded, _, outcome, at)] = remote.concluded
    assert (who, concluded, at) == (WHO, effect, 5)
    assert outcome is event.outcome
    assert remote.recorded == [records.CommitAnswerRecord(5, "s", 7, 1)]
    # What is answered twice is heard once.
    assert not remote.desks.committed(WHO, 7, RemoteCommit(machine=1))
    assert len(remote.posted) == 1


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("chosen", [0, 1, -1])
def test_whichever_machine_the_agent_chose_has_the_claim(first: int, chosen: int) -> None:
    """The first of its candidates if it names none."""
    remote = Remote()
    remote.commit(first)
    assert remote.desks.committed(WHO, 7, RemoteCommit(machine=chosen))
    expected = first if chosen < 0 else chosen
    assert remote.cell.machine_of(int(tasks_of(0, 0)[0])) == expected


def test_a_machine_grows_if_the_agent_has_found_room_that_is_not_known_here() -> None:
    remote = Remote()
    take(remote.cell, 1, 2)
    remote.commit()
    assert remote.desks.committed(WHO, 7, RemoteCommit(machine=1))
    assert remote.cell.capacity(np.array([1], np.int32))[0].tolist() == [3_000, 64 * GIB]
    assert remote.cell.free(np.array([1], np.int32))[0][0] == 0
    assert remote.cell.capacity(np.array([0], np.int32))[0][0] == 2_000


@pytest.mark.parametrize("reached", [True, False])
def test_a_refusal_of_an_agent_claims_nothing(reached: bool) -> None:
    remote = Remote()
    remote.commit()
    answer = RemoteCommit(refusal=Refusal(Why.NO_ROOM, machine=0, dimension="cpu"), reached=reached)
    assert not remote.desks.committed(WHO, 7, answer)
    assert remote.cell.claims() == 0
    [(_, event)] = remote.posted
    assert (event.outcome.all_accepted, event.reached) == (False, reached)
    assert [Why(why) for why in event.outcome.whys.tolist()] == [Why.NO_ROOM]


def test_nothing_of_an_atomic_transaction_is_left_if_one_claim_is_late() -> None:
    rows = np.arange(2, dtype=np.int32)
    claims = Claims(tasks_of(0, 0, 1), rows, rows * 0, rows.astype(np.uint32))
    settled = {"releases": tasks_of(1, 0), "confirms": tasks_of(2, 0), "forgets": tasks_of(3, 0)}
    whole = Transaction("s", claims, atomic=True, **settled)  # type: ignore[arg-type]
    late = np.array([0, int(Why.CANCELLED)], np.uint8)
    left = drop_late_claims(whole, late)
    assert left.claims is not None
    assert len(left.claims.tasks) == 0
    assert (left.releases, left.confirms, left.forgets) == (None, None, None)
    nothing = cell_of(1).commit(left)
    outcome = with_refusals(whole, late, nothing)
    assert outcome.accepted.tolist() == [False, False]
    assert [Why(why) for why in outcome.whys.tolist()] == [Why.TOGETHER, Why.CANCELLED]
    assert outcome.machines.tolist() == [0, 1]
    for refused, task in (
        (outcome.unreleased, tasks_of(1, 0)),
        (outcome.unconfirmed, tasks_of(2, 0)),
        (outcome.unforgotten, tasks_of(3, 0)),
    ):
        assert refused == (Refusal(Why.TOGETHER, task=int(task[0])),)
    # Others keep what they settle.
    each = Transaction("s", claims, **settled)  # type: ignore[arg-type]
    kept = drop_late_claims(each, late)
    assert kept.claims is not None
    assert kept.claims.tasks.tolist() == tasks_of(0, 0).tolist()
    assert kept.releases is settled["releases"]


class TestMessages:
    def mail(self, *, has_details: bool) -> tuple[Mail, list[Any], list[Any]]:
        delivered: list[Any] = []
        details: list[Any] = []
        peers = {name: SimpleNamespace(name=name) for name in "pq"}
        host: Any = SimpleNamespace(
            runtime=None,
            links=None,
            decisions=SimpleNamespace(has_details=has_details, detail=details.append),
            scheduler=peers.get,
            deliver=lambda sender, peer, event, now: delivered.append(
                (sender, peer.name, event, now)
            ),
        )
        return Mail(host), delivered, details

    @pytest.mark.parametrize("has_details", [False, True])
    def test_every_peer_gets_the_message(self, has_details: bool) -> None:
        mail, delivered, details = self.mail(has_details=has_details)
        sender: Any = SimpleNamespace(name="s", label="s", messages_sent=3)
        note = Note("hello", 5)
        mail.send(sender, Send(("p", "q"), note), 9)
        event = MessageReceived("s", note)
        assert delivered == [("s", "p", event, 9), ("s", "q", event, 9)]
        assert sender.messages_sent == 5
        expected = [records.SentRecord(9, "s", name, "Note") for name in "pq"]
        assert details == (expected if has_details else [])

    def test_what_cannot_be_read_back_is_not_sent(self) -> None:
        mail, delivered, _ = self.mail(has_details=False)
        wrong: Any = {"a": {1: 2}}
        with pytest.raises(EngineFault, match="a JSON value"):
            mail.send(WHO, Send(("p",), Note("n", wrong)), 0)
        assert delivered == []


@pytest.mark.parametrize("is_alive", [True, False])
@pytest.mark.parametrize("observations", [True, False])
def test_observations_are_for_those_who_take_them_and_are_up(
    is_alive: bool, observations: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[UsageObserved] = []

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, UsageObserved):
            heard.append(event)
        return ()

    monkeypatch.setattr(Scripted, "capabilities", Capabilities(observations=observations))
    bench = Bench(script)
    if not is_alive:
        bench.host.schedulers[0].crash(0)
    bench.host.membership.observe("cpu", [2, 0], [500, 700])
    if not is_alive:
        bench.host.schedulers[0].start()
    bench.go(1)
    assert len(heard) == (is_alive and observations)
    for event in heard:
        assert (event.resource, event.machines.tolist(), event.used.tolist()) == (
            "cpu",
            [2, 0],
            [500, 700],
        )
