"""Commits to a cell by hand: claims, refusals, all or nothing, preemption and a stale version.

Output:

    two tasks: [True, True], free cores on m0 and m1: [2, 2]
    one too many: [True, False]
      task 3: m0 lacks 3 cores
    all or nothing: [False, False]
      task 4: m0 lacks 2 cores
      task 5: another task of the same all-or-nothing placement has no machine
    with precedence: [True], evicted task 2 from m0
    on an old version: [False]
      task 9: m1 changed once since the decision began
    audit: nothing amiss
"""

from collections.abc import Sequence

import numpy as np

from argosy.cell import Cell
from argosy.model.jobs import index_of, task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Outcome, Transaction


def claims_of(cell: Cell, tasks: Sequence[int], machines: Sequence[int], shape: int) -> Claims:
    """Claims of one shape, decided on the cell as it is now."""
    numbers = np.array(machines, np.int32)
    return Claims(
        np.array([task_number(0, index) for index in tasks], np.int64),
        numbers,
        np.full(len(tasks), shape, np.int32),
        cell.versions(numbers),
    )


def told(cell: Cell, claims: Claims, outcome: Outcome) -> str:
    reasons = [
        f"\n  task {index_of(refusal.task)}: "
        + refusal.sentence(cell.machine_name(refusal.machine))
        for refusal in outcome.refusals(claims)
    ]
    return f"{outcome.accepted.tolist()}" + "".join(reasons)


def main() -> None:
    cell = Cell(("cpu", "memory"))
    machines = [Machine(f"m{number}", Resources(cpu=4_000, memory=2**34)) for number in range(2)]
    cell.commit(Transaction(OPERATOR, machines=tuple(AddMachine(machine) for machine in machines)))
    # What a task asks for is interned once; tasks that are alike share its number.
    modest = cell.shape(Resources(cpu=2_000, memory=2**30))
    large = cell.shape(Resources(cpu=3_000, memory=2**30))
    urgent = cell.shape(Resources(cpu=2_000, memory=2**30), precedence=10)

    old = claims_of(cell, [9], [1], modest)

    first = claims_of(cell, [0, 1], [0, 1], modest)
    outcome = cell.commit(Transaction("me", first))
    free = (cell.free()[:, 0] // 1_000).tolist()
    print(f"two tasks: {told(cell, first, outcome)}, free cores on m0 and m1: {free}")

    more = claims_of(cell, [2, 3], [0, 0], modest)
    more = Claims(more.tasks, more.machines, np.array([modest, large], np.int32), more.versions)
    outcome = cell.commit(Transaction("me", more))
    print(f"one too many: {told(cell, more, outcome)}")

    both = claims_of(cell, [4, 5], [0, 1], modest)
    outcome = cell.commit(Transaction("me", both, atomic=True))
    print(f"all or nothing: {told(cell, both, outcome)}")

    upstart = claims_of(cell, [6], [0], urgent)
    outcome = cell.commit(Transaction("me", upstart, preempt=True))
    evicted = index_of(int(outcome.evicted[0]))
    place = cell.machine_name(int(outcome.evicted_from[0]))
    print(f"with precedence: {told(cell, upstart, outcome)}, evicted task {evicted} from {place}")

    outcome = cell.commit(Transaction("me", old, coarse=True))
    print(f"on an old version: {told(cell, old, outcome)}")

    print(f"audit: {'; '.join(cell.audit()) or 'nothing amiss'}")


if __name__ == "__main__":
    main()
