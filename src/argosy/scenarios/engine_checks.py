"""Settings of engines that do not fit the cell or the jobs, found before the run begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import overload

from argosy.engines.api import ChecksSettings, Engine, RunFacts
from argosy.host.scheduler import make_settings
from argosy.model.errors import SettingError
from argosy.model.jobs import Job
from argosy.model.machines import MACHINE_GROUP
from argosy.model.resources import dimensions_of
from argosy.model.scenario import Scenario
from argosy.model.truth import SimulatedJob
from argosy.workloads.tables import Misfit, TablePath, path_text


def check_engines(
    scenario: Scenario, engines: Mapping[str, type[Engine]], facts: RunFacts | None = None
) -> None:
    """Raises `Misfit` with the path in the scenario file. `facts` are those of the scenario, if they are
    known already: with very many machines, finding them takes a while."""
    for index, entry in enumerate(scenario.fleet):
        engine = engines[entry.engine]
        known: object = engine
        if not _checks_settings(engine):
            continue
        assert isinstance(known, ChecksSettings)
        facts = facts or facts_of(scenario)
        found = known.mismatch(make_settings(engine, entry.settings), facts)
        if found is not None:
            place: TablePath = ("fleet", index, "settings", *found.place)
            raise Misfit(
                SettingError(found.problem, expected=found.expected, hint=found.hint), place
            )


def is_checking(engines: Mapping[str, type[Engine]]) -> bool:
    """Whether one of the engines has settings that may not fit."""
    return any(map(_checks_settings, engines.values()))


@cache
def _checks_settings(engine: type[Engine]) -> bool:
    """Finding out takes longer than most checks."""
    known: object = engine
    return isinstance(known, ChecksSettings)


def require_fitting(scenario: Scenario, engines: Mapping[str, type[Engine]]) -> None:
    """As `check_engines`, for a scenario that comes from no file."""
    try:
        check_engines(scenario, engines)
    except Misfit as misfit:
        raise misfit.error.located(field=path_text(misfit.path)) from None


def facts_of(scenario: Scenario) -> RunFacts:
    cell = scenario.cell
    overlapping = {
        group
        for machine in cell.machines
        for group, sets in machine.joins.items()
        if len(set(sets)) > 1
    }
    return RunFacts(
        dimensions=dimensions_of(machine.capacity for machine in cell.machines),
        machines=len(cell.machines),
        groups={
            MACHINE_GROUP: len(cell.machines),
            **{group.name: len(group.sets) for group in cell.groups},
        },
        overlapping=frozenset(overlapping),
        constraints=cell.constraints,
        jobs=_Specifications(scenario.jobs),
    )


class _Specifications(Sequence[Job]):
    """The jobs as engines see them, none of them kept."""

    def __init__(self, made: Sequence[SimulatedJob]) -> None:
        self._made = made

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> list[Job]: ...
    def __getitem__(self, at: int | slice) -> Job | list[Job]:
        if isinstance(at, slice):
            return [made.job for made in self._made[at]]
        return self._made[at].job

    def __iter__(self) -> Iterator[Job]:
        return (made.job for made in self._made)
