"""What the parameters of a point of the Murmuration paper make of its scenario."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.scenario import ConstantLatency, SchedulerCrash
from argosy.papers.experiment import ExperimentPoint
from argosy.papers.murmuration.world import _SYSTEMS, _scenario

SECOND = 1_000_000


def scenario(**parameters: Any) -> Any:
    point = ExperimentPoint(
        paper="murmuration",
        figure="9",
        parameters={"system": "murmuration", "machines": 100, **parameters},
        seed=3,
        scale="quick",
    )
    return _scenario(point, ())


def settings(**parameters: Any) -> dict[str, Any]:
    [entry] = scenario(**parameters).fleet
    return dict(entry.settings)


def test_a_point_without_more_is_the_systems_own() -> None:
    found = scenario()
    [entry] = found.fleet
    assert (entry.name, entry.engine, entry.replicas) == ("s", "murmuration", 10)
    assert entry.settings == _SYSTEMS["murmuration"][1]
    assert (found.seed, found.faults) == (3, ())
    assert found.network.latency == ConstantLatency(delay=500)
    assert found.output.log == "none"
    assert [machine.name for machine in found.cell.machines[:2]] == ["m0", "m1"]
    assert len(found.cell.machines) == 100
    assert {machine.capacity.cpu for machine in found.cell.machines} == {1_000}


@pytest.mark.parametrize(
    ("share", "schedulers"),
    [(0.0, 2), (0.01, 2), (0.029, 2), (0.03, 3), (0.1, 10), (1, 100)],
)
def test_schedulers_are_a_share_of_the_machines_and_two_at_least(
    share: float, schedulers: int
) -> None:
    [entry] = scenario(schedulers=share).fleet
    assert entry.replicas == schedulers


def test_news_may_come_late() -> None:
    assert settings(delay=0.5)["update_delay"] == SECOND // 2
    assert settings(delay=0)["update_delay"] == 0
    assert "update_delay" not in settings()


@pytest.mark.parametrize(
    ("told", "more"),
    [
        ("task", {"gossip": "task"}),
        ("job", {"gossip": "job"}),
        ("1 s", {"gossip": "batch", "batch_time": SECOND}),
        ("100 placements", {"gossip": "batch", "batch_size": 100, "batch_time": 10 * SECOND}),
    ],
)
def test_schedulers_tell_of_placements_in_one_of_four_ways(told: str, more: dict[str, Any]) -> None:
    found = settings(told=told, reading=0.001)
    assert found == {**_SYSTEMS["murmuration"][1], "decide": "task", "t_update": 1_000, **more}


def test_a_restarted_scheduler_is_the_first_and_messages_take_longer() -> None:
    found = scenario(restart=20)
    assert found.faults == (SchedulerCrash(at=0, scheduler="s-0", down=20 * SECOND),)
    assert found.network.latency == ConstantLatency(delay=5_000)
    assert found.fleet[0].settings["answer_delay"] == 3 * SECOND


def test_a_point_changes_nothing_of_the_next() -> None:
    before = dict(_SYSTEMS["murmuration"][1])
    settings(delay=1, told="job", reading=1, restart=5)
    assert _SYSTEMS["murmuration"][1] == before
