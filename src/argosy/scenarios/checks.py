"""Checks across a scenario's parts: names must be known, and every job needs a scheduler.

Each raises `Misfit` with the path in the scenario file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, get_args

import msgspec

from argosy.model.devices import DEVICES_EXPECTED, not_devices
from argosy.model.errors import ScenarioError, SettingError, UnknownName, excerpt
from argosy.model.job_census import JobCensus
from argosy.model.jobs import is_name
from argosy.model.machines import GROUP_NAME, MACHINE_GROUP
from argosy.model.resources import dimensions_of
from argosy.model.scenario import (
    MOST_SCHEDULERS,
    AgentDown,
    AgentSlow,
    AgentStale,
    CellSpec,
    Fault,
    Federation,
    FleetEntry,
    Jittered,
    MachineCrash,
    MachineDrain,
    MachineRelabel,
    MachineResize,
    MachineUse,
    Network,
    PairLatency,
    Partition,
    RandomCrashes,
    Scenario,
    SchedulerCrash,
    UniformLatency,
)
from argosy.model.units import format_duration
from argosy.workloads.tables import Misfit, TablePath

#: Ends of a network hop other than schedulers.
ENDPOINTS: Final = ("cell", "machines")
#: The shortest mean time between random crashes, in microseconds.
MOST_OFTEN: Final = 1_000
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def network_ends(federation: Federation | None) -> tuple[str, ...]:
    """Ends of a hop other than schedulers."""
    clusters = () if federation is None else federation.clusters
    return (*ENDPOINTS, *(f"{ENDPOINTS[0]}:{cluster.name}" for cluster in clusters))


def check_fleet(
    fleet: tuple[FleetEntry, ...], dimensions: tuple[str, ...], ends: Collection[str] = ENDPOINTS
) -> tuple[str, ...]:
    """The names of all schedulers, which must be unique and differ from the other `ends` of the
    network."""
    if not fleet:
        raise Misfit(ScenarioError("no schedulers", expected="at least one [[fleet]]"), ("fleet",))
    # Keyed by name, to keep their order and for fast lookup.
    names: dict[str, None] = {}
    for index, entry in enumerate(fleet):
        path: TablePath = ("fleet", index)
        if not is_name(entry.name) or any(c in ">/" for c in entry.name):
            raise Misfit(
                ScenarioError(
                    f"scheduler name {excerpt(entry.name)}",
                    expected="a printable name without spaces, '>' and '/'",
                ),
                (*path, "name"),
            )
        if len(names) + entry.replicas > MOST_SCHEDULERS:
            raise Misfit(
                ScenarioError(
                    f"{len(names) + entry.replicas:,} schedulers in total",
                    expected=f"at most {MOST_SCHEDULERS:,}",
                ),
                (*path, "replicas"),
            )
        for name in entry.scheduler_names():
            if name in names or name in ends:
                error = (
                    ScenarioError(f"scheduler {name!r} again", expected="each scheduler name once")
                    if name in names
                    else ScenarioError(
                        f"scheduler name {name!r} is reserved", expected="another name"
                    )
                )
                raise Misfit(error, (*path, "name"))
            names[name] = None
        if entry.limits.resources is not None:
            for name, amount in entry.limits.resources.items():
                if amount:
                    inside: TablePath = (*path, "limits", "resources", name)
                    check_known("resource", name, dimensions, inside)
        if isinstance(entry.decision_time, Jittered):
            _check_order(
                entry.decision_time.low,
                entry.decision_time.high,
                (*path, "decision_time"),
                "{:g}".format,
            )
    return tuple(names)


def check_takes(tables: Sequence[Mapping[str, Any]]) -> None:
    """An empty list of kinds would read as none, but mean all."""
    for index, table in enumerate(tables):
        if "kinds" in table.get("takes", {}) and not table["takes"]["kinds"]:
            raise Misfit(
                ScenarioError("takes no kinds", expected="the kinds it takes, or no takes for all"),
                ("fleet", index, "takes", "kinds"),
            )


def check_name(name: str) -> None:
    """A scenario's name is part of the directory names of its runs."""
    if _FILE_NAME.fullmatch(name) is None:
        raise Misfit(
            ScenarioError(
                f"scenario name {excerpt(name)}",
                expected="1 to 100 letters, digits, _, - and dots, starting with a letter, digit"
                " or _",
            ),
            ("name",),
        )


def check_kinds(fleet: tuple[FleetEntry, ...], census: JobCensus) -> None:
    if any(not entry.takes.kinds for entry in fleet):
        return
    taken = {kind for entry in fleet for kind in entry.takes.kinds}
    for kind, job in census.first_of_kind.items():
        if kind not in taken:
            raise Misfit(
                ScenarioError(
                    f"no scheduler takes jobs of kind {kind!r}, such as {job}",
                    expected="takes.kinds of some [[fleet]] with it, or an entry without takes",
                ),
                ("fleet",),
            )


def cell_dimensions(cell: CellSpec) -> tuple[str, ...]:
    return dimensions_of(machine.capacity for machine in cell.machines)


def check_horizon(horizon: int | None, census: JobCensus, faults: tuple[Fault, ...]) -> None:
    if horizon == 0:
        raise Misfit(ScenarioError("a horizon of 0", expected='such as "2h"'), ("horizon",))
    if horizon is not None:
        return
    for index, fault in enumerate(faults):
        if isinstance(fault, RandomCrashes) and fault.end is None:
            raise Misfit(
                ScenarioError(
                    "crashes without an end, so the run might never end",
                    expected='an `end`, or a horizon for the run such as "2h"',
                ),
                ("faults", index),
            )
    if census.first_endless is not None:
        raise Misfit(
            ScenarioError(
                f"job {census.first_endless} runs until stopped, so the run would never end",
                expected='a horizon such as "2h", or a duration for every task',
            ),
            (),
        )


