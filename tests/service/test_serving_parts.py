"""Servers and submissions in parts: which routes there are, what is read once, how journals are put
together, and limits that clients meet."""

from __future__ import annotations

import asyncio
import importlib
import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from live_bench import LiveBench, job
from test_live_cluster import Bench as ClusterBench

from argosy.api.values import LARGEST_PAGE, PAGE, StopRequest
from argosy.model.errors import ArgosyError
from argosy.service import event_log, journals, planning, server, submissions
from argosy.service.agent import AgentOptions
from argosy.service.callers import TokenTable
from argosy.service.cluster_routes import ClusterRoutes
from argosy.service.event_log import EventLog, Position
from argosy.service.journals import Journals
from argosy.service.live import LiveCluster
from argosy.service.metrics import BOUNDS
from argosy.service.planning import _planned
from argosy.service.problems import (
    RequestError,
)
from argosy.service.retention import KeptJobs
from argosy.service.routes import Route, read_document, read_query
from argosy.service.server import FoundEngines, Server, ServerOptions
from argosy.service.stream_routes import EventQuery, LogQuery
from argosy.service.submissions import Submissions

TOKEN = "-" * 16

#: What clients and operators meet, and the documentation speaks of.
LIMITS = [
    ("service.agent", "LONGEST_LEASE", 60_000_000),
    ("service.agent", "MOST_REMEMBERED", 10_000),
    ("service.callers", "SHORTEST_TOKEN", 16),
    ("service.callers", "MOST_RESERVATIONS", 1_000),
    ("service.doors", "MOST_CONNECTIONS", 500),
    ("service.guard", "HEAD_TIMEOUT", 15.0),
    ("service.guard", "BODY_TIMEOUT", 30.0),
    ("service.guard", "CLIENT_GONE", 499),
    ("service.job_routes", "LONGEST_MATCH", 200),
    ("service.live", "PAUSE", 1.0),
    ("service.live", "FIRST_REST", 0.1),
    ("service.live", "LONGEST_REST", 30.0),
    ("service.live", "CALM", 60.0),
    ("service.live", "SWEEP", 5.0),
    ("service.measured_distances", "WITHIN", 500),
    ("service.planning", "AHEAD", 30_000_000),
    ("service.planning", "MOST_PLANNED", 100_000),
    ("service.planning", "MOST_EXPLAINED", 1_000),
    ("service.problems", "RETRY_AFTER", 1),
    ("service.remote_agents", "COMMIT_ATTEMPTS", 3),
    ("service.remote_agents", "LONGEST_REST", 10.0),
    ("service.retention", "SHORTEST", 60_000_000),
    ("service.retention", "BATCH", 200),
    ("service.routes", "LARGEST_BODY", 4 << 20),
    ("service.routes", "LONGEST_KEY", 200),
    ("service.server", "FORGET_EVERY", 10.0),
    ("service.stream_routes", "HEARTBEAT", 15.0),
    ("service.stream_routes", "PATIENCE", 60.0),
    ("service.kubernetes.driver", "LONGEST_LAG", 10.0),
    ("service.kubernetes.writer", "AT_ONCE", 32),
    ("service.kubernetes.writer", "NOTE_EVERY", 10.0),
    ("service.kubernetes.queue_notes", "NOTE_EVERY", 10_000_000),
    ("service.kubernetes.queue_notes", "AT_A_TIME", 50),
    ("service.kubernetes.messages", "LONGEST", 1_000),
    ("service.kubernetes.planning", "PATIENCE", 30.0),
    ("client.agent_connection", "MOST_CONNECTIONS", 64),
    ("agents.builtin", "NEAR", 100.0),
    ("agents.learned", "MOST_KINDS", 256),
    ("agents.learned", "EXPLORE", 4),
    ("agents.objectives", "MOST_USED", 0.95),
    ("agents.globe", "EARTH_RADIUS", 6_371.0),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "value"), LIMITS)
