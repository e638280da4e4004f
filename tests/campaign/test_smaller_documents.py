"""Steps by which a scenario becomes smaller, one by one, and what is drawn by dice."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from argosy.campaign.cells import DrawnCell, amounts, draw_cell, draw_places
from argosy.campaign.dice import FEATURES, Dice
from argosy.campaign.jobs import draw_jobs, draw_operator_constraints
from argosy.campaign.shrink import (
    Shrinker,
    _at,
    _machines,
    _one_cell,
    _one_group,
    _places,
    _with,
    _without,
    mended,
)
from argosy.campaign.surroundings import draw_faults, draw_machine_model, draw_network
from argosy.model.random import Random

GIB = 2**30


class TestPlaces:
    DOCUMENT: ClassVar[Any] = {"a": {"b": [1, {"c": 2}]}, "d": 3}

    def test_outer_places_come_before_inner_ones(self) -> None:
        assert list(_places(self.DOCUMENT)) == [
            ("a",),
            ("a", "b"),
            ("a", "b", 0),
            ("a", "b", 1),
            ("a", "b", 1, "c"),
            ("d",),
        ]

    def test_what_is_at_a_place(self) -> None:
        assert _at(self.DOCUMENT, ("a", "b", 1, "c")) == 2
        assert _at(self.DOCUMENT, ()) is self.DOCUMENT
        for nothing in (("x",), ("a", "b", 2), ("d", "x"), ("a", "b", "x")):
            assert _at(self.DOCUMENT, nothing) is None
            assert _with(self.DOCUMENT, nothing, 5) is None
            assert _without(self.DOCUMENT, nothing) is None

    def test_a_value_is_replaced_or_left_out_of_a_copy(self) -> None:
        assert _with(self.DOCUMENT, ("a", "b", 0), 9) == {"a": {"b": [9, {"c": 2}]}, "d": 3}
        assert _without(self.DOCUMENT, ("a", "b", 0)) == {"a": {"b": [{"c": 2}]}, "d": 3}
        # An empty table goes with its last key, an empty list does not.
        assert _without(self.DOCUMENT, ("a", "b", 1, "c")) == {"a": {"b": [1]}, "d": 3}
        assert _without(self.DOCUMENT, ("a", "b")) == {"d": 3}
        assert _without({"d": 3}, ("d",)) == {}
        assert self.DOCUMENT == {"a": {"b": [1, {"c": 2}]}, "d": 3}

    def test_a_single_group_is_the_job_itself(self) -> None:
        def document(*groups: dict[str, int]) -> dict[str, Any]:
            return {"workload": {"jobs": [{"id": "a", "groups": list(groups)}]}}

        assert _one_group(document({"count": 2}), 0) == {
            "workload": {"jobs": [{"id": "a", "count": 2}]}
        }
        assert _one_group(document({"count": 2}, {"count": 3}), 0) is None
        assert _one_group({"workload": {"jobs": [{"id": "a"}]}}, 0) is None
        assert _one_group(document({"count": 2}), 1) is None

    def test_machines_have_the_names_that_they_have_in_a_run(self) -> None:
        document = {
            "cell": {"machines": [{"name": "m"}, {"name": "n", "count": 2}]},
            "clusters": [{"name": "c", "machines": [{"name": "m", "count": 1}]}],
        }
        assert list(_machines(document)) == ["m", "n-0", "n-1", "c/m"]
        assert _one_cell({"fleet": []}) is None


class TestSteps:
    def test_halves_are_left_out_before_single_ones(self) -> None:
        tried: list[list[int]] = []

        def fails(document: dict[str, Any]) -> bool:
            numbers = [fault["at"] for fault in document.get("faults", ())]
            tried.append(numbers)
            return 5 in numbers

        faults = [{"at": at} for at in range(8)]
        shrinker = Shrinker({"faults": faults, "fleet": []}, fails)
        shrinker._thin_out(("faults",))
        assert shrinker.document["faults"] == [{"at": 5}]
        assert tried[:4] == [[4, 5, 6, 7], [6, 7], [4, 5], [5]]
        assert shrinker.tries == len(tried)

    def test_nothing_is_tried_twice_or_when_the_time_is_up(self) -> None:
        tried: list[Any] = []
        over = False
        shrinker = Shrinker(
            {"a": 1, "b": 2},
            lambda document: bool(tried.append(document)),
            most=3,
            is_over=lambda: over,
        )
        assert not shrinker._try({"a": 1})
        assert not shrinker._try({"a": 1})
        assert not shrinker._try(None)
        assert not shrinker._try({"a": 1, "b": 2, "c": []}), "that is the same"
        assert len(tried) == shrinker.tries == 1
        over = True
        assert not shrinker._try({"b": 2})
        over = False
        assert not shrinker._try({"b": 2})
        assert not shrinker._try({"b": 3})
        assert not shrinker._try({"b": 4})
        assert tried == [{"a": 1}, {"b": 2}, {"b": 3}]

    def test_what_fails_becomes_the_document(self) -> None:
        shrinker = Shrinker({"a": 1, "b": 2}, lambda document: "b" in document)
        assert shrinker._try({"b": 2, "faults": []})
        assert shrinker.document == {"b": 2}
        assert shrinker.run() == {"b": 0}

    @pytest.mark.parametrize(
        ("kinds", "fleet", "expected"),
        [
            (["batch"], [{"takes": {"kinds": ["batch"]}}], True),
            (["batch", "service"], [{"takes": {"kinds": ["batch"]}}], False),
            (["service"], [{"takes": {"kinds": ["batch"]}}, {}], True),
            (["service"], [{"takes": {"kinds": ["x"]}}, {"takes": {"kinds": ["service"]}}], True),
        ],
    )
    def test_every_kind_keeps_a_taker(
        self, kinds: list[str], fleet: list[dict[str, Any]], expected: bool
    ) -> None:
        named = [{"name": f"s{at}", "engine": "e", **entry} for at, entry in enumerate(fleet)]
        jobs = [{"id": f"j{at}", "kind": kind} for at, kind in enumerate(kinds)]
        again = mended({"fleet": named, "workload": {"jobs": jobs}})
        assert ("takes" in again["fleet"][0]) == expected


def many(draw: Any, count: int = 300, without: frozenset[str] = frozenset()) -> list[Any]:
    return [draw(Dice(Random(seed), without)) for seed in range(count)]


class TestDice:
    def test_numbers_are_between_their_bounds_and_reach_both(self) -> None:
        assert set(many(lambda dice: dice.among(3, 5))) == {3, 4, 5}
        assert set(many(lambda dice: dice.among(3, 3))) == {3}
        assert set(many(lambda dice: dice.one_of("ab"))) == {"a", "b"}
        shares = many(lambda dice: dice.share(), 2_000)
        assert (min(shares), max(shares)) == (0.0, 1.0)
        assert all(share == round(share, 2) for share in shares)
        assert set(many(lambda dice: dice.time(0, 5_000))) == {"0s", "5ms"}
        rare = sum(many(lambda dice: dice.chance(0.1), 1_000))
        assert 60 < rare < 140

    def test_some_are_at_least_so_many_and_in_their_order(self) -> None:
        for least, sizes in ((0, {0, 1, 2, 3}), (1, {1, 2, 3}), (3, {3})):
            found = many(lambda dice, least=least: dice.some_of("abc", least))
            assert set(map(len, found)) == sizes
            assert all(each == sorted(each) for each in found)
        assert many(lambda dice: dice.some_of("abc", 2), 300, frozenset()).count(["a", "b"]) > 50

    def test_what_is_left_out_is_drawn_all_the_same(self) -> None:
        def both(dice: Dice) -> tuple[bool, int]:
            return dice.has("gangs", 0.5), dice.among(0, 99)

        plain, without = many(both), many(both, without=frozenset({"gangs"}))
        assert [number for _, number in plain] == [number for _, number in without]
        assert {has for has, _ in plain} == {False, True}
        assert {has for has, _ in without} == {False}
        part = Dice(Random(1), frozenset({"gangs"})).part("x")
        assert part.without == {"gangs"}
        with pytest.raises(AssertionError, match="unheard"):
            part.has("unheard", 1)


class TestDraws:
    CELL = DrawnCell(
        {"cell": {}},
        {"m-0": {"cpu": 4_000, "memory": 8 * GIB}, "m-1": {"cpu": 0, "memory": 2 * GIB, "gpu": 4}},
        {"disk": ["ssd"]},
        ["machine", "rack"],
        [],
    )

    def test_amounts_are_in_base_units_and_add_up(self) -> None:
        assert amounts({"cpu": 5, "memory": "3GiB"}) == {"cpu": 5, "memory": 3 * GIB}
        assert amounts({"memory": 0, "gpu": 2}) == {"memory": 0, "gpu": 2}
        assert [self.CELL.total(name) for name in ("cpu", "memory", "gpu", "x")] == [
            4_000,
            10 * GIB,
            4,
            0,
        ]

    def test_cells_know_what_is_in_them(self) -> None:
        found = many(draw_cell)
        assert {"clusters" in each.tables for each in found} == {False, True}
        for each in found:
            parts = each.tables.get("clusters") or [each.tables["cell"]]
            count = sum(table["count"] for part in parts for table in part["machines"])
            assert len(each.capacities) == count
            assert each.groups[0] == "machine"
            assert len(set(each.groups)) == len(each.groups)
            assert ("cluster" in each.groups) == bool(each.places) == ("clusters" in each.tables)
            told = {
                (key, value)
                for part in parts
                for table in part["machines"]
                for key, value in table.get("attributes", {}).items()
            }
            assert told == {(key, v) for key, values in each.attributes.items() for v in values}
        assert max(len(each.attributes) for each in found) == 3
        plain = many(draw_cell, without=frozenset(FEATURES))
        assert all(
            each.groups == ["machine"]
            and set(each.tables) == {"cell"}
            and not each.attributes
            and all(set(machine) == {"cpu", "memory"} for machine in each.capacities.values())
            and all(min(machine.values()) > 0 for machine in each.capacities.values())
            for each in plain
        )

    def test_distances_are_between_different_places(self) -> None:
        assert many(lambda dice: draw_places(dice, self.CELL)) == [None] * 300
        there = DrawnCell({}, {}, {}, [], ["a", "b", "c"])
        found = [each for each in many(lambda dice: draw_places(dice, there)) if each]
        assert 150 < len(found) < 260
        pairs = {pair for each in found for pair in each.get("delays", {})}
        assert pairs == {"a<>b", "a<>c", "b<>c"}
        assert {each["within"] for each in found} == {"0s", "500us", "2ms"}

    def test_faults_hit_what_there_is(self) -> None:
        names = ["s-0", "s-1"]
        found = [f for faults in many(lambda d: draw_faults(d, self.CELL, names)) for f in faults]
        kinds = {fault["kind"] for fault in found}
        assert kinds == {
            "machine-crash",
            "machine-drain",
            "machine-resize",
            "scheduler-crash",
            "random-crashes",
            "partition",
            "agent-down",
            "agent-slow",
            "agent-stale",
        }
        for fault in found:
            assert fault.get("machine", "m-0") in self.CELL.capacities
            assert fault.get("scheduler", "s-0") in names
            assert set(fault.get("isolated", names)) <= set(names)
            assert ("extra" in fault) == (fault["kind"] == "agent-slow")
            assert ("lasts" in fault) or fault["kind"] not in ("partition", "agent-down")
        resized = [fault["capacity"] for fault in found if fault["kind"] == "machine-resize"]
        assert {amounts(each)["cpu"] for each in resized} >= {0, 1_000, 2_000, 4_000, 8_000}
        assert not any(
            many(lambda d: draw_faults(d, self.CELL, names), without=frozenset(FEATURES))
        )

    def test_networks_and_queues_are_drawn_in_all_their_forms(self) -> None:
        networks = many(lambda dice: draw_network(dice, ["s-0", "s-1"]))
        models = {each.get("latency", {}).get("model") for each in networks}
        assert models == {None, "constant", "uniform", "per-pair"}
        assert {each.get("loss") for each in networks} == {None, 0.0, 0.1, 0.5}
        assert all(("extra_delay" in each) == ("reordering" in each) for each in networks)
        models = many(draw_machine_model)
        assert {each.get("queue") for each in models} == {
            None,
            "fcfs",
            "shortest-first",
            "shortest-remaining",
        }
        assert {each.get("limit") for each in models} == {None, 1, 2, 5}
        assert all(("slack" in each) == ("queue" in each) for each in models)
        steals = [each["steal"] for each in models if "steal" in each]
        assert {each["attempts"] for each in steals} == set(range(1, 11))
        nothing = frozenset(FEATURES)
        assert many(draw_machine_model, without=nothing) == [{}] * 300
        assert many(lambda dice: draw_network(dice, ["s"]), without=nothing) == [{}] * 300

    def test_jobs_ask_for_parts_of_machines(self) -> None:
        jobs = [
            made
            for found in many(lambda d: draw_jobs(d, self.CELL, ["batch", "service"]))
            for made in found
        ]
        groups = [group for made in jobs for group in made.get("groups", [made])]
        assert {made["kind"] for made in jobs} == {"batch", "service"}
        oversized = {"cpu": 4_001, "memory": 8 * GIB + 1, "gpu": 5}
        for group in groups:
            for name, amount in group["request"].items():
                most = max(each.get(name, 0) for each in self.CELL.capacities.values())
                assert amount <= most or amount == oversized[name]
            assert len(group.get("durations", [0] * group["count"])) == group["count"]
            assert not {"duration", "durations"} <= set(group)
        assert any(group["request"] == {"cpu": 0} for group in groups)
        endless = [g for g in groups if not {"duration", "durations", "phases"} & set(g)]
        assert endless
        assert not any("estimate" in group for group in endless)
        assert {made["kind"] for made in jobs if "tags" in made} == {"service"}
        assert {made["kind"] for made in jobs if "phases" in made} == {"batch"}
        assert {str(g["requires"]) for g in groups if "requires" in g} == {"{'disk': 'ssd'}"}

    def test_operators_constrain_a_single_cell_alone(self) -> None:
        found = [each for each in many(lambda d: draw_operator_constraints(d, self.CELL)) if each]
        assert 10 < len(found) < 60
        clusters = DrawnCell({"clusters": []}, {}, {}, ["machine"], [])
        assert many(lambda d: draw_operator_constraints(d, clusters)) == [None] * 300
