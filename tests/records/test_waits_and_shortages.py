"""Why a task waits, in numbers: the parts of a wait, and what machines lack."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.host.records import (
    AttemptRecord,
    EnqueuedRecord,
    ExplainedRecord,
    LostRecord,
    PlacedRecord,
    ProbedRecord,
    ReleasedRecord,
    ResubmittedRecord,
    StartedRecord,
    SubmittedRecord,
)
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.records.shortages import Shortage, shortage
from argosy.records.waiting import _parts, loss_text, wait_text
from argosy.testing.builders import job

DECIDED = "while its job was decided on"
TURN = "for its turn"
QUEUE = "in the queue of m1"


def history(*facts: Any, start: int = -1, index: int = 1) -> Any:
    return SimpleNamespace(
        facts=facts,
        submitted=facts[0].at if facts else 0,
        index=index,
        machine=lambda indices, machines: f"m{machines[indices.index(index)]}",
        last_start=lambda default: start,
    )


SUBMITTED = SubmittedRecord(100, 0, job("a", 3).job, "s")


@pytest.mark.parametrize(
    ("facts", "until", "parts"),
    [
        ([], 150, {TURN: 50}),
        ([AttemptRecord(120, "a", "s", 0)], 150, {TURN: 50}),
        ([AttemptRecord(120, "a", "s", 10)], 150, {TURN: 40, DECIDED: 10}),
        ([AttemptRecord(120, "a", "s", 90)], 150, {TURN: 20, DECIDED: 30}),
        ([AttemptRecord(151, "a", "s", 90)], 150, {TURN: 50}),
        (
            [AttemptRecord(110, "a", "s", 10), AttemptRecord(130, "a", "s", 5)],
            150,
            {TURN: 35, DECIDED: 15},
        ),
        # An attempt that began while another one was going on takes no more of the wait.
        (
            [AttemptRecord(110, "a", "s", 20), AttemptRecord(115, "a", "t", 5)],
            150,
            {TURN: 30, DECIDED: 20},
        ),
        ([ProbedRecord(120, "a", [1], [4], "s")], 150,
         {TURN: 20, "until a machine with a probe of its job was ready": 30}),
        ([EnqueuedRecord(120, "a", [0, 1], [0, 1], "s")], 150, {TURN: 20, QUEUE: 30}),
        # Tasks of one decision leave one after another.
        (
            [EnqueuedRecord(120, "a", [0, 1], [0, 1], "s", first=3, every=4)],
            150,
            {TURN: 27, QUEUE: 23},
        ),
        (
            [EnqueuedRecord(120, "a", [0, 1], [0, 1], "s"), StartedRecord(140, [1], [1])],
            150,
            {TURN: 20, QUEUE: 30},
        ),
        # What was before a loss does not count.
        ([LostRecord(130, "a", [1], [1], "machine_gone")], 150, {TURN: 20}),
        ([LostRecord(160, "a", [1], [1], "machine_gone")], 150, {TURN: 50}),
        (
            [AttemptRecord(110, "a", "s", 20), LostRecord(140, "a", [1], [1], "machine_gone")],
            150,
            {TURN: 10},
        ),
        # Nor what was before its scheduler gave it up, or another one took over.
        (
            [ProbedRecord(110, "a", [1], [4], "s"), ReleasedRecord(140, "a", [1], "s")],
            150,
            {"until a machine with a probe of its job was ready": 0, TURN: 10},
        ),
        (
            [AttemptRecord(110, "a", "s", 20), ResubmittedRecord(140, "a", [1], "t")],
            150,
            {TURN: 10},
        ),
        # What another scheduler says while the job is decided on begins with the end of that.
        (
            [AttemptRecord(110, "a", "s", 20), ProbedRecord(120, "a", [1], [4], "t")],
            150,
            {TURN: 10, DECIDED: 20, "until a machine with a probe of its job was ready": 20},
        ),
        # It leaves for the queue only after it has started elsewhere.
        ([EnqueuedRecord(140, "a", [0, 1], [0, 1], "s", first=20)], 150, {TURN: 50}),
        ([LostRecord(150, "a", [1], [1], "machine_gone")], 150, {TURN: 0}),
        ([PlacedRecord(120, "a", [1], [1], "s")], 150, {TURN: 50}),
    ],
)  # fmt: skip
def test_the_parts_of_a_wait(facts: list[Any], until: int, parts: dict[str, int]) -> None:
    assert _parts(history(SUBMITTED, *facts), until) == parts


def test_a_choice_is_no_reason_to_wait() -> None:
    chosen = ExplainedRecord(120, "a", [1], "s", Explanation(rule="best fit", score=1))
    assert _parts(history(SUBMITTED, chosen), 150) == {TURN: 50}


@pytest.mark.parametrize(
    ("start", "takes", "text"),
    [
        (-1, 0, ""),
        (1_099, 0, ""),
        (1_100, 0, "It waited 1 ms for its turn."),
        (10_100, 5_000, f"It waited 10 ms: 5 ms {TURN}; 5 ms {DECIDED}."),
        (10_100, 8_000, f"It waited 10 ms: 8 ms {DECIDED}; 2 ms {TURN}."),
        # A fiftieth is told, less is not.
        (10_100, 200, f"It waited 10 ms: 9.8 ms {TURN}; 200 µs {DECIDED}."),
        (10_100, 199, f"It waited 9.8 ms {TURN}."),
    ],
)
def test_waits_that_are_worth_telling(start: int, takes: int, text: str) -> None:
    facts = (SUBMITTED, AttemptRecord(100, "a", "s", takes))
    assert wait_text(history(*facts, start=start)) == text


def test_losses_are_told() -> None:
    assert loss_text(history(SUBMITTED)) == ""
    lost = [LostRecord(at, "a", [0, 1], [4, 5], "machine_gone") for at in (2_000, 3_000)]
    assert (
        loss_text(history(SUBMITTED, *lost))
        == "It lost m5 (machine gone) at 2 ms and m5 (machine gone) at 3 ms, and started anew."
    )


def cell_of(
    free: list[tuple[int, int]],
    jobs: list[tuple[Job, int]],
    gpus: tuple[str, ...] = (),
    **more: Any,
) -> Any:
    """Machines of 8 cores and 8 bytes, of which so much is free; `gpus` names those that have some."""
    machines = [
        Machine(f"m{at}", Resources(8_000, 8), {"gpu": "yes"} if f"m{at}" in gpus else {})
        for at in range(len(free))
    ]

    def slots(which: Any, asked: Any) -> int:
        return int(sum(min(np.array(free[at])[asked > 0] // asked[asked > 0]) for at in which))

    return SimpleNamespace(
        dimensions=("cpu", "memory"),
        machines=machines,
        capacity=np.array([(8_000, 8)] * len(free)),
        free=np.array(free),
        takes_claims=np.array([True] * len(free)),
        jobs=[each for each, _ in jobs],
        pending=np.array([pending for _, pending in jobs]),
        devices=None,
        holders=lambda where, dimension: more.get("holders", []),
        slots=slots,
    )


def asking(name: str, tasks: int = 1, *, cpu: int = 4_000, memory: int = 1, **told: Any) -> Job:
    return job(name, tasks, cpu=cpu, memory=memory, **told).job


def found(wanted: Job, cell: Any, *, is_gang: bool = False) -> Shortage | None:
    return shortage(wanted, wanted.groups[0], cell, "s", is_gang=is_gang)


class TestShortages:
    def test_nothing_is_said_if_no_machine_could_take_it(self) -> None:
        big = asking("big", cpu=8_001)
        assert found(big, cell_of([(0, 0)], [(big, 1)])) is None
        whole = asking("whole", cpu=8_000, memory=8)
        assert found(whole, cell_of([(0, 0)], [(whole, 1)])) is not None

    @pytest.mark.parametrize(
        ("free", "cause"),
        [
            ([(4_000, 1), (0, 0)], "m0 has room for it, but s did not use it"),
            ([(4_000, 1), (5_000, 2)], "m0 and m1 have room for it, but s did not use it"),
        ],
    )
    def test_room_that_was_not_used(self, free: list[tuple[int, int]], cause: str) -> None:
        wanted = asking("a")
        told = found(wanted, cell_of(free, [(wanted, 1)]))
        assert told is not None
        assert (told.cause, told.remedy) == (cause, "")

    def test_the_only_machine(self) -> None:
        wanted = asking("a")
        assert found(wanted, cell_of([(3_999, 8)], [(wanted, 1)], holders=["b/0"])) == Shortage(
            "m0, the only machine that could take it, does not have 4 cores free",
            ("The cores there are held by b/0.",),
            "another machine like m0, or 0.001 cores less",
            "m0 lacks 0.001 cores",
        )

    def test_the_nearest_lacks_the_smallest_share(self) -> None:
        wanted = asking("a", memory=4)
        cell = cell_of([(1_000, 8), (4_000, 3), (0, 0)], [(wanted, 1)], holders=["b/0", "c/1"])
        told = found(wanted, cell)
        assert told is not None
        assert told.cause == (
            "none of the 3 machines that could take it (m0 to m2) has 4 cores and 4 B free"
        )
        assert told.nearest_miss == "m1 lacks 1 B"
        assert told.details == ("The memory there is held by b/0 and c/1; m1 lacks 1 B.",)
        assert told.remedy == "another machine like m1, or 1 B less"

    @pytest.mark.parametrize(
        ("others", "remedy"),
        [
            ([], "another machine like m0, or 1 core less"),
            ([(asking("b"), 0)], "another machine like m0, or 1 core less"),
            # Two fit on a machine.
            ([(asking("b"), 1)], "2 more machines like m0, enough for all 2 tasks that wait"),
            ([(asking("b", 4), 4)], "3 more machines like m0, enough for all 5 tasks that wait"),
            ([(asking("b", 4), 3)], "3 more machines like m0, enough for all 4 tasks that wait"),
            ([(asking("b", 2), 3)], "2 more machines like m0, enough for all 3 tasks that wait"),
            # What no such machine could take does not count, nor what asks for nothing.
            ([(asking("b", cpu=9_000), 1)], "another machine like m0, or 1 core less"),
            ([(asking("b", cpu=0, memory=0), 1)], "another machine like m0, or 1 core less"),
            (
                [(asking("b", requires={"gpu": "yes"}), 1)],
                "another machine like m0, or 1 core less",
            ),
        ],
    )
    def test_what_would_be_enough_for_all_that_wait(
        self, others: list[tuple[Job, int]], remedy: str
    ) -> None:
        wanted = asking("a")
        told = found(wanted, cell_of([(3_000, 8)], [(wanted, 1), *others]))
        assert told is not None
        assert told.remedy == remedy

    @pytest.mark.parametrize(
        ("free", "waiting", "relaxed"),
        [
            ((8_000, 8), 2, ", or no requirement of gpu=yes: elsewhere there is room for 2"),
            ((7_999, 8), 2, ""),
            ((8_000, 8), 3, ""),
            ((4_000, 8), 1, ", or no requirement of gpu=yes: elsewhere there is room for 1"),
        ],
    )
    def test_a_requirement_is_dropped_if_that_makes_room_for_all(
        self, free: tuple[int, int], waiting: int, relaxed: str
    ) -> None:
        wanted = asking("a", 3, requires={"gpu": "yes"})
        cell = cell_of([(0, 0), free], [(wanted, waiting)], gpus=("m0",))
        told = found(wanted, cell)
        assert told is not None
        _, _, rest = told.remedy.partition("wait") if waiting > 1 else ("", "", told.remedy)
        assert rest.removeprefix("another machine like m0") == relaxed

    @pytest.mark.parametrize(
        ("free", "cause"),
        [
            ((0, 8), "none of the 3 that each ask for 4 cores and 1 B fits now"),
            ((8_000, 8), "only 2 of the 3 that each ask for 4 cores and 1 B fit at once"),
        ],
    )
    def test_a_gang_lacks_room_for_all_at_once(self, free: tuple[int, int], cause: str) -> None:
        wanted = asking("a", 3, gang=True)
        told = found(wanted, cell_of([free], [(wanted, 3)]), is_gang=True)
        assert told is not None
        assert told.cause == f"it is one of a gang of 3 tasks, and {cause}"

    def test_a_gang_that_fits_was_not_placed(self) -> None:
        wanted = asking("a", 2, gang=True)
        told = found(wanted, cell_of([(8_000, 8)], [(wanted, 2)]), is_gang=True)
        assert told is not None
        assert told.cause == "there was room for it, but s did not use it"

    @pytest.mark.parametrize(
        ("holders", "who"),
        [
            (["b/10", "b/9", "c/1", "a/0"], "a/0, b/9, b/10 and c/1"),
            (["b/1", "b/0", "b/2", "c/1", "c/0"], "3 tasks of b and 2 tasks of c"),
        ],
    )
    def test_few_holders_are_named_and_many_are_counted(self, holders: list[str], who: str) -> None:
        wanted = asking("a")
        told = found(wanted, cell_of([(0, 8)], [(wanted, 1)], holders=holders))
        assert told is not None
        assert told.details == (f"The cores there are held by {who}.",)
