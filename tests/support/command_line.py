"""The command line called from tests."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

#: Seconds. Far more than any command here takes; reached only if something is broken.
PATIENCE = 120.0
REPOSITORY = Path(__file__).parents[2]
QUICKSTART = REPOSITORY / "scenarios" / "quickstart.toml"


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The error line, which must be the only one."""
        (line,) = self.err.splitlines()
        assert self.out == ""
        assert "Traceback" not in self.err
        return line


Call = Callable[..., Result]


def process(*arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **settings.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "argosy.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=PATIENCE,
        **settings,
    )


def shown_on(terminal: int, text: bytes | None = None) -> bytes:
    """All that is shown on a terminal until `text` is, or until its last user has left."""
    shown, deadline = b"", time.monotonic() + PATIENCE
    while text is None or text not in shown:
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([terminal], [], [], left)
        assert ready, f"waited in vain; shown so far: {shown!r}"
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            # A terminal whose last user has left cannot be read.
            piece = b""
        if not piece:
            break
        shown += piece
    return shown
