"""The `[[clusters]]` of a scenario file: each is described like a cell; together they form a federation.

Names are prefixed with their cluster: machine `m-0` of cluster `north` is `north/m-0`, and likewise the
sets of its node groups. Groups of the same name are one group of the federation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from argosy.model.constraints import NAME
from argosy.model.errors import ModelError, ScenarioError, UnknownName, excerpt
from argosy.model.jobs import is_name
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.resources import dimensions_of
from argosy.model.scenario import (
    BOTH_WAYS,
    CellSpec,
    Federation,
    FleetEntry,
    GroupSpec,
    Network,
    Places,
)
from argosy.model.units import shown
from argosy.scenarios.cell_tables import (
    MOST_MACHINES,
    CellTable,
    MachineTable,
    NodeGroupTable,
    make_cell,
)
from argosy.workloads.tables import Misfit, TablePath

_Struct = TypeVar("_Struct", bound=msgspec.Struct)
_PLACES: Final[TablePath] = ("network", "places")


class FederatedTable(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster, with machines and groups like those of a cell; its place defaults to its name."""

    name: str
    machines: tuple[MachineTable, ...]
    place: str | None = None
    groups: dict[str, NodeGroupTable] = {}

    @property
    def where(self) -> str:
        return self.name if self.place is None else self.place


class FleetTable(FleetEntry, frozen=True, kw_only=True):
    #: Where its schedulers are; None: no particular place.
    place: str | None = None

    def plain(self, settings: dict[str, Any]) -> FleetEntry:
        return _only(FleetEntry, msgspec.structs.replace(self, settings=settings))


class NetworkTable(Network, frozen=True, kw_only=True):
    places: Places | None = None

    def plain(self) -> Network:
        return _only(Network, self)


def _only(kind: type[_Struct], table: msgspec.Struct) -> _Struct:
    """The fields of the table that belong to its base."""
    return kind(**{name: getattr(table, name) for name in kind.__struct_fields__})


def make_federated_cell(tables: Sequence[FederatedTable]) -> CellSpec:
    """The single cell that contains all clusters."""
    if not tables:
        raise Misfit(ScenarioError("no clusters", expected="at least one"), ("clusters",))
    machines: list[Machine] = []
    sets: dict[str, list[str]] = {CLUSTER_GROUP: []}
    for index, table in enumerate(tables):
        path: TablePath = ("clusters", index)
        _check_names(table, sets[CLUSTER_GROUP], path)
        sets[CLUSTER_GROUP].append(table.name)
        cell = _cell_of(table, path)
        for group in cell.groups:
            joined = sets.setdefault(group.name, [])
            joined.extend(f"{table.name}/{name}" for name in group.sets)
        machines.extend(_federated(machine, table.name) for machine in cell.machines)
        if len(machines) > MOST_MACHINES:
            raise Misfit(
                ScenarioError(
                    f"{shown(len(machines))} machines in all",
                    expected=f"at most {MOST_MACHINES:,}",
                ),
                (*path, "machines"),
            )
    try:
        dimensions_of(machine.capacity for machine in machines)
    except ModelError as error:
        raise Misfit(error, ("clusters",)) from None
    return CellSpec(
        machines=tuple(machines),
        groups=tuple(GroupSpec(name=name, sets=tuple(known)) for name, known in sets.items()),
    )


def _cell_of(table: FederatedTable, path: TablePath) -> CellSpec:
    try:
        return make_cell(CellTable(machines=table.machines, groups=table.groups))
    except Misfit as misfit:
        # Errors in a cluster are reported like errors in a cell.
        raise Misfit(misfit.error, (*path, *misfit.path[1:])) from None


def _federated(machine: Machine, cluster: str) -> Machine:
    joins = {
        group: tuple(f"{cluster}/{name}" for name in names)
        for group, names in machine.joins.items()
    }
    return msgspec.structs.replace(
        machine, name=f"{cluster}/{machine.name}", joins={CLUSTER_GROUP: (cluster,), **joins}
    )