def check_network(
    network: Network, schedulers: tuple[str, ...], ends: tuple[str, ...] = ENDPOINTS
) -> None:
    path: TablePath = ("network", "latency")
    match network.latency:
        case UniformLatency(low=low, high=high):
            _check_order(low, high, path)
        case PairLatency(delays=delays):
            for pair in delays:
                sender, arrow, receiver = pair.partition(">")
                if not arrow:
                    raise Misfit(
                        ScenarioError(f"{pair!r} is not a pair", expected='"sender>receiver"'),
                        (*path, "delays", pair),
                    )
                for name in (sender, receiver):
                    check_known("scheduler", name, (*schedulers, *ends), (*path, "delays", pair))
    if network.reordering and not network.extra_delay:
        raise Misfit(
            ScenarioError("reordering without extra_delay", expected='extra_delay such as "10ms"'),
            ("network", "reordering"),
        )


def without_devices(cluster: Scenario) -> Scenario:
    """The cluster, if it can run for real."""
    if (resource := cluster.cell.device_resource) is not None:
        raise Misfit(
            ScenarioError(
                f"{resource} consists of devices, which a live cluster does not assign to tasks",
                expected="no devices; they are for simulations",
            ),
            ("cell", "devices"),
        )
    return cluster


def check_faults(
    faults: tuple[Fault, ...],
    cell: CellSpec,
    schedulers: tuple[str, ...],
    federation: Federation | None = None,
) -> None:
    clusters = [] if federation is None else [cluster.name for cluster in federation.clusters]
    known = frozenset(machine.name for machine in cell.machines)
    dimensions = cell_dimensions(cell)
    devices = cell.device_resource
    for index, fault in enumerate(faults):
        path: TablePath = ("faults", index)
        match fault:
            case (
                MachineCrash(machine=name)
                | MachineDrain(machine=name)
                | MachineRelabel(machine=name)
            ):
                check_known("machine", name, known, (*path, "machine"))
            case MachineResize(machine=name, capacity=capacity):
                check_known("machine", name, known, (*path, "machine"))
                for extra in capacity.extras:
                    check_known("resource", extra, dimensions, (*path, "capacity", extra))
                if devices is not None and (problem := not_devices(capacity, devices)) is not None:
                    raise Misfit(
                        ScenarioError(problem, expected=DEVICES_EXPECTED),
                        (*path, "capacity", devices),
                    )
            case MachineUse(machine=name, used=used):
                check_known("machine", name, known, (*path, "machine"))
                for resource in used:
                    check_known("resource", resource, dimensions, (*path, "used", resource))
            case SchedulerCrash(scheduler=name):
                check_known("scheduler", name, schedulers, (*path, "scheduler"))
            case AgentDown(cluster=name) | AgentSlow(cluster=name) | AgentStale(cluster=name):
                _check_cluster(name, clusters, (*path, "cluster"))
            case Partition(isolated=isolated):
                if not isolated:
                    raise Misfit(
                        ScenarioError(
                            "no scheduler is isolated", expected="at least one scheduler's name"
                        ),
                        (*path, "isolated"),
                    )
                for at, name in enumerate(isolated):
                    check_known("scheduler", name, schedulers, (*path, "isolated", at))
            case RandomCrashes(every=every, start=start, end=end):
                if every < MOST_OFTEN:
                    raise Misfit(
                        ScenarioError(
                            f"a crash every {format_duration(every)}",
                            expected='a mean of at least "1ms", such as "10min"',
                        ),
                        (*path, "every"),
                    )
                if end is not None:
                    _check_order(start, end, (*path, "end"))


def _check_cluster(name: str, clusters: Sequence[str], path: TablePath) -> None:
    if clusters:
        check_known("cluster", name, clusters, path)
    elif name:
        raise Misfit(
            ScenarioError(
                f"cluster {name!r}",
                expected="no cluster: a cell that is not a federation has one agent without a name",
            ),
            path,
        )


def check_group_settings(
    settings: Mapping[str, Any],
    settings_type: type[msgspec.Struct],
    cell: CellSpec,
    path: TablePath,
) -> None:
    """Settings that name a node group must name one of the cell's."""
    groups = [MACHINE_GROUP, *(group.name for group in cell.groups)]
    for field in msgspec.structs.fields(settings_type):
        if GROUP_NAME not in get_args(field.type):
            continue
        given = settings.get(field.name) or ()
        for name in (given,) if isinstance(given, str) else given:
            check_known("node group", name, groups, (*path, field.name))


def check_moved_settings(entry: FleetEntry, moved: Mapping[str, str], path: TablePath) -> None:
    for name in entry.settings:
        if name in moved:
            raise Misfit(
                SettingError(
                    f"{name} is no longer a setting of {entry.engine}",
                    hint=f"say it as {moved[name]}",
                ),
                (*path, name),
            )


def check_known(kind: str, name: str, known: Collection[str], path: TablePath) -> None:
    if name in known:
        return
    options = sorted(known)
    error = UnknownName(kind, name, options)
    if len(options) > 12:
        # A list of a thousand machine names explains nothing.
        error.expected = f"one of {options[0]}, {options[1]}, ... {options[-1]}"
    raise Misfit(error, path)


def _check_order(
    low: float, high: float, path: TablePath, text: Callable[[float], str] = format_duration
) -> None:
    if low > high:
        raise Misfit(
            ScenarioError(f"from {text(low)} to {text(high)}", expected="the smaller one first"),
            path,
        )
