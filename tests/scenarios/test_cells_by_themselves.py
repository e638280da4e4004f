"""Cells made of their tables: machines, node groups, constraints and devices, and each mistake."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.model.devices import DEVICES_EXPECTED
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import GroupSpec
from argosy.scenarios.cell_tables import CellTable, MachineTable, NodeGroupTable, make_cell
from argosy.scenarios.cluster_tables import FederatedTable, make_federated_cell
from argosy.workloads.tables import Misfit

ONE = Resources(cpu=1_000)


def machine(name: str = "m", **fields: Any) -> MachineTable:
    return MachineTable(name=name, **{"capacity": ONE, **fields})


def cell(*machines: MachineTable, constraints: tuple[str, ...] = (), **groups: Any) -> CellTable:
    return CellTable(
        machines=machines or (machine(),),
        groups={
            name: NodeGroupTable(size=how) if isinstance(how, int) else NodeGroupTable(sets=how)
            for name, how in groups.items()
        },
        constraints=tuple(map(parse_constraint, constraints)),
    )


def mistake(*given: Any, **named: Any) -> tuple[str, str | None, Any]:
    with pytest.raises(Misfit) as caught:
        make_cell(*given, **named)
    return caught.value.error.problem, caught.value.error.expected, caught.value.path


def test_one_machine_has_its_name_and_several_have_numbers() -> None:
    made = make_cell(cell(machine("a"), machine("b", count=2, attributes={"x": "y z"})))
    assert [(each.name, each.capacity, each.attributes) for each in made.machines] == [
        ("a", ONE, {}),
        ("b-0", ONE, {"x": "y z"}),
        ("b-1", ONE, {"x": "y z"}),
    ]
    assert made.groups == made.constraints == ()
    assert made.device_resource is None


def test_consecutive_machines_are_dealt_to_sets_and_join_others() -> None:
    table = cell(
        machine("a", count=3, joins={"unit": ("u1", "u0")}), machine("b", count=2),
        unit=("u0", "u1", "u2"), rack=2, row=5,
    )  # fmt: skip
    made = make_cell(table)
    assert [each.joins for each in made.machines] == [
        {"unit": ("u1", "u0"), "rack": ("rack-0",), "row": ("row-0",)},
        {"unit": ("u1", "u0"), "rack": ("rack-0",), "row": ("row-0",)},
        {"unit": ("u1", "u0"), "rack": ("rack-1",), "row": ("row-0",)},
        {"rack": ("rack-1",), "row": ("row-0",)},
        {"rack": ("rack-2",), "row": ("row-0",)},
    ]
    assert made.groups == (
        GroupSpec(name="unit", sets=("u0", "u1", "u2")),
        GroupSpec(name="rack", sets=("rack-0", "rack-1", "rack-2")),
        GroupSpec(name="row", sets=("row-0",)),
    )


BROUGHT = tuple(
    Machine(f"n{number}", Resources(cpu=number, extras={"gpu": 1_000 * number}), joins=joins)
    for number, joins in enumerate(({"zone": ("z1",)}, {"rack": ("own",)}, {}))
)
OWN = (GroupSpec(name="zone", sets=("z1",)), GroupSpec(name="rack", sets=("own",)))


def test_machines_that_a_workload_brings_are_dealt_like_others() -> None:
    table = CellTable(machines=(), groups={"rack": NodeGroupTable(size=2)})
    made = make_cell(table, BROUGHT, OWN, "gpu")
    assert [each.name for each in made.machines] == ["n0", "n1", "n2"]
    assert [each.joins for each in made.machines] == [
        {"zone": ("z1",), "rack": ("rack-0",)},
        {"rack": ("rack-0",)},
        {"rack": ("rack-1",)},
    ]
    # The table's group stands for the one of the same name.
    assert made.groups == (GroupSpec(name="rack", sets=("rack-0", "rack-1")), OWN[0])
    assert made.device_resource == "gpu"
    assert make_cell(table, BROUGHT, OWN).device_resource is None
    own = make_cell(cell(machine("mine")), BROUGHT)
    assert [each.name for each in own.machines] == ["mine"]
    assert mistake(CellTable(machines=())) == ("no machines", "at least one", ("cell", "machines"))


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (
            (machine("a"), machine("b c")),
            ("machine name 'b c'", "a printable name without spaces", (1, "name")),
        ),
        (
            (machine(), machine("n", attributes={"x": "ok", "a b": "c"})),
            (
                "attribute 'a b' = 'c'",
                "a name without spaces and a printable value",
                (1, "attributes", "a b"),
            ),
        ),
        (
            (machine(attributes={"a": "b\n"}),),
            (
                "attribute 'a' = 'b\\n'",
                "a name without spaces and a printable value",
                (0, "attributes", "a"),
            ),
        ),
        (
            (machine("m", count=2), machine("m-1")),
            ("machine 'm-1' again", "each machine name once", (1, "name")),
        ),
        (
            (machine("m", count=999_999), machine("n", count=2)),
            ("1000001 machines in total", "at most 1,000,000", (1, "count")),
        ),
    ],
)
def test_mistakes_about_machines(tables: tuple[MachineTable, ...], found: Any) -> None:
    problem, expected, path = found
    assert mistake(cell(*tables)) == (problem, expected, ("cell", "machines", *path))


def test_machines_are_counted_before_any_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.scenarios.cell_tables.MOST_MACHINES", 3)
    assert len(make_cell(cell(machine("a", count=2), machine("b"))).machines) == 3
    assert mistake(cell(machine("a", count=2), machine("b", count=2)))[2] == (
        "cell", "machines", 1, "count",
    )  # fmt: skip


NAMES = "letters, digits and _ . : / -, starting with a letter, digit or _, and not a keyword"
CHOICE = "size = 40 for consecutive machines, or sets that machines join"


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        (
            {"a b": {"size": 1}},
            ("group 'a b' is not valid in constraints", NAMES, ("a b",)),
        ),
        ({"in": {"size": 1}}, ("group 'in' is not valid in constraints", NAMES, ("in",))),
        (
            {"rack": {"size": 1}, "machine": {"size": 1}},
            (
                "group 'machine' already exists: each machine is its own set",
                "another name",
                ("machine",),
            ),
        ),
        ({"rack": {}}, ("group 'rack' has neither size nor sets", CHOICE, ("rack",))),
        (
            {"rack": {"size": 1, "sets": ("a",)}},
            ("group 'rack' has both size and sets", CHOICE, ("rack",)),
        ),
        (
            {"rack": {"sets": ("a", "b c")}},
            ("set 'b c'", "a printable name without spaces", ("rack", "sets", 1)),
        ),
        (
            {"rack": {"sets": ("a", "b", "a")}},
            ("set 'a' again", "each set once", ("rack", "sets", 2)),
        ),
    ],
)
def test_mistakes_about_groups(groups: dict[str, dict[str, Any]], found: Any) -> None:
    tables = {name: NodeGroupTable(**table) for name, table in groups.items()}
    problem, expected, path = found
    assert mistake(CellTable(machines=(machine(),), groups=tables)) == (
        problem, expected, ("cell", "groups", *path),
    )  # fmt: skip


def test_a_group_may_have_no_sets_and_a_long_name() -> None:
    made = make_cell(cell(**{"a.b:c/d-e_9": (), "7": ("x",)}))
    assert [(group.name, group.sets) for group in made.groups] == [
        ("a.b:c/d-e_9", ()),
        ("7", ("x",)),
    ]


@pytest.mark.parametrize(
    ("joins", "problem", "expected", "path"),
    [
        (
            {"unit": ("u0",), "unti": ()},
            "unknown node group 'unti'",
            "one of rack, unit",
            ("unti",),
        ),
        (
            {"rack": ("rack-0",)},
            "group 'rack' assigns machines by size",
            "groups that have sets",
            ("rack",),
        ),
        ({"unit": ("u1", "u2")}, "unknown set of unit 'u2'", "one of u0, u1", ("unit", 1)),
    ],
)
def test_machines_join_sets_that_there_are(
    joins: dict[str, tuple[str, ...]], problem: str, expected: str, path: tuple[Any, ...]
) -> None:
    table = cell(machine(), machine("n", joins=joins), unit=("u0", "u1"), rack=2)
    assert mistake(table) == (problem, expected, ("cell", "machines", 1, "joins", *path))


def test_constraints_of_a_cell_are_on_its_groups_and_on_tags_of_jobs() -> None:
    fine = ("a -> {b, 0, 1} in rack", "a -> {b, 0, 1} in machine")
    made = make_cell(cell(constraints=fine, rack=1))
    assert made.constraints == tuple(map(parse_constraint, fine))
    unknown = cell(constraints=(fine[1], "a -> {b, 0, 1} in rick"), rack=1)
    assert mistake(unknown) == (
        "unknown node group 'rick'", "one of machine, rack", ("cell", "constraints", 1),
    )  # fmt: skip
    own = cell(constraints=(fine[1], "appID:self & a -> {b, 0, 1} in machine"))
    assert mistake(own) == (
        "appID:self in a constraint of the cell", "tags of jobs", ("cell", "constraints", 1),
    )  # fmt: skip
    # Those of machines that a workload brings count as well.
    table = msgspec.structs.replace(cell(constraints=("a -> {b, 0, 1} in zone",)), machines=())
    assert make_cell(table, BROUGHT, OWN).constraints


def test_devices_are_whole_and_some_machine_has_them() -> None:
    def with_gpus(*amounts: int, devices: str | None = "gpu") -> CellTable:
        machines = [
            machine(f"g{at}", capacity=Resources(extras={"gpu": amount}))
            for at, amount in enumerate(amounts)
        ]
        return CellTable(machines=(machine("plain"), *machines), devices=devices)

    assert make_cell(with_gpus(2_000)).device_resource == "gpu"
    assert make_cell(with_gpus(1_500, devices=None)).device_resource is None
    path = ("cell", "devices")
    problem, expected, where = mistake(with_gpus(1_000, 1_500))
    assert problem.startswith("g1: ")
    assert (expected, where) == (DEVICES_EXPECTED, path)
    assert mistake(with_gpus(1_000, devices="gup")) == (
        "unknown resource besides cpu and memory 'gup'", "one of gpu", path,
    )  # fmt: skip
    assert mistake(with_gpus(1_000, devices="cpu"))[0] == (
        "unknown resource besides cpu and memory 'cpu'"
    )
    # The table's own name stands before the workload's.
    table = CellTable(machines=(), devices="gpu")
    assert make_cell(table, BROUGHT, (), "other").device_resource == "gpu"


def federated(name: str, *machines: MachineTable, **fields: Any) -> FederatedTable:
    return FederatedTable(name=name, machines=machines or (machine(),), **fields)


def test_sets_of_clusters_are_in_one_group_by_name() -> None:
    racks = {"rack": NodeGroupTable(size=1)}
    units = {"unit": NodeGroupTable(sets=("u",)), **racks}
    made = make_federated_cell(
        [
            federated("a", machine(count=2), groups=racks),
            federated("b", machine(joins={"unit": ("u",)}), groups=units),
            federated("c"),
        ]
    )
    assert [(each.name, each.joins) for each in made.machines] == [
        ("a/m-0", {"cluster": ("a",), "rack": ("a/rack-0",)}),
        ("a/m-1", {"cluster": ("a",), "rack": ("a/rack-1",)}),
        ("b/m", {"cluster": ("b",), "unit": ("b/u",), "rack": ("b/rack-0",)}),
        ("c/m", {"cluster": ("c",)}),
    ]
    assert [(group.name, group.sets) for group in made.groups] == [
        ("cluster", ("a", "b", "c")),
        ("rack", ("a/rack-0", "a/rack-1", "b/rack-0")),
        ("unit", ("b/u",)),
    ]


@pytest.mark.parametrize(
    ("table", "problem", "path"),
    [
        (federated("b", machine("x y")), "machine name 'x y'", ("machines", 0, "name")),
        (federated("a"), "cluster 'a' again", ("name",)),
        (federated("b/c"), "cluster name 'b/c'", ("name",)),
        (federated("b", place=""), "place ''", ("place",)),
        (federated("b", place="x>y"), "place 'x>y'", ("place",)),
        (federated("b", place="x<y"), "place 'x<y'", ("place",)),
        (
            federated("b", groups={"cluster": NodeGroupTable(size=1)}),
            "group 'cluster' already exists: each cluster is one of its sets",
            ("groups", "cluster"),
        ),
    ],
)
def test_mistakes_about_a_cluster_are_at_the_cluster(
    table: FederatedTable, problem: str, path: tuple[Any, ...]
) -> None:
    with pytest.raises(Misfit) as caught:
        make_federated_cell([federated("a"), table])
    assert caught.value.error.problem == problem
    assert caught.value.path == ("clusters", 1, *path)


def test_all_machines_together_have_eight_resources_at_most() -> None:
    def machines(count: int) -> list[MachineTable]:
        """Each with a resource of its own, besides cpu and memory."""
        return [machine(f"m{at}", capacity=Resources(extras={f"r{at}": 1})) for at in range(count)]

    assert len(make_cell(cell(*machines(6))).machines) == 6
    assert mistake(cell(*machines(7))) == (
        "9 resource dimensions", "at most 8", ("cell", "machines"),
    )  # fmt: skip
    make_federated_cell([federated("a", *machines(6)[:3]), federated("b", *machines(6)[3:])])
    with pytest.raises(Misfit) as caught:
        make_federated_cell([federated("a", *machines(7)[:3]), federated("b", *machines(7)[3:])])
    assert caught.value.error.problem == "9 resource dimensions"
    assert caught.value.path == ("clusters",)
