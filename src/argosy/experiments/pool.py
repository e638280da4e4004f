"""Worker processes that end with their parent, and errors that can be passed between processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_any
from typing import Final, NamedTuple, TypeVar

from argosy.model.errors import ArgosyError, CommandError, error_tree

ResultT = TypeVar("ResultT")


#: The code of errors that are nobody's mistake but ours.
BUG: Final = "bug"


class Failure(NamedTuple):
    """An error as plain values, because exceptions with their own constructors cannot be sent between
    processes."""

    code: str
    text: str
    #: Shown with `--debug`.
    trace: str = ""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """From the error being handled."""
        if isinstance(error, ArgosyError):
            return cls(error.code, str(error), traceback.format_exc())
        return cls(BUG, f"{type(error).__name__}: {error}", traceback.format_exc())


def unwrap(what: object, future: Future[ResultT | Failure]) -> ResultT:
    """The result; or raises the error that `what` ended with."""
    result = result_of(what, future)
    if isinstance(result, Failure):
        raise raised_again(what, result)
    return result


def result_of(what: object, future: Future[ResultT]) -> ResultT:
    try:
        return future.result()
    except BrokenProcessPool:
        raise CommandError(
            f"{what}: the process was killed", hint="use fewer --jobs to need less memory"
        ) from None


def raised_again(what: object, failure: Failure) -> Exception:
    """An error of the same class, so that callers can distinguish it."""
    text = f"{what}: {failure.text}"
    error: Exception
    if failure.code == BUG:
        error = RuntimeError(text)
    else:
        kind = next((kind for kind in error_tree() if kind.code == failure.code), ArgosyError)
        # Each class has its own constructor, but the text is already complete.
        error = kind.__new__(kind)
        ArgosyError.__init__(error, text)
        error.code = failure.code
    if failure.trace:
        error.add_note(f"In the process that ran it:\n{failure.trace}")
    return error


@contextmanager
def worker_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Spawned, not forked: the same on every platform, and no copied locks."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, initializer=_end_with_parent)
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


def _end_with_parent() -> None:
    """A worker whose parent was killed would finish its run for nobody."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait_for_any([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
