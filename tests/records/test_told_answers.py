"""`why` and `story` of journals written by hand: every kind of line, in every word of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from argosy.host.job_state import JobState
from argosy.host.records import (
    AbandonedRecord,
    AttemptRecord,
    CancelledRecord,
    ConfirmedRecord,
    CrashedRecord,
    EndedRecord,
    EnqueuedRecord,
    ExplainedRecord,
    FailedRecord,
    ForgottenRecord,
    LostRecord,
    MachineRecord,
    PlacedRecord,
    ProbedRecord,
    RefusedRecord,
    ReleasedRecord,
    RestoredRecord,
    ResubmittedRecord,
    RetriedRecord,
    ScaledRecord,
    StartedRecord,
    SubmittedRecord,
)
from argosy.model.errors import CommandError, RunDirectoryError, UnknownName
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.prices import Price
from argosy.model.resources import Resources
from argosy.model.transactions import AddMachine
from argosy.records.answers import TaskAnswers, WhyAnswer
from argosy.testing.builders import GIB, job

Ask = Callable[..., TaskAnswers]
A = SubmittedRecord(0, 0, job("a", 4).job, "s-0")
B = SubmittedRecord(0, 1, job("b", 2).job, "s-1")


def b(index: int) -> int:
    return task_number(1, index)


def texts(answers: TaskAnswers) -> list[str]:
    return [f"{line.at} {line.text}" for line in answers.story()]


class TestStory:
    def test_a_decision_whose_time_is_not_modelled_has_no_time(self, ask: Ask) -> None:
        told = ask(A, AttemptRecord(1, "a", "s-0", 0), PlacedRecord(1, "a", [1], [6], "s-0"))
        assert texts(told)[1] == "1 s-0 starts to decide"

    def test_a_task_of_many_fates_is_told_in_order(self, ask: Ask) -> None:
        told = ask(
            A,
            B,
            AttemptRecord(1, "a", "s-0", 2_000),
            AttemptRecord(1, "b", "s-1", 2_000),
            PlacedRecord(10, "a", [0, 1], [5, 6], "s-0"),
            PlacedRecord(10, "a", [2, 3], [7, 7], "s-0"),
            LostRecord(20, "a", [0, 1], [5, 6], "machine_gone"),
            ResubmittedRecord(30, "a", [0, 1], "s-1"),
            PlacedRecord(40, "a", [1], [2], "s-1", assumed=True),
            ConfirmedRecord(41, [1, b(0)]),
            ReleasedRecord(50, "a", [1], "s-1"),
            PlacedRecord(60, "a", [1], [3], "s-1", assumed=True),
            ForgottenRecord(61, [1], "no"),
            LostRecord(61, "a", [1], [3], "not_assumed"),
            PlacedRecord(70, "a", [1], [0], "s-1"),
            FailedRecord(80, 1, 1, 3, "out of memory"),
            RetriedRecord(80, "a", [1], 3, "out of memory"),
            PlacedRecord(90, "a", [1], [0], "s-1"),
            FailedRecord(95, 1, 2, 4, ""),
            RetriedRecord(95, "a", [1], 4, "", for_good=True),
        )
        assert texts(told) == [
            "0 submitted with 4 tasks, goes to s-0",
            "1 s-0 starts to decide, which takes 2 ms",
            "10 placed on m6 by s-0",
            "10 starts on m6",
            "20 lost m6: machine gone",
            "30 given to s-1 again",
            "40 placed on m2 by s-1, if it is confirmed",
            "40 starts on m2",
            "41 confirmed",
            "50 released by s-1",
            "60 placed on m3 by s-1, if it is confirmed",
            "60 starts on m3",
            "61 not confirmed",
            "61 lost m3: not assumed",
            "70 placed on m0 by s-1",
            "70 starts on m0",
            "80 failed with exit status 3: out of memory",
            "80 may be placed again",
            "90 placed on m0 by s-1",
            "90 starts on m0",
            "95 failed with exit status 4",
            "95 failed for good",
        ]
        assert told.why().state == "failed"
        assert told.why().sentence == (
            "a/1 failed 2 times, the last time: exit status 4. It ran on m0: s-1 placed it there."
        )

    def test_a_line_keeps_its_record_without_what_the_line_itself_says(self, ask: Ask) -> None:
        told = ask(A, PlacedRecord(10, "a", [0, 1], [5, 6], "s-0"), EndedRecord(20, [1]))
        placed, started, finished = told.story()[1:]
        assert (placed.what, started.what, finished.what) == ("placed", "started", "finished")
        assert placed.detail == {
            "job": "a",
            "indices": [0, 1],
            "machines": [5, 6],
            "scheduler": "s-0",
        }
        assert started.detail == finished.detail == {}

    def test_waits_and_running_times_are_those_of_the_last_try(self, ask: Ask) -> None:
        told = ask(
            A,
            # Leaves its scheduler at 100 + 200 + 2 x 30: it is the third of the line.
            EnqueuedRecord(100, "a", [3, 0, 1], [1, 2, 4], "s-0", None, 200, 30),
            StartedRecord(1_000, [0, 1], [2, 4], 60),
            LostRecord(5_000, "a", [1], [4], "preempted"),
            EnqueuedRecord(6_000, "a", [1], [5], "s-0"),
            StartedRecord(6_700, [1], [5], 100),
            EndedRecord(16_800, [b(0), 1]),
            task="a/1",
        )
        assert texts(told) == [
            "0 submitted with 4 tasks, goes to s-0",
            "100 sent to the queue of m4 by s-0",
            "1060 starts on m4 after 700 µs on the way and in its queue",
            "5000 lost m4: preempted",
            "6000 sent to the queue of m5 by s-0",
            "6800 starts on m5 after 800 µs on the way and in its queue",
            "16800 finished after running for 10 ms",
        ]

    def test_a_task_that_did_not_wait_does_not_say_so(self, ask: Ask) -> None:
        told = ask(A, EnqueuedRecord(7, "a", [1], [2], "s-0"), StartedRecord(7, [1], [2]))
        assert texts(told)[-1] == "7 starts on m2"

    def test_only_lines_that_say_the_same_to_a_reader_are_counted_together(self, ask: Ask) -> None:
        def refused(at: int, machine: int, *whys: Why) -> RefusedRecord:
            count = len(whys)
            numbers, machines = list(range(1, count + 1)), [machine] * count
            return RefusedRecord(
                at, "a", numbers, machines, "s-0", list(map(int, whys)), [0] * count, [500] * count
            )

        def waits(at: int, **ruled_out: int) -> ExplainedRecord:
            return ExplainedRecord(
                at, "a", [1], "s-0", Explanation(looked_at=8, ruled_out=ruled_out)
            )

        told = ask(
            A,
            AttemptRecord(1, "a", "s-0", 10),
            refused(2, 3, Why.NO_ROOM),
            AttemptRecord(3, "a", "s-0", 20),
            refused(4, 5, Why.NO_ROOM, Why.NO_ROOM),
            AttemptRecord(5, "a", "s-1", 20),
            refused(6, 5, Why.STALE),
            waits(7, cpu=8),
            waits(8, cpu=7, memory=1),
            AttemptRecord(9, "a", "s-1", 20),
            refused(10, 5, Why.STALE),
            waits(11, memory=2, cpu=6),
            PlacedRecord(12, "a", [1], [0], "s-1"),
            LostRecord(13, "a", [1], [0], "preempted"),
            PlacedRecord(14, "a", [1], [0], "s-1"),
        )
        assert texts(told) == [
            "0 submitted with 4 tasks, goes to s-0",
            "1 s-0 starts to decide, which takes 10 µs (2 times)",
            "2 refused: m3 lacks 0.5 cores (2 times)",
            "5 s-1 starts to decide, which takes 20 µs",
            "6 refused: m5 changed 500 times since the decision began",
            "7 waits: none of 8 machines has 1 core and 1 GiB free",
            "8 waits: none of 8 machines has 1 core and 1 GiB free (2 times)",
            # The same four lines before: out of sight.
            "9 s-1 starts to decide, which takes 20 µs",
            "10 refused: m5 changed 500 times since the decision began",
            "12 placed on m0 by s-1",
            "12 starts on m0",
            "13 lost m0: preempted",
            "14 placed on m0 by s-1",
            "14 starts on m0",
        ]

    def test_a_scheduler_that_stops_takes_only_its_own_waiting_probes_with_it(
        self, ask: Ask
    ) -> None:
        probed = ProbedRecord(10, "a", [0, 1], [1, 2, 3, 4], "s-0")
        crash = CrashedRecord(20, "s-0")
        told = ask(A, probed, CrashedRecord(15, "s-1"), crash, task="a/1")
        assert texts(told)[1:] == [
            "10 4 probes for its job's tasks sent by s-0",
            "20 s-0 stopped, and its probes with it",
        ]
        assert told.why().state == "pending"
        # Another task starts, on a machine whose number is that of this one.
        other = StartedRecord(18, [0], [1])
        assert texts(ask(A, probed, other, crash, task="a/1"))[1:] == texts(told)[1:]
        started = StartedRecord(18, [1], [3])
        told = ask(A, probed, started, crash, task="a/1")
        assert texts(told)[2:] == ["18 starts on m3 after 8 µs on the way and in its queue"]
        assert told.why().state == "running"
        assert ask(A, probed, started, crash, task="a/0").why().state == "pending"
        assert len(ask(A, crash, task="a/1").story()) == 1

    def test_machines_and_resources_that_came_later_are_called_by_their_names(
        self, ask: Ask
    ) -> None:
        late = AddMachine(Machine("late", Resources(1_000, GIB, {"gpu": 2})))
        refused = RefusedRecord(
            7, "a", [0, 1], [8, 8], "s-0", [int(Why.NO_ROOM)] * 2, [0, 2], [9, 1]
        )
        told = ask(A, MachineRecord(5, late), refused, PlacedRecord(9, "a", [1], [8], "s-0"))
        assert texts(told)[1:] == [
            "7 refused: late lacks 1 gpu",
            "9 placed on late by s-0",
            "9 starts on late",
        ]

    def test_a_machine_that_never_was_is_called_by_its_number(self, ask: Ask) -> None:
        unknown = [int(Why.MACHINE_UNKNOWN)]
        told = ask(A, RefusedRecord(7, "a", [1], [8], "s-0", unknown, [-1], [0]))
        assert texts(told)[-1] == "7 refused: 8 does not exist"


class TestStates:
    @pytest.mark.parametrize(
        ("facts", "state"),
        [
            ([], "pending"),
            ([PlacedRecord(1, "a", [1], [0], "s-0")], "running"),
            ([PlacedRecord(1, "a", [2], [0], "s-0")], "pending"),
            ([PlacedRecord(1, "b", [1], [0], "s-0")], "pending"),
            ([EnqueuedRecord(1, "a", [1], [0], "s-0")], "queued"),
            ([PlacedRecord(1, "a", [1], [0], "s-0"), EndedRecord(2, [1])], "finished"),
            ([PlacedRecord(1, "a", [1], [0], "s-0"), EndedRecord(2, [b(1)])], "running"),
            ([PlacedRecord(1, "a", [1], [0], "s-0"), FailedRecord(2, 1, 1, 1, "")], "pending"),
            ([PlacedRecord(1, "a", [1], [0], "s-0"), FailedRecord(2, 2, 1, 1, "")], "running"),
            ([CancelledRecord(2, 0, [0, 1])], "cancelled"),
            ([CancelledRecord(2, 0, [0, 2])], "pending"),
            ([CancelledRecord(2, 1, [0, 1])], "pending"),
            ([AbandonedRecord(2, "a", [1], "s-0", Explanation())], "abandoned"),
            ([ScaledRecord(2, 0, job("a", 2).job)], "pending"),
            ([ScaledRecord(2, 0, job("a", 1).job)], "cancelled"),
            ([ScaledRecord(2, 1, job("b", 1).job)], "pending"),
            ([ScaledRecord(2, 0, job("a", 1).job), ScaledRecord(3, 0, job("a", 2).job)], "pending"),
            ([CancelledRecord(2, 0, [1]), ScaledRecord(3, 0, job("a", 6).job)], "cancelled"),
            (
                [
                    PlacedRecord(1, "a", [1], [0], "s-0"),
                    EndedRecord(2, [1]),
                    ScaledRecord(2, 0, job("a", 1).job),
                ],
                "finished",
            ),
        ],
    )
    def test_a_task_is_where_its_last_line_put_it(
        self, ask: Ask, facts: list[Any], state: str
    ) -> None:
        assert ask(A, B, *facts).why().state == state

    def test_a_job_taken_over_after_a_restart_says_where_its_tasks_were(self, ask: Ask) -> None:
        state = JobState(
            submitted=0, running=(3, 1), machines=(5, 6), finished=(0,), abandoned=(4,)
        )
        restored = RestoredRecord(9, 0, job("a", 6).job, "s-0", state)
        told = ask(restored, task="a/1")
        assert texts(told) == [
            "9 taken over after a restart: running on m6; its job belongs to s-0"
        ]
        assert told.why().sentence == "a/1 was running on m6 before the last restart."
        sentences = {
            "a/0": ("finished", "a/0 was finished before the last restart."),
            "a/4": ("abandoned", "a/4 was abandoned before the last restart."),
            "a/2": ("pending", "a/2 was submitted, but no scheduler has decided on it yet."),
        }
        for task, expected in sentences.items():
            why = ask(restored, task=task).why()
            assert (why.state, why.sentence) == expected
        # Tasks that an earlier scaling had removed come back; a finished one stays finished.
        fewer, more = ScaledRecord(10, 0, job("a", 4).job), ScaledRecord(11, 0, job("a", 6).job)
        assert ask(restored, fewer, task="a/5").why().state == "cancelled"
        assert ask(restored, fewer, more, task="a/5").why().state == "pending"
        # One that a user had cancelled was there all the time.
        ended = JobState(submitted=0, cancelled=(5,))
        again = RestoredRecord(9, 0, job("a", 6).job, "s-0", ended)
        assert ask(again, more, task="a/5").why().state == "cancelled"
        assert ask(restored, fewer, task="a/4").why().state == "abandoned"
        assert ask(restored, fewer, task="a/3").why().state == "running"
        assert texts(ask(restored, fewer, task="a/3"))[-1] == "10 its job has 4 tasks from now on"

    def test_a_task_no_scheduler_looked_at_asks_for_time(self, ask: Ask) -> None:
        why = ask(A).why()
        assert why.sentence == "a/1 was submitted, but no scheduler has decided on it yet."
        assert why.remedy == "more time, or more schedulers: no attempt had begun so far"


def explained(**fields: Any) -> ExplainedRecord:
    return ExplainedRecord(5, "a", [1], "s-0", Explanation(**fields))


NEAREST = Refusal(Why.NO_ROOM, machine=2, dimension="memory", lacking=GIB)


class TestWhyNot:
    @pytest.mark.parametrize(
        ("explanation", "reason"),
        [
            (Explanation(), "s-0 gave no reason"),
            (Explanation(ruled_out={"cpu": 1}), "no machine can take it"),
            (
                Explanation(nearest_miss=NEAREST),
                "no machine can take it; m2 comes nearest and lacks 1 GiB",
            ),
            (Explanation(looked_at=1), "the only machine does not have 1 core and 1 GiB free"),
            (
                Explanation(looked_at=1, feasible=1),
                "1 of 1 machine has room for it, and other tasks come first",
            ),
            (
                Explanation(looked_at=5, feasible=5, nearest_miss=NEAREST),
                "5 of 5 machines have room for it, and other tasks come first",
            ),
            (
                Explanation(looked_at=5, feasible=4, gang_room=3),
                "only 3 of the 4 tasks of its gang had room at once",
            ),
            (
                Explanation(looked_at=5, feasible=5, forbidden=("'a -> {a, 0, 0} in rack hard'",)),
                "5 of 5 machines have room, but 'a -> {a, 0, 0} in rack hard' cannot be kept",
            ),
            (Explanation(looked_at=2), "none of 2 machines has 1 core and 1 GiB free"),
            (
                Explanation(looked_at=5, nearest_miss=NEAREST),
                "none of 5 machines has 1 core and 1 GiB free; m2 comes nearest and lacks 1 GiB",
            ),
            (Explanation(looked_at=5, refused=NEAREST), "m2 lacks 1 GiB"),
            (
                Explanation(price=Price(9_000, 12_000, 3)),
                "waiting costs it 9,000, and the cheapest place, on m3, 12,000",
            ),
            (
                Explanation(price=Price(9, 12, -1)),
                "waiting costs it 9, and the cheapest place 12",
            ),
            (
                Explanation(price=Price(9, 12, 0, holder=0, loser=0)),
                "waiting costs it 9, and the cheapest place, on m0, 12: a/0 holds it",
            ),
            (
                Explanation(price=Price(9, 12, 0, holder=2, loser=b(1))),
                "waiting costs it 9, and the cheapest place, on m0, 12: a/2 holds it, and b/1 would "
                "end up without a machine",
            ),
            (
                Explanation(price=Price(9, 12, 0, loser=0)),
                "waiting costs it 9, and the cheapest place, on m0, 12, and a/0 would end up without "
                "a machine",
            ),
            (
                Explanation(price=Price(9, 12, 0, holder=task_number(2, 7))),
                "waiting costs it 9, and the cheapest place, on m0, 12: 2/7 holds it",
            ),
        ],
    )
    def test_each_explanation_has_its_sentence(
        self, ask: Ask, explanation: Explanation, reason: str
    ) -> None:
        record = ExplainedRecord(5, "a", [1], "s-0", explanation)
        told = ask(A, B, record)
        why = told.why()
        assert why.sentence == f"a/1 has no machine: {reason}."
        assert texts(told)[-1] == f"5 waits: {reason}"
        assert (why.looked_at, why.feasible) == (explanation.looked_at, explanation.feasible)
        assert (why.ruled_out, why.price) == (explanation.ruled_out, explanation.price)
        assert why.nearest_miss == ("m2 lacks 1 GiB" if explanation.nearest_miss else "")

    def test_an_abandoned_task_says_why_and_what_its_last_attempt_met(self, ask: Ask) -> None:
        given_up = Explanation(refused=Refusal(Why.ATTEMPTS, lacking=3), remedy="later")
        over = AbandonedRecord(9, "a", [1], "s-0", given_up)
        told = ask(A, over)
        assert told.why().sentence == "a/1 has no machine: given up after 3 attempts."
        room = RefusedRecord(
            6, "a", [0, 1], [4, 5], "s-0", [int(Why.NO_ROOM)] * 2, [0, 0], [1, 2_000]
        )
        told = ask(A, explained(looked_at=8, remedy="other"), room, over)
        assert told.why() == WhyAnswer(
            task="a/1",
            state="abandoned",
            sentence="a/1 has no machine: given up after 3 attempts; at last, m5 lacks 2 cores.",
            remedy="another attempt, on a fresh view of the cell",
        )
        plain = AbandonedRecord(9, "a", [1], "s-0", Explanation(looked_at=4, remedy="wait"))
        assert ask(A, plain).why() == WhyAnswer(
            task="a/1",
            state="abandoned",
            sentence="a/1 has no machine: none of 4 machines has 1 core and 1 GiB free.",
            looked_at=4,
            remedy="wait",
        )

    def test_a_task_that_lost_its_machine_waits_for_a_decision(self, ask: Ask) -> None:
        placed = PlacedRecord(5, "a", [1], [0], "s-0")
        for fact, text in (
            (LostRecord(6, "a", [1], [0], "preempted"), "lost m0: preempted"),
            (ReleasedRecord(6, "a", [1], "s-0"), "released by s-0"),
        ):
            why = ask(A, placed, fact).why()
            assert why == WhyAnswer(
                task="a/1",
                state="pending",
                sentence=f"a/1 has no machine: {text}, and no scheduler has decided on it again.",
            )


class TestWhyHere:
    @pytest.mark.parametrize(
        ("explanation", "choice"),
        [
            (Explanation(), "s-0 placed it there"),
            (
                Explanation(rule="first fit", looked_at=41, feasible=1),
                "it was the first machine with room, counted from a random one",
            ),
            (
                Explanation(rule="cheapest flow", feasible=2),
                "the cheapest assignment of all tasks puts it there",
            ),
            (Explanation(rule="chance", looked_at=7), "decided by chance"),
            (
                Explanation(rule="best fit", looked_at=7, feasible=3),
                "of 3 machines with room, it keeps least free",
            ),
        ],
    )
    def test_each_rule_has_its_sentence(
        self, ask: Ask, explanation: Explanation, choice: str
    ) -> None:
        placed = PlacedRecord(5, "a", [0, 1], [3, 4], "s-0", explanation)
        assert ask(A, placed).why().sentence == f"a/1 runs on m4: {choice}."
        sent = EnqueuedRecord(5, "a", [0, 1], [3, 4], "s-0", explanation)
        assert ask(A, sent).why().sentence == f"a/1 waits in the queue of m4: {choice}."
        stolen = StartedRecord(6, [1, 0], [7, 3])
        assert ask(A, sent, stolen).why().sentence == (
            f"a/1 runs on m7, which took it from the queue of m4: {choice}."
        )
        assert (
            ask(A, sent, StartedRecord(6, [1], [4])).why().sentence == f"a/1 runs on m4: {choice}."
        )

    def test_an_answer_gives_all_that_the_scheduler_said(self, ask: Ask) -> None:
        explanation = Explanation(
            looked_at=7,
            feasible=3,
            ruled_out={"cpu": 4},
            rule="best fit",
            score=12,
            second=5,
            second_score=9,
            violated=("a -> {b, 0, 0} in rack",),
        )
        answer = WhyAnswer(
            task="a/1",
            state="finished",
            sentence="a/1 ran on m4: of 3 machines with room, it keeps least free: a score of 12; m5 "
            "came second with a score of 9.",
            looked_at=7,
            feasible=3,
            ruled_out={"cpu": 4},
            violated=("a -> {b, 0, 0} in rack",),
            placed_on="m4",
            rule="best fit",
            score=12,
            second="m5",
            second_score=9,
        )
        ended = EndedRecord(9, [1])
        placed = PlacedRecord(5, "a", [1, 0, 2], [4, 3, 5], "s-0", explanation)
        assert ask(A, placed, ended).why() == answer
        # The numbers are those of the first task of a decision.
        other = ask(A, placed, task="a/0").why()
        assert "for a/1, decided with it, a score of 12; m5 came second" in other.sentence
        assert (other.score, other.second, other.second_score) == (None, "", None)
        # The same decision put another task on the runner-up: for that one there is none.
        runner_up = ask(A, placed, EndedRecord(9, [2]), task="a/2").why()
        assert (runner_up.placed_on, runner_up.second, runner_up.second_score) == ("m5", "", None)
        # So it is if its first choice was taken.
        second = ask(A, PlacedRecord(5, "a", [1], [5], "s-0", explanation)).why()
        assert second.sentence == (
            "a/1 runs on m5: its first choice was taken meanwhile, and this was the second."
        )
        assert (second.score, second.second, second.second_score) == (12, "", None)
        # Whoever takes the first machine with room has seen few of those without.
        for rule, ruled_out in (("first fit", {}), ("chance", {"cpu": 4})):
            seen = Explanation(rule=rule, looked_at=7, feasible=3, ruled_out={"cpu": 4})
            placed = PlacedRecord(5, "a", [1], [4], "s-0", seen)
            assert ask(A, placed).why().ruled_out == ruled_out
        # A score may be told without its machine.
        alone = Explanation(rule="best fit", score=12, second_score=9)
        assert ask(A, PlacedRecord(5, "a", [1], [4], "s-0", alone)).why().second_score == 9
        # One given separately counts if it came before, and only if it explains a choice.
        bare = PlacedRecord(5, "a", [1], [4], "s-0")
        said = ExplainedRecord(5, "a", [1], "s-0", explanation)
        assert ask(A, said, bare, ended).why() == answer
        for rule, score in (("", 1), ("best fit", None)):
            later = ExplainedRecord(5, "a", [1], "s-0", Explanation(rule=rule, score=score))
            why = ask(A, said, later, bare, ended).why()
            assert why.sentence == "a/1 ran on m4: s-0 placed it there."

    def test_a_probed_task_tells_whose_probe_fetched_it(self, ask: Ask) -> None:
        probed = ProbedRecord(5, "a", [0, 1], [3, 4], "s-0")
        there = ask(A, probed, StartedRecord(6, [0, 1], [3, 4])).why()
        assert there == WhyAnswer(
            task="a/1",
            state="running",
            sentence="a/1 runs on m4: s-0 sent 2 probes for tasks of its job, and the one there was "
            "ready first.",
            placed_on="m4",
        )
        taken = ask(A, probed, StartedRecord(6, [0, 1], [3, 7]), EndedRecord(7, [1])).why()
        assert taken.sentence == (
            "a/1 ran on m7: s-0 sent 2 probes for tasks of its job, and m7 took one from another "
            "machine's queue."
        )
        # What brought it is the last that was sent before it started.
        again = ask(
            A,
            EnqueuedRecord(3, "a", [1], [2], "s-0"),
            LostRecord(4, "a", [1], [2], "queue_full"),
            probed,
            StartedRecord(6, [1], [4]),
        ).why()
        assert again.sentence == there.sentence
        unsent = ask(A, StartedRecord(6, [1], [4])).why()
        assert unsent.sentence == "a/1 runs on m4: it was in the queue there."


class TestNames:
    def test_a_job_alone_means_its_first_task(self, ask: Ask) -> None:
        assert ask(A, B, task="b").task == "b/0"

    @pytest.mark.parametrize("task", ["a/4", "a/", "a/x", "a/-1", "a/1.0", "a/٣", "a/1/1"])
    def test_a_task_that_is_none_says_which_there_are(self, ask: Ask, task: str) -> None:
        with pytest.raises(CommandError) as caught:
            ask(A, B, task=task)
        assert f"unknown task '{task}'" in str(caught.value)
        assert "expected a/0 to a/3" in str(caught.value)

    @pytest.mark.parametrize(
        ("count", "expected"),
        [(20, "j0, j1"), (21, "one of the 21 jobs that were submitted")],
    )
    def test_an_unknown_job_lists_the_others_unless_they_are_many(
        self, ask: Ask, count: int, expected: str
    ) -> None:
        jobs = [SubmittedRecord(0, n, job(f"j{n}").job, "s-0") for n in range(count)]
        with pytest.raises(UnknownName, match="j1x") as caught:
            ask(*jobs, task="j1x/0")
        assert expected in str(caught.value)

    def test_the_task_count_is_the_largest_its_own_job_ever_had(self, ask: Ask) -> None:
        scaled = [
            ScaledRecord(1, 0, job("a", 6).job),
            ScaledRecord(2, 0, job("a", 1).job),
            ScaledRecord(3, 1, job("b", 9).job),
        ]
        assert ask(A, B, *scaled, task="a/5").why().state == "cancelled"
        with pytest.raises(CommandError, match="expected a/0 to a/5"):
            ask(A, B, *scaled, task="a/6")

    def test_a_line_that_names_no_machine_for_the_task_is_a_contradiction(self, ask: Ask) -> None:
        told = ask(A, PlacedRecord(5, "a", [0, 1], [0], "s-0"))
        for answer in (told.why, told.story):
            with pytest.raises(RunDirectoryError, match="1 machines; expected 2"):
                answer()