def _check_names(table: FederatedTable, before: Sequence[str], path: TablePath) -> None:
    if NAME.fullmatch(table.name) is None or "/" in table.name:
        raise Misfit(
            ScenarioError(
                f"cluster name {excerpt(table.name)}",
                expected="letters, digits and _ . : -, beginning with a letter, digit or _",
            ),
            (*path, "name"),
        )
    if table.name in before:
        raise Misfit(
            ScenarioError(f"cluster {table.name!r} again", expected="each cluster name once"),
            (*path, "name"),
        )
    if not is_name(table.where) or any(c in "<>" for c in table.where):
        raise Misfit(
            ScenarioError(
                f"place {excerpt(table.where)}",
                expected="a name without spaces, '<' and '>', all of it printable",
            ),
            (*path, "place"),
        )
    if CLUSTER_GROUP in table.groups:
        raise Misfit(
            ScenarioError(
                f"group {CLUSTER_GROUP!r} already exists: each cluster is one of its sets",
                expected="another name",
            ),
            (*path, "groups", CLUSTER_GROUP),
        )


def make_federation(
    tables: Sequence[FederatedTable] | None, fleet: Sequence[FleetTable], places: Places | None
) -> Federation | None:
    """The places of all parties. A place is known if a cluster is there. A place with only schedulers
    is known if a distance to it is given, so that a typing error is not taken for another place."""
    if tables is None:
        _check_none(fleet, places)
        return None
    of_clusters = dict.fromkeys(table.where for table in tables)
    of_fleet = dict.fromkeys(entry.place for entry in fleet if entry.place is not None)
    measured: dict[str, None] = {}
    if places is not None:
        measured = _check_delays(places, of_clusters | of_fleet)
    known = of_clusters | measured
    schedulers: dict[str, str] = {}
    for index, entry in enumerate(fleet):
        if entry.place is None:
            continue
        if entry.place not in known:
            raise Misfit(UnknownName("place", entry.place, known), ("fleet", index, "place"))
        schedulers |= dict.fromkeys(entry.scheduler_names(), entry.place)
    return Federation(
        clusters=tuple(Cluster(table.name, table.where) for table in tables),
        places=places,
        schedulers=schedulers,
    )


def _check_none(fleet: Sequence[FleetTable], places: Places | None) -> None:
    paths: list[TablePath] = [
        ("fleet", index, "place") for index, e in enumerate(fleet) if e.place is not None
    ]
    if places is not None:
        paths.append(_PLACES)
    for path in paths:
        raise Misfit(
            ScenarioError(
                "places without clusters",
                expected="[[clusters]] in place of [cell]",
                hint="a cell on its own is at no place: say how far it is by network.latency",
            ),
            path,
        )


def _check_delays(places: Places, known: Iterable[str]) -> dict[str, None]:
    """The places between which a distance is given."""
    measured: dict[str, None] = {}
    seen: set[frozenset[str]] = set()
    for pair in places.delays:
        path: TablePath = (*_PLACES, "delays", pair)
        one, arrow, other = pair.partition(BOTH_WAYS)
        if not arrow or not one or not other:
            raise Misfit(
                ScenarioError(f"{excerpt(pair)} is not a pair", expected='"one<>other"'), path
            )
        if one == other:
            raise Misfit(
                ScenarioError(
                    f"{excerpt(pair)} is one place", expected="two places: `within` is for one"
                ),
                path,
            )
        for name in (one, other):
            if name not in known:
                raise Misfit(UnknownName("place", name, known), path)
        if frozenset((one, other)) in seen:
            raise Misfit(
                ScenarioError(
                    f"{excerpt(pair)} again", expected="each pair once: it is as far both ways"
                ),
                path,
            )
        seen.add(frozenset((one, other)))
        measured |= {one: None, other: None}
    return measured
