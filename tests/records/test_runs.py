"""Runs: what is kept of one, that it is whole or absent, and what it can answer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from argosy.experiments.execute import execute
from argosy.host import records
from argosy.measures.measure import breakdown, fleet_label
from argosy.model.errors import (
    CommandError,
    EngineFault,
    RunDirectoryError,
    UnknownEngine,
    UnknownName,
)
from argosy.model.machine_model import MachineModel
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, MachineCrash, Output, Scenario, SchedulerLimits
from argosy.records import directory
from argosy.records.answers import TaskAnswers
from argosy.records.directory import open_run
from argosy.testing.builders import SECOND, cell, job, scenario

FAST = {"t_job": 1_000, "t_task": 0}


def small(**fields: object) -> Scenario:
    jobs = [job("a", 2, seconds=10), job("b", 1, seconds=5, submit=1)]
    return scenario("omega", jobs, replicas=1, settings=FAST, **fields)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    execute(small(), tmp_path / "run", command=["argosy", "run"])
    return tmp_path / "run"


def answers(spec: Scenario, tmp_path: Path, task: str) -> TaskAnswers:
    execute(spec, tmp_path / "asked")
    return TaskAnswers(open_run(tmp_path / "asked"), task)


def test_a_run_is_measured_by_the_book() -> None:
    summary = execute(small(), None)
    hop = 500
    assert summary.counts.jobs == summary.counts.jobs_finished == 2
    assert summary.counts.tasks == summary.counts.tasks_finished == 3
    assert summary.wait_time.largest == 0
    assert summary.placement_latency.p50 == 1_000 + hop
    assert sorted([summary.jct.largest, 2 * summary.jct.mean - summary.jct.largest]) == [
        5 * SECOND + 1_000 + hop,
        10 * SECOND + 1_000 + hop,
    ]
    assert summary.response_time.count == 3
    used = 2 * 1_000 * 10 * SECOND + 1_000 * 5 * SECOND
    assert summary.utilisation["cpu"] == pytest.approx(used / (8 * 4_000 * summary.ended_at))
    assert summary.schedulers[0].busyness == pytest.approx(2_000 / summary.ended_at)
    assert summary.conflict_fraction == 0


def test_a_run_directory_can_be_read_again(kept: Path) -> None:
    run = open_run(kept)
    assert run.summary().counts.tasks == 3
    assert run.scenario() == small()
    assert run.provenance().command == ["argosy", "run"]
    placed = [x for x in run.journal.records() if isinstance(x, records.PlacedRecord)]
    assert len(placed) == 2
    assert len(run.task_rows()["task"]) == 3


def test_the_same_scenario_keeps_the_same_bytes(tmp_path: Path, kept: Path) -> None:
    execute(small(), tmp_path / "again")
    for name in (directory.JOURNAL, directory.SUMMARY, directory.SCENARIO, directory.TASKS):
        assert (tmp_path / "again" / name).read_bytes() == (kept / name).read_bytes()


def test_a_run_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(small(), jobs=(job("a", 1, kind="nobody's"),))
    fleet = tuple(
        msgspec.structs.replace(entry, takes=msgspec.structs.replace(entry.takes, kinds=("batch",)))
        for entry in broken.fleet
    )
    with pytest.raises(Exception, match="no scheduler takes"):
        execute(msgspec.structs.replace(broken, fleet=fleet), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_run_over_an_existing_directory_is_refused(kept: Path) -> None:
    before = sorted(path.name for path in kept.iterdir())
    with pytest.raises(CommandError, match="already exists"):
        execute(small(), kept)
    assert sorted(path.name for path in kept.iterdir()) == before


def test_an_unknown_engine_stops_a_run_before_it_begins(tmp_path: Path) -> None:
    spec = scenario("omgea", [job("a")])
    with pytest.raises(UnknownEngine, match="did you mean 'omega'"):
        execute(spec, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        directory.JOURNAL,
        directory.TASKS,
        directory.SCENARIO,
        directory.SUMMARY,
        directory.PROVENANCE,
    ],
)
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_directory_that_lost_something_says_what(kept: Path, name: str, damage: str) -> None:
    file = kept / name
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(RunDirectoryError, match=name) as caught:
        open_run(kept)
    assert "run the scenario again" in str(caught.value)


@pytest.mark.parametrize("name", [directory.JOURNAL, directory.TASKS, directory.SUMMARY])
def test_a_file_whose_bytes_changed_is_named(kept: Path, name: str) -> None:
    file = kept / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(RunDirectoryError, match=rf"{name}: changed since"):
        open_run(kept)


def test_a_run_without_a_log_says_how_to_get_one(tmp_path: Path) -> None:
    execute(small(output=Output(log="none")), tmp_path / "run")
    with pytest.raises(RunDirectoryError, match=r"output\.log"):
        TaskAnswers(open_run(tmp_path / "run"), "a/0")


def test_a_log_of_everything_holds_messages_and_timers(tmp_path: Path) -> None:
    jobs = [job("a", 2), job("giant", 1, cpu=64_000)]
    options = {"output": Output(log="everything"), "horizon": 20 * SECOND}
    whats = set()
    for engine in ("omega", "murmuration"):
        execute(scenario(engine, jobs, **options), tmp_path / engine)
        whats |= {type(record) for record in open_run(tmp_path / engine).journal.records()}
    assert {records.SentRecord, records.TimerRecord} <= whats


@pytest.mark.parametrize("gossip", ["job", "task"])
def test_a_log_of_everything_holds_every_message_that_is_counted(
    gossip: str, tmp_path: Path
) -> None:
    spec = scenario(
        "murmuration",
        [job("a", 6), job("b", 3)],
        replicas=4,
        settings={"gossip": gossip},
        output=Output(log="everything"),
    )
    summary = execute(spec, tmp_path / "run")
    sent: Counter[str] = Counter(
        record.scheduler
        for record in open_run(tmp_path / "run").journal.records()
        if isinstance(record, records.SentRecord)
    )
    assert sent.total() > 0
    assert {each.name: sent[each.name] for each in summary.schedulers} == {
        each.name: each.messages_sent for each in summary.schedulers
    }


def test_a_story_goes_from_submission_to_the_end(tmp_path: Path) -> None:
    story = answers(small(), tmp_path, "a/1").story()
    assert [line.what for line in story] == [
        "submitted",
        "attempt",
        "placed",
        "started",
        "finished",
    ]
    assert story[-1].text == "finished after running for 10 s"
    assert [line.at for line in story] == sorted(line.at for line in story)


def test_a_story_counts_attempts_and_reasons_that_repeat(tmp_path: Path) -> None:
    settings = {**FAST, "attempts": 4}
    spec = scenario("omega", [job("giant", 1, cpu=64_000)], replicas=1, settings=settings)
    story = answers(spec, tmp_path, "giant/0").story()
    assert [line.what for line in story] == ["submitted", "attempt", "explained", "abandoned"]
    assert [line.text.endswith("(4 times)") for line in story] == [False, True, True, False]


def test_a_story_counts_a_wait_from_when_its_scheduler_lets_the_task_go(tmp_path: Path) -> None:
    """In the published form tasks leave one by one; each machine is idle, so that each waits for a
    hop."""
    settings = {"as_published": True, "t_job": SECOND, "t_task": SECOND}
    spec = scenario("murmuration", [job("a", 3, cpu=4_000)], replicas=1, settings=settings)
    execute(spec, tmp_path / "asked")
    run = open_run(tmp_path / "asked")
    starts = [
        line.text
        for index in range(3)
        for line in TaskAnswers(run, f"a/{index}").story()
        if line.what == "started"
    ]
    assert [text.partition(" after ")[2] for text in starts] == [
        "500 µs on the way and in its queue"
    ] * 3


def test_a_story_does_not_count_the_delay_of_a_start_as_running(tmp_path: Path) -> None:
    jobs = [job("a", 1, cpu=4_000, seconds=10), job("b", 1, cpu=4_000, seconds=10)]
    machines = MachineModel(start_delay=3 * SECOND)
    spec = scenario("murmuration", jobs, replicas=1, cell=cell(1), machines=machines)
    execute(spec, tmp_path / "asked")
    run = open_run(tmp_path / "asked")
    for name in ("a", "b"):
        ended = TaskAnswers(run, f"{name}/0").story()[-1]
        assert ended.text == "finished after running for 10 s"


def test_a_story_tells_of_a_lost_machine(tmp_path: Path) -> None:
    crash = MachineCrash(at=3 * SECOND, machine="m0")
    spec = scenario("omega", [job("a", 1, cpu=4_000)], cell=cell(1), settings=FAST, faults=(crash,))
    spec = msgspec.structs.replace(spec, horizon=10 * SECOND)
    asked = answers(spec, tmp_path, "a")
    assert "lost m0: machine gone" in [line.text for line in asked.story()]
    why = asked.why()
    assert why.state == "pending"
    assert why.ruled_out == {"down": 1}
    assert why.remedy == "bring back a machine that is gone or draining"


def test_why_not_names_the_nearest_miss_and_what_would_help(tmp_path: Path) -> None:
    spec = scenario(
        "omega", [job("giant", 1, cpu=5_000)], settings=FAST, horizon=10 * SECOND, replicas=1
    )
    why = answers(spec, tmp_path, "giant/0").why()
    assert why.state == "pending"
    assert (why.looked_at, why.feasible) == (8, 0)
    assert why.sentence == (
        "giant/0 cannot run: giant has tasks that ask for 5 cores; the largest machine has 4 cores."
    )
    assert why.remedy == "ask for 1 core less, or add a machine with 5 cores"


def test_why_not_says_what_a_full_machine_would_have_to_free(tmp_path: Path) -> None:
    jobs = [job("fills", 8, cpu=3_500, seconds=60), job("waits", 1, cpu=1_000, submit=1)]
    spec = scenario("omega", jobs, settings=FAST, horizon=10 * SECOND, replicas=1)
    why = answers(spec, tmp_path, "waits/0").why()
    assert why.sentence == (
        "waits/0 has no machine: none of the 8 machines that could take it has 1 core free."
    )
    assert why.details == ("The cores there are held by fills/0 to fills/7; m0 lacks 0.5 cores.",)
    assert why.remedy == "another machine like m0, or 0.5 cores less"
    assert why.nearest_miss == "m0 lacks 0.5 cores"


def test_why_not_of_a_gang_says_how_many_find_a_machine(tmp_path: Path) -> None:
    wide = job("gang", 12, cpu=4_000, gang=True)
    spec = scenario("omega", [wide], settings=FAST, horizon=10 * SECOND, replicas=1)
    why = answers(spec, tmp_path, "gang/11").why()
    assert "gang is a gang of 12 tasks" in why.sentence
    assert "the cluster holds 8 of them, on m0 to m7" in why.sentence
    assert why.remedy == "4 tasks fewer, or machines for 4 more"


def test_why_not_names_the_attributes_nobody_has(tmp_path: Path) -> None:
    picky = job("picky", requires={"arch": "arm"})
    spec = scenario("omega", [picky], settings=FAST, horizon=10 * SECOND, replicas=1)
    why = answers(spec, tmp_path, "picky/0").why()
    assert why.sentence == "picky/0 cannot run: picky requires arch=arm, which no machine has."


def test_why_given_up_says_what_stood_in_the_way_at_last(tmp_path: Path) -> None:
    entry = FleetEntry(
        name="s",
        engine="omega",
        settings={**FAST, "attempts": 3},
        limits=SchedulerLimits(resources=Resources(500, 0)),
    )
    spec = scenario("omega", [job("a", 1)], fleet=(entry,))
    asked = answers(spec, tmp_path, "a/0")
    why = asked.why()
    assert why.state == "abandoned"
    assert why.sentence == (
        "a/0 has no machine: given up after 3 attempts; at last, the scheduler's limit would be "
        "exceeded by 0.5 cores."
    )
    assert why.remedy.startswith("raise the scheduler's limit")
    assert [line.what for line in asked.story()] == ["submitted", "attempt", "refused", "abandoned"]


def test_a_task_that_was_enqueued_and_runs_is_running(tmp_path: Path) -> None:
    spec = scenario("murmuration", [job("web", 1, seconds=None)], horizon=10 * SECOND)
    asked = answers(spec, tmp_path, "web/0")
    assert asked.why().state == "running"
    assert asked.story()[-1].what == "started"


def test_why_here_names_the_rule_and_who_came_second(tmp_path: Path) -> None:
    settings = {**FAST, "placement": "best-fit"}
    jobs = [job("filler", 1, cpu=2_000, seconds=60), job("a", 1, submit=1)]
    spec = scenario("omega", jobs, cell=cell(3), settings=settings, replicas=1)
    why = answers(spec, tmp_path, "a/0").why()
    assert (why.rule, why.measure) == ("best fit", "room")
    assert "of 3 machines with room, it keeps least free (cpu and memory)" in why.sentence
    assert f" on {why.second}." in why.sentence
    assert why.feasible == 3
    assert why.score is not None
    assert why.second_score is not None
    assert why.score < why.second_score
    assert why.second != why.placed_on


def test_why_of_a_task_nobody_has_looked_at_yet(tmp_path: Path) -> None:
    jobs = [job("slow", 1), job("behind", 1)]
    settings = {"t_job": 100 * SECOND}
    spec = scenario("omega", jobs, replicas=1, settings=settings, horizon=SECOND)
    why = answers(spec, tmp_path, "behind/0").why()
    assert why.state == "pending"
    assert "no scheduler has decided" in why.sentence


@pytest.mark.parametrize("task", ["a/7", "a/x", "a/", "a/\u0663", "nobody/0", ""])
def test_an_unknown_task_is_refused(kept: Path, task: str) -> None:
    with pytest.raises((UnknownName, CommandError)):
        TaskAnswers(open_run(kept), task)


def test_fleets_have_a_short_name() -> None:
    spec = small()
    entry = spec.fleet[0]
    others = tuple(
        msgspec.structs.replace(entry, name=name, engine=engine, replicas=replicas)
        for name, engine, replicas in (("x", "omega", 2), ("y", "murmuration", 1))
    )
    assert fleet_label(spec) == "omega"
    assert fleet_label(msgspec.structs.replace(spec, fleet=others)) == "omega x2 + murmuration"


def test_a_manifest_that_is_not_json_is_one_error(kept: Path) -> None:
    (kept / directory.MANIFEST).write_text("{")
    with pytest.raises(RunDirectoryError, match=directory.MANIFEST):
        open_run(kept)


def test_a_summary_is_plain_json(kept: Path) -> None:
    assert json.loads((kept / directory.SUMMARY).read_text())["counts"]["tasks"] == 3


def test_an_engine_that_breaks_mid_run_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argosy.engines.omega import Omega

    def fail(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(Omega, "_committed", fail)
    with pytest.raises(EngineFault, match="boom"):
        execute(small(), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_busyness_is_booked_on_the_days_it_falls_on() -> None:
    hour = 3_600 * SECOND
    jobs = [job("a", 1, submit=23 * 3600), job("b", 1, submit=47.5 * 3600)]
    settings = {"t_job": 2 * hour, "t_task": 0}
    spec = scenario("omega", jobs, replicas=1, settings=settings, horizon=60 * hour)
    busy = execute(spec, None).schedulers[0].daily_busyness
    # Job b ends at 49.5 h and with it the run: of the third day an hour and a half were decided on.
    assert busy.days == pytest.approx([1 / 24, 1.5 / 24, 1.0], abs=0.002)
    assert busy.median == pytest.approx(1.5 / 24)
    assert busy.mad == pytest.approx(0.5 / 24)


def test_an_engine_that_never_thinks_waits_until_it_places() -> None:
    parts = breakdown(*(np.array([at], np.int64) for at in (2, -1, 7, 20)))
    assert parts == {"waiting": 5.0, "placing": 0.0, "running": 13.0}


def test_kinds_are_measured_apart() -> None:
    jobs = [
        job("a", 1, seconds=10),
        job("b", 1, seconds=20, kind="service"),
        job("giant", 1, cpu=64_000, kind="service"),
    ]
    settings = {**FAST, "attempts": 2, "backoff": 0}
    kinds = execute(scenario("omega", jobs, replicas=1, settings=settings), None).kinds
    assert (kinds["batch"].jobs, kinds["batch"].jobs_abandoned) == (1, 0)
    assert (kinds["service"].jobs, kinds["service"].jobs_abandoned) == (2, 1)
    assert kinds["service"].jct.p50 > kinds["batch"].jct.p50