def test_limits_are_what_they_are_said_to_be(module: str, name: str, value: float) -> None:
    assert getattr(importlib.import_module(f"argosy.{module}"), name) == value


def test_options_that_are_left_out_have_their_defaults() -> None:
    options = ServerOptions(directory=Path("d"))
    assert (options.host, options.port, options.tasks) == ("127.0.0.1", 7464, "processes")
    assert options.is_lasting
    assert options.agent == AgentOptions(refresh=0, delay=0, place="", location="")
    assert options.kept == KeptJobs(jobs=0, age=0)
    table = TokenTable(name="a", token=TOKEN)
    assert (table.scope, table.expires, table.requests, table.rate) == ("commit", None, None, None)
    assert table.reservations == 1_000
    assert (PAGE, LARGEST_PAGE) == (100, 1_000)
    assert (LogQuery().stream, LogQuery().follow) == ("stdout", False)
    assert BOUNDS[0] == 0.001
    assert BOUNDS[-1] == pytest.approx(32.768)


# What is read.


def with_query(**query: str) -> Any:
    return SimpleNamespace(query=SimpleNamespace(items=lambda: list(query.items())))


def with_body(data: bytes) -> Any:
    async def read() -> bytes:
        return data

    return SimpleNamespace(read=read, content_type="application/json")


class TestReading:
    def test_parameters_are_read_by_their_kind(self) -> None:
        assert read_query(with_query(last="7", job="a"), EventQuery) == EventQuery(last=7, job="a")
        assert read_query(with_query(**{"try": "2"}, follow="true"), LogQuery) == LogQuery(
            try_=2, follow=True
        )
        twice: Any = SimpleNamespace(
            query=SimpleNamespace(items=lambda: [("job", "a"), ("job", "b")])
        )
        with pytest.raises(RequestError) as caught:
            read_query(twice, EventQuery)
        assert (caught.value.problem, caught.value.field) == ("given twice", "job")
        with pytest.raises(RequestError) as unknown:
            read_query(with_query(jobs="a"), EventQuery)
        assert unknown.value.problem == "unknown parameter 'jobs'"
        assert unknown.value.expected == "one of job, after, last"
        assert unknown.value.hint == "did you mean 'job'?"
        with pytest.raises(RequestError) as unfit:
            read_query(with_query(stream="other"), LogQuery)
        assert unfit.value.field == "stream"
        assert unfit.value.expected == "one of stdout, stderr"
        with pytest.raises(RequestError) as large:
            read_query(with_query(last="1001"), EventQuery)
        assert (large.value.field, large.value.problem) == ("last", "'1001' does not fit")

    @pytest.mark.parametrize(
        ("data", "is_optional", "expected"),
        [
            (b"", True, False),
            (b"null", True, False),
            (b'{"stop_tasks": true}', True, True),
            (b'{"stop_tasks": true}', False, True),
            (b"{}", False, False),
        ],
    )
    def test_a_document_may_be_left_out_if_it_is_optional(
        self, data: bytes, is_optional: bool, expected: bool
    ) -> None:
        read = read_document(with_body(data), StopRequest, is_optional=is_optional)
        assert asyncio.run(read).stop_tasks is expected

    def test_a_document_that_is_not_optional_must_be_there(self) -> None:
        with pytest.raises(ArgosyError):
            asyncio.run(read_document(with_body(b"null"), StopRequest))


