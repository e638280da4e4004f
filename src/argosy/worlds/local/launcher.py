"""Starts supervisors.

A supervisor is a child of the launching process until that ends, and its launcher reaps it; if the
launcher dies first, the system does. It gives up everything it inherits: descriptors, terminal,
session, working directory, signal mask.

A server uses a `LaunchHelper`: a small process that forks supervisors for it, so that it neither forks
its own memory nor waits until a new program runs.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import platform
import re
import signal
import socket
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from argosy.worlds.local.records import SPEC
from argosy.worlds.local.spec import SupervisorError, TrySpec
from argosy.worlds.local.supervised import SupervisedTry

#: It has pidfds and `close_range`.
OLDEST_KERNEL: Final = (5, 9)
#: Held back until the supervisor listens.
BLOCKED: Final = (signal.SIGTERM, signal.SIGUSR1)
#: The largest message that a helper takes.
LARGEST_MESSAGE: Final = 1 << 16
#: Where a helper has its lock.
_LOCK: Final = 4


def supervisor_program() -> Path:
    """The program that was installed with this package."""
    if sys.platform != "linux":
        raise SupervisorError(
            f"tasks cannot be run on {sys.platform}",
            expected="Linux",
            hint="simulations run everywhere",
        )
    release = platform.release()
    if tuple(int(part) for part in re.findall(r"\d+", release)[:2]) < OLDEST_KERNEL:
        raise SupervisorError(
            f"tasks cannot be run on Linux {release}",
            expected="Linux {}.{} or newer".format(*OLDEST_KERNEL),
        )
    # Beside the native core, which in an editable installation is not beside this file.
    core = importlib.util.find_spec("argosy._core")
    home = (
        Path(core.origin).parent if core is not None and core.origin else Path(__file__).parents[2]
    )
    program = home / "_bin" / "argosy-supervisor"
    if not os.access(program, os.X_OK):
        raise SupervisorError(
            "the task supervisor is missing", file=str(program), hint="install argosy again"
        )
    return program


class LaunchHelper:
    """Forks supervisors. If it dies, another one is started.

    `lock` is a descriptor of a locked file. The lock is held until this process is gone and every
    supervisor that it asked for has claimed its directory or failed to.
    """

    def __init__(self, program: Path | None = None, lock: int | None = None) -> None:
        self._program = str(program or supervisor_program())
        self._lock = lock
        self._socket: socket.socket | None = None
        self._pid = 0

    def start(self, path: str, spec: bytes = b"") -> None:
        """Has a supervisor started for the try in a directory; with a specification, the supervisor
        makes the directory. If it cannot, it may report so, or nothing may."""
        message = os.fsencode(path) + (b"\0" + spec if spec else b"")
        for is_last in (False, True):
            try:
                self._connected().send(message)
                return
            except OSError as error:
                self.close()
                if is_last:
                    raise SupervisorError(
                        f"no supervisor can be started: {error.strerror}", file=self._program
                    ) from error

    def _connected(self) -> socket.socket:
        if self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                passed = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)]
                if self._lock is not None:
                    passed.append((os.POSIX_SPAWN_DUP2, self._lock, _LOCK))
                self._pid = os.posix_spawn(
                    self._program, [self._program, "--launcher"], {}, file_actions=passed
                )
            self._socket = ours
        return self._socket

    def close(self) -> None:
        """Supervisors go on."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)


class Launcher:
    """With a `helper`, supervisors are not children of this process, and `reap` has nothing to do. Not
    safe for use by several threads."""

    def __init__(self, program: Path | None = None, helper: LaunchHelper | None = None) -> None:
        self._program = str(program or supervisor_program())
        self._helper = helper
        #: Supervisors that are this process's children and not reaped yet, by directory.
        self._children: dict[str, tuple[int, SupervisedTry]] = {}

    def launch(self, directory: str | Path, spec: TrySpec) -> SupervisedTry:
        """Starts a supervisor for a try in a directory that is new and private (mode 0700).

        Returns before the command runs: whether it could be started is reported, and stands in the
        files.
        """
        path = os.path.abspath(directory)
        _check_private(path)
        data = spec.encode()
        try:
            file = os.open(
                f"{path}/{SPEC}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
        except FileExistsError:
            raise SupervisorError(
                "a try was launched here before", file=path, expected="a new directory for each try"
            ) from None
        try:
            if os.write(file, data) != len(data):
                # What is written in part only has met the end of the disk.
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        finally:
            os.close(file)
        launched = SupervisedTry(path, spec.name, spec.cgroup)
        try:
            if self._helper is not None:
                self._helper.start(path)
            else:
                self._children[path] = (self._spawn(path), launched)
        except SupervisorError:
            os.unlink(f"{path}/{SPEC}")
            raise
        return launched

    def launch_new(self, path: str, spec: TrySpec) -> SupervisedTry:
        """Has the helper start a supervisor that makes the directory of its try, which must not exist.

        That takes no time of this process's. If it cannot be made, a report says so.
        """
        assert self._helper is not None
        data = spec.encode()
        if len(os.fsencode(path)) + 1 + len(data) > LARGEST_MESSAGE:
            os.mkdir(path, mode=0o700)
            return self.launch(path, spec)
        self._helper.start(path, data)
        return SupervisedTry(path, spec.name, spec.cgroup)

    def _spawn(self, path: str) -> int:
        try:
            return os.posix_spawn(
                self._program, [self._program, path], {}, setsigmask=BLOCKED, setsigdef=BLOCKED
            )
        except OSError as error:
            raise SupervisorError(
                f"no supervisor can be started: {error.strerror}", file=self._program
            ) from error

    def reap(self, ended: Iterable[SupervisedTry] | None = None) -> int:
        """Reaps supervisors that have exited: all, or only those of the tries given. Returns how
        many there are left to reap among them.

        A try whose supervisor exited before it began is withdrawn.
        """
        asked = list(self._children) if ended is None else [each.directory for each in ended]
        left = 0
        for directory in asked:
            child = self._children.get(directory)
            if child is None:
                continue
            pid, launched = child
            try:
                exited, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                # The process ignores SIGCHLD, or somebody reaped it for us.
                exited = pid
            if exited == 0:
                left += 1
                continue
            del self._children[directory]
            launched.withdraw()
        return left


def _check_private(path: str) -> None:
    try:
        found = os.stat(path)
    except OSError as error:
        raise SupervisorError(
            f"{error.strerror}", file=path, expected="a directory for the try"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077 or found.st_uid != os.geteuid():
        raise SupervisorError(
            "the directory of a try is not private",
            file=path,
            expected="a directory of this user's with mode 0700",
        )
