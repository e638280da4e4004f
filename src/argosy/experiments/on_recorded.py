"""Other engines on the jobs of a recorded run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from argosy.engines.api import Engine
from argosy.engines.registry import find_engines
from argosy.experiments.execute import execute
from argosy.model.errors import ArgosyError
from argosy.model.scenario import Scenario
from argosy.records.summary import Summary
from argosy.scenarios.ignored_demands import IgnoredDemand, ignored_demands
from argosy.scenarios.variants import with_engine

#: The label of the recorded run among the engines.
RECORDED: Final = "recorded"


class RecordedTrial(NamedTuple):
    """One engine's run on recorded jobs, and the demands that it ignores."""

    summary: Summary
    ignores: tuple[IgnoredDemand, ...]


def try_engine(
    scenario: Scenario,
    engine: str,
    *,
    progress: Callable[[float], None] | None = None,
    also: Mapping[str, type[Engine]] | None = None,
) -> RecordedTrial:
    """Runs `engine` on a scenario made by `observed_scenario`. Nothing is saved."""
    changed = with_engine(scenario, engine, also)
    ignores = ignored_demands(changed, find_engines(changed.engine_names(), also))
    return RecordedTrial(execute(changed, None, progress=progress, also=also), tuple(ignores))


def recorded_ignores(scenario: Scenario) -> tuple[IgnoredDemand, ...]:
    """What the recorded fleet ignored; nothing is known of engines that are not installed here."""
    try:
        return tuple(ignored_demands(scenario, find_engines(scenario.engine_names())))
    except ArgosyError:
        return ()
