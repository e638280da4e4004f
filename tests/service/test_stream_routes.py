"""Logs, events, journals and recordings over the API."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from aiohttp import ClientPayloadError, ServerDisconnectedError
from live_bench import Answer, LiveBench, job, shell

from argosy.engines.registry import ENGINES
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.service import stream_routes
from argosy.service.event_log import EventLog, Position
from argosy.service.problems import RequestError
from argosy.workloads.trace import read_trace

Make = Callable[..., LiveBench]


def gate(directory: Path) -> str:
    """A pipe: a task that reads it waits until the gate is `opened`."""
    path = directory / "gate"
    os.mkfifo(path)
    return str(path)


@contextmanager
def opened(path: str) -> Iterator[None]:
    """Within the block, whoever reads the pipe goes on."""
    # For writing alone, this would wait for a reader, which there may never be.
    descriptor = os.open(path, os.O_RDWR)
    os.write(descriptor, b"\n")
    yield
    os.close(descriptor)


@pytest.fixture(scope="module")
def written(live: LiveBench) -> str:
    """The path of the logs of a task that wrote ten bytes and two."""
    name = live.submit(shell("printf 0123456789; printf no >&2"))
    live.over(name)
    return f"/v1/jobs/{name}/tasks/0/logs"


@pytest.mark.parametrize(
    ("query", "body", "offset"),
    [
        ("", b"0123456789", "0"),
        ("?stream=stderr", b"no", "0"),
        ("?offset=4", b"456789", "4"),
        ("?offset=10", b"", "10"),
        ("?tail=3", b"789", "7"),
        ("?tail=100", b"0123456789", "0"),
        ("?tail=0", b"", "10"),
        ("?follow=true&offset=9", b"9", "9"),
    ],
)
def test_logs_are_sent_as_they_were_written(
    live: LiveBench, written: str, query: str, body: bytes, offset: str
) -> None:
    answer = live.get(written + query)
    assert (answer.status, answer.body) == (200, body)
    assert answer.headers["Argosy-Offset"] == offset
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ("?stream=both", 400, "stream: 'both' does not fit; expected one of stdout, stderr"),
        ("?tail=1&offset=1", 400, "tail: both offset and tail; expected one of them"),
        ("?offset=-1", 400, "offset: '-1' does not fit"),
        ("?try=0", 400, "try: '0' does not fit"),
        ("?try_=1", 400, "unknown parameter 'try_'"),
        ("?try=99", 404, "try: task "),
    ],
)
def test_logs_that_cannot_be_are_refused(
    live: LiveBench, written: str, query: str, status: int, detail: str
) -> None:
    problem = live.get(written + query)
    assert problem.status == status
    assert problem.document["detail"].startswith(detail)


def test_every_try_has_its_logs(live: LiveBench) -> None:
    name = live.submit(shell('echo "$ARGOSY_TRY"; false', retries=1))
    live.over(name)
    first, last = (each["number"] for each in live.read(f"/v1/jobs/{name}/tasks/0")["tries"])
    path = f"/v1/jobs/{name}/tasks/0/logs"
    assert live.get(f"{path}?try={first}").body == b"%d\n" % first
    answer = live.get(path)
    assert (answer.body, answer.headers["Argosy-Try"]) == (b"%d\n" % last, str(last))


def test_logs_of_a_task_that_never_ran_are_not_there_yet(live: LiveBench) -> None:
    name = live.submit(job(request={"cpu": "2", "memory": "1GiB"}))
    problem = live.get(f"/v1/jobs/{name}/tasks/0/logs").problem(404, "not-found")
    assert problem["hint"] == f"`argosy why {name}/0` says why"
    live.cancel(name)


def test_logs_are_followed_until_the_try_is_over(live: LiveBench, tmp_path: Path) -> None:
    closed = gate(tmp_path)
    name = live.submit(shell(f"echo before; read line < {closed}; echo after"))
    live.wrote(name, "before\n")

    async def follow() -> bytes:
        async with live.client.get(f"/v1/jobs/{name}/tasks/0/logs?follow=true") as response:
            seen = await response.content.readuntil(b"\n")
            with opened(closed):
                return seen + await response.content.read()

    assert live.run(follow()) == b"before\nafter\n"


def test_logs_of_a_try_that_is_stopped_are_followed_to_its_last_words(live: LiveBench) -> None:
    script = "trap 'echo last words; exit' TERM; echo ready; while :; do sleep 0.01; done"
    name = live.submit(shell(script, grace="20s"))
    live.wrote(name, "ready\n")

    async def follow() -> bytes:
        async with live.client.get(f"/v1/jobs/{name}/tasks/0/logs?follow=true") as response:
            await live.ask("POST", f"/v1/jobs/{name}/cancel")
            return await response.content.read()

    assert live.run(follow()) == b"ready\nlast words\n"


class Heard(NamedTuple):
    id: str
    kind: str
    data: dict[str, Any]


async def events(live: LiveBench, query: str = "", **headers: str) -> AsyncIterator[Heard]:
    """As a browser reads them; comments are events without a kind."""
    async with live.client.get(f"/v1/events{query}", headers=headers) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        while True:
            block = (await response.content.readuntil(b"\n\n")).decode()
            lines = dict(line.split(": ", 1) for line in block.splitlines() if line)
            if "" in lines:
                yield Heard("", "", {})
            else:
                assert set(lines) == {"id", "event", "data"}
                heard = Heard(lines["id"], lines["event"], json.loads(lines["data"]))
                assert heard.data["what"] == heard.kind
                yield heard


async def until(
    stream: AsyncIterator[Heard],
    is_last: Callable[[Heard], bool],
    begun: asyncio.Event | None = None,
) -> list[Heard]:
    heard = []
    async for each in stream:
        if begun is not None:
            begun.set()
        if each.kind:
            heard.append(each)
            if is_last(each):
                break
    await stream.aclose()  # type: ignore[attr-defined]
    return heard


def ends(name: str) -> Callable[[Heard], bool]:
    """Whether it is the event of the job's end."""
    return lambda each: (
        each.kind == "job" and each.data["job"] == name and each.data["state"] == "finished"
    )


