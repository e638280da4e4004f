"""Demands that can never be met, word for word, and errors that carry what others said."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model import entry_points
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import (
    ArgosyError,
    CommandError,
    CommitRefused,
    ConstraintSyntaxError,
    EngineFault,
    FleetRefused,
    ServerError,
    UnknownEngine,
    UnknownForm,
    error_tree,
)
from argosy.model.feasibility import Feasibility, UnmeetableDemand
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources

GIB = 2**30
MACHINES = (
    Machine("a-0", Resources(4_000, 8 * GIB), joins={"rack": ("r0",)}),
    Machine("a-1", Resources(4_000, 8 * GIB), joins={"rack": ("r0",)}),
    Machine(
        "big",
        Resources(8_000, 16 * GIB, {"gpu": 2}),
        {"disk": "ssd", "arch": "arm"},
        {"rack": ("r1",), "both": ("x", "y")},
    ),
)
APART = "w -> {w, 0, 0} in machine hard"


def group(count: int = 1, cpu: int = 4_000, **fields: Any) -> TaskGroup:
    request = fields.pop("request", Resources(cpu, GIB))
    given = {"estimate": None if fields.get("endless") else 5, **fields}
    return TaskGroup(count, request, **given)


def found(
    job: Job, *operator: str, machines: tuple[Machine, ...] = MACHINES, devices: str | None = None
) -> list[UnmeetableDemand]:
    return Feasibility(machines, map(parse_constraint, operator), devices).of(job)


def only(job: Job, *operator: str) -> tuple[str, int, int, str, str]:
    [demand] = found(job, *operator)
    assert demand.job == job.id
    assert str(demand) == f"{job.id} {demand.problem}"
    return demand.code, demand.group, demand.most, demand.problem, demand.remedy


class TestGroups:
    def test_services_that_do_not_fit_beside_each_other(self) -> None:
        assert only(Job("s", (group(5, endless=True),))) == (
            "service",
            0,
            4,
            "has 5 tasks that run until stopped, each asking for 4 cores and 1 GiB: even if empty, "
            "the cluster holds 4 of them, on a-0, a-1 and big",
            "1 task fewer, or machines for 1 more",
        )
        assert not found(Job("s", (group(4, endless=True),)))
        assert not found(Job("s", (group(5),)))

    def test_the_group_is_numbered_if_there_are_others(self) -> None:
        wanted = group(4, requires={"disk": "ssd"})
        assert only(Job("s", (group(1), wanted), gang=True)) == (
            "gang",
            1,
            2,
            "is a gang of 4 tasks, each asking for 4 cores and 1 GiB on machines with disk=ssd "
            "(group 2): even if empty, the cluster holds 2 of them, on big",
            "2 tasks fewer, or machines for 2 more",
        )
        assert only(Job("s", (group(3, endless=True, requires={"disk": "ssd"}),), gang=True))[
            0
        ] == ("gang")

    def test_every_group_has_its_own_reason_and_comes_before_constraints(self) -> None:
        groups = (
            group(cpu=9_000),
            group(1),
            group(requires={"disk": "tape"}),
            group(9, endless=True, tags=("w",)),
        )
        job = Job("s", groups, constraints=(parse_constraint(APART),), kind="service")
        demands = found(job)
        assert [(each.code, each.group) for each in demands] == [
            ("too-large", 0),
            ("no-machine", 2),
            ("service", 3),
        ]
        assert (demands[1].problem, demands[1].remedy) == (
            "requires disk=tape, which no machine has",
            "a machine with disk=tape, or no such requirement",
        )

    @pytest.mark.parametrize(
        ("request_", "requires", "problem", "remedy"),
        [
            (
                Resources(9_000, GIB, {"gpu": 3}),
                {},
                "has tasks that ask for 9 cores and 3 gpu; the largest machine has 8 cores and 2 gpu",
                "ask for 1 core and 1 gpu less, or add a machine with 9 cores and 3 gpu",
            ),
            (
                Resources(9_000, GIB, {"tpu": 1}),
                {},
                "has tasks that ask for 9 cores and 1 tpu; the largest machine has 8 cores and no tpu",
                "ask for 1 core and 1 tpu less, or add a machine with 9 cores and 1 tpu",
            ),
            (
                Resources(0, GIB, {"tpu": 1}),
                {"arch": "arm"},
                "has tasks that ask for 1 tpu; no machine of those with arch=arm has any",
                "ask for 1 tpu less, or add a machine with 1 tpu",
            ),
            (
                Resources(0, 17 * GIB),
                {"arch": "arm", "disk": "ssd"},
                "has tasks that ask for 17 GiB; the largest machine of those with arch=arm and disk=ssd"
                " has 16 GiB",
                "ask for 1 GiB less, or add a machine with 17 GiB",
            ),
        ],
    )
    def test_what_no_machine_has(
        self, request_: Resources, requires: dict[str, str], problem: str, remedy: str
    ) -> None:
        job = Job("s", (group(request=request_, requires=requires),))
        assert only(job) == ("too-large", 0, 0, problem, remedy)

    def test_what_is_there_but_not_together(self) -> None:
        wide = Machine("wide", Resources(99_000, GIB))
        job = Job("s", (group(request=Resources(9_000, 2 * GIB, {"gpu": 1})),))
        [demand] = found(job, machines=(*MACHINES, wide))
        asked = "9 cores, 2 GiB and 1 gpu"
        assert demand.problem == (
            f"has tasks that ask for {asked} together, which no one machine has"
        )
        assert demand.remedy == f"a machine with {asked}, or smaller tasks"

    def test_slots_are_counted_for_each_request_and_its_requirements(self) -> None:
        known = Feasibility(MACHINES)
        assert known.slots(group()).tolist() == [1, 1, 2]
        assert known.slots(group(requires={"disk": "ssd"})).tolist() == [0, 0, 2]
        assert known.slots(group(requires={"disk": "hdd"})).tolist() == [0, 0, 0]
        assert known.slots(group(cpu=1_500)).tolist() == [2, 2, 5]
        assert known.slots(group(request=Resources(1_000, 7 * GIB))).tolist() == [1, 1, 2]
        assert known.slots(group(request=Resources(0, 0, {"gpu": 1}))).tolist() == [0, 0, 2]
        assert known.slots(group(request=Resources(0, 0, {"tpu": 1}))).tolist() == [0, 0, 0]
        assert known.slots(group(request=Resources(1_000, 0, {"tpu": 0}))).tolist() == [4, 4, 8]
        assert (known.slots(group(request=Resources())) > 2**30).all()
        assert known.slots(group()).tolist() == [1, 1, 2]
        assert known.having({}) == [0, 1, 2]
        assert known.having({"disk": "ssd", "arch": "x86"}) == []

    @pytest.mark.parametrize(
        ("amount", "slots"), [(1, 2), (400, 2), (600, 2), (1_000, 2), (1_500, 1), (2_000, 1)]
    )
    def test_devices_are_taken_one_by_one(self, amount: int, slots: int) -> None:
        machine = Machine("g", Resources(8_000, GIB, {"gpu": 2_000}))
        asked = group(request=Resources(4_000, 0, {"gpu": amount}))
        assert Feasibility((machine,), devices="gpu").slots(asked).tolist() == [slots]
        small = group(request=Resources(0, 0, {"gpu": 600}))
        assert Feasibility((machine,), devices="gpu").slots(small).tolist() == [2]
        assert Feasibility((machine,)).slots(small).tolist() == [3]
        none = group(request=Resources(4_000, 0, {"gpu": 0}))
        assert Feasibility((machine,), devices="gpu").slots(none).tolist() == [2]


class TestApart:
    def web(self, *counts: int, **fields: Any) -> Job:
        groups = tuple(group(count, 1_000, tags=("w",)) for count in counts)
        return Job("s", groups, **{"kind": "service", **fields})

    def test_the_places_and_what_they_take_are_counted(self) -> None:
        assert only(self.web(2, 3), APART) == (
            "apart",
            -1,
            3,
            f"has 5 tasks that must run at once, but '{APART}' allows 1 task per machine, so "
            "3 machines with room can take only 3",
            "2 tasks fewer, another machine, or a constraint that is not hard",
        )
        rule = "w -> {w, 0, 1} in rack hard"
        told = only(self.web(5), rule)
        assert told[2:] == (
            4,
            f"has 5 tasks that must run at once, but '{rule}' allows 2 tasks per rack, so "
            "2 racks with room can take only 4",
            "1 task fewer, another rack, or a constraint that is not hard",
        )
        assert not found(self.web(4), rule)

    def test_a_place_takes_no_more_than_it_has_room_for(self) -> None:
        # Each task fills a small machine: the first rack has room for two of the three it may have.
        rule = "w -> {w, 0, 2} in rack hard"
        job = Job("s", (group(5, 4_000, tags=("w",)),), kind="service")
        assert only(job, rule)[2] == 4
        only_big = Job("s", (group(3, 8_000, tags=("w",)),), kind="service")
        assert only(only_big, APART)[2:4] == (
            1,
            f"has 3 tasks that must run at once, but '{APART}' allows 1 task per machine, so "
            "1 machine with room can take only 1",
        )

    @pytest.mark.parametrize(
        ("rule", "is_found"),
        [
            (APART, True),
            ("w -> {w, 0, 0} and {x, 0, inf} in machine hard", True),
            ("w -> {x, 0, inf} and {w, 0, 0} in machine hard", True),
            ("w -> {w, 0, 0} or {x, 0, 0} in machine hard", False),
            ("w -> not {w, 1, inf} in machine hard", False),
            ("w -> {w, 0, inf} in machine hard", False),
            ("w -> {v, 0, 0} in machine hard", False),
            ("v -> {w, 0, 0} in machine hard", False),
            ("w -> {w, 0, 0} in both hard", False),
            ("w -> {w, 0, 0} in machine", False),
            ("w -> spread {0, 1} over rack hard", False),
            ("w -> {w, 0, 0} in machine and w -> {x, 0, 0} in rack hard", True),
        ],
    )
    def test_only_bounds_that_hold_wherever_the_rule_does(self, rule: str, is_found: bool) -> None:
        assert bool(found(self.web(4), rule)) == is_found

    @pytest.mark.parametrize(
        ("fields", "is_found"),
        [
            ({}, True),
            ({"kind": "batch"}, False),
            ({"kind": "batch", "gang": True}, True),
        ],
    )
    def test_only_tasks_that_run_at_once(self, fields: dict[str, Any], is_found: bool) -> None:
        assert bool(found(self.web(4, **fields), APART)) == is_found
        endless = group(4, 1_000, tags=("w",), endless=True)
        assert found(Job("s", (endless,), kind="batch"), APART)
        assert not found(Job("s", (endless, group(1, 1_000)), kind="batch"), APART)

    def test_bounds_that_can_be_kept_or_concern_nobody_hide_no_other(self) -> None:
        both = group(4, 1_000, tags=("v", "w"))
        job = Job("s", (both,), kind="service")
        for rule in (
            "w -> {w, 0, 9} and {v, 0, 0} in machine hard",
            "w -> {x, 0, 0} and {v, 0, 0} in machine hard",
        ):
            demand = only(job, rule)
            assert demand[2] == 3
            assert "allows 1 task per machine" in demand[3]

    def test_all_groups_that_a_bound_counts_count_together_and_no_others(self) -> None:
        others = group(9, 1_000)
        web = [group(count, 4_000, tags=("w",)) for count in (2, 3)]
        rule = "w -> {w, 0, 1} in rack hard"
        [demand] = found(Job("s", (web[0], others, web[1]), kind="service"), rule)
        assert (demand.group, demand.most) == (-1, 4)
        assert demand.problem.startswith("has 5 tasks that must run at once, ")
        assert not found(Job("s", (web[0], others), kind="service"), rule)
        # Of requests that differ, each place has room for those of either.
        wide = "w -> {w, 0, 2} in rack hard"
        assert not found(Job("s", tuple(web), kind="service"), wide)

    def test_its_own_constraints_come_before_the_operators(self) -> None:
        own = parse_constraint("appID:self -> {appID:self, 0, 1} in rack hard")
        demands = found(self.web(5, constraints=(own,)), APART)
        assert [("rack" in each.problem, each.most) for each in demands] == [(True, 4), (False, 3)]
        assert "'appID:s -> {appID:s, 0, 1} in rack hard'" in demands[0].problem
        soft = parse_constraint("appID:self -> {appID:self, 0, 1} in rack")
        assert not found(self.web(5, constraints=(soft,)))


class TestErrors:
    def test_what_a_server_refused_names_the_file_it_came_from(self) -> None:
        error = ServerError("bad; expected good", status=400, field="x", expected="good")
        assert str(error) == "bad; expected good"
        assert str(error.located(file="jobs.toml")) == "jobs.toml: bad; expected good"
        assert str(error.located(line=7)) == "jobs.toml:7: bad; expected good"
        assert (error.code, error.status, error.field) == ("server", 400, "x")

    def test_a_refused_commit_says_what_was_lacking(self) -> None:
        refused = CommitRefused(
            "no room", code="no-room", why="no_room", machine="m1", resource="cpu", lacking=500
        )
        assert (refused.status, refused.code, refused.why) == (409, "no-room", "no_room")
        assert (refused.machine, refused.resource, refused.lacking) == ("m1", "cpu", 500)
        assert str(refused) == "no room"

    def test_a_fleet_is_refused_with_the_words_of_its_mistake(self) -> None:
        refused = FleetRefused.by(CommandError("bad", field="x", expected="good", hint="try"))
        assert str(refused) == "bad; expected good; try"
        assert (refused.code, refused.field) == ("fleet-refused", None)

    def test_unknown_names_say_of_what(self) -> None:
        engine = UnknownEngine("omga", ["sparrow", "omega"], field="fleet[0].engine")
        assert str(engine) == (
            "fleet[0].engine: unknown engine 'omga'; expected one of omega, sparrow; did you mean "
            "'omega'?"
        )
        form = UnknownForm("x", ["firmament-paper"])
        assert str(form) == "unknown published form 'x'; expected one of firmament-paper"
        assert (engine.code, form.code) == ("unknown-engine", "unknown-form")

    def test_a_mistake_in_a_constraint_knows_its_place(self) -> None:
        error = ConstraintSyntaxError("bad", text="a ->", column=2, expected="more")
        assert (error.text, error.column) == ("a ->", 2)
        assert str(error) == "bad at column 3 of 'a ->'; expected more"

    def test_parents_come_before_their_children_and_everything_once(self) -> None:
        tree = error_tree()
        assert tree[0] is ArgosyError
        assert len(set(tree)) == len(tree)
        assert all(tree.index(kind.__bases__[0]) < at for at, kind in enumerate(tree) if at)
        assert {UnknownEngine, CommitRefused, EngineFault} <= set(tree)


def test_an_entry_point_that_two_packages_declare_alike_is_one(monkeypatch: Any) -> None:
    from importlib import metadata

    entries = [metadata.EntryPoint("d", f"json:{what}", "g") for what in ("loads", "dumps")]
    monkeypatch.setattr(entry_points.metadata, "entry_points", lambda group: entries)
    with pytest.raises(ArgosyError) as caught:
        entry_points.installed("g", "d", "policy")
    assert "json:dumps" in str(caught.value)
    assert "json:loads" in str(caught.value)
