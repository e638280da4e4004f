"""What an agent tells of commits: page by page, how each ended, and what cannot be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from live_bench import LiveBench
from live_bench import job as a_job
from test_agent_routes import QUARTER, commit, sleeper
from yarl import URL

Make = Callable[..., LiveBench]


def test_open_commits_are_listed_by_key_page_by_page(make_live: Make) -> None:
    live = make_live()
    for at, key in enumerate(("b", "c", "a")):
        answer = commit(live, f"of-{key}", f"m{at}", key=key)
        assert (answer.status, answer.headers["Location"]) == (201, f"/v1/jobs/of-{key}")
        assert answer.document == {"key": key, "job": f"of-{key}", "machine": f"m{at}"}

    def page(query: str = "") -> tuple[list[str], str | None]:
        found = live.read(f"/v1/commits{query}")
        assert found["position"] == str(live.server.events.now)
        return [each["key"] for each in found["items"]], found["next"]

    assert page() == page("?limit=3") == (["a", "b", "c"], None)
    assert page("?limit=2") == (["a", "b"], "b")
    assert page("?limit=2&after=b") == (["c"], None)
    assert page("?limit=1&after=a") == (["b"], "b")
    assert page("?after=aa") == (["b", "c"], None)
    assert page("?after=c") == ([], None)
    live.cancel("of-b")
    assert page("?limit=2") == (["a", "c"], None)


def test_a_commit_tells_what_has_become_of_its_job(make_live: Make) -> None:
    live = make_live()
    key = "k/1 ?"
    failing = a_job(["sh", "-c", "exit 3"], id="f")
    assert commit(live, "f", "m2", key=key, job=failing).status == 201
    live.over("f")
    info = live.get(URL("/v1/commits/k%2F1%20%3F", encoded=True)).document
    reason = live.read("/v1/jobs/f/tasks/0")["reason"]
    assert info == {
        "key": key,
        "job": "f",
        "machine": "m2",
        "state": "failed",
        "exit_status": 3,
        "reason": reason,
    }
    assert live.read("/v1/commits")["items"] == []
    # The same again is the same commit; it is only told.
    again = commit(live, "f", "m2", key=key, job=failing)
    assert (again.status, again.document["machine"]) == (200, "m2")
    assert commit(live, "r", "m1").status == 201
    live.running("r")
    info = live.read("/v1/commits/r")
    assert (info["state"], info["machine"]) == ("running", "m1")
    assert "exit_status" not in info
    live.get("/v1/commits/other").problem(404, "not-found")


def test_a_sample_counts_what_it_drew_and_tells_what_is_free_if_asked(make_live: Make) -> None:
    live = make_live()
    live.patch("/v1/machines/m0", {"draining": True})
    asked: dict[str, Any] = {"request": QUARTER, "share": 1}
    plain = live.post("/v1/sample", asked).document
    told = live.post("/v1/sample", {**asked, "free": True}).document
    assert sorted(plain["machines"]) == sorted(told["machines"]) == ["m1", "m2", "m3"]
    assert "free" not in plain
    assert "resources" not in plain
    assert told["resources"] == ["cpu", "memory"]
    assert told["free"] == [[1_000, 2**30]] * 3
    for found in (plain, told):
        # Those that drain are not drawn, or dropped with the reason.
        assert found["drawn"] == 3 + sum(found.get("ruled_out", {}).values())


@pytest.mark.parametrize(
    ("keys", "field", "problem"),
    [
        ({"id": None}, "job", "missing key 'id'"),
        ({"count": 2}, "job.count", "2 tasks"),
        (
            {"tags": ["x"], "constraints": ["x -> {x, 0, 0} in machine"]},
            "job.constraints",
            "placement constraints",
        ),
    ],
)
def test_a_commit_is_of_one_task_that_goes_where_it_is_told(
    live: LiveBench, keys: dict[str, Any], field: str, problem: str
) -> None:
    document = {**sleeper("wrong"), **keys}
    answer = commit(live, "wrong", "m0", job=document).problem(422, "document")
    assert answer["field"] == field
    assert problem in answer["detail"]
    live.get("/v1/jobs/wrong").problem(404, "not-found")


@pytest.mark.parametrize("key", ["k" * 201, ""])
def test_a_key_that_is_none_releases_nothing(live: LiveBench, key: str) -> None:
    order = {"job": sleeper("unnamed"), "machines": ["m0"]}
    problem = live.post("/v1/commits", order, headers={"Idempotency-Key": key})
    assert problem.problem(400, "request")["field"] == "Idempotency-Key"
    if key:
        released = live.delete(f"/v1/commits/{key}").problem(400, "request")
        assert released["field"] == "Idempotency-Key"


def test_what_schedulers_elsewhere_ask_takes_as_long_as_the_way_to_them(
    make_live: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, delays = make_live(), list[str]()
    asked = [""]

    async def later() -> None:
        delays.extend(asked)

    monkeypatch.setattr(live.server.agent, "answer_later", later)
    order = {"job": sleeper("j"), "machines": ["m0"]}
    room = {"machine": "m1", "request": QUARTER}
    steps: dict[str, Callable[[], Any]] = {
        "place": lambda: live.get("/v1/place"),
        "sample": lambda: live.post("/v1/sample", {"request": QUARTER}),
        "commit": lambda: live.post("/v1/commits", order, headers={"Idempotency-Key": "k"}),
        "again": lambda: live.post("/v1/commits", order, headers={"Idempotency-Key": "k"}),
        "info": lambda: live.get("/v1/commits/k"),
        "list": lambda: live.get("/v1/commits"),
        "release": lambda: live.delete("/v1/commits/k"),
        "reserve": lambda: live.post("/v1/reservations", room),
    }
    for name, ask in steps.items():
        asked[0] = name
        assert ask().status in (200, 201)
    assert delays == ["place", "sample", "commit", "again", "release"]
