"""A scheduler over agents: what it asks of them by itself, what it takes over, and how it begins."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from test_remote_parts import SAMPLE, AgentsBench, Link, commit_of, found

from argosy.api.agent_values import ClusterPlace
from argosy.client.agent_connection import AgentUnreached
from argosy.model.errors import ArgosyError, CommandError
from argosy.model.jobs import task_number
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.resources import Resources
from argosy.model.scenario import GroupSpec
from argosy.service import remote_agents, scheduling
from argosy.service.measured_distances import WITHIN, MeasuredDistances
from argosy.service.remote_agents import mirrored, read_machines
from argosy.service.remote_runner import RemotePlace
from argosy.service.server import ServerOptions
from argosy.testing.builders import job


class Ended(BaseException):
    """Breaks a loop that has no end."""


class Sleeps:
    """Notes how long is slept, and ends the loop after so many."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, most: int) -> None:
        self.seconds: list[float] = []
        self._most = most
        self._pause = asyncio.sleep
        monkeypatch.setattr(module.asyncio, "sleep", self)

    async def __call__(self, seconds: float, result: object = None) -> None:
        if seconds:
            self.seconds.append(seconds)
            if len(self.seconds) >= self._most:
                raise Ended
        await self._pause(0)


class TestAsking:
    def test_what_is_near_is_said_only_if_a_task_has_demands(self) -> None:
        bench = AgentsBench(Link())
        bench.agents.distances.learn("c", ClusterPlace(place="rome"), 4_000)
        bench.agents.distances.learn("d", ClusterPlace(place="oslo"), 2_000)
        bench.agents._places_of = lambda job: (f"of {job}",)  # type: ignore[method-assign]

        def asked(**demands: str) -> Any:
            sample = msgspec.structs.replace(SAMPLE, demands=demands)
            document = msgspec.json.decode(bench.agents._question(sample))
            return document.get("distances"), document.get("jobs")

        around = {"rome": WITHIN, "oslo": 3_000}
        assert asked() == (None, None)
        assert asked(x="y") == (around, None)
        assert asked(near_job="web") == (around, {"web": ["of web"]})

    def test_a_job_is_at_the_places_of_the_clusters_that_run_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[Any] = []

        class Whereabouts:
            def __init__(self, host: Any) -> None:
                made.append(host)

            def machines_of(self, job: str) -> list[int]:
                return {"web": [0, 1, 2], "one": [2]}.get(job, [])

        monkeypatch.setattr(remote_agents, "JobWhereabouts", Whereabouts)
        bench = AgentsBench(Link())
        bench.agents.distances.learn("c", ClusterPlace(place="rome"), 1)
        assert bench.agents._places_of("web") == ("d", "rome")
        assert bench.agents._places_of("one") == ("d",)
        assert bench.agents._places_of("none") == ()
        assert len(made) == 1
        bench.world.host = SimpleNamespace(**vars(bench.world.host))
        assert bench.agents._places_of("one") == ("d",)
        assert made == [made[0], bench.world.host]

    def test_an_effect_becomes_one_request_after_the_other(self) -> None:
        bench = AgentsBench(Link((200, found())))

        async def ask() -> None:
            bench.agents.sample("s", SAMPLE)

        bench.run(ask())
        assert [each[0] for each in bench.told] == ["sampled"]

    def test_machines_are_numbered_anew_when_some_have_joined(self) -> None:
        bench = AgentsBench(Link())
        known = bench.agents._known
        assert (known("c"), known("d")) == ({"m0": 0, "m1": 1}, {"m0": 2})
        bench.names.append("d/a/b")
        assert known("d") == {"m0": 2}
        bench.world.projection.machine_version = 1
        assert known("d") == {"m0": 2, "a/b": 3}
        bench.names[:] = ["c/m0"]
        bench.world.host = SimpleNamespace()
        assert (known("c"), known("d")) == ({"m0": 0}, {})

    def test_a_failure_of_our_own_is_told(self) -> None:
        bench = AgentsBench(Link())

        async def fail() -> None:
            raise KeyError("x")

        async def go() -> None:
            bench.agents._spawn(fail())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            bench.agents._spawn(asyncio.sleep(60))
            await bench.agents.close()

        bench.agents._links = {}
        asyncio.run(go())
        assert bench.log == ["an internal error: KeyError: 'x'"]
        assert bench.agents._tasks == set()


