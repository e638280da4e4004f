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

Result = TypeVar("Result")


class Failure(NamedTuple):
    """An error as values: exceptions with their own constructors do not survive the way back."""

    code: str
    text: str
    #: What `--debug` shows.
    trace: str = ""

    @classmethod
    def of(cls, error: ArgosyError) -> Failure:
        """Of the error that is being handled."""
        return cls(error.code, str(error), traceback.format_exc())


def unwrap(what: object, future: Future[Result | Failure]) -> Result:
    """The result, or the error that `what` ended in, raised here."""
    try:
        result = future.result()
    except BrokenProcessPool:
        raise CommandError(
            f"{what}: the process was killed", hint="fewer --jobs need less memory"
        ) from None
    if isinstance(result, Failure):
        raise _raised_again(what, result)
    return result


def _raised_again(what: object, failure: Failure) -> ArgosyError:
    """An error of the same class, so that callers can tell one from another."""
    kind = next((kind for kind in error_tree() if kind.code == failure.code), ArgosyError)
    error = kind.__new__(kind)
    # Each class has a constructor of its own; the text is made already.
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
        # Work in progress can last for minutes: do not wait for it.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    pool.shutdown()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Children started here never see Ctrl-C, which a terminal sends to all; we end them. One that comes
    meanwhile is for us, as soon as they are started."""
    came: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    except ValueError:
        # Signals belong to the main thread.
        yield
        return
    # What is blocked here is blocked in children; another thread of ours may still be sent the signal.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(signal.SIGINT, None)
