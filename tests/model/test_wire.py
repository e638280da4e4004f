"""Events and effects leave the process and come back equal."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import (
    Abandon,
    AnswerProbe,
    AskQueues,
    Commit,
    Deliberate,
    EarlierTime,
    Effect,
    Enqueue,
    Explain,
    Pace,
    Probe,
    Question,
    Sample,
    Send,
    Think,
    WakeMe,
)
from argosy.model.errors import ModelError
from argosy.model.events import (
    Committed,
    Decision,
    DecisionDue,
    Deliberated,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    MessageReceived,
    PhaseFinished,
    ProbeReady,
    QueuesReported,
    SampleReturned,
    Started,
    TaskFailed,
    TaskFinished,
    TasksLost,
    TimerFired,
    UsageObserved,
)
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.messages import (
    AskWaits,
    Digest,
    Digests,
    EndsReported,
    Message,
    Note,
    Repair,
    WaitColumns,
    Waits,
    WaitUpdate,
    WaitUpdates,
)
from argosy.model.prices import Price
from argosy.model.resources import Resources
from argosy.model.transactions import (
    AddMachine,
    Claims,
    DrainMachine,
    Outcome,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
    Transaction,
    Wants,
)
from argosy.model.wire import (
    Format,
    decode_effect,
    decode_event,
    decode_wait_report,
    encode,
    from_plain,
    same,
    to_plain,
)

FORMATS = get_args(Format)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def places(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


SIZE = Resources(500, 2**31, {"gpu": 1})
JOB = Job(
    "web",
    (
        TaskGroup(2, SIZE, 6, ("front", "a:b"), {"disk": "ssd"}, prefers={"rack": "r1"}),
        TaskGroup(1, Resources(1)),
    ),
    kind="service",
    precedence=-4,
    gang=True,
    owner="Zoë",
    constraints=(
        parse_constraint("front -> {web, 0, 0} in rack hard"),
        parse_constraint("front -> {web, 1, inf} and not {db, 1, 2} in machine weight 2.5"),
        parse_constraint("front -> spread {2, 3} over rack"),
    ),
)
PHASED = Job("map", (TaskGroup(2, SIZE, activities=(8, 2)),), program="count")
CLAIMS = Claims(
    ints(1 << 32, 2**62), places(0, 9), places(1, 1), np.array([7, 2**32 - 1], np.uint32)
)
CHANGES = (
    AddMachine(Machine("m", SIZE, {"disk": "ssd"}, {"rack": ("r0", "r1")})),
    DrainMachine(1),
    RemoveMachine(2),
    ReviveMachine(2),
    ResizeMachine(3, SIZE),
)
EXPLANATION = Explanation(
    9,
    2,
    {"cpu": 7},
    Refusal(Why.NO_ROOM, 5, 6, "cpu", 100),
    Refusal(Why.STALE),
    "first fit",
    3,
    4,
    5,
    ("x -> {y, 0, 0} in rack",),
    "more room",
    Price(10, 20, 3, 4, 5, 6, 7),
)
OUTCOME = Outcome(
    np.array([True, False]),
    np.array([0, 1], np.uint8),
    np.array([-1, 0], np.int8),
    ints(0, 500),
    ints(77),
    places(3),
    (Refusal(Why.NOT_YOURS, 8),),
    ("cpu", "memory"),
    (4,),
    all_accepted=False,
)
COLUMNS = WaitColumns(
    places(0, 5),
    ints(500, 1, 250, 2),
    ints(3, 4),
    ints(2, 0),
    np.array([0, 1], np.uint8),
    ints(2, 0),
    np.array([0, 1], np.uint32),
    ints(2**52, 0),
    places(7, -1),
    np.array([1, 2**16 - 1], np.uint16),
    np.array([2, 255], np.uint8),
    ints(),
)
UPDATE = WaitUpdate(
    ints(1), np.array([2], np.uint8), places(3), 10, 0, (500, 1), 4, 99, is_per_task=True
)
MESSAGES: list[Message] = [
    WaitUpdates((UPDATE, UPDATE)),
    UPDATE,
    AskWaits(),
    Waits(COLUMNS),
    Digest(2**64 - 1),
    Digests(ints(1, 2), np.array([0, 2**64 - 1], np.uint64)),
    Repair(ints(), COLUMNS, is_answer=True),
    Note("hello", {"list": [1, 2.5, None, True], "text": "ä"}),
]
EVENTS: list[Event] = [
    Started(again=True),
    JobSubmitted(JOB, 4, ints(1, 2, 3)),
    JobSubmitted(PHASED, 5, ints()),
    TaskFinished(ints(1), places(2), ints(3), places(4)),
    PhaseFinished(1, 2, 3),
    TasksLost(JOB, 4, ints(1), places(-1), Why.PREEMPTED),
    MachineJoined(1),
    MachineLost(2),
    MachineChanged(3),
    UsageObserved("bandwidth", np.array([3, 5], np.int32), np.array([0, 2**40])),
    Committed(-7, OUTCOME),
    SampleReturned(1, places(4, 5), np.array([[1, 2], [3, 4]]), np.array([0, 1], np.uint32)),
    SampleReturned(1, places(), np.zeros((0, 3), np.int64), np.zeros(0, np.uint32)),
    ProbeReady(1, 2, 3),
    QueuesReported(1, ints(0, 2), ints(2**60, 0), ints(2**62, 1)),
    *(MessageReceived("s-1", message) for message in MESSAGES),
    TimerFired("interval"),
    DecisionDue(9),
    Deliberated(-3, Decision()),
    TaskFailed(JOB, 4, ints(1), places(2), ints(0), -9, "killed", again=True),
    JobCancelled(JOB, 4, ints(1, 2)),
    JobChanged(JOB, 4, ints(3), ints()),
]
EFFECTS: list[Effect] = [
    Think(5, 1, 2, "lra", EarlierTime(7, 3)),
    Commit(3, Transaction("s", CLAIMS), EXPLANATION),
    Commit(
        4,
        Transaction(
            "s:batch",
            msgspec.structs.replace(CLAIMS, gangs=places(-1, 0)),
            ints(5),
            CHANGES,
            atomic=True,
            coarse=True,
            preempt=True,
            move=True,
            wants=Wants(0.5, (1, 2), 10),
        ),
    ),
    Enqueue(ints(1), places(2), EXPLANATION, Pace(1, 2), 3),
    Probe(1, places(2, 3), SIZE, 4, ints(5), sticky=True, cancel=True),
    Probe(1, places(), Resources()),
    AnswerProbe(1, 2**40),
    AnswerProbe(2),
    AskQueues(1, latest=True, which="long"),
    AskQueues(2, until_room=places(0, 3)),
    Sample(SIZE, 3, 4, {"disk": "ssd"}, "north"),
    *(Send(("s-1", "s-2"), message) for message in MESSAGES),
    WakeMe(2**53, "retry"),
    Explain(ints(1), EXPLANATION),
    Abandon(ints(1), Explanation()),
    Deliberate(-3, Question(), 4, "lra", 5, 6),
]


class Where(Question, frozen=True):
    """A question that a third-party engine might ask."""

    kinds: dict[int, str]
    tasks: NDArray[np.int64]


class There(Decision, frozen=True):
    machines: NDArray[np.int32]
    gap: float | None


def test_the_examples_hold_every_event_effect_and_message() -> None:
    for examples, union in ((EVENTS, Event), (EFFECTS, Effect), (MESSAGES, Message)):
        assert {type(example) for example in examples} == set(get_args(union))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: Event, format: Format) -> None:
    assert same(decode_event(encode(event, format), format), event)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: type(effect).__name__)
def test_an_effect_comes_back_as_it_was(effect: Effect, format: Format) -> None:
    assert same(decode_effect(encode(effect, format), format), effect)


@pytest.mark.parametrize("format", FORMATS)
def test_questions_and_decisions_come_back_by_the_types_of_their_engine(format: Format) -> None:
    asks = Deliberate(-3, Where({4: "a"}, ints(1, 2)), 4, "lra", 5, 6)
    assert same(decode_effect(encode(asks, format), format, Where), asks)
    told = Deliberated(-3, There(places(7), None))
    assert same(decode_event(encode(told, format), format, There), told)
    plain = msgspec.json.decode(msgspec.json.encode(to_plain(asks.question)))
    assert same(from_plain(plain, Where), asks.question)
    with pytest.raises(ModelError, match="not the event expected"):
        decode_event(encode(Deliberated(1, Decision()), format), format, There)
    with pytest.raises(ModelError, match="not the There expected"):
        from_plain({}, There)


@pytest.mark.parametrize("format", FORMATS)
def test_what_feeds_wait_views_comes_back_as_it_was(format: Format) -> None:
    for report in (UPDATE, EndsReported(ints(1), places(2), ints(3), places(4), ints(5))):
        assert same(decode_wait_report(encode(report, format), format), report)


@given(
    numbers=st.lists(st.integers(-(2**63), 2**63 - 1)),
    flags=st.lists(st.integers(0, 255)),
    width=st.integers(0, 3),
    format=st.sampled_from(FORMATS),
)
def test_arrays_of_any_length_and_shape_come_back(
    numbers: list[int], flags: list[int], width: int, format: Format
) -> None:
    rows = len(numbers) // width if width else len(numbers)
    free = np.array(numbers[: rows * width], np.int64).reshape(rows, width)
    event = SampleReturned(1, places(), free, np.array(flags, np.uint32))
    assert same(decode_event(encode(event, format), format), event)
    update = msgspec.structs.replace(UPDATE, versions=np.array(flags, np.uint8))
    effect = Send((), update)
    assert same(decode_effect(encode(effect, format), format), effect)


def test_parts_of_arrays_and_columns_of_tables_come_back() -> None:
    table = np.arange(12).reshape(3, 4)
    for view in (table[:, 1], table[0, ::2], table[1, ::-1]):
        event = TaskFinished(view, places(), ints(), places())
        for format in FORMATS:
            assert same(decode_event(encode(event, format), format), event)


def test_json_says_what_a_value_is_and_can_be_read_by_anyone() -> None:
    event = QueuesReported(3, ints(0, 2), ints(5, 6), ints(1, 0))
    plain = msgspec.json.decode(encode(event, "json"))
    assert plain == {
        "type": "QueuesReported",
        "token": 3,
        "lengths": [0, 2],
        "waits": [5, 6],
        "room": [1, 0],
    }


def test_what_was_read_may_be_written_to() -> None:
    for format in FORMATS:
        event = decode_event(encode(QueuesReported(3, ints(1), ints(5), ints(9)), format), format)
        assert isinstance(event, QueuesReported)
        event.waits[0] += 1


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b'{"type": "Nothing"}',
        b'{"type": "DecisionDue"}',
        b'{"type": "QueuesReported", "token": 1, "lengths": ["1"], "waits": []}',
        b'{"type": "QueuesReported", "token": 1, "lengths": [1.5], "waits": []}',
        b'{"type": "QueuesReported", "token": 1, "lengths": 7, "waits": []}',
        b'{"type": "QueuesReported", "token": 1, "lengths": [9223372036854775808], "waits": []}',
        b'{"type": "QueuesReported", "token": 1, "lengths": {"shape": [2], "values": [1]}, '
        b'"waits": []}',
    ],
)
def test_anything_but_an_event_is_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match="not the event expected"):
        decode_event(data, "json")


@pytest.mark.parametrize("format", FORMATS)
def test_anything_but_an_effect_or_a_wait_report_is_refused(format: Format) -> None:
    event = encode(EVENTS[0], format)
    for data in (b"{", event):
        with pytest.raises(ModelError, match="not the effect expected"):
            decode_effect(data, format)
        with pytest.raises(ModelError, match="not the wait report expected"):
            decode_wait_report(data, format)


def test_an_array_of_another_kind_is_refused() -> None:
    wrong: Any = places(1)
    with pytest.raises(ModelError, match="another kind"):
        decode_event(encode(QueuesReported(1, wrong, ints(), ints()), "msgpack"), "msgpack")


def test_an_object_that_is_not_a_plain_value_cannot_be_sent() -> None:
    with pytest.raises((NotImplementedError, TypeError)):
        encode(Send((), Note("engine", object())), "json")


def test_sameness_sees_every_part() -> None:
    one = Enqueue(ints(1, 2), places(1, 2), EXPLANATION)
    assert same(one, Enqueue(ints(1, 2), places(1, 2), EXPLANATION))
    others: list[Any] = [
        Enqueue(ints(1, 3), places(1, 2), EXPLANATION),
        Enqueue(ints(1, 2), ints(1, 2), EXPLANATION),
        Enqueue(ints(1, 2), places(1, 2)),
        Enqueue(ints(1, 2), places(1, 2), msgspec.structs.replace(EXPLANATION, ruled_out={})),
        Enqueue(ints(1, 2), places(1, 2), EXPLANATION, estimate=1),
        Explain(ints(1, 2), EXPLANATION),
    ]
    assert not any(same(one, other) for other in others)
    assert not same(np.zeros((2, 1)), np.zeros((1, 2)))
    assert not same(Digest(1), Digest(np.int64(1)))  # type: ignore[arg-type]
