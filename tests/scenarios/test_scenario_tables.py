"""Settings of engines, written as tables of a scenario file and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import pytest
from msgspec import Meta, field

from argosy.engines.api import Settings
from argosy.engines.registry import ENGINES
from argosy.engines.spread import Spread
from argosy.host.scheduler import make_settings
from argosy.model.errors import ScenarioError
from argosy.model.scenario import FleetEntry
from argosy.model.units import Micros
from argosy.scenarios.scenario_tables import fleet_table
from argosy.workloads.tables import Converter


class TimedSettings(Settings, frozen=True):
    pauses: tuple[Micros, ...] = ()
    few_pauses: Annotated[tuple[Micros, ...], Meta(max_length=3)] = ()
    own_pauses: tuple[Micros, ...] | None = None
    few_own_pauses: Annotated[tuple[Micros, ...] | None, Meta(description="pauses")] = None
    groups: str | tuple[str, ...] = "rack"
    by_kind: Annotated[dict[str, Micros], Meta(max_length=3)] = field(default_factory=dict)
    own_by_kind: dict[str, Micros] | None = None
    nested: dict[str, tuple[Micros, ...] | None] = field(default_factory=dict)
    order: Annotated[Literal["first", "last"], Meta(description="an order")] = "first"


class Timed(Spread):
    name: ClassVar[str] = "timed"
    settings_type: ClassVar[type[Settings]] = TimedSettings


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"pauses": [5, 6]}, {"pauses": ["5us", "6us"]}),
        ({"few_pauses": [5, 6]}, {"few_pauses": ["5us", "6us"]}),
        ({"own_pauses": [5, 6]}, {"own_pauses": ["5us", "6us"]}),
        ({"few_own_pauses": [5, 6]}, {"few_own_pauses": ["5us", "6us"]}),
        ({"groups": ["rack", "room"]}, {"groups": ["rack", "room"]}),
        ({"by_kind": {"batch": 5}}, {"by_kind": {"batch": "5us"}}),
        ({"own_by_kind": {"batch": 5}}, {"own_by_kind": {"batch": "5us"}}),
        ({"nested": {"batch": [5]}}, {"nested": {"batch": ["5us"]}}),
        ({"order": "last"}, {"order": "last"}),
    ],
)
def test_times_in_lists_and_tables_are_written_with_their_unit_and_read_back(
    given: Mapping[str, Any], written: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, "timed", Timed)
    entry = FleetEntry(name="s", engine="timed", settings=dict(given))
    assert fleet_table(entry)["settings"] == written
    read = Converter(ScenarioError).convert(written, TimedSettings)
    assert read == make_settings(Timed, given)


@pytest.mark.parametrize(
    ("engine", "settings", "written"),
    [
        # A default that is stated stays, and times have their unit.
        ("yaq-d", {"retry": 1_000_000}, {"retry": "1000000us"}),
        ("omega", {"t_job": 7, "attempts": 3}, {"t_job": "7us", "attempts": 3}),
        (
            "murmuration",
            {"retry": 2_000_000, "order": "fcfs"},
            {"retry": "2000000us", "order": "fcfs"},
        ),
        ("omega", {}, None),
    ],
)
def test_what_an_entry_states_is_written(
    engine: str, settings: dict[str, Any], written: dict[str, Any] | None
) -> None:
    table = fleet_table(FleetEntry(name="s", engine=engine, settings=settings))
    assert table.get("settings") == written
    assert (table["name"], table["engine"]) == ("s", engine)
