"""Drawn runs of every engine in every world end as they did before: all that is recorded is kept, as
digests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from pinned_digests import names_in, require_digests

from argosy.campaign.draw import DrawnScenario, ScenarioSource
from argosy.campaign.recordings import WorldRecording
from argosy.campaign.worlds import find_world
from argosy.engines.registry import ENGINES, find_engines
from argosy.model.errors import ArgosyError, EngineFault, ScenarioError, SettingError
from argosy.records.journal_file import JournalFile
from argosy.scenarios.loader import load
from argosy.scenarios.toml_text import to_toml

PINNED = Path(__file__).parent / "pinned"
SEED = 20
#: Runs of each engine that are drawn in each world, and how many lines may be recorded of those that are
#: kept: longer ones say little more.
DRAWN = {"simulated": 40, "scripted": 30, "local": 20, "kubernetes": 8}
LONGEST = {"simulated": 4_000, "scripted": 4_000, "local": 4_000, "kubernetes": 6_000}
#: Dates of this computer's clock, which stand in conditions of pods. Played objects are of one day.
_DATE = re.compile(r"(?!2026-01-01)\d{4}-\d\d-\d\dT[0-9:.]+Z")


def lines_of(recording: WorldRecording) -> Iterator[str]:
    """All that a run left."""
    for journal in recording.all_journals:
        file = JournalFile(journal)
        yield text_of(file.header().setup)
        yield from map(text_of, file.records())
    yield text_of((recording.ended_at, recording.counts, recording.processes))
    if recording.pods is not None:
        yield from map(text_of, recording.pods.records)
        yield from map(text_of, recording.pods.known)
        yield text_of((recording.pods.kills, recording.pods.calm_since))


def text_of(value: object) -> str:
    return _DATE.sub("now", msgspec.json.encode(value).decode())


def outcome(drawn: DrawnScenario, world: str, file: Path) -> list[str]:
    file.write_text(to_toml(drawn.document), "utf-8")
    try:
        scenario = load(file)
        engines = find_engines(scenario.engine_names())
        return [*lines_of(find_world(world).run(scenario, engines))]
    except ArgosyError as error:
        # Not every engine can be run with all settings.
        refused = error.__cause__ if isinstance(error, EngineFault) else error
        if not isinstance(refused, SettingError | ScenarioError):
            raise
        return [str(refused).replace(str(file), file.name)]


@pytest.mark.parametrize("world", DRAWN)
@pytest.mark.parametrize("engine", ENGINES)
def test_drawn_runs_of_every_engine_are_pinned_in_every_world(
    engine: str, world: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    pins = PINNED / world / f"{engine.replace('+', '-plus')}.txt"
    first, turn = list(ENGINES).index(engine), len(ENGINES)
    numbers = [*range(first, first + DRAWN[world] * turn, turn)]
    is_update = pytestconfig.getoption("--update-golden")
    if not is_update:
        numbers = [int(name) for name in names_in(pins)]
        assert numbers
    source = ScenarioSource(SEED, ENGINES, without=find_world(world).lacks)
    outcomes = {
        number: outcome(source.draw(number), world, tmp_path / "scenario.toml")
        for number in numbers
    }
    kept = {
        str(number): "\n".join(lines) + "\n"
        for number, lines in outcomes.items()
        if len(lines) <= LONGEST[world] or not is_update
    }
    repeat = f"`argosy campaign --world {world} --seed {SEED}` draws them."
    require_digests(pins, kept, pytestconfig, again=repeat)
