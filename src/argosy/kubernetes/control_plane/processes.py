"""Processes that end with whoever started them: the other side of `keeper`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from argosy.kubernetes.control_plane.failures import ControlPlaneError

#: A killed process is gone in milliseconds; this is for a computer that is not doing well.
_LONGEST_END: Final = 30.0
_KEEPER: Final = Path(__file__).with_name("keeper.py")


class KeptProcess:
    """One process of a keeper. It is known by its pidfd, so nobody else is ever signalled."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def has_ended(self, within: float = 0.0) -> bool:
        """Waits at most so many seconds for the end."""
        return bool(self._poll.poll(within * 1000))

    def kill(self) -> None:
        """Returns when it is gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        if not self.has_ended(_LONGEST_END):
            raise ControlPlaneError(f"process {self.pid} does not end although it was killed")

    def close(self) -> None:
        os.close(self._descriptor)


class ProcessKeeper:
    """Starts processes. When it is closed or its user is gone, they end and `directory` is removed."""

    def __init__(self, directory: Path, log: Path) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), str(directory)]
        with theirs, open(log, "ab") as file:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd="/",
                # An interrupt from the terminal is for whoever uses the control plane.
                start_new_session=True,
            )

    def start(self, arguments: Sequence[str], log: Path) -> KeptProcess:
        request = msgspec.json.encode({"start": arguments, "log": str(log)})
        with self._lock:
            try:
                self._channel.send(request)
                answer, descriptors, _, _ = socket.recv_fds(self._channel, 1 << 12, 1)
            except OSError as error:
                raise ControlPlaneError(f"{arguments[0]} cannot be started: {error}") from None
        told = msgspec.json.decode(answer, type=dict[str, int | str]) if answer else {}
        if not descriptors:
            why = told.get("error", "the process that starts others is gone")
            raise ControlPlaneError(f"{arguments[0]} cannot be started: {why}")
        return KeptProcess(int(told["pid"]), descriptors[0])

    def close(self, keep: Path | None = None) -> None:
        """Ends everything and removes the directory, but what is in `keep`."""
        if keep is not None:
            with contextlib.suppress(OSError):
                self._channel.send(msgspec.json.encode({"keep": str(keep)}))
        self._channel.close()
        self._process.wait(_LONGEST_END)
