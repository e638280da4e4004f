"""What campaigns draw of fleets and settings: what holds for all of them, and what occurs at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from argosy.campaign.cells import DrawnCell
from argosy.campaign.dice import FEATURES, Dice
from argosy.campaign.draw import ScenarioSource
from argosy.campaign.fleets import draw_fleet, kinds_taken, scheduler_names
from argosy.campaign.jobs import KINDS
from argosy.campaign.settings import draw_settings, values_of
from argosy.engines.api import Engine, NeededExtra
from argosy.engines.registry import ENGINES
from argosy.model.errors import SettingError
from argosy.model.machines import GroupName
from argosy.model.random import Random
from argosy.model.units import Time

MANY = 200
SHARING = {"omega": ENGINES["omega"], "sparrow": ENGINES["sparrow"], "kube": ENGINES["kube"]}


def drawn_cell(cpu: int = 800, places: Sequence[str] = ()) -> DrawnCell:
    return DrawnCell({"cell": {}}, {"m": {"cpu": cpu, "memory": 1}}, {}, ["machine"], [*places])


def fleets(
    first: str = "omega",
    engines: dict[str, type[Engine]] = SHARING,
    cell: DrawnCell | None = None,
    without: frozenset[str] = frozenset(),
) -> list[list[dict[str, Any]]]:
    used = cell or drawn_cell()
    return [draw_fleet(Dice(Random(seed), without), first, engines, used) for seed in range(MANY)]


class TestFleets:
    def test_a_fleet_has_the_engine_whose_turn_it_is_and_no_more_than_two_others(self) -> None:
        found = fleets()
        assert all(fleet[0] | {"name": "s0", "engine": "omega"} == fleet[0] for fleet in found)
        assert set(map(len, found)) == {1, 2, 3}
        names = [[entry["name"] for entry in fleet] for fleet in found]
        assert all(each == sorted(set(each)) and {*each} <= {"s0", "s1", "s2"} for each in names)

    def test_one_engine_alone_makes_no_mixed_fleet(self) -> None:
        found = fleets(engines={"omega": ENGINES["omega"]})
        assert {len(fleet) for fleet in found} == {1}
        assert not any("takes" in fleet[0] for fleet in found)

    def test_every_kind_of_job_has_a_taker_in_a_mixed_fleet(self) -> None:
        shared = 0
        for fleet in fleets():
            if len(fleet) == 1 and "takes" not in fleet[0]:
                continue
            taken = [entry["takes"]["kinds"] for entry in fleet]
            counts = Counter(kind for kinds in taken for kind in kinds)
            assert set(counts) == set(KINDS)
            assert all(kinds and len(kinds) == len(set(kinds)) for kinds in taken)
            shared += max(counts.values()) > 1
        assert shared

    @pytest.mark.parametrize("first", ["omega", "monolithic"])
    def test_who_must_be_alone_shares_no_kind_of_job(self, first: str) -> None:
        other = {"omega": "monolithic", "monolithic": "omega"}[first]
        mixed = [
            fleet
            for fleet in fleets(first, {name: ENGINES[name] for name in (first, other)})
            if len({entry["engine"] for entry in fleet}) == 2
        ]
        assert mixed
        for fleet in mixed:
            counts = Counter(kind for entry in fleet for kind in entry["takes"]["kinds"])
            assert set(counts.values()) == {1}

    def test_limits_limit_something_and_leave_some_processor(self) -> None:
        for cpu, amounts in ((800, {200, 400, 800}), (0, {1}), (3, {1, 3})):
            limits = [
                fleet[0]["limits"] for fleet in fleets(cell=drawn_cell(cpu)) if "limits" in fleet[0]
            ]
            assert {each["resources"]["cpu"] for each in limits if "resources" in each} == amounts
            assert all(each.get("jobs") or each.get("resources") for each in limits)
            assert any({"jobs", "resources"} <= set(each) for each in limits)
            assert any("precedence" in each for each in limits)
            assert {each["jobs"] for each in limits if "jobs" in each} <= {1, 2, 3, 4}

    def test_schedulers_are_at_places_of_the_cell(self) -> None:
        assert not any("place" in fleet[0] for fleet in fleets())
        there = [fleet[0].get("place") for fleet in fleets(cell=drawn_cell(places=["a", "b"]))]
        assert set(there) == {None, "a", "b"}

    def test_what_is_left_out_is_not_drawn(self) -> None:
        plain = {"name": "s0", "engine": "omega"}
        assert fleets(without=frozenset(FEATURES)) == [[plain]] * MANY


def test_schedulers_are_named_as_in_a_run() -> None:
    fleet: list[dict[str, Any]] = [
        {"name": "a"},
        {"name": "b", "replicas": 1},
        {"name": "c", "replicas": 3},
    ]
    assert scheduler_names(fleet) == ["a", "b", "c-0", "c-1", "c-2"]


def test_a_fleet_takes_what_its_entries_take() -> None:
    def taking(*kinds: str) -> dict[str, Any]:
        return {"name": "x", "takes": {"kinds": list(kinds)}}

    assert kinds_taken([taking("query"), taking("batch", "query")]) == ["query", "batch"]
    # An entry that does not say what it takes takes everything.
    assert kinds_taken([taking("query"), {"name": "y"}]) == list(KINDS)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class TestSettings:
    @pytest.mark.parametrize(
        ("annotation", "default", "values"),
        [
            (bool, True, [False, True]),
            (Literal["a", "b"], "a", ["a", "b"]),
            (Colour, Colour.RED, ["red", "blue"]),
            (str, "", []),
            (dict[str, int], {}, []),
            (int, 1, [0, 1, 2, 3, 5, 10, 64, 1_000]),
            (Annotated[int, msgspec.Meta(ge=1, le=10)], 1, [1, 2, 3, 5, 10]),
            (Annotated[int, msgspec.Meta(gt=1, lt=10)], 2, [2, 3, 5]),
            (float, 1.0, [0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 2.0, 10.0]),
            (Annotated[float, msgspec.Meta(gt=0, le=1)], 1.0, [0.1, 0.25, 0.5, 0.9, 1.0]),
            (Annotated[str, msgspec.Meta(examples=["x", "y"])], "x", ["x", "y"]),
            (GroupName, "", ["", "machine", "rack"]),
            (Time, 0, ["1ms", "50ms", "1s"]),
            (Time, None, ["1ms", "50ms", "1s"]),
            (Time, 60_000_000, ["0s", "6s", "20s", "30s", "2min", "4min", "10min"]),
            (
                Annotated[Time, msgspec.Meta(gt=0, le=120_000_000)],
                60_000_000,
                ["6s", "20s", "30s", "2min"],
            ),
        ],
    )
    def test_values_are_those_that_a_type_allows(
        self, annotation: Any, default: Any, values: list[Any]
    ) -> None:
        assert values_of(annotation, default, ["machine", "rack"]) == values

    def test_what_is_required_is_always_drawn_and_the_budget_is_never_short(self) -> None:
        found = drawn_settings(Demanding)
        assert {each["must"] for each in found} == {"a", "b"}
        assert {each["budget"] for each in found} == {"10min"}
        assert {each.get("may") for each in found} == {None, 1, 2, 3}
        assert not any("unknown" in each for each in found)
        bare = drawn_settings(Demanding, without=frozenset({"settings"}))
        # One setting does not change the next.
        assert bare == [{key: each[key] for key in ("must", "budget")} for each in found]

    def test_settings_that_do_not_go_together_or_need_what_is_missing_are_not_drawn(self) -> None:
        found = drawn_settings(Picky)
        assert {each["budget"] for each in found} == {"10min"}
        kept = {(each.get("one"), each.get("other")) for each in found}
        assert {(True, None), (None, True), (False, True), (None, None)} <= kept
        assert (True, True) not in kept
        assert {each.get("one") for each in drawn_settings(Lacking)} == {None, False}


class DemandingSettings(msgspec.Struct, frozen=True, kw_only=True):
    may: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1
    unknown: str = ""
    must: Literal["a", "b"]
    budget: Time = 5


class Demanding:
    settings_type = DemandingSettings


class PickySettings(msgspec.Struct, frozen=True, kw_only=True):
    one: bool = False
    other: bool = False
    budget: Time = 5

    def __post_init__(self) -> None:
        if self.one and self.other:
            raise SettingError("one or the other")


class Picky:
    settings_type = PickySettings


class Lacking(Picky):
    @classmethod
    def lack(cls, settings: Any) -> NeededExtra | None:
        return NeededExtra("ilp", "") if settings.one else None


def drawn_settings(engine: Any, without: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    return [draw_settings(Dice(Random(seed), without), engine, []) for seed in range(MANY)]


def test_each_number_of_a_campaign_is_a_scenario_of_its_own_with_the_next_engine() -> None:
    fleet_of = ScenarioSource(4, SHARING, without=frozenset({"mixed"}))
    drawn = [fleet_of.draw(number) for number in range(5)]
    assert [scenario.engines for scenario in drawn] == [
        (name,) for name in ("omega", "sparrow", "kube", "omega", "sparrow")
    ]
    assert [scenario.document["name"] for scenario in drawn] == [
        f"campaign-4-{number}" for number in range(5)
    ]
    assert [scenario.number for scenario in drawn] == list(range(5))


@pytest.mark.parametrize(
    ("name", "pause", "horizon"),
    [("retry", "0s", "90s"), ("retry", "1ms", "12min"), ("retry_after", "1ms", "90s")],
)
def test_only_schedulers_that_try_again_at_once_run_for_a_short_time(
    name: str, pause: str, horizon: str
) -> None:
    busy = {"name": "s", "engine": "omega", "settings": {name: pause}}
    source = ScenarioSource(5, SHARING, fleet=[busy])
    horizons = Counter(source.draw(number).document["horizon"] for number in range(40))
    assert horizons.most_common(1)[0][0] == horizon
