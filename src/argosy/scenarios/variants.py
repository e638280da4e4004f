"""Variants of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from argosy.engines.api import Engine, HasPaperPresets
from argosy.engines.registry import find_engine, find_published
from argosy.model.errors import ScenarioError
from argosy.model.scenario import (
    ConstantLatency,
    Fault,
    Federation,
    FleetEntry,
    Network,
    PairLatency,
    Partition,
    Scenario,
    SchedulerCrash,
)


def with_engine(
    scenario: Scenario, engine: str, also: Mapping[str, type[Engine]] | None = None
) -> Scenario:
    """The same scenario with all its schedulers under one engine.

    The fleet becomes one entry with as many replicas as the old fleet had schedulers (one, if the
    engine must be alone), taking every kind of job. A fleet of one entry keeps the entry's name, split,
    takes, limits and decision time. Settings are the engine's defaults, or those of the first entry
    that already runs this engine. Faults, latencies and places of schedulers are kept by position: the
    third scheduler of the old fleet becomes the third of the new one, or its last. In a scenario as
    published, `engine` may also be a published configuration. `also` adds engines to the registered
    ones.
    """
    form = None
    if scenario.as_published:
        form, engine = engine, find_published(engine, also)[0]
    changed = _under(scenario, engine, also)
    return changed if form is None else as_published(changed, form, also)


def as_published(
    scenario: Scenario,
    form: str | None = None,
    also: Mapping[str, type[Engine]] | None = None,
) -> Scenario:
    """The scenario with its only kind of scheduler in a published configuration, which determines
    settings, machines, the number of schedulers, how jobs are split, and hops. Without a name, explicit
    settings are kept, and the configuration is the engine's first that agrees with them."""
    if len(scenario.fleet) > 1:
        raise ScenarioError(
            f"{len(scenario.fleet)} fleet entries as published",
            expected="one, whose machines are those of its form",
            hint="leave the others out, or name an engine",
        )
    entry = scenario.fleet[0]
    engine, published = find_published(form or _form_of(entry, also), also)
    entry = msgspec.structs.replace(
        entry,
        settings=entry.settings | published.settings
        if form
        else published.settings | entry.settings,
        # The fleet entry's own fields are kept as well.
        replicas=entry.replicas if form is None and entry.replicas > 1 else published.schedulers,
        split=published.split,
    )
    assert entry.engine == engine
    changed = _with_fleet(scenario, entry)
    latency = ConstantLatency(delay=published.hop)
    return msgspec.structs.replace(
        changed,
        machines=published.machines,
        network=msgspec.structs.replace(changed.network, latency=latency),
        federation=_at_no_place(changed.federation),
        as_published=True,
    )


def _form_of(entry: FleetEntry, also: Mapping[str, type[Engine]] | None) -> str:
    """The published configuration that agrees with the settings of the entry."""
    find_published(entry.engine, also)
    forms = find_engine(entry.engine, also)
    assert isinstance(forms, HasPaperPresets)
    for name, form in forms.published.items():
        if all(entry.settings.get(key, value) == value for key, value in form.settings.items()):
            return name
    return entry.engine


def _under(scenario: Scenario, engine: str, also: Mapping[str, type[Engine]] | None) -> Scenario:
    first = scenario.fleet[0]
    settings: dict[str, Any] = next(
        (entry.settings for entry in scenario.fleet if entry.engine == engine), {}
    )
    if len(scenario.fleet) == 1:
        entry = msgspec.structs.replace(first, engine=engine, settings=settings)
    else:
        entry = FleetEntry(
            name="scheduler",
            engine=engine,
            settings=settings,
            replicas=sum(entry.replicas for entry in scenario.fleet),
            split=first.split,
        )
    if find_engine(engine, also).capabilities.alone:
        entry = msgspec.structs.replace(entry, replicas=1)
    return _with_fleet(scenario, entry)


def _with_fleet(scenario: Scenario, entry: FleetEntry) -> Scenario:
    old = [name for entry in scenario.fleet for name in entry.scheduler_names()]
    new = entry.scheduler_names()
    renamed = {name: new[min(at, len(new) - 1)] for at, name in enumerate(old)}
    return msgspec.structs.replace(
        scenario,
        fleet=(entry,),
        network=_renamed_network(scenario.network, renamed),
        faults=tuple(_renamed_fault(fault, renamed) for fault in scenario.faults),
        federation=_renamed_federation(scenario.federation, renamed),
    )


def _renamed_fault(fault: Fault, renamed: dict[str, str]) -> Fault:
    match fault:
        case SchedulerCrash(scheduler=name):
            return msgspec.structs.replace(fault, scheduler=renamed[name])
        case Partition(isolated=isolated):
            return msgspec.structs.replace(
                fault, isolated=tuple(dict.fromkeys(renamed[name] for name in isolated))
            )
    return fault


def _renamed_network(network: Network, renamed: dict[str, str]) -> Network:
    if not isinstance(network.latency, PairLatency):
        return network
    delays = {
        ">".join(renamed.get(name, name) for name in pair.split(">")): delay
        for pair, delay in network.latency.delays.items()
    }
    latency = msgspec.structs.replace(network.latency, delays=delays)
    return msgspec.structs.replace(network, latency=latency)


def _renamed_federation(
    federation: Federation | None, renamed: dict[str, str]
) -> Federation | None:
    if federation is None:
        return None
    # If several schedulers become one, the place of the first is used.
    schedulers = {renamed[name]: place for name, place in reversed(federation.schedulers.items())}
    return msgspec.structs.replace(federation, schedulers=schedulers)


def _at_no_place(federation: Federation | None) -> Federation | None:
    """Without places, so that all hops are equal, as in the published simulations."""
    return None if federation is None else msgspec.structs.replace(federation, places=None)
