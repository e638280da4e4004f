"""The command line called from tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
        timeout=120,
        **settings,
    )
