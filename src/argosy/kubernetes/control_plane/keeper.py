"""A program of its own: the parent of a control plane's processes, which outlives whoever started it by
just as long as it takes to end them and to remove their directory.

Called with the pid of the process it works for and the directory, and with a socket as standard input.
It ends when the socket is closed or that process is gone, even if it was killed. If the keeper itself is
killed, the kernel kills its children: they ask for that, which is safe here because the keeper has one
thread. (The kernel does so when the thread that started them ends, so that a thread of a pool must not.)

A request is one packet of JSON:

    {"start": [program, argument, ...], "log": path}
        answered by {"pid": n} with a pidfd, or by {"error": text}
    {"keep": path}
        not answered; this entry of the directory is not removed

Only the standard library is imported, and little of it: a keeper starts in a few hundredths of a second.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from typing import Final

LARGEST_REQUEST: Final = 1 << 16
_PR_SET_PDEATHSIG: Final = 1


class Keeper:
    def __init__(self, user: int, directory: str, channel: socket.socket) -> None:
        self._user = user
        self._directory = directory
        self._channel = channel
        self._kept = ""
        #: By pidfd. Reaped as soon as they end.
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def run(self) -> None:
        try:
            self._serve()
        finally:
            self._end()

    def _serve(self) -> None:
        user = os.pidfd_open(self._user)
        # Whoever it works for is its parent, so the number meant that process until now.
        if os.getppid() != self._user:
            return
        poll = select.poll()
        for descriptor in (user, self._channel.fileno()):
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == user:
                    return
                if descriptor in self._children:
                    poll.unregister(descriptor)
                    self._children.pop(descriptor).wait()
                    os.close(descriptor)
                elif not self._answer(poll):
                    return

    def _answer(self, poll: select.poll) -> bool:
        packet = self._channel.recv(LARGEST_REQUEST)
        if not packet:
            return False
        request = json.loads(packet)
        if "keep" in request:
            self._kept = request["keep"]
            return True
        try:
            child = self._start(request["start"], request["log"])
        except (OSError, subprocess.SubprocessError) as error:
            self._channel.send(json.dumps({"error": str(error)}).encode())
            return True
        descriptor = os.pidfd_open(child.pid)
        self._children[descriptor] = child
        poll.register(descriptor, select.POLLIN)
        socket.send_fds(self._channel, [json.dumps({"pid": child.pid}).encode()], [descriptor])
        return True

    def _start(self, arguments: list[str], log: str) -> subprocess.Popen[bytes]:
        with open(log, "ab") as file:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=self._die_with_keeper,
            )

    def _die_with_keeper(self) -> None:
        parent = os.getppid()
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(127)

    def _end(self) -> None:
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            child.wait()
        if not self._kept:
            shutil.rmtree(self._directory, ignore_errors=True)
            return
        for entry in os.scandir(self._directory):
            if entry.path == self._kept:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)


if __name__ == "__main__":
    Keeper(int(sys.argv[1]), sys.argv[2], socket.socket(fileno=0)).run()
