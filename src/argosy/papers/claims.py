"""What a paper says and what was measured here, side by side."""

from __future__ import annotations

import msgspec


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One statement of a paper. All papers report theirs in this form, which is also the JSON form."""

    #: Stable: tests and documents refer to it.
    id: str
    figure: str
    #: What the paper says, and what was measured here.
    paper: str
    here: str
    #: How far `here` may be from `paper` for the claim to hold.
    tolerance: str
    holds: bool
    #: What a reader has to know to judge it; may be empty.
    note: str = ""
