"""How single effects are carried out, over a host that only remembers: decision times, commits, answers
to probes, releases, explanations and timers."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from serial_attempts import tasks_of

from argosy.host import TaskState, records
from argosy.host.busy_time import DAY
from argosy.host.effect_runner import EffectRunner
from argosy.model.effects import (
    AnswerProbe,
    Commit,
    EarlierTime,
    Explain,
    Probe,
    Think,
    WakeMe,
)
from argosy.model.errors import EngineFault
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.resources import Resources
from argosy.model.scenario import AsTold, Jittered, Measured, NotModelled, Scaled
from argosy.model.transactions import Claims, Outcome, Transaction
from argosy.model.units import LARGEST

NONE = np.zeros(0, np.int64)
AS_TOLD = AsTold()


class Bench:
    """An effect runner whose surroundings are lists."""

    def __init__(self, decision_time: Any = AS_TOLD) -> None:
        self.did: list[tuple[Any, ...]] = []
        self.held = True
        self.owner = 0
        self.state = TaskState.PENDING
        self.binds = True
        self.foreign = -1
        self.misplaced = -1
        self.thought: list[tuple[int, int, int]] = []
        do = self._recorder
        runtime = SimpleNamespace(
            attempt=lambda job, index, spent: (
                self.did.append(("attempt", job, index, spent)) or job < 5
            ),
            is_held=lambda probe: self.held,
            probe_owner=lambda probe: self.owner,
            cancel=do("cancel"),
            bind=lambda probe, task: self.did.append(("bind", probe, task)) or self.binds,
            launch=do("launch"),
            set_pending=do("pending"),
        )
        cell = SimpleNamespace(machine_of=lambda task: 7 if task % 2 else None)
        host: Any = SimpleNamespace(
            post=do("post"),
            request=do("request"),
            stop=do("stop"),
            measured=lambda scheduler, factor: int(1_000 * factor),
            membership=SimpleNamespace(lose=do("lose"), evict=lambda *_: None),
            cell=cell,
        )
        board = SimpleNamespace(
            first_foreign=lambda tasks, index: self.foreign,
            first_misplaced=lambda tasks, index, may_run, extras: self.misplaced,
            owner=lambda job: 0,
            state=lambda task: self.state,
        )
        decisions = SimpleNamespace(
            journal=True,
            has_details=False,
            attempt=do("attempted"),
            input=do("input"),
            tasks=lambda now, kind, tasks, **more: self.did.append((kind, tasks.tolist())),
            placed=do("placed"),
            refused=lambda now, claims, outcome, rows, name: self.did.append(
                ("refused", rows.tolist())
            ),
        )
        runner = EffectRunner.__new__(EffectRunner)
        runner._host, runner._runtime, runner._board = host, runtime, board  # type: ignore[assignment]
        runner._decisions = decisions  # type: ignore[assignment]
        runner._jobs = Names()  # type: ignore[assignment]
        runner._links = SimpleNamespace(reliable_delay=lambda one, other, now: 30)  # type: ignore[assignment]
        runner._hop, runner._is_alone, runner._requirements = -1, False, None
        runner._agents = SimpleNamespace(check_claims=do("check"))  # type: ignore[assignment]
        runner.desks = ()  # type: ignore[assignment]
        self.runner = runner
        self.scheduler: Any = SimpleNamespace(
            name="s",
            label="s (omega)",
            index=0,
            is_as_told=isinstance(decision_time, AsTold),
            entry=SimpleNamespace(decision_time=decision_time),
            decision_random=SimpleNamespace(uniform=lambda: 0.25),
            lanes=defaultdict(
                lambda: SimpleNamespace(think=lambda *given: self.thought.append(given))
            ),
            refused=Counter(),
            conflicts=0,
            successes=0,
            conflict_days=Counter(),
            success_days=Counter(),
        )

    def _recorder(self, what: str) -> Any:
        def record(*given: Any, **more: Any) -> None:
            everything = (*given, *more.values())
            plain = (each.tolist() if isinstance(each, np.ndarray) else each for each in everything)
            self.did.append((what, *plain))

        return record


class Names:
    def __len__(self) -> int:
        return 5

    def name(self, number: int) -> str:
        return f"j{number}"


class TestDecisionTimes:
    @pytest.mark.parametrize(
        ("model", "expected"),
        [
            (AsTold(), 100),
            (Scaled(factor=2.5), 250),
            (Jittered(low=0.5, high=1.5), 75),
            (NotModelled(), 0),
            (Measured(factor=0.5), 500),
        ],
    )
    def test_a_decision_takes_as_long_as_its_model_says(self, model: Any, expected: int) -> None:
        bench = Bench(model)
        think = Think(100, 3, job=2, earlier=EarlierTime(7, 4), lane="l")
        assert bench.runner.spend(bench.scheduler, think, 50) == expected
        assert bench.thought == [(50, expected, 7)]
        measured = [("input", records.MeasuredRecord(50, "s", 500))]
        assert bench.did == [
            *(measured if isinstance(model, Measured) else []),
            ("attempt", 2, 0, expected + 4),
            ("attempted", 50, 2, "s", expected, 4),
        ]

    def test_a_decision_about_no_job_is_not_an_attempt(self) -> None:
        bench = Bench()
        bench.runner._think(bench.scheduler, Think(100, 3), 50)
        [(what, at, _, event)] = bench.did
        assert (what, at, event.token) == ("post", 150, 3)
        assert bench.thought == [(50, 100, 0)]

    def test_impossible_decisions_are_faults(self) -> None:
        bench = Bench()
        with pytest.raises(EngineFault, match="s \\(omega\\) wants to think for -1 µs"):
            bench.runner.spend(bench.scheduler, Think(-1, 3), 0)
        with pytest.raises(EngineFault, match=r"earlier\.total is -1"):
            bench.runner.spend(bench.scheduler, Think(0, 3, earlier=EarlierTime(-1, 0)), 0)
        with pytest.raises(EngineFault, match="s decides on job 9, which is not its own"):
            bench.runner.spend(bench.scheduler, Think(0, 3, job=9), 0)
        assert bench.runner.spend(bench.scheduler, Think(LARGEST + 1, 3), 0) == LARGEST
        assert bench.runner.spend(bench.scheduler, Think(0, 3), 0) == 0


class TestCommits:
    def test_a_scheduler_commits_as_itself_or_as_a_part_of_itself(self) -> None:
        for name in ("s", "s:part"):
            bench = Bench()
            bench.runner._commit(bench.scheduler, Commit(1, Transaction(name)), 50)
            [(what, at, *_)] = bench.did
            assert (what, at) == ("request", 80)
        bench = Bench()
        for name in ("t", "t:s", ""):
            with pytest.raises(EngineFault, match=f"s commits as '{name}'"):
                bench.runner._commit(bench.scheduler, Commit(1, Transaction(name)), 50)
        machines: Any = ("m",)
        with pytest.raises(EngineFault, match="s tries to change machines"):
            bench.runner._commit(
                bench.scheduler, Commit(1, Transaction("s", machines=machines)), 50
            )

    def outcome(self, *whys: Why) -> Outcome:
        count = len(whys)
        return Outcome(
            accepted=np.array([why is Why.NONE for why in whys]),
            whys=np.array([int(why) for why in whys], np.uint8),
            details=np.zeros(count, np.int8),
            amounts=np.zeros(count, np.int64),
            evicted=NONE,
            evicted_from=NONE.astype(np.int32),
            unreleased=(),
            dimensions=(),
            all_accepted=all(why is Why.NONE for why in whys),
            machines=np.arange(count, dtype=np.int32),
        )

    def launched(self, *whys: Why) -> Bench:
        bench = Bench()
        rows = np.zeros(len(whys), np.int32)
        claims = Claims(tasks_of(0, *range(len(whys))), rows, rows, rows.astype(np.uint32))
        effect = Commit(1, Transaction("s", claims, assume=True))
        bench.runner._launch(bench.scheduler, claims, self.outcome(*whys), effect, 2 * DAY + 1)
        return bench

    def test_a_success_counts_on_its_day(self) -> None:
        bench = self.launched(Why.NONE, Why.NONE)
        assert (bench.scheduler.successes, bench.scheduler.success_days) == (1, {2: 1})
        assert (bench.scheduler.conflicts, bench.scheduler.refused) == (0, {})
        assert bench.did == [
            ("launch", [0, 1]),
            ("placed", 2 * DAY + 1, [0, 1], [0, 1], "s", None, True),
        ]

    def test_only_what_was_accepted_is_launched(self) -> None:
        bench = self.launched(Why.NONE, Why.NO_ROOM, Why.JOB_LIMIT)
        assert bench.did[:2] == [("refused", [1, 2]), ("launch", [0])]
        assert (bench.scheduler.conflicts, bench.scheduler.conflict_days) == (1, {2: 1})
        assert bench.scheduler.refused == {int(Why.NO_ROOM): 1, int(Why.JOB_LIMIT): 1}
        assert bench.scheduler.successes == 0

    def test_a_limit_is_no_conflict_and_nothing_is_launched(self) -> None:
        bench = self.launched(Why.JOB_LIMIT)
        assert bench.did == [("refused", [0])]
        assert (bench.scheduler.conflicts, bench.scheduler.conflict_days) == (0, {})

    def test_released_tasks_are_pending_unless_they_are_elsewhere(self) -> None:
        bench = Bench()
        tasks = np.array([2, 4, 3, 2, 6], np.int64)
        refused = (Refusal(Why.NOT_YOURS, task=6),)
        bench.runner._release(bench.scheduler, tasks, refused, 9)
        assert bench.did == [
            ("stop", [2, 4], Why.RELEASED),
            ("pending", [2, 4]),
            (records.ReleasedRecord, [2, 4]),
        ]

    def test_machines_that_tasks_leave_go_on_with_their_queues(self) -> None:
        bench = Bench()
        rows = np.zeros(1, np.int32)
        claims = Claims(tasks_of(0, 5), rows, rows, rows.astype(np.uint32))
        left = bench.runner._machines_left
        assert left(Transaction("s", claims)) == []
        assert left(Transaction("s", claims, move=True)) == [7]
        assert left(Transaction("s", releases=tasks_of(0, 2))) == []
        assert left(Transaction("s", releases=tasks_of(0, 3, 1))) == [7]
        assert left(Transaction("s", forgets=tasks_of(0, 3))) == [7]


class TestProbes:
    def answer(self, bench: Bench, task: int | None = 3) -> None:
        bench.runner._arrive_answer(bench.scheduler, AnswerProbe(11, task), 9)

    def test_a_slot_is_bound_released_or_lost(self) -> None:
        bench = Bench()
        self.answer(bench)
        assert bench.did == [("bind", 11, 3), ("placed", 9, [3], [7], "s", None)]
        bench = Bench()
        self.answer(bench, None)
        assert bench.did == [("cancel", 11)]
        bench = Bench()
        bench.state = TaskState.CANCELLED
        self.answer(bench)
        assert bench.did == [("cancel", 11)]
        bench = Bench()
        bench.binds = False
        self.answer(bench)
        assert bench.did[1:] == [("lose", [3], [-1], Why.MACHINE_GONE, 9)]

    def test_an_answer_travels_to_the_machine_like_any_message(self) -> None:
        bench = Bench()
        effect = AnswerProbe(11, 3)
        bench.runner._answer(bench.scheduler, effect, 9)
        arrive = bench.runner._arrive_answer
        assert bench.did == [("request", 9 + 30, bench.scheduler, arrive, effect)]

    def test_a_slot_that_is_not_held_or_not_its_own_is_a_fault(self) -> None:
        bench = Bench()
        bench.held = False
        with pytest.raises(EngineFault, match="s answers probe 11, which holds no slot"):
            self.answer(bench)
        bench = Bench()
        bench.owner = 1
        with pytest.raises(EngineFault, match="s answers probe 11, which is not its own"):
            self.answer(bench)
        bench = Bench()
        bench.misplaced = 0
        with pytest.raises(EngineFault, match="s places task j0/3, which it may not place"):
            self.answer(bench)

    @pytest.mark.parametrize("number", [-1, 5])
    def test_probes_are_for_jobs_that_there_are(self, number: int) -> None:
        bench = Bench()
        with pytest.raises(EngineFault, match=f"s probes for job {number}, which is not its own"):
            bench.runner._probe(
                bench.scheduler, Probe(number, NONE.astype(np.int32), Resources(1, 1)), 0
            )


class TestOthers:
    @pytest.mark.parametrize("at", [0, 1])
    def test_only_own_tasks_are_explained(self, at: int) -> None:
        effect = Explain(tasks_of(0, 4, 6), Explanation())
        bench = Bench()
        bench.runner._explain(bench.scheduler, effect, 0)
        assert bench.did == [(records.ExplainedRecord, [4, 6])]
        bench.foreign = at
        with pytest.raises(
            EngineFault, match=f"s explains task j0/{4 + 2 * at}, which is not its own"
        ):
            bench.runner._explain(bench.scheduler, effect, 0)

    def test_a_timer_never_fires_in_the_past(self) -> None:
        for at, expected in ((70, 70), (50, 50), (10, 50)):
            bench = Bench()
            bench.runner._wake_me(bench.scheduler, WakeMe(at, "w"), 50)
            assert bench.did[0][:2] == ("post", expected)
        with pytest.raises(EngineFault, match=f"at is {LARGEST + 1}"):
            Bench().runner._wake_me(bench.scheduler, WakeMe(LARGEST + 1, "w"), 50)
        Bench().runner._wake_me(bench.scheduler, WakeMe(LARGEST, "w"), 50)

    def test_a_task_of_an_unknown_job_is_named_so(self) -> None:
        assert Bench().runner._task_name(int(tasks_of(4, 2)[0])) == "j4/2"
        assert Bench().runner._task_name(int(tasks_of(5, 2)[0])) == "unknown/2"

    def test_calls_are_nested_only_so_deep(self) -> None:
        bench = Bench()
        runner = bench.runner
        runner._runtime.pass_turn = lambda: True  # type: ignore[method-assign]
        runner._detours_saved = 0
        depths: list[int] = []

        def go_deeper(*_: Any) -> None:
            depths.append(runner._detours_saved)
            if runner.passes_turn():
                runner.go_on(go_deeper, bench.scheduler, None, 0)

        go_deeper()
        assert depths == [0, 1, 2]
        assert runner._detours_saved == 0


@pytest.mark.parametrize(("is_watched", "saved"), [(False, 0), (True, 2)])
def test_where_somebody_looks_between_events_nothing_is_nested(
    is_watched: bool, saved: int
) -> None:
    from argosy.engines.registry import ENGINES
    from argosy.testing.builders import scenario
    from argosy.worlds.sim import SimulatedWorld

    host = SimulatedWorld(scenario("omega", []), ENGINES).host

    class Watched:
        """The host, looked at or not."""

        def __getattr__(self, name: str) -> Any:
            return is_watched if name == "is_watched" else getattr(host, name)

    watched: Any = Watched()
    assert EffectRunner(watched)._detours_saved == saved
