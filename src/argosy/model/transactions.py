"""Transactions: what a scheduler asks of the cell, and the cell's answer.

Claims are flat arrays, because a job of 4,000 tasks is one transaction. The sentence-sized view of a
refusal is `Outcome.refusals()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import CONFLICTS, Refusal, Why
from argosy.model.machines import Machine
from argosy.model.resources import Resources

TaskArray: TypeAlias = NDArray[np.int64]
MachineArray: TypeAlias = NDArray[np.int32]
VersionArray: TypeAlias = NDArray[np.uint32]
ShapeArray: TypeAlias = NDArray[np.int32]

#: The name under which operators and worlds commit: exempt from limits, may release any task.
OPERATOR = "operator"


class Claims(msgspec.Struct, frozen=True, gc=False):
    """Parallel arrays, one row a claim.

    `shapes` holds what `Cell.shape` gave for the task's request, tags and precedence; `versions` the
    machine versions the decision was made on. Rows with the same non-negative `gangs` number must be
    neighbours; they are accepted together or not at all.

    `alternatives` holds, per claim, machines to try in order when the one before is refused with a
    conflict: a table with a row a claim, filled up with -1. Each is judged as a first choice would be,
    preemption included, but by fit alone: `versions` and coarse detection are about the first choice.
    The rows of a gang or an atomic transaction are judged in order, and each keeps the first machine
    that takes it; they still stand or fall together.
    """

    tasks: TaskArray
    machines: MachineArray
    shapes: ShapeArray
    versions: VersionArray
    gangs: NDArray[np.int32] | None = None
    alternatives: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.tasks)

    @staticmethod
    def joined(parts: Sequence[Claims]) -> Claims:
        """One after another; at least one part, none with gangs or alternatives."""
        return Claims(
            np.concatenate([part.tasks for part in parts]),
            np.concatenate([part.machines for part in parts]),
            np.concatenate([part.shapes for part in parts]),
            np.concatenate([part.versions for part in parts]),
        )


class AddMachine(msgspec.Struct, frozen=True, tag=True):
    machine: Machine


class DrainMachine(msgspec.Struct, frozen=True, tag=True):
    """No new claims; running tasks stay. `draining=False` takes it back."""

    machine: int
    draining: bool = True


class RemoveMachine(msgspec.Struct, frozen=True, tag=True):
    """The machine is gone; its claims are evicted."""

    machine: int


class ReviveMachine(msgspec.Struct, frozen=True, tag=True):
    """A removed machine is back, empty."""

    machine: int


class ResizeMachine(msgspec.Struct, frozen=True, tag=True):
    """New capacity; claims that no longer fit are evicted, least precedence first."""

    machine: int
    capacity: Resources


class RelabelMachine(msgspec.Struct, frozen=True, tag=True):
    """New attributes and node sets, instead of all that the machine had. Running tasks stay, whatever
    they required."""

    machine: int
    attributes: dict[str, str] = {}
    joins: dict[str, tuple[str, ...]] = {}


#: Those that name a resource, node group or node set which the cell has not heard of add it.
MachineChange: TypeAlias = (
    AddMachine | DrainMachine | RemoveMachine | ReviveMachine | ResizeMachine | RelabelMachine
)


class Wants(msgspec.Struct, frozen=True):
    """What a scheduler would still claim, for the others to see: by dimension, with its weight against
    theirs. It counts until a time, so that nobody waits for a scheduler that stopped."""

    weight: float
    amounts: tuple[int, ...]
    until: int


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """Machine changes, then confirms, forgets and releases, then claims, judged in that order against
    the cell as it is.

    `atomic` takes all claims or none; otherwise each claim (or gang) stands for itself. `coarse`
    refuses any machine whose version moved on since the decision; otherwise only fit is checked.
    `scheduler` may have a part after a colon (``mesos:batch``): claims are then counted under that name.
    `preempt` lets claims push out tasks of strictly lower precedence, but never one that the
    transaction claims itself; `move` lets a claim replace the claim its task already holds. `wants` is
    kept for others to read; nothing is judged by it.

    Where the truth is elsewhere (Kubernetes, a remote agent), claims are made with `assume`: they take
    room and count like any other, until the truth is known. `confirms` are tasks whose assumed claims
    have become true, which moves no version on; `forgets` those whose claims have not, which are then
    released. Tasks that were preempted for a forgotten claim do not come back. Like releases, both are
    for the scheduler that made the claim and for the operator.
    """

    scheduler: str
    claims: Claims | None = None
    releases: TaskArray | None = None
    machines: tuple[MachineChange, ...] = ()
    atomic: bool = False
    coarse: bool = False
    preempt: bool = False
    move: bool = False
    wants: Wants | None = None
    assume: bool = False
    confirms: TaskArray | None = None
    forgets: TaskArray | None = None


_NOWHERE: Final[MachineArray] = np.empty(0, np.int32)
_NOWHERE.flags.writeable = False
_CONFLICTS: Final = np.zeros(256, np.bool_)
_CONFLICTS[list(CONFLICTS)] = True


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The cell's answer. Arrays are parallel to the transaction's claims.

    `details` and `amounts` give each refusal its numbers: a dimension's index and what is lacking
    (no room, limits), or how far the version moved on (stale). Evicted tasks come with their
    machines, in the order of eviction. `machines` says where each claim ended up: the claim's own, or
    one of its alternatives; of a refused claim, the machine that its reason is about.
    """

    accepted: NDArray[np.bool_]
    whys: NDArray[np.uint8]
    details: NDArray[np.int8]
    amounts: NDArray[np.int64]
    evicted: TaskArray
    evicted_from: MachineArray
    #: Releases that were refused: which task and why.
    unreleased: tuple[Refusal, ...]
    #: Names for `details`: the cell's dimensions, then resources no machine has that claims asked for.
    dimensions: tuple[str, ...]
    #: Numbers of the machines that were added, in order.
    added: tuple[int, ...] = ()
    #: Whether nothing was refused; a transaction without claims is whole.
    all_accepted: bool = True
    machines: MachineArray = msgspec.field(default_factory=lambda: _NOWHERE)
    #: As `unreleased`, of confirms and forgets.
    unconfirmed: tuple[Refusal, ...] = ()
    unforgotten: tuple[Refusal, ...] = ()

    @property
    def has_conflict(self) -> bool:
        """Whether a claim was refused because others had changed the cell: see `CONFLICTS`. Limits and
        mistakes are no conflicts."""
        return not self.all_accepted and bool(_CONFLICTS[self.whys].any())

    def refusals(self, claims: Claims) -> list[Refusal]:
        """Every refused claim, named, with its reason and numbers."""
        return [self.refusal(claims, int(row)) for row in np.flatnonzero(~self.accepted)]

    def refusal(self, claims: Claims, row: int) -> Refusal:
        detail = int(self.details[row])
        return Refusal(
            why=Why(int(self.whys[row])),
            task=int(claims.tasks[row]),
            machine=int(self.machines[row] if len(self.machines) else claims.machines[row]),
            dimension=self.dimensions[detail] if detail >= 0 else "",
            lacking=int(self.amounts[row]),
        )
