"""The cell: holds the cluster's state; only `commit` changes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from argosy._core import Cell as NativeCell
from argosy.cell.audit import AuditFailure, Usage
from argosy.cell.bitmaps import Bitmap
from argosy.cell.changes import check_changes, make_changes
from argosy.cell.dtypes import NativeColumn, misfit
from argosy.cell.names import Names
from argosy.cell.view import Snapshot, View
from argosy.model.errors import ModelError
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import PRECEDENCE_RANGE, Job
from argosy.model.machines import MACHINE_GROUP
from argosy.model.resources import MOST_DIMENSIONS, Resources
from argosy.model.transactions import OPERATOR, Claims, Outcome, TaskArray, Transaction, Wants

if TYPE_CHECKING:
    from argosy._core.cell import CommitAnswer

#: The value of marks.
TRUE: Final = "true"
#: More than any cell can hold.
UNLIMITED: Final = 2**62


class Cell(View):
    """Machines, claims and counts. `audited` recounts everything after each commit and each end.
    `devices` names the resource that consists of devices (see `argosy.model.devices`): what is free of
    it on a machine is the largest request that fits.

    The cell grows: machines may bring resources, node groups and node sets that were unknown when it
    was made. Existing machines have none of a new resource.
    """

    def __init__(
        self,
        dimensions: tuple[str, ...],
        groups: Mapping[str, Sequence[str]] | None = None,
        audited: bool = False,
        devices: str | None = None,
    ) -> None:
        if not 1 <= len(dimensions) <= MOST_DIMENSIONS or len(set(dimensions)) < len(dimensions):
            raise ModelError(
                f"dimensions {dimensions!r}", expected=f"1 to {MOST_DIMENSIONS} distinct names"
            )
        names = Names(dimensions)
        for group, sets in (groups or {}).items():
            if group == MACHINE_GROUP:
                raise ModelError(
                    f"node group {MACHINE_GROUP!r} is given",
                    hint="every machine is a set of its own in that group; leave it out",
                )
            if len(set(sets)) < len(sets):
                twice = next(name for at, name in enumerate(sets) if name in sets[:at])
                raise ModelError(f"node group {group!r} names the set {twice!r} twice")
        names.add_sets(groups or {})
        self._native = NativeCell(len(dimensions), len(names.sets))
        self._native.set_audited(audited)
        if devices is not None:
            if devices not in dimensions:
                raise ModelError(
                    f"devices of {devices!r}", expected="one of " + ", ".join(dimensions)
                )
            self._native.set_devices(dimensions.index(devices))
        self._audited = audited
        self._first_width = len(dimensions)
        #: Limits as they were set, for parts of a scheduler that appear later.
        self._limits: dict[str, tuple[Resources | None, int | None, int | None]] = {}
        super().__init__(self._native, names)

    @property
    def native(self) -> NativeCell:
        """The native columns, for worlds that run machines against them."""
        return self._native

    def view(self) -> View:
        """A read-only view of the live cell."""
        return View(self._native, self._names)

    def snapshot(self) -> Snapshot:
        return Snapshot(self._native.snapshot(), self._names)

    def scheduler_number(self, name: str) -> int:
        """The scheduler's number, assigned at the first mention of its name. A part of a scheduler
        (``mesos:batch``) has the limits of the whole."""
        number = self._names.schedulers.get(name)
        if number is None:
            try:
                number = self._names.schedulers[name] = self._native.add_scheduler()
            except ValueError as error:
                raise ModelError(str(error)) from None
            whole = name.partition(":")[0]
            if whole != name and whole in self._limits:
                self.set_limits(name, *self._limits[whole])
        return number

    def scheduler_name(self, number: int) -> str:
        return list(self._names.schedulers)[number]

    def set_limits(
        self,
        scheduler: str,
        resources: Resources | None,
        jobs: int | None,
        precedence: int | None = None,
    ) -> None:
        """Sets what the scheduler may hold from now on, and the highest precedence it may claim with.
        None means no limit; resources that are 0 or not mentioned are unlimited. A limit on a resource
        that no machine has applies once one has it. Existing claims stay."""
        if scheduler == OPERATOR:
            raise ModelError("the operator has no limits", hint="name a scheduler")
        if jobs is not None and jobs < 0:
            raise ModelError(f"a limit of {jobs} jobs", expected="zero or more")
        low, high = PRECEDENCE_RANGE
        if precedence is not None and not low <= precedence <= high:
            raise ModelError(f"a limit of precedence {precedence}", expected=f"{low} to {high}")
        self._limits[scheduler] = (resources, jobs, precedence)
        amounts = dict(resources.items()) if resources is not None else {}
        vector = tuple(amounts.get(name) or UNLIMITED for name in self.dimensions)
        self._native.set_limits(
            self.scheduler_number(scheduler),
            vector,
            -1 if jobs is None else jobs,
            PRECEDENCE_RANGE[1] if precedence is None else precedence,
        )

    @contextmanager
    def unlimited(self, scheduler: str) -> Iterator[None]:
        """Limits of the scheduler do not apply within the block."""
        limits = self._limits.get(scheduler)
        if limits is None:
            yield
            return
        self.set_limits(scheduler, None, None)
        try:
            yield
        finally:
            self.set_limits(scheduler, *limits)

    def admit(self, number: int, job: Job) -> None:
        """Makes the job's placement constraints readable for everyone: see `applications`."""
        known = self._names.change()
        known.applications[number] = job
        known.applications_version += 1

    def retire(self, number: int) -> None:
        """The job is over: removes its constraints."""
        if number in self._names.known.applications:
            known = self._names.change()
            del known.applications[number]
            known.applications_version += 1

    def mark(self, attribute: str, bitmap: Bitmap, *, is_given: bool = True) -> None:
        """Machines get the attribute, with the value ``true``, or lose it. Unlike others it stays when a
        machine is relabelled, and may change for many machines at once. No version changes."""
        [number] = self._names.attributes_had({attribute: TRUE})
        self._native.mark(number, bitmap, is_given)
        self._names.change().labels_version += 1

    def commit(self, transaction: Transaction) -> Outcome:
        """Checks the transaction against the current cell and applies it. An invalid one raises
        `ModelError` and changes nothing; refusals are in the outcome."""
        number = self.scheduler_number(transaction.scheduler)
        claims = _NO_CLAIMS if transaction.claims is None else transaction.claims
        arrays = (
            claims.tasks,
            claims.machines,
            claims.shapes,
            claims.versions,
            claims.gangs,
            claims.alternatives,
            transaction.confirms,
            transaction.forgets,
            transaction.releases,
        )
        added: tuple[int, ...] = ()
        if transaction.wants is not None:
            self._check_wants(transaction.wants)
        try:
            if transaction.machines:
                if transaction.atomic:
                    raise ModelError(
                        "machine changes in an atomic transaction",
                        hint="commit the machine changes on their own first",
                    )
                growth = check_changes(self._native, self._names, transaction.machines)
                self._native.check(number, *arrays)
                self._native.begin()
                if growth.make():
                    self._widen()
                added = make_changes(self._native, self._names, transaction.machines)
            answer = self._native.commit(
                number,
                *arrays,
                transaction.atomic,
                transaction.coarse,
                transaction.preempt,
                transaction.move,
                transaction.assume,
                transaction.by_claims,
                bool(transaction.machines),
            )
        except ValueError as error:
            raise ModelError(f"a transaction of {transaction.scheduler}: {error}") from None
        except TypeError as error:
            found = misfit(_columns_of(transaction, claims), error)
            raise found.located(field=f"a transaction of {transaction.scheduler}") from None
        if transaction.wants is not None:
            wants = _padded(transaction.wants, len(self.dimensions))
            self._names.change().wants[transaction.scheduler] = wants
        return self.outcome(claims, answer, added)

    def accepted(self, claims: Claims) -> Outcome:
        """The outcome of claims that were all accepted, with nothing else to tell."""
        if self._audited:
            self.require_sound()
        accepted, whys, details, amounts, _ = _all_accepted(len(claims.tasks))
        return Outcome(
            accepted,
            whys,
            details,
            amounts,
            *_NO_EVICTIONS,
            (),
            self._names.known.dimensions,
            (),
            True,
            claims.machines,
        )

    def outcome(self, claims: Claims, answer: CommitAnswer, added: tuple[int, ...] = ()) -> Outcome:
        """The outcome of a transaction that was committed, from the native answer."""
        if self._audited:
            self.require_sound()
        verdicts, evictions, machines, unsettled = answer
        accepted, whys, details, amounts, beyond = verdicts or _all_accepted(len(claims.tasks))
        evicted, evicted_from = evictions or _NO_EVICTIONS
        dimensions = self.dimensions
        if beyond:
            dimensions = (*dimensions, *map(self._names.resource, beyond))
        unconfirmed, unforgotten, unreleased = map(_refusals, unsettled or _ALL_SETTLED)
        return Outcome(
            accepted,
            whys,
            details,
            amounts,
            evicted,
            evicted_from,
            unreleased,
            dimensions,
            added,
            verdicts is None,
            claims.machines if machines is None else machines,
            unconfirmed,
            unforgotten,
        )

    def confirm(self, tasks: TaskArray) -> Outcome:
        """The other system has confirmed the assumed claims of these tasks."""
        return self.commit(Transaction(OPERATOR, confirms=tasks))

    def forget(self, tasks: TaskArray) -> Outcome:
        """The other system has not accepted the assumed claims of these tasks: their room is free
        again."""
        return self.commit(Transaction(OPERATOR, forgets=tasks))

    def assumed(self) -> TaskArray:
        """Tasks whose claims are assumed, neither confirmed nor forgotten; oldest claim first."""
        return self._native.assumed()

    def is_assumed(self, task: int) -> bool:
        return self._native.is_assumed(task)

    def end(self, tasks: TaskArray) -> tuple[Refusal, ...]:
        """Ends tasks of any scheduler, as one transaction; returns a refusal for each task without a
        claim."""
        try:
            unknown = self._native.end(tasks)
        except TypeError as error:
            raise misfit([("tasks", tasks, np.int64, 1)], error) from None
        return tuple([Refusal(Why.NOT_CLAIMED, task=task) for task in unknown])

    def _widen(self) -> None:
        """Extends limits to new dimensions; announced wants have 0 of these."""
        for scheduler, limits in self._limits.items():
            self.set_limits(scheduler, *limits)
        known = self._names.change()
        width = len(known.dimensions)
        known.wants = {name: _padded(wants, width) for name, wants in known.wants.items()}

    def _check_wants(self, wants: Wants) -> None:
        """Checks announced wants, because other schedulers compute with them."""
        # A scheduler may not know the latest dimensions yet.
        is_known = self._first_width <= len(wants.amounts) <= len(self.dimensions)
        if not is_known or min(wants.amounts) < 0 or not 0 < wants.weight < inf:
            raise ModelError(
                f"wants of {wants.amounts} with weight {wants.weight}",
                expected=f"amounts of {', '.join(self.dimensions)}, and a weight above 0",
            )

    def claims(self) -> int:
        """Number of tasks that hold a claim."""
        return self._native.claims

    def machine_of(self, task: int) -> int | None:
        machine = self._native.claim(task)[0]
        return machine if machine >= 0 else None

    def scheduler_of(self, task: int) -> str | None:
        scheduler = self._native.claim(task)[2]
        return self.scheduler_name(scheduler) if scheduler >= 0 else None

    def tasks_on(self, machine: int) -> TaskArray:
        """Tasks on the machine, oldest claim first."""
        return self._native.claims_on(machine)

    def usage(self) -> dict[str, Usage]:
        """What each scheduler holds, for reports."""
        used = {}
        for name, number in self._names.schedulers.items():
            resources, tasks, jobs = self._native.usage(number)
            used[name] = Usage(dict(zip(self.dimensions, resources, strict=True)), tasks, jobs)
        return used

    def audit(self) -> list[str]:
        """Recounts everything from the claims; returns a sentence for each discrepancy."""
        return self._native.audit()

    def require_sound(self) -> None:
        if discrepancies := self.audit():
            raise AuditFailure("; ".join(discrepancies))


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


