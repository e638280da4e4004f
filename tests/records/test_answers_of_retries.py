"""`why` of tasks with a past: tries that failed, probes, and what was said before and after."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.host.records import (
    EnqueuedRecord,
    ExplainedRecord,
    FailedRecord,
    PlacedRecord,
    ProbedRecord,
    RetriedRecord,
    StartedRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.explanations import Explanation
from argosy.model.scenario import FleetEntry
from argosy.records.answers import TaskAnswers
from argosy.records.journal_run import open_recording
from argosy.testing.builders import job, scenario

Ask = Callable[..., TaskAnswers]
A = SubmittedRecord(0, 0, job("a", 4).job, "s-0")


def failed(at: int, status: int, reason: str = "", *, for_good: bool = False) -> list[Any]:
    """A try that fails, and what becomes of its task."""
    return [
        PlacedRecord(at, "a", [1], [6], "s-0"),
        FailedRecord(at + 1, 1, 1, status, reason),
        RetriedRecord(at + 1, "a", [1], status, reason, for_good=for_good),
    ]


@pytest.mark.parametrize(
    ("tries", "told"),
    [
        ([(3, "")], "a/1 failed: exit status 3. "),
        ([(3, "out of memory")], "a/1 failed: out of memory. "),
        ([(3, "first"), (4, "last")], "a/1 failed 2 times, the last time: last. "),
        (
            [(3, "first"), (5, "then"), (4, "")],
            "a/1 failed 3 times, the last time: exit status 4. ",
        ),
    ],
)
def test_a_task_that_failed_for_good_says_how_often_and_how_at_last(
    ask: Ask, tries: list[tuple[int, str]], told: str
) -> None:
    facts = [
        fact
        for at, (status, reason) in enumerate(tries, 1)
        for fact in failed(10 * at, status, reason, for_good=at == len(tries))
    ]
    answer = ask(A, *facts).why()
    assert answer.state == "failed"
    assert answer.sentence == f"{told}It ran on m6: s-0 placed it there."


def test_a_task_that_failed_and_runs_again_does_not_speak_of_it(ask: Ask) -> None:
    again = PlacedRecord(90, "a", [1], [2], "s-0")
    answer = ask(A, *failed(10, 3, "bad luck"), again).why()
    assert (answer.state, answer.sentence) == ("running", "a/1 runs on m2: s-0 placed it there.")


def test_a_machine_that_was_probed_twice_is_named_once(ask: Ask) -> None:
    answer = ask(A, ProbedRecord(1, "a", [0, 1], [4, 4, 2], "s-0")).why()
    assert answer.details == ("s-0 sent 3 probes, to m4 and m2.",)


def test_a_task_that_started_was_brought_by_what_was_sent_last_before(ask: Ask) -> None:
    lately = Explanation(rule="queue with room")
    answer = ask(
        A,
        ProbedRecord(1, "a", [1], [4, 5], "s-1"),
        EnqueuedRecord(2, "a", [1], [6], "s-0", lately),
        StartedRecord(3, [1], [6]),
    ).why()
    assert answer.rule == "queue with room"
    first = EnqueuedRecord(1, "a", [1], [6], "s-0", lately)
    probed = ask(A, first, ProbedRecord(2, "a", [1], [4, 5], "s-1"), StartedRecord(3, [1], [5]))
    assert probed.why().sentence == (
        "a/1 runs on m5: s-1 sent 2 probes for tasks of its job, and the one there was ready first."
    )


def test_what_was_said_at_the_same_time_explains_a_placement_and_what_came_later_does_not(
    ask: Ask,
) -> None:
    def chosen(at: int, rule: str) -> ExplainedRecord:
        return ExplainedRecord(at, "a", [1], "s-0", Explanation(rule=rule, score=1))

    def rule(*facts: Any) -> str:
        return ask(A, *facts).why().rule

    placed = PlacedRecord(5, "a", [1], [2], "s-0")
    assert rule(chosen(5, "best fit"), placed) == "best fit"
    assert rule(chosen(3, "worst fit"), chosen(4, "best fit"), placed) == "best fit"
    queued, started = EnqueuedRecord(5, "a", [1], [2], "s-0"), StartedRecord(7, [1], [2])
    assert rule(chosen(4, "best fit"), queued, chosen(6, "worst fit"), started) == "best fit"
    # What was said last before it was no choice, so the choice before that is no explanation.
    waits = ExplainedRecord(4, "a", [1], "s-0", Explanation(remedy="wait"))
    assert rule(chosen(3, "best fit"), waits, placed) == ""


@pytest.mark.parametrize(
    ("scheduler", "engine"),
    [
        ("a-1", "sparrow"),
        ("a-b", "omega"),
        ("m:web", "mesos"),
        ("a", None),
        ("a-2", None),
        ("out", None),
    ],
)
def test_an_engine_is_known_by_the_names_of_its_schedulers(
    tmp_path: Path, scheduler: str, engine: str | None
) -> None:
    fleet = (
        FleetEntry(name="a", engine="sparrow", replicas=2),
        FleetEntry(name="a-b", engine="omega"),
        FleetEntry(name="m", engine="mesos"),
        FleetEntry(name="out", engine="package.module:Outside"),
    )
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(scenario("omega", [], fleet=fleet)))
    journal.write(A)
    journal.flush()
    (tmp_path / "journal.jsonl").write_bytes(stream.getvalue())
    answers = TaskAnswers(open_recording(tmp_path / "journal.jsonl"), "a/1", whole=False)
    known = None if engine is None else ENGINES[engine].capabilities
    assert answers._capabilities(scheduler) is known
