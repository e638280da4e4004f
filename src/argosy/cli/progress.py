"""A progress bar on stderr: only for a terminal, and only for what takes more than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_SECONDS: Final = 1.0


@contextmanager
def progress(title: str) -> Iterator[Callable[[float], None]]:
    """Yields a function that takes the share done, from 0 to 1. The bar disappears at the end."""
    if not sys.stderr.isatty():
        yield lambda share: None
        return
    begun = time.monotonic()
    shown: Progress | None = None

    def tell(share: float) -> None:
        nonlocal shown
        if shown is None and time.monotonic() - begun > PATIENCE_SECONDS:
            shown = _bar()
            shown.add_task(title, total=1.0)
            shown.start()
        if shown is not None:
            shown.update(shown.task_ids[0], completed=share)

    try:
        yield tell
    finally:
        if shown is not None:
            shown.stop()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
