"""Jobs and tasks over the API: documents, pages, filters, versions, keys and changes."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from live_bench import SMALL, LiveBench, job, shell
from yarl import URL

from argosy.model.errors import ArgosyError
from argosy.service.submissions import Submissions
from argosy.workloads.live_jobs import read_live_job
from argosy.workloads.tables import Misfit


def test_a_job_is_answered_with_its_place_its_version_and_its_document(live: LiveBench) -> None:
    answer = live.post("/v1/jobs", job("true", id="first", count=2, owner="ann", name="A first"))
    assert answer.status == 201
    assert answer.headers["Location"] == "/v1/jobs/first"
    details = answer.document
    assert answer.etag == f'"{details["version"]}"'
    assert details["document"]["count"] == 2
    assert (details["owner"], details["name"], details["scheduler"]) == ("ann", "A first", "omega")
    assert "limited" in details["isolation"]
    done = live.over("first")
    assert (done["state"], done["exit_code"], done["tasks"]["finished"]) == ("finished", 0, 2)
    assert done["version"] > details["version"]


def test_a_job_of_simulated_tasks_says_that_no_process_is_limited(
    make_live: Callable[..., LiveBench],
) -> None:
    details = make_live(tasks="simulated").post("/v1/jobs", job("true")).document
    assert details["isolation"].startswith("simulated: no process is started")


def test_the_document_of_a_job_can_be_submitted_again(live: LiveBench) -> None:
    first = live.submit(job("true", environment={"A": "b"}, retries=2, timeout="90s", tags=["x"]))
    document = live.read(f"/v1/jobs/{first}")["document"]
    again = live.submit({**document, "id": f"{first}-again"})
    copied = live.read(f"/v1/jobs/{again}")["document"]
    assert {**copied, "id": first} == document


def test_a_job_without_an_id_gets_one(live: LiveBench) -> None:
    names = [live.submit(job()) for _ in range(2)]
    assert len(set(names)) == 2
    assert all(name.startswith("job-") for name in names)


def test_an_id_with_odd_characters_can_be_asked_for(live: LiveBench) -> None:
    answer = live.post("/v1/jobs", job(id="ü%2F?#{x}"))
    assert answer.status == 201
    assert live.get(URL(answer.headers["Location"], encoded=True)).document["id"] == "ü%2F?#{x}"


def test_an_id_cannot_be_used_twice(live: LiveBench) -> None:
    live.submit(job(id="twice"))
    problem = live.post("/v1/jobs", job(id="twice")).problem(409, "conflict")
    assert problem["detail"] == "id: there is a job twice already; expected a new id"


@pytest.mark.parametrize(
    ("document", "code", "detail"),
    [
        ({}, "job", "missing key 'request'"),
        (job(cuont=3), "job", "did you mean 'count'?"),
        (job(count=0), "model", "0 tasks in a group; expected 1 to 16,777,216"),
        (job(id="a/b"), "model", "id: job id 'a/b'; expected a printable id without"),
        (job(duration="5s"), "job", "a live task ends when its process does"),
        ({"request": SMALL}, "job", "nothing to execute"),
        (job(request={"gpu": 1}), "unknown-name", "unknown resource 'gpu'"),
        (job(requires={"zone": "a"}), "scenario", "no machine has attribute 'zone'"),
        (job(["a\0b"]), "model", "a null character in the command"),
        (job(timeout="5"), "unit", "timeout"),
        (job(output_limit=1 << 70), "model", "output_limit"),
        ([], "job", "expected a table"),
    ],
)
def test_a_job_that_cannot_be_accepted_is_refused_with_the_reason(
    live: LiveBench, document: Any, code: str, detail: str
) -> None:
    problem = live.post("/v1/jobs", document).problem(422, code)
    assert detail in problem["detail"]


def test_a_problem_has_the_text_that_a_command_would_print(live: LiveBench) -> None:
    document = job(requires={"zone": "a"})
    with pytest.raises(ArgosyError) as caught:
        Submissions().read(live.server.cluster.world, document, "x")
    assert live.post("/v1/jobs", document).document["detail"] == str(caught.value)
    with pytest.raises(Misfit) as misfit:
        read_live_job(job(cuont=3), default_id="x")
    assert str(misfit.value.error) in live.post("/v1/jobs", job(cuont=3)).document["detail"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {"Content-Type": "application/json"}, 400, "request"),
        (b"[" * 100_000, {"Content-Type": "application/json"}, 400, "request"),
        (b'{"id": "\\ud800"}', {"Content-Type": "application/json"}, 400, "request"),
        (b"\xff", {"Content-Type": "application/json"}, 400, "request"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "media-type"),
        (b"", {"Content-Type": "application/json"}, 400, "request"),
        (
            b"not gzip",
            {"Content-Type": "application/json", "Content-Encoding": "gzip"},
            400,
            "request",
        ),
    ],
)
def test_a_body_that_is_no_json_is_refused(
    live: LiveBench, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    live.run(live.ask("POST", "/v1/jobs", data=body, headers=headers)).problem(status, code)


def test_a_document_that_is_too_large_is_refused(live: LiveBench) -> None:
    body = io.BytesIO(json.dumps(job(stdin="x" * (4 << 20))).encode())
    headers = {"Content-Type": "application/json"}
    answer = live.run(live.ask("POST", "/v1/jobs", data=body, headers=headers))
    problem = answer.problem(413, "too-large")
    assert problem["detail"] == "the document is too large; expected at most 4,194,304 bytes"


def test_unknown_jobs_and_tasks_are_not_found(live: LiveBench) -> None:
    live.submit(job(id="unique-name"))
    problem = live.get("/v1/jobs/uniqe-name").problem(404, "not-found")
    assert problem["hint"] == "did you mean 'unique-name'?"
    for path in ("tasks/1", "tasks/x", "tasks/-1", "tasks/99999999999", "tasks/1/why"):
        live.get(f"/v1/jobs/unique-name/{path}").problem(404, "not-found")
    for path in ("tasks", "tasks/0", "tasks/0/why", "tasks/0/story", "tasks/0/logs"):
        live.get(f"/v1/jobs/nobody/{path}").problem(404, "not-found")
    live.get("/v1/nothing").problem(404, "not-found")


def test_a_method_that_a_path_does_not_have_is_refused_with_those_it_has(live: LiveBench) -> None:
    answer = live.delete("/v1/jobs")
    answer.problem(405, "method")
    assert answer.headers["Allow"] == "GET,POST"


def test_jobs_are_listed_newest_first_page_by_page(make_live: Callable[..., LiveBench]) -> None:
    live = make_live()
    names = [live.submit(job(id=f"j{n}")) for n in range(5)]
    seen, path = [], "/v1/jobs?limit=2"
    while True:
        page = live.read(path)
        assert len(page["items"]) <= 2
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        path = f"/v1/jobs?limit=2&after={page['next']}"
        # What comes meanwhile does not shift the pages.
        live.submit(job())
    assert seen == names[::-1]


def test_jobs_can_be_filtered(make_live: Callable[..., LiveBench]) -> None:
    live = make_live()
    live.submit(job(id="a", owner="ann"))
    live.submit(job("false", id="b", owner="bob", kind="nightly"))
    live.submit(job("sleep 1000", id="c", owner="ann"))
    live.over("a")
    live.over("b")

    def found(query: str) -> list[str]:
        return [item["id"] for item in live.read(f"/v1/jobs?{query}")["items"]]

    assert found("owner=ann") == ["c", "a"]
    assert found("kind=nightly") == ["b"]
    assert found("state=failed") == ["b"]
    assert found("open=true") == ["c"]
    assert found("open=false") == ["b", "a"]
    assert found("open=false&owner=ann") == ["a"]
    assert found("owner=nobody") == found("owner=%ED%A0%80") == []


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("limit=0", "limit: '0' does not fit; expected a whole number of at least 1"),
        ("limit=1001", "limit: '1001' does not fit; expected a whole number of at most 1000"),
        ("limit=many", "limit: 'many' does not fit; expected a whole number"),
        (
            "state=asleep",
            "state: 'asleep' does not fit; expected one of pending, running, finished",
        ),
        ("open=perhaps", "open: 'perhaps' does not fit; expected true or false"),
        ("after=x", "after: 'x'; expected what `next` of the page before said"),
        ("after=1&after=2", "after: given twice; expected one value"),
        ("onwer=x", "unknown parameter 'onwer'; expected one of state, kind, owner"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(
    live: LiveBench, query: str, detail: str
) -> None:
    problem = live.get(f"/v1/jobs?{query}").problem(400, "request")
    assert problem["detail"].startswith(detail)


def test_tasks_are_listed_by_index_page_by_page_and_by_state(live: LiveBench) -> None:
    name = live.submit(shell('exit "$ARGOSY_TASK"', count=3))
    live.over(name)
    page = live.read(f"/v1/jobs/{name}/tasks?limit=2")
    assert [(task["index"], task["state"]) for task in page["items"]] == [
        (0, "finished"),
        (1, "failed"),
    ]
    rest = live.read(f"/v1/jobs/{name}/tasks?limit=2&after={page['next']}")
    assert [task["index"] for task in rest["items"]] == [2]
    assert rest["next"] is None
    failed = live.read(f"/v1/jobs/{name}/tasks?state=failed")["items"]
    assert [(task["index"], task["exit_status"]) for task in failed] == [(1, 1), (2, 2)]
    assert live.read(f"/v1/jobs/{name}")["exit_code"] == 1


def test_tasks_that_never_left_the_queue_are_listed_too(live: LiveBench) -> None:
    name = live.submit(job("true", count=1500, request={"cpu": 100, "memory": "1GiB"}))
    live.patch("/v1/machines/m0", {"draining": False})
    waiting = live.read(f"/v1/jobs/{name}/tasks?state=pending&limit=1000")
    assert len(waiting["items"]) == 1000
    live.cancel(name)


def test_a_task_tells_its_tries(live: LiveBench) -> None:
    name = live.submit(shell('exit "$(( 4 - ARGOSY_TRY % 2 * 4 ))"', retries=5))
    done = live.over(name)
    task = live.read(f"/v1/jobs/{name}/tasks/0")
    assert done["state"] == task["state"] == "finished"
    *failed, last = task["tries"]
    assert task["failures"] == len(failed)
    assert all(each["exit_status"] == 4 for each in failed)
    assert (last["exit_status"], last["machine"]) == (0, task["machine"])
    assert last["number"] == task["try_number"]
    assert last["started"] <= last["ended"]


def test_a_program_that_does_not_exist_is_a_failure_with_a_reason(live: LiveBench) -> None:
    name = live.submit(job("no-such-program"))
    assert live.over(name)["exit_code"] == 127
    assert "not found" in live.read(f"/v1/jobs/{name}/tasks/0")["reason"]


def test_an_unchanged_job_is_not_sent_again(live: LiveBench) -> None:
    name = live.submit(job())
    live.over(name)
    path = f"/v1/jobs/{name}"
    tag = live.get(path).etag
    for seen in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        answer = live.get(path, headers={"If-None-Match": seen})
        assert (answer.status, answer.body, answer.etag) == (304, b"", tag)
    assert live.get(path, headers={"If-None-Match": '"x"'}).status == 200


def test_a_change_meant_for_another_version_is_refused(live: LiveBench) -> None:
    name = live.submit(job("sleep 1000", count=2))
    path = f"/v1/jobs/{name}"
    tag = live.get(path).etag
    old = {"If-Match": '"0"'}
    problem = live.patch(path, {"tasks": 3}, headers=old).problem(412, "version-changed")
    assert problem["detail"].startswith(f"If-Match: job {name} has changed: it has version ")
    live.post(f"{path}/cancel", headers=old).problem(412, "version-changed")
    assert live.read(path)["tasks"]["running"] == 2
    assert live.patch(path, {"tasks": 3}, headers={"If-Match": tag}).status == 200
    # Weak tags never match (RFC 9110).
    live.patch(path, {"tasks": 2}, headers={"If-Match": f"W/{live.get(path).etag}"}).problem(
        412, "version-changed"
    )
    assert live.post(f"{path}/cancel", headers={"If-Match": "*"}).status == 200


def test_of_two_changes_of_the_same_version_at_once_one_is_refused(live: LiveBench) -> None:
    name = live.submit(job("sleep 1000"))
    path, tag = f"/v1/jobs/{name}", live.get(f"/v1/jobs/{name}").etag
    changes = [
        live.ask("PATCH", path, json={"tasks": tasks}, headers={"If-Match": tag})
        for tasks in (2, 3)
    ]
    answers = live.run(live.gather(*changes))
    assert sorted(answer.status for answer in answers) == [200, 412]
    live.cancel(name)


def test_a_key_makes_a_submission_repeatable(live: LiveBench) -> None:
    key = {"Idempotency-Key": "once"}
    first = live.post("/v1/jobs", job(), headers=key)
    again = live.post("/v1/jobs", dict(reversed(job().items())), headers=key)
    assert (first.status, again.status) == (201, 200)
    assert first.document["id"] == again.document["id"]
    problem = live.post("/v1/jobs", job("false"), headers=key).problem(409, "conflict")
    assert problem["field"] == "Idempotency-Key"


def test_a_key_works_for_many_at_once(live: LiveBench) -> None:
    key = {"Idempotency-Key": "many"}
    asked = [live.ask("POST", "/v1/jobs", json=job(), headers=key) for _ in range(20)]
    answers = live.run(live.gather(*asked))
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    assert len({answer.document["id"] for answer in answers}) == 1


def test_the_same_id_from_many_at_once_is_accepted_once(live: LiveBench) -> None:
    asked = [live.ask("POST", "/v1/jobs", json=job(id="race")) for _ in range(10)]
    answers = live.run(live.gather(*asked))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 9


def test_a_refused_job_does_not_use_up_its_key(live: LiveBench) -> None:
    key = {"Idempotency-Key": "second chance"}
    assert live.post("/v1/jobs", job(count=0), headers=key).status == 422
    assert live.post("/v1/jobs", job(), headers=key).status == 201


def test_a_key_outlives_the_server(make_live: Callable[..., LiveBench]) -> None:
    live = make_live()
    key = {"Idempotency-Key": "lasting"}
    name = live.submit(job(), headers=key)
    live.stop()
    live.start()
    answer = live.post("/v1/jobs", job(), headers=key)
    assert (answer.status, answer.document["id"]) == (200, name)


@pytest.mark.parametrize("key", ["", "x" * 201, "a\udcffb"])
def test_a_key_of_another_form_is_refused(live: LiveBench, key: str) -> None:
    async def ask() -> bytes:
        reader, writer = await asyncio.open_unix_connection(live.directory / "argosy.sock")
        head = (
            "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {key}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
        )
        writer.write(head.encode("utf-8", "surrogateescape"))
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    answer = live.run(ask())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Idempotency-Key: " in answer


def test_a_job_can_be_scaled(live: LiveBench) -> None:
    name = live.submit(job("sleep 1000", count=2))
    path = f"/v1/jobs/{name}"
    scaled = live.patch(path, {"tasks": 4})
    assert (scaled.status, scaled.document["document"]["count"]) == (200, 4)
    live.running(name, 4)
    assert live.patch(path, {"tasks": 1}).document["tasks"]["cancelled"] == 3
    problem = live.patch(path, {"tasks": 1 << 70}).problem(422, "model")
    assert problem["field"] == "tasks"
    live.patch(path, {"tasks": 0}).problem(422, "document")
    live.patch(path, {"task": 3}).problem(422, "document")
    live.cancel(name)
    live.patch(path, {"tasks": 2}).problem(409, "conflict")


def test_some_tasks_of_a_job_can_be_cancelled(live: LiveBench) -> None:
    name = live.submit(job("sleep 1000", count=4))
    path = f"/v1/jobs/{name}/cancel"
    answer = live.post(path, {"tasks": [1, 1]})
    assert (answer.status, answer.document["cancelled"]) == (200, 1)
    assert answer.document["job"]["tasks"]["running"] == 3
    assert live.post(path, {"tasks": []}).document["cancelled"] == 0
    assert live.post(path, {"tasks": [1]}).document["cancelled"] == 0
    problem = live.post(path, {"tasks": [0, 4]}).problem(422, "model")
    assert problem["detail"] == f"tasks: job {name} has no task 4; expected 0 to 3"
    assert live.read(f"/v1/jobs/{name}")["tasks"]["running"] == 3
    assert live.post(path).document["cancelled"] == 3
    done = live.read(f"/v1/jobs/{name}")
    assert (done["state"], done["tasks"]["cancelled"]) == ("cancelled", 4)
    live.post(path).problem(409, "conflict")


def test_why_and_story_tell_of_several_lives(make_live: Callable[..., LiveBench]) -> None:
    live = make_live()
    name = live.submit(shell("echo up; sleep 1000"))
    # What has not begun by the end of a life is placed anew.
    live.wrote(name, "up\n")
    machine = live.read(f"/v1/jobs/{name}/tasks/0")["machine"]
    live.stop()
    live.start()
    assert live.read(f"/v1/jobs/{name}/tasks/0")["state"] == "running"
    why = live.read(f"/v1/jobs/{name}/tasks/0/why")
    assert f"{name}/0 runs on {machine}" in why["text"][0]
    assert why["answer"]["placed_on"] == machine
    live.cancel(name)
    story = live.read(f"/v1/jobs/{name}/tasks/0/story")
    told = [line["what"] for line in story["lines"]]
    assert told[0] == "submitted"
    assert told.count("started") == 1
    assert "cancelled" in told[-1]
    assert [line["at"] for line in story["lines"]] == sorted(line["at"] for line in story["lines"])


def test_why_says_what_a_waiting_task_lacks(live: LiveBench) -> None:
    name = live.submit(job("true", request={"cpu": "2", "memory": "1GiB"}))
    why = live.read(f"/v1/jobs/{name}/tasks/0/why")
    assert why["answer"]["state"] == "pending"
    assert "2 cores" in " ".join(why["text"])
    live.cancel(name)


def test_tasks_that_run_or_wait_are_listed_over_all_jobs_and_pages(live: LiveBench) -> None:
    names = [live.submit(shell("sleep 60", count=2)) for _ in range(3)]
    big = live.submit({**shell("sleep 60", count=2500), "request": {"cpu": 4000}})
    for name in names:
        live.running(name, 2)
    seen: list[tuple[str, int]] = []
    after = ""
    while True:
        page = live.read(f"/v1/tasks?limit=1000{after}")
        seen += [(task["job"], task["index"]) for task in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    mine = [task for task in seen if task[0] in (*names, big)]
    newest_first = [(name, index) for name in reversed(names) for index in range(2)]
    assert mine == [*((big, index) for index in range(2500)), *newest_first]
    running = live.read("/v1/tasks?state=running&limit=1000")["items"]
    assert {task["state"] for task in running} == {"running"}
    assert [task["job"] for task in running if task["job"] in names] == [
        name for name, _ in newest_first
    ]
    for name in (*names, big):
        live.cancel(name)


def test_documents_that_are_alike_are_read_once_while_the_machines_stay_the_same(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = Submissions._read

    def counted(self: Submissions, world: Any, table: Any, default_id: str, path: Any) -> Any:
        reads.append(default_id)
        return read(self, world, table, default_id, path)

    monkeypatch.setattr(Submissions, "_read", counted)
    first, second = live.submit(job(name="alike")), live.submit(job(name="alike"))
    other = live.submit(job(name="alike", count=2))
    assert len({first, second, other}) == 3
    assert reads == [first, other]
    one, two = (live.read(f"/v1/jobs/{name}")["document"] for name in (first, second))
    assert {**two, "id": first} == one
    live.patch("/v1/machines/m0", {"draining": True})
    live.patch("/v1/machines/m0", {"draining": False})
    third = live.submit(job(name="alike"))
    assert reads[2:] == [third]


def test_only_tasks_that_are_not_over_are_listed_across_jobs(live: LiveBench) -> None:
    live.get("/v1/tasks?state=finished").problem(400, "request")


def test_a_job_is_checked_against_the_machines_that_are_there_now(live: LiveBench) -> None:
    picky = job(requires={"colour": "green"})
    live.post("/v1/jobs", picky).problem(422, "scenario")
    added = {"name": "green", "capacity": {"cpu": "1", "memory": "1GiB"}}
    live.post("/v1/machines", {**added, "attributes": {"colour": "green"}})
    live.over(live.submit(picky))
    live.delete("/v1/machines/green")
