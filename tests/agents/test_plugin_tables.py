"""Plug-ins of agents number by number: whom they concern, what they keep, and how they score."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from test_objective_plugins import Site, nodes, task

from argosy.agents.api import MOST, Nodes, Requirements
from argosy.agents.builtin import (
    BatteryLevel,
    GeoLocation,
    ResourcesFit,
    RoundRobinStrategy,
    number_in,
)
from argosy.agents.objectives import (
    BatchShare,
    BatchSort,
    ServiceLevel,
    Volume,
    _positive,
    _weights,
)
from argosy.model.explanations import Refusal, Why
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.testing.builders import GIB, SECOND, job

FOUR = [4_000, 3_000, 1_000, 0]


def labelled(**labels: list[str]) -> Nodes:
    return nodes([4_000] * len(next(iter(labels.values()))), Site(labels=labels))


@pytest.mark.parametrize(
    ("plugin", "demand", "scores_always"),
    [
        (ServiceLevel(), "objective", False),
        (Volume(), "volume", False),
        (BatchShare(), "batch_share", False),
        (GeoLocation(), "location", False),
        (BatteryLevel(), "battery", True),
    ],
)
def test_a_plug_in_concerns_tasks_with_its_demand(
    plugin: Any, demand: str, scores_always: bool
) -> None:
    assert plugin.concerns(task(**{demand: "1"}), "filter")
    assert plugin.concerns(task(**{demand: "1"}), "score")
    assert not plugin.concerns(task(other="1"), "filter")
    assert plugin.concerns(task(other="1"), "score") is scores_always


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3.0),
        ("0", 0.0),
        ("1e3", 1_000.0),
        ("-1", None),
        ("inf", None),
        ("x", None),
        ("nan", None),
    ],
)
def test_demands_are_numbers_from_zero_on(text: str, expected: float | None) -> None:
    assert number_in(task(a=text), "a", 7.0) == expected
    assert number_in(task(), "a", 7.0) == 7.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2", 2.0), ("0.5", 0.5), ("0", 1.0), ("-2", 1.0), ("inf", 1.0), ("", 1.0), ("fast", 1.0)],
)
def test_a_speed_that_makes_no_sense_is_the_usual_one(text: str, expected: float) -> None:
    assert _positive(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("rome", {"rome": 1.0}),
        ("rome=2, oslo=0.5,", {"rome": 2.0, "oslo": 0.5}),
        ("rome=0", None),
        ("rome=-1", None),
        ("rome=inf", None),
        ("=2", None),
        ("rome=x", None),
    ],
)
def test_users_have_weights(text: str, expected: dict[str, float] | None) -> None:
    assert _weights(text) == expected


class TestServiceLevel:
    def test_work_takes_longer_where_less_is_left(self) -> None:
        seen = nodes(FOUR, Site(labels={"speed": ["", "2", "", ""]}))
        slowness = ServiceLevel()._slowness(seen)
        # Idle; a quarter in use, at twice the speed; three quarters; never more than 95 %.
        assert slowness.tolist() == pytest.approx([1.0, 1 / 1.5, 4.0, 20.0])
        bare = Nodes(
            seen.machines, seen.capacity, seen.free, ("x", "memory"), seen.source, seen.places
        )
        assert ServiceLevel()._slowness(bare).tolist() == [1.0, 0.5, 1.0, 1.0]

    def test_a_trip_is_there_and_back_to_the_average_user(self) -> None:
        seen = nodes([4_000, 4_000], Site())
        trips = ServiceLevel()._trips({"oslo": 3.0, "rome": 1.0}, seen)
        assert trips.tolist() == pytest.approx([0.75 * 1 + 0.25 * 50, 0.75 * 50 + 0.25 * 1])
        assert ServiceLevel()._trips({"oslo": 1.0, "mars": 1.0}, seen).tolist() == [inf, inf]
        assert ServiceLevel()._trips({}, seen).tolist() == [0.0, 0.0]

    def test_the_score_is_what_is_left_of_the_objective(self) -> None:
        seen = nodes([4_000, 2_000], Site())
        # 10 ms on an idle machine, 20 on one half in use; of 40, 20 and 5.
        for objective, expected in (
            ("40", [75, 50]),
            ("20", [50, 0]),
            ("5", [0, 0]),
            ("0", [0, 0]),
        ):
            assert (
                ServiceLevel().score(task(objective=objective, work="10"), seen).tolist()
                == expected
            )


class TestVolume:
    def test_a_new_volume_may_be_anywhere(self) -> None:
        seen = nodes([4_000] * 2, Site())
        assert Volume().score(task(volume="new"), seen).tolist() == [MOST, MOST]
        assert Volume().conflict(task(volume="new"), seen) is None

    def test_a_volume_elsewhere_is_a_conflict(self) -> None:
        seen = nodes([4_000] * 2, Site(volumes={"v": [1]}))
        assert Volume().conflict(task(volume="v"), seen) == Refusal(Why.STALE, machine=0)
        assert Volume().score(task(volume="v"), seen).tolist() == [MOST // 2, MOST]


class TestBatchShare:
    def test_only_what_is_asked_for_counts(self) -> None:
        seen = nodes(FOUR, Site())
        half = Requirements(Resources(1_000, 0), demands={"batch_share": "0.5"})
        # With the task, 1, 2, 4 and 5 of 4 cores are in use.
        assert BatchShare().keeps(half, seen).tolist() == [True, True, False, False]
        memory = Requirements(Resources(0, GIB), demands={"batch_share": "0.25"})
        assert BatchShare().keeps(memory, seen).tolist() == [True] * 4
        nothing = Requirements(Resources(0, 0), demands={"batch_share": "0"})
        assert BatchShare().keeps(nothing, seen).tolist() == [True] * 4
        gpu = Requirements(Resources(0, 0, {"gpu": 1}), demands={"batch_share": "1"})
        assert not BatchShare().keeps(gpu, seen).any()

    def test_a_conflict_says_by_how_much(self) -> None:
        seen = nodes([1_000], Site())
        asked = Requirements(Resources(500, 2 * GIB), demands={"batch_share": "0.25"})
        told = BatchShare().conflict(asked, seen)
        assert told == Refusal(Why.NO_ROOM, machine=0, dimension="cpu", lacking=2_500)
        memory = Requirements(Resources(0, 2 * GIB), demands={"batch_share": "0.25"})
        told = BatchShare().conflict(memory, seen)
        assert told == Refusal(Why.NO_ROOM, machine=0, dimension="memory", lacking=GIB)
        unread = Requirements(Resources(1, 1), demands={"batch_share": "x"})
        assert BatchShare().conflict(unread, seen) == Refusal(Why.STALE, machine=0)
        assert BatchShare().conflict(Requirements(Resources(9_000, 0)), seen) is None


def test_batch_jobs_are_sorted_by_precedence_and_estimate() -> None:
    rank = BatchSort().rank
    service = job("s", seconds=None, precedence=2).job
    assert rank(service, 5) == (0, -2, 0, 0)
    assert rank(job("a", seconds=3, precedence=1).job, 5) == (1, -1, 0, 3 * SECOND)


class TestResourcesFit:
    def test_the_first_resource_that_each_machine_lacks_is_counted(self) -> None:
        seen = nodes([4_000, 500, 500], Site())
        asked = Requirements(Resources(1_000, 8 * GIB))
        assert ResourcesFit().reasons(asked, seen) == {"cpu": 2, "memory": 1}
        unknown = Requirements(Resources(1, 1, {"gpu": 2}))
        assert ResourcesFit().reasons(unknown, seen) == {"gpu": 3}
        told = ResourcesFit().conflict(unknown, seen)
        assert told == Refusal(Why.NO_ROOM, machine=0, dimension="gpu", lacking=2)

    def test_room_that_is_just_enough_is_enough(self) -> None:
        seen = nodes([1_000, 999], Site())
        asked = Requirements(Resources(1_000, 4 * GIB))
        assert ResourcesFit().keeps(asked, seen).tolist() == [True, False]
        assert ResourcesFit().conflict(asked, seen) is None
        assert ResourcesFit().score(asked, seen).tolist() == [0, 0]
        half = Requirements(Resources(500, 0))
        assert ResourcesFit().score(half, nodes([4_000, 2_500], Site())).tolist() == [87, 50]
        nothing = Requirements(Resources(0, 0))
        assert ResourcesFit().score(nothing, seen).tolist() == [MOST, MOST]


class TestGeoLocation:
    def test_machines_are_kept_up_to_the_distance(self) -> None:
        # A degree of latitude is about 111 km.
        seen = labelled(location=["0,0", "0.5,0", "2,0", "", "x"])
        near = task(location="0,0")
        assert GeoLocation().keeps(near, seen).tolist() == [True, True, False, False, False]
        assert GeoLocation().score(near, seen).tolist() == [100, 45, 0, 0, 0]
        far = task(location="0,0", distance="300")
        assert GeoLocation().keeps(far, seen).tolist() == [True, True, True, False, False]
        here = task(location="0,0", distance="0")
        assert GeoLocation().keeps(here, seen).tolist() == [True] + [False] * 4
        assert GeoLocation().score(here, seen).tolist() == [100] * 5

    def test_what_cannot_be_read_is_met_nowhere_and_what_is_not_asked_everywhere(self) -> None:
        seen = labelled(location=["0,0", ""])
        for demands in ({"location": "x"}, {"location": "0,0", "distance": "x"}):
            assert not GeoLocation().keeps(task(**demands), seen).any()
        assert GeoLocation().keeps(task(), seen).all()
        assert GeoLocation().score(task(), seen).tolist() == [MOST, MOST]


class TestBattery:
    SEEN = labelled(battery=["50", "49.9", "", "x", "120", "-3"])

    def test_levels_are_at_least_what_is_asked_for(self) -> None:
        kept = BatteryLevel().keeps(task(battery="50"), self.SEEN)
        assert kept.tolist() == [True, False, True, False, True, False]
        assert not BatteryLevel().keeps(task(battery="x"), self.SEEN).any()
        assert BatteryLevel().keeps(task(), self.SEEN).all()

    def test_the_score_is_the_level(self) -> None:
        assert BatteryLevel().score(task(), self.SEEN).tolist() == [50, 49, 100, 0, 100, 0]


def test_machines_take_turns_over_all_requests() -> None:
    strategy, random = RoundRobinStrategy(), Random(1)
    machines = np.array([2, 3, 5, 8], np.int32)

    def draw(count: int, among: Any = machines) -> list[int]:
        found: list[int] = strategy.draw(task(), among, count, random).tolist()
        return found

    assert draw(3) == [2, 3, 5]
    assert draw(3) == [8, 2, 3]
    assert draw(9) == [5, 8, 2, 3]
    assert draw(1, machines[:0]) == []
    assert draw(1, machines[1:]) == [5]