def test_events_tell_of_jobs_tasks_machines_and_fleets_in_order(make_live: Make) -> None:
    live = make_live()

    async def watch() -> list[Heard]:
        begun = asyncio.Event()
        watching = asyncio.create_task(until(events(live), ends("a"), begun))
        await begun.wait()
        await live.ask("PATCH", "/v1/machines/m0", json={"draining": True})
        fleet = {"fleet": [{"name": "n", "engine": "omega"}]}
        await live.ask("PUT", "/v1/fleet", json=fleet)
        await live.ask("POST", "/v1/jobs", json=job(id="a"))
        return await watching

    heard = live.run(watch())
    assert next(each.data["change"] for each in heard if each.kind == "machine") == "draining"
    assert [each.data["version"] for each in heard if each.kind == "fleet"] == [2]
    states = [each.data["state"] for each in heard if each.kind == "task"]
    assert states == ["running", "finished"]
    counts = [each.data["tasks"]["finished"] for each in heard if each.kind == "job"]
    assert counts == [0, 1]
    assert [each.data["at"] for each in heard] == sorted(each.data["at"] for each in heard)


def test_a_watcher_that_comes_back_misses_nothing_and_hears_nothing_twice(make_live: Make) -> None:
    live = make_live()
    for name in ("a", "b"):
        live.submit(job(id=name, count=3))
        live.over(name)
    everything = live.run(until(events(live, "?after=0"), ends("b")))
    assert len({each.id for each in everything}) == len(everything)
    live.stop()
    live.start()
    for at, each in enumerate(everything[:-1]):
        back = {"Last-Event-ID": each.id}
        rest = live.run(until(events(live, **back), ends("b")))
        assert rest == everything[at + 1 :]
        assert live.run(until(events(live, f"?after={each.id}"), ends("b"))) == rest
    # A browser repeats its first question, and says what it has heard since.
    again = live.run(until(events(live, "?after=0", **back), ends("b")))
    assert again == everything[-1:]


