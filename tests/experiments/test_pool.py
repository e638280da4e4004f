"""Worker processes and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from argosy.experiments.pool import uninterrupted, worker_pool


def test_an_interrupt_while_processes_start_is_not_lost() -> None:
    def start() -> None:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            started.append(True)

    started: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        start()
    assert started, "not before they are started"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


def blocked_signals() -> set[int]:
    return set(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, set())))


def test_processes_never_see_an_interrupt() -> None:
    with worker_pool(1) as pool:
        with uninterrupted():
            asked = pool.submit(blocked_signals)
        assert signal.SIGINT in asked.result(timeout=60)


def test_a_command_ends_even_if_a_thread_waits_forever() -> None:
    code = (
        "import sys, threading, argosy.cli\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "sys.argv = ['argosy', '--version']\n"
        "argosy.cli.process()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert ended.returncode == 0
    assert "argosy" in ended.stdout


def test_workers_end_when_their_parent_is_killed() -> None:
    code = (
        "import os, signal, threading\n"
        "from argosy.experiments.pool import worker_pool\n"
        "from test_pool import wait_for_ever\n"
        "if __name__ == '__main__':\n"
        "    with worker_pool(1) as pool:\n"
        "        pool.submit(wait_for_ever)\n"
        "        threading.Event().wait()\n"
    )
    here = os.path.dirname(__file__)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": here},
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"waiting\n"
        parent.kill()
        # The worker has the other end of this pipe: it is closed when the worker is gone.
        assert parent.stdout.read() == b""


def wait_for_ever() -> None:
    print("waiting", flush=True)
    threading.Event().wait()
