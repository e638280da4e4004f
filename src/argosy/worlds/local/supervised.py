"""A try under supervision, known by its directory: whoever has the directory has the try.

The files are the truth. A server that launched a try and one that adopts it use the same object;
nothing depends on who is whose child.
"""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import time
from pathlib import Path

import msgspec

from argosy.worlds.local import processes
from argosy.worlds.local.records import (
    SPEC,
    CommandStart,
    SupervisorIdentity,
    TryEnd,
    read_end,
    read_identity,
    read_start,
    write_claim,
)
from argosy.worlds.local.spec import SupervisorError, spec_values


class TryState(enum.StrEnum):
    #: The supervisor has not begun.
    LAUNCHED = "launched"
    #: It has, and the command does not run yet.
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    #: Taken back before the supervisor began: the command never ran and never will.
    WITHDRAWN = "withdrawn"
    #: The supervisor died before it recorded an end, which therefore nobody knows.
    LOST = "lost"

    @property
    def is_over(self) -> bool:
        return self in (TryState.ENDED, TryState.WITHDRAWN, TryState.LOST)


class TryStatus(msgspec.Struct, frozen=True, kw_only=True):
    state: TryState
    start: CommandStart | None = None
    #: Always there if the state is `ENDED`.
    end: TryEnd | None = None

    def sentence(self) -> str:
        if self.end is not None:
            return self.end.sentence()
        return SENTENCES[self.state]


SENTENCES = {
    TryState.LAUNCHED: "its supervisor is starting",
    TryState.STARTING: "it is starting",
    TryState.RUNNING: "it is running",
    TryState.WITHDRAWN: "stopped before it started",
    TryState.LOST: "its supervisor died, so how it ended is unknown",
}


class SupervisedTry:
    def __init__(self, directory: str, name: str, cgroup: str = "") -> None:
        self.directory = directory
        self.name = name
        self._cgroup = cgroup
        self._identity: SupervisorIdentity | None = None

    @classmethod
    def adopt(cls, directory: str | Path) -> SupervisedTry:
        """The try in a directory whose launcher is gone. If no supervisor has begun, none will: that is
        settled first, also for a directory that a supervisor is about to make."""
        path = os.path.abspath(directory)
        adopted = cls(path, "")
        adopted.withdraw()
        try:
            values = spec_values(Path(path, SPEC).read_bytes())
        except FileNotFoundError as error:
            raise SupervisorError(
                "no try was launched here", file=path, expected=f"a directory with a file {SPEC}"
            ) from error
        except SupervisorError as error:
            raise error.located(file=f"{path}/{SPEC}") from error
        # Whoever has claimed the directory has read all of it.
        adopted.name, adopted._cgroup = values["name"], values.get("cgroup", "")
        return adopted

    def identity(self) -> SupervisorIdentity | None:
        if self._identity is None:
            self._identity = read_identity(self.directory)
        return self._identity

    def status(self) -> TryStatus:
        end = read_end(self.directory)
        if end is not None:
            return TryStatus(state=TryState.ENDED, end=end)
        identity = self.identity()
        if identity is None:
            return TryStatus(state=TryState.LAUNCHED)
        if identity.pid == 0:
            return TryStatus(state=TryState.WITHDRAWN)
        start = read_start(self.directory)
        if processes.is_alive(identity):
            return TryStatus(state=TryState.RUNNING if start else TryState.STARTING, start=start)
        # It may have written the end since.
        end = read_end(self.directory)
        if end is not None:
            return TryStatus(state=TryState.ENDED, end=end)
        return TryStatus(state=TryState.LOST, start=start)

    def stop(self) -> bool:
        """SIGTERM to every process of the try, SIGKILL after its grace. Returns False if it is
        over."""
        return self.withdraw() or self._signal(signal.SIGTERM)

    def kill(self) -> bool:
        """SIGKILL to every process of the try. Returns False if it is over."""
        return self.withdraw() or self._signal(signal.SIGUSR1)

    def withdraw(self) -> bool:
        """Takes the try back if no supervisor has begun: if one comes now, it does nothing."""
        if self.identity() is not None:
            return False
        nobody = SupervisorIdentity(
            pid=0, start_ticks=0, boot=processes.boot_id(), at=time.time_ns() // 1_000
        )
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        return write_claim(self.directory, nobody)

    def open_supervisor(self) -> int | None:
        """A pidfd that becomes readable when the supervisor exits; None if there is none. The
        caller's to close."""
        identity = self.identity()
        return None if identity is None else processes.open_process(identity)

    def clear_leftovers(self) -> int:
        """Kills what a lost try may have left behind, and returns how many processes that were.

        The command itself died with its supervisor. With a cgroup all others are found; without,
        those that stayed in the command's session.
        """
        status = self.status()
        if status.state is not TryState.LOST:
            return 0
        identity = self.identity()
        if identity is None or identity.boot != processes.boot_id():
            return 0
        killed = 0
        if self._cgroup and os.path.isdir(self._cgroup):
            killed = len(Path(self._cgroup, "cgroup.procs").read_text("ascii").split())
            Path(self._cgroup, "cgroup.kill").write_text("1", "ascii")
            with contextlib.suppress(OSError):
                os.rmdir(self._cgroup)
        if status.start is not None:
            killed += processes.kill_session(status.start)
        return killed

    def _signal(self, number: signal.Signals) -> bool:
        identity = self.identity()
        return identity is not None and processes.send_signal(identity, number)
