"""Findings of the audit, and usage per scheduler."""

from __future__ import annotations

import msgspec

#: The cell's counts differ from a recount: a bug in the cell, never in its input.
from argosy._core import AuditFailure

__all__ = ["AuditFailure", "Usage"]


class Usage(msgspec.Struct, frozen=True):
    """What one scheduler holds at this moment."""

    resources: dict[str, int]
    tasks: int
    #: Jobs of which at least one task is placed: what a limit of jobs counts.
    jobs: int