def test_a_watcher_can_begin_with_the_last_events(make_live: Make) -> None:
    live = make_live()
    for name in ("a", "b"):
        live.submit(job(id=name, count=3))
        live.over(name)
    everything = live.run(until(events(live, "?after=0"), ends("b")))
    for last in (1, 2, 3, len(everything) - 1, len(everything), 1_000):
        heard = live.run(until(events(live, f"?last={last}"), ends("b")))
        assert heard == everything[-last:]
    live.stop()
    live.start()
    # The start of the server is an event.
    heard = live.run(until(events(live, "?last=3"), ends("b")))
    assert heard == everything[-2:]
    again = {"Last-Event-ID": everything[-3].id}
    assert live.run(until(events(live, "?last=1", **again), ends("b"))) == everything[-2:]


def test_a_watcher_begins_after_an_event_or_with_the_last_ones(live: LiveBench) -> None:
    problem = live.get("/v1/events?after=0&last=1").problem(400, "request")
    assert problem["detail"].startswith("last: both after and last")


def test_events_can_be_those_of_one_job(live: LiveBench) -> None:
    mine, other = live.submit(job()), live.submit(job())
    live.over(other)
    live.over(mine)
    heard = live.run(until(events(live, f"?job={mine}&after=0"), ends(mine)))
    assert {each.data["job"] for each in heard} == {mine}
    assert [each.kind for each in heard] == ["task", "job", "task", "job"]


@pytest.mark.parametrize("after", ["x", "1.2.3", "-1", "9" * 16, "now.1", "999999999"])
def test_a_place_that_is_no_event_is_refused(live: LiveBench, after: str) -> None:
    live.get("/v1/events", params={"after": after}).problem(400, "request")
    live.get("/v1/events", headers={"Last-Event-ID": after}).problem(400, "request")


async def first_bytes(live: LiveBench, path: str) -> bytes:
    async with live.client.get(path) as response:
        return await response.content.readuntil(b"\n\n")


def test_a_quiet_stream_shows_signs_of_life(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_routes, "HEARTBEAT", 0.01)

    async def listen() -> list[bytes]:
        async with live.client.get("/v1/events") as response:
            return [await response.content.readuntil(b"\n\n") for _ in range(3)]

    first, *others = live.run(listen())
    assert re.fullmatch(rb": argosy\nid: \d+\n\n", first)
    assert all(re.fullmatch(rb":\nid: \d+\n\n", other) for other in others)
    # The cluster may still be busy with its own start, which is no event.
    places = [int(re.findall(rb"\d+", each)[0]) for each in (first, *others)]
    assert places == sorted(places)


