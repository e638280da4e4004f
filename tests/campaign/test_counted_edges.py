"""What a recount makes of crashes, of resources that a machine lacks, and of chances at their bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from test_recounted_lives import GOES_ON, A, header, restored, submitted

from argosy.campaign.dice import Dice, time_text
from argosy.campaign.findings import Finding
from argosy.campaign.recount import CountedMachine, Recount, Where
from argosy.campaign.shrink import _simpler
from argosy.campaign.waiting import fits
from argosy.engines.registry import ENGINES
from argosy.host import records
from argosy.model.jobs import task_number
from argosy.model.resources import Resources
from argosy.testing.builders import SECOND, cell, job, scenario


def test_a_crash_takes_back_only_the_probes_that_its_scheduler_has_out() -> None:
    spec = scenario("omega", [job("a", 6)], replicas=2, cell=cell(2))
    recount = Recount(spec, ENGINES)

    def probed(name: str, *indices: int) -> records.ProbedRecord:
        return records.ProbedRecord(1, "a", list(indices), [0, 1], name)

    recount.read(
        [
            records.SubmittedRecord(0, 0, spec.jobs[0].job, "s-0"),
            probed("s-0", 0, 1, 5),
            probed("s-1", 2),
            records.EnqueuedRecord(2, "a", [3], [1], "s-0"),
            records.StartedRecord(3, [task_number(0, 1)], [0]),
            records.StartedRecord(3, [task_number(0, 5)], [1]),
            records.EndedRecord(10 * SECOND, [task_number(0, 5)]),
            records.CrashedRecord(11 * SECOND, "s-0"),
        ],
        [],
    )
    held = [recount.tasks[task_number(0, index)] for index in range(6)]
    assert [each.where for each in held] == [
        Where.PENDING, Where.RUNNING, Where.QUEUED, Where.QUEUED, Where.PENDING, Where.FINISHED,
    ]  # fmt: skip
    assert [each.since for each in held] == [11 * SECOND, 3, 1, 2, 0, 10 * SECOND]
    assert [each.is_explained for each in held] == [False] * 6
    assert recount.is_alive == {"s-0": False, "s-1": True}
    assert recount.fleet_changed_at == 11 * SECOND


def test_a_crash_makes_what_was_said_before_void_for_probes_alone() -> None:
    spec = scenario("omega", [job("a", 2)], replicas=1, cell=cell(2))
    recount = Recount(spec, ENGINES)
    refusal = records.RefusedRecord(1, "a", [0, 1], [0, 0], "s", [3, 3], [0, 0], [0, 0])
    recount.read(
        [
            records.SubmittedRecord(0, 0, spec.jobs[0].job, "s"),
            records.ProbedRecord(1, "a", [0], [0, 1], "s"),
            refusal,
            records.CrashedRecord(2, "s"),
            records.RestartedRecord(3, "s"),
        ],
        [],
    )
    assert [recount.tasks[task_number(0, index)].is_explained for index in (0, 1)] == [False, True]
    assert (recount.is_alive, recount.fleet_changed_at) == ({"s": True}, 3)


@pytest.mark.parametrize(
    ("capacity", "attributes", "can"),
    [
        ({"cpu": 2, "memory": 5, "gpu": 1}, {"disk": "ssd"}, True),
        ({"cpu": 2, "memory": 5, "gpu": 1}, {"disk": "ssd", "arch": "arm"}, True),
        ({"cpu": 1, "memory": 5, "gpu": 1}, {"disk": "ssd"}, False),
        ({"cpu": 2, "memory": 4, "gpu": 1}, {"disk": "ssd"}, False),
        ({"cpu": 2, "memory": 5, "gpu": 0}, {"disk": "ssd"}, False),
        ({"cpu": 2, "memory": 5}, {"disk": "ssd"}, False),
        ({"cpu": 2, "memory": 5, "gpu": 1}, {"disk": "hdd"}, False),
        ({"cpu": 2, "memory": 5, "gpu": 1}, {}, False),
    ],
)
def test_a_task_fits_a_machine_that_has_all_that_it_asks_for(
    capacity: dict[str, int], attributes: dict[str, str], can: bool
) -> None:
    asked = job("a", request=Resources(2, 5, {"gpu": 1}), requires={"disk": "ssd"})
    recount = Recount(scenario("omega", [asked]), ENGINES)
    recount.jobs.append(asked.job)
    assert fits(recount, 0, CountedMachine("m", capacity, attributes)) is can


def test_a_job_that_is_restored_otherwise_is_told_with_its_number() -> None:
    recount = Recount(scenario("omega", [], cell=cell(4)), ENGINES)
    record = restored(1, **GOES_ON)
    recount.read([header(), submitted(0, A)], [])
    recount.read([header(9 * SECOND), record], [])
    told = f"{record.job.id} is restored as number 1, which was not left so: {record}"
    assert recount.findings["restored"] == Finding("restored", "job", told)


@pytest.mark.parametrize(
    ("drawn", "probability", "is_so"),
    [(0.0, 0.0, False), (0.5, 0.5, False), (0.4999, 0.5, True), (0.9999, 1.0, True)],
)
def test_a_chance_is_a_share_of_all_draws(drawn: float, probability: float, is_so: bool) -> None:
    random: Any = SimpleNamespace(uniform=lambda: drawn)
    assert Dice(random).chance(probability) is is_so
    assert Dice(random).has("gangs", probability) is is_so
    assert Dice(random, frozenset({"gangs"})).has("gangs", probability) is False
    assert Dice(random, frozenset({"limits"})).has("gangs", probability) is is_so


@pytest.mark.parametrize("table", ["capacity", "request", "resources"])
def test_amounts_are_simplified_wherever_they_stand(table: str) -> None:
    assert _simpler(7, ("x", table, "gpu")) == [1, 1000]
    assert _simpler(1, (table, "gpu")) == []
    assert _simpler(True, (table, "gpu")) == []
    assert _simpler(7, (table,)) == [0, 1, 3, 6]
    assert _simpler(7, (table, 0, "gpu")) == [0, 1, 3, 6]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0s"),
        (1, "1us"),
        (999, "999us"),
        (1_001, "1001us"),
        (2_000, "2ms"),
        (1_001_000, "1001ms"),
        (90_000_000, "90s"),
        (120_000_000, "2min"),
        (5_400_000_000, "90min"),
        (7_200_000_000, "2h"),
    ],
)
def test_times_have_the_largest_unit_that_is_exact(micros: int, text: str) -> None:
    assert time_text(micros) == text
