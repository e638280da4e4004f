"""Where servers listen: the port, and the Unix socket in a cluster's directory, whose path the system
limits to some hundred bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: The port of a server that is told none.
PORT: Final = 7464
SOCKET: Final = "argosy.sock"
#: Linux has room for 108 bytes, with a null at the end.
_LONGEST: Final = 107


@contextmanager
def short_path(path: str) -> Iterator[str]:
    """A path of the same socket that is short enough, as long as the context lasts."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield path
        return
    directory, name = os.path.split(path)
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)