class TestSubmissions:
    def read(self, live: LiveBench, monkeypatch: pytest.MonkeyPatch, most: int = 256) -> Any:
        monkeypatch.setattr(submissions, "_MOST_ALIKE", most)
        made, reads = Submissions(), []

        def fresh(world: Any, table: Any, default_id: str, path: Any) -> Any:
            reads.append(default_id)
            return Submissions._read(made, world, table, default_id, path)

        made._read = fresh  # type: ignore[method-assign]
        world = live.server.cluster.world
        return lambda default, path=(), **keys: (
            made.read(world, job(**keys), default, path).id,
            list(reads),
        )

    def test_a_document_is_read_once_unless_it_has_its_own_id_or_place(
        self, live: LiveBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read = self.read(live, monkeypatch)
        assert read("a") == ("a", ["a"])
        assert read("b") == ("b", ["a"])
        assert read("", id="own") == ("own", ["a", ""])
        assert read("c", ("jobs", 0)) == ("c", ["a", "", "c"])
        assert read("d", name="other")[1] == ["a", "", "c", "d"]
        assert read("e")[1] == ["a", "", "c", "d"]

    def test_few_documents_and_only_short_ones_are_remembered(
        self, live: LiveBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read = self.read(live, monkeypatch, most=2)
        for name in ("a", "b"):
            read(name, name=name)
        # The third makes room by forgetting all.
        assert read("c", name="c")[1] == ["a", "b", "c"]
        assert read("d", name="c")[1] == ["a", "b", "c"]
        assert read("e", name="a")[1] == ["a", "b", "c", "e"]
        long = "true " * 1_000
        assert read("f", command=long)[1][-1] == "f"
        assert read("g", command=long)[1][-1] == "g"

    def test_notes_are_found_once_a_life(
        self, live: LiveBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        def ignored(scenario: Any, engines: Any) -> list[str]:
            asked.append(scenario.jobs[0].job.kind)
            return [f"note {len(asked)}"]

        monkeypatch.setattr(submissions, "ignored_demands", ignored)
        made, world = Submissions(), live.server.cluster.world
        one = made.read(world, job(kind="batch"), "a")
        other = made.read(world, job(kind="batch", gang=True, count=2), "b")
        assert made.notes(world, one) == ("note 1",)
        assert made.notes(world, one) == ("note 1",)
        assert made.notes(world, other) == ("note 2",)
        later: Any = SimpleNamespace(life=world.life + 1, cluster=world.cluster)
        assert made.notes(later, one) == ("note 3",)
        monkeypatch.setattr(submissions, "_MOST_NOTES", 1)
        assert made.notes(later, one) == ("note 4",)


class TestJournals:
    def test_turns_are_read_in_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(journals, "_BATCH", 2)
        asked: list[Any] = []

        def rows(query: str, values: Any) -> list[Any]:
            asked.append(values)
            _, last, most = values
            return [(turn, b"%d" % turn) for turn in (3, 5, 9) if turn > last][:most]

        store: Any = SimpleNamespace(rows=rows)
        assert list(Journals(store)._pieces(4, b"head")) == [b"head", b"35", b"9"]
        assert asked == [(4, 0, 2), (4, 5, 2), (4, 9, 2)]

    @pytest.mark.parametrize(
        ("lives", "told"),
        [
            # Whether each life decided on the task, and its state in it.
            ([(True, "running")], "running of 0"),
            ([(True, "running"), (False, "finished")], "finished of 0"),
            ([(True, "a"), (True, "b"), (False, "finished")], "finished of 1"),
            ([(True, "running"), (True, "finished")], "finished of 1"),
            # What waits is explained by the present life alone.
            ([(True, "running"), (False, "pending")], "pending of 1"),
            ([(False, "running"), (False, "finished")], "finished of 1"),
        ],
    )
    def test_the_last_life_that_decided_says_why(
        self, monkeypatch: pytest.MonkeyPatch, lives: list[tuple[bool, str]], told: str
    ) -> None:
        class Answers:
            def __init__(self, run: Any, task: str, *, whole: bool) -> None:
                assert (task, whole) == ("j/3", False)
                self._number = run
                self.is_decided, self._state = lives[run]

            def why(self, later: str = "") -> Any:
                state = later or self._state
                return SimpleNamespace(state=state, text=f"{state} of {self._number}")

        monkeypatch.setattr(journals, "TaskAnswers", Answers)
        monkeypatch.setattr(journals, "JournalRun", lambda journal: journal)
        found = object.__new__(Journals)
        found._of_job = lambda seq: iter(range(len(lives)))  # type: ignore[method-assign]
        answer: Any = found.why(7, "j", 3)
        assert answer.text == told


def test_tasks_of_a_plan_are_explained_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MOST_EXPLAINED", 1)
    monkeypatch.setattr(
        planning,
        "TaskAnswers",
        lambda run, task: SimpleNamespace(
            why=lambda: SimpleNamespace(sentence=f"of {task}", remedy="wait")
        ),
    )
    tasks = {1: SimpleNamespace(state="running", machine="m")}
    row: Any = SimpleNamespace(job=SimpleNamespace(id="j", tasks=2), tasks=tasks)
    first, second = _planned(row, None)  # type: ignore[arg-type]
    assert (first.state, first.machine, first.sentence, first.remedy) == (
        "pending",
        "",
        "of j/0",
        "wait",
    )
    assert (second.state, second.machine, second.sentence, second.remedy) == (
        "running",
        "m",
        "",
        "",
    )


# The server.


def route(method: str, path: str) -> Route:
    return Route(method, path, None, "")  # type: ignore[arg-type]


class TestServers:
    @pytest.mark.parametrize(
        ("method", "path", "is_for_own"),
        [
            ("GET", "/v1/machines", False),
            ("POST", "/v1/machines", True),
            ("PATCH", "/v1/machines/{machine}", True),
            ("GET", "/v1/fleet", False),
            ("PUT", "/v1/fleet", True),
            ("POST", "/v1/plan", True),
            ("POST", "/v1/jobs", False),
        ],
    )
    def test_machines_elsewhere_cannot_be_changed(
        self, method: str, path: str, is_for_own: bool
    ) -> None:
        assert server._is_for_own_machines(route(method, path)) is is_for_own

    @pytest.mark.parametrize(
        ("agents", "commits", "expected"),
        [
            (None, None, {"POST /v1/jobs", "POST /v1/plan", "PUT /v1/fleet", "POST /v1/sample"}),
            ("agents", None, {"POST /v1/jobs"}),
            (None, False, {"PUT /v1/fleet"}),
            (None, True, {"PUT /v1/fleet", "POST /v1/sample"}),
        ],
    )
    def test_what_can_be_asked_depends_on_whose_the_machines_are(
        self, live: LiveBench, agents: Any, commits: bool | None, expected: set[str]
    ) -> None:
        overseer = None if commits is None else SimpleNamespace(serves_commits=commits)
        own = live.server
        parts: Any = SimpleNamespace(
            backend=own.backend,
            events=own.events,
            metrics=own.metrics,
            cluster=own.cluster,
            store=own.store,
            _options=own._options,
            _stopping=own._stopping,
            _shut_down=None,
            _agents=agents,
            _overseer=overseer,
        )
        parts._world = lambda: Server._world(parts)
        parts.agent = Server._make_agent(parts)
        assert (parts.agent is not None) is ("POST /v1/sample" in expected)
        routes = {f"{each.method} {each.path}" for each in Server._routes(parts)}
        changing = {
            "POST /v1/jobs",
            "POST /v1/plan",
            "PUT /v1/fleet",
            "POST /v1/sample",
            "POST /v1/machines",
        }
        own_machines = {"POST /v1/machines"} if agents is overseer is None else set()
        assert routes & changing == expected | own_machines
        assert {"GET /v1/jobs", "GET /v1/machines", "GET /v1/openapi.json"} <= routes
        worlds = {"agents": "federation", None: "local" if commits is None else "kubernetes"}
        assert parts._world() == worlds[agents]

    def test_engines_are_found_when_they_are_asked_for_and_kept(self) -> None:
        found = FoundEngines()
        assert dict(found) == {}
        assert found["omega"].name == "omega"
        assert set(found) == {"omega"}

    def test_a_request_to_stop_tasks_is_not_taken_back(self) -> None:
        async def stop() -> list[bool]:
            parts: Any = SimpleNamespace(_stops_tasks=False, _stopping=asyncio.Event())
            seen = []
            for stops in (False, True, False):
                Server._shut_down(parts, StopRequest(stop_tasks=stops))
                seen.append(parts._stops_tasks)
            assert not parts._stopping.is_set()
            await asyncio.sleep(0)
            assert parts._stopping.is_set()
            return seen

        assert asyncio.run(stop()) == [False, True, True]

    @pytest.mark.parametrize(("soft", "set_"), [(64, [(512, 512)]), (512, [])])
    def test_as_many_connections_as_the_system_allows(
        self, monkeypatch: pytest.MonkeyPatch, soft: int, set_: list[Any]
    ) -> None:
        made: list[Any] = []
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, 512))
        monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: made.append(limits))
        server.raise_limits()
        assert made == set_

    @pytest.mark.parametrize(
        ("health", "status", "text"),
        [
            (("ok", ""), 200, "ok"),
            (("paused", "full"), 503, "paused: full"),
            (("stopping", ""), 503, "stopping"),
            (("lagging", "old"), 503, "lagging: old"),
        ],
    )
    def test_a_server_that_is_not_well_says_so_with_its_status(
        self, live: LiveBench, health: tuple[str, str], status: int, text: str
    ) -> None:
        own = live.server.backend
        backend: Any = SimpleNamespace(world=own.world, started=own.started, health=lambda: health)
        routes = ClusterRoutes(backend, live.server.metrics, lambda how: None)
        request: Any = None
        reply = asyncio.run(routes.health(request))
        assert (reply.status, reply.value.status, reply.value.detail) == (status, *health)
        ready = asyncio.run(routes.ready(request))
        assert (ready.status, ready.text) == (status, text)
        alive = asyncio.run(routes.alive(request))
        assert (alive.status, alive.text) == (200, "ok")


