"""What a client says of answers that it does not understand, and how it asks."""

from __future__ import annotations

import msgspec
import pytest

from argosy.api.values import Health, ProblemDocument
from argosy.client import calls
from argosy.client.calls import ServerReply
from argosy.model.errors import ArgosyError


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"status": 5}', b""])
def test_an_answer_of_another_form_is_named_with_what_is_wrong(body: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError) as wrong:
        msgspec.json.decode(body, type=Health)
    with pytest.raises(ArgosyError) as caught:
        calls.health().answer(ServerReply(200, {}, body))
    assert str(caught.value) == (
        f"the server's answer is not understood: {wrong.value}; its version may be another"
    )
    assert caught.value.status == 200  # type: ignore[attr-defined]
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("detail", "title", "text"), [("why", "What", "why"), ("", "What", "What")]
)
def test_a_problem_says_its_detail_or_else_its_title(detail: str, title: str, text: str) -> None:
    told = ProblemDocument(type="", title=title, status=409, detail=detail, field="id")
    error = calls.problem(ServerReply(409, {}, msgspec.json.encode(told)))
    assert (error.problem, error.status, error.field) == (text, 409, "id")
    assert (error.expected, error.hint) == (None, None)


def test_only_a_little_of_what_is_no_problem_document_is_shown() -> None:
    error = calls.problem(ServerReply(502, {}, b" <b>" + b"\xff" + b"x" * 400))
    plain = calls.problem(ServerReply(502, {}, b"<b>\n"))
    assert plain.problem == "the server answered with status 502: '<b>'"
    assert error.problem.startswith("the server answered with status 502: '<b>\ufffdxxx")
    assert len(error.problem) < 200
    assert calls.problem(ServerReply(502, {}, b" \n")).problem == (
        "the server answered with status 502"
    )


def test_changes_that_are_meant_for_a_version_are_not_repeated() -> None:
    anew, once = calls.scale("j", 3), calls.scale("j", 3, version=0)
    assert (anew.headers, anew.is_repeatable) == ({"Content-Type": "application/json"}, True)
    assert once.headers == {"Content-Type": "application/json", "If-Match": '"0"'}
    assert not once.is_repeatable
    fleet = calls.set_fleet([{"name": "a"}], version=4)
    assert (fleet.headers["If-Match"], fleet.is_repeatable) == ('"4"', False)
    assert calls.cancel("j", version=2).headers["If-Match"] == '"2"'
    assert not calls.add_machine({}).is_repeatable
    assert not calls.remove_machine("m").is_repeatable
    assert calls.submit({}, "k").headers["Idempotency-Key"] == "k"


@pytest.mark.parametrize(
    ("last", "after", "target", "seen"),
    [
        (None, None, "/v1/events?job=a%2Fb", None),
        (None, "now", "/v1/events?job=a%2Fb&after=now", None),
        ("7.1", "now", "/v1/events?job=a%2Fb", "7.1"),
    ],
)
def test_events_begin_after_the_last_one_seen_or_where_they_are_told(
    last: str | None, after: str | None, target: str, seen: str | None
) -> None:
    call = calls.events("a/b", after, last)
    assert call.target == target
    assert call.headers.get("Last-Event-ID") == seen
    assert call.headers["Accept"] == "text/event-stream"


def test_absent_parameters_are_left_out_and_truth_is_lower_case() -> None:
    assert calls.jobs(is_open=False, owner="A b", limit=0).target == (
        "/v1/jobs?owner=A%20b&open=false&limit=0"
    )
    assert calls.jobs().target == "/v1/jobs"
    assert calls.logs("j", 1, offset=0).target == "/v1/jobs/j/tasks/1/logs?stream=stdout&offset=0"
    assert calls.logs("j", 1, try_number=2, tail=0, follow=True).target == (
        "/v1/jobs/j/tasks/1/logs?stream=stdout&try=2&tail=0&follow=true"
    )
    assert calls.journal(3).target == "/v1/journal?life=3"
    assert calls.machines(after="ü-1").target == "/v1/machines?after=%C3%BC-1"
