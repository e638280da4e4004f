"""Handlers and loops of a server called one by one: streams, orders of agents, and what runs beside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from live_bench import LiveBench, cluster, job
from store_tables import Database
from test_live_cluster import Bench as ClusterBench

from argosy.api.agent_values import CommitOrder, CommitResult, SampleRequest
from argosy.api.values import StopRequest, TaskDetails, TaskSummary
from argosy.model.errors import EngineFault
from argosy.service import job_routes, planning, scheduling, server, stream_routes, submissions
from argosy.service.agent_routes import AgentRoutes
from argosy.service.cluster_routes import ClusterRoutes
from argosy.service.guard import _CALLER
from argosy.service.live import LiveCluster
from argosy.service.problems import Conflict
from argosy.service.reading import StoreReader
from argosy.service.retention import KeptJobs, OldJob
from argosy.service.routes import UnfitDocument
from argosy.service.server import Server
from argosy.service.stream_routes import StreamRoutes
from argosy.service.submissions import Submissions
from argosy.worlds.local.store import StoreError

PATIENCE = 20.0


class JobFacts(msgspec.Struct, frozen=True):
    """What there is to know of a cluster, as far as it is about jobs."""

    jobs: list[Any]


def in_time(work: Callable[[], Any]) -> Any:
    """A step that waits for ever fails."""

    async def run() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await work()

    return asyncio.run(run())


class TestNews:
    def routes(self, *, has_news: bool, is_stopping: bool) -> StreamRoutes:
        async def wait(position: Any) -> None:
            if not has_news:
                await asyncio.Event().wait()

        stopping = asyncio.Event()
        if is_stopping:
            stopping.set()
        return StreamRoutes(None, SimpleNamespace(wait=wait), stopping)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("has_news", "is_stopping"), [(True, False), (False, True), (True, True)]
    )
    def test_a_watcher_goes_on_as_soon_as_there_is_news_or_an_end(
        self, monkeypatch: pytest.MonkeyPatch, has_news: bool, is_stopping: bool
    ) -> None:
        monkeypatch.setattr(stream_routes, "HEARTBEAT", 1_000.0)

        async def ask() -> bool:
            return await self.routes(has_news=has_news, is_stopping=is_stopping)._news(None)  # type: ignore[arg-type]

        assert in_time(ask) is True

    def test_without_either_a_sign_of_life_is_due(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stream_routes, "HEARTBEAT", 0.0)

        async def ask() -> tuple[bool, int]:
            before = len(asyncio.all_tasks())
            found = await self.routes(has_news=False, is_stopping=False)._news(None)  # type: ignore[arg-type]
            await asyncio.sleep(0)
            return found, len(asyncio.all_tasks()) - before

        # Nothing is left that waits.
        assert in_time(ask) == (False, 0)


def test_a_broken_world_is_not_asked_what_is_due() -> None:
    bench = ClusterBench()

    async def test() -> None:
        cluster = LiveCluster(bench.build, bench.reporter, bench.log.append)

        def broken() -> int:
            raise AssertionError("asked")

        cluster.world.next_due = broken  # type: ignore[method-assign]
        cluster._drop(EngineFault("broken"))
        await cluster._rest()
        # A second fault of the same world is no news.
        cluster._drop(EngineFault("again"))
        assert str(cluster.trouble) == "broken"

    asyncio.run(asyncio.wait_for(test(), PATIENCE))
    assert bench.log[0] == "the fleet failed: broken"
    assert len(bench.log) == 2


class TestAgentRoutes:
    def routes(self, live: LiveBench) -> AgentRoutes:
        assert live.server.agent is not None
        return AgentRoutes(live.server.backend, live.server.agent, live.server.events)

    @pytest.mark.parametrize(
        ("document", "problem", "field", "expected"),
        [
            ({"command": "true"}, "missing key 'id'", "job", "id: ..."),
            (job(id="a", count=2), "2 tasks", "job.count", "one"),
            (
                job(id="a", tags=["a"], constraints=["a -> {a, 0, 0} in machine"]),
                "placement constraints",
                "job.constraints",
                "none: whoever commits a job has decided where it runs",
            ),
        ],
    )
    def test_a_committed_job_is_one_task_with_a_name_and_without_constraints(
        self, live: LiveBench, document: Any, problem: str, field: str, expected: str
    ) -> None:
        with pytest.raises(UnfitDocument) as caught:
            self.routes(live)._job(CommitOrder(job=document, machines=("m0",)))
        error = caught.value
        assert (error.problem, error.field, error.expected) == (problem, field, expected)
        made = self.routes(live)._job(CommitOrder(job=job(id="a"), machines=("m0",)))
        assert (made.id, made.tasks) == ("a", 1)

    @pytest.mark.parametrize(
        ("limit", "shown", "following"), [(2, ["a", "b"], "b"), (3, ["a", "b", "c"], None)]
    )
    def test_commits_are_listed_page_by_page(
        self, live: LiveBench, limit: int, shown: list[str], following: str | None
    ) -> None:
        asked: list[Any] = []

        def commits(who: Any, after: str, most: int) -> list[CommitResult]:
            asked.append((after, most))
            return [CommitResult(key=key, job="j", machine="m") for key in "abc"][:most]

        routes = self.routes(live)
        routes._agent = SimpleNamespace(open_commits=commits)  # type: ignore[assignment]
        items = [("after", "0"), ("limit", str(limit))]

        class Request(dict[Any, Any]):
            query = SimpleNamespace(items=lambda: items)

        request: Any = Request()
        request[_CALLER] = "me"
        page = asyncio.run(routes.commits(request)).value
        assert ([item.key for item in page.items], page.next) == (shown, following)
        assert asked == [("0", limit + 1)]
        assert page.position == str(live.server.events.now)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("strategy", "RoundRobin"),
            ("filters", ("ResourcesFit", "Volume")),
            ("scores", ("BatteryLevel",)),
            ("share", 0.5),
            ("rounds", 2),
            ("overshoot", "cut"),
            ("repeats", "keep"),
        ],
    )
    def test_a_sample_is_drawn_as_it_was_asked_for(
        self, live: LiveBench, monkeypatch: pytest.MonkeyPatch, field: str, value: Any
    ) -> None:
        agent = live.server.agent
        assert agent is not None
        seen: list[Any] = []
        sampler = agent._present().sampler
        sample = sampler.sample

        def noted(effect: Any, pipeline: Any, now: int, **more: Any) -> Any:
            seen.append((effect, pipeline, more))
            return sample(effect, pipeline, now, **more)

        monkeypatch.setattr(sampler, "sample", noted)
        asked: dict[str, Any] = {field: value}
        agent.sample(SampleRequest(request={"cpu": 5}, count=3, demands={"a": "b"}, **asked))
        [(effect, pipeline, more)] = seen
        assert getattr(pipeline, field) == value
        assert (effect.count, effect.demands, effect.request.cpu) == (3, {"a": "b"}, 5)
        assert (more["most"], more["is_cut_off"]) == (0, False)
        assert not more["is_over"]()


def test_a_stop_may_come_without_a_document(live: LiveBench) -> None:
    told: list[StopRequest] = []
    routes = ClusterRoutes(live.server.backend, live.server.metrics, told.append)

    def request(data: bytes, kind: str) -> Any:
        async def read() -> bytes:
            return data

        return SimpleNamespace(read=read, content_type=kind)

    for data, kind in ((b"", "text/plain"), (b'{"stop_tasks": true}', "application/json")):
        reply = asyncio.run(routes.stop(request(data, kind)))
        assert (reply.value, reply.status) == (None, HTTPStatus.ACCEPTED)
    assert [how.stop_tasks for how in told] == [False, True]


def test_a_task_has_every_column() -> None:
    database = Database()
    database.add_job(1, "a", running=2)
    fields = {"machine": "n", "try": 7, "failures": 2, "exit_status": 3, "reason": "why"}
    database.add_task(1, 1, "failed", **fields, started=5_000, ended=6_000)
    database.add_try(7, 1, 1, "n", 5_000, 6_000, 3, "failed")
    reader = StoreReader(database)  # type: ignore[arg-type]
    columns = {
        "job": "a",
        "index": 1,
        "state": "failed",
        "machine": "n",
        "try_number": 7,
        "failures": 2,
        "exit_status": 3,
        "reason": "why",
        "started": "1970-01-01T00:00:00.005000Z",
        "ended": "1970-01-01T00:00:00.006000Z",
    }
    waiting, summary = reader.tasks("a", state=None, limit=9, after=None).items
    assert summary == TaskSummary(**columns)
    assert waiting == TaskSummary(job="a", index=0, state="pending", machine="", failures=0)
    details = reader.task("a", 1)
    assert isinstance(details, TaskDetails)
    assert {name: getattr(details, name) for name in columns} == columns
    database.close()


class TestBeside:
    def test_jobs_are_forgotten_in_batches_and_then_now_and_then(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batches: list[Any] = [
            [OldJob(1, "a")],
            [OldJob(2, "b")],
            [],
            StoreError("locked"),
            [OldJob(3, "c")],
        ]
        did: list[Any] = []
        slept: list[float] = []

        def superfluous(now: int) -> Any:
            assert now == 77
            found = batches.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if not batches:
                raise asyncio.CancelledError

        async def to_thread(work: Any, *given: Any) -> None:
            did.append((work.__name__, *given))

        kept = SimpleNamespace(
            superfluous=superfluous,
            directories=lambda found: [f"files of {each.id}" for each in found],
            forget=lambda found: did.append(("forget", [each.id for each in found])),
        )
        parts: Any = SimpleNamespace(
            _options=SimpleNamespace(kept=KeptJobs(jobs=1)),
            retention=kept,
            cluster=SimpleNamespace(world=SimpleNamespace(now=77)),
            _log=did.append,
        )
        with monkeypatch.context() as patch:
            patch.setattr(server.asyncio, "sleep", sleep)
            patch.setattr(server.asyncio, "to_thread", to_thread)
            with pytest.raises(asyncio.CancelledError):
                asyncio.run(Server._forget(parts))
        assert slept == [0, 0, 10.0, 10.0, 0]
        # Files go first: what is left of a job is found again as long as the job is known.
        expected = [
            each for name in "ab" for each in (("remove", [f"files of {name}"]), ("forget", [name]))
        ]
        assert did[:4] == expected
        assert did[4] == "cannot forget jobs: locked"
        assert did[5:] == [("remove", ["files of c"]), ("forget", ["c"])]
        parts._options.kept = KeptJobs()
        asyncio.run(Server._forget(parts))

    def test_all_jobs_are_cancelled_and_their_processes_waited_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        did: list[Any] = []
        world = SimpleNamespace(
            projection=SimpleNamespace(by_id={"a": 1, "b": 2}),
            cancel=lambda name: did.append(f"cancel {name}"),
        )

        async def do(action: Any) -> None:
            action(world)

        class Runner:
            looks = 2

            @property
            def is_idle(self) -> bool:
                return self.looks == 0

            def sweep(self) -> None:
                did.append("sweep")
                self.looks -= 1

        async def sleep(seconds: float) -> None:
            did.append(seconds)

        parts: Any = SimpleNamespace(
            cluster=SimpleNamespace(world=world, do=do), runner=Runner(), _log=did.append
        )
        with monkeypatch.context() as patch:
            patch.setattr(server.asyncio, "sleep", sleep)
            asyncio.run(Server._stop_tasks(parts))
        assert did == [
            "cancelling 2 jobs",
            "cancel a",
            "cancel b",
            0.05,
            "sweep",
            0.05,
            "sweep",
        ]

    def test_closing_leaves_nothing_open(self, tmp_path: Any) -> None:
        did: list[str] = []
        parts: Any = SimpleNamespace(
            runner=SimpleNamespace(close=lambda: did.append("runner")),
            store=SimpleNamespace(close=lambda: did.append("store")),
            _options=SimpleNamespace(directory=tmp_path),
        )
        socket = tmp_path / "argosy.sock"
        socket.touch()
        Server.close(parts)
        assert not socket.exists()
        Server.close(parts)
        assert did == ["runner", "store"] * 2


class TestEngineChecks:
    def test_what_there_is_to_know_of_the_machines_is_found_once(
        self, live: LiveBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[Any] = []
        checked: list[Any] = []

        def facts_of(scenario: Any) -> Any:
            asked.append(scenario)
            return JobFacts(jobs=[])

        monkeypatch.setattr(submissions, "is_checking", lambda engines: True)
        monkeypatch.setattr(submissions, "facts_of", facts_of)
        monkeypatch.setattr(
            submissions,
            "check_engines",
            lambda scenario, engines, facts: checked.append((scenario, facts)),
        )
        made, world = Submissions(), live.server.cluster.world
        for name in ("a", "b"):
            made.read(world, job(id=name), "")
        assert len(asked) == 1
        assert [facts.jobs[0].id for _, facts in checked] == ["a", "b"]
        assert [each.job.id for each in checked[1][0].jobs] == ["b"]
        bound = job(id="c", tags=["x"], constraints=["x -> {x, 0, 0} in machine"])
        made.read(world, bound, "")
        assert checked[2][1] is None
        monkeypatch.setattr(submissions, "is_checking", lambda engines: False)
        made.read(world, job(id="d"), "")
        assert len(checked) == 3


def test_an_agent_is_asked_for_its_name_where_it_tells_it() -> None:
    asked: list[tuple[str, str]] = []

    class Link:
        endpoint = "http://h:1"

        async def ask(self, method: str, path: str) -> Any:
            asked.append((method, path))
            document = {"status": "ok", "version": "1", "cluster": "x/y", "started": ""}
            counts = {"open_jobs": 0, "running_tasks": 0, "machines": 0}
            return SimpleNamespace(body=msgspec.json.encode({**document, **counts}))

    link: Any = Link()
    assert asyncio.run(scheduling._own_name(link)) == "x-y"
    assert asked == [("GET", "/v1/health")]


def test_a_key_that_was_used_for_another_document_is_a_conflict(live: LiveBench) -> None:
    headers = {"Idempotency-Key": "once"}
    first = live.post("/v1/jobs", job(), headers=headers)
    assert first.status == 201
    problem = live.post("/v1/jobs", job(count=2), headers=headers).problem(409, Conflict.code)
    assert problem["field"] == "Idempotency-Key"
    assert live.post("/v1/jobs", job(), headers=headers).status == 200
    live.over(first.document["id"])


@pytest.mark.parametrize(
    ("query", "shown", "following"),
    [
        ("limit=4", ["m0", "m1", "m2", "m3"], None),
        ("limit=1", ["m0"], "m0"),
        ("limit=1&after=m2", ["m3"], None),
        ("limit=2&after=m1", ["m2", "m3"], None),
        ("limit=2&after=m0", ["m1", "m2"], "m2"),
        ("after=m3", [], None),
    ],
)
def test_the_last_page_of_machines_has_no_next(
    live: LiveBench, query: str, shown: list[str], following: str | None
) -> None:
    page = live.read(f"/v1/machines?{query}")
    assert ([each["name"] for each in page["items"]], page["next"]) == (shown, following)


def test_the_busyness_of_a_scheduler_is_its_share_of_the_time_since_it_began(
    live: LiveBench,
) -> None:
    def schedulers(now: int) -> Any:
        scheduler = SimpleNamespace(
            name="s",
            entry=SimpleNamespace(engine="omega"),
            jobs=3,
            busy_time=lambda at: 2_000_000 if at == now else None,
            is_alive=True,
            transactions=5,
            conflicts=2,
        )
        host = SimpleNamespace(schedulers=[scheduler], setup=SimpleNamespace(began=1_000_000))
        backend: Any = SimpleNamespace(world=SimpleNamespace(now=now, host=host))
        [found] = ClusterRoutes(backend, live.server.metrics, lambda how: None)._schedulers()
        return found

    found = schedulers(7_000_000)
    assert (found.name, found.engine, found.jobs, found.is_alive) == ("s", "omega", 3, True)
    assert (found.busyness, found.transactions, found.conflicts) == (0.333333, 5, 2)
    # At its very beginning, a microsecond has passed.
    assert schedulers(1_000_000).busyness == 2_000_000.0


class TestPlans:
    def test_machines_that_drain_take_nothing_and_what_runs_keeps_its_room(
        self, make_live: Callable[..., LiveBench]
    ) -> None:
        live = make_live()
        big = {"cpu": "700m", "memory": "64MiB"}
        running = live.submit(job("sleep 1000", request=big))
        live.running(running)
        there = live.read(f"/v1/jobs/{running}/tasks/0")["machine"]
        others = [name for name in ("m0", "m1", "m2", "m3") if name != there]
        live.patch(f"/v1/machines/{others[0]}", {"draining": True})
        plan = live.post("/v1/plan", {"jobs": [job(count=3, request=big)]}).document
        assert not plan["fits"]
        placed = {task["machine"] for task in plan["tasks"] if task["state"] == "running"}
        assert placed == {*others[1:]}
        waiting = [task for task in plan["tasks"] if task["state"] == "pending"]
        assert len(waiting) == 1
        assert plan["displaced"] == []
        # A job of this name is there.
        again = {"jobs": [job(id=running)]}
        problem = live.post("/v1/plan", again).problem(422, "document")
        assert problem["field"] == "jobs[0].id"

    def test_a_plan_looks_ahead_from_now_on_as_far_as_it_may(
        self, make_live: Callable[..., LiveBench], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Decides in a step of its own after a job has come.
        live = make_live(cluster("firmament"))
        world, engines = live.server.cluster.world, live.server.backend.engines
        made = live.server.backend.submissions.read(world, job(id="a"), "")
        copied = planning.copy_cluster(world)
        for began in (copied.setup.began, 10**12):
            later = msgspec.structs.replace(copied.setup, began=began)
            at = msgspec.structs.replace(copied, setup=later)
            for ahead, state in ((planning.AHEAD, "running"), (-1, "pending")):
                with monkeypatch.context() as patch:
                    patch.setattr(planning, "AHEAD", ahead)
                    result = planning.plan(at, engines, [made])
                assert (result.fits, result.tasks[0].state) == (state == "running", state)

    def test_as_many_tasks_as_a_plan_may_have_and_one_more(
        self, live: LiveBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(job_routes, "MOST_PLANNED", 3)
        assert live.post("/v1/plan", {"jobs": [job(count=2), job()]}).status == 200
        problem = live.post("/v1/plan", {"jobs": [job(count=2), job(count=2)]}).problem(
            422, "document"
        )
        assert problem["detail"] == "jobs: 4 tasks; expected at most 3 in one plan"


class TestWatching:
    @pytest.mark.parametrize(
        ("query", "seen", "asked"),
        [
            ({}, None, ("position", "now")),
            ({"after": "3"}, None, ("position", "3")),
            ({"after": "3"}, "5.1", ("position", "5.1")),
            ({"last": "4"}, None, ("before_last", 4)),
            ({"last": "0"}, None, ("before_last", 0)),
            ({"last": "4"}, "5.1", ("position", "5.1")),
        ],
    )
    def test_what_was_seen_goes_before_where_it_was_to_begin(
        self, query: dict[str, str], seen: str | None, asked: tuple[str, Any]
    ) -> None:
        found: list[Any] = []

        class Enough(Exception):
            pass

        def note(what: str) -> Any:
            def noted(given: Any) -> Any:
                found.append((what, given))
                raise Enough

            return noted

        events: Any = SimpleNamespace(position=note("position"), before_last=note("before_last"))
        request: Any = SimpleNamespace(
            query=SimpleNamespace(items=lambda: list(query.items())),
            headers={} if seen is None else {"Last-Event-ID": seen},
        )
        with pytest.raises(Enough):
            asyncio.run(StreamRoutes(None, events, None).events(request))  # type: ignore[arg-type]
        assert found == [asked]

    def test_logs_are_those_of_the_last_try_or_of_the_one_that_is_named(
        self, live: LiveBench
    ) -> None:
        name = live.submit(job(["sh", "-c", "exit 3"], retries=1, backoff="1ms"))
        live.over(name)
        tries = [each["number"] for each in live.read(f"/v1/jobs/{name}/tasks/0")["tries"]]
        assert len(tries) == 2
        path = f"/v1/jobs/{name}/tasks/0/logs"
        assert live.get(path).headers["Argosy-Try"] == str(tries[1])
        assert live.get(f"{path}?try={tries[0]}").headers["Argosy-Try"] == str(tries[0])
        problem = live.get(f"{path}?try=999999").problem(404, "not-found")
        assert (problem["field"], problem["expected"]) == ("try", f"one of {tries[0]}, {tries[1]}")
        both = live.get(f"{path}?offset=0&tail=0").problem(400, "request")
        assert both["field"] == "tail"