def test_a_long_decision_is_made_beside_the_loop_and_told_to_the_world() -> None:
    bench = ClusterBench()

    async def test(cluster: LiveCluster) -> None:
        done: list[Any] = []
        told = asyncio.Event()

        def hear(decision: Any) -> None:
            done.append(decision)
            told.set()

        cluster.start(lambda: "decided", hear)  # type: ignore[arg-type,return-value]
        await asyncio.wait_for(told.wait(), 20)
        assert done == ["decided"]

    bench.run(test)


class TestLastEvents:
    @pytest.mark.parametrize(
        ("count", "place"),
        [
            (0, "9.1"),
            (1, "9.0"),
            (2, "8"),
            (3, "7"),
            (4, "5.1"),
            (5, "5.0"),
            (6, "4"),
            (7, "4"),
        ],
    )
    def test_a_watcher_begins_before_so_many_events(
        self, monkeypatch: pytest.MonkeyPatch, count: int, place: str
    ) -> None:
        """Turns 5, 8 and 9 have three, one and two events; older ones are not looked at."""
        monkeypatch.setattr(event_log, "decode_changes", lambda size: [None] * size)
        turns = {5: 3, 8: 1, 9: 2}

        def rows(query: str, values: Any = ()) -> list[Any]:
            if "max(turn)" in query:
                return [(9,)]
            assert values == (100,)
            return [(turn, size) for turn, size in reversed(turns.items())]

        store: Any = SimpleNamespace(origin=0, rows=rows)
        assert str(EventLog(store).before_last(count)) == place

    @pytest.mark.parametrize(
        ("text", "place"), [("7", (7, 1 << 40)), ("7.0", (7, 0)), ("0", (0, 1 << 40))]
    )
    def test_places_are_written_and_read(self, text: str, place: tuple[int, int]) -> None:
        assert Position.parse(text) == place
        assert str(Position.parse(text)) == text
        for wrong in ("", "x", "-1", "1.x", "1" * 16, "1." + "1" * 16, "٣"):
            with pytest.raises(RequestError):
                Position.parse(wrong)
