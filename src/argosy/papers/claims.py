"""A paper's claims, each beside what was measured here."""

from __future__ import annotations

import msgspec


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
