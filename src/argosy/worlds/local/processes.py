"""Processes as the kernel knows them: who still lives, and signals that cannot hit a stranger."""

from __future__ import annotations

import functools
import os
import signal
from pathlib import Path
from typing import NamedTuple

from argosy.worlds.local.records import CommandStart, SupervisorIdentity

DEAD = frozenset("ZX")


class ProcessStat(NamedTuple):
    state: str
    parent: int
    session: int
    start_ticks: int


@functools.cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def stat_of(pid: int) -> ProcessStat | None:
    """None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name, in parentheses, may contain anything.
    fields = data[data.rindex(b")") + 2 :].split()
    return ProcessStat(fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def is_alive(identity: SupervisorIdentity) -> bool:
    if identity.pid <= 0 or identity.boot != boot_id():
        return False
    stat = stat_of(identity.pid)
    return stat is not None and stat.start_ticks == identity.start_ticks and stat.state not in DEAD


def open_process(identity: SupervisorIdentity) -> int | None:
    """A pidfd of exactly this process, or None if it is gone. It becomes readable when the process
    ends."""
    if identity.pid <= 0 or identity.boot != boot_id():
        return None
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    # After opening: the pid cannot change hands unnoticed any more.
    if is_alive(identity):
        return descriptor
    os.close(descriptor)
    return None


def send_signal(identity: SupervisorIdentity, number: signal.Signals) -> bool:
    """Whether the process was there to be signalled."""
    descriptor = open_process(identity)
    if descriptor is None:
        return False
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def kill_session(start: CommandStart) -> int:
    """Kills who is left of the session that a command began, and counts them.

    A session's id is its leader's pid, which the kernel gives to nobody else while the session has
    members. If another process has it now, that is another session, and is left alone.
    """
    leader = stat_of(start.pid)
    if leader is not None and leader.start_ticks != start.start_ticks:
        return 0
    killed = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            descriptor = os.pidfd_open(int(entry))
        except OSError:
            continue
        try:
            stat = stat_of(int(entry))
            if (
                stat is not None
                and stat.session == start.pid
                and stat.start_ticks >= start.start_ticks
                and stat.state not in DEAD
            ):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                killed += 1
        except (ProcessLookupError, PermissionError):
            continue
        finally:
            os.close(descriptor)
    return killed
