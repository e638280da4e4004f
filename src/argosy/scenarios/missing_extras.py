"""Optional packages that a scenario's engines need and that are not installed."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.engines.api import Engine, NeedsExtra
from argosy.host.scheduler import make_settings
from argosy.model.errors import MissingExtra
from argosy.model.scenario import Scenario


def missing(scenario: Scenario, engines: Mapping[str, type[Engine]]) -> MissingExtra | None:
    """What the fleet's engines need with these settings but is not installed."""
    for entry in scenario.fleet:
        engine: object = engines[entry.engine]
        if isinstance(engine, NeedsExtra):
            lack = engine.lack(make_settings(engines[entry.engine], entry.settings))
            if lack is not None:
                return MissingExtra(entry.engine, lack.extra, lack.otherwise)
    return None
