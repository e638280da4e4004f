"""What `make` shows while it installs."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def showing_dots(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "tools" / "showing-dots", "Installing", *command],
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_done_is_said_before_it_is_done() -> None:
    done = showing_dots("sh", "-c", "echo done >&2")
    assert done.returncode == 0
    assert done.stderr == "Installing done\n\n"


def test_a_step_that_fails_fails_with_its_own_exit_code_and_words() -> None:
    failed = showing_dots("sh", "-c", "echo no room; exit 3")
    assert (failed.returncode, failed.stdout) == (3, "no room\n")


def test_no_step_of_an_installation_is_silent() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    slow = [line for line in makefile.splitlines() if "$(PIP) install" in line or "-m venv" in line]
    assert len(slow) >= 4
    assert all("tools/showing-dots '" in line for line in slow)
