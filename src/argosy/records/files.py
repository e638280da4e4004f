"""Writes files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
        try:
            part.write(data)
            part.flush()
            os.chmod(part.name, 0o644)
            os.replace(part.name, path)
        except BaseException:
            os.unlink(part.name)
            raise
