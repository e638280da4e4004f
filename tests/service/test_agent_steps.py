"""An agent asked directly: whose reservations and commits are whose, what is counted, and when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from live_bench import LiveBench, cluster, job

from argosy.api.agent_values import (
    CommitOrder,
    CommitResult,
    ReservationRequest,
    SampleRequest,
)
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.service import agent as agent_module
from argosy.service.agent import AgentOptions, LiveAgent, PlainTerms
from argosy.service.callers import Caller, TokenTable
from argosy.service.problems import CommitConflict, Conflict, Forbidden, NotFound, TooMany
from argosy.worlds.local.world import LocalWorld

Make = Callable[..., LiveBench]

MIB = 2**20
WHOLE = {"cpu": 1000, "memory": 64 * MIB}


def caller(name: str, **limits: int) -> Caller:
    return Caller(TokenTable(name=name, token="x" * 16, **limits))  # type: ignore[arg-type]


ANN, BOB = caller("ann"), caller("bob", reservations=2)


class Asked:
    """The agent of a server, and commits in one line."""

    def __init__(self, live: LiveBench) -> None:
        self.live = live
        assert live.server.agent is not None
        self.agent: LiveAgent = live.server.agent
        self.counts = self.agent.counts

    @property
    def world(self) -> LocalWorld:
        return self.live.server.cluster.world

    def job(self, name: str, cpu: str = "250m", **keys: Any) -> Job:
        document = job("sleep 1000", id=name, request={"cpu": cpu, "memory": "64MiB"}, **keys)
        return self.live.server.backend.submissions.read(self.world, document, "")

    async def ask(
        self,
        who: Caller,
        name: str,
        *machines: str,
        key: str = "",
        cpu: str = "250m",
        digest: bytes = b"same",
        keys: dict[str, Any] | None = None,
        **order: Any,
    ) -> tuple[CommitResult, bool]:
        asked = CommitOrder(job={}, machines=machines, **order)
        made = self.job(name, cpu, **keys or {})
        return await self.agent.commit(who, key or name, asked, made, digest)

    def commit(self, who: Caller, name: str, *machines: str, **order: Any) -> Any:
        return self.live.run(self.ask(who, name, *machines, **order))

    def reserve(self, who: Caller, machine: str, cpu: int = 100, **more: int) -> str:
        asked = ReservationRequest(machine=machine, request={"cpu": cpu, "memory": 0}, **more)
        return self.agent.reserve(who, asked).id

    def cancel(self, *names: str) -> None:
        for name in names:
            self.live.cancel(name)


@pytest.fixture
def asked(live: LiveBench) -> Asked:
    return Asked(live)


class TestReservations:
    def test_they_have_an_owner_a_lease_and_a_limit(self, asked: Asked) -> None:
        agent = asked.agent
        first = asked.reserve(BOB, "m0", lease=20_000_000)
        other = asked.reserve(ANN, "m1")
        second = asked.reserve(BOB, "m2", cpu=200)
        with pytest.raises(TooMany) as caught:
            asked.reserve(BOB, "m0")
        assert caught.value.problem == "bob has 2 open reservations"
        assert caught.value.expected == "at most 2"
        mine = agent.reservations(BOB)
        assert [(each.id, each.machine, each.request) for each in mine] == [
            (first, "m0", {"cpu": 100}),
            (second, "m2", {"cpu": 200}),
        ]
        assert 10_000_000 < mine[0].lease <= 20_000_000
        assert 0 < mine[1].lease <= 10_000_000
        assert agent.open_reservations == 3
        with pytest.raises(Forbidden) as refused:
            agent.unreserve(BOB, other)
        assert refused.value.problem == f"reservation {other} is not of bob"
        agent.unreserve(BOB, first)
        asked.reserve(BOB, "m0")
        with pytest.raises(NotFound, match=f"there is no reservation '{first}'") as gone:
            agent.unreserve(BOB, first)
        assert gone.value.hint == "it may have been used, or have expired"
        for each in (*agent.reservations(BOB), *agent.reservations(ANN)):
            agent.unreserve(BOB if each.id != other else ANN, each.id)
        assert agent.open_reservations == 0

    def test_a_lease_ends_at_its_last_moment(
        self, asked: Asked, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [1_000.0]
        monkeypatch.setattr(agent_module.time, "monotonic", lambda: now[0])
        before = asked.counts.expired
        name = asked.reserve(ANN, "m0", lease=5_000_000)
        long = asked.reserve(ANN, "m1", lease=90_000_000)
        now[0] = 1_004.5
        assert [(each.id, each.lease) for each in asked.agent.reservations(ANN)] == [
            (name, 500_000),
            (long, 55_500_000),
        ]
        now[0] = 1_005.0
        assert [each.id for each in asked.agent.reservations(ANN)] == [long]
        assert asked.counts.expired - before == 1
        now[0] = 1_060.0
        assert asked.agent.open_reservations == 0
        assert asked.counts.expired - before == 2

    def test_one_that_does_not_fit_is_a_conflict_and_leaves_nothing(self, asked: Asked) -> None:
        before = asked.counts.conflicts
        held = asked.reserve(ANN, "m3", cpu=700)
        with pytest.raises(CommitConflict) as caught:
            asked.reserve(BOB, "m3", cpu=301)
        assert (caught.value.refused.machine, caught.value.refused.lacking) == ("m3", 1)
        assert asked.counts.conflicts - before == 1
        assert asked.agent.open_reservations == 1
        fits = asked.reserve(BOB, "m3", cpu=300)
        asked.agent.unreserve(BOB, fits)
        asked.agent.unreserve(ANN, held)
        with pytest.raises(NotFound, match="unknown machine 'm9'") as unknown:
            asked.reserve(BOB, "m9")
        assert unknown.value.field == "machine"

    def test_a_commit_for_another_machine_leaves_it_alone(self, asked: Asked) -> None:
        held = asked.reserve(ANN, "m0", cpu=900)
        assert asked.commit(ANN, "there", "m1", reservation=held)[0].machine == "m1"
        assert [each.id for each in asked.agent.reservations(ANN)] == [held]
        with pytest.raises(Forbidden):
            asked.commit(BOB, "stranger", "m0", reservation=held)
        with pytest.raises(CommitConflict):
            asked.commit(ANN, "without", "m0")
        assert asked.commit(ANN, "here", "m0", cpu="900m", reservation=held)[1]
        assert asked.agent.reservations(ANN) == []
        asked.cancel("there", "here")

    def test_the_first_who_came_wins_also_against_a_commit(self, asked: Asked) -> None:
        """A commit takes the turn of its reservation, so what was reserved later does not count."""
        first = asked.reserve(ANN, "m0", cpu=600)
        later = asked.reserve(BOB, "m0", cpu=400)
        with pytest.raises(CommitConflict):
            asked.commit(ANN, "all", "m0", cpu="1", reservation=first, reservations="all")
        first = asked.reserve(ANN, "m0", cpu=600)
        asked.agent.unreserve(BOB, later)
        later = asked.reserve(BOB, "m0", cpu=400)
        assert asked.commit(ANN, "early", "m0", cpu="1", reservation=first)[1]
        asked.agent.unreserve(BOB, later)
        asked.cancel("early")


class TestCommits:
    def test_a_commit_is_counted_once_however_often_it_is_repeated(self, asked: Asked) -> None:
        before = vars(asked.counts).copy()

        def grown() -> dict[str, int]:
            now = vars(asked.counts)
            return {name: now[name] - before[name] for name in now if now[name] != before[name]}

        assert asked.commit(ANN, "one", "m0") == (
            CommitResult(key="one", job="one", machine="m0"),
            True,
        )
        assert grown() == {"commits": 1}
        assert asked.commit(ANN, "one", "m0") == (
            CommitResult(key="one", job="one", machine="m0"),
            False,
        )
        assert grown() == {"commits": 1, "repeated": 1}
        with pytest.raises(Conflict) as caught:
            asked.commit(ANN, "one", "m0", digest=b"other")
        assert caught.value.problem == "the key 'one' was used for another commit"
        assert caught.value.field == "Idempotency-Key"
        assert grown() == {"commits": 1, "repeated": 1}
        with pytest.raises(CommitConflict):
            asked.commit(ANN, "two", "m8", "m9")
        assert grown() == {"commits": 1, "repeated": 1, "conflicts": 2}
        with pytest.raises(CommitConflict):
            asked.commit(ANN, "two", "m8", "m9")
        assert grown() == {"commits": 1, "repeated": 2, "conflicts": 2}
        with pytest.raises(Conflict, match="the key 'two' was used for another commit"):
            asked.commit(ANN, "two", "m8", "m9", digest=b"other")
        released = asked.live.run(asked.agent.release(ANN, "one"))
        assert (released.key, released.job) == ("one", "one")
        assert grown() == {"commits": 1, "repeated": 2, "conflicts": 2, "released": 1}
        again = asked.live.run(asked.agent.release(ANN, "one"))
        assert (again.key, again.job) == ("one", None)
        assert grown()["released"] == 1
        with pytest.raises(Conflict) as used:
            asked.commit(ANN, "one", "m0")
        assert (used.value.problem, used.value.expected) == (
            "the commit 'one' was released",
            "a new key",
        )

    def test_a_repeated_answer_tells_the_key_from_the_job(self, asked: Asked) -> None:
        result = CommitResult(key="k", job="thing", machine="m0")
        assert asked.commit(ANN, "thing", "m0", key="k") == (result, True)
        assert asked.commit(ANN, "thing", "m0", key="k") == (result, False)
        released = asked.live.run(asked.agent.release(ANN, "k"))
        assert (released.key, released.job) == ("k", "thing")

    def test_commits_at_one_time_with_one_key_are_one_and_must_be_the_same(
        self, asked: Asked
    ) -> None:
        async def at_once() -> list[Any]:
            return await asyncio.gather(
                asked.ask(ANN, "tw", "m0"),
                asked.ask(ANN, "tw", "m0"),
                asked.ask(ANN, "tw", "m0", digest=b"other"),
                asked.ask(BOB, "tw", "m0"),
                return_exceptions=True,
            )

        before = asked.counts.repeated
        first, second, third, fourth = asked.live.run(at_once())
        assert (first[1], second[1]) == (True, False)
        assert first[0] == second[0]
        assert isinstance(third, Conflict)
        # The key is Bob's own, but the job is there.
        assert isinstance(fourth, Exception)
        assert asked.counts.repeated - before == 1
        assert asked.agent._under_way == {}
        assert asked.agent._locks == {}
        asked.cancel("tw")

    def test_keys_are_those_of_their_caller(self, asked: Asked) -> None:
        for who, name in ((ANN, "a1"), (ANN, "a2"), (ANN, "b1"), (BOB, "a3")):
            asked.commit(who, f"{who.name}-{name}", "m2", "m3", key=name, cpu="100m")
        agent = asked.agent

        def keys(who: Caller, after: str = "", limit: int = 9) -> list[str]:
            return [each.key for each in agent.open_commits(who, after, limit)]

        assert keys(ANN) == ["a1", "a2", "b1"]
        assert keys(BOB) == ["a3"]
        assert keys(ANN, after="a1") == ["a2", "b1"]
        assert keys(ANN, after="a") == ["a1", "a2", "b1"]
        assert keys(ANN, limit=2) == ["a1", "a2"]
        found = agent.open_commits(BOB, "", 9)
        assert found == [CommitResult(key="a3", job="bob-a3", machine="m2")]
        assert agent.job_of(ANN, "a2") == "ann-a2"
        with pytest.raises(NotFound, match="there is no commit 'a2' of bob"):
            agent.job_of(BOB, "a2")
        with pytest.raises(Conflict, match="there is a job ann-a1 already") as caught:
            asked.commit(BOB, "ann-a1", "m2", key="new")
        assert (caught.value.field, caught.value.expected) == ("job.id", "a new id")
        asked.cancel("ann-a1")
        assert keys(ANN) == ["a2", "b1"]
        asked.cancel("ann-a2", "ann-b1", "bob-a3")

    @pytest.mark.parametrize(("why", "tries"), [(Why.NO_ROOM, 3), (Why.JOB_LIMIT, 1)])
    def test_the_next_machine_is_tried_if_another_one_may_do(
        self, asked: Asked, monkeypatch: pytest.MonkeyPatch, why: Why, tries: int
    ) -> None:
        tried: list[str] = []

        async def refuse(who: Caller, stored: str, machine: str, *more: object) -> Refusal:
            tried.append(machine)
            return Refusal(why)

        monkeypatch.setattr(asked.agent, "_try", refuse)
        before = asked.counts.conflicts
        with pytest.raises(CommitConflict) as caught:
            asked.commit(ANN, "a", "m0", "m1", "m2", key=why.name)
        assert tried == ["m0", "m1", "m2"][:tries]
        assert caught.value.refused.machine == tried[-1]
        assert asked.counts.conflicts - before == tries

    def test_a_release_waits_for_the_commit_that_it_undoes(self, asked: Asked) -> None:
        async def both() -> tuple[Any, Any]:
            begun = asyncio.ensure_future(asked.ask(ANN, "brief", "m0"))
            while not asked.agent._under_way:
                await asyncio.sleep(0)
            released = await asked.agent.release(ANN, "brief")
            return await begun, released

        (made, is_new), released = asked.live.run(both())
        assert (made.machine, is_new) == ("m0", True)
        assert released.job == "brief"
        assert asked.live.over("brief")["state"] == "cancelled"


class TestSamples:
    def test_what_was_drawn_is_counted(self, asked: Asked) -> None:
        before = vars(asked.counts).copy()
        held = asked.reserve(ANN, "m1", cpu=900)
        drawn, names = asked.agent.sample(SampleRequest(request=WHOLE, share=1.0))
        assert sorted(names) == ["m0", "m2", "m3"]
        assert drawn.drawn == 4
        counts = asked.counts
        assert counts.samples - before["samples"] == 1
        assert counts.drawn - before["drawn"] == 4
        assert counts.eligible - before["eligible"] == 3
        assert counts.sampling_time > before["sampling_time"]
        asked.agent.unreserve(ANN, held)

    def test_a_limit_of_time_ends_it(self, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
        now = iter(range(1, 100))
        monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))

        def drawn(limit: int) -> int:
            asking = SampleRequest(
                request={"cpu": 9_000}, count=1, strategy="RoundRobin", limit=limit
            )
            return asked.agent.sample(asking)[0].drawn

        # Every look at the clock is a second later; the first one begins.
        assert drawn(0) == 4
        assert drawn(2_000_000) == 1
        assert drawn(3_000_000) == 2
        assert drawn(1_000_000) == 0

    def test_plug_ins_know_what_the_question_says_of_other_places(self, asked: Asked) -> None:
        def found(near: dict[str, str], **told: Any) -> int:
            demands = {**near, "latency": "10"}
            asking = SampleRequest(
                request=WHOLE, share=1.0, filters=("NetworkLatency",), demands=demands, **told
            )
            return len(asked.agent.sample(asking)[1])

        place = asked.agent.place.place
        assert place == asked.world.cluster.name
        assert found({"near": "rome"}) == 0
        assert found({"near": "rome"}, distances={"rome": 5_000}) == 4
        assert found({"near": "rome"}, distances={"rome": 5_001}) == 0
        there = {"distances": {"rome": 5_000}, "jobs": {"web": ("rome",)}}
        assert found({"near_job": "web"}, **there) == 4
        # What one question says is not known to the next.
        assert found({"near_job": "web"}) == 0


def test_an_agent_is_where_it_was_told_and_as_late(
    make_live: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = AgentOptions(place="rome", location="41.9,12.5", delay=250_000)
    asked = Asked(make_live(agent=options))
    assert (asked.agent.place.place, asked.agent.place.location) == ("rome", "41.9,12.5")
    near = SampleRequest(
        request=WHOLE,
        share=1.0,
        filters=("GeoLocation",),
        demands={"location": "41.9,12.5", "distance": "1"},
    )
    assert len(asked.agent.sample(near)[1]) == 4
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    # In a loop without the server, whose own tasks would sleep and wake for ever, and nothing else run.
    with monkeypatch.context() as patch:
        patch.setattr(agent_module.asyncio, "sleep", sleep)
        asyncio.run(asked.agent.answer_later())
        asked.agent._options = AgentOptions()
        asyncio.run(asked.agent.answer_later())
    assert slept == [0.25]


def test_a_volume_is_where_the_first_commit_made_it(make_live: Make) -> None:
    asked = Asked(make_live())
    keys = {"demands": {"volume": "orders"}}
    wanted: dict[str, Any] = {"checks": ("ResourcesFit", "Volume"), "keys": keys}
    assert asked.commit(ANN, "first", "m1", **wanted)[0].machine == "m1"
    made, _ = asked.commit(ANN, "second", "m0", "m2", "m1", **wanted)
    assert made.machine == "m1"
    with pytest.raises(CommitConflict) as caught:
        asked.commit(ANN, "third", "m0", **wanted)
    assert (caught.value.refused.why, caught.value.refused.machine) == ("stale", "m0")


def test_a_new_resource_makes_a_new_picture_with_the_same_reservations(make_live: Make) -> None:
    asked = Asked(make_live(cluster(machines=(Machine("m0", Resources(1000, 2**30)),))))
    held = asked.reserve(ANN, "m0", cpu=900)
    joins = Machine("gpu", Resources(1000, 2**30, {"gpu": 2}))
    asked.live.run(asked.live.server.cluster.do(lambda world: world.add_machine(joins)))
    assert asked.agent.resources == ("cpu", "memory", "gpu")
    assert asked.agent.open_reservations == 1
    drawn, names = asked.agent.sample(SampleRequest(request={"cpu": 100}, share=1.0))
    free = dict(zip(names, drawn.free.tolist(), strict=True))
    assert free == {"m0": [100, 2**30, 0], "gpu": [1000, 2**30, 2]}
    asked.live.run(asked.live.server.cluster.do(lambda world: world.remove_machine("m0")))
    assert asked.agent.sample(SampleRequest(request={"cpu": 100}, share=1.0))[1] == ["gpu"]
    asked.agent.unreserve(ANN, held)
    assert asked.agent.open_reservations == 0


def test_terms_of_a_plain_cluster_add_nothing(asked: Asked) -> None:
    terms, made = PlainTerms(), asked.job("terms")
    assert terms.request(Resources(1, 2)) == Resources(1, 2)
    assert terms.requires({"a": "b"}) == {"a": "b"}
    assert terms.job(made) is made