class TestUndoing:
    def test_it_is_asked_for_until_the_agent_has_heard(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = [(500, {})] * 3 + [AgentUnreached("gone")] * 5 + [(200, {"key": "k"})]
        bench, slept = AgentsBench(Link(*answers)), Sleeps(monkeypatch, remote_agents, 99)
        bench.agents._under_way.add("a/b")
        bench.run(bench.agents._release(RemotePlace("d", "a/b")))
        assert slept.seconds == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0])
        assert bench.agents._under_way == set()
        assert bench.log == ["d undoes nothing: status 500", "d is away: gone"]

    def test_rests_between_orders_grow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slept = Sleeps(monkeypatch, remote_agents, 99)
        link = Link(*[AgentUnreached("x")] * 3)
        bench = AgentsBench(link)
        where = RemotePlace("c", "k")
        host = bench.world.host
        answer, is_sure = bench.run(
            bench.agents._ask_commit(where, commit_of(0), job("a", 4).job, 2, host)
        )
        assert (len(link.asked), is_sure, answer.reached) == (3, False, False)
        assert slept.seconds == [0.2]

    def test_what_was_not_written_is_undone_and_under_way_until_then(self) -> None:
        bench = AgentsBench(Link((200, {"key": "k1"})))
        bench.tries.runner.place("a", 0, RemotePlace("c", "k1"))

        async def build() -> None:
            bench.agents.release_unwritten()
            assert bench.agents._under_way == {"k1"}

        bench.run(build())
        assert bench.agents._under_way == set()
        assert not bench.tries.runner.is_known("k1")


