"""A paper's claims, each beside what was measured here."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import structs

#: The share of what an experiment was to do that must be done, for a claim about it to hold.
ENOUGH: Final = 0.95


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One claim of a paper. All papers report their claims in this form, which is also the JSON
    form."""

    #: Stable: tests and documents refer to it.
    id: str
    figure: str
    #: What the paper says, and what was measured here.
    paper: str
    here: str
    #: How far `here` may be from `paper` for the claim to hold.
    tolerance: str
    holds: bool
    #: What is measured here, if the paper's sentence is checked in more than one way; else empty.
    setup: str = ""
    #: What a reader must know to judge it; may be empty.
    note: str = ""


def if_done(claim: Claim, *shares: float) -> Claim:
    """The claim, which does not hold if one of its experiments was not done: a scheduler that places
    nothing breaks no constraint, and a solver that gives up is fast."""
    least = min(shares)
    if least >= ENOUGH:
        return claim
    told = f"only {100 * least:.0f} % of the experiment was done, so nothing follows from it"
    note = f"{claim.note}; {told}" if claim.note else told
    return structs.replace(claim, holds=False, note=note)
