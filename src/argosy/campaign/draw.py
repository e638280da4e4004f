"""Draws a scenario: the plain data of a scenario file, from a seed and a number.

The same seed, number, engines and features give the same scenario, in every process. It is an ordinary
one: written with `to_toml`, it can be loaded, run, changed and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from argosy.campaign.cells import draw_cell, draw_places
from argosy.campaign.dice import FEATURES, Dice, time_text
from argosy.campaign.fleets import draw_fleet, kinds_taken, scheduler_names
from argosy.campaign.jobs import draw_jobs, draw_operator_constraints
from argosy.campaign.surroundings import draw_faults, draw_machine_model, draw_network
from argosy.engines.api import Engine
from argosy.model.errors import UnknownName
from argosy.model.random import Random

#: Long after the last job and the last fault, so that what still waits then waits for a reason.
HORIZON: Final = "12min"
#: Runs that end in the middle of things.
SHORT_HORIZONS: Final = ("1s", "30s", "90s")
#: For schedulers that try again without a pause, which may make millions of attempts in that time.
TIRELESS_HORIZON: Final = SHORT_HORIZONS[-1]
TIRELESS_SETTINGS: Final = {"retry": time_text(0), "retry_after": time_text(1_000)}


class DrawnScenario(msgspec.Struct, frozen=True):
    #: Counted from 0 in its campaign.
    number: int
    document: dict[str, Any]

    @property
    def engines(self) -> tuple[str, ...]:
        """Those of the fleet, each once."""
        return tuple(dict.fromkeys(entry["engine"] for entry in self.document["fleet"]))


class ScenarioSource:
    """Draws scenarios for some engines in turn, by their names in the fleet; or for one fleet."""

    def __init__(
        self,
        seed: int,
        engines: Mapping[str, type[Engine]],
        *,
        without: frozenset[str] = frozenset(),
        fleet: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        for feature in sorted(without):
            if feature not in FEATURES:
                raise UnknownName("feature", feature, FEATURES)
        self.seed = seed
        self.engines = dict(engines)
        self._fleet = None if fleet is None else [dict(entry) for entry in fleet]
        self._without = without

    def draw(self, number: int) -> DrawnScenario:
        dice = Dice(Random(self.seed).child(f"campaign {number}"), self._without)
        cell = draw_cell(dice.part("cell"))
        fleet = self._fleet
        if fleet is None:
            names = list(self.engines)
            first = names[number % len(names)]
            fleet = draw_fleet(dice.part("fleet"), first, self.engines, cell)
        schedulers = scheduler_names(fleet)
        network = draw_network(dice.part("network"), schedulers)
        places = draw_places(dice.part("places"), cell)
        if places is not None:
            network["places"] = places
        constraints = draw_operator_constraints(dice.part("operator"), cell)
        if constraints:
            cell.tables["cell"]["constraints"] = constraints
        ending = dice.part("horizon")
        long = TIRELESS_HORIZON if _is_tireless(fleet) else HORIZON
        document = {
            "name": f"campaign-{self.seed}-{number}",
            "seed": dice.part("seed").among(1, 1_000_000),
            "horizon": ending.one_of(SHORT_HORIZONS) if ending.chance(0.15) else long,
            "audit": True,
            **cell.tables,
            "workload": {"jobs": draw_jobs(dice.part("jobs"), cell, kinds_taken(fleet))},
            "fleet": fleet,
            "network": network,
            "machines": draw_machine_model(dice.part("machines")),
            "faults": draw_faults(dice.part("faults"), cell, schedulers),
        }
        return DrawnScenario(number, {key: value for key, value in document.items() if value})


def _is_tireless(fleet: Sequence[Mapping[str, Any]]) -> bool:
    return any(
        entry.get("settings", {}).get(name) == pause
        for entry in fleet
        for name, pause in TIRELESS_SETTINGS.items()
    )
