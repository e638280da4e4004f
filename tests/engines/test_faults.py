"""An engine's author is told which line failed, and which field of an effect is malformed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scripted_engine import Script, Scripted, scripted, world_of

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.faults import find_misfit, locate, malformed
from argosy.host import TaskState
from argosy.model.effects import (
    Abandon,
    AnswerProbe,
    AskQueues,
    Commit,
    EarlierTime,
    Effect,
    Enqueue,
    Explain,
    Pace,
    Probe,
    Sample,
    Send,
    Think,
    WakeMe,
)
from argosy.model.errors import EngineFault, ModelError
from argosy.model.events import Event, JobSubmitted, MessageReceived, ProbeReady, TimerFired
from argosy.model.explanations import Explanation
from argosy.model.messages import Note
from argosy.model.resources import Resources
from argosy.model.transactions import Claims, Transaction
from argosy.testing.builders import SECOND, job, scenario
from argosy.worlds.sim import SimulatedWorld

Answer = Callable[[JobSubmitted, View], Any]


def fault_of(answer: Answer) -> str:
    """The fault of an engine that answers every job so."""

    class Answering:
        name = "answering"
        summary = "Answers every job in one way."
        settings_type = Settings
        capabilities = Capabilities(transactions=True)

        def __init__(self, settings: Settings, context: Context) -> None:
            pass

        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            if not isinstance(event, JobSubmitted):
                return ()
            effects: Sequence[Effect] = answer(event, view)
            return effects

    world = SimulatedWorld(
        scenario("answering", [job("a", 2)], replicas=1), {"answering": Answering}
    )
    with pytest.raises(EngineFault) as caught:
        world.run()
    return str(caught.value)


def claims(event: JobSubmitted, **columns: Any) -> list[Effect]:
    count = len(event.tasks)
    whole: dict[str, Any] = {
        "tasks": event.tasks,
        "machines": np.zeros(count, np.int32),
        "shapes": np.zeros(count, np.int32),
        "versions": np.zeros(count, np.uint32),
    }
    return [Commit(1, Transaction("s", Claims(**(whole | columns))))]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            lambda event, view: claims(event, machines=np.zeros(2, np.int64)),
            "s (answering) returned a malformed Commit: transaction.claims.machines is an array of "
            "int64; expected an array of int32",
        ),
        (
            lambda event, view: claims(event, tasks=event.tasks.tolist()),
            "transaction.claims.tasks is a list; expected an array of int64",
        ),
        (
            lambda event, view: claims(event, machines=np.zeros(3, np.int32)),
            "transaction.claims: 2 tasks, 3 machines, 2 shapes, 2 versions; expected one row a task",
        ),
        (
            lambda event, view: claims(event, versions=np.zeros((2, 1), np.uint32)),
            "transaction.claims.versions has 2 dimensions; expected one",
        ),
        (
            lambda event, view: [Enqueue(event.tasks.tolist(), np.zeros(2, np.int32))],
            "malformed Enqueue: tasks is a list; expected an array of int64",
        ),
        (
            lambda event, view: [WakeMe("soon", "name")],
            "malformed WakeMe: at is 'soon'; expected int",
        ),
        (
            lambda event, view: [Commit(1, None)],
            "malformed Commit: transaction is None; expected Transaction",
        ),
        (lambda event, view: Think(1, 1), "returned Think; expected a list or tuple of effects"),
        (lambda event, view: [42], "returned int among its effects; expected one of the effects"),
    ],
)
def test_a_malformed_answer_is_described_by_its_field(answer: Answer, says: str) -> None:
    assert says in fault_of(answer)


ROOM = Resources(1, 1)
WHY = Explanation(remedy="more room")
SOMEWHERE = np.zeros(1, np.int32)
#: Of no job.
UNKNOWN = np.array([2**40], np.int64)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda event, view: [Explain(UNKNOWN, WHY)], "explains task unknown/0, which is not its"),
        (lambda event, view: [Abandon(UNKNOWN, WHY)], "abandons task unknown/0, which it may not"),
        (
            lambda event, view: [Abandon(event.tasks, WHY), Abandon(event.tasks, WHY)],
            "abandons task a/0, which it may not",
        ),
        (lambda event, view: [Probe(7, SOMEWHERE, ROOM)], "probes for job 7, which is not its"),
        (lambda event, view: [Think(1, 1, job=7)], "decides on job 7, which is not its"),
        (
            lambda event, view: [Probe(0, SOMEWHERE, ROOM, estimate=-1)],
            "malformed Probe: estimate is -1; expected zero or more",
        ),
        (
            lambda event, view: [Enqueue(event.tasks, np.zeros(2, np.int32), estimate=-7)],
            "malformed Enqueue: estimate is -7; expected zero or more",
        ),
        (
            lambda event, view: [Enqueue(event.tasks, np.zeros(2, np.int32), pace=Pace(-1))],
            "malformed Enqueue: pace.first is -1; expected zero or more",
        ),
        (
            lambda event, view: [Think(1, 1, earlier=EarlierTime(5, -5))],
            "malformed Think: earlier.on_job is -5; expected zero or more",
        ),
        (lambda event, view: [Think(-1, 1)], "s (answering) wants to think for -1 µs"),
        (lambda event, view: [WakeMe(2**70, "")], "malformed WakeMe: at is 11805916207174113034"),
        (
            lambda event, view: [Sample(ROOM, -1, 1)],
            "malformed Sample: count is -1; expected zero or more",
        ),
        (lambda event, view: [Sample(ROOM, 2**40, 1)], "malformed Sample: "),
        (
            lambda event, view: [AskQueues(1, which="some")],  # type: ignore[arg-type]
            "malformed AskQueues: which is 'some'; expected 'all' or 'long'",
        ),
        (
            lambda event, view: [AskQueues(1, until_room=np.array([-1], np.int32))],
            "malformed AskQueues: until_room names machine -1",
        ),
        (
            lambda event, view: [AskQueues(1, until_room=np.array([99], np.int32))],
            "malformed AskQueues: until_room names machine 99",
        ),
        (
            lambda event, view: [AskQueues(1, until_room=np.array([view.machines], np.int32))],
            "malformed AskQueues: until_room names machine ",
        ),
        (
            lambda event, view: [Send(("s",), object())],  # type: ignore[arg-type]
            "malformed Send: payload is an object; expected a message of argosy.engine",
        ),
        (
            lambda event, view: [Send(("s",), Note("a", {"b": [object()]}))],
            "malformed Send: payload.data has an object; expected a JSON value",
        ),
        (
            lambda event, view: [Send(("s",), Note("a", {1: 2}))],
            "malformed Send: payload.data has a key of type int; expected a JSON value",
        ),
        (lambda event, view: [AnswerProbe(77)], "answers probe 77, which holds no slot"),
        (
            lambda event, view: claims(event, shapes=np.full(2, 777, np.int32)),
            "s (answering) returned a malformed Commit: ",
        ),
        (
            lambda event, view: [Enqueue(np.array([0, 0], np.int64), np.zeros(2, np.int32))],
            "malformed Enqueue: ",
        ),
    ],
)
def test_an_effect_that_makes_no_sense_is_the_engines_fault(answer: Answer, says: str) -> None:
    assert says in fault_of(answer)


def fault_of_script(script: Script, **fields: Any) -> str:
    with pytest.raises(EngineFault) as caught:
        world_of(script, [job("a", 2, submit=1)], horizon=30 * SECOND, **fields)
    return str(caught.value)


def test_a_task_goes_to_one_probe_only() -> None:
    def twice(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted():
                return [Probe(event.number, np.array([0, 1], np.int32), ROOM)]
            case ProbeReady():
                return [AnswerProbe(event.probe, 0)]
        return ()

    assert "places task a/0, which it may not place" in fault_of_script(twice)


@pytest.mark.parametrize(
    ("effect", "says"),
    [
        (Explain(np.array([1], np.int64), WHY), "explains task a/1, which is not its"),
        (Abandon(np.array([1], np.int64), WHY), "abandons task a/1, which it may not"),
        (Probe(0, SOMEWHERE, ROOM), "probes for job 0, which is not its"),
        (Think(5, 1, job=0), "decides on job 0, which is not its"),
        (AnswerProbe(0), "answers probe 0, which is not its"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_scheduler_leaves_what_is_not_its_own_alone(effect: Effect, says: str) -> None:
    def other(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted():
                asked = Probe(event.number, SOMEWHERE, ROOM)
                return [asked, Send(engine.context.peers, Note("now"))]
            case MessageReceived():
                return [WakeMe(now + 2 * SECOND, "")]
            case TimerFired():
                return [effect]
        return ()

    assert says in fault_of_script(other, replicas=2)


def test_tasks_that_a_user_cancelled_may_still_be_abandoned() -> None:
    """The scheduler may not have heard of it."""

    def gives_up(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted():
                return [WakeMe(3 * SECOND, "")]
            case TimerFired():
                return [Abandon(np.array([0, 1], np.int64), WHY)]
        return ()

    engine = scripted(gives_up)
    spec = scenario("scripted", [job("a", 2)], replicas=1)
    world = SimulatedWorld(spec, {"scripted": engine})
    world.inject(3 * SECOND - 1, lambda: world.host.cancel(0, np.array([1], np.int64)))
    world.run()
    states = [world.host.board.state(task) for task in (0, 1)]
    assert states == [TaskState.ABANDONED, TaskState.CANCELLED]


def test_a_well_formed_value_has_no_misfit() -> None:
    tasks = np.zeros(1, np.int64)
    assert find_misfit(Explain(tasks, Explanation())) is None
    assert find_misfit(Enqueue(tasks, np.zeros(1, np.int32), estimate=np.int64(3))) is None  # type: ignore[arg-type]
    assert find_misfit(Commit(1, Transaction("s", releases=tasks))) is None


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a text as the module `clumsy`, from its directory."""

    def make(text: str) -> ModuleType:
        (tmp_path / "clumsy.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "clumsy", raising=False)
        import clumsy  # type: ignore[import-not-found]

        monkeypatch.setitem(sys.modules, "clumsy", clumsy)
        made: ModuleType = clumsy
        return made

    return make


CLUMSY = """
import numpy as np
from argosy.engines.api import Capabilities, Settings

class Clumsy:
    name = "clumsy"
    summary = "Fails."
    settings_type = Settings
    capabilities = Capabilities(transactions=True)

    def __init__(self, settings, context):
        pass

    def handle(self, event, view, now):
        return self.place(view)

    def place(self, view):
        return np.concatenate([])
"""


def run_clumsy(engine: Any) -> EngineFault:
    with pytest.raises(EngineFault) as caught:
        SimulatedWorld(scenario("clumsy", [job("a", 1)], replicas=1), {"clumsy": engine}).run()
    return caught.value


def test_a_failure_names_the_engines_own_line_and_not_the_librarys(
    module: Callable[[str], ModuleType],
) -> None:
    fault = run_clumsy(module(CLUMSY).Clumsy)
    assert str(fault) == (
        "s (clumsy) failed on Started at 0 µs, clumsy.py:18 in place: "
        "ValueError: need at least one array to concatenate"
    )


def test_a_failure_inside_argosy_names_the_line_that_called_it(
    module: Callable[[str], ModuleType],
) -> None:
    text = CLUMSY.replace("np.concatenate([])", "view.machine_name(-1)")
    assert "clumsy.py:18 in place: ModelError: there is no machine -1" in str(
        run_clumsy(module(text).Clumsy)
    )


def test_an_engine_that_does_not_start_names_its_line(
    module: Callable[[str], ModuleType],
) -> None:
    fault = run_clumsy(module(CLUMSY.replace("        pass", "        self.x = settings.y")).Clumsy)
    assert "s (clumsy) failed to start, clumsy.py:12 in __init__: AttributeError" in str(fault)


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert locate(ValueError("x")) == ""


def test_without_an_engine_the_innermost_line_is_named() -> None:
    with pytest.raises(ValueError, match="need at least one array") as caught:
        np.concatenate([])
    assert locate(caught.value).endswith("in test_without_an_engine_the_innermost_line_is_named")


@pytest.mark.parametrize(
    ("error", "problem", "expected"),
    [
        (ModelError("no machine 9", expected="0 to 3"), "no machine 9", "0 to 3"),
        (KeyError("x"), "KeyError: 'x'", None),
        (ValueError("first line\nsecond line"), "first line", None),
    ],
)
def test_an_effect_that_cannot_be_carried_out_is_told_with_the_reason(
    error: Exception, problem: str, expected: str | None
) -> None:
    fault = malformed("s (omega)", WakeMe(5, "tick"), error)
    assert fault.problem == f"s (omega) returned a malformed WakeMe: {problem}"
    assert fault.expected == expected