class TestTakingOver:
    def test_tries_of_an_earlier_server_have_their_last_commit(self) -> None:
        bench = AgentsBench(Link())
        rows = [
            ("placed/k0", b"0/c", "a"),
            ("placed/k1", b"1/c", "a"),
            ("placed/k2", b"0/d", "a"),
            ("placed/k3", b"2/gone", "a"),
        ]
        asked: list[str] = []

        def answer(query: str) -> Any:
            asked.append(query)
            return rows

        bench.world.store = SimpleNamespace(rows=answer)
        bench.world.tries = {
            number: SimpleNamespace(task=task_number(0, index), incarnation=number)
            for number, index in ((5, 0), (6, 1), (7, 2), (8, 3))
        }
        bench.agents._adopt()
        runner = bench.tries.runner
        assert (runner.number_of("k2"), runner.number_of("k1")) == (5, 6)
        assert (runner.number_of("k0"), runner.number_of("k3")) == (None, None)
        assert (runner.keys_in("c"), runner.keys_in("d")) == (["k1"], ["k2"])
        # Nobody knows of the others: they are placed anew.
        assert [told[1].tolist() for told in bench.told] == [
            [task_number(0, 2)],
            [task_number(0, 3)],
        ]
        assert "ended IS NULL" in asked[0]

    def test_all_agents_are_followed_and_measured(self) -> None:
        bench = AgentsBench(Link())
        begun: list[tuple[str, str]] = []

        def note(what: str) -> Any:
            async def work(name: str) -> None:
                begun.append((what, name))

            return work

        bench.agents._adopt = lambda: begun.append(("adopt", ""))  # type: ignore[method-assign]
        bench.agents._follow = note("follow")  # type: ignore[method-assign]
        bench.agents._measure = note("measure")  # type: ignore[method-assign]

        async def start() -> None:
            bench.agents.start()

        bench.run(start())
        assert begun == [
            ("adopt", ""),
            ("follow", "c"),
            ("measure", "c"),
            ("follow", "d"),
            ("measure", "d"),
        ]

    def test_closing_ends_everything_and_every_link(self) -> None:
        bench = AgentsBench(Link())
        closed: list[str] = []
        bench.agents._links = {
            name: SimpleNamespace(close=lambda name=name: closed.append(name))  # type: ignore[misc,dict-item]
            for name in "cd"
        }

        async def go() -> None:
            bench.agents._spawn(asyncio.sleep(60))  # type: ignore[arg-type]
            await bench.agents.close()

        asyncio.run(go())
        assert closed == ["c", "d"]

    def test_distances_are_measured_every_five_seconds_also_after_a_failure(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slept = Sleeps(monkeypatch, remote_agents, 3)
        place = (200, {"place": "rome"})
        bench = AgentsBench(Link(place, AgentUnreached("away"), place))
        with pytest.raises(Ended):
            asyncio.run(bench.agents._measure("c"))
        assert slept.seconds == [5.0] * 3
        assert bench.agents.distances.place_of("c") == "rome"
        [(_, _, trip)] = bench.agents.distances.measured()
        assert trip >= 0

    def test_an_agent_that_is_away_is_followed_again_later_and_later(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slept = Sleeps(monkeypatch, remote_agents, 4)
        bench = AgentsBench(Link(*[AgentUnreached("gone")] * 4))
        bench.agents._links["c"].endpoint = "http://h:1"  # type: ignore[misc,assignment,index]
        with pytest.raises(Ended):
            asyncio.run(bench.agents._follow("c"))
        assert slept.seconds == pytest.approx([0.2, 0.4, 0.8, 1.6])
        assert bench.log == ["c is away: gone"]

    def test_events_are_heard_from_where_it_was_reconciled(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heard: list[Any] = []

        class Events:
            def __init__(self, server: str, **options: Any) -> None:
                heard.append((server, options))

            async def __aenter__(self) -> Events:
                return self

            async def __aexit__(self, *error: object) -> None:
                heard.append("closed")

            async def events(self, *, after: str) -> Any:
                heard.append(after)
                raise ArgosyError("broke off")
                yield

        monkeypatch.setattr(remote_agents, "AsyncClient", Events)
        slept = Sleeps(monkeypatch, remote_agents, 2)
        bench = AgentsBench(Link())
        link: Any = SimpleNamespace(endpoint="http://h:1", token="t", tls=None)
        bench.agents._links = {"c": link}
        bench.agents._away.add("c")

        async def learn(cluster: str) -> None:
            heard.append(f"machines of {cluster}")

        async def reconcile(cluster: str) -> str:
            return "17"

        bench.agents._learn_machines = learn  # type: ignore[method-assign]
        bench.agents._reconcile = reconcile  # type: ignore[method-assign]
        with pytest.raises(Ended):
            asyncio.run(bench.agents._follow("c"))
        once = [
            "machines of c",
            ("http://h:1", {"token": "t", "patience": 0, "tls": None}),
            "17",
            "closed",
        ]
        assert heard == once * 2
        # It answered in between, so the rest is the first one each time.
        assert slept.seconds == [0.2, 0.2]
        assert bench.log == ["c is away: broke off"] * 2

    def test_machines_that_join_are_where_their_cluster_is(self) -> None:
        item = {"name": "m9", "capacity": {"cpu": 1}, "used": {}}
        old = {"name": "m0", "capacity": {"cpu": 1}, "used": {}}
        bench = AgentsBench(Link((200, {"items": [old, item]})))
        bench.agents.distances.learn("c", ClusterPlace(place="c", location="48,16"), 1)
        bench.run(bench.agents._learn_machines("c"))
        joins = {CLUSTER_GROUP: ("c",)}
        where = {"location": "48,16"}
        assert bench.told == [("add", Machine("c/m9", Resources(1, 0), where, joins))]

    def test_a_machine_that_states_its_own_location_keeps_it(self) -> None:
        items = [
            {"name": "a", "capacity": {}, "used": {}, "attributes": {"location": "1,2"}},
            {"name": "b", "capacity": {}, "used": {}, "attributes": {"k": "v"}},
        ]
        link: Any = Link((200, {"items": items}))
        machines = asyncio.run(read_machines(link, "c", "48,16"))
        assert [machine.attributes for machine in machines] == [
            {"location": "1,2"},
            {"location": "48,16", "k": "v"},
        ]
        assert mirrored("c", "m") == "c/m"


def options(**fields: Any) -> scheduling.SchedulerOptions:
    known = {"name": "s", "engine": "vela", "settings": {}, "agents": (), "timeout": 1.0}
    server = ServerOptions(directory=Path("nowhere"))
    return scheduling.SchedulerOptions(**{**known, "server": server, **fields})


def test_a_task_is_committed_as_a_job_of_its_own_that_is_not_retried_there() -> None:
    made = job("a", 4, gang=True).job
    group = msgspec.structs.replace(made.groups[0], retries=3, backoff=9)
    made = msgspec.structs.replace(made, groups=(group,))
    single = remote_agents._single(made, 2, "key")
    assert (single.id, single.name, single.tasks, single.gang) == ("key", "a/2", 1, False)
    [only] = single.groups
    assert (only.count, only.retries, only.backoff) == (1, 0, 0)
    assert (only.request, single.constraints) == (group.request, ())


class TestBeginning:
    def test_the_cluster_of_a_scheduler_has_all_machines_and_their_groups(self) -> None:
        clusters = (Cluster("a", "rome"), Cluster("b", "oslo"))
        machines = [
            Machine("a/m", Resources(1, 1), joins={CLUSTER_GROUP: ("a",), "rack": ("r1", "r2")}),
            Machine("b/m", Resources(1, 1), joins={CLUSTER_GROUP: ("b",), "rack": ("r1",)}),
        ]
        settings = {"clusters": 0.5}
        made = scheduling._cluster(options(settings=settings), clusters, machines)
        assert made.name == "s"
        assert made.cell.machines == tuple(machines)
        assert made.cell.groups == (
            GroupSpec(name=CLUSTER_GROUP, sets=("a", "b")),
            GroupSpec(name="rack", sets=("r1", "r2")),
        )
        assert made.federation is not None
        assert made.federation.clusters == clusters
        [entry] = made.fleet
        assert (entry.name, entry.engine, entry.settings) == ("vela", "vela", settings)

    def test_engines_and_settings_that_do_not_fit_are_refused(self) -> None:
        with pytest.raises(CommandError) as caught:
            scheduling._cluster(options(engine="omega"), (), [])
        assert caught.value.problem == "omega does not work over agents"
        assert caught.value.expected == "the engine vela"
        with pytest.raises(ArgosyError) as wrong:
            scheduling._cluster(options(settings={"clusters": 2.0}), (Cluster("a", ""),), [])
        assert wrong.value.field == "clusters"

    def test_an_agent_is_measured_three_times_or_left_alone(self) -> None:
        measured: list[str] = []

        class Distances(MeasuredDistances):
            async def measure(self, cluster: str, link: Any) -> None:
                measured.append(cluster)
                if link is None:
                    raise AgentUnreached("away")

        link: Any = "link"
        asyncio.run(scheduling._located("a", link, Distances()))
        asyncio.run(scheduling._located("b", None, Distances()))  # type: ignore[arg-type]
        assert measured == ["a", "a", "a", "b"]

    def test_an_agent_that_is_away_at_the_beginning_has_no_machines_yet(self) -> None:
        log: list[str] = []
        distances = MeasuredDistances()
        distances.learn("c", ClusterPlace(place="c", location="48,16"), 1)
        page = (200, {"items": [{"name": "m", "capacity": {"cpu": 1}, "used": {}}]})
        link: Any = Link(page, AgentUnreached("gone"), (200, []))
        [machine] = asyncio.run(scheduling._machines("c", link, distances, log.append))
        assert (machine.name, machine.attributes) == ("c/m", {"location": "48,16"})
        for _ in range(2):
            assert asyncio.run(scheduling._machines("c", link, distances, log.append)) == []
        assert log[0] == "c is away: gone"
        assert len(log) == 2

    def test_jobs_are_fed_as_they_come_and_what_does_not_fit_is_told(self) -> None:
        log: list[str] = []
        submitted: list[Any] = []
        names = iter(["job-1", "job-2"])
        world = SimpleNamespace(
            new_id=lambda: next(names), submit=lambda made: submitted.append(made)
        )

        def read(world: Any, document: Any, default: str) -> Any:
            if document.get("bad"):
                raise ArgosyError("unfit")
            return document.get("id") or default

        async def do(action: Any) -> None:
            action(world)

        server: Any = SimpleNamespace(
            backend=SimpleNamespace(submissions=SimpleNamespace(read=read)),
            cluster=SimpleNamespace(world=world, do=do),
        )
        documents: list[dict[str, Any]] = [{}, {"id": "mine"}, {"bad": True, "id": "x"}, {"id": ""}]
        asyncio.run(scheduling._feed(server, iter(documents), log.append))
        assert submitted == ["job-1", "mine", "job-2"]
        assert log == ["not submitted: unfit"]


def test_given_distances_hold_in_both_directions_for_both_words() -> None:
    distances = MeasuredDistances("home", {"a<>b": 5})
    assert (distances.between("a", "b"), distances.between("b", "a")) == (5, 5)
    assert distances.between("home", "home") == WITHIN
    assert distances.around("a") == {"a": WITHIN, "b": 5}
    distances.learn("x", ClusterPlace(place="a"), 9)
    # Half of a round trip, rounded down.
    assert distances.between("home", "a") == 4
    assert distances.location_of("x") == ""
    assert distances.place_of("unknown") == "unknown"
    assert distances.location_of("unknown") == ""
