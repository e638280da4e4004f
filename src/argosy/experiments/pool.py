"""Worker processes that end with their parent, and errors that can be passed between processes."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from argosy.model.errors import ArgosyError, CommandError, error_tree

ResultT = TypeVar("ResultT")


class Failure(NamedTuple):
    """An error as plain values, because exceptions with their own constructors cannot be sent between
    processes."""

    code: str
    text: str
    #: Shown with `--debug`.
    trace: str = ""

    @classmethod
    def of(cls, error: ArgosyError) -> Failure:
        """From the error being handled."""
        return cls(error.code, str(error), traceback.format_exc())


def unwrap(what: object, future: Future[ResultT | Failure]) -> ResultT:
    """The result; or raises the error that `what` ended with."""
    try:
        result = future.result()
    except BrokenProcessPool:
        raise CommandError(
            f"{what}: the process was killed", hint="use fewer --jobs to need less memory"
        ) from None
    if isinstance(result, Failure):
        raise _raised_again(what, result)
    return result


def _raised_again(what: object, failure: Failure) -> ArgosyError:
    """An error of the same class, so that callers can distinguish it."""
    kind = next((kind for kind in error_tree() if kind.code == failure.code), ArgosyError)
    error = kind.__new__(kind)
    # Each class has its own constructor, but the text is already complete.
    ArgosyError.__init__(error, f"{what}: {failure.text}")
    error.code = failure.code
    if failure.trace:
        error.add_note(f"In the process that ran it:\n{failure.trace}")
    return error


@contextmanager
def worker_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Spawned, not forked: the same on every platform, and no copied locks."""
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
    others = set(multiprocessing.active_children())
    try:
        yield pool
    except BaseException:
        # Do not wait for work in progress, which can take minutes.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    pool.shutdown()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Child processes started here ignore Ctrl-C, which a terminal sends to all processes; the parent
    ends them. A Ctrl-C that arrives in the meantime is handled here, once they are started."""
    came: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    except ValueError:
        # Only the main thread can set signal handlers.
        yield
        return
    # Child processes inherit the mask; another thread of this process may still receive the signal.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(signal.SIGINT, None)
