"""What a scenario asks for that its engines ignore, reported before a result could mislead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from argosy.engines.api import Engine, NeedsExtra, supports_constraint
from argosy.host.scheduler import make_settings
from argosy.model.errors import MissingExtra
from argosy.model.jobs import Job
from argosy.model.scenario import Scenario, SchedulerLimits


def unmet(scenario: Scenario, engines: Mapping[str, type[Engine]]) -> list[str]:
    """One sentence for each demand of a job, or limit of a fleet entry, that an engine ignores."""
    notes = []
    for entry in scenario.fleet:
        can = engines[entry.engine].capabilities
        kinds = entry.takes.kinds
        mine = [made.job for made in scenario.jobs if not kinds or made.kind in kinds]
        gangs = sum(job.gang for job in mine)
        if gangs and not can.gang:
            asks = "1 job asks" if gangs == 1 else f"{gangs} jobs ask"
            notes.append(f"{entry.engine} ignores gangs; {asks} for one")
        constrained = sum(bool(job.constraints) for job in mine)
        if constrained and not can.constraints:
            has = "1 job has" if constrained == 1 else f"{constrained} jobs have"
            notes.append(f"{entry.engine} ignores placement constraints; {has} some")
        if can.constraints and (odd := _unsupported(engines[entry.engine], mine)):
            has = "1 job has" if odd == 1 else f"{odd} jobs have"
            notes.append(f"{entry.engine} ignores some placement constraints; {has} such")
        if not can.transactions and entry.limits != SchedulerLimits():
            notes.append(
                f"{entry.engine} ignores the limits of {entry.name}, because it makes no transactions"
            )
    return list(dict.fromkeys(notes))


def _unsupported(engine: type[Engine], jobs: Iterable[Job]) -> int:
    """How many jobs have a constraint that the engine does not follow."""
    return sum(
        not all(supports_constraint(engine, constraint) for constraint in job.constraints)
        for job in jobs
    )


def missing(scenario: Scenario, engines: Mapping[str, type[Engine]]) -> MissingExtra | None:
    """What the fleet's engines need with these settings but is not installed."""
    for entry in scenario.fleet:
        engine: object = engines[entry.engine]
        if isinstance(engine, NeedsExtra):
            lack = engine.lack(make_settings(engines[entry.engine], entry.settings))
            if lack is not None:
                return MissingExtra(entry.engine, lack.extra, lack.otherwise)
    return None
