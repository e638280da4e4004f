"""What a scenario asks for that its engines ignore, reported before a result could mislead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from argosy.engines.api import Engine, supports_constraint
from argosy.host.scheduler import make_settings
from argosy.model.job_census import JobClass
from argosy.model.packed_jobs import census_of
from argosy.model.scenario import FleetEntry, Scenario, SchedulerLimits


class IgnoredDemand(msgspec.Struct, frozen=True):
    """Something that a scenario asks for and an engine ignores."""

    engine: str
    #: Such as "gangs".
    what: str
    #: Who asks for it, such as "1 job asks for one".
    asked: str

    def __str__(self) -> str:
        return f"{self.engine} ignores {self.what}; {self.asked}"


GANGS = "gangs"
CONSTRAINTS = "placement constraints"
SOME_CONSTRAINTS = "some placement constraints"
PRIORITIES = "priorities"
#: Settings that, if off, keep an engine from preempting.
_PREEMPTION_SETTINGS: Final = ("preempt", "reschedule")


def ignored_demands(scenario: Scenario, engines: Mapping[str, type[Engine]]) -> list[IgnoredDemand]:
    """Each demand of a job, or limit of a fleet entry, that an engine ignores, once. Priorities matter
    only if a job was passed over, which only a run can tell."""
    found = []
    classes = census_of(scenario.jobs).counts
    lowest = min((each.precedence for each in classes), default=0)
    for entry in scenario.fleet:
        name = entry.engine
        can = engines[name].capabilities
        kinds = entry.takes.kinds
        mine = [pair for pair in classes.items() if not kinds or pair[0].kind in kinds]
        gangs = sum(count for each, count in mine if each.gang)
        if gangs and not can.gang:
            asks = "1 job asks" if gangs == 1 else f"{gangs:,} jobs ask"
            found.append(IgnoredDemand(name, GANGS, f"{asks} for one"))
        if odd := _unsupported(engines[name], mine):
            constrained = sum(count for each, count in mine if each.constraints)
            if odd == constrained and not can.constraints:
                found.append(IgnoredDemand(name, CONSTRAINTS, f"{_have(odd)} some"))
            else:
                found.append(IgnoredDemand(name, SOME_CONSTRAINTS, f"{_have(odd)} such"))
        if not can.transactions and entry.limits != SchedulerLimits():
            why = "it makes no transactions"
            found.append(IgnoredDemand(name, f"the limits of {entry.name}", why))
        preceding = sum(count for each, count in mine if each.precedence > lowest)
        if preceding and not _preempts(engines[name], entry):
            asked = f"{_have(preceding)} a higher precedence than others"
            found.append(IgnoredDemand(name, PRIORITIES, asked))
    return list(dict.fromkeys(found))


def _have(jobs: int) -> str:
    return "1 job has" if jobs == 1 else f"{jobs:,} jobs have"


def _preempts(engine: type[Engine], entry: FleetEntry) -> bool:
    settings = make_settings(engine, entry.settings)
    is_on = all(getattr(settings, name, True) for name in _PREEMPTION_SETTINGS)
    return engine.capabilities.preemption and is_on


def _unsupported(engine: type[Engine], classes: Iterable[tuple[JobClass, int]]) -> int:
    """How many jobs have a constraint that the engine does not follow."""
    return sum(
        count
        for each, count in classes
        if not all(supports_constraint(engine, constraint) for constraint in each.constraints)
    )
