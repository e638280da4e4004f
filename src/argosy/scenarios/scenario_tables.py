"""Writes values as the tables of a scenario file that reads them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from argosy.engines.registry import find_engine
from argosy.host.scheduler import make_settings
from argosy.model.constraints import Constraint
from argosy.model.constraints.text import format_constraint
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, NotModelled
from argosy.model.units import Micros


def cluster_tables(
    cell: CellSpec, machines: Iterable[Machine], fleet: Sequence[FleetEntry]
) -> dict[str, Any]:
    """The tables `cell` and `fleet` of a cluster with these machines."""
    known = list(machines)
    sets: dict[str, dict[str, None]] = {
        group.name: dict.fromkeys(group.sets) for group in cell.groups
    }
    for machine in known:
        for group, joined in machine.joins.items():
            sets.setdefault(group, {}).update(dict.fromkeys(joined))
    table: dict[str, Any] = {"machines": [_without_defaults(machine) for machine in known]}
    if sets:
        table["groups"] = {name: {"sets": list(names)} for name, names in sets.items()}
    if cell.constraints:
        table["constraints"] = [format_constraint(each) for each in cell.constraints]
    return {"cell": table, "fleet": [fleet_table(entry) for entry in fleet]}


def fleet_table(entry: FleetEntry) -> dict[str, Any]:
    """An entry of `[[fleet]]`."""
    table = _without_defaults(entry)
    if isinstance(entry.decision_time, NotModelled):
        # A live cluster models none; what is recorded of it may be simulated.
        table.pop("decision_time", None)
    if entry.settings:
        engine = find_engine(entry.engine)
        settings = _without_defaults(make_settings(engine, entry.settings), keep=entry.settings)
        table["settings"] = settings
    return table


def _without_defaults(value: msgspec.Struct, keep: Mapping[str, Any] = {}) -> dict[str, Any]:
    kinds = get_type_hints(type(value), include_extras=True)
    table: dict[str, Any] = {}
    config = value.__struct_config__
    if config.tag_field is not None:
        table[config.tag_field] = config.tag
    for field in msgspec.structs.fields(value):
        own = getattr(value, field.name)
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if own is not None and (own != default or field.name in keep):
            table[field.encode_name] = _plain(own, kinds[field.name])
    return table


def _plain(value: Any, kind: Any) -> Any:
    if isinstance(value, Resources):
        return {name: amount for name, amount in value.items() if amount}
    if isinstance(value, Constraint):
        return format_constraint(value)
    if isinstance(value, msgspec.Struct):
        return _without_defaults(value)
    if _is_time(kind):
        return f"{value}us"
    inside = _inside(kind)
    if isinstance(value, Mapping):
        item = inside[1] if len(inside) > 1 else Any
        return {key: _plain(each, item) for key, each in value.items()}
    if isinstance(value, tuple | list):
        item = inside[0] if inside else Any
        return [_plain(each, item) for each in value]
    return value


def _inside(kind: Any) -> tuple[Any, ...]:
    """What a type of containers says about their contents, whether annotated, optional or neither."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _inside(inside[0])
    if origin in (Union, UnionType):
        options = [each for each in inside if each is not NoneType]
        return _inside(options[0]) if len(options) == 1 else ()
    return inside


def _is_time(kind: Any) -> bool:
    origin = get_origin(kind)
    if kind is Micros:
        return True
    if origin is Annotated:
        return Micros in kind.__metadata__ or _is_time(get_args(kind)[0])
    return origin in (Union, UnionType) and any(_is_time(each) for each in get_args(kind))
