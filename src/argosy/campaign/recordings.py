"""What a world gives back of a run."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from argosy.campaign.recount import Where


class ApiRecord(msgspec.Struct, frozen=True):
    """An object of a Kubernetes API server was made or changed, or is gone. `document` must not be
    changed."""

    at: int
    kind: Literal["pod", "node", "group"]
    is_gone: bool
    document: dict[str, Any]


class KnownPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as a scheduler knows it in the end."""

    uid: str
    #: Where it is, or is going; empty if it has no node.
    node: str
    is_bound: bool
    #: Why it is not scheduled at all; empty if it is.
    obstacle: str
    #: Its job and the index of its task; empty if it has none.
    job: str
    index: int


class PodRecording(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a Kubernetes cluster, as its API server knows it."""

    records: tuple[ApiRecord, ...]
    #: All that the last scheduler knew when the run was over.
    known: tuple[KnownPod, ...]
    #: When schedulers were killed.
    kills: tuple[int, ...] = ()
    #: Since when nothing went wrong any more.
    calm_since: int = 0


class WorldRecording(msgspec.Struct, frozen=True):
    journal: bytes
    ended_at: int
    #: How many tasks are in each state, as the world counts them; none if it does not.
    counts: dict[Where, int] | None = None
    #: The journals of servers that went on with the cluster, in their order.
    later: tuple[bytes, ...] = ()
    #: Where each task with a process runs in the end; none if there are no processes.
    processes: dict[str, str] | None = None
    #: Journals of servers that kept theirs on disks which were lost, a tuple for each disk.
    lost: tuple[tuple[bytes, ...], ...] = ()
    #: None if there are no pods.
    pods: PodRecording | None = None

    @property
    def journals(self) -> tuple[bytes, ...]:
        return (self.journal, *self.later)

    @property
    def all_journals(self) -> tuple[bytes, ...]:
        return (*(each for disk in self.lost for each in disk), *self.journals)
