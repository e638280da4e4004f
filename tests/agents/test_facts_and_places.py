"""What plug-ins can know of machines: labels, volumes, places and distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from argosy.agents.api import Nodes, Requirements
from argosy.agents.facts import CellFacts, ToldFacts
from argosy.agents.globe import EARTH_RADIUS, chord_of, position
from argosy.agents.learned import LearnedStrategy, NetworkLatency
from argosy.agents.sampling import DrawnSample, merged, sample_size
from argosy.cell import Cell
from argosy.model.machines import CLUSTER_GROUP, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
from argosy.testing.builders import GIB

PLACES = {"c0": "vienna", "c1": "rome"}


def a_cell() -> Cell:
    """Two clusters of two machines; the second machine of each lists volumes."""
    cell = Cell(("cpu", "memory"), {CLUSTER_GROUP: ("c0", "c1")}, audited=True)
    for number in range(4):
        listed = {"volumes": f"v{number},shared"} if number % 2 else {}
        machine = Machine(
            f"m{number}",
            Resources(4_000, GIB),
            attributes=listed,
            joins={CLUSTER_GROUP: (f"c{number // 2}",)},
        )
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    return cell


def test_volumes_are_where_machines_list_them_or_the_first_task_made_them() -> None:
    facts = CellFacts(a_cell().view())
    assert facts.volume_homes("v1") == {1}
    assert facts.volume_homes("shared") == {1, 3}
    # Not a part of a name.
    assert facts.volume_homes("share") == set()
    facts.create_volume("new", 2)
    facts.create_volume("new", 0)
    facts.create_volume("v1", 0)
    assert facts.volume_homes("new") == {2}
    assert facts.volume_homes("v1") == {1}


def test_a_job_is_at_the_places_of_its_machines() -> None:
    machines = {"j": [0, 1], "both": [1, 2], "none": []}
    view = a_cell().view()
    facts = CellFacts(view, lambda one, other: 7, PLACES, machines.__getitem__)
    assert [facts.cluster_of(number) for number in range(4)] == ["c0", "c0", "c1", "c1"]
    assert set(facts.places_of("j")) == {"vienna"}
    assert set(facts.places_of("both")) == {"vienna", "rome"}
    assert set(facts.places_of("none")) == set()
    assert facts.delay("vienna", "rome") == 7
    alone = CellFacts(view, machines_of=machines.__getitem__)
    assert alone.cluster_of(0) == ""
    assert set(alone.places_of("j")) == set()
    assert alone.delay("vienna", "rome") is None


def test_an_agent_knows_of_elsewhere_what_it_is_told() -> None:
    facts = ToldFacts(a_cell().view(), "vienna", "48,16")
    assert facts.delay("vienna", "rome") is None
    facts.hear({"rome": 9_000}, {"j": ("rome",)})
    assert facts.delay("vienna", "rome") == 9_000
    assert facts.delay("vienna", "oslo") is None
    assert facts.delay("rome", "rome") is None
    assert facts.places_of("j") == ("rome",)
    assert facts.places_of("k") == ()
    both = np.array([0, 1], np.int32)
    assert list(facts.labels("location", both)) == ["48,16", "48,16"]
    assert list(facts.labels("volumes", both)) == ["", "v1,shared"]
    nowhere = ToldFacts(a_cell().view(), "vienna", "")
    assert list(nowhere.labels("location", both)) == ["", ""]


def nodes(source: Any, machines: list[int], *places: str) -> Nodes:
    count = len(machines)
    amounts = np.tile(np.array([[1_000, GIB]], np.int64), (count, 1))
    return Nodes(np.array(machines, np.int32), amounts, amounts, ("cpu", "memory"), source, places)


def test_machines_keep_their_places_when_they_are_joined_or_left_out() -> None:
    facts = CellFacts(a_cell().view())
    here, there = nodes(facts, [0, 1], "vienna"), nodes(facts, [2], "rome")
    assert Nodes.joined([here, here]).places == ("vienna",)
    mixed = Nodes.joined([here, there])
    assert mixed.each_place() == ("vienna", "vienna", "rome")
    assert mixed.machines.tolist() == [0, 1, 2]
    assert mixed.only(np.array([False, True, True])).each_place() == ("vienna", "rome")
    assert here.only(np.array([False, True])).each_place() == ("vienna",)
    twice = Nodes.joined([mixed, mixed])
    assert twice.each_place() == mixed.each_place() * 2


def task(**demands: str) -> Requirements:
    return Requirements(request=Resources(1_000, 0), requires={}, demands=demands)


@pytest.mark.parametrize(
    ("demands", "kept", "scores"),
    [
        ({}, [True, True, True], [100, 100, 100]),
        ({"near": "vienna", "latency": "20"}, [True, True, False], [95, 50, 0]),
        # Exactly as far as it may be.
        ({"near": "vienna", "latency": "10"}, [True, True, False], [90, 0, 0]),
        ({"near": "vienna", "latency": "9.9"}, [True, False, False], [90, 0, 0]),
        ({"near": "vienna", "latency": "odd"}, [False, False, False], [100, 100, 100]),
        ({"near_job": "j", "latency": "20"}, [True, True, False], [50, 95, 0]),
        ({"near_job": "nobody", "latency": "20"}, [False, False, False], [0, 0, 0]),
        # The nearest machine of a job counts, and the farther of two wishes.
        ({"near_job": "both", "latency": "20"}, [True, True, False], [95, 95, 0]),
        (
            {"near": "vienna", "near_job": "j", "latency": "20"},
            [True, True, False],
            [50, 50, 0],
        ),
    ],
)
def test_machines_are_near_enough_by_their_round_trip(
    demands: dict[str, str], kept: list[bool], scores: list[int]
) -> None:
    class Source:
        def delay(self, one: str, other: str) -> int | None:
            known = {
                "vienna": {"vienna": 500, "rome": 5_000},
                "rome": {"vienna": 5_000, "rome": 500},
            }
            return known.get(one, {}).get(other)

        def places_of(self, job: str) -> list[str]:
            return {"j": ["rome"], "both": ["rome", "vienna"]}.get(job, [])

    offered = nodes(Source(), [0, 1, 2], "vienna", "rome", "nowhere")
    plugin = NetworkLatency()
    assert plugin.concerns(task(**demands), "filter") == bool(demands)
    assert plugin.keeps(task(**demands), offered).tolist() == kept
    assert plugin.score(task(**demands), offered).tolist() == scores


def test_a_learner_draws_what_fitted_and_explores_a_little() -> None:
    strategy, machines = LearnedStrategy(), np.arange(40, dtype=np.int32)
    asked = task()
    assert strategy.draw(asked, machines[:0], 4, Random(1)).tolist() == []
    strategy.learn(asked, machines[:10], np.arange(10) % 2 == 0)
    known = {0, 2, 4, 6, 8}
    for count in (1, 4, 16, 40):
        drawn = strategy.draw(asked, machines, count, Random(count)).tolist()
        assert len(set(drawn)) == len(drawn) == min(count, 40)
        hits = len(known & set(drawn))
        assert hits >= min(5, count - count // 2)
    # Other requests are another kind.
    other = strategy.draw(task(near="x"), machines, 5, Random(3)).tolist()
    assert set(other) != known


@pytest.mark.parametrize(
    ("latitude", "longitude"),
    [(0, 0), (90, 0), (-90, 180), (48.2, 16.4), (-33.9, -180), (10, 179.5), (-0.5, -90)],
)
def test_a_place_on_earth_is_a_point_of_the_unit_sphere(latitude: float, longitude: float) -> None:
    phi, theta = math.radians(latitude), math.radians(longitude)
    flat = math.cos(phi)
    expected = (flat * math.cos(theta), flat * math.sin(theta), math.sin(phi))
    assert position(f"{latitude},{longitude}") == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("text", ["90.1,0", "-90.1,0", "0,180.1", "0,-180.1", "1", "1,2,3"])
def test_places_beyond_the_poles_or_the_date_line_are_none(text: str) -> None:
    assert position(text) is None


def test_chords_rise_with_distance_to_half_the_way_around() -> None:
    around = 2 * math.pi * EARTH_RADIUS
    assert chord_of(0) == 0
    assert chord_of(around / 6) == pytest.approx(1.0)
    assert chord_of(around / 4) == pytest.approx(math.sqrt(2))
    assert chord_of(around / 2) == pytest.approx(2.0)
    assert chord_of(around) == 2.0


def test_what_shards_have_drawn_is_added_up() -> None:
    def shard(machine: int, **ruled_out: int) -> DrawnSample:
        one = np.array([machine])
        return DrawnSample(
            one.astype(np.int32),
            np.array([[machine, 1]], np.int64),
            one.astype(np.uint32),
            np.array([[7]], np.int64),
            10 + machine,
            ruled_out,
        )

    first, second = shard(1, cpu=2, down=1), shard(2, cpu=3)
    assert merged([first]) is first
    both = merged([first, second])
    assert both.ruled_out == {"cpu": 5, "down": 1}
    assert both.drawn == 23
    assert both.machines.tolist() == both.versions.tolist() == [1, 2]
    assert both.free.tolist() == [[1, 1], [2, 1]]
    assert both.scores.tolist() == [[7], [7]]


@pytest.mark.parametrize(
    ("share", "machines", "size"),
    [(0.07, 100, 7), (0.071, 100, 8), (0.0, 100, 1), (1.0, 3, 3), (0.5, 3, 2), (0.5, 0, 1)],
)
def test_samples_are_rounded_up_and_never_empty(share: float, machines: int, size: int) -> None:
    assert sample_size(share, machines) == size
