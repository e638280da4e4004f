"""Claims that move tasks which ended while the transaction was on its way.

Nobody could have known, so such a claim is refused like any other that came too late: the rest of the
transaction is judged without it.
"""

from __future__ import annotations

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.model.explanations import Refusal, Why
from argosy.model.transactions import Claims, Outcome, Transaction


def drop_ended_moves(transaction: Transaction, ended: NDArray[np.bool_]) -> Transaction:
    """What is left to judge. Claims that stand or fall with an ended task's fall with it."""
    claims = transaction.claims
    assert claims is not None
    kept = ~_fallen(transaction, claims, ended)
    left = Claims(
        claims.tasks[kept],
        claims.machines[kept],
        claims.shapes[kept],
        claims.versions[kept],
        None if claims.gangs is None else claims.gangs[kept],
        None if claims.alternatives is None else claims.alternatives[kept],
    )
    if transaction.atomic:
        return structs.replace(transaction, claims=left, releases=None)
    return structs.replace(transaction, claims=left)


def with_refusals(transaction: Transaction, ended: NDArray[np.bool_], outcome: Outcome) -> Outcome:
    """The outcome of `drop_ended_moves`, as rows of the whole transaction."""
    claims = transaction.claims
    assert claims is not None
    kept = ~_fallen(transaction, claims, ended)
    accepted = np.zeros(len(claims), np.bool_)
    whys = np.where(ended, Why.ENDED, Why.TOGETHER).astype(np.uint8)
    details = np.full(len(claims), -1, np.int8)
    amounts = np.zeros(len(claims), np.int64)
    accepted[kept], whys[kept] = outcome.accepted, outcome.whys
    details[kept], amounts[kept] = outcome.details, outcome.amounts
    machines = claims.machines.copy()
    machines[kept] = outcome.machines
    unreleased = outcome.unreleased
    if transaction.atomic and transaction.releases is not None:
        unreleased = tuple(
            Refusal(Why.TOGETHER, task=task) for task in transaction.releases.tolist()
        )
    return structs.replace(
        outcome,
        accepted=accepted,
        whys=whys,
        details=details,
        amounts=amounts,
        unreleased=unreleased,
        all_accepted=False,
        machines=machines,
    )


def _fallen(
    transaction: Transaction, claims: Claims, ended: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    if transaction.atomic:
        return np.ones(len(claims), np.bool_)
    if claims.gangs is None:
        return ended
    return ended | (np.isin(claims.gangs, claims.gangs[ended]) & (claims.gangs >= 0))
