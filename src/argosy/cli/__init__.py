"""The command line: one module per command, imported when that command is called.

Charter: read arguments, call the layers below, print. Results go to stdout, everything else to
stderr; a mistake of the user is one line and exit code 2, never a traceback. What a command needs
is imported inside it, so that `argosy --help` starts without NumPy, rich or msgspec.

Exit codes: 0 done, 1 a problem found by `doctor` or a bug, 2 a mistake in the input, 130
interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point `argosy`; `arguments` default to those of the process."""
    from argosy.cli.app import run

    raise SystemExit(run(arguments))
