"""Refusals in words: every reason has its sentence, and what would help."""

from __future__ import annotations

import pytest

from argosy.model.explanations import CONFLICTS, LIMITS, Refusal, Why

AGAIN = "another attempt, on a fresh view of the cell"
ELSEWHERE = "another machine"
LIMIT = "raise the scheduler's limit, or wait until some of its tasks end"
SENTENCES = {
    Why.NONE: ("no reason was recorded", ""),
    Why.NO_ROOM: ("m7 lacks 1.5 cores", AGAIN),
    Why.STALE: ("m7 changed 1500 times since the decision began", AGAIN),
    Why.MACHINE_UNKNOWN: ("m7 does not exist", ELSEWHERE),
    Why.MACHINE_GONE: ("m7 is gone", ELSEWHERE),
    Why.MACHINE_DRAINING: ("m7 is draining", ELSEWHERE),
    Why.RESOURCE_LIMIT: ("the scheduler's limit would be exceeded by 1.5 cores", LIMIT),
    Why.JOB_LIMIT: ("the scheduler already has as many jobs as it may admit", LIMIT),
    Why.PRECEDENCE_LIMIT: (
        "its precedence is 1500 above the highest the scheduler may use",
        "raise the scheduler's limit, or submit the job with lower precedence",
    ),
    Why.DUPLICATE: ("the task is already placed", ""),
    Why.TOGETHER: (
        "another task of the same all-or-nothing placement has no machine",
        AGAIN,
    ),
    Why.NOT_CLAIMED: ("the task is not placed", ""),
    Why.NOT_YOURS: ("the task belongs to another scheduler", ""),
    Why.FILTERED: (
        "m7 does not meet the task's requirements",
        "a machine that meets the task's requirements",
    ),
    Why.PREEMPTED: ("preempted on m7 by a task of higher precedence", ""),
    Why.ENDED: ("the task had ended when the move arrived", ""),
    Why.ATTEMPTS: ("given up after 1500 attempts", ""),
    Why.SCHEDULER_LOST: ("the scheduler that held it stopped", ""),
    Why.QUEUE_FULL: ("m7 had a full queue", ""),
    Why.NOT_ASSUMED: ("the task's claim is already confirmed", ""),
    Why.MOVED: ("it runs on another machine now", ""),
    Why.RELEASED: ("its scheduler took it off m7", ""),
    Why.CANCELLED: ("a user cancelled it", ""),
    Why.FAILED: ("it failed on m7", ""),
    Why.NOT_OFFERED: ("its framework is offered nothing", ""),
    Why.BEHIND: ("another task goes first, and has no machine yet", ""),
}


@pytest.mark.parametrize("why", Why)
def test_every_reason_has_its_sentence(why: Why) -> None:
    refusal = Refusal(why, task=4, machine=7, dimension="cpu", lacking=1_500)
    assert (refusal.sentence("m7"), refusal.remedy()) == SENTENCES[why]
    assert refusal.sentence() == SENTENCES[why][0].replace("m7", "machine 7")


def test_a_machine_without_a_name_or_number_is_the_machine() -> None:
    assert Refusal(Why.MACHINE_GONE).sentence() == "the machine is gone"
    assert Refusal(Why.MACHINE_GONE, machine=0).sentence() == "machine 0 is gone"


def test_one_is_singular() -> None:
    assert Refusal(Why.STALE, lacking=1).sentence("m") == "m changed once since the decision began"
    assert Refusal(Why.ATTEMPTS, lacking=1).sentence() == "given up after 1 attempt"


def test_conflicts_come_from_others_and_limits_from_the_scheduler_itself() -> None:
    assert {why.name for why in CONFLICTS} == {
        "NO_ROOM",
        "STALE",
        "MACHINE_GONE",
        "MACHINE_DRAINING",
    }
    assert {why.name for why in LIMITS} == {"RESOURCE_LIMIT", "JOB_LIMIT", "PRECEDENCE_LIMIT"}
