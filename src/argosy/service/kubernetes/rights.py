"""The right to write to Kubernetes. Of several replicas only the leader has it, for as long as it holds
the lease; one that runs alone always has it."""

from __future__ import annotations

import os
import socket
from typing import Final, Protocol
from uuid import uuid4

import msgspec

from argosy.kubernetes.leases import LeaseSettings
from argosy.model.errors import ArgosyError
from argosy.worlds.kubernetes.pod_jobs import PREFIX

#: The annotation of a binding with the number of the leader that made it.
FENCING: Final = PREFIX + "fencing"


class WriteRight(Protocol):
    @property
    def is_held(self) -> bool: ...

    @property
    def remaining(self) -> float | None:
        """For how many seconds it is certainly held; None: for ever."""

    @property
    def fencing(self) -> int | None:
        """Greater than that of every leader before; None if there is no election."""


class LastingRight:
    """Of a scheduler that has no rivals."""

    is_held = True
    remaining = None
    fencing = None


class NoRight:
    """Of a replica that waits until it leads."""

    is_held = False
    remaining = 0.0
    fencing = None


class ElectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which lease replicas stand for. `identity` is unique to the process."""

    name: str
    namespace: str
    identity: str
    settings: LeaseSettings = LeaseSettings()


class LeadershipLost(ArgosyError):
    """Another replica may lead now: this one has stopped writing, and ends."""

    code = "leadership-lost"


def own_identity() -> str:
    """Readable, and never that of another process."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid4().hex[:8]}"
