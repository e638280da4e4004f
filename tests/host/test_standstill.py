"""An instant at which nothing progresses and events go on is an error, and a long one is not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_engine import NO_LATENCY, Script, Scripted, claim, to_machine, world_of

from argosy import cli
from argosy.cell import Draft, Rule, View
from argosy.engines.registry import ENGINES
from argosy.host.scheduler import Scheduler
from argosy.host.standstill import StandstillGuard
from argosy.model.effects import Commit, Effect, Explain, Send, Think, WakeMe
from argosy.model.errors import EngineFault
from argosy.model.events import (
    Committed,
    DecisionDue,
    Event,
    JobSubmitted,
    MessageReceived,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Explanation
from argosy.model.machine_model import MachineModel
from argosy.model.messages import Note
from argosy.model.transactions import Transaction
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.worlds.sim import SimulatedWorld

WHOLE: dict[str, Any] = {"cpu": 4_000}


def fault_of(script: Script, jobs: list[Any], **fields: Any) -> str:
    with pytest.raises(EngineFault) as caught:
        world_of(script, jobs, **fields)
    assert caught.value.hint is not None
    return str(caught.value)


def test_an_engine_that_wakes_itself_at_once_for_ever_is_at_fault() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        return [WakeMe(now, "again")] if isinstance(event, JobSubmitted | TimerFired) else ()

    told = fault_of(script, [job("a", submit=3)])
    assert "s (scripted) makes no progress at 3 s" in told
    assert "it kept answering TimerFired with WakeMe" in told


def test_an_engine_that_decides_in_no_time_for_ever_is_at_fault() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        return [Think(0, 1)] if isinstance(event, JobSubmitted | DecisionDue) else ()

    assert "DecisionDue with Think" in fault_of(script, [job("a")])


def test_an_engine_that_commits_the_same_refused_claim_for_ever_is_at_fault() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            engine.asked = event  # type: ignore[attr-defined]
        elif not isinstance(event, Committed):
            return ()
        return [claim(view, engine.asked, 0, "s")]  # type: ignore[attr-defined]

    told = fault_of(script, [job("a", cpu=64_000)])
    assert "it kept answering Committed (no room) with Commit" in told


def test_engines_that_answer_each_others_messages_for_ever_are_at_fault() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted | MessageReceived):
            return [Send(engine.context.peers, Note("ball", {}))]
        return ()

    told = fault_of(script, [job("a")], replicas=2)
    assert "(scripted) makes no progress" in told
    assert "MessageReceived with Send" in told


def test_an_engine_that_sends_tasks_back_to_a_full_queue_for_ever_is_at_fault() -> None:
    told = fault_of(
        to_machine(0), [job("a", 3, **WHOLE)], cell=cell(1), machines=MachineModel(limit=1)
    )
    assert "it kept answering TasksLost (queue full) with Enqueue" in told


def test_engines_that_preempt_each_other_for_ever_are_at_fault() -> None:
    """Placing a task is no progress if another has to go for it."""

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted | TasksLost):
            return ()
        rank = next(ranks)
        draft, shape = Draft(view), view.shape(event.job.groups[0].request, (), rank)
        draft.place(event.tasks, shape, Rule.FIRST, engine.context.random, preempt_below=rank)
        name = engine.context.name
        return [Commit(0, Transaction(name, draft.claims(), preempt=True))]

    ranks = count(1)
    jobs = [job("a", **WHOLE), job("b", **WHOLE)]
    assert "TasksLost (preempted) with Commit" in fault_of(script, jobs, cell=cell(1), replicas=2)


def test_in_time_everything_may_be_tried_again() -> None:
    """Thirty thousand timers, but not at one instant."""

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        return [WakeMe(now + 1, "again")] if now < 30_000 else ()

    _, heard = world_of(script, [job("a")], horizon=SECOND)
    assert len(heard) > 30_000


def test_a_hundred_thousand_jobs_at_one_instant_are_no_standstill() -> None:
    """Each is looked at three times and explained; nothing can be placed."""
    wakes: dict[int, int] = {}

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(_, number, tasks):
                return [Explain(tasks, Explanation(looked_at=1)), WakeMe(now, str(number))]
            case TimerFired(name):
                wakes[int(name)] = wakes.get(int(name), 0) + 1
                return [WakeMe(now, name)] if wakes[int(name)] < 2 else ()
        return ()

    _, heard = world_of(script, [job(f"j{i}") for i in range(100_000)], horizon=SECOND)
    assert len(heard) == 300_001


def test_many_conflicts_at_one_instant_are_no_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty schedulers without latency all claim the first free machine; one of them gets it, the others
    try again at once. With a thousandth of the events allowed."""
    allowed = StandstillGuard._allowed
    monkeypatch.setattr(StandstillGuard, "_allowed", lambda guard: allowed(guard) // 1_000)
    monkeypatch.setattr(Scheduler, "first_look", 10)

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        mine = engine.__dict__.setdefault("mine", [])
        match event:
            case JobSubmitted():
                mine.append(event)
                return [WakeMe(SECOND, "begin")] if len(mine) == 1 else ()
            case Committed(_, outcome) if outcome.all_accepted:
                mine.pop()
            case Committed() | TimerFired():
                pass
            case _:
                return ()
        if not mine:
            return ()
        first = int(np.flatnonzero(view.free()[:, 0] >= WHOLE["cpu"])[0])
        return [claim(view, mine[-1], first, engine.context.name)]

    world, _ = world_of(
        script, [job(f"j{i}", **WHOLE) for i in range(500)], cell=cell(500), replicas=50
    )
    assert world.host.board.counts().tolist() == [0, 0, 0, 500, 0, 0, 0]
    assert sum(scheduler.conflicts for scheduler in world.host.schedulers) > 5_000


def test_giving_up_after_a_thousand_attempts_at_one_instant_is_no_standstill() -> None:
    settings = {"t_job": 0, "t_task": 0, "backoff": 0}
    jobs = [job(f"j{i}", cpu=64_000) for i in range(60)]
    spec = scenario("omega", jobs, replicas=1, settings=settings, network=NO_LATENCY)
    world = SimulatedWorld(spec, ENGINES)
    world.run()
    assert world.host.board.counts().tolist() == [0, 0, 0, 0, 60, 0, 0]
    assert world.host.events > 60_000


def test_the_error_is_one_message_with_the_exit_code_of_all_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "restless.py").write_text(RESTLESS)
    (tmp_path / "s.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "s.toml", "--no-save"])
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert "error[engine-fault]: s (restless:Restless) makes no progress at 0 µs" in told
    assert "Traceback" not in told
    monkeypatch.delitem(sys.modules, "restless")


RESTLESS = """\
from argosy import engine

class Restless:
    name = "restless"
    summary = "Never sleeps."
    settings_type = engine.Settings
    capabilities = engine.Capabilities()

    def __init__(self, settings, context):
        pass

    def handle(self, event, view, now):
        return [engine.WakeMe(now, "again")]
"""
SCENARIO = """\
name = "restless"
[[cell.machines]]
name = "m"
capacity = { cpu = 1000 }
[[workload.jobs]]
id = "j"
request = { cpu = 1000 }
duration = "10s"
[[fleet]]
name = "s"
engine = "restless:Restless"
"""
