"""The `[cell]` of a scenario file: machine types with counts, and node groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from argosy.model.constraints import NAME, RESERVED, Constraint
from argosy.model.constraints.lint import Surroundings, unsound
from argosy.model.constraints.parts import SELF, leaves, tags_of
from argosy.model.constraints.text import format_constraint
from argosy.model.devices import DEVICES_EXPECTED, not_devices
from argosy.model.errors import ModelError, ScenarioError, UnknownName, excerpt
from argosy.model.jobs import is_name
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.resources import Resources, dimensions_of
from argosy.model.scenario import CellSpec, GroupSpec, Positive
from argosy.model.units import shown
from argosy.workloads.tables import Misfit, TablePath

_MACHINES: Final[TablePath] = ("cell", "machines")
_GROUPS: Final[TablePath] = ("cell", "groups")
MOST_MACHINES: Final = 1_000_000


class MachineTable(msgspec.Struct, frozen=True, kw_only=True):
    """`count` identical machines, named ``<name>-0`` and so on, or just `name` if there is only one."""

    name: str
    capacity: Resources
    count: Positive = 1
    attributes: dict[str, str] = {}
    joins: dict[str, tuple[str, ...]] = {}

    def names(self) -> list[str]:
        if self.count == 1:
            return [self.name]
        return [f"{self.name}-{index}" for index in range(self.count)]


class NodeGroupTable(msgspec.Struct, frozen=True, kw_only=True):
    """Either sets of `size` consecutive machines, or named `sets` that machines join."""

    size: Positive | None = None
    sets: tuple[str, ...] | None = None


class CellTable(msgspec.Struct, frozen=True, kw_only=True):
    machines: tuple[MachineTable, ...]
    groups: dict[str, NodeGroupTable] = {}
    constraints: tuple[Constraint, ...] = ()
    #: The resource that consists of devices.
    devices: str | None = None


def make_cell(
    table: CellTable,
    brought: Sequence[Machine] = (),
    own_groups: Sequence[GroupSpec] = (),
    devices: str | None = None,
) -> CellSpec:
    """The cell described by the table; `brought` are the machines of the workload, if the table has
    none, `own_groups` the node groups that they have joined, and `devices` their resource that consists
    of devices."""
    if not table.machines and not brought:
        raise Misfit(ScenarioError("no machines", expected="at least one"), _MACHINES)
    _check_counts(table)
    _check_groups(table)
    _check_joins(table)
    dealt = {name: group.size for name, group in table.groups.items() if group.size is not None}
    machines: list[Machine] = []
    seen: set[str] = set()
    for index, entry in enumerate(table.machines):
        if not is_name(entry.name):
            raise Misfit(
                ScenarioError(
                    f"machine name {excerpt(entry.name)}",
                    expected="a printable name without spaces",
                ),
                (*_MACHINES, index, "name"),
            )
        for key, value in entry.attributes.items():
            if not is_name(key) or not value.isprintable():
                raise Misfit(
                    ScenarioError(
                        f"attribute {excerpt(key)} = {excerpt(value)}",
                        expected="a name without spaces and a printable value",
                    ),
                    (*_MACHINES, index, "attributes", key),
                )
        for name in entry.names():
            if name in seen:
                raise Misfit(
                    ScenarioError(f"machine {name!r} again", expected="each machine name once"),
                    (*_MACHINES, index, "name"),
                )
            seen.add(name)
            joins = {group: (f"{group}-{len(machines) // size}",) for group, size in dealt.items()}
            machines.append(Machine(name, entry.capacity, entry.attributes, entry.joins | joins))
    for machine in () if table.machines else brought:
        joins = {group: (f"{group}-{len(machines) // size}",) for group, size in dealt.items()}
        machines.append(msgspec.structs.replace(machine, joins=machine.joins | joins))
    try:
        dimensions_of(machine.capacity for machine in machines)
    except ModelError as error:
        raise Misfit(error, _MACHINES) from None
    groups = tuple(
        GroupSpec(name=name, sets=_sets(name, group, len(machines)))
        for name, group in table.groups.items()
    )
    groups += tuple(group for group in own_groups if group.name not in table.groups)
    constraints = _constraints(table, groups)
    _require_sound(constraints, groups, len(machines))
    named = table.devices or devices
    if named is not None:
        _check_devices(named, machines)
    return CellSpec(
        machines=tuple(machines),
        groups=groups,
        constraints=constraints,
        devices=msgspec.UNSET if named is None else named,
    )


def _check_devices(resource: str, machines: Sequence[Machine]) -> None:
    path: TablePath = ("cell", "devices")
    known = sorted({name for machine in machines for name in machine.capacity.extras})
    if resource not in known:
        raise Misfit(UnknownName("resource besides cpu and memory", resource, known), path)
    for machine in machines:
        if (problem := not_devices(machine.capacity, resource)) is not None:
            raise Misfit(
                ScenarioError(f"{machine.name}: {problem}", expected=DEVICES_EXPECTED), path
            )


def _constraints(table: CellTable, known: Sequence[GroupSpec]) -> tuple[Constraint, ...]:
    groups = (MACHINE_GROUP, *(group.name for group in known))
    for index, constraint in enumerate(table.constraints):
        path: TablePath = ("cell", "constraints", index)
        for leaf in leaves(constraint.rule):
            if leaf.group not in groups:
                raise Misfit(UnknownName("node group", leaf.group, groups), path)
        if SELF in tags_of(constraint.rule):
            raise Misfit(
                ScenarioError(f"{SELF} in a constraint of the cell", expected="tags of jobs"),
                path,
            )
    return table.constraints


def _require_sound(
    constraints: tuple[Constraint, ...], groups: tuple[GroupSpec, ...], machines: int
) -> None:
    sets = {MACHINE_GROUP: machines, **{group.name: len(group.sets) for group in groups}}
    if (finding := unsound(constraints, Surroundings(groups=sets))) is not None:
        text = format_constraint(constraints[finding.constraint])
        raise Misfit(
            ScenarioError(f"'{text}': {finding.problem}"),
            ("cell", "constraints", finding.constraint),
        )


def _sets(name: str, group: NodeGroupTable, machines: int) -> tuple[str, ...]:
    if group.sets is not None:
        return group.sets
    assert group.size is not None
    return tuple(f"{name}-{index}" for index in range(-(-machines // group.size)))


def _check_counts(table: CellTable) -> None:
    """Checked before any machine is created, because a large number is quickly written."""
    machines = 0
    for index, entry in enumerate(table.machines):
        machines += entry.count
        if machines > MOST_MACHINES:
            raise Misfit(
                ScenarioError(
                    f"{shown(machines)} machines in total", expected=f"at most {MOST_MACHINES:,}"
                ),
                (*_MACHINES, index, "count"),
            )


def _check_groups(table: CellTable) -> None:
    for name, group in table.groups.items():
        if name in RESERVED or NAME.fullmatch(name) is None:
            raise Misfit(
                ScenarioError(
                    f"group {excerpt(name)} is not valid in constraints",
                    expected="letters, digits and _ . : / -, starting with a letter, digit or _,"
                    " and not a keyword",
                ),
                (*_GROUPS, name),
            )
        if name == MACHINE_GROUP:
            raise Misfit(
                ScenarioError(
                    f"group {name!r} already exists: each machine is its own set",
                    expected="another name",
                ),
                (*_GROUPS, name),
            )
        if (group.size is None) == (group.sets is None):
            fault = "neither size nor sets" if group.size is None else "both size and sets"
            raise Misfit(
                ScenarioError(
                    f"group {name!r} has {fault}",
                    expected="size = 40 for consecutive machines, or sets that machines join",
                ),
                (*_GROUPS, name),
            )
        names = group.sets or ()
        for index, set_name in enumerate(names):
            if not is_name(set_name):
                raise Misfit(
                    ScenarioError(
                        f"set {excerpt(set_name)}",
                        expected="a printable name without spaces",
                    ),
                    (*_GROUPS, name, "sets", index),
                )
            if set_name in names[:index]:
                raise Misfit(
                    ScenarioError(f"set {set_name!r} again", expected="each set once"),
                    (*_GROUPS, name, "sets", index),
                )


def _check_joins(table: CellTable) -> None:
    for index, entry in enumerate(table.machines):
        for group, joined in entry.joins.items():
            path: TablePath = (*_MACHINES, index, "joins", group)
            if group not in table.groups:
                raise Misfit(UnknownName("node group", group, table.groups), path)
            sets = table.groups[group].sets
            if sets is None:
                raise Misfit(
                    ScenarioError(
                        f"group {group!r} assigns machines by size",
                        expected="groups that have sets",
                    ),
                    path,
                )
            for at, name in enumerate(joined):
                if name not in sets:
                    raise Misfit(UnknownName(f"set of {group}", name, sets), (*path, at))
