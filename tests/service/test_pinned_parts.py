"""Limits of callers, and distances that are measured, with drawn inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pinned_digests import require_digests

from argosy.api.agent_values import ClusterPlace
from argosy.campaign.dice import Dice
from argosy.model.errors import ArgosyError
from argosy.model.random import Random
from argosy.service.callers import Caller, TokenTable
from argosy.service.measured_distances import MeasuredDistances

PINNED = Path(__file__).parent / "pinned"
PLACES = ("home", "east", "west", "blue")


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_limits_of_callers(pytestconfig: pytest.Config) -> None:
    found = {}
    for seed in range(30):
        dice, lines, now = Dice(Random(seed).child("callers")), list[str](), Clock()
        table = TokenTable(
            name="n",
            token="-" * 16,
            scope=dice.one_of(("sample", "commit", "operate")),
            rate=dice.one_of((None, 1, 2, 5)),
            requests=dice.one_of((None, 1, 2)),
        )
        caller = Caller(table, now)
        for _ in range(60):
            now.seconds += dice.one_of((0.0, 0.0, 0.125, 0.25, 0.5, 4.0))
            try:
                with caller.request():
                    lines.append(f"{now.seconds} taken")
                    if dice.chance(0.3):
                        with caller.request():
                            caller.require(dice.one_of(("sample", "commit", "operate")))
                            lines.append("taken inside")
            except ArgosyError as error:
                lines.append(f"{now.seconds} {error} {error.expected}")
        found[f"round {seed}"] = "\n".join(lines)
    require_digests(PINNED / "callers.txt", found, pytestconfig)


def test_measured_distances(pytestconfig: pytest.Config) -> None:
    found = {}
    for seed in range(30):
        dice, lines = Dice(Random(seed).child("distances")), list[str]()
        given = {"home<>east": 70} if dice.chance(0.3) else {}
        known = MeasuredDistances(dice.one_of(("", "home", "east")), given)
        for _ in range(25):
            place = ClusterPlace(place=dice.one_of(PLACES), location=dice.one_of(("", "1,2")))
            known.learn(dice.one_of(("blue", "red")), place, dice.among(1, 90_001))
            lines.append(f"{list(known.measured())} {known.around('blue')} {known.around('red')}")
            lines.append(f"{[known.between(a, b) for a in PLACES for b in PLACES]}")
            lines.append(f"{known.location_of('blue')} {known.place_of('red')}")
        found[f"round {seed}"] = "\n".join(lines)
    require_digests(PINNED / "distances.txt", found, pytestconfig)
