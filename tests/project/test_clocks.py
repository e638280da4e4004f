"""No clock below the worlds: neither in Python nor in the native code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import argosy

PACKAGE = Path(argosy.__file__).parent
CORE = Path(__file__).parents[2] / "core"
#: The one folder of the module that may read a clock, and what puts it into the module.
CLOCK = CORE / "clock"
#: A program of its own: it runs real processes, and no part of the module includes it.
SUPERVISOR = CORE / "supervisor"
READS_A_CLOCK = re.compile(
    r"chrono|clock_gettime|gettimeofday|\btime\s*\(|\bclock\s*\(|rdtsc|sleep_for|ctime"
)
USES_ITS_BUDGET = re.compile(r"clock/clock_budget\.hpp|\bClockBudget\b")
PURE = ("model", "cell", "solvers", "engines", "host")


def code_of(path: Path) -> str:
    return re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))


@pytest.mark.skipif(not CORE.is_dir(), reason="an installation without the core's sources")
def test_the_native_code_reads_a_clock_in_one_folder_only() -> None:
    sources = list(CORE.rglob("*.[hc]pp"))
    readers = {path for path in sources if READS_A_CLOCK.search(code_of(path))}
    assert readers, "the test looks for the wrong words"
    assert [path.name for path in readers if not {CLOCK, SUPERVISOR} & {*path.parents}] == []


@pytest.mark.skipif(not CORE.is_dir(), reason="an installation without the core's sources")
def test_the_module_includes_nothing_of_the_supervisor() -> None:
    sources = [path for path in CORE.rglob("*.[hc]pp") if SUPERVISOR not in path.parents]
    assert [path.name for path in sources if "supervisor/" in code_of(path)] == []


@pytest.mark.skipif(not CORE.is_dir(), reason="an installation without the core's sources")
def test_no_native_solver_makes_a_budget_of_time_itself() -> None:
    sources = [path for path in CORE.rglob("*.[hc]pp") if CLOCK not in path.parents]
    assert [path.name for path in sources if USES_ITS_BUDGET.search(code_of(path))] == []


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("package", PURE)
def test_engines_and_what_is_around_them_import_no_clock(package: str) -> None:
    clocks = {"time", "datetime", "timeit", "argosy._core.ClockBudget", "argosy.worlds.clocks"}
    for path in (PACKAGE / package).rglob("*.py"):
        assert not imported(path) & clocks, path


def test_no_engine_reads_how_much_of_a_budget_is_spent() -> None:
    readings = {"argosy._core.spent_share", "argosy._core.seconds_until"}
    sources = {name: list((PACKAGE / name).rglob("*.py")) for name in ("engines", "solvers")}
    readers = {
        name: [path for path in paths if imported(path) & readings]
        for name, paths in sources.items()
    }
    assert readers["solvers"], "the test looks for the wrong names"
    assert readers["engines"] == []
