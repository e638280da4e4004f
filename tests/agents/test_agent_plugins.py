"""The plug-ins of pipelines: what each keeps, how it scores, and how one is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from argosy.agents import registry
from argosy.agents.api import (
    Binding,
    ClaimCheck,
    Filter,
    Nodes,
    Requirements,
    Score,
    Sorting,
    Strategy,
)
from argosy.agents.builtin import (
    ArrivalSort,
    BatteryLevel,
    GeoLocation,
    PrioritySort,
    RandomStrategy,
    ResourcesFit,
    RoundRobinStrategy,
    positions,
)
from argosy.agents.globe import chord_of, chords, position
from argosy.agents.learned import LearnedStrategy, NetworkLatency
from argosy.model.errors import SettingError
from argosy.model.explanations import Why
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import MachineArray
from argosy.testing.builders import GIB, job

VIENNA, GRAZ, ROME = "48.21,16.37", "47.07,15.44", "41.89,12.48"
TASK = Requirements(Resources(1_000, GIB))


class Facts:
    def __init__(self, **labels: Sequence[str]) -> None:
        self._labels: Mapping[str, Sequence[str]] = labels

    def labels(self, key: str, machines: MachineArray) -> Sequence[str]:
        column = self._labels.get(key)
        return [""] * len(machines) if column is None else [column[m] for m in machines]

    def delay(self, one: str, other: str) -> int | None:
        return {("oslo", "rome"): 25_000, ("rome", "rome"): 500}.get((one, other))

    def cluster_of(self, machine: int) -> str:
        return ""

    def places_of(self, job: str) -> Sequence[str]:
        return ()

    def volume_homes(self, volume: str) -> Sequence[int]:
        return ()


def nodes(
    free: list[tuple[int, int]],
    capacity: tuple[int, int] = (4_000, 4),
    places: tuple[str, ...] = ("",),
    **labels: Sequence[str],
) -> Nodes:
    """Machines with this much free: milli-cores, and GiB of memory."""
    rows = np.array(free, np.int64) * np.array([1, GIB])
    full = np.tile(np.array(capacity, np.int64) * np.array([1, GIB]), (len(free), 1))
    machines = np.arange(len(free), dtype=np.int32)
    return Nodes(machines, full, rows, ("cpu", "memory"), Facts(**labels), places)


def demanding(**demands: str) -> Requirements:
    return Requirements(Resources(1_000, GIB), demands=demands)


def test_resources_fit_keeps_machines_with_room_and_prefers_empty_ones() -> None:
    plugin, seen = ResourcesFit(), nodes([(4_000, 4), (2_000, 4), (999, 4), (4_000, 0)])
    assert plugin.keeps(TASK, seen).tolist() == [True, True, False, False]
    kept = seen.only(plugin.keeps(TASK, seen))
    # 3 of 4 cores and 3 of 4 GiB are left; 1 of 4 cores and 3 of 4 GiB.
    assert plugin.score(TASK, kept).tolist() == [75, 50]
    dropped = seen.only(~plugin.keeps(TASK, seen))
    assert plugin.reasons(TASK, dropped) == {"cpu": 1, "memory": 1}
    assert plugin.reasons(TASK, nodes([(4_000, 0)])) == {"memory": 1}


def test_resources_fit_scores_only_what_is_asked_for() -> None:
    only_memory = Requirements(Resources(0, GIB))
    assert ResourcesFit().score(only_memory, nodes([(0, 4)])).tolist() == [75]
    assert ResourcesFit().score(Requirements(Resources()), nodes([(0, 0)])).tolist() == [100]


def test_a_resource_that_no_machine_has_fits_nowhere() -> None:
    task, seen = Requirements(Resources(0, 0, {"gpu": 1})), nodes([(4_000, 4)])
    assert not ResourcesFit().keeps(task, seen).any()
    assert ResourcesFit().reasons(task, seen) == {"gpu": 1}
    refusal = ResourcesFit().conflict(task, seen)
    assert refusal is not None
    assert (refusal.dimension, refusal.lacking) == ("gpu", 1)


def test_a_conflict_says_what_is_lacking() -> None:
    assert ResourcesFit().conflict(TASK, nodes([(1_000, 1)])) is None
    refusal = ResourcesFit().conflict(TASK, nodes([(400, 1)]))
    assert refusal is not None
    assert (refusal.why, refusal.dimension, refusal.lacking) == (Why.NO_ROOM, "cpu", 600)


def test_distances_on_the_earth() -> None:
    here = position(VIENNA)
    assert here is not None
    kilometres = np.array([0, 145, 765])
    found = chords(here, [VIENNA, GRAZ, ROME])
    limits = np.array([chord_of(float(each)) for each in kilometres])
    assert found == pytest.approx(limits, rel=0.01, abs=1e-9)
    assert chord_of(30_000) == 2.0
    assert [position(text) for text in ("", "48", "91,0", "0,181", "x,y", "nan,0")] == [None] * 6


def test_a_location_keeps_machines_that_are_near_and_prefers_the_nearest() -> None:
    seen = nodes([(4_000, 4)] * 4, location=[VIENNA, GRAZ, ROME, ""])
    near = demanding(location=VIENNA, distance="200")
    assert GeoLocation().keeps(near, seen).tolist() == [True, True, False, False]
    at_hand, next_town = GeoLocation().score(near, seen).tolist()[:2]
    assert (at_hand, next_town) == (100, 28)
    # 100 km by default.
    assert GeoLocation().keeps(demanding(location=VIENNA), seen).tolist() == [True] + [False] * 3
    assert GeoLocation().keeps(TASK, seen).all()
    assert GeoLocation().score(TASK, seen).tolist() == [100] * 4


def test_a_battery_level_counts_only_where_there_is_a_battery() -> None:
    seen = nodes([(4_000, 4)] * 4, battery=["80", "29", "", "unknown"])
    assert BatteryLevel().keeps(demanding(battery="30"), seen).tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert BatteryLevel().keeps(TASK, seen).all()
    assert BatteryLevel().score(TASK, seen).tolist() == [80, 29, 100, 0]


def test_latency_to_a_place_excludes_far_clusters_and_unknown_ones() -> None:
    seen = nodes([(4_000, 4)] * 3, places=("rome", "oslo", "paris"))
    near = demanding(near="rome", latency="50")
    assert NetworkLatency().keeps(near, seen).tolist() == [True, True, False]
    assert NetworkLatency().score(near, seen).tolist() == [98, 0, 0]
    assert NetworkLatency().keeps(demanding(near="rome", latency="49"), seen).sum() == 1
    assert NetworkLatency().keeps(TASK, seen).all()


@pytest.mark.parametrize(
    ("plugin", "demands"),
    [
        (GeoLocation(), {"location": "here"}),
        (GeoLocation(), {"location": VIENNA, "distance": "far"}),
        (BatteryLevel(), {"battery": "-1"}),
        (NetworkLatency(), {"near": "rome", "latency": "soon"}),
    ],
)
def test_no_machine_meets_a_demand_that_cannot_be_read(
    plugin: Filter, demands: dict[str, str]
) -> None:
    seen = nodes([(4_000, 4)] * 2, places=("rome",), location=[VIENNA] * 2, battery=["90"] * 2)
    assert not plugin.keeps(demanding(**demands), seen).any()


def test_sorting_is_by_precedence_or_by_arrival() -> None:
    high, low = (job("a", precedence=precedence).job for precedence in (5, 1))
    assert PrioritySort().rank(high, 9) < PrioritySort().rank(low, 0)
    assert ArrivalSort().rank(high, 9) == ArrivalSort().rank(low, 0)


@pytest.mark.parametrize(("total", "count"), [(10, 4), (1_000, 50), (6, 6), (5, 9), (0, 3)])
def test_random_positions_are_different_and_as_many_as_there_are(total: int, count: int) -> None:
    chosen = positions(total, count, Random(3)).tolist()
    assert len(chosen) == len(set(chosen)) == min(total, count)
    assert all(0 <= each < total for each in chosen)


def test_random_draws_reach_every_machine_about_equally_often() -> None:
    random, machines = Random(5), np.arange(100, 120, dtype=np.int32)
    drawn = [RandomStrategy().draw(TASK, machines, 5, random) for _ in range(400)]
    counts = np.bincount(np.concatenate(drawn), minlength=120)[100:]
    # 100 each on average.
    assert 60 < counts.min() <= counts.max() < 150


def test_round_robin_goes_on_where_the_last_request_ended() -> None:
    strategy, machines = RoundRobinStrategy(), np.array([2, 4, 6, 8, 10], np.int32)
    turns = [strategy.draw(TASK, machines, 2, Random(1)).tolist() for _ in range(4)]
    assert turns == [[2, 4], [6, 8], [10, 2], [4, 6]]
    # In a later round of one request, machines already drawn are left out.
    assert strategy.draw(TASK, machines[:2], 5, Random(1)).tolist() == [2, 4]
    assert not len(strategy.draw(TASK, machines[:0], 5, Random(1)))


def test_learned_sampling_prefers_what_fitted_similar_tasks_and_goes_on_exploring() -> None:
    strategy, random = LearnedStrategy(), Random(7)
    machines = np.arange(100, dtype=np.int32)
    good = np.isin(machines, [3, 14, 15, 92, 65, 35])
    strategy.learn(TASK, machines, good)
    drawn = strategy.draw(TASK, machines, 8, random)
    assert len(set(drawn.tolist())) == 8
    assert good[drawn].sum() == 6
    # Others know nothing of it, and what no longer fits is no longer preferred.
    other = Requirements(Resources(2_000, GIB))
    assert good[strategy.draw(other, machines, 8, random)].sum() < 6
    strategy.learn(TASK, machines, np.zeros(100, np.bool_))
    assert good[strategy.draw(TASK, machines, 8, random)].sum() < 6


def test_every_plug_in_has_a_role_and_is_found_by_its_name() -> None:
    roles = (Sorting, Strategy, Filter, Score, ClaimCheck, Binding)
    for name, kind in registry.PLUGINS.items():
        has = [role for role in roles if isinstance(kind(), role)]
        assert has, name
        assert all(isinstance(registry.make(name, role), kind) for role in has)
    assert registry.names(Strategy) == ["Random", "RoundRobin", "Learned"]
    assert registry.names(Filter) == [
        "ResourcesFit", "GeoLocation", "BatteryLevel", "NetworkLatency", "Volume", "BatchShare"
    ]  # fmt: skip


def test_an_unknown_plug_in_is_an_error_with_a_hint() -> None:
    with pytest.raises(SettingError, match="no filter 'ResourceFit'") as caught:
        registry.make("ResourceFit", Filter)
    assert caught.value.hint == "did you mean 'ResourcesFit'?"
    with pytest.raises(SettingError, match=r"'Random' is no filter.*one of ResourcesFit"):
        registry.make("Random", Filter)


@pytest.mark.parametrize(
    ("total", "count", "drawn"),
    [
        # Up to three times as many: all are shuffled.
        (12, 4, [(12, 2**62)]),
        (3, 9, [(3, 2**62)]),
        # Few of many: a few more than are wanted, again until there are enough.
        (13, 4, [(12, 13)]),
        (1_000, 2, [(10, 1_000), (10, 1_000)]),
    ],
)
def test_few_of_many_are_drawn_without_shuffling_all(
    total: int, count: int, drawn: list[tuple[int, int]]
) -> None:
    asked: list[tuple[int, int]] = []

    class Drawing:
        def integers(self, many: int, below: int) -> np.ndarray[Any, np.dtype[np.int64]]:
            asked.append((many, below))
            # The first time, all numbers are the same if a second time is expected.
            same = len(asked) < len(drawn)
            return np.full(many, 7) if same else np.arange(many)[::-1].astype(np.int64)

    random: Any = Drawing()
    found = positions(total, count, random).tolist()
    assert asked == drawn
    assert len(set(found)) == len(found) == min(total, count)
    if len(drawn) == 2:
        assert found == [7, 9]
