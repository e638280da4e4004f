"""Worker processes and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

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
