"""`why` and `story` of tasks that probes, queues, scaling and stealing bring to their machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import argosy
from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.model.answers import WhyAnswer
from argosy.model.errors import CommandError
from argosy.model.machine_model import MachineModel, Steal
from argosy.model.scenario import Output, Scenario
from argosy.records.answers import TaskAnswers
from argosy.records.journal_run import open_recording
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.worlds.sim import SimulatedWorld

Act = Callable[[SimulatedWorld], None]


def answers(
    tmp_path: Path, spec: Scenario, acts: dict[int, Act] | None = None
) -> Callable[[str], TaskAnswers]:
    """Runs the scenario, calling each of `acts` at its second, and asks its journal."""
    with open(tmp_path / "journal.jsonl", "wb") as stream:
        journal = Journal(stream)
        world = SimulatedWorld(spec, ENGINES, journal)
        for second, act in (acts or {}).items():
            world.inject(second * SECOND, lambda act=act: act(world))  # type: ignore[misc]
        world.run()
        journal.flush()
    run = open_recording(tmp_path / "journal.jsonl")
    return lambda task: TaskAnswers(run, task)


def scaled(count: int) -> Act:
    made = job("web", count, cpu=500, seconds=20)

    def act(world: SimulatedWorld) -> None:
        world.tell_times(0, made)
        world.host.scale(0, made.job)

    return act


class TestScaling:
    @pytest.mark.parametrize("engine", ["omega", "murmuration", "sparrow"])
    def test_a_task_that_scaling_added_is_known(self, tmp_path: Path, engine: str) -> None:
        spec = scenario(engine, [job("web", 3, cpu=500, seconds=20)], replicas=1)
        asked = answers(tmp_path, spec, {2: scaled(6)})
        assert asked("web/5").why().state == "finished"
        assert asked("web/5").story()[-1].what == "finished"
        with pytest.raises(CommandError, match="expected web/0 to web/5"):
            asked("web/6")

    def test_a_task_that_scaling_removed_is_cancelled(self, tmp_path: Path) -> None:
        spec = scenario("omega", [job("web", 3, cpu=500, seconds=20)], replicas=1)
        asked = answers(tmp_path, spec, {2: scaled(1)})
        assert asked("web/2").why().state == "cancelled"
        assert asked("web/0").why().state == "finished"

    def test_a_task_that_was_removed_and_added_again_is_alive(self, tmp_path: Path) -> None:
        spec = scenario("omega", [job("web", 3, cpu=500, seconds=20)], replicas=1)
        asked = answers(tmp_path, spec, {2: scaled(1), 4: scaled(3)})
        assert asked("web/2").why().state == "finished"

    def test_what_was_cancelled_before_scaling_stays_so(self, tmp_path: Path) -> None:
        def cancel(world: SimulatedWorld) -> None:
            world.host.cancel(0, np.array([1]))

        spec = scenario("omega", [job("web", 3, cpu=500, seconds=20)], replicas=1)
        asked = answers(tmp_path, spec, {2: cancel, 4: scaled(5)})
        assert asked("web/1").why().state == "cancelled"
        assert asked("web/4").why().state == "finished"


class TestProbes:
    @pytest.mark.parametrize("engine", ["sparrow", "hawk", "eagle"])
    def test_a_task_fetched_by_a_probe_names_its_machine(self, tmp_path: Path, engine: str) -> None:
        spec = scenario(engine, [job("a", 3, cpu=500, seconds=20)], replicas=1)
        asked = answers(tmp_path, spec)("a/1")
        why = asked.why()
        started = next(line for line in asked.story() if line.what == "started")
        assert why.state == "finished"
        assert f"starts on {why.placed_on} " in started.text
        assert why.sentence.startswith(f"a/1 ran on {why.placed_on}: s sent ")
        assert why.sentence.endswith("and the one there was ready first.")

    def test_a_probed_task_that_waits_says_what_it_waits_for(self, tmp_path: Path) -> None:
        jobs = [job("full", 8, cpu=4_000, seconds=60), job("a", 1, cpu=4_000, submit=1)]
        spec = scenario("sparrow", jobs, replicas=1, horizon=10 * SECOND)
        why = answers(tmp_path, spec)("a/0").why()
        assert (why.state, why.placed_on) == ("queued", "")
        assert "first machine at which a probe of its job is ready" in why.sentence

    def test_a_task_that_waited_for_room_in_queues_names_its_machine_in_the_end(
        self, tmp_path: Path
    ) -> None:
        jobs = [job(f"j{n}", 3, cpu=4_000, seconds=5) for n in range(8)]
        model = MachineModel(limit=1)
        spec = scenario("sparrow", jobs, cell=cell(4), replicas=1, machines=model)
        asked = answers(tmp_path, spec)
        told = [asked(f"j{n}/{index}") for n in range(8) for index in range(3)]
        assert any("waits: " in line.text for each in told for line in each.story())
        assert all(each.why().placed_on for each in told)

    @pytest.mark.parametrize("engine", ["sparrow", "murmuration", "omega"])
    def test_a_journal_of_decisions_knows_what_the_whole_one_does(self, engine: str) -> None:
        jobs = [job("a", 3, cpu=500), job("b", 40, cpu=4_000, seconds=30)]
        horizon = 100 * SECOND
        lean = argosy.run(scenario(engine, jobs, output=Output(log="decisions"), horizon=horizon))
        whole = argosy.run(scenario(engine, jobs, horizon=horizon))
        for task in ("a/1", "b/0", "b/20", "b/39"):
            assert lean.why(task) == whole.why(task)
            assert lean.story(task) == whole.story(task)


def test_a_stolen_task_names_the_machine_that_took_it(tmp_path: Path) -> None:
    jobs = [job("long", 2, cpu=4_000, seconds=100), job("b", 40, cpu=4_000, seconds=3, submit=1)]
    model = MachineModel(steal=Steal(attempts=10))
    spec = scenario("yaq-d", jobs, cell=cell(4), replicas=1, machines=model)
    asked = answers(tmp_path, spec)
    stolen: list[WhyAnswer] = []
    for index in range(40):
        story = {line.what: line.text for line in asked(f"b/{index}").story()}
        sent = story["enqueued"].split()[5]
        ran = story["started"].split()[2]
        why = asked(f"b/{index}").why()
        assert why.placed_on == ran
        if sent != ran:
            stolen.append(why)
            assert f"which took it from the queue of {sent}" in why.sentence
    assert stolen


class TestWords:
    def test_one_task_is_not_tasks(self, tmp_path: Path) -> None:
        asked = answers(tmp_path, scenario("omega", [job("a", 1)], replicas=1))
        assert asked("a").story()[0].text == "submitted with 1 task, goes to s"

    def test_a_job_of_one_probe_has_no_probes(self, tmp_path: Path) -> None:
        spec = scenario("sparrow", [job("a", 1)], settings={"ratio": 1, "least": 1}, replicas=1)
        asked = answers(tmp_path, spec)
        assert any("1 probe for its job's tasks sent by s" in x.text for x in asked("a").story())

    def test_an_explanation_without_machines_counts_none(self) -> None:
        from argosy import engine

        class Idle:
            name = "idle"
            summary = "Gives every task up."
            settings_type = engine.Settings
            capabilities = engine.Capabilities()

            def __init__(self, settings: object, context: object) -> None: ...

            def handle(self, event: object, view: object, now: int) -> object:
                match event:
                    case engine.JobSubmitted(_, _, tasks):
                        return [engine.Abandon(tasks, engine.Explanation(remedy="another engine"))]
                return ()

        why = argosy.run(scenario("omega", [job("a", 1)]), Idle).why("a/0")  # type: ignore[arg-type]
        assert why.sentence == "a/0 has no machine: s-1 gave no reason."
        assert why.remedy == "another engine"


def test_a_task_that_waits_its_turn_is_said_to_wait_behind_another(tmp_path: Path) -> None:
    jobs = [job("giant", cpu=64_000, precedence=1), job("small", submit=1)]
    spec = scenario("kube", jobs, replicas=1, settings={"retry": 0}, horizon=10 * SECOND)
    why = answers(tmp_path, spec)("small/0").why()
    assert why.sentence == "small/0 has no machine: giant/0 goes first, and has no machine yet."
    assert why.remedy == "room for the tasks of higher precedence, or a longer retry"
