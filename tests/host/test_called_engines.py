"""How a host calls its engines, how it plans what happens later, and what becomes of mistakes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_bench import Bench, web

from argosy._core import TaskState
from argosy.engines.registry import ENGINES
from argosy.host.agent_desks import Turns
from argosy.host.deliberation import Deliberations, _check_unlimited, _thought
from argosy.host.host import CALL, UNTOLD, Host
from argosy.host.remote_desks import _only, _table
from argosy.model.effects import Deliberate, Question, WakeMe
from argosy.model.errors import EngineFault
from argosy.model.events import Decision, JobSubmitted, TimedDecision, TimerFired
from argosy.model.jobs import task_number
from argosy.model.transactions import Claims, Transaction
from argosy.testing.builders import SECOND


class Calls:
    """A host with one engine, whose surroundings are lists."""

    def __init__(
        self, answer: Any = (), *, measured: bool = False, constraints: bool = False
    ) -> None:
        self.did: list[Any] = []
        host = Host.__new__(Host)
        ticks = iter(range(1_000, 99_000, 700))
        host._stopwatch = lambda: next(ticks)
        host.view = "the view"  # type: ignore[assignment]
        host.cell = SimpleNamespace(applications=lambda: [3])  # type: ignore[assignment]
        host.retire_done = lambda: self.did.append("retired")  # type: ignore[method-assign]
        host._effects = SimpleNamespace(  # type: ignore[assignment]
            carry_out=lambda who, effects, now: self.did.append(("effects", effects, now))
        )
        host._standstill = SimpleNamespace(  # type: ignore[assignment]
            look=lambda who, event, effects, now: self.did.append(("look", now))
        )
        self.host = host

        def handle(event: Any, view: Any, now: int) -> Any:
            if isinstance(answer, Exception):
                raise answer
            assert view == "the view"
            return answer

        self.scheduler: Any = SimpleNamespace(
            engine=SimpleNamespace(handle=handle),
            label="s (x)",
            follows_constraints=constraints,
            is_measured=measured,
            computed=5,
            handled=0,
            next_look=3,
        )

    def call(self, now: int = 9) -> None:
        self.host.handle(self.scheduler, TimerFired("x"), now)


class TestHandling:
    def test_effects_are_carried_out_and_events_counted(self) -> None:
        calls = Calls([1])
        for now in range(4):
            calls.call(now)
        effects: list[Any] = [("effects", [1], now) for now in range(4)]
        assert calls.did == [*effects[:3], ("look", 2), effects[3], ("look", 3)]
        assert (calls.scheduler.handled, calls.scheduler.computed) == (4, 5)
        quiet = Calls(())
        quiet.call()
        assert (quiet.did, quiet.scheduler.handled) == ([], 1)

    def test_a_scheduler_that_is_down_handles_nothing(self) -> None:
        calls = Calls([1])
        calls.scheduler.engine = None
        calls.call()
        assert (calls.did, calls.scheduler.handled) == ([], 0)

    def test_who_follows_constraints_sees_only_those_that_hold(self) -> None:
        calls = Calls((), constraints=True)
        calls.call()
        assert calls.did == ["retired"]
        calls.host.cell = SimpleNamespace(applications=list)  # type: ignore[assignment]
        calls.call()
        assert calls.did == ["retired"]

    def test_computing_is_timed_where_it_is_measured(self) -> None:
        calls = Calls((), measured=True)
        calls.call()
        assert calls.scheduler.computed == 5 + 700
        decision: Any = calls.host.timed(calls.scheduler, lambda: "decided")  # type: ignore[arg-type,return-value]
        assert (decision, calls.scheduler.computed) == ("decided", 5 + 1_400)
        calls.scheduler.is_measured = False
        calls.host.timed(calls.scheduler, lambda: "decided")  # type: ignore[arg-type,return-value]
        assert calls.scheduler.computed == 5 + 1_400
        calls.scheduler.take_computed = lambda: 7
        assert calls.host.measured(calls.scheduler, 1.5) == 10

    def test_what_an_engine_raises_is_its_fault(self) -> None:
        calls = Calls(KeyError("gone"))
        with pytest.raises(EngineFault) as caught:
            calls.call(77)
        assert "s (x) failed on TimerFired at 77 µs" in caught.value.problem
        assert isinstance(caught.value.__cause__, KeyError)
        assert (calls.did, calls.scheduler.handled) == ([], 0)

    def test_only_errors_about_effects_are_blamed_on_a_scheduler(self) -> None:
        host, who = Host.__new__(Host), SimpleNamespace(label="s (x)")
        scheduler: Any = who
        host._blame(scheduler, "no effect", ValueError("x"))
        with pytest.raises(EngineFault, match=r"s \(x\) returned a malformed WakeMe"):
            host._blame(scheduler, WakeMe(1, "x"), ValueError("x"))


class TestPlanning:
    def test_what_was_asked_for_a_scheduler_dies_with_it(self) -> None:
        bench = Bench(lambda *_: ())
        [scheduler] = bench.host.schedulers
        seen: list[Any] = []
        bench.host.request(2 * SECOND, scheduler, lambda *all: seen.append(all), "kept")
        bench.host.request(5 * SECOND, scheduler, lambda *all: seen.append(all), "lost")
        bench.host.later(5 * SECOND, seen.append)
        bench.go(3)
        assert seen == [(scheduler, "kept", 2 * SECOND)]
        bench.host.crash(scheduler)
        bench.go(6)
        assert seen[1:] == [5 * SECOND]

    def test_a_call_is_carried_out_unless_its_scheduler_crashed(self) -> None:
        host, seen = Host.__new__(Host), list[Any]()
        who: Any = SimpleNamespace(epoch=2, label="s (x)")
        host._reports = SimpleNamespace(  # type: ignore[assignment]
            pass_on=lambda kind, now: seen.append(("report", kind, now))
        )
        for token, (epoch, runs) in enumerate(((2, True), (1, False), (-1, True))):
            seen.clear()
            host._calls = {
                token: (who, epoch, lambda who, what, now: seen.append((what, now)), "x")
            }
            host.carry_out((CALL, 9, 0, token))
            assert seen == ([("x", 9)] if runs else [])
            assert host._calls == {}
        host.carry_out((CALL + 1, 9, 0, 0))
        assert seen[-1] == ("report", CALL + 1, 9)

    def test_every_copy_of_a_message_is_delivered(self) -> None:
        host, posted = Host.__new__(Host), list[Any]()
        host.links = SimpleNamespace(deliveries=lambda one, other, now: (3, 8))  # type: ignore[assignment]
        host.post = lambda at, who, event: posted.append((at, event))  # type: ignore[method-assign]
        receiver: Any = SimpleNamespace(name="r")
        event: Any = "event"
        host.deliver("s", receiver, event, 100)
        assert posted == [(103, "event"), (108, "event")]

    def test_an_event_that_comes_next_anyway_is_told_at_once(self) -> None:
        for passes, expected in ((True, "at once"), (False, "posted")):
            host, seen = Host.__new__(Host), list[Any]()
            host._effects = SimpleNamespace(  # type: ignore[assignment]
                passes_turn=lambda passes=passes: passes,
                go_on=lambda *all, seen=seen: seen.append("at once"),
            )
            host.post = lambda *all, seen=seen: seen.append("posted")  # type: ignore[method-assign]
            who: Any = None
            host.tell_now(who, TimerFired("x"), 9)
            assert seen == [expected]

    def test_jobs_have_the_count_shape_and_estimate_of_each_group(self) -> None:
        bench = Bench(lambda *_: ())
        assert UNTOLD == -1
        made = web(3)
        [(count, shape, estimate)] = bench.host.groups_of(made)
        group = made.groups[0]
        assert (count, estimate) == (3, group.estimate or 0)
        assert shape == bench.host.cell.shape(group.request, group.tags, made.precedence)

    def test_requests_take_their_turn_again_as_events_of_their_own(self) -> None:
        later: list[int] = []
        turns = Turns(1, lambda now, action: later.append(now))
        begun: list[int] = []
        turns.enter(begun.append, 5)
        turns.enter(begun.append, 6)
        assert begun == [5]
        turns.leave(7)
        assert (begun, later) == ([5], [7])
        turns.leave(8)
        turns.enter(begun.append, 9)
        assert begun == [5, 9]
        anybody = Turns(0, lambda now, action: None)
        for now in range(50):
            anybody.enter(begun.append, now)
        assert len(begun) == 52

    def test_the_end_of_an_idle_run_is_when_nothing_is_open(self) -> None:
        bench = Bench(lambda *_: ())
        number = bench.host.submit(web(1))
        assert bench.told(JobSubmitted) == [], "nothing is handled before the clock moves"
        bench.host.ends_when_idle = True
        bench.host.later(5 * SECOND, lambda now: bench.host.cancel(number) and None)
        bench.host.later(9 * SECOND, lambda now: pytest.fail("nothing is open any more"))
        assert bench.host.run_until(20 * SECOND) is None
        assert bench.host.runtime.now == 5 * SECOND
        assert bench.host.board.state(task_number(number, 0)) is TaskState.CANCELLED


class TestDeliberating:
    def bench(self, *, in_place: bool) -> tuple[Deliberations, Any]:
        deliberations = Deliberations.__new__(Deliberations)
        deliberations._asked = {}
        who: Any = SimpleNamespace(name="s", label="s (x)", epoch=1)
        return deliberations, who

    @pytest.mark.parametrize(
        ("name", "token", "epoch", "in_place", "says"),
        [
            ("s", 4, 1, False, "s (x) asks two open questions with token 4"),
            ("s", 4, 1, True, "s (x) asks two open questions with token 4"),
            ("s", 5, 1, True, "s (x) asks a question while another is decided in place"),
            ("s", 5, 1, False, ""),
            ("t", 4, 1, True, ""),
            ("s", 4, 0, True, ""),
        ],
    )
    def test_open_questions_differ_and_one_in_place_is_alone(
        self, name: str, token: int, epoch: int, in_place: bool, says: str
    ) -> None:
        deliberations, who = self.bench(in_place=in_place)
        asked: Any = SimpleNamespace(epoch=epoch)
        deliberations._asked[name, token] = asked
        if says:
            with pytest.raises(EngineFault) as caught:
                deliberations._check_open(who, 4, is_in_place=in_place)
            assert caught.value.problem == says
            return
        deliberations._check_open(who, 4, is_in_place=in_place)
        # What a scheduler asked before it crashed is forgotten.
        assert ((name, token) in deliberations._asked) == (epoch == 1)

    def test_a_decision_takes_what_it_says_or_what_was_said_before(self) -> None:
        effect = Deliberate(3, Question(), 4, "lane", 50, 0)
        for decision, duration in ((Decision(), 50), (TimedDecision(7), 7), (TimedDecision(0), 0)):
            think = _thought(effect, decision)
            assert (think.duration, think.token, think.job, think.lane) == (duration, 3, 4, "lane")
            assert think.earlier is None

    def test_what_is_decided_in_place_has_no_limit(self) -> None:
        who: Any = SimpleNamespace(label="s (x)")
        _check_unlimited(who, Deliberate(3, Question()))
        with pytest.raises(EngineFault) as caught:
            _check_unlimited(who, Deliberate(3, Question(), limit=9))
        assert caught.value.problem == "s (x) limits what it decides in place to 9 µs"

    def test_who_cannot_deliberate_is_told_so(self) -> None:
        assert not hasattr(ENGINES["omega"], "deliberate")
        deliberations, _ = self.bench(in_place=False)
        who: Any = SimpleNamespace(label="s (x)", engine=object(), in_place=None)
        with pytest.raises(EngineFault, match=r"^s \(x\) cannot deliberate$"):
            deliberations.begin(who, Deliberate(3, Question()), 0)


class TestAnswersFromAfar:
    def test_tables_have_a_row_for_each_machine(self) -> None:
        assert _table([], 3).shape == (3, 0)
        assert _table([[1, 2], [3, 4]], 2).tolist() == [[1, 2], [3, 4]]
        assert _table([], 0).shape == (0, 0)
        assert _table([[5]], 1).dtype == np.int64

    @pytest.mark.parametrize(("machine", "expected"), [(7, [7]), (0, [0]), (-1, [4])])
    def test_the_claim_is_where_the_agent_put_it(self, machine: int, expected: list[int]) -> None:
        zeros = np.zeros(1, np.int32)
        claims = Claims(
            np.zeros(1, np.int64),
            np.array([4], np.int32),
            zeros,
            zeros.astype(np.uint32),
            alternatives=np.array([[7]], np.int32),
        )
        chosen = _only(Transaction("s", claims), machine)
        assert chosen.assume
        assert chosen.claims is not None
        assert (chosen.claims.machines.tolist(), chosen.claims.alternatives) == (expected, None)
