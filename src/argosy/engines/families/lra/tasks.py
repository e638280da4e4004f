"""Task jobs with constraints: placed at once, container by container, each where it breaks least.

They do not wait for an interval or a solver. A job that is not a gang may be placed in part.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.plans import Application, Planner, kinds_of
from argosy.engines.families.lra.reasons import unplaced, violated
from argosy.model.explanations import Explanation
from argosy.model.random import Random
from argosy.model.transactions import Claims, TaskArray
from argosy.solvers.placement import ContainerKind, place


class Chosen(msgspec.Struct, frozen=True):
    claims: Claims | None
    #: Explanation of the claims.
    explanation: Explanation | None
    #: Tasks without a machine, and the reason.
    left: TaskArray
    why: Explanation | None


def choose(
    planner: Planner,
    application: Application,
    reserved: NDArray[np.int64] | None,
    random: Random,
    memory: Memory,
    view: View,
) -> Chosen:
    free = planner.room(view)
    if reserved is not None:
        free += reserved
    kinds = planner.kinds(planner.ask([application], view, memory.names), view)
    problem = planner.problem(kinds, free, memory, view)
    answer = place(problem, "serial", random, planner.objective)
    if not answer.worth.placed and not application.job.gang:
        problem = planner.problem(_one_by_one(kinds), free, memory, view)
        answer = place(problem, "serial", random, planner.objective)
    # Containers are ordered by kind, and so are tasks.
    parts: list[Claims] = []
    left: list[TaskArray] = [application.tasks[:0]]
    numbers = np.repeat(
        np.arange(len(kinds)), [1 if len(problem.kinds) == len(kinds) else k.count for k in kinds]
    )
    for number, (group, _, tasks) in enumerate(kinds_of(application, memory.names)):
        machines = answer.machines[np.isin(answer.kinds, np.flatnonzero(numbers == number))]
        found = len(machines)
        left.append(tasks[found:])
        if found:
            shapes = np.full(found, planner.shape(application.job, group, view), np.int32)
            parts.append(Claims(tasks[:found], machines, shapes, view.versions(machines)))
    remaining = np.concatenate(left)
    why = None
    if len(remaining):
        others = Application(application.job, application.number, remaining)
        missing = planner.kinds(planner.ask([others], view, memory.names), view)
        smallest = planner.smallest(view)
        for row, machine in zip(answer.kinds.tolist(), answer.machines.tolist(), strict=True):
            free[machine] -= problem.kinds[row].request
        with memory.running(problem, answer):
            why = unplaced(memory, application.number, missing, free, view, smallest)
    return Chosen(
        Claims.joined(parts) if parts else None,
        violated(memory, problem, answer) if parts else None,
        np.sort(remaining),
        why,
    )


def _one_by_one(kinds: Sequence[ContainerKind]) -> list[ContainerKind]:
    """One kind per container."""
    singles: list[ContainerKind] = []
    for kind in kinds:
        singles += [
            structs.replace(kind, app=len(singles) + at, count=1) for at in range(kind.count)
        ]
    return singles
