"""`argosy kubernetes` as a process of a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argosy.kubernetes.control_plane import ControlPlane

#: Seconds within which it has to end when it is told to.
PATIENCE = 30.0


@contextmanager
def scheduling(plane: ControlPlane, log: Path, *options: str) -> Iterator[None]:
    """Schedules pods until the block ends. What it says goes to `log`."""
    command = [sys.executable, "-m", "argosy.cli", "kubernetes"]
    command += ["--kubeconfig", str(plane.kubeconfig), "--output", "json", *options]
    with log.open("w") as lines:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=lines, text=True)
        assert process.stdout is not None
        try:
            # It says so when it is ready.
            assert process.stdout.readline(), log.read_text()
            yield
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
