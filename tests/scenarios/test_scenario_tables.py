"""Clusters and settings of engines, written as tables of a scenario file and read back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from msgspec import Meta, field

from argosy.engines.api import Settings
from argosy.engines.registry import ENGINES
from argosy.engines.spread import Spread
from argosy.host.scheduler import make_settings
from argosy.model.errors import ScenarioError
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, GroupSpec
from argosy.model.units import Micros
from argosy.scenarios.loader import load_cluster
from argosy.scenarios.scenario_tables import cluster_tables, fleet_table
from argosy.scenarios.toml_text import to_toml
from argosy.testing.builders import GIB
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


def test_a_written_cluster_has_every_set_that_a_machine_is_in(tmp_path: Path) -> None:
    """Those that are declared in their order, and those that are not, of whichever machine."""
    joins: list[dict[str, tuple[str, ...]]] = [
        {"zone": ("z2",), "rack": ("r1", "r2")},
        {"rack": ("r2", "r3"), "room": ("a",)},
        {"zone": ("z1",), "room": ("b",)},
    ]
    machines = tuple(
        Machine(f"m{number}", Resources(1_000, GIB), joins=joined)
        for number, joined in enumerate(joins)
    )
    cell = CellSpec(machines=machines, groups=(GroupSpec(name="zone", sets=("z0", "z1")),))
    fleet = (FleetEntry(name="s", engine="omega"),)
    tables = cluster_tables(cell, machines, fleet)
    sets = {name: group["sets"] for name, group in tables["cell"]["groups"].items()}
    assert sets == {
        "zone": ["z0", "z1", "z2"],
        "rack": ["r1", "r2", "r3"],
        "room": ["a", "b"],
    }
    file = tmp_path / "cluster.toml"
    file.write_text(to_toml({"name": "c", **tables}))
    read = load_cluster(file).cell
    assert read.machines == machines
    assert {group.name: list(group.sets) for group in read.groups} == sets
