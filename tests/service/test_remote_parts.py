"""A scheduler over agents in parts: tries in other clusters, and what becomes of agents' answers."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.api.agent_values import SampleResult
from argosy.api.values import TaskEvent
from argosy.client.agent_connection import AgentReply, AgentUnreached
from argosy.host.remote_desks import RemoteCommit, RemoteSample
from argosy.model.effects import Commit, CommitPipeline, Sample, SamplingPipeline
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import task_number
from argosy.model.machines import CLUSTER_GROUP, Machine
from argosy.model.resources import Resources
from argosy.model.transactions import Claims, Transaction
from argosy.service import remote_agents
from argosy.service.measured_distances import WITHIN
from argosy.service.remote_agents import FederatedAgents, read_machines
from argosy.service.remote_runner import STOPPED, RemotePlace, RemoteRunner
from argosy.testing.builders import job
from argosy.worlds.local.turn import TryResult

PLACE, OTHER = RemotePlace("c", "k1"), RemotePlace("d", "k2")
MACHINE = Machine("m", Resources(1, 1))


class RunnerBench:
    """A runner, what it told, and what it does soon."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, TryResult | None]] = []
        self.released: list[RemotePlace] = []
        self.soon: list[Any] = []
        self.runner = RemoteRunner(
            lambda number, result: self.ended.append((number, result)),
            self.released.append,
            self.soon.append,
        )

    def go_on(self) -> None:
        while self.soon:
            self.soon.pop(0)()

    def launch(self, number: int, index: int = 0) -> None:
        self.runner.launch(number, job("a", 2).job, index, MACHINE)


class TestRunner:
    def test_a_try_runs_until_its_agent_says_that_it_is_over(self) -> None:
        bench = RunnerBench()
        runner = bench.runner
        runner.place("a", 0, PLACE)
        assert runner.is_known("k1")
        assert runner.is_idle
        bench.launch(7)
        assert (runner.number_of("k1"), runner.is_running(7), runner.is_idle) == (7, True, False)
        assert (runner.keys_in("c"), runner.keys_in("d")) == (["k1"], [])
        runner.ended("k1", TryResult(0))
        runner.ended("k1", TryResult(1))
        assert bench.ended == [(7, TryResult(0))]
        assert (runner.is_known("k1"), runner.number_of("k1"), runner.is_idle) == (
            False,
            None,
            True,
        )
        assert not bench.soon

    def test_an_end_before_the_begin_is_kept_for_it(self) -> None:
        bench = RunnerBench()
        bench.runner.place("a", 0, PLACE)
        bench.runner.ended("k1", TryResult(3))
        bench.runner.ended("stranger", TryResult(4))
        assert bench.ended == []
        bench.launch(7)
        assert bench.runner.is_running(7)
        bench.go_on()
        assert bench.ended == [(7, TryResult(3))]
        bench.runner.place("a", 0, RemotePlace("c", "stranger"))
        bench.launch(8)
        bench.go_on()
        assert bench.runner.is_running(8)

    def test_a_try_without_a_commit_fails_soon(self) -> None:
        bench = RunnerBench()
        bench.launch(7)
        bench.runner.place("a", 1, PLACE)
        bench.launch(8, 1)
        bench.launch(9, 1)
        assert bench.ended == []
        bench.go_on()
        lost = TryResult(1, "its commit is not known")
        assert bench.ended == [(7, lost), (9, lost)]
        assert bench.runner.is_running(8)

    def test_a_try_that_is_stopped_is_released_and_has_ended(self) -> None:
        bench = RunnerBench()
        bench.runner.place("a", 0, PLACE)
        bench.launch(7)
        bench.runner.stop(7)
        assert (bench.released, bench.ended) == ([PLACE], [])
        assert not bench.runner.is_running(7)
        bench.go_on()
        assert bench.ended == [(7, STOPPED)]
        bench.runner.stop(99)
        bench.go_on()
        assert (bench.released, bench.ended[1:]) == ([PLACE], [(99, STOPPED)])
        assert (STOPPED.status, STOPPED.was_stopped) == (-15, True)

    def test_a_task_with_a_newer_commit_keeps_it_when_the_older_one_ends(self) -> None:
        bench = RunnerBench()
        bench.runner.place("a", 0, PLACE)
        bench.launch(7)
        bench.runner.place("a", 0, OTHER)
        bench.runner.ended("k1", None)
        assert bench.ended == [(7, None)]
        assert bench.runner.is_known("k2")
        bench.launch(8)
        assert bench.runner.number_of("k2") == 8

    def test_what_no_try_has_begun_for_is_taken_back(self) -> None:
        bench = RunnerBench()
        bench.runner.place("a", 0, PLACE)
        bench.runner.place("a", 1, OTHER)
        bench.launch(7)
        bench.runner.ended("k2", TryResult(0))
        assert bench.runner.take_unwritten() == [OTHER]
        assert bench.runner.take_unwritten() == []
        assert (bench.runner.is_known("k1"), bench.runner.is_known("k2")) == (True, False)
        # Its early end is forgotten as well.
        bench.runner.place("a", 1, OTHER)
        bench.launch(8, 1)
        bench.go_on()
        assert bench.runner.is_running(8)

    def test_tries_of_an_earlier_server_are_adopted(self) -> None:
        bench = RunnerBench()
        bench.runner.adopt_as(5, "a", 0, PLACE)
        assert bench.runner.adopt(5) is True
        assert (bench.runner.is_running(5), bench.runner.number_of("k1")) == (True, 5)
        assert (bench.runner.discard_after(5), bench.runner.directory_of(5)) == (5, "")
        bench.runner.ended("k1", TryResult(0))
        assert bench.ended == [(5, TryResult(0))]


