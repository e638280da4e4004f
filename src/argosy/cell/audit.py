"""What the audit finds, and who used what."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class AuditFailure(AssertionError):
    """The cell's counts differ from a recount: a bug in the cell, never in its input."""

    def __init__(self, discrepancies: Sequence[str]) -> None:
        self.discrepancies = tuple(discrepancies)
        super().__init__("; ".join(discrepancies))


class Usage(msgspec.Struct, frozen=True):
    """What one scheduler holds at this moment."""

    resources: dict[str, int]
    tasks: int
    #: Jobs of which at least one task is placed: what a limit of jobs counts.
    jobs: int