_NO_CLAIMS: Final = Claims(
    np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint32)
)
_ALL_SETTLED: Final[tuple[list[tuple[int, int]], ...]] = ([], [], [])
_NO_EVICTIONS: Final = (_read_only(np.empty(0, np.int64)), _read_only(np.empty(0, np.int32)))


@lru_cache(maxsize=4_096)
def _all_accepted(count: int) -> tuple[Any, Any, Any, Any, list[int]]:
    """The rows of an outcome without refusals. Most outcomes are such, so those of one length share
    them."""
    return (
        _read_only(np.ones(count, np.bool_)),
        _read_only(np.zeros(count, np.uint8)),
        _read_only(np.full(count, -1, np.int8)),
        _read_only(np.zeros(count, np.int64)),
        [],
    )


def _refusals(tasks: Sequence[tuple[int, int]]) -> tuple[Refusal, ...]:
    return tuple([Refusal(Why(why), task=task) for task, why in tasks]) if tasks else ()


def _padded(wants: Wants, width: int) -> Wants:
    if len(wants.amounts) == width:
        return wants
    amounts = (*wants.amounts, *(0,) * (width - len(wants.amounts)))
    return Wants(wants.weight, amounts, wants.until)


def _columns_of(transaction: Transaction, claims: Claims) -> list[NativeColumn]:
    return [
        ("claims.tasks", claims.tasks, np.int64, 1),
        ("claims.machines", claims.machines, np.int32, 1),
        ("claims.shapes", claims.shapes, np.int32, 1),
        ("claims.versions", claims.versions, np.uint32, 1),
        ("claims.gangs", claims.gangs, np.int32, 1),
        ("claims.alternatives", claims.alternatives, np.int32, 2),
        ("confirms", transaction.confirms, np.int64, 1),
        ("forgets", transaction.forgets, np.int64, 1),
        ("releases", transaction.releases, np.int64, 1),
    ]
