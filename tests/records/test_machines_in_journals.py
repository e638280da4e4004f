"""What a journal tells of machines: their sizes and resources over time, and who holds what."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from msgspec import structs

from argosy.host.journal import Journal
from argosy.host.records import (
    EndedRecord,
    LostRecord,
    MachineRecord,
    PlacedRecord,
    RefusedRecord,
    ScaledRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.explanations import Why
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.model.transactions import (
    AddMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
)
from argosy.records.audit import audit
from argosy.records.journal_file import JournalFile
from argosy.records.journal_run import JournalRun
from argosy.records.occupancy import Occupancy
from argosy.records.state import RunState
from argosy.testing.builders import job, scenario

FIRST = Machine("m0", Resources(4_000, 8, {"gpu": 1}))
CELL = CellSpec(machines=(FIRST, Machine("m1", Resources(2_000, 8))))


def journal_of(*facts: Any) -> JournalFile:
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(scenario("omega", [], cell=CELL)))
    for fact in facts:
        journal.write(fact)
    journal.flush()
    return JournalFile(stream.getvalue())


def changed(*changes: MachineChange) -> JournalFile:
    return journal_of(*(MachineRecord(at, change) for at, change in enumerate(changes, 1)))


def submitted(number: int, name: str, tasks: int = 1, **more: Any) -> SubmittedRecord:
    return SubmittedRecord(0, number, job(name, tasks, memory=1, **more).job, "s-0")


def placed(at: int, name: str, machine: int, *indices: int, by: str = "s-0") -> PlacedRecord:
    return PlacedRecord(at, name, list(indices), [machine] * len(indices), by)


def test_every_machine_counts_with_the_most_that_it_ever_had() -> None:
    found = changed(
        ResizeMachine(0, Resources(1_000, 16)),
        AddMachine(Machine("new", Resources(1, 1))),
        ResizeMachine(2, Resources(5, 5, {"fpga": 2})),
        RemoveMachine(1),
        ResizeMachine(2, Resources(4, 6)),
    )
    assert found.largest_machines() == [
        structs.replace(FIRST, capacity=Resources(4_000, 16, {"gpu": 1})),
        CELL.machines[1],
        Machine("new", Resources(5, 6, {"fpga": 2})),
    ]
    assert changed().largest_machines() == list(CELL.machines)


def test_nothing_is_said_of_machines_whose_attributes_changed() -> None:
    assert changed(RelabelMachine(1, {"disk": "ssd"}, {})).largest_machines() is None


def test_resources_are_in_the_order_in_which_machines_came_to_have_them() -> None:
    found = changed(
        AddMachine(Machine("a", Resources(1, 1, {"gpu": 1, "fpga": 1}))),
        ResizeMachine(1, Resources(1, 1, {"fpga": 3, "tape": 1})),
        AddMachine(Machine("b", Resources(1, 1, {"tape": 1}))),
    )
    dimensions = ("cpu", "memory", "gpu", "fpga", "tape")
    assert found.dimensions() == dimensions
    assert RunState.of(found).steps.dimensions == dimensions
    assert found.machine_names() == ["m0", "m1", "a", "b"]


def test_who_holds_most_of_a_resource_comes_first() -> None:
    journal = journal_of(
        submitted(0, "small", 2, cpu=500),
        submitted(1, "none", cpu=0),
        submitted(2, "large", 2, cpu=1_500),
        placed(0, "small", 0, 0, 1),
        placed(0, "none", 0, 0),
        placed(0, "large", 0, 0),
        placed(0, "large", 1, 1),
    )
    cell = Occupancy(RunState.of(journal, 10), 5)
    assert cell.holders(np.array([0]), 0) == ["large/0", "small/0", "small/1"]
    assert cell.holders(np.array([1, 0]), 0) == ["large/0", "large/1", "small/0", "small/1"]
    assert cell.holders(np.array([0]), 2) == []
    assert cell.on("m1") == ["large/1"]
    assert cell.free[:, 0].tolist() == [1_500, 500]
    assert cell.slots(np.array([0, 1]), np.array([500, 0, 0])) == 4


def test_a_job_has_as_many_tasks_as_it_ever_had() -> None:
    smaller, larger = (job("a", count).job for count in (2, 5))
    first = submitted(0, "a", 3)
    journal = journal_of(
        first, submitted(1, "b"), ScaledRecord(1, 0, larger), ScaledRecord(2, 0, smaller),
        ScaledRecord(3, 1, job("b", 9).job),
    )  # fmt: skip
    assert journal.largest_count(first) == 5


class TestQuarrels:
    def refused(self, at: int, name: str, machine: int, by: str, *whys: Why) -> RefusedRecord:
        count = len(whys)
        codes = [int(why) for why in whys]
        return RefusedRecord(
            at, name, list(range(count)), [machine] * count, by, codes, [0] * count, [0] * count
        )

    def test_a_victim_counts_once_for_who_pushed_it_out(self) -> None:
        run = JournalRun(
            journal_of(
                submitted(0, "a", 3),
                submitted(1, "b", 2),
                placed(1, "a", 0, 0, 1),
                placed(1, "a", 1, 2),
                LostRecord(5, "a", [0, 1], [0, 0], "preempted"),
                LostRecord(5, "a", [2], [1], "machine_gone"),
                placed(5, "b", 0, 0, 1, by="s-1"),
                LostRecord(7, "b", [0], [0], "preempted"),
                EndedRecord(8, [2**32 + 1]),
                # The room that was made before is not what this claim takes.
                placed(9, "a", 0, 0),
            )
        )
        found = {each.name: each for each in audit(run).schedulers}
        assert found["s-1"].preemptions_made == 2
        assert found["s-0"].preemptions_made == 0
        assert found["s-0"].preemptions_suffered == 2
        assert found["s-1"].preemptions_suffered == 1

    def test_a_conflict_is_one_however_many_claims_it_costs(self) -> None:
        run = JournalRun(
            journal_of(
                submitted(0, "a", 3),
                submitted(1, "b", 2),
                placed(1, "b", 0, 0, by="s-1"),
                self.refused(2, "a", 0, "s-0", Why.NO_ROOM, Why.NO_ROOM),
                self.refused(2, "a", 0, "s-0", Why.NO_ROOM),
                self.refused(3, "a", 0, "s-0", Why.NO_ROOM),
                # Nobody had claimed this machine.
                self.refused(4, "a", 1, "s-0", Why.NO_ROOM),
            )
        )
        found = audit(run)
        first, second = found.schedulers
        assert (first.conflicts_lost, first.claims_lost) == (3, 5)
        assert (second.conflicts_caused, second.claims_caused) == (2, 4)
        assert found.claims_lost_to_nobody == 1
