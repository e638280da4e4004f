"""The command line: one module per command, imported when that command is called.

Charter: read arguments, call the layers below, print. Results go to stdout, everything else to
stderr; a user's mistake is one line and exit code 2, never a traceback. Commands import what they need
inside the function, so that `argosy --help` starts without NumPy, rich or msgspec.

Exit codes: 0 success, 1 a problem found by a check (such as `doctor` or `replay`) or a bug, 2 a mistake
in the input, 129 the terminal was closed, 130 interrupted, 141 the reader of the output closed the pipe,
143 terminated.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

__all__ = ["Terminated", "kubectl_plugin", "main", "process"]

INTERRUPTED: Final = 130
TERMINATED: Final = 143
HUNG_UP: Final = 129
#: How long a thread may take to end after its command has ended.
_PATIENCE_SECONDS: Final = 3.0


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends like Ctrl-C, with all clean-up on the way, but with its own exit code."""


class HungUp(Terminated):
    """SIGHUP: the terminal was closed."""


def main(arguments: Sequence[str] | None = None, *, is_plugin: bool = False) -> NoReturn:
    """Runs one command, of `argosy` or of `kubectl argosy`; `arguments` default to those of the
    process."""
    try:
        with _terminable():
            # Imports take long enough to be interrupted.
            with _collecting_later():
                from argosy.cli.app import run
            if arguments is None:
                # What was imported stays as long as the process.
                gc.freeze()
            code = run(arguments, is_plugin=is_plugin)
    except KeyboardInterrupt as stop:
        code = ended_by(stop)
    raise SystemExit(code)


def kubectl_plugin() -> NoReturn:
    """The entry point `kubectl-argosy`, which kubectl calls for `kubectl argosy`."""
    process(is_plugin=True)


def process(*, is_plugin: bool = False) -> NoReturn:
    """The entry point `argosy`: runs `main` and ends the process with it."""
    try:
        main(is_plugin=is_plugin)
    except SystemExit as end:
        # A pool's thread may wait forever for the rest of what a terminated process was sending.
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and not thread.daemon:
                thread.join(timeout=_PATIENCE_SECONDS)
                if thread.is_alive() and isinstance(end.code, int):
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(end.code)
        raise


@contextmanager
def _collecting_later() -> Iterator[None]:
    """While modules are imported there is no garbage, and looking for it takes long."""
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_collecting:
            gc.enable()


def ended_by(stop: BaseException) -> int:
    """Prints what ended the command, and returns its exit code."""
    is_terminated = isinstance(stop, Terminated)
    with suppress(OSError):
        # A terminal that was closed takes no more text.
        print(f"argosy: {'terminated' if is_terminated else 'interrupted'}", file=sys.stderr)
    if isinstance(stop, HungUp):
        return HUNG_UP
    return TERMINATED if is_terminated else INTERRUPTED


@contextmanager
def _terminable() -> Iterator[None]:
    """While a command runs, SIGTERM and SIGHUP raise `Terminated`, but only once, so that clean-up is
    not cut short. A signal that somebody else handles or ignores, as under nohup, is left alone."""
    handled = []
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _terminate)
                handled.append(number)
    except ValueError:
        # Not in the main thread, or not allowed to set handlers.
        yield
        return
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    raise HungUp if number == signal.SIGHUP else Terminated
