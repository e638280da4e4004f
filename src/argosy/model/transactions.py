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

#: The name under which operators and worlds commit: exempt from limits, and may release any task.
OPERATOR = "operator"


class Claims(msgspec.Struct, frozen=True, gc=False):
    """Parallel arrays, one row per claim.

    `shapes` are from `Cell.shape`, for the task's request, tags and precedence; `versions` are the
    machine versions that the decision was based on. Rows with the same non-negative number in `gangs`
    must be adjacent; they are accepted together or not at all.

    `alternatives` lists, per claim, machines to try in order if the previous one is refused with a
    conflict: a table with one row per claim, padded with -1. Each is checked like a first choice,
    including preemption, but only for fit: `versions` and coarse detection apply to the first choice.
    The rows of a gang or an atomic transaction are checked in order, and each keeps the first machine
    that accepts it; they still stand or fall together.
    """

    tasks: TaskArray
    machines: MachineArray
    shapes: ShapeArray
    versions: VersionArray
    gangs: NDArray[np.int32] | None = None
    alternatives: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.tasks)

    def where(self, is_kept: NDArray[np.bool_]) -> Claims:
        """Some of the rows; there must be no gangs or alternatives."""
        return Claims(
            self.tasks[is_kept],
            self.machines[is_kept],
            self.shapes[is_kept],
            self.versions[is_kept],
        )

    @staticmethod
    def joined(parts: Sequence[Claims]) -> Claims:
        """Concatenates parts; there must be at least one, and none with gangs or alternatives."""
        return Claims(
            np.concatenate([part.tasks for part in parts]),
            np.concatenate([part.machines for part in parts]),
            np.concatenate([part.shapes for part in parts]),
            np.concatenate([part.versions for part in parts]),
        )


class AddMachine(msgspec.Struct, frozen=True, tag=True):
    machine: Machine


class DrainMachine(msgspec.Struct, frozen=True, tag=True):
    """The machine accepts no new claims; running tasks stay. `draining=False` ends this."""

    machine: int
    draining: bool = True


class RemoveMachine(msgspec.Struct, frozen=True, tag=True):
    """The machine leaves; its claims are evicted."""

    machine: int


class ReviveMachine(msgspec.Struct, frozen=True, tag=True):
    """A removed machine comes back, empty."""

    machine: int


class ResizeMachine(msgspec.Struct, frozen=True, tag=True):
    """New capacity; claims that no longer fit are evicted, lowest precedence first."""

    machine: int
    capacity: Resources


class RelabelMachine(msgspec.Struct, frozen=True, tag=True):
    """New attributes and node sets replace all old ones. Running tasks stay, even if they required the
    old ones."""

    machine: int
    attributes: dict[str, str] = {}
    joins: dict[str, tuple[str, ...]] = {}


#: Resources, node groups and node sets that are new to the cell are added to it.
MachineChange: TypeAlias = (
    AddMachine | DrainMachine | RemoveMachine | ReviveMachine | ResizeMachine | RelabelMachine
)


class Wants(msgspec.Struct, frozen=True):
    """What a scheduler still wants to claim, per dimension, and its weight, for other schedulers to
    read. It expires, so that nobody waits for a scheduler that has stopped."""

    weight: float
    amounts: tuple[int, ...]
    until: int


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """Machine changes, then confirms, forgets and releases, then claims, checked in this order against
    the current cell.

    `atomic` takes all claims or none; otherwise each claim (or gang) stands for itself. `coarse`
    refuses any machine whose version moved on since the decision; otherwise only fit is checked.
    `scheduler` may have a part after a colon (``mesos:batch``): claims are then counted under that name.
    `preempt` lets claims push out tasks of strictly lower precedence, but never one that the
    transaction claims itself; `move` lets a claim replace the claim its task already holds. `wants` is
    kept for others to read; nothing is judged by it.

    If another system has the last word (Kubernetes, a remote agent), claims are made with `assume`:
    they take room and count like any other until that system has decided. `confirms` lists tasks whose
    assumed claims became real, which changes no version; `forgets` lists tasks whose claims did not,
    which are then released. Tasks preempted for a forgotten claim do not come back. Like releases, both
    are reserved for the scheduler that made the claim and for the operator. Usually the world does both
    (`Host.confirm`, `Host.forget`).
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
    #: Coarse detection by sequence numbers: `Claims.versions` are from `View.sequences`.
    by_claims: bool = False
    confirms: TaskArray | None = None
    forgets: TaskArray | None = None

    @property
    def only_claims(self) -> bool:
        """Whether it consists of claims, without gangs or alternatives, and of nothing else."""
        claims = self.claims
        return (
            claims is not None
            and claims.gangs is claims.alternatives is None
            and self.releases is self.confirms is self.forgets is None
            and self.wants is None
            and not (self.machines or self.move or self.assume or self.by_claims)
        )


_NOWHERE: Final[MachineArray] = np.empty(0, np.int32)
_NOWHERE.flags.writeable = False
_CONFLICTS: Final = np.zeros(256, np.bool_)
_CONFLICTS[list(CONFLICTS)] = True


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The cell's answer. Arrays are parallel to the transaction's claims.

    `details` and `amounts` quantify each refusal: a dimension's index and the shortfall (no room,
    limits), or by how much the version has changed (stale). Evicted tasks come with their machines, in
    the order of eviction. `machines` is where each claim ended up: the claimed machine or one of its
    alternatives; for a refused claim, the machine that the reason refers to.
    """

    accepted: NDArray[np.bool_]
    whys: NDArray[np.uint8]
    details: NDArray[np.int8]
    amounts: NDArray[np.int64]
    evicted: TaskArray
    evicted_from: MachineArray
    #: Releases that were refused, each with its task and reason.
    unreleased: tuple[Refusal, ...]
    #: Names for `details`: the cell's dimensions, then resources that were claimed but exist on no
    #: machine.
    dimensions: tuple[str, ...]
    #: Numbers of the machines that were added, in order.
    added: tuple[int, ...] = ()
    #: Whether nothing was refused; true for a transaction without claims.
    all_accepted: bool = True
    machines: MachineArray = msgspec.field(default_factory=lambda: _NOWHERE)
    #: As `unreleased`, for confirms and forgets.
    unconfirmed: tuple[Refusal, ...] = ()
    unforgotten: tuple[Refusal, ...] = ()

    @property
    def has_conflict(self) -> bool:
        """Whether a claim was refused because the cell had changed: see `CONFLICTS`. Limits and
        mistakes are not conflicts."""
        return not self.all_accepted and bool(_CONFLICTS[self.whys].any())

    def where(self, is_kept: NDArray[np.bool_]) -> Outcome:
        """The answer about some of the claims."""
        accepted = self.accepted[is_kept]
        return msgspec.structs.replace(
            self,
            accepted=accepted,
            whys=self.whys[is_kept],
            details=self.details[is_kept],
            amounts=self.amounts[is_kept],
            all_accepted=bool(accepted.all()),
            machines=self.machines[is_kept] if len(self.machines) else self.machines,
        )

    def refusals(self, claims: Claims) -> list[Refusal]:
        """Every refused claim, with its reason and numbers."""
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
