"""Claims of tasks that ended, or were cancelled, while the transaction was on its way.

The scheduler could not have known, so such a claim is refused like a conflict, and the rest of the
transaction is checked without it. `late` holds a reason for each claim: 0 unless it comes too late.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.model.explanations import Refusal, Why
from argosy.model.transactions import Claims, Outcome, TaskArray, Transaction

#: Fields of a transaction that settle earlier claims, with those of an outcome that list refusals.
_SETTLED: Final = {
    "confirms": "unconfirmed",
    "forgets": "unforgotten",
    "releases": "unreleased",
}


def drop_late_claims(transaction: Transaction, late: NDArray[np.uint8]) -> Transaction:
    """The transaction without late claims, and without claims that stand or fall with one."""
    claims = transaction.claims
    assert claims is not None
    kept = ~_fallen(transaction, claims, late > 0)
    left = Claims(
        claims.tasks[kept],
        claims.machines[kept],
        claims.shapes[kept],
        claims.versions[kept],
        None if claims.gangs is None else claims.gangs[kept],
        None if claims.alternatives is None else claims.alternatives[kept],
    )
    if transaction.atomic:
        return structs.replace(transaction, claims=left, **dict.fromkeys(_SETTLED))
    return structs.replace(transaction, claims=left)


def with_refusals(transaction: Transaction, late: NDArray[np.uint8], outcome: Outcome) -> Outcome:
    """The outcome for the whole transaction, given the outcome of what `drop_late_claims` left."""
    claims = transaction.claims
    assert claims is not None
    kept = ~_fallen(transaction, claims, late > 0)
    accepted = np.zeros(len(claims), np.bool_)
    whys = np.where(late > 0, late, np.uint8(Why.TOGETHER))
    details = np.full(len(claims), -1, np.int8)
    amounts = np.zeros(len(claims), np.int64)
    accepted[kept], whys[kept] = outcome.accepted, outcome.whys
    details[kept], amounts[kept] = outcome.details, outcome.amounts
    machines = claims.machines.copy()
    machines[kept] = outcome.machines
    unsettled: dict[str, tuple[Refusal, ...]] = {}
    if transaction.atomic:
        for field, refusals in _SETTLED.items():
            given: TaskArray | None = getattr(transaction, field)
            tasks = [] if given is None else given.tolist()
            unsettled[refusals] = tuple(Refusal(Why.TOGETHER, task=task) for task in tasks)
    return structs.replace(
        outcome,
        accepted=accepted,
        whys=whys,
        details=details,
        amounts=amounts,
        all_accepted=False,
        machines=machines,
        **unsettled,
    )


def _fallen(transaction: Transaction, claims: Claims, late: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if transaction.atomic:
        return np.ones(len(claims), np.bool_)
    if claims.gangs is None:
        return late
    return late | (np.isin(claims.gangs, claims.gangs[late]) & (claims.gangs >= 0))