def test_a_watcher_of_long_ago_does_not_keep_others_waiting(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the past, of which nothing is sent, lets others run in between."""
    monkeypatch.setattr("argosy.service.event_log._BATCH", 2)
    for _ in range(20):
        live.patch("/v1/machines/m0", {"draining": True})
        live.patch("/v1/machines/m0", {"draining": False})
    log = live.server.events
    log._recent.clear()
    looks: list[int] = []
    turns_after = log._turns

    def counted(position: Position) -> Any:
        looks.append(position.turn)
        return turns_after(position)

    monkeypatch.setattr(log, "_turns", counted)

    async def race() -> int:
        watcher = asyncio.create_task(first_bytes(live, "/v1/events?after=0&job=nobody"))
        await watcher
        await live.ask("GET", "/v1/health")
        return len(looks)

    assert live.run(race()) < 20


def test_what_is_kept_in_memory_is_bounded_by_changes_not_by_turns(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.service.event_log._RECENT", 12)
    for _ in range(6):
        live.over(live.submit(job(count=3)))
    kept = live.server.events._recent
    assert sum(len(changes) + 1 for _, changes in kept) <= 12
    last = live.submit(job())
    live.over(last)
    heard = live.run(until(events(live, "?after=0"), ends(last)))
    assert sum(each.kind == "job" for each in heard) >= 2 * 7


def test_the_journal_of_each_life_can_be_replayed(make_live: Make) -> None:
    live = make_live()
    name = live.submit(job("sleep 1000", count=2))
    live.over(live.submit(job()))
    live.put("/v1/fleet", {"fleet": [{"name": "n", "engine": "murmuration"}]})
    live.over(live.submit(job()))
    live.cancel(name)
    bodies = [live.get(f"/v1/journal?life={life}").body for life in (1, 2)]
    assert live.get("/v1/journal").body == bodies[1]
    for body in bodies:
        assert all(json.loads(line) for line in body.splitlines())
        Replay(JournalFile(body, "journal"), ENGINES).run()
    problem = live.get("/v1/journal?life=3").problem(404, "not-found")
    assert problem["detail"] == "life: there is no life 3; expected 1 to 2"
    live.get("/v1/journal?life=0").problem(400, "request")


def test_a_recording_is_a_workload(make_live: Make, tmp_path: Path) -> None:
    live = make_live(directory=tmp_path / "live")
    live.over(live.submit(job(id="a", count=2)))
    live.submit(job("sleep 1000", id="b", estimate="10s"))
    live.over(live.submit(job("false", id="c")))
    answer = live.get("/v1/recording")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    head, *lines = answer.body.splitlines(keepends=True)
    cluster = json.loads(head)["cluster"]
    assert [machine["name"] for machine in cluster["cell"]["machines"]] == ["m0", "m1", "m2", "m3"]
    assert cluster["fleet"] == [{"name": "omega", "engine": "omega"}]
    trace = tmp_path / "trace.jsonl"
    trace.write_bytes(b"".join(lines))
    jobs = list(read_trace(trace))
    assert [each.job.id for each in jobs] == ["a", "b", "c"]
    assert jobs[0].submit == 0 <= jobs[1].submit <= jobs[2].submit
    assert jobs[1].truth[0].durations[0] >= 10_000_000


def test_an_empty_cluster_has_a_recording_too(make_live: Make) -> None:
    assert len(make_live().get("/v1/recording").body.splitlines()) == 1


def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*ignored: object) -> Any:
        yield b"{}\n"
        raise RuntimeError("in the middle")

    monkeypatch.setattr(stream_routes, "recorded_lines", broken)

    async def read() -> Answer | None:
        try:
            return await live.ask("GET", "/v1/recording")
        except (ClientPayloadError, ServerDisconnectedError, ConnectionResetError):
            return None

    assert live.run(read()) is None
    assert any("in the middle" in line for line in live.log)


def test_a_turn_without_a_place_means_all_of_its_events() -> None:
    assert Position.parse("7.3") == Position(7, 3)
    assert Position.parse("7.3") < Position.parse("7") < Position.parse("8.0")
    assert [str(Position.parse(text)) for text in ("7", "7.0", "0")] == ["7", "7.0", "0"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ({}, 100),
        ({"offset": 3}, 100),
        ({"offset": 112}, 112),
        ({"tail": 3}, 112),
        ({"tail": 15}, 100),
        ({"tail": 500}, 100),
        ({"stream": "stderr", "offset": 3}, 3),
        ({"stream": "stderr", "tail": 3}, 0),
    ],
)
def test_logs_begin_no_earlier_than_what_is_kept(tmp_path: Path, query: Any, first: int) -> None:
    """Ten bytes from the hundredth on, and five more; what was before has been dropped."""
    (tmp_path / "stdout.100").write_bytes(b"0123456789")
    (tmp_path / "stdout.110").write_bytes(b"abcde")
    assert stream_routes._first(str(tmp_path), stream_routes.LogQuery(**query)) == first
    # The directory of a try that starts just now may not be there yet.
    wanted = query.get("offset", 0)
    assert stream_routes._first(str(tmp_path / "none"), stream_routes.LogQuery(**query)) == wanted


def test_the_last_turn_is_a_place_and_the_next_one_is_not_yet() -> None:
    store: Any = SimpleNamespace(origin=0, rows=lambda *question: [(5,)], meta=lambda key: None)
    log = EventLog(store)
    assert log.position("5") == log.position("now") == Position.parse("5")
    with pytest.raises(RequestError, match="of the future"):
        log.position("6")
