"""Checks across a scenario's parts: names that must be known, jobs that somebody must take.

Each raises `Misfit` with the path in the scenario file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from argosy.model.constraints import AllOf, AnyOf, PlacementConstraint, Rule
from argosy.model.errors import ScenarioError, UnknownName
from argosy.model.jobs import Job
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.resources import dimensions_of
from argosy.model.scenario import (
    CellSpec,
    Fault,
    FleetEntry,
    Jittered,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Network,
    PairLatency,
    Partition,
    RandomCrashes,
    SchedulerCrash,
    UniformLatency,
)
from argosy.workloads.tables import Misfit, Path

#: Ends of a network hop that are no schedulers.
ENDPOINTS: Final = ("cell", "machines")


def check_fleet(fleet: tuple[FleetEntry, ...], dimensions: tuple[str, ...]) -> tuple[str, ...]:
    """The names of all schedulers, each one's own."""
    if not fleet:
        raise Misfit(ScenarioError("no schedulers", expected="at least one [[fleet]]"), ("fleet",))
    names: list[str] = []
    for index, entry in enumerate(fleet):
        path: Path = ("fleet", index)
        if not entry.name or any(c.isspace() or c in ">/" for c in entry.name):
            raise Misfit(
                ScenarioError(
                    f"scheduler name {entry.name!r}", expected="a name without spaces, '>' and '/'"
                ),
                (*path, "name"),
            )
        for name in entry.scheduler_names():
            if name in names or name in ENDPOINTS:
                raise Misfit(
                    ScenarioError(
                        f"scheduler {name!r} again"
                        if name in names
                        else f"scheduler name {name!r} is taken by the network",
                        expected="each scheduler name once",
                    ),
                    (*path, "name"),
                )
            names.append(name)
        if entry.limits.resources is not None:
            for name, amount in entry.limits.resources.items():
                if amount:
                    inside: Path = (*path, "limits", "resources", name)
                    _check_known("resource", name, dimensions, inside)
        if isinstance(entry.decision_time, Jittered):
            _check_order(
                entry.decision_time.low, entry.decision_time.high, (*path, "decision_time")
            )
    return tuple(names)


def check_kinds(fleet: tuple[FleetEntry, ...], jobs: Iterable[Job]) -> None:
    if any(not entry.takes.kinds for entry in fleet):
        return
    taken = {kind for entry in fleet for kind in entry.takes.kinds}
    for job in jobs:
        if job.kind not in taken:
            raise Misfit(
                ScenarioError(
                    f"no scheduler takes jobs of kind {job.kind!r}, such as {job.id}",
                    expected="takes.kinds of some [[fleet]] with it, or an entry without takes",
                ),
                ("fleet",),
            )


def check_job(job: Job, cell: CellSpec, dimensions: tuple[str, ...], path: Path) -> None:
    """What a job names must exist in the cell: resources, and the groups of its constraints."""
    for group in job.groups:
        for name, amount in group.request.items():
            if amount and name not in dimensions:
                raise Misfit(UnknownName(f"resource of job {job.id}:", name, dimensions), path)
    groups = (MACHINE_GROUP, *(group.name for group in cell.groups))
    for constraint in job.constraints:
        for name in _groups_of(constraint.rule):
            if name not in groups:
                raise Misfit(UnknownName(f"node group of job {job.id}:", name, groups), path)


def cell_dimensions(cell: CellSpec) -> tuple[str, ...]:
    return dimensions_of(machine.capacity for machine in cell.machines)


def check_horizon(horizon: int | None, jobs: Iterable[Job], faults: tuple[Fault, ...]) -> None:
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
    for job in jobs:
        if any(not group.durations for group in job.groups):
            raise Misfit(
                ScenarioError(
                    f"job {job.id} runs until stopped, so the run would never end",
                    expected='a horizon such as "2h", or a duration for every task',
                ),
                (),
            )


def check_network(network: Network, schedulers: tuple[str, ...]) -> None:
    path: Path = ("network", "latency")
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
                    _check_known(
                        "scheduler", name, (*schedulers, *ENDPOINTS), (*path, "delays", pair)
                    )
    if network.reordering and not network.extra_delay:
        raise Misfit(
            ScenarioError("reordering without extra_delay", expected='extra_delay such as "10ms"'),
            ("network", "reordering"),
        )


def check_faults(
    faults: tuple[Fault, ...], machines: Sequence[Machine], schedulers: tuple[str, ...]
) -> None:
    known = frozenset(machine.name for machine in machines)
    dimensions = dimensions_of([machine.capacity for machine in machines])
    for index, fault in enumerate(faults):
        path: Path = ("faults", index)
        match fault:
            case MachineCrash(machine=name) | MachineDrain(machine=name):
                _check_known("machine", name, known, (*path, "machine"))
            case MachineResize(machine=name, capacity=capacity):
                _check_known("machine", name, known, (*path, "machine"))
                for extra in capacity.extras:
                    _check_known("resource", extra, dimensions, (*path, "capacity", extra))
            case SchedulerCrash(scheduler=name):
                _check_known("scheduler", name, schedulers, (*path, "scheduler"))
            case Partition(isolated=isolated):
                for at, name in enumerate(isolated):
                    _check_known("scheduler", name, schedulers, (*path, "isolated", at))
            case RandomCrashes(every=every, start=start, end=end):
                if every == 0:
                    raise Misfit(
                        ScenarioError("a crash every 0 s", expected='a mean such as "10min"'),
                        (*path, "every"),
                    )
                if end is not None:
                    _check_order(start, end, (*path, "end"))


def _groups_of(rule: Rule) -> set[str]:
    match rule:
        case PlacementConstraint(group=group):
            return {group}
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return set().union(*map(_groups_of, parts))


def _check_known(kind: str, name: str, known: Iterable[str], path: Path) -> None:
    options = sorted(known)
    if name in options:
        return
    error = UnknownName(kind, name, options)
    if len(options) > 12:
        # A thousand machine names explain nothing.
        error.expected = f"one of {options[0]}, {options[1]}, ... {options[-1]}"
    raise Misfit(error, path)


def _check_order(low: float, high: float, path: Path) -> None:
    if low > high:
        raise Misfit(ScenarioError(f"from {low} to {high}", expected="the smaller one first"), path)
