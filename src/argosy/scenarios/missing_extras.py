"""What a scenario asks for that its engines do not do: said before a result could mislead."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.engines.api import Engine, NeedsExtra
from argosy.host.scheduler import make_settings
from argosy.model.errors import MissingExtra
from argosy.model.scenario import Scenario, SchedulerLimits


def unmet(scenario: Scenario, engines: Mapping[str, type[Engine]]) -> list[str]:
    """A sentence for each demand of a job, or limit of a fleet entry, that an engine passes over."""
    notes = []
    for entry in scenario.fleet:
        can = engines[entry.engine].capabilities
        kinds = entry.takes.kinds
        mine = [made.job for made in scenario.jobs if not kinds or made.kind in kinds]
        gangs = sum(job.gang for job in mine)
        if gangs and not can.gang:
            notes.append(
                f"{entry.engine} places tasks one by one: {_jobs(gangs)} to be placed together"
            )
        constrained = sum(bool(job.constraints) for job in mine)
        if constrained and not can.constraints:
            notes.append(
                f"{entry.engine} does not act on placement constraints: {_jobs(constrained)} some"
            )
        if not can.transactions and entry.limits != SchedulerLimits():
            notes.append(
                f"{entry.engine} makes no transactions, so the limits of {entry.name} do not bind"
            )
    return list(dict.fromkeys(notes))


def missing(scenario: Scenario, engines: Mapping[str, type[Engine]]) -> MissingExtra | None:
    """What the fleet's engines need, with the settings they have, and is not installed."""
    for entry in scenario.fleet:
        engine: object = engines[entry.engine]
        if isinstance(engine, NeedsExtra):
            lack = engine.lack(make_settings(engines[entry.engine], entry.settings))
            if lack is not None:
                return MissingExtra(entry.engine, lack.extra, lack.otherwise)
    return None


def _jobs(count: int) -> str:
    return "1 job has" if count == 1 else f"{count} jobs have"
