"""The cell: the only mutable owner of cluster state, and `commit` its only door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Final

import numpy as np

from argosy._core import Cell as Columns
from argosy.cell.audit import AuditFailure, Usage
from argosy.cell.changes import check_changes, make_changes
from argosy.cell.names import Names
from argosy.cell.view import Snapshot, View
from argosy.model.errors import ModelError
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import PRECEDENCE_RANGE, Job
from argosy.model.resources import MOST_DIMENSIONS, Resources
from argosy.model.transactions import OPERATOR, Claims, Outcome, TaskArray, Transaction, Wants

#: More than any cell can hold.
UNLIMITED: Final = 2**62


class Cell(View):
    """Machines, claims and counts. `audited` recounts everything after each commit."""

    def __init__(
        self,
        dimensions: tuple[str, ...],
        groups: Mapping[str, Sequence[str]] | None = None,
        audited: bool = False,
    ) -> None:
        if not 1 <= len(dimensions) <= MOST_DIMENSIONS or len(set(dimensions)) < len(dimensions):
            raise ModelError(
                f"dimensions {dimensions!r}", expected=f"1 to {MOST_DIMENSIONS} distinct names"
            )
        names = Names(dimensions, groups or {})
        self._native = Columns(len(dimensions), len(names.sets))
        self._audited = audited
        #: As they were set, for the parts of a scheduler that are heard of later.
        self._limits: dict[str, tuple[Resources | None, int | None, int | None]] = {}
        super().__init__(self._native, names)

    @property
    def native(self) -> Columns:
        """For the worlds, which run machines against the same columns."""
        return self._native

    def view(self) -> View:
        """The live cell without its door."""
        return View(self._native, self._names)

    def snapshot(self) -> Snapshot:
        return Snapshot(self._native.snapshot(), self._names)

    def scheduler_number(self, name: str) -> int:
        """A scheduler is known from the first mention of its name; a part of one (``mesos:batch``)
        has the limits of the whole."""
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
        """What the scheduler may hold from now on, and the highest precedence it may claim with. None
        means no limit, and so does an amount of 0: a limit of some resources says nothing of the
        others. Nothing is taken away."""
        if scheduler == OPERATOR:
            raise ModelError("the operator has no limits", hint="name a scheduler")
        if jobs is not None and jobs < 0:
            raise ModelError(f"a limit of {jobs} jobs", expected="zero or more")
        self._limits[scheduler] = (resources, jobs, precedence)
        low, high = PRECEDENCE_RANGE
        if precedence is not None and not low <= precedence <= high:
            raise ModelError(f"a limit of precedence {precedence}", expected=f"{low} to {high}")
        vector = resources.vector(self.dimensions) if resources is not None else ()
        vector = tuple(amount or UNLIMITED for amount in vector)
        self._native.set_limits(
            self.scheduler_number(scheduler),
            vector,
            -1 if jobs is None else jobs,
            PRECEDENCE_RANGE[1] if precedence is None else precedence,
        )

    def admit(self, number: int, job: Job) -> None:
        """From now on everybody can read the job's placement constraints: see `applications`."""
        self._names.applications[number] = job
        self._names.applications_version += 1

    def retire(self, number: int) -> None:
        """The job is over, and its constraints with it."""
        if self._names.applications.pop(number, None) is not None:
            self._names.applications_version += 1

    def commit(self, transaction: Transaction) -> Outcome:
        """Judge the transaction against the cell as it is. What makes no sense raises `ModelError`
        and changes nothing; what is merely refused is in the outcome."""
        number = self.scheduler_number(transaction.scheduler)
        claims = _NO_CLAIMS if transaction.claims is None else transaction.claims
        arrays = (
            claims.tasks,
            claims.machines,
            claims.shapes,
            claims.versions,
            claims.gangs,
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
                check_changes(self._native, self._names, transaction.machines)
                self._native.check(number, *arrays)
                self._native.begin()
                added = make_changes(self._native, self._names, transaction.machines)
            verdicts, evictions, unreleased = self._native.commit(
                number,
                *arrays,
                transaction.atomic,
                transaction.coarse,
                transaction.preempt,
                transaction.move,
                bool(transaction.machines),
            )
        except (ValueError, TypeError) as error:
            raise ModelError(
                f"a transaction of {transaction.scheduler}: {_first_line(error)}",
                hint="claims are arrays of int64, int32, int32 and uint32 of one length"
                if isinstance(error, TypeError)
                else None,
            ) from None
        if transaction.wants is not None:
            self._names.wants[transaction.scheduler] = transaction.wants
        if self._audited:
            self.require_sound()
        accepted, whys, details, amounts = verdicts or _all_accepted(len(claims.tasks))
        evicted, evicted_from = evictions or _NO_EVICTIONS
        return Outcome(
            accepted,
            whys,
            details,
            amounts,
            evicted,
            evicted_from,
            tuple([Refusal(Why(why), task=task) for task, why in unreleased]),
            self.dimensions,
            added,
            verdicts is None,
        )

    def _check_wants(self, wants: Wants) -> None:
        """Other schedulers compute with it, so it has to make sense."""
        is_whole = len(wants.amounts) == len(self.dimensions)
        if not is_whole or min(wants.amounts) < 0 or not 0 < wants.weight < inf:
            raise ModelError(
                f"wants of {wants.amounts} with weight {wants.weight}",
                expected=f"amounts of {', '.join(self.dimensions)}, and a weight above 0",
            )

    def claims(self) -> int:
        """How many tasks hold a claim."""
        return self._native.claims

    def machine_of(self, task: int) -> int | None:
        machine = self._native.claim(task)[0]
        return machine if machine >= 0 else None

    def scheduler_of(self, task: int) -> str | None:
        scheduler = self._native.claim(task)[2]
        return self.scheduler_name(scheduler) if scheduler >= 0 else None

    def tasks_on(self, machine: int) -> TaskArray:
        """Oldest claim first."""
        return self._native.claims_on(machine)

    def usage(self) -> dict[str, Usage]:
        """Who holds what: for reports on schedulers that share a cell."""
        used = {}
        for name, number in self._names.schedulers.items():
            resources, tasks, jobs = self._native.usage(number)
            used[name] = Usage(dict(zip(self.dimensions, resources, strict=True)), tasks, jobs)
        return used

    def audit(self) -> list[str]:
        """Recount everything from the claims; a sentence for every discrepancy."""
        return self._native.audit()

    def require_sound(self) -> None:
        if discrepancies := self.audit():
            raise AuditFailure(discrepancies)


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


_NO_CLAIMS: Final = Claims(
    np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint32)
)
_NO_EVICTIONS: Final = (_read_only(np.empty(0, np.int64)), _read_only(np.empty(0, np.int32)))


@lru_cache(maxsize=4_096)
def _all_accepted(count: int) -> tuple[Any, Any, Any, Any]:
    """The rows of an outcome without a refusal, which is what most are: all of one length share them."""
    return (
        _read_only(np.ones(count, np.bool_)),
        _read_only(np.zeros(count, np.uint8)),
        _read_only(np.full(count, -1, np.int8)),
        _read_only(np.zeros(count, np.int64)),
    )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
