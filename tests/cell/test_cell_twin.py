"""The cell and its slow twin get the same transactions and must agree on everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from argosy.cell.cell import Cell
from argosy.cell.search import Rule
from argosy.cell.view import View
from argosy.model.errors import ModelError
from argosy.model.explanations import CONFLICTS, Why
from argosy.model.jobs import job_of, task_number
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
    Transaction,
    Wants,
)
from argosy.testing.builders import job
from argosy.testing.twin import TwinCell

DIMENSIONS = ("cpu", "memory", "gpu")
GROUPS = {"rack": ["r0", "r1", "r2"], "zone": ["z0", "z1"]}
SCHEDULERS = (OPERATOR, "anna", "bert", "carl")
TAGS = ("web", "db", "cache")
#: Resources, groups and sets that the cell is not made with: some come with machines, others only ever
#: in requests. With those above, one resource more than a cell can have.
LATE_RESOURCES = ("disk", "net", "fpga", "hbm", "ib", "tpu")
LATE_GROUPS = ("row", "power")
ARCHES = ("x86", "arm", "riscv")


class Twins:
    """A cell and its twin, driven together from one random stream."""

    def __init__(self, seed: int, *, grows: bool = False) -> None:
        self.random = Random(seed).child("twins")
        self.grows = False
        self.cell = Cell(DIMENSIONS, GROUPS, audited=True)
        self.twin = TwinCell(DIMENSIONS, GROUPS)
        self.commit(Transaction(OPERATOR, machines=tuple(self.machine(i) for i in range(4))))
        self.grows = grows
        for _ in range(12):
            self.shape()

    def below(self, n: int) -> int:
        return self.random.below(n)

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def machine(self, number: int) -> AddMachine:
        machine = Machine(f"m{number}", self.capacity(), self.attributes(), self.joins())
        return AddMachine(machine)

    def attributes(self) -> dict[str, str]:
        return {"arch": ARCHES[self.below(3)]} if self.chance(60) else {}

    def joins(self) -> dict[str, tuple[str, ...]]:
        late = 2 if self.grows and self.chance(20) else 0
        joins = {}
        if self.chance(80):
            joins["rack"] = tuple(f"r{self.below(3 + late)}" for _ in range(1 + self.below(2)))
        if self.chance(50):
            joins["zone"] = (f"z{self.below(2 + late)}",)
        if late:
            joins[LATE_GROUPS[self.below(2)]] = (f"s{self.below(3)}",)
        if self.grows and self.below(200) == 0:
            joins["machine"] = ("m0",)
        return joins

    def extras(self, gpus: int) -> dict[str, int]:
        extras = {"gpu": gpus}
        if self.grows and self.chance(25):
            extras[LATE_RESOURCES[self.below(len(LATE_RESOURCES))]] = self.below(4)
        return extras

    def capacity(self) -> Resources:
        return Resources(self.below(12), 2 + self.below(16), self.extras(self.below(3)))

    def shape(self) -> None:
        request = Resources(self.below(5), self.below(6), self.extras(int(self.chance(15))))
        tags = tuple(tag for tag in TAGS if self.chance(30))
        precedence = self.below(4) - 1
        assert self.cell.shape(request, tags, precedence) == self.twin.shape(
            request, tags, precedence
        )

    def task(self) -> int:
        return -1 if self.below(400) == 0 else task_number(self.below(8), self.below(6))

    def number(self) -> int:
        """A machine, now and then one that is not there."""
        machines = self.cell.machines
        return self.below(machines + 2) - 1 if self.chance(5) else self.below(machines)

    def change(self) -> MachineChange:
        number = self.number() if self.chance(3) else self.below(self.cell.machines)
        match self.below(10 if self.grows else 8):
            case 8 | 9:
                return RelabelMachine(number, self.attributes(), self.joins())
            case 0:
                return self.machine(self.cell.machines - self.chance(5))
            case 1 | 2:
                return DrainMachine(number, self.chance(40))
            case 3:
                return RemoveMachine(number)
            case 4 | 5:
                return ReviveMachine(number)
            case _:
                return ResizeMachine(number, self.capacity())

    def claims(self) -> Claims:
        count = 1 + self.below(8)
        machines = np.array([self.number() for _ in range(count)], np.int32)
        known = (machines >= 0) & (machines < self.cell.machines)
        versions = np.zeros(count, np.uint32)
        versions[known] = self.cell.versions(machines[known])
        if self.chance(30):
            versions -= np.array([self.below(3) for _ in range(count)], np.uint32)
        shapes = np.array([self.below(len(self.twin.shapes)) for _ in range(count)], np.int32)
        if self.chance(1):
            shapes[self.below(count)] = len(self.twin.shapes)
        gangs = None
        if self.chance(40):
            steps = np.array([self.chance(40) for _ in range(count)], np.int32)
            gangs = np.cumsum(steps, dtype=np.int32)
            gangs[[self.chance(20) for _ in range(count)]] = -1
        if self.chance(1):
            versions = versions[1:]
        tasks = np.array([self.task() for _ in range(count)], np.int64)
        alternatives = None
        if self.chance(50):
            width = self.below(4)
            others = [[self.number() for _ in range(width)] for _ in range(count)]
            alternatives = np.array(others, np.int32).reshape(count, width)
            if self.chance(1):
                alternatives = alternatives[1:]
        return Claims(tasks, machines, shapes, versions, gangs, alternatives)

    def tasks(self, percent: int) -> NDArray[np.int64] | None:
        if not self.chance(percent):
            return None
        return np.array([self.task() for _ in range(self.below(5))], np.int64)

    def transaction(self) -> Transaction:
        changes: tuple[MachineChange, ...] = ()
        if self.chance(20):
            changes = tuple(self.change() for _ in range(1 + self.below(3)))
        return Transaction(
            SCHEDULERS[self.below(len(SCHEDULERS))],
            self.claims() if self.chance(85) else None,
            self.tasks(40),
            changes,
            atomic=self.chance(30) and (not changes or self.chance(10)),
            coarse=self.chance(30),
            preempt=self.chance(50),
            move=self.chance(40),
            assume=self.chance(40),
            by_claims=self.chance(30),
            confirms=self.tasks(30),
            forgets=self.tasks(30),
        )

    def end(self) -> None:
        tasks = np.array([self.task() for _ in range(1 + self.below(4))], np.int64)
        refused = self.cell.end(tasks)
        assert [refusal.task for refusal in refused] == self.twin.end(tasks.tolist())
        assert {refusal.why for refusal in refused} <= {Why.NOT_CLAIMED}
        self.compare()

    def limits(self) -> None:
        scheduler = SCHEDULERS[1 + self.below(len(SCHEDULERS) - 1)]
        resources = None
        if self.chance(60):
            resources = Resources(self.below(14), self.below(20), self.extras(1))
        jobs = self.below(5) if self.chance(60) else None
        precedence = self.below(3) if self.chance(40) else None
        self.cell.set_limits(scheduler, resources, jobs, precedence)
        self.twin.set_limits(scheduler, resources, jobs, precedence)

    def commit(self, transaction: Transaction) -> None:
        try:
            expected = self.twin.commit(transaction)
        except ModelError:
            with pytest.raises(ModelError):
                self.cell.commit(transaction)
            self.compare()
            return
        outcome = self.cell.commit(transaction)
        assert outcome.accepted.tolist() == expected.accepted
        assert outcome.whys.tolist() == expected.whys
        details = [outcome.dimensions[d] if d >= 0 else "" for d in outcome.details.tolist()]
        assert details == expected.details
        assert outcome.machines.tolist() == expected.machines
        assert outcome.has_conflict == any(why in CONFLICTS for why in expected.whys)
        assert outcome.unconfirmed == expected.unconfirmed
        assert outcome.unforgotten == expected.unforgotten
        assert outcome.amounts.tolist() == expected.amounts
        assert outcome.evicted.tolist() == expected.evicted
        assert outcome.evicted_from.tolist() == expected.evicted_from
        assert outcome.unreleased == expected.unreleased
        assert outcome.added == expected.added
        self.compare()

    def compare(self) -> None:
        cell, twin = self.cell, self.twin
        numbers = range(len(twin.state.machines))
        assert cell.machines == len(numbers)
        assert cell.free().tolist() == [twin.free(number) for number in numbers]
        assert cell.dimensions == twin.dimensions
        assert cell.assumed().tolist() == twin.assumed()
        assert cell.capacity().tolist() == [twin.capacity(number) for number in numbers]
        assert cell.versions().tolist() == [m.version for m in twin.state.machines]
        sequences = [twin.sequences[number] for number in range(len(twin.state.machines))]
        assert cell.sequences().tolist() == sequences
        assert [cell.is_up(n) for n in numbers] == [not m.is_gone for m in twin.state.machines]
        assert [cell.is_draining(n) for n in numbers] == [
            m.is_draining for m in twin.state.machines
        ]
        assert list(cell.used_total().values()) == twin.used(twin.state.claims.values())
        assert list(cell.capacity_total().values()) == twin.capacity_total()
        assert cell.claims() == len(twin.state.claims)
        for number in numbers:
            assert cell.tasks_on(number).tolist() == [claim.task for claim in twin.on(number)]
        for task, claim in twin.state.claims.items():
            machine, shape, number, sequence = cell.native.claim(task)
            assert (machine, shape, sequence) == (claim.machine, claim.shape, claim.sequence)
            assert cell.scheduler_name(number) == claim.scheduler
        for scheduler, usage in cell.usage().items():
            own = twin.of(scheduler)
            assert list(usage.resources.values()) == twin.used(own)
            assert usage.tasks == len(own)
            assert usage.jobs == len({job_of(claim.task) for claim in own})
        for tag in TAGS:
            for number in numbers:
                assert cell.tag_count(tag, number) == twin.tag_count(tag, number)
            for group, sets in twin.groups.items():
                assert cell.sets_in(group) == tuple(sets)
                for name in sets:
                    count = twin.tag_count_in(tag, group, name)
                    assert cell.tag_count_in(tag, group, name) == count
        for arch in ARCHES:
            having = sum(
                1 << number
                for number, machine in enumerate(twin.state.machines)
                if machine.description.attributes.get("arch") == arch
            )
            assert int.from_bytes(cell.where({"arch": arch}).tobytes(), "little") == having
        for group in twin.groups:
            for number in numbers:
                assert set(cell.sets_of(number, group)) == set(twin.sets_of(number, group))


def picture(view: View, shapes: int) -> object:
    """All that a view shows, as plain values."""
    numbers = range(view.machines)
    groups = {group: view.sets_in(group) for group in view.groups}
    return (
        view.dimensions,
        groups,
        view.attributes,
        (view.labels_version, view.applications_version, dict(view.applications())),
        dict(view.wants()),
        [[view.sets_of(n, group) for n in numbers] for group in groups],
        [view.members(g, name).tolist() for g in groups for name in groups[g]],
        [view.where({"arch": arch}).tolist() for arch in ARCHES],
        view.free().tolist(),
        view.capacity().tolist(),
        view.versions().tolist(),
        [(view.is_up(n), view.is_draining(n)) for n in numbers],
        view.used_total(),
        view.capacity_total(),
        [view.tag_count(tag, n) for tag in TAGS for n in numbers],
        [view.tag_count_in(tag, g, name) for tag in TAGS for g in groups for name in groups[g]],
        [view.where_tags(tag, g, 1, 2).tolist() for tag in TAGS for g in ("machine", *groups)],
        view.where({}).tolist(),
        [view.members(group, name).tolist() for group in groups for name in groups[group]],
        view.attributes,
        [
            [
                column.tolist()
                for column in view.tagged_on(np.arange(view.machines, dtype=np.int32), who)
            ]
            for who in SCHEDULERS
        ],
        [(view.held_by(who), view.highest_precedence(who)) for who in SCHEDULERS],
        [view.evictable(precedence).tolist() for precedence in (-1, 0, 1, 9)],
        [view.victims_for(shape, 1).tolist() for shape in range(shapes)],
        [look(view, shape) for shape in range(shapes)],
    )


def look(view: View, shape: int) -> object:
    """What a search for the shape sees, and what it asks for of what the view knows."""
    found = view.find(shape, 3, Rule.BEST, Random(1))
    seen = found.machines.tolist(), found.versions.tolist(), found.ruled_out, found.nearest_miss
    return seen, view.shape_request(shape), view.unknown_resource(shape)


@settings(max_examples=250)
@given(st.integers(0, 2**32), st.booleans())
def test_the_cell_agrees_with_its_slow_twin(seed: int, grows: bool) -> None:
    twins = Twins(seed, grows=grows)
    for _ in range(40):
        if twins.chance(10):
            twins.limits()
        if twins.chance(10):
            twins.shape()
        if twins.chance(10):
            twins.end()
        twins.commit(twins.transaction())


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_a_snapshot_stays_as_it_was_whatever_is_committed_later(seed: int) -> None:
    twins = Twins(seed, grows=True)
    kept: list[tuple[View, object, int]] = []
    for number in range(30):
        twins.commit(twins.transaction())
        if twins.chance(10):
            twins.limits()
        if twins.chance(30):
            twins.shape()
        if twins.chance(30):
            twins.cell.admit(number, job("app", 1))
        if twins.chance(20):
            twins.cell.retire(twins.below(number + 1))
        if twins.chance(20):
            width = len(twins.cell.dimensions)
            twins.cell.commit(Transaction("anna", wants=Wants(1.0, (number,) * width, number)))
        if twins.chance(30):
            snapshot = twins.cell.snapshot()
            shapes = len(twins.twin.shapes)
            kept.append((snapshot, picture(snapshot, shapes), shapes))
            assert kept[-1][1] == picture(twins.cell, shapes)
    for view, seen, shapes in kept:
        assert picture(view, shapes) == seen
