"""Machines, the fleet, plans and health over the API, also while things go wrong."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from failing_engines import FailsWhenTold
from live_bench import SMALL, LiveBench, cluster, job, shell

from argosy.api.values import PlanResult
from argosy.engines.registry import ENGINES
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.service import job_routes
from argosy.service import live as live_module

Make = Callable[..., LiveBench]


def names(page: dict[str, Any]) -> list[str]:
    return [machine["name"] for machine in page["items"]]


def test_machines_are_listed_in_the_order_of_joining_page_by_page(live: LiveBench) -> None:
    assert names(live.read("/v1/machines")) == ["m0", "m1", "m2", "m3"]
    page = live.read("/v1/machines?limit=3")
    assert (names(page), page["next"]) == (["m0", "m1", "m2"], "m2")
    page = live.read(f"/v1/machines?limit=3&after={page['next']}")
    assert (names(page), page["next"]) == (["m3"], None)
    live.get("/v1/machines?after=m9").problem(400, "request")
    live.get("/v1/machines?limit=0").problem(400, "request")


def test_pages_go_on_after_a_machine_that_was_removed_meanwhile(make_live: Make) -> None:
    live = make_live()
    page = live.read("/v1/machines?limit=2")
    live.delete(f"/v1/machines/{page['next']}")
    assert names(live.read(f"/v1/machines?after={page['next']}")) == ["m2", "m3"]


def test_a_machine_tells_what_is_used(live: LiveBench) -> None:
    name = live.submit(job("sleep 1000"))
    task = live.read(f"/v1/jobs/{name}/tasks/0")
    machine = live.read(f"/v1/machines/{task['machine']}")
    assert machine["capacity"] == {"cpu": 1000, "memory": 2**30}
    assert machine["used"] == {"cpu": 250, "memory": 64 * 2**20}
    assert (machine["running"], machine["queued"], machine["draining"]) == (1, 0, False)
    live.cancel(name)
    assert live.read(f"/v1/machines/{task['machine']}")["used"] == {}
    problem = live.get("/v1/machines/m").problem(404, "not-found")
    assert problem["detail"].startswith("unknown machine 'm'")


def test_a_machine_comes_is_used_and_goes(make_live: Make) -> None:
    live = make_live()
    added = live.post(
        "/v1/machines",
        {"name": "new/1", "capacity": {"cpu": "2", "memory": "1GiB"}, "attributes": {"a": "b"}},
    )
    assert added.status == 201
    assert added.headers["Location"] == "/v1/machines/new%2F1"
    assert added.document["attributes"] == {"a": "b"}
    name = live.submit(job("sleep 1000", requires={"a": "b"}))
    assert live.running(name)
    assert live.read(f"/v1/jobs/{name}/tasks/0")["machine"] == "new/1"
    gone = live.delete("/v1/machines/new%2F1")
    assert (gone.status, gone.body) == (204, b"")
    live.get("/v1/machines/new%2F1").problem(404, "not-found")
    live.delete("/v1/machines/new%2F1").problem(404, "not-found")
    assert live.read(f"/v1/jobs/{name}")["tasks"]["pending"] == 1
    task = live.read(f"/v1/jobs/{name}/tasks/0")
    assert task["tries"][0]["outcome"] == "evicted"
    assert task["failures"] == 0


@pytest.mark.parametrize(
    ("document", "status", "code", "detail"),
    [
        ({}, 422, "document", "missing key 'name'"),
        ({"name": "x"}, 422, "document", "missing key 'capacity'"),
        ({"name": "m1", "capacity": SMALL}, 409, "conflict", "there is a machine m1 already"),
        ({"name": "a b", "capacity": SMALL}, 422, "scenario", "name: machine name 'a b'"),
        ({"name": "..", "capacity": SMALL}, 422, "document", "name: '..'; expected"),
        ({"name": "x", "capacity": {"cpu": "much"}}, 422, "unit", "capacity.cpu"),
        ({"name": "x", "capacity": SMALL, "count": 2}, 422, "document", "count: 2 machines"),
        (
            {"name": "x", "capacity": SMALL, "joins": {"a b": ["c"]}},
            422,
            "document",
            "joins: node group 'a b'",
        ),
        (
            {"name": "x", "capacity": SMALL, "joins": {"rack": ["r\n"]}},
            422,
            "document",
            "joins.rack: set 'r\\n'",
        ),
        ({"name": "x", "capacity": {"a b": 1}}, 422, "document", "capacity: resource 'a b'"),
    ],
)
def test_a_machine_that_makes_no_sense_is_refused(
    live: LiveBench, document: Any, status: int, code: str, detail: str
) -> None:
    assert detail in live.post("/v1/machines", document).problem(status, code)["detail"]
    assert len(live.read("/v1/machines")["items"]) == 4


def test_a_machine_that_the_cell_refuses_leaves_nothing_behind(make_live: Make) -> None:
    live = make_live()
    capacity = {"cpu": "1"}
    many = {f"r{number}": 1 for number in range(100)}
    for document in (
        {"name": "a", "capacity": capacity, "joins": {"machine": ["m0"]}},
        {"name": "a", "capacity": many},
    ):
        live.post("/v1/machines", document).problem(422, "model")
    live.patch("/v1/machines/m0", {"capacity": many}).problem(422, "model")
    rack = {"name": "b", "capacity": capacity, "joins": {"rack": ["r1"]}}
    assert live.post("/v1/machines", rack).status == 201
    assert names(live.read("/v1/machines")) == ["m0", "m1", "m2", "m3", "b"]
    live.over(live.submit(job()))
    journal = live.get("/v1/journal").body
    Replay(JournalFile(journal, "journal"), ENGINES).run()
    live.stop()
    live.start()
    assert names(live.read("/v1/machines")) == ["m0", "m1", "m2", "m3", "b"]


def test_the_summary_has_the_cluster_in_numbers(make_live: Make) -> None:
    live = make_live()
    live.over(live.submit(job(count=3)))
    live.over(live.submit(job("false")))
    running = live.submit(job("sleep 1000", count=2))
    live.running(running, 2)
    live.submit(job(request={"cpu": "2", "memory": "1GiB"}))
    live.patch("/v1/machines/m0", {"draining": True})
    assert live.read("/v1/health")["machines"] == 3, "one takes no tasks"
    found = live.read("/v1/summary")
    assert (found["world"], found["status"], found["detail"]) == ("local", "ok", "")
    assert (found["open_jobs"], found["machines"], found["accepting"]) == (2, 4, 3)
    assert found["tasks"] == {
        "pending": 1,
        "queued": 0,
        "running": 2,
        "finished": 3,
        "failed": 1,
        "cancelled": 0,
        "abandoned": 0,
    }
    assert found["placed"] == 6
    assert found["capacity"] == {"cpu": 4_000, "memory": 4 * 2**30}
    assert found["used"] == {"cpu": 500, "memory": 128 * 2**20}
    (scheduler,) = found["schedulers"]
    assert (scheduler["name"], scheduler["engine"], scheduler["jobs"]) == ("omega", "omega", 4)
    assert (scheduler["transactions"], scheduler["conflicts"]) == (3, 0)
    live.cancel(running)
    assert live.read("/v1/summary")["tasks"]["cancelled"] == 2


def test_a_machine_is_drained_and_accepts_tasks_again(make_live: Make) -> None:
    live = make_live(cluster(machines=(Machine("only", Resources(1000, 2**30)),)))
    first = live.submit(job("sleep 1000"))
    assert live.patch("/v1/machines/only", {"draining": True}).document["draining"]
    second = live.submit(job("sleep 1000"))
    assert live.read(f"/v1/jobs/{first}")["tasks"]["running"] == 1
    assert live.read(f"/v1/jobs/{second}")["tasks"]["pending"] == 1
    live.stop()
    live.start()
    assert live.read("/v1/machines/only")["draining"]
    assert not live.patch("/v1/machines/only", {"draining": False}).document["draining"]
    live.running(second)


def test_a_machine_is_resized_and_drained_in_one_step(live: LiveBench) -> None:
    changed = live.patch("/v1/machines/m3", {"draining": True, "capacity": {"cpu": "4"}})
    assert changed.document["capacity"] == {"cpu": 4000}
    assert changed.document["draining"]
    back = {"draining": False, "capacity": {"cpu": "1", "memory": "1GiB"}}
    assert live.patch("/v1/machines/m3", back).status == 200
    for patch, code in (
        ({}, "document"),
        ({"capacity": {"cpu": -1}}, "unit"),
        ({"capacity": 3}, "document"),
        ({"drain": True}, "document"),
        ({"capacity": {"x\ny": 1}}, "document"),
    ):
        live.patch("/v1/machines/m3", patch).problem(422, code)
    live.patch("/v1/machines/m9", {"draining": True}).problem(404, "not-found")


def test_a_change_of_a_machine_can_be_tied_to_what_was_seen(live: LiveBench) -> None:
    seen = live.get("/v1/machines/m2").etag
    unchanged = live.get("/v1/machines/m2", headers={"If-None-Match": seen})
    assert unchanged.status == 304
    changed = live.patch("/v1/machines/m2", {"draining": True}, headers={"If-Match": seen})
    assert (changed.status, changed.etag != seen) == (200, True)
    old = {"If-Match": seen}
    live.patch("/v1/machines/m2", {"draining": False}, headers=old).problem(412, "version-changed")
    live.delete("/v1/machines/m2", headers=old).problem(412, "version-changed")
    assert live.patch("/v1/machines/m2", {"draining": False}).etag == seen


def test_other_schedulers_take_over_while_tasks_run(make_live: Make) -> None:
    live = make_live()
    name = live.submit(job("sleep 1000", count=3))
    before = live.get("/v1/fleet")
    tries = [
        live.read(f"/v1/jobs/{name}/tasks/{index}")["tries"][0]["number"] for index in range(3)
    ]
    changed = live.put(
        "/v1/fleet",
        {"fleet": [{"name": "new", "engine": "murmuration"}]},
        headers={"If-Match": before.etag},
    )
    assert changed.status == 200
    assert changed.document["version"] > before.document["version"]
    assert [each["engine"] for each in changed.document["schedulers"]] == ["murmuration"]
    assert live.read("/v1/fleet")["fleet"] == [{"name": "new", "engine": "murmuration"}]
    assert live.read(f"/v1/jobs/{name}")["tasks"]["running"] == 3
    assert tries == [
        live.read(f"/v1/jobs/{name}/tasks/{index}")["tries"][0]["number"] for index in range(3)
    ]
    old = {"If-Match": before.etag}
    live.put("/v1/fleet", before.document | {}, headers=old).problem(422, "document")
    fleet = {"fleet": before.document["fleet"]}
    live.put("/v1/fleet", fleet, headers=old).problem(412, "version-changed")
    other = live.submit(job())
    assert live.over(other)["scheduler"] == "new"


@pytest.mark.parametrize(
    ("fleet", "code", "detail"),
    [
        ([], "scenario", "no schedulers"),
        ([{"name": "a", "engine": "omgea"}], "unknown-engine", "did you mean 'omega'?"),
        ([{"name": "a", "engine": "os:path"}], "fleet-refused", "is not a class"),
        ([{"name": "a", "engine": "no_such:Thing"}], "engine-not-found", "no_such"),
        ([{"name": "a"}], "scenario", "missing key 'engine'"),
        ([{"name": "a", "engine": "omega", "settings": {"x": 1}}], "setting", "unknown key 'x'"),
        (
            [{"name": "a", "engine": "failing_engines:CannotStart"}],
            "fleet-refused",
            "no machine has what this needs",
        ),
        (
            [{"name": "a", "engine": "failing_engines:BreaksAtTheStart"}],
            "fleet-refused",
            "a bug of somebody else's",
        ),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_and_changes_nothing(
    live: LiveBench, fleet: Any, code: str, detail: str
) -> None:
    before = live.read("/v1/fleet")["fleet"]
    assert detail in live.put("/v1/fleet", {"fleet": fleet}).problem(422, code)["detail"]
    assert live.read("/v1/fleet")["fleet"] == before
    assert live.read("/v1/health")["status"] == "ok"


def test_a_fleet_that_would_leave_a_job_without_a_scheduler_is_refused(live: LiveBench) -> None:
    name = live.submit(job("sleep 1000", kind="batch"))
    fleet = [{"name": "a", "engine": "omega", "takes": {"kinds": ["service"]}}]
    assert live.put("/v1/fleet", {"fleet": fleet}).status == 422
    assert live.read(f"/v1/jobs/{name}")["tasks"]["running"] == 1
    live.cancel(name)


def test_a_job_that_an_engine_fails_on_is_not_accepted_and_others_go_on(make_live: Make) -> None:
    live = make_live(cluster("failing_engines:FailsOnWord"))
    running = live.submit(job("sleep 1000"))
    answer = live.post("/v1/jobs", job(owner="trouble", id="bad"))
    problem = answer.problem(503, "engine-fault")
    assert "a bug of somebody else's" in problem["detail"]
    assert answer.headers["Retry-After"]
    live.until("/v1/health", lambda health: health["status"] == "ok")
    live.get("/v1/jobs/bad").problem(404, "not-found")
    assert live.read(f"/v1/jobs/{running}")["tasks"]["running"] == 1
    live.over(live.submit(job()))


def test_a_fleet_that_fails_for_good_can_be_replaced_and_no_task_is_lost(make_live: Make) -> None:
    live = make_live(cluster("failing_engines:FailsWhenTold"))
    running = live.submit(shell("echo here; exec sleep 1000", count=2))
    # A command that does not run yet would be taken back, and tried again.
    for index in range(2):
        live.wrote(running, "here", index)
    waiting = live.submit(job("true", request={"cpu": "1", "memory": "2GiB"}))
    FailsWhenTold.fails = True
    try:
        live.post("/v1/jobs", job()).problem(503, "engine-fault")
        health = live.get("/v1/health")
        assert (health.status, health.document["status"]) == (503, "failing")
        assert "a bug of somebody else's" in health.document["detail"]
        # Whatever only reads is answered.
        for path in (
            "/v1/jobs",
            f"/v1/jobs/{running}",
            f"/v1/jobs/{running}/tasks",
            f"/v1/jobs/{running}/tasks/0/why",
            f"/v1/jobs/{running}/tasks/0/story",
            f"/v1/jobs/{running}/tasks/0/logs",
            "/v1/machines",
            "/v1/fleet",
            "/v1/recording",
            "/v1/journal",
            "/metrics",
        ):
            assert live.get(path).status == 200, path
        problem = live.post("/v1/jobs", job()).problem(503, "unavailable")
        assert problem["detail"].startswith("the fleet fails: ")
        live.post(f"/v1/jobs/{running}/cancel").problem(503, "unavailable")
        # Another fleet that fails is refused, and the next start does not meet it.
        cannot = {"fleet": [{"name": "a", "engine": "failing_engines:CannotStart"}]}
        live.put("/v1/fleet", cannot).problem(422, "fleet-refused")
        assert live.read("/v1/fleet")["fleet"][0]["engine"] == "failing_engines:FailsWhenTold"
        mended = live.put("/v1/fleet", {"fleet": [{"name": "o", "engine": "omega"}]})
        assert mended.status == 200
    finally:
        FailsWhenTold.fails = False
    assert live.read("/v1/health")["status"] == "ok"
    task = live.read(f"/v1/jobs/{running}/tasks/0")
    assert (task["state"], len(task["tries"])) == ("running", 1)
    assert live.read(f"/v1/jobs/{running}")["tasks"]["running"] == 2
    assert live.read(f"/v1/jobs/{waiting}")["tasks"]["pending"] == 1
    live.over(live.submit(job()))


@contextmanager
def full_disk(live: LiveBench) -> Iterator[None]:
    """The database cannot grow."""
    db = live.server.store._db
    most = db.execute("PRAGMA max_page_count").fetchone()[0]
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA max_page_count = {most}")


def test_a_full_disk_pauses_the_cluster_until_there_is_room(
    make_live: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "PAUSE", 0.01)
    live = make_live()
    running = live.submit(job("sleep 1000"))

    async def pause() -> Any:
        big = live.ask("POST", "/v1/jobs", json=job(id="big", stdin="x" * 100_000))
        submitted = live.run_later(big)
        while (await live.ask("GET", "/v1/health")).status == 200:
            pass
        return submitted

    with full_disk(live):
        submitted = live.run(pause())
        health = live.get("/v1/health")
        assert (health.status, health.document["status"]) == (503, "paused")
        assert "the disk is full" in health.document["detail"]
        answer = live.post("/v1/jobs", job())
        assert "the disk is full" in answer.problem(503, "unavailable")["detail"]
        assert answer.headers["Retry-After"]
        assert live.read(f"/v1/jobs/{running}")["tasks"]["running"] == 1
        live.get("/v1/jobs/big").problem(404, "not-found")

    async def answered() -> Any:
        return await submitted

    assert live.run(answered()).status == 201
    live.over("big")
    assert live.read("/v1/health")["status"] == "ok"


def test_a_locked_database_is_a_problem_of_the_moment(
    make_live: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "PAUSE", 0.01)
    live = make_live()
    live.server.store._db.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(live.server.store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def submit() -> Any:
        submitted = live.run_later(live.ask("POST", "/v1/jobs", json=job()))
        while (await live.ask("GET", "/v1/health")).status == 200:
            pass
        other.execute("ROLLBACK")
        return await submitted

    assert live.run(submit()).status == 201
    other.close()


def test_a_plan_says_where_jobs_would_go_and_changes_nothing(live: LiveBench) -> None:
    before = live.server.events.now
    result = live.post("/v1/plan", {"jobs": [job(count=2), job(id="b")]})
    assert result.status == 200
    plan = result.document
    assert plan["fits"]
    assert [(task["job"], task["index"]) for task in plan["tasks"]] == [
        ("planned-0", 0),
        ("planned-0", 1),
        ("b", 0),
    ]
    assert all(task["machine"].startswith("m") for task in plan["tasks"])
    assert all(task["state"] == "running" for task in plan["tasks"])
    live.get("/v1/jobs/b").problem(404, "not-found")
    assert live.server.events.now == before


def test_a_plan_says_what_does_not_fit_and_what_would_help(live: LiveBench) -> None:
    large = job(request={"cpu": "2", "memory": "1GiB"})
    plan = live.post("/v1/plan", {"jobs": [job(), large]}).document
    assert not plan["fits"]
    waiting = plan["tasks"][1]
    assert (waiting["state"], waiting["machine"]) == ("pending", "")
    assert "the largest machine has 1 core" in waiting["sentence"]
    assert waiting["remedy"].startswith("ask for 1 core less")


def test_a_plan_says_who_would_have_to_go(make_live: Make) -> None:
    machine = Machine("only", Resources(1000, 2**30))
    live = make_live(cluster("kube", machines=(machine,)))
    low = live.submit(job("sleep 1000", request={"cpu": "1", "memory": "64MiB"}))
    live.running(low)
    high = job("true", precedence=10, request={"cpu": "1", "memory": "64MiB"})
    plan = live.post("/v1/plan", {"jobs": [high]}).document
    assert plan["displaced"] == [
        {"task": f"{low}/0", "machine": "only", "outcome": "preempted", "to": ""}
    ]
    assert live.read(f"/v1/jobs/{low}")["tasks"]["running"] == 1


@pytest.mark.parametrize(
    ("document", "code", "detail"),
    [
        ({"jobs": []}, "document", "jobs: an array does not fit"),
        ({"jobs": [job(id="a"), job(id="a")]}, "document", "jobs[1].id: job a again"),
        ({"jobs": [job(), {"command": "true"}]}, "job", "jobs[1]: missing key 'request'"),
        ({"jobs": [job(count=10_000_000)]}, "document", "jobs: 10,000,000 tasks"),
        ({"jobs": 3}, "document", "jobs: 3 does not fit; expected array"),
    ],
)
def test_a_plan_of_jobs_that_cannot_be_is_refused(
    live: LiveBench, document: Any, code: str, detail: str
) -> None:
    assert detail in live.post("/v1/plan", document).problem(422, code)["detail"]


def test_clients_that_leave_do_not_make_plans_pile_up(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, threads = threading.Event(), set[int]()

    def plan(*ignored: Any) -> PlanResult:
        threads.add(threading.get_ident())
        assert may_end.wait(30)
        return PlanResult(fits=True, tasks=())

    monkeypatch.setattr(job_routes, "plan", plan)

    async def leave_and_ask_again() -> Any:
        for _ in range(3):
            left = asyncio.create_task(live.ask("POST", "/v1/plan", json={"jobs": [job()]}))
            while not threads:
                await live.ask("GET", "/v1/health")
            left.cancel()
            await asyncio.wait({left})
        last = asyncio.create_task(live.ask("POST", "/v1/plan", json={"jobs": [job()]}))
        for _ in range(5):
            await live.ask("GET", "/v1/health")
        may_end.set()
        return await last

    assert live.run(leave_and_ask_again()).document["fits"]
    assert len(threads) == 1


def test_health_tells_what_there_is(live: LiveBench) -> None:
    name = live.submit(job("sleep 1000", count=2))
    health = live.read("/v1/health")
    assert (health["open_jobs"], health["running_tasks"], health["machines"]) == (1, 2, 4)
    assert (health["status"], health["detail"], health["cluster"]) == ("ok", "", "local")
    live.cancel(name)


@pytest.mark.parametrize("stop_tasks", [False, True])
def test_the_server_can_be_stopped_with_or_without_its_tasks(
    make_live: Make, stop_tasks: bool
) -> None:
    live = make_live()
    name = live.submit(job("sleep 1000"))
    live.post("/v1/shutdown", {"stop_task": True}).problem(422, "document")
    assert live.post("/v1/shutdown", {"stop_tasks": stop_tasks}).status == 202
    live.await_stop()
    live.start()
    state = live.read(f"/v1/jobs/{name}")["state"]
    assert state == ("cancelled" if stop_tasks else "running")
