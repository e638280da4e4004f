"""What clients send, repeat, resume and give up, without any input or output."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from client_flows import CUT, SILENCE, UNSENT, FlowScript, job, reply
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.values import (
    JobPage,
    JobSummary,
    MachineEvent,
    TaskDetails,
    TryInfo,
)
from argosy.client import calls, flows
from argosy.client.calls import ServerReply
from argosy.client.flows import (
    Flow,
    OpenStream,
    Patience,
    Sleep,
)
from argosy.client.server_sent import EventParser, StreamedEvent
from argosy.model.errors import ServerError, ServerUnreachable


class TestPauses:
    def test_they_double_up_to_two_seconds_and_begin_again_after_a_success(self) -> None:
        attempts = Patience(1_000.0, lambda: 0.0).attempts()
        pauses = [attempts.pause() for _ in range(8)]
        assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
        attempts.succeeded()
        assert attempts.pause() == 0.05

    def test_the_last_attempt_is_just_in_time(self) -> None:
        assert Patience(0.05, lambda: 0.0).attempts().pause() == 0.05
        assert Patience(0.04, lambda: 0.0).attempts().pause() is None
        assert Patience(3.0, lambda: 0.0).attempts().pause(at_least=3.0) == 3.0

    def test_patience_is_counted_from_the_first_failure_after_a_success(self) -> None:
        clock = [0.0]
        attempts = Patience(1.0, lambda: clock[0]).attempts()
        assert attempts.pause() == 0.05
        clock[0] = 0.96
        assert attempts.pause() is None
        attempts.succeeded()
        assert attempts.pause() == 0.05


class TestRepeating:
    def test_an_answer_is_read(self) -> None:
        script = FlowScript(reply(job()))
        assert list(script.run(flows.one(calls.job("j"), script.patience))) == [job()]
        assert script.sent == ["/v1/jobs/j"]

    def test_a_server_that_never_answered_is_reported_at_once(self) -> None:
        script = FlowScript(UNSENT)
        with pytest.raises(ServerUnreachable):
            list(script.run(flows.one(calls.job("j"), script.patience)))
        assert script.now == 0

    def test_a_server_that_has_answered_is_asked_again(self) -> None:
        script = FlowScript(UNSENT, UNSENT, reply(job()), has_answered=True)
        assert list(script.run(flows.one(calls.job("j"), script.patience))) == [job()]
        assert script.now > 0

    def test_patience_ends(self) -> None:
        script = FlowScript(*[UNSENT] * 100, has_answered=True, patience=5)
        with pytest.raises(ServerUnreachable):
            list(script.run(flows.one(calls.job("j"), script.patience)))
        assert 3 < script.now <= 5

    def test_only_what_may_be_repeated_is_sent_again_after_a_break(self) -> None:
        script = FlowScript(CUT, reply(job()))
        assert list(script.run(flows.one(calls.submit({}, "key"), script.patience))) == [job()]
        script = FlowScript(CUT)
        with pytest.raises(ServerUnreachable):
            list(script.run(flows.one(calls.add_machine({}), script.patience)))

    @pytest.mark.parametrize(
        "call",
        [
            calls.scale("j", 3, version=4),
            calls.cancel("j", version=4),
            calls.set_fleet([], version=4),
            calls.remove_machine("m"),
        ],
    )
    def test_what_a_second_request_would_contradict_is_not_repeated(self, call: Any) -> None:
        script = FlowScript(CUT)
        with pytest.raises(ServerUnreachable):
            list(script.run(flows.one(call, script.patience)))

    def test_a_paused_server_says_when_to_come_again(self) -> None:
        paused = reply({}, 503, retry_after="3")
        script = FlowScript(paused, reply(job()))
        list(script.run(flows.one(calls.submit({}, "key"), script.patience)))
        assert Sleep(3.0) in script.steps

    def test_a_server_that_stays_paused_is_reported(self) -> None:
        document = {
            "type": "x",
            "title": "t",
            "status": 503,
            "detail": "no space",
            "code": "paused",
        }
        script = FlowScript(*[reply(document, 503, retry_after="3")] * 9)
        with pytest.raises(ServerError, match=r"^no space$"):
            list(script.run(flows.one(calls.job("j"), script.patience)))

    def test_a_server_that_is_not_well_is_an_answer_to_how_it_is(self) -> None:
        health = {
            "status": "paused",
            "version": "1",
            "cluster": "c",
            "started": "",
            "open_jobs": 0,
            "running_tasks": 0,
            "machines": 1,
        }
        script = FlowScript(reply(health, 503))
        [found] = script.run(flows.one(calls.health(), script.patience))
        assert found.status == "paused"


class TestProblems:
    def test_a_problem_is_the_same_error_as_on_the_server(self) -> None:
        document = {
            "type": "about:blank",
            "title": "Unprocessable",
            "status": 422,
            "detail": "request.gpu: unknown resource 'gpu'; expected one of cpu, memory; a hint",
            "code": "job",
            "field": "request.gpu",
            "expected": "one of cpu, memory",
            "hint": "a hint",
        }
        error = calls.problem(reply(document, 422))
        assert str(error) == document["detail"]
        assert (error.code, error.field, error.hint) == ("job", "request.gpu", "a hint")
        assert (error.expected, error.status) == ("one of cpu, memory", 422)

    @pytest.mark.parametrize(
        ("status", "is_refused"), [(200, False), (399, False), (400, True), (503, True)]
    )
    def test_problems_begin_with_four_hundred(self, status: int, is_refused: bool) -> None:
        assert calls.fleet().is_refused(reply(status=status)) is is_refused
        assert calls.health().is_refused(reply(status=status)) is (status == 400)

    def test_what_is_no_problem_document_is_quoted(self) -> None:
        error = calls.problem(ServerReply(502, {}, b"<html>Bad Gateway"))
        assert "status 502" in str(error)
        assert "Bad Gateway" in str(error)

    def test_an_answer_of_another_kind_is_not_understood(self) -> None:
        script = FlowScript(reply({"odd": 1}))
        with pytest.raises(ServerError, match="not understood"):
            list(script.run(flows.one(calls.job("j"), script.patience)))


class TestRequests:
    def test_ids_are_quoted(self) -> None:
        assert calls.task("a?b/ü", 3).target == "/v1/jobs/a%3Fb%2F%C3%BC/tasks/3"

    def test_absent_parameters_are_left_out(self) -> None:
        assert calls.jobs(is_open=True, owner="a b").target == "/v1/jobs?owner=a%20b&open=true"
        assert calls.jobs().target == "/v1/jobs"

    def test_a_submission_has_its_key(self) -> None:
        assert calls.submit({"id": "j"}, "k").headers["Idempotency-Key"] == "k"
        assert calls.submit({"id": "j"}, "k").body == b'{"id":"j"}'

    def test_a_version_is_sent_as_a_condition(self) -> None:
        assert calls.scale("j", 2, version=7).headers["If-Match"] == '"7"'
        assert "If-Match" not in calls.scale("j", 2).headers


class TestPages:
    def summaries(self, count: int) -> list[JobSummary]:
        fields = {name: getattr(job(), name) for name in JobSummary.__struct_fields__}
        return [JobSummary(**{**fields, "id": f"j-{i}"}) for i in range(count)]

    def test_all_pages_are_read(self) -> None:
        items = self.summaries(5)
        script = FlowScript(
            reply(JobPage(items=tuple(items[:3]), next="3")), reply(JobPage(items=tuple(items[3:])))
        )
        assert list(script.run(flows.all_pages(calls.jobs, None, script.patience))) == items
        assert script.sent == ["/v1/jobs", "/v1/jobs?after=3"]

    def test_no_more_than_asked_for_are_given(self) -> None:
        script = FlowScript(reply(JobPage(items=tuple(self.summaries(3)), next="3")))
        assert len(list(script.run(flows.all_pages(calls.jobs, 2, script.patience)))) == 2
        pages = [reply(JobPage(items=tuple(self.summaries(3)), next="3")) for _ in range(2)]
        script = FlowScript(*pages)
        assert len(list(script.run(flows.all_pages(calls.jobs, 4, script.patience)))) == 4


def told(number: int) -> bytes:
    event = msgspec.json.encode(event_of(number).event).decode()
    return f"id: 1.{number}\nevent: machine\ndata: {event}\n\n".encode()


def event_of(number: int) -> StreamedEvent:
    return StreamedEvent(f"1.{number}", MachineEvent(at="t", machine=f"m-{number}", change="added"))


class TestEvents:
    @given(st.lists(st.integers(1, 300), max_size=20))
    def test_events_are_the_same_however_they_are_cut(self, sizes: Sequence[int]) -> None:
        rest = b": hello\r\n\r\n" + b"".join(map(told, range(4)))
        parser, found = EventParser(), []
        for size in [*sizes, len(rest)]:
            found += parser.feed(rest[:size])
            rest = rest[size:]
        assert found == [event_of(number) for number in range(4)]

    def test_an_id_without_data_is_remembered(self) -> None:
        parser = EventParser()
        assert parser.feed(b"id: 7.0\n\n") == []
        assert parser.last == "7.0"

    def test_the_id_of_half_an_event_is_forgotten_when_a_stream_begins(self) -> None:
        parser = EventParser()
        parser.feed(told(1))
        parser.feed(b"id: 1.2\n")
        parser.restart()
        parser.feed(b":\n\n")
        assert parser.last == "1.1"

    def test_unknown_events_are_skipped(self) -> None:
        parser = EventParser()
        assert parser.feed(b'id: 1.1\ndata: {"what": "weather"}\n\n' + told(2)) == [event_of(2)]

    def test_a_broken_stream_is_resumed_after_the_last_event(self) -> None:
        script = FlowScript(
            *[reply(), told(1) + told(2)[:9], CUT, UNSENT, reply(), told(2), b"", reply(), told(3)]
        )
        found = script.run(flows.events(None, "0", script.patience))
        assert [next(found).id for _ in range(3)] == ["1.1", "1.2", "1.3"]
        opened = [step.call for step in script.steps if isinstance(step, OpenStream)]
        assert [call.headers.get("Last-Event-ID") for call in opened] == [
            None,
            "1.1",
            "1.1",
            "1.2",
        ]
        assert [call.target for call in opened] == ["/v1/events?after=0"] + ["/v1/events"] * 3

    def test_half_an_event_is_forgotten_when_the_stream_breaks(self) -> None:
        cut = told(1).index(b"m-1")
        script = FlowScript(reply(), told(1)[:cut], CUT, reply(), told(1))
        assert next(script.run(flows.events(None, "0", script.patience))) == event_of(1)
        whole = told(2)[: told(2).rindex(b"\n")]
        script = FlowScript(reply(), whole, CUT, reply(), told(2))
        assert next(script.run(flows.events(None, "0", script.patience))) == event_of(2)

    def test_a_silent_stream_is_opened_again(self) -> None:
        script = FlowScript(reply(), SILENCE, reply(), told(1))
        assert next(script.run(flows.events(None, None, script.patience))) == event_of(1)
        assert script.now >= flows.QUIET

    def test_a_server_that_ends_every_stream_is_given_up(self) -> None:
        script = FlowScript(*[reply(), b""] * 50)
        with pytest.raises(ServerUnreachable, match="again and again"):
            list(script.run(flows.events(None, None, script.patience)))


class TestWatching:
    def test_a_job_is_given_whenever_it_changed_until_it_is_over(self) -> None:
        script = FlowScript(
            *[reply(), reply(job()), told(1), reply(job()), told(2), reply(job(version=2))],
            *[told(3), reply(job("finished", 3, exit_code=0))],
        )
        found = list(script.run(flows.watch("j", script.patience)))
        assert [each.version for each in found] == [1, 2, 3]
        assert script.sent[0] == "/v1/events?job=j"

    def test_a_job_that_is_over_needs_no_events(self) -> None:
        script = FlowScript(reply(), reply(job("failed", exit_code=3)))
        [found] = script.run(flows.watch("j", script.patience))
        assert found.exit_code == 3

    def test_time_ends_the_watch(self) -> None:
        script = FlowScript(reply(), reply(job()), SILENCE)
        assert len(list(script.run(flows.watch("j", script.patience, 5)))) == 1
        assert script.now == 5

    def test_what_was_missed_while_the_stream_was_broken_is_seen(self) -> None:
        script = FlowScript(reply(), reply(job()), CUT, reply(), reply(job("finished", 2)))
        assert [each.version for each in script.run(flows.watch("j", script.patience))] == [1, 2]


def task(state: str, *tries: tuple[int, str | None]) -> ServerReply:
    return reply(
        TaskDetails(
            job="j",
            index=0,
            state=state,  # type: ignore[arg-type]
            tries=tuple(
                TryInfo(number=number, machine="m", started="t", ended=ended)
                for number, ended in tries
            ),
        )
    )


class TestLogs:
    def follow(self, *answers: object) -> tuple[bytes, FlowScript]:
        script = FlowScript(*answers)
        flow: Callable[..., Flow[bytes]] = flows.follow_task
        return b"".join(script.run(flow("j", 0, "stdout", None, script.patience))), script

    def test_tries_are_followed_one_after_the_other(self) -> None:
        text, script = self.follow(
            *[task("running", (4, None)), reply(), b"one\n", b"", task("pending", (4, "t"))],
            *[task("pending", (4, "t")), reply(), task("pending", (4, "t")), told(1)],
            *[task("running", (4, "t"), (9, None)), reply(), b"two\n", b""],
            *[task("finished", (4, "t"), (9, "t"))] * 2,
        )
        assert text == b"one\ntwo\n"
        assert [target for target in script.sent if "logs" in target] == [
            "/v1/jobs/j/tasks/0/logs?stream=stdout&try=4&follow=true",
            "/v1/jobs/j/tasks/0/logs?stream=stdout&try=9&follow=true",
        ]

    def test_a_broken_output_is_resumed_where_it_was(self) -> None:
        text, script = self.follow(
            *[task("running", (4, None)), reply(argosy_offset="100"), b"abc", CUT],
            *[reply(argosy_offset="103"), b"def", b"", task("finished", (4, "t"))],
            task("finished", (4, "t")),
        )
        assert text == b"abcdef"
        assert "offset=103" in script.sent[2]

    def test_a_server_that_stops_does_not_end_a_try(self) -> None:
        text, _ = self.follow(
            *[task("running", (4, None)), reply(), b"abc", b"", task("running", (4, None))],
            *[reply(argosy_offset="3"), b"d", b"", task("finished", (4, "t"))],
            task("finished", (4, "t")),
        )
        assert text == b"abcd"

    def test_a_task_that_never_runs_has_nothing_to_follow(self) -> None:
        assert self.follow(task("cancelled"))[0] == b""

    def test_it_begins_with_the_latest_try_and_misses_none_after_that(self) -> None:
        over = [(number, "t") for number in (3, 4, 5, 6)]
        script = FlowScript(
            *[task("running", (3, "t"), (4, None)), reply(), b"a", b"", task("running", *over[:2])],
            *[task("finished", *over), reply(), b"b", b"", task("finished", *over)],
            *[task("finished", *over), reply(), b"c", b"", task("finished", *over)],
            task("finished", *over),
        )
        flow = flows.follow_task("j", 0, "stdout", 7, script.patience)
        assert b"".join(script.run(flow)) == b"abc"
        base = "/v1/jobs/j/tasks/0/logs?stream=stdout"
        # Only of what is there already, a part may be enough.
        assert [target for target in script.sent if "logs" in target] == [
            f"{base}&try=4&tail=7&follow=true",
            f"{base}&try=5&follow=true",
            f"{base}&try=6&follow=true",
        ]
