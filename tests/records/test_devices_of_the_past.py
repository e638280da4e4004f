"""Which devices of a machine were free at a moment of a run, by all that ran there before."""

from __future__ import annotations

import io

import numpy as np
import pytest

from argosy.host.journal import Journal
from argosy.host.records import EndedRecord, PlacedRecord, SubmittedRecord
from argosy.host.setup import HostSetup
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.records.journal_file import JournalFile
from argosy.records.occupancy import Occupancy
from argosy.records.state import RunState
from argosy.testing.builders import job, scenario


def used(until: int, *tasks: tuple[int, int, int | None]) -> RunState:
    """Tasks on one machine with two devices: the share of a device, the begin, and the end if any."""
    machine = Machine("m", Resources(8_000, 100, extras={"gpu": 2_000}))
    cell = CellSpec(machines=(machine,), devices="gpu")
    facts: list[SubmittedRecord | PlacedRecord | EndedRecord] = []
    for number, (share, begin, end) in enumerate(tasks):
        made = job(f"j{number}", request=Resources(100, 1, extras={"gpu": share})).job
        facts.append(SubmittedRecord(0, number, made, "s-0"))
        facts.append(PlacedRecord(begin, made.id, [0], [0], "s-0"))
        if end is not None:
            facts.append(EndedRecord(end, [task_number(number, 0)]))
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(scenario("omega", [], cell=cell)))
    # At one instant ends come first, as in a run.
    for fact in sorted(facts, key=lambda fact: (fact.at, not isinstance(fact, EndedRecord))):
        journal.write(fact)
    journal.flush()
    return RunState.of(JournalFile(stream.getvalue()), until)


def free(state: RunState, at: int) -> int:
    """The largest share that fits."""
    return int(Occupancy(state, at).free[0, 2])


def test_shares_are_given_devices_in_the_order_in_which_their_tasks_ran() -> None:
    # The third goes to the second device, because the first task has ended.
    state = used(9, (600, 1, 3), (600, 2, 5), (400, 4, None), (500, 6, None))
    assert [free(state, at) for at in range(8)] == [
        2_000,
        1_000,
        400,
        1_000,
        1_000,
        1_000,
        1_000,
        1_000,
    ]
    # One device is whole, and of the other one a tenth is left.
    slots = Occupancy(state, 7).slots(np.array([0]), np.array([0, 0, 100]))
    assert slots == 10 + 1


def test_what_ends_makes_room_for_what_begins_at_the_same_instant() -> None:
    state = used(9, (600, 1, 3), (500, 2, None), (600, 3, None))
    assert [free(state, at) for at in (2, 3, 4)] == [500, 500, 500]


@pytest.mark.parametrize("at", [4, 9])
def test_what_still_runs_holds_its_device_at_the_end_of_a_run_too(at: int) -> None:
    state = used(9, (1_000, 1, None), (300, 2, None), (200, 2, 4))
    assert free(state, at) == 700
    assert Occupancy(state, at).on("m") == ["j0/0", "j1/0"]


def test_a_claim_that_begins_later_than_is_asked_for_lasts_no_time() -> None:
    state = used(5, (600, 1, 3), (600, 2, 9), (400, 8, None))
    assert state.claims.begin.tolist() == [1, 2, 8]
    assert state.claims.end.tolist() == [3, 9, 8]
