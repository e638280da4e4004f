"""Small parts of the service whose answers clients rely on to the letter."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from golden_log import require_golden
from live_bench import LiveBench

from argosy.model.errors import ArgosyError
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.service.backend import Backend, check_version, index_in, is_seen
from argosy.service.kubernetes.messages import LONGEST, waiting_message
from argosy.service.measured_distances import MeasuredDistances
from argosy.service.problems import MEDIA_TYPE, NotFound
from argosy.service.remote_agents import AgentUnreached
from argosy.service.routes import LONGEST_KEY, check_key, read_body
from argosy.service.stream_routes import LogQuery, _first


def test_the_description_of_the_api_is_pinned(
    live: LiveBench, request: pytest.FixtureRequest
) -> None:
    described = live.read("/v1/openapi.json")
    lines = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            lines.append(f"{method} {path} {operation['operationId']}: {operation['summary']}")
            lines += [f"    {json.dumps(each)}" for each in operation.get("parameters", ())]
            assert operation.get("parameters") != []
            if "requestBody" in operation:
                lines.append(f"    body {json.dumps(operation['requestBody'])}")
            problems = []
            for status, answer in operation["responses"].items():
                if list(answer.get("content", ())) == [MEDIA_TYPE]:
                    problems.append(f"{status} {answer['description']}")
                else:
                    lines.append(f"    {status} {json.dumps(answer)}")
            lines.append(f"    {' '.join(problems)}")
    lines += [
        f"{name} {json.dumps(schema, sort_keys=True)}"
        for name, schema in sorted(described["components"]["schemas"].items())
    ]
    lines += [json.dumps(described[each]) for each in ("security", "openapi")]
    update = request.config.getoption("--update-golden")
    text = "\n".join(lines) + "\n"
    require_golden("openapi", text, update=update, folder=Path(__file__).parent)


@pytest.mark.parametrize(
    ("cluster", "checks", "health"),
    [
        ({}, [], ("ok", "")),
        ({}, ["", ""], ("ok", "")),
        ({}, ["", "no news", "old"], ("lagging", "no news; old")),
        ({"trouble": "full"}, ["no news"], ("paused", "full")),
        ({"trouble": "broken", "is_failing": True}, [], ("failing", "broken")),
        ({"trouble": "broken", "is_stopping": True}, ["no news"], ("stopping", "")),
    ],
)
def test_health_is_the_worst_that_is_known(
    cluster: dict[str, Any], checks: list[str], health: tuple[str, str]
) -> None:
    backend = object.__new__(Backend)
    usual = {"is_stopping": False, "trouble": None, "is_failing": False}
    backend.cluster = SimpleNamespace(**{**usual, **cluster})  # type: ignore[assignment]
    backend.checks = [lambda each=each: each for each in checks]  # type: ignore[misc]
    assert backend.health() == health


@pytest.mark.parametrize(
    ("wanted", "is_current"),
    [
        (None, True),
        ("*", True),
        (" * ", True),
        ('"7"', True),
        ('"6", "7"', True),
        ('"6"', False),
        ("7", False),
        ("", False),
    ],
)
def test_a_version_that_was_seen_is_compared_with_the_present_one(
    wanted: str | None, is_current: bool
) -> None:
    if is_current:
        check_version(wanted, 7, "job a")
    else:
        with pytest.raises(ArgosyError, match="job a has changed: it has version 7") as caught:
            check_version(wanted, 7, "job a")
        assert caught.value.field == "If-Match"


@pytest.mark.parametrize(
    ("seen", "is_it"),
    [
        (None, False),
        ("*", True),
        ('"7"', True),
        ('W/"7"', True),
        ('"6", W/"7"', True),
        ('"6"', False),
        ('"7', False),
    ],
)
def test_what_a_client_has_is_not_sent_again(seen: str | None, is_it: bool) -> None:
    assert is_seen(seen, '"7"') == is_it


@pytest.mark.parametrize("text", ["0", "7", "999999999"])
def test_indices_in_paths_are_short_decimals(text: str) -> None:
    assert index_in(text, "j") == int(text)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "x", "1000000000", "٣"])
def test_other_indices_name_no_task(text: str) -> None:
    with pytest.raises(NotFound, match="job j has no task"):
        index_in(text, "j")


@pytest.mark.parametrize(
    ("key", "is_good"),
    [
        ("k", True),
        ("k" * LONGEST_KEY, True),
        ("k" * (LONGEST_KEY + 1), False),
        ("", False),
        ("a\nb", False),
    ],
)
def test_keys_are_printable_and_not_too_long(key: str, is_good: bool) -> None:
    if is_good:
        check_key(key)
    else:
        with pytest.raises(ArgosyError) as caught:
            check_key(key)
        assert caught.value.field == "Idempotency-Key"
        assert caught.value.expected == f"1 to {LONGEST_KEY} printable characters"


def body(data: bytes, kind: str = "application/json", *, is_optional: bool = False) -> Any:
    async def read() -> bytes:
        return data

    request: Any = SimpleNamespace(read=read, content_type=kind)
    return asyncio.run(read_body(request, is_optional=is_optional))


def test_bodies_are_json_and_say_so() -> None:
    assert body(b'{"a": 1}') == {"a": 1}
    assert body(b"", "text/plain", is_optional=True) is None
    assert body(b"[]", is_optional=True) == []
    with pytest.raises(ArgosyError, match="content type 'text/plain'") as caught:
        body(b"{}", "text/plain")
    assert (caught.value.field, caught.value.expected) == ("Content-Type", "application/json")
    for wrong in (b"", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(ArgosyError, match="not JSON") as caught:
            body(wrong)
        assert caught.value.expected == "one JSON document"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ({}, 10),
        ({"offset": 0}, 10),
        ({"offset": 12}, 12),
        ({"offset": 99}, 99),
        ({"tail": 0}, 25),
        ({"tail": 5}, 20),
        ({"tail": 15}, 10),
        ({"tail": 99}, 10),
    ],
)
def test_output_begins_where_it_was_asked_for_or_with_the_oldest_that_is_kept(
    tmp_path: Path, query: dict[str, int], first: int
) -> None:
    (tmp_path / "stdout.10").write_bytes(b"x" * 10)
    (tmp_path / "stdout.20").write_bytes(b"x" * 5)
    assert _first(str(tmp_path), LogQuery(**query)) == first
    assert _first(str(tmp_path / "none"), LogQuery(**query)) == query.get("offset", 0)


def test_a_round_trip_is_measured_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([5_000_000, 5_004_999, 0, 7])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(ticks))
    replies = iter([b'{"place": "vienna"}', b"odd"])

    class Link:
        async def ask(self, method: str, path: str) -> Any:
            assert (method, path) == ("GET", "/v1/place")
            return SimpleNamespace(body=next(replies))

    distances = MeasuredDistances()
    link: Any = Link()
    asyncio.run(distances.measure("c", link))
    assert list(distances.measured()) == [("c", "vienna", 4)]
    with pytest.raises(AgentUnreached, match="c does not say where it is"):
        asyncio.run(distances.measure("c", link))


@pytest.mark.parametrize(
    ("explanation", "more", "message"),
    [
        (Explanation(), {}, "0/3 nodes are available."),
        (
            Explanation(ruled_out={"cpu": 2, "gpu": 0}),
            {},
            "0/3 nodes are available: 2 Insufficient cpu.",
        ),
        (
            Explanation(refused=Refusal(Why.MACHINE_DRAINING, machine=1), remedy="wait"),
            {},
            f"0/3 nodes are available. {Refusal(Why.MACHINE_DRAINING, machine=1).sentence('n1')}. wait.",
        ),
        (
            Explanation(refused=Refusal(Why.JOB_LIMIT)),
            {},
            f"{Refusal(Why.JOB_LIMIT).sentence('')}.",
        ),
        (
            Explanation(
                nearest_miss=Refusal(Why.NO_ROOM, dimension="cpu", lacking=500),
                refused=Refusal(Why.JOB_LIMIT),
            ),
            {},
            "0/3 nodes are available. the nearest node came closest and lacks 500m cpu.",
        ),
        (
            Explanation(remedy="wait"),
            {"excluded": {"node(s) were unschedulable": 3}},
            "0/3 nodes are available: 3 node(s) were unschedulable.",
        ),
        (
            Explanation(),
            {"wishes": ("a", "b")},
            "0/3 nodes are available. ignored: a, b.",
        ),
        (
            Explanation(remedy="x" * 9_000),
            {},
            ("0/3 nodes are available. " + "x" * 9_000)[:LONGEST] + ".",
        ),
    ],
)
def test_messages_say_what_is_known_and_no_more(
    explanation: Explanation, more: dict[str, Any], message: str
) -> None:
    assert waiting_message(explanation, 3, lambda number: f"n{number}", **more) == message
