"""Flows of clients at their edges: ends of pages, silences, pauses and what problems say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from client_flows import CUT, SILENCE, UNSENT, FlowScript, Late, job, reply

from argosy.api.values import JobPage, JobSummary, MachineEvent, TaskDetails, TryInfo
from argosy.client import calls, flows
from argosy.client.calls import ServerReply
from argosy.client.flows import CloseStream, OpenStream, ReadStream, Sleep
from argosy.client.server_sent import EventParser, StreamedEvent
from argosy.model.errors import CommitRefused, ServerError, ServerUnreachable

PROBLEM = {"type": "x", "title": "Unavailable", "status": 503, "detail": "no space", "code": "p"}


def event(number: int) -> bytes:
    told = MachineEvent(at="t", machine=f"m-{number}", change="added")
    return b"id: 1.%d\nevent: machine\ndata: %b\n\n" % (number, msgspec.json.encode(told))


def slept(script: FlowScript) -> list[float]:
    return [step.seconds for step in script.steps if isinstance(step, Sleep)]


def reads(script: FlowScript) -> list[float | None]:
    return [step.seconds for step in script.steps if isinstance(step, ReadStream)]


class TestPauses:
    @pytest.mark.parametrize(
        ("headers", "pause"),
        [
            ({}, 0.05),
            ({"retry_after": "0"}, 0.05),
            ({"retry_after": "4"}, 4.0),
            ({"retry_after": "soon"}, 0.05),
            ({"retry_after": "-4"}, 0.05),
            ({"retry_after": "٣"}, 0.05),
        ],
    )
    def test_a_server_that_is_paused_is_asked_again(
        self, headers: dict[str, str], pause: float
    ) -> None:
        script = FlowScript(reply(PROBLEM, 503, **headers), reply(job()))
        assert list(script.run(flows.one(calls.job("j"), script.patience))) == [job()]
        assert slept(script) == [pause]

    def test_pauses_become_longer_until_patience_ends(self) -> None:
        script = FlowScript(*[reply(PROBLEM, 503)] * 9, patience=1.0)
        with pytest.raises(ServerError, match="no space"):
            list(script.run(flows.one(calls.job("j"), script.patience)))
        assert slept(script) == [0.05, 0.1, 0.2, 0.4]

    def test_a_server_that_refused_something_has_answered(self) -> None:
        script = FlowScript(reply(PROBLEM, 404), UNSENT, reply(job()))
        with pytest.raises(ServerError):
            list(script.run(flows.one(calls.job("i"), script.patience)))
        assert list(script.run(flows.one(calls.job("j"), script.patience))) == [job()]
        assert slept(script) == [0.05]

    def test_what_was_not_sent_may_be_sent_again_whatever_it_is(self) -> None:
        removed = calls.remove_machine("m")
        script = FlowScript(UNSENT, ServerReply(204, {}), has_answered=True)
        assert list(script.run(flows.one(removed, script.patience))) == [None]

    @pytest.mark.parametrize("status", [500, 502, 504])
    def test_other_problems_are_told_at_once(self, status: int) -> None:
        script = FlowScript(reply(PROBLEM, status))
        with pytest.raises(ServerError) as caught:
            list(script.run(flows.one(calls.job("j"), script.patience)))
        assert (caught.value.status, slept(script)) == (status, [])


class TestPages:
    def page(self, count: int, after: str | None) -> ServerReply:
        fields = {name: getattr(job(), name) for name in JobSummary.__struct_fields__}
        return reply(JobPage(items=tuple(JobSummary(**fields) for _ in range(count)), next=after))

    @pytest.mark.parametrize(
        ("limit", "pages", "given", "asked"),
        [
            (0, [], 0, 0),
            (2, [(3, "3")], 2, 1),
            (3, [(3, "3")], 3, 1),
            (4, [(3, "3"), (3, "6")], 4, 2),
            (6, [(3, "3"), (3, "6")], 6, 2),
            (7, [(3, "3"), (3, None)], 6, 2),
            (None, [(3, "3"), (0, "4"), (1, None)], 4, 3),
            (None, [(0, None)], 0, 1),
        ],
    )
    def test_no_page_is_asked_for_in_vain(
        self, limit: int | None, pages: list[tuple[int, str | None]], given: int, asked: int
    ) -> None:
        script = FlowScript(*[self.page(*each) for each in pages])
        assert len(list(script.run(flows.all_pages(calls.jobs, limit, script.patience)))) == given
        assert (len(script.sent), script.answers) == (asked, [])

    @pytest.mark.parametrize(
        ("limit", "size"),
        [(None, 1_000), (0, 1), (1, 1), (999, 999), (1_000, 1_000), (1_001, 1_000)],
    )
    def test_a_page_has_what_is_wanted_up_to_the_largest(
        self, limit: int | None, size: int
    ) -> None:
        assert flows.page_size(limit) == size


class TestEvents:
    def test_comments_keep_a_stream_alive(self) -> None:
        script = FlowScript(reply(), *[Late(40.0, b": alive\n\n")] * 3, event(1))
        found = script.run(flows.events(None, None, script.patience))
        assert next(found).id == "1.1"
        assert (script.now, len(script.sent)) == (120.0, 1)
        assert reads(script) == [45.0] * 4

    def test_silence_counts_from_the_last_piece(self) -> None:
        script = FlowScript(reply(), Late(30.0, event(1)), SILENCE, reply(), event(2))
        found = script.run(flows.events(None, None, script.patience))
        assert [next(found).id for _ in range(2)] == ["1.1", "1.2"]
        assert script.now == 30 + 45 + 0.05
        closed = [type(step) for step in script.steps[2:]]
        assert closed == [ReadStream, CloseStream, Sleep, OpenStream, ReadStream]

    def test_a_stream_that_tells_something_each_time_is_opened_again_and_again(self) -> None:
        answers = [each for number in range(40) for each in (reply(), event(number), b"")]
        script = FlowScript(*answers)
        found = script.run(flows.events(None, None, script.patience))
        assert [next(found).id for _ in range(40)][-1] == "1.39"
        assert set(slept(script)) == {0.05}

    def test_a_stream_that_is_refused_says_why(self) -> None:
        script = FlowScript(reply(PROBLEM, 404))
        with pytest.raises(ServerError, match="no space"):
            next(script.run(flows.events("j", None, script.patience)))

    def test_events_of_a_job_go_on_after_the_one_that_is_known(self) -> None:
        script = FlowScript(reply(), event(1))
        next(script.run(flows.events("a b", "7", script.patience)))
        assert script.sent == ["/v1/events?job=a%20b&after=7"]
        known = calls.events("j", "7", "1.9")
        assert (known.target, known.headers["Last-Event-ID"]) == ("/v1/events?job=j", "1.9")

    def test_data_of_several_lines_is_one_document(self) -> None:
        text = b'id:1.1\ndata: {"what":"machine","at":"t",\n'
        text += b'data:"machine":"m",\r\ndata:"change":"removed"}\n\n'
        found = EventParser().feed(text + b"data\n\nretry: 5\n\n")
        assert found == [StreamedEvent("1.1", MachineEvent(at="t", machine="m", change="removed"))]


class TestWatching:
    def test_a_watch_has_the_time_that_is_left(self) -> None:
        script = FlowScript(reply(), reply(job()), Late(3.0, event(1)), reply(job()), SILENCE)
        assert len(list(script.run(flows.watch("j", script.patience, 5.0)))) == 1
        assert (reads(script), script.now) == ([5.0, 2.0], 5.0)

    def test_a_watch_that_is_longer_than_a_silence_opens_the_stream_again(self) -> None:
        script = FlowScript(
            reply(), reply(job()), SILENCE, reply(), reply(job(version=2)), SILENCE, patience=60.0
        )
        found = list(script.run(flows.watch("j", script.patience, 60.0)))
        assert [each.version for each in found] == [1, 2]
        assert reads(script) == [45.0, pytest.approx(60.0 - 45.05)]

    def test_no_time_is_enough_for_one_look(self) -> None:
        script = FlowScript(reply(), reply(job()))
        assert len(list(script.run(flows.watch("j", script.patience, 0.0)))) == 1

    @pytest.mark.parametrize("state", ["finished", "failed", "cancelled", "abandoned"])
    def test_a_job_that_is_over_is_not_watched(self, state: str) -> None:
        script = FlowScript(reply(), reply(job(state)))
        assert [each.state for each in script.run(flows.watch("j", script.patience))] == [state]


class TestLogs:
    def task(self, state: str, *tries: tuple[int, str | None]) -> ServerReply:
        made = [TryInfo(number=n, machine="m", started="t", ended=ended) for n, ended in tries]
        kind: Any = state
        return reply(TaskDetails(job="j", index=0, state=kind, tries=tuple(made)))

    def followed(self, script: FlowScript, tail: int | None = None) -> bytes:
        return b"".join(script.run(flows.follow_task("j", 0, "stderr", tail, script.patience)))

    def test_output_that_breaks_off_again_and_again_is_given_up(self) -> None:
        script = FlowScript(self.task("running", (1, None)), *[reply(), CUT] * 50)
        with pytest.raises(ServerUnreachable, match="gone"):
            self.followed(script)
        assert slept(script) == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]

    def test_output_that_goes_on_after_each_break_is_not(self) -> None:
        parts = [each for _ in range(30) for each in (reply(), b"x", CUT)]
        over = self.task("finished", (1, "t"))
        script = FlowScript(self.task("running", (1, None)), *parts, reply(), b"", over, over)
        assert self.followed(script) == b"x" * 30
        assert set(slept(script)) == {0.05}
        assert script.sent[-3].endswith("logs?stream=stderr&try=1&offset=30&follow=true")

    def test_a_try_of_a_server_that_is_gone_for_long_is_left(self) -> None:
        runs = self.task("running", (1, None))
        script = FlowScript(runs, *[reply(), b"", runs] * 10, self.task("failed", (1, None)))
        assert self.followed(script) == b""
        assert sum(slept(script)) <= 10.0

    def test_a_part_of_output_goes_on_where_it_broke_off_and_not_with_a_part_again(self) -> None:
        over = self.task("finished", (1, "t"))
        script = FlowScript(
            *[self.task("running", (1, None)), reply(argosy_offset="40"), b"abc", CUT],
            # No place is told, so what has come is counted.
            *[reply(), b"de", CUT, reply(argosy_offset="x"), b"f", b"", over, over],
        )
        assert self.followed(script, 60) == b"abcdef"
        base = "/v1/jobs/j/tasks/0/logs?stream=stderr&try=1"
        assert [target for target in script.sent if "logs" in target] == [
            f"{base}&tail=60&follow=true",
            f"{base}&offset=43&follow=true",
            f"{base}&offset=45&follow=true",
        ]
        script = FlowScript(
            *[self.task("running", (1, None)), reply(), CUT, reply(), b"a", b"", over, over]
        )
        assert self.followed(script, 60) == b"a"
        assert script.sent[2] == f"{base}&offset=0&follow=true"

    def test_a_try_is_over_although_the_next_one_runs(self) -> None:
        both = self.task("running", (1, "t"), (2, None))
        over = self.task("finished", (1, "t"), (2, "t"))
        script = FlowScript(
            *[self.task("running", (1, None)), reply(), b"a", b"", both],
            *[both, reply(), b"b", b"", over, over],
        )
        assert self.followed(script) == b"ab"
        assert (slept(script), script.answers) == ([], [])
        closed = [step for step in script.steps if isinstance(step, CloseStream)]
        assert len(closed) == 2

    def test_output_that_is_refused_says_why(self) -> None:
        script = FlowScript(self.task("running", (1, None)), reply(PROBLEM, 404))
        with pytest.raises(ServerError, match="no space"):
            self.followed(script)

    def test_a_task_is_waited_for_until_it_runs_or_never_will(self) -> None:
        waits, over = self.task("pending"), self.task("cancelled")
        script = FlowScript(waits, reply(), waits, event(1), waits, event(2), over)
        assert self.followed(script) == b""
        assert script.answers == []
        assert isinstance(script.steps[-1], CloseStream)
        # What changed before the stream was open is not missed.
        runs = self.task("running", (1, None))
        over = self.task("finished", (1, "t"))
        script = FlowScript(waits, reply(), runs, reply(), b"x", b"", over, over)
        assert self.followed(script, 5) == b"x"


class TestProblems:
    def told(self, **fields: Any) -> ServerError:
        document = {"type": "x", "title": "Teapot", "status": 418, "detail": "", **fields}
        return calls.problem(reply(document, 418))

    def test_a_problem_without_details_has_its_title(self) -> None:
        error = self.told()
        assert (error.problem, error.status) == ("Teapot", 418)
        assert (error.field, error.expected, error.hint) == (None, None, None)
        assert self.told(detail="short and stout").problem == "short and stout"

    def test_a_commit_that_is_refused_says_what_is_lacking(self) -> None:
        refused = {"why": "no_room", "machine": "m", "resource": "cpu", "lacking": 500}
        error = self.told(detail="no room", code="commit-refused", refused=refused)
        assert isinstance(error, CommitRefused)
        assert (error.why, error.machine, error.resource, error.lacking) == (
            *("no_room", "m", "cpu", 500),
        )
        assert (str(error), error.code, error.status) == ("no room", "commit-refused", 409)

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            (b"", "the server answered with status 502"),
            (b" \n", "the server answered with status 502"),
            (b" Bad\xff\n", "the server answered with status 502: 'Bad\ufffd'"),
        ],
    )
    def test_what_is_no_document_is_quoted_if_there_is_any(self, body: bytes, told: str) -> None:
        error = calls.problem(ServerReply(502, {}, body))
        assert (error.problem, error.status) == (told, 502)

    def test_only_the_beginning_of_a_long_text_is_quoted(self) -> None:
        error = calls.problem(ServerReply(502, {}, b"a" * 200 + b"b" * 200))
        assert "b'" not in error.problem.removesuffix("'")
        assert "aaa" in error.problem

    def test_an_answer_that_is_not_understood_has_its_status(self) -> None:
        with pytest.raises(ServerError, match=r"; its version may be another$") as caught:
            calls.job("j").answer(ServerReply(201, {}, b"{}"))
        assert caught.value.status == 201
        assert calls.remove_machine("m").answer(ServerReply(204, {}, b"odd")) is None
        assert calls.logs("j", 0).answer(ServerReply(200, {}, b"\xff")) == b"\xff"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a-1", "a-1"),
        ("a_b.c~d", "a_b.c~d"),
        ("a/b?c", "a%2Fb%3Fc"),
        ("", ""),
        ("é", "%C3%A9"),
        ("-", "-"),
    ],
)
def test_names_are_quoted_in_paths_and_queries(text: str, quoted: str) -> None:
    assert calls.job(text).target == f"/v1/jobs/{quoted}"
    assert calls.jobs(owner=text).target == f"/v1/jobs?owner={quoted}"
    assert msgspec.json.decode(calls.plan([{"id": text}]).body or b"") == {"jobs": [{"id": text}]}
