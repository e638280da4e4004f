"""The outcome of claims that are known to be accepted, and which cells check themselves."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.cell.cell import Cell
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction


def cell_of(*, audited: bool) -> Cell:
    cell = Cell(("cpu", "memory"), audited=audited)
    machine = Machine("m0", Resources(9, 9))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    return cell


def claims(*machines: int) -> Claims:
    count = len(machines)
    return Claims(
        np.arange(count, dtype=np.int64),
        np.array(machines, np.int32),
        np.zeros(count, np.int32),
        np.zeros(count, np.uint32),
    )


@pytest.mark.parametrize("machines", [(), (4,), (3, 3, 7)])
def test_all_are_accepted_where_they_were_claimed_and_nothing_else_happens(
    machines: tuple[int, ...],
) -> None:
    outcome = cell_of(audited=True).accepted(claims(*machines))
    count = len(machines)
    assert outcome.accepted.tolist() == [True] * count
    assert outcome.machines.tolist() == list(machines)
    assert (outcome.whys.tolist(), outcome.amounts.tolist()) == ([0] * count, [0] * count)
    assert len(outcome.details) == count
    assert (outcome.evicted.tolist(), outcome.evicted_from.tolist()) == ([], [])
    assert (outcome.unreleased, outcome.unconfirmed, outcome.unforgotten) == ((), (), ())
    assert (outcome.added, outcome.all_accepted, outcome.has_conflict) == ((), True, False)
    assert outcome.dimensions == ("cpu", "memory")


@pytest.mark.parametrize("audited", [True, False])
def test_only_an_audited_cell_checks_itself(audited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = cell_of(audited=audited)
    monkeypatch.setattr(Cell, "audit", lambda self: ["m0: cpu", "m0: memory"])
    looks = (lambda: cell.accepted(claims(0)), lambda: cell.commit(Transaction(OPERATOR)))
    for look in looks:
        if audited:
            with pytest.raises(AssertionError, match=r"^m0: cpu; m0: memory$"):
                look()
        else:
            assert look().all_accepted
