"""What import-linter cannot check: who imports the native core, and what importing Argosy costs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import argosy

PACKAGE = Path(argosy.__file__).parent
ROOT = Path(__file__).parents[2]
#: The facades of the native core. Everything else goes through them.
FACADES = (
    "model/random.py",
    "model/budgets.py",
    "model/explanations.py",
    "cell/",
    "host/",
    "solvers/",
    "host/",
    "worlds/clocks.py",
    "worlds/sim/",
    "cli/doctor.py",
)


def modules_importing(name: str) -> set[str]:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            if name in names:
                found.add(path.relative_to(PACKAGE).as_posix())
    return found


def test_only_the_facades_import_the_native_core() -> None:
    importers = modules_importing("argosy._core")
    assert importers, "the test looks for the wrong name"
    assert [path for path in importers if not path.startswith(FACADES)] == []


def test_task_numbers_are_taken_apart_in_one_place() -> None:
    """`argosy.model.jobs` and `argosy.model.tasks` do it, and in the core `task_numbers.hpp`."""
    by_hand = re.compile(r">>\s*32\b|&\s*0x" + "F" * 8 + r"\b", re.IGNORECASE)
    sources = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    assert [path.name for path in sources if by_hand.search(path.read_text("utf-8"))] == []
    split = re.compile(r"\bjob_of\(std::int64_t \w+\) {|\btask >> \d")
    headers = [path for path in (ROOT / "core").rglob("*.[hc]pp") if split.search(path.read_text())]
    assert [path.name for path in headers] == ["task_numbers.hpp"]


def test_nobody_inside_goes_through_the_facade() -> None:
    """It is above all layers, and import-linter is configured to ignore its imports."""
    names = ["argosy", *(f"argosy.{name}" for name in argosy.__all__)]
    found = {path: name for name in names for path in modules_importing(name)}
    assert {path: name for path, name in found.items() if path != "__init__.py"} == {}


def test_importing_argosy_loads_nothing_heavy() -> None:
    code = (
        "import sys, argosy, argosy.cli; "
        "print([m for m in ('numpy', 'rich', 'msgspec') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_every_package_states_its_charter() -> None:
    for init in PACKAGE.glob("*/__init__.py"):
        docstring = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        assert "Charter:" in docstring, f"{init.parent.name} has no charter"


def test_every_class_name_means_one_class() -> None:
    homes: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
