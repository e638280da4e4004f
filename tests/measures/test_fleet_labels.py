"""How a fleet is called: its engines in the order in which they first come, with how many there are."""

from __future__ import annotations

import pytest

from argosy.host.setup import HostSetup
from argosy.measures.measure import fleet_label
from argosy.model.scenario import FleetEntry
from argosy.testing.builders import scenario


@pytest.mark.parametrize(
    ("entries", "label"),
    [
        ([("omega", 1)], "omega"),
        ([("omega", 2)], "omega x2"),
        ([("sparrow", 1), ("omega", 2)], "sparrow + omega x2"),
        ([("sparrow", 1), ("omega", 2), ("sparrow", 1)], "sparrow x2 + omega x2"),
        ([("omega", 1), ("kube", 1), ("eagle", 10)], "omega + kube + eagle x10"),
    ],
)
def test_a_fleet_is_called_by_its_engines_in_its_own_order(
    entries: list[tuple[str, int]], label: str
) -> None:
    fleet = tuple(
        FleetEntry(name=f"s{at}", engine=engine, replicas=count)
        for at, (engine, count) in enumerate(entries)
    )
    spec = scenario("omega", [], fleet=fleet)
    assert fleet_label(spec) == label
    assert fleet_label(HostSetup.of(spec)) == label
