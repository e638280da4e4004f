"""What the audit finds, in a cell whose counts were changed behind its back."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from golden_log import require_golden

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "core"
COMPILER = os.environ.get("CXX") or shutil.which("c++")


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
def test_every_count_that_is_kept_is_compared_with_a_recount(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program = tmp_path / "miscounts"
    flags = ["-std=c++20", "-O0", "-fno-access-control", f"-I{CORE}"]
    build = [str(COMPILER), *flags, str(HERE / "miscounts.cpp"), "-o", str(program)]
    subprocess.run(build, check=True, timeout=300)
    printed = subprocess.run(
        [program], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    update = request.config.getoption("--update-golden")
    require_golden("miscounts", printed, update=update, folder=HERE)