class Link:
    """An agent that answers from a list, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any, str]] = []

    async def ask(self, method: str, path: str, body: bytes = b"", *, key: str = "") -> AgentReply:
        self.asked.append((method, path, json.loads(body) if body else None, key))
        answer = self.answers.pop(0)
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        status, document = answer
        return AgentReply(status, msgspec.json.encode(document))


class AgentsBench:
    """Agents of two clusters over a host that only remembers what it is told."""

    def __init__(self, link: Link, machines: tuple[str, ...] = ("c/m0", "c/m1", "d/m0")) -> None:
        self.log: list[str] = []
        self.told: list[Any] = []
        self.keys: list[Any] = []
        self.runs = True
        self.names = list(machines)
        host = SimpleNamespace(
            view=SimpleNamespace(
                dimensions=("cpu", "memory", "gpu"), machine_name=lambda at: self.names[at]
            ),
            jobs=SimpleNamespace(job=lambda number: job("a", 4, gang=True).job, name=lambda n: "a"),
            sampled=lambda *given: self.told.append(("sampled", *given)),
            committed=self._committed,
            forget=lambda *given: self.told.append(("forget", *given)),
        )
        self.world = SimpleNamespace(
            host=host,
            life=3,
            projection=SimpleNamespace(machine_version=0),
            machine_numbers=lambda: {name: at for at, name in enumerate(self.names)},
            note_key=lambda *given: self.keys.append(given),
            add_machine=lambda machine: self.told.append(("add", machine)),
            tries={},
        )
        self.agents = FederatedAgents("me", {"c": link, "d": link}, self.log.append)  # type: ignore[dict-item]
        self.agents.cluster = SimpleNamespace(  # type: ignore[assignment]
            world=self.world, tell=lambda action: action(self.world)
        )
        self.tries = RunnerBench()
        self.agents.runner = self.tries.runner

    def _committed(self, *given: Any) -> bool:
        self.told.append(("committed", *given))
        return self.runs

    def run(self, work: Any) -> Any:
        async def settled() -> Any:
            found = await work
            while self.agents._tasks:
                await asyncio.gather(*self.agents._tasks)
            return found

        return asyncio.run(settled())


PIPELINE = SamplingPipeline(
    strategy="Walk",
    filters=("F",),
    scores=("S", "T"),
    share=0.5,
    rounds=2,
    limit=9,
    free=True,
    overshoot="cut",
    repeats="keep",
)
SAMPLE = Sample(Resources(500, 0, {"gpu": 1}), 0, 8, {"disk": "ssd"}, "c", {"x": "y"}, PIPELINE)


def found(**fields: Any) -> SampleResult:
    known: dict[str, Any] = {"machines": ["m1", "m0"], "scores": [[1, 2], [3, 4]], "drawn": 5}
    return SampleResult(**known | fields)


class TestSamples:
    def test_a_request_says_all_that_the_agent_must_know(self) -> None:
        link = Link((200, found(ruled_out={"cpu": 3})))
        bench = AgentsBench(link)
        bench.run(bench.agents._sample("s", SAMPLE))
        assert link.asked == [
            (
                "POST",
                "/v1/sample",
                {
                    "request": {"cpu": 500, "gpu": 1},
                    "requires": {"disk": "ssd"},
                    "demands": {"x": "y"},
                    "share": 0.5,
                    "strategy": "Walk",
                    "filters": ["F"],
                    "scores": ["S", "T"],
                    "rounds": 2,
                    "limit": 9,
                    "free": True,
                    "overshoot": "cut",
                    "repeats": "keep",
                    "distances": {"c": WITHIN},
                },
                "",
            )
        ]
        answer = RemoteSample([1, 0], [[1, 2], [3, 4]], [], 5, {"cpu": 3})
        assert bench.told == [("sampled", "s", 8, answer)]

    def test_free_amounts_come_in_the_order_of_the_mirror(self) -> None:
        bench = AgentsBench(Link())
        answer = bench.agents._sample_answer(
            SAMPLE, found(free=[[10, 20], [30, 40]], resources=("memory", "cpu"))
        )
        assert answer.free == [[20, 10, 0], [40, 30, 0]]

    def test_machines_that_have_joined_are_left_out_until_they_are_known(self) -> None:
        page = {"items": [{"name": "m9", "capacity": {"cpu": 1}, "used": {}}]}
        bench = AgentsBench(Link((200, page)))

        async def ask() -> RemoteSample:
            given = found(machines=["m9", "m1"], free=[[1, 2], [3, 4]], resources=("cpu", "memory"))
            return bench.agents._sample_answer(SAMPLE, given)

        answer = bench.run(ask())
        assert (answer.machines, answer.scores, answer.free) == ([1], [[3, 4]], [[3, 4, 0]])
        joins = {CLUSTER_GROUP: ("c",)}
        assert bench.told == [("add", Machine("c/m9", Resources(1, 0), {}, joins))]

    @pytest.mark.parametrize(
        ("fields", "says"),
        [
            ({"scores": [[1, 2]]}, "a sample of 2 machines with 1 rows of scores"),
            ({"free": [[1]]}, "a sample of 2 machines with 2 rows of scores"),
            ({"scores": [[1, 2], [3]]}, "scores that are not of 2 plug-ins"),
            ({"free": [[1], [2, 3]], "resources": ("cpu",)}, "amounts that are not of 1 resources"),
        ],
    )
    def test_nonsense_is_named(self, fields: dict[str, Any], says: str) -> None:
        bench = AgentsBench(Link())
        with pytest.raises(AgentUnreached, match=says):
            bench.agents._sample_answer(SAMPLE, found(**fields))

    @pytest.mark.parametrize(
        ("answer", "line"),
        [
            (AgentUnreached("gone"), "c is away: gone"),
            ((200, []), "c is away: Expected `object`, got `array`"),
            ((500, {}), "c refuses to sample: status 500"),
            (
                (403, {"type": "", "title": "", "status": 403, "detail": "no"}),
                "c refuses to sample: no",
            ),
        ],
    )
    def test_an_agent_that_does_not_answer_is_told_once(self, answer: Any, line: str) -> None:
        bench = AgentsBench(Link(answer, answer))
        for _ in range(2):
            bench.run(bench.agents._sample("s", SAMPLE))
        assert bench.told == [("sampled", "s", 8, RemoteSample(reached=False))] * 2
        assert bench.log == [line]

    def test_an_answer_for_another_host_is_dropped(self) -> None:
        link = Link((200, found()))
        bench = AgentsBench(link)

        async def ask() -> None:
            work = asyncio.ensure_future(bench.agents._sample("s", SAMPLE))
            await asyncio.sleep(0)
            bench.world.host = SimpleNamespace(view=bench.world.host.view)
            await work

        bench.run(ask())
        assert bench.told == []


def commit_of(*alternatives: int) -> Commit:
    one = np.zeros(1, np.int32)
    others = np.array([alternatives], np.int32) if alternatives else None
    claims = Claims(
        np.array([task_number(0, 2)], np.int64), one + 1, one, one.astype(np.uint32),
        alternatives=others,
    )  # fmt: skip
    pipeline = CommitPipeline(checks=("F",), commit="B", reservations="all")
    return Commit(9, Transaction("s", claims), cluster="c", pipeline=pipeline)


MADE = (201, {"key": "k", "job": "j", "machine": "m0"})
KEY = "me.s.3.9"


class TestCommits:
    def test_an_order_is_one_task_with_the_machines_in_order(self) -> None:
        link = Link(MADE)
        bench = AgentsBench(link)
        bench.run(bench.agents._commit("s", commit_of(0, -1)))
        [(method, path, order, key)] = link.asked
        assert (method, path, key) == ("POST", "/v1/commits", KEY)
        assert (order["machines"], order["checks"], order["commit"]) == (["m1", "m0"], ["F"], "B")
        assert order["reservations"] == "all"
        assert (order["job"]["id"], order["job"]["name"]) == (KEY, "a/2")
        assert order["job"]["count"] == 1
        assert not order["job"].get("gang")
        assert bench.told == [("committed", "s", 9, RemoteCommit(machine=0))]
        assert bench.keys == [(f"placed/{KEY}", b"2/c", "a")]
        assert bench.tries.runner.is_known(KEY)
        assert bench.agents._under_way == set()

    def test_a_commit_that_nobody_wants_any_more_is_undone(self) -> None:
        link = Link(MADE, (200, {"key": KEY}))
        bench = AgentsBench(link)
        bench.runs = False
        bench.run(bench.agents._commit("s", commit_of()))
        assert link.asked[1][:2] == ("DELETE", f"/v1/commits/{KEY}")
        assert bench.agents._under_way == set()

    def test_a_refusal_is_final_and_nothing_is_undone(self) -> None:
        refused = {"why": "no_room", "machine": "m0", "resource": "cpu", "lacking": 7}
        document = {"type": "", "title": "", "status": 409, "detail": "full", "refused": refused}
        link = Link((409, document))
        bench = AgentsBench(link)
        bench.runs = False
        bench.run(bench.agents._commit("s", commit_of(0)))
        refusal = Refusal(Why.NO_ROOM, machine=0, dimension="cpu", lacking=7)
        assert bench.told == [("committed", "s", 9, RemoteCommit(refusal=refusal))]
        assert (len(link.asked), bench.keys, bench.agents._under_way) == (1, [], set())

    @pytest.mark.parametrize(
        ("why", "machine", "expected"),
        [
            ("machine_draining", "m0", Refusal(Why.MACHINE_DRAINING, machine=0)),
            ("stale", "m0", Refusal(Why.STALE, machine=0)),
            ("job_limit", "m0", Refusal(Why.MACHINE_GONE, machine=0)),
            ("of the future", "m7", Refusal(Why.MACHINE_GONE, machine=1)),
        ],
    )
    def test_another_machine_may_do_whatever_an_agent_has_against_one(
        self, why: str, machine: str, expected: Refusal
    ) -> None:
        bench = AgentsBench(Link())
        refused = {"why": why, "machine": machine}
        document = {"type": "", "title": "", "status": 409, "detail": "d", "refused": refused}
        reply = AgentReply(409, msgspec.json.encode(document))
        answer = bench.agents._commit_answer("c", reply, {"m1": 1, "m0": 0})
        assert answer == RemoteCommit(refusal=expected)
        assert bench.log == []

    @pytest.mark.parametrize("status", [400, 401, 409])
    def test_an_agent_that_refuses_for_another_reason_counts_as_away(self, status: int) -> None:
        bench = AgentsBench(Link())
        for _ in range(2):
            answer = bench.agents._commit_answer("c", AgentReply(status, b"{}"), {"m1": 1})
            refusal = Refusal(Why.MACHINE_GONE, machine=1)
            assert answer == RemoteCommit(refusal=refusal, reached=False)
        assert bench.log == [f"c refuses a commit: status {status}"]

    def test_a_machine_that_was_not_asked_for_counts_as_the_first(self) -> None:
        reply = AgentReply(200, b'{"key": "", "job": "", "machine": "other"}')
        answer = AgentsBench(Link()).agents._commit_answer("c", reply, {"m1": 1, "m0": 0})
        assert answer == RemoteCommit(machine=1)

    def test_an_order_without_an_answer_is_repeated_twice_and_then_undone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(remote_agents, "FIRST_REST", 0.0)
        link = Link(AgentUnreached("x"), (503, {}), (200, []), AgentUnreached("y"), (200, {}))
        bench = AgentsBench(link)
        bench.runs = False
        bench.run(bench.agents._commit("s", commit_of(0)))
        refusal = Refusal(Why.MACHINE_GONE, machine=1)
        assert bench.told == [("committed", "s", 9, RemoteCommit(refusal=refusal, reached=False))]
        assert [method for method, *_ in link.asked] == ["POST"] * 3 + ["DELETE"] * 2
        assert {key for method, _, _, key in link.asked if method == "POST"} == {KEY}
        assert bench.log == ["c is away: x"]

    @pytest.mark.parametrize("status", [500, 502])
    def test_the_second_answer_is_as_good_as_the_first(
        self, status: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(remote_agents, "FIRST_REST", 0.0)
        bench = AgentsBench(Link((status, {}), MADE))
        bench.run(bench.agents._commit("s", commit_of(0)))
        assert bench.told == [("committed", "s", 9, RemoteCommit(machine=0))]


class TestReconciling:
    def page(self, *keys: str, **fields: Any) -> tuple[int, Any]:
        items = [{"key": key, "job": "j", "machine": "m0"} for key in keys]
        return 200, {"items": items, **fields}

    def test_what_nobody_knows_of_is_undone_and_what_is_missing_is_asked_for(self) -> None:
        link = Link(
            self.page("me.a", "me.b", next="me.b", position="7"),
            self.page("me.c", "mexico", next="mexico", position="8"),
            (200, {"key": "me.lost", "job": "j", "machine": "m", "state": "failed", "exit_status": 4}),
            (200, {"key": "me.b"}),
        )  # fmt: skip
        bench = AgentsBench(link)
        for number, key in enumerate(("me.a", "me.lost")):
            bench.tries.runner.adopt_as(number, "a", number, RemotePlace("c", key))
        bench.agents._under_way.add("me.c")
        assert bench.run(bench.agents._reconcile("c")) == "7"
        assert [path for _, path, *_ in link.asked] == [
            "/v1/commits?after=me.",
            "/v1/commits?after=me.b",
            "/v1/commits/me.lost",
            "/v1/commits/me.b",
        ]
        assert bench.log == ["c runs me.b, which nobody here knows of"]
        assert bench.tries.ended == [(1, TryResult(4))]
        assert bench.tries.runner.is_running(0)

    def test_everything_is_undone_and_asked_for_in_the_order_of_keys(self) -> None:
        unknown, lost = ([f"me.{kind}{at}" for at in range(8)] for kind in "ul")
        answer = {"key": "k", "job": "j", "machine": "m", "state": "finished"}
        link = Link(self.page(*unknown), *[(200, answer)] * 16)
        bench = AgentsBench(link)
        for number, key in enumerate(lost):
            bench.tries.runner.adopt_as(number, "a", number, RemotePlace("c", key))
        bench.run(bench.agents._reconcile("c"))
        assert bench.log == [f"c runs {key}, which nobody here knows of" for key in unknown]
        asked = [path.rpartition("/")[2] for _, path, *_ in link.asked[1:]]
        assert [key for key in asked if key in lost] == lost
        assert [key for key in asked if key in unknown] == unknown

    def test_a_try_whose_commit_is_gone_is_placed_anew(self) -> None:
        link = Link(self.page(), (404, {}))
        bench = AgentsBench(link)
        bench.tries.runner.adopt_as(4, "a", 0, RemotePlace("c", "me.x"))
        bench.world.tries[4] = SimpleNamespace(task=11, incarnation=2)
        bench.run(bench.agents._reconcile("c"))
        [(what, tasks, incarnations, why)] = bench.told
        assert (what, tasks.tolist(), incarnations.tolist()) == ("forget", [11], [2])
        assert why is Why.MACHINE_GONE

    @pytest.mark.parametrize(
        ("state", "exit_status", "expected"),
        [
            ("finished", None, [(4, TryResult(0))]),
            ("failed", 3, [(4, TryResult(3, "r"))]),
            ("failed", None, [(4, TryResult(1, "r"))]),
            ("running", None, []),
            ("cancelled", None, []),
        ],
    )
    def test_events_end_tries(self, state: Any, exit_status: int | None, expected: Any) -> None:
        bench = AgentsBench(Link())
        bench.tries.runner.adopt_as(4, "a", 0, RemotePlace("c", "me.x"))
        for name in ("you.x", "me.x"):
            bench.agents._heard(
                TaskEvent(
                    at="", job=name, index=0, state=state, exit_status=exit_status, reason="r"
                )
            )
        assert bench.tries.ended == expected


def test_machines_are_read_page_by_page() -> None:
    def info(name: str, **fields: Any) -> dict[str, Any]:
        return {"name": name, "capacity": {"cpu": 2, "memory": 3, "gpu": 4}, "used": {}, **fields}

    link = Link(
        (200, {"items": [info("a b")], "next": "a b"}),
        (200, {"items": [info("c", attributes={"k": "v"}, joins={"rack": ["r"]})]}),
    )
    machines = asyncio.run(read_machines(link, "x"))  # type: ignore[arg-type]
    assert [path for _, path, *_ in link.asked] == ["/v1/machines", "/v1/machines?after=a%20b"]
    size, joins = Resources(2, 3, {"gpu": 4}), {CLUSTER_GROUP: ("x",)}
    assert machines == [
        Machine("x/a b", size, {}, joins),
        Machine("x/c", size, {"k": "v"}, {"rack": ("r",), **joins}),
    ]
    with pytest.raises(AgentUnreached, match="status 500"):
        asyncio.run(read_machines(Link((500, {})), "x"))  # type: ignore[arg-type]
