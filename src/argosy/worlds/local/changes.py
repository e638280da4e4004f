"""What a turn changed, for those who watch: stored with the turn, so that nobody misses anything.

Times are those of the cluster.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec


class TaskNote(msgspec.Struct, frozen=True, array_like=True, tag="task", gc=False):
    at: int
    job: str
    index: int
    state: str
    machine: str
    exit_status: int | None
    reason: str


class JobNote(msgspec.Struct, frozen=True, array_like=True, tag="job", gc=False):
    """How the job was at the end of the turn. `counts` is in the order of `projection.STATES`."""

    at: int
    job: str
    state: str
    version: int
    counts: tuple[int, ...]


class MachineNote(msgspec.Struct, frozen=True, array_like=True, tag="machine", gc=False):
    at: int
    machine: str
    change: Literal["added", "removed", "resized", "relabelled", "draining", "accepting"]


class LifeNote(msgspec.Struct, frozen=True, array_like=True, tag="life", gc=False):
    """A server started, or its fleet changed."""

    at: int
    life: int


ChangeNote: TypeAlias = TaskNote | JobNote | MachineNote | LifeNote

_DECODER: Final = msgspec.json.Decoder(list[ChangeNote])


def encode_changes(changes: list[ChangeNote]) -> bytes:
    return msgspec.json.encode(changes)


def decode_changes(data: bytes) -> list[ChangeNote]:
    return _DECODER.decode(data)
