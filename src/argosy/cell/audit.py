"""Findings of the audit, and usage per scheduler."""

from __future__ import annotations

import msgspec

#: The cell's counts differ from a recount: a bug in the cell, never in its input.
from argosy._core import AuditFailure

__all__ = ["AuditFailure", "Usage"]


class Usage(msgspec.Struct, frozen=True):
    """What one scheduler currently holds."""

    resources: dict[str, int]
    tasks: int
    #: Jobs with at least one placed task; the job limit counts these.
    jobs: int
