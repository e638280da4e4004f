"""The state of a job between two hosts: what one leaves, and the next restores."""

from __future__ import annotations

import msgspec


class JobState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an earlier host left the tasks of a job, by their indices. Those in no list are pending."""

    submitted: int
    #: The scheduler it belonged to; another takes it, if the fleet has none of that name.
    scheduler: str = ""
    #: Tasks that run, and the machine of each.
    running: tuple[int, ...] = ()
    machines: tuple[int, ...] = ()
    finished: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()
    abandoned: tuple[int, ...] = ()
    #: How often tasks that are not over have failed.
    failures: dict[int, int] = {}

    def of(self, index: int) -> str:
        """The state of one task, in a word."""
        for name in ("running", "finished", "failed", "cancelled", "abandoned"):
            if index in getattr(self, name):
                return name
        return "pending"
