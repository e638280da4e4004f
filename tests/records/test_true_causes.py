"""`why` says what is true of the cell, whichever engine ran, in the words of the user's file."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.host.records import ExplainedRecord, PlacedRecord, SubmittedRecord
from argosy.host.setup import HostSetup
from argosy.model.answers import WhyAnswer
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Explanation
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, GroupSpec, Scenario
from argosy.model.truth import SimulatedJob
from argosy.records.answers import TaskAnswers
from argosy.records.journal_run import open_recording
from argosy.report.answers import sentences
from argosy.testing.builders import GIB, SECOND, cell, job, scenario

#: Words of the implementation.
INTERNAL = re.compile(
    r"\bfiltered\b|\bkey\b|\blooks?\b|chose it|worst of|None|_|\bclass\b|\bspec\b|\bµ?core\b\d"
)
ENGINE_NAMES = sorted(set(ENGINES) - {"ilp-all"})


def gpu_cell() -> CellSpec:
    plain = cell(4)
    with_gpu = [
        Machine(
            f"gpu-{n}",
            Resources(8_000, 16 * GIB, {"gpu": 4}),
            attributes={"accel": "a100"},
            joins={"rack": ("r9",)},
        )
        for n in range(2)
    ]
    groups = (GroupSpec(name="rack", sets=("r9",)),)
    return CellSpec(machines=(*plain.machines, *with_gpu), groups=(*plain.groups, *groups))


def gpu_job(name: str, count: int, **changes: Any) -> SimulatedJob:
    fields = {"request": Resources(1_000, GIB, {"gpu": 4}), "seconds": 60, **changes}
    return job(name, count, **fields)


def ask(engine: str, jobs: list[SimulatedJob], task: str, seconds: int = 30) -> WhyAnswer:
    spec = scenario(engine, jobs, cell=gpu_cell(), replicas=1, horizon=seconds * SECOND)
    return argosy.run(spec).why(task)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_a_task_larger_than_any_machine_is_said_to_be_so(engine: str) -> None:
    why = ask(engine, [job("giant", cpu=64_000)], "giant")
    assert why.sentence == (
        "giant/0 cannot run: giant has tasks that ask for 64 cores; the largest machine has 8 cores."
    )


#: Engines that queue at machines have no waiting tasks; mesos holds back whole offers.
PLACING = [
    name
    for name in ENGINE_NAMES
    if ENGINES[name].capabilities.transactions and not ENGINES[name].capabilities.queues
]


@pytest.mark.parametrize("engine", PLACING)
def test_a_task_without_room_names_machines_amounts_and_holders(engine: str) -> None:
    jobs = [gpu_job("hog", 2), gpu_job("late", 1, submit=5)]
    why = ask(engine, jobs, "late/0")
    assert why.state in ("pending", "abandoned")
    assert (
        "none of the 2 machines that could take it (gpu-0 and gpu-1) has 4 gpu free."
        in why.sentence
    )
    assert "The gpu there is held by hog/0 and hog/1; gpu-0 lacks 4 gpu." in why.details
    assert "another machine like gpu-0" in why.remedy


#: `mesos` holds machines for gangs until there are enough.
GANGS = [name for name in PLACING if ENGINES[name].capabilities.gang and name != "mesos"]


@pytest.mark.parametrize("engine", GANGS)
def test_a_gang_without_room_speaks_of_the_gang(engine: str) -> None:
    jobs = [gpu_job("hog", 1), gpu_job("crew", 2, submit=5, gang=True)]
    why = ask(engine, jobs, "crew/0")
    assert (
        "crew/0 has no machine: it is one of a gang of 2 tasks, and only 1 of the 2 that each"
        in (why.sentence)
    )
    assert (
        why.remedy.startswith("another machine like gpu-")
        or "more machines like gpu-" in why.remedy
    )


@pytest.mark.parametrize("engine", [e for e in ENGINE_NAMES if not ENGINES[e].capabilities.gang])
def test_an_engine_without_gangs_does_not_speak_of_one(engine: str) -> None:
    jobs = [gpu_job("hog", 2), gpu_job("crew", 2, submit=5, gang=True)]
    assert "gang" not in " ".join(sentences(ask(engine, jobs, "crew/0")))


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_a_broken_constraint_is_told_whichever_engine_ran(engine: str) -> None:
    alone = parse_constraint("web -> {web, 0, 0} in machine hard")
    web = job(
        "web", 4, cpu=2_000, seconds=None, tags=("web",), kind="service", constraints=(alone,)
    )
    spec = scenario(engine, [web], cell=cell(2), replicas=1, horizon=30 * SECOND)
    run = argosy.run(spec)
    answers = [run.why(f"web/{index}") for index in range(4)]
    running = [each for each in answers if each.state == "running"]
    places = [each.placed_on for each in running]
    for each in running:
        is_shared = places.count(each.placed_on) > 1
        assert bool(each.violated) == is_shared
        if is_shared:
            assert each.violated[0].startswith(
                "'web -> {web, 0, 0} in machine hard' is broken there: "
            )
            assert each.violated[0].endswith(f"in {each.placed_on} too")


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_answers_contain_no_words_of_the_implementation(engine: str) -> None:
    jobs = [
        gpu_job("hog", 2),
        gpu_job("late", 2, submit=5),
        job("web", 3, seconds=None, kind="service"),
        job("etl", 30, cpu=2_000, seconds=7, submit=6),
        job("giant", cpu=64_000, submit=1),
    ]
    spec = scenario(engine, jobs, cell=gpu_cell(), replicas=1, horizon=60 * SECOND)
    run = argosy.run(spec)
    for task in ("hog/0", "late/1", "web/2", "etl/0", "etl/29", "giant/0"):
        for text in (*sentences(run.why(task)), *(line.text for line in run.story(task))):
            assert not INTERNAL.search(text), text


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_the_parts_of_a_wait_add_up_and_the_story_is_in_order(engine: str) -> None:
    jobs = [job("etl", 40, cpu=4_000, seconds=5), job("late", 3, cpu=4_000, submit=2)]
    spec: Scenario = scenario(engine, jobs, cell=cell(4), replicas=1, horizon=600 * SECOND)
    run = argosy.run(spec)
    told = 0
    for index in (0, 20, 39):
        story = run.story(f"etl/{index}")
        assert [line.at for line in story] == sorted(line.at for line in story)
        assert story[-1].what == "finished"
        why = run.why(f"etl/{index}")
        started = next(line.at for line in reversed(story) if line.what == "started")
        waited = [each for each in why.details if each.startswith("It waited ")]
        if started >= SECOND:
            assert len(waited) == 1
            assert not waited[0].endswith(": .")
            told += 1
    assert told


def test_an_expected_wait_is_in_seconds_and_compared_with_the_second() -> None:
    jobs = [job("a", 4, cpu=4_000, seconds=20), job("b", 1, cpu=4_000, submit=5)]
    spec: Scenario = scenario("murmuration", jobs, cell=cell(2), replicas=1)
    why = argosy.run(spec).why("b/0")
    assert why.measure == "wait"
    assert re.search(r"it has the shortest expected wait: \d+(\.\d+)? s", why.sentence)
    assert any(
        each.startswith("It waited ") and "in the queue of m" in each for each in why.details
    )


def test_scores_are_told_by_plug_in() -> None:
    spec = scenario("vela", [job("a", 1)], replicas=1, settings={"machines": 1.0})
    why = argosy.run(spec).why("a/0")
    assert re.search(r"points \(ResourcesFit \d+ and GeoLocation \d+\)", why.sentence)


def test_a_machine_held_for_a_gang_is_not_said_to_be_full() -> None:
    jobs = [gpu_job("crew", 3, gang=True), gpu_job("late", 1, submit=5)]
    why = ask("mesos", jobs, "late/0")
    assert "gpu-0 and gpu-1 have room for it, but s did not use it" in why.sentence


def test_a_lack_of_room_is_told_as_it_is_by_now(tmp_path: Path) -> None:
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(scenario("omega", [], cell=cell(2))))
    for fact in (
        SubmittedRecord(0, 0, job("a", cpu=3_000).job, "s-0"),
        SubmittedRecord(0, 1, job("b", 2, cpu=2_000).job, "s-1"),
        PlacedRecord(0, "b", [0, 1], [0, 1], "s-1"),
        ExplainedRecord(1, "a", [0], "s-0", Explanation(2, 0, {"cpu": 2})),
        SubmittedRecord(2, 2, job("c", 2, cpu=1_000).job, "s-1"),
        PlacedRecord(2, "c", [0, 1], [0, 1], "s-1"),
    ):
        journal.write(fact)
    journal.flush()
    path = tmp_path / "journal.jsonl"
    path.write_bytes(stream.getvalue())
    # It lacked one when its scheduler last spoke.
    assert TaskAnswers(open_recording(path), "a/0").why().nearest_miss == "m0 lacks 2 cores"
