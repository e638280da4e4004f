"""What import-linter cannot check: who imports the native core, and what importing Argosy costs."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import argosy

PACKAGE = Path(argosy.__file__).parent
ROOT = Path(__file__).parents[2]
#: The facades of the native core. Everything else goes through them.
FACADES = (
    "model/random.py",
    "model/budgets.py",
    "model/explanations.py",
    "model/tasks.py",
    "cell/",
    "host/",
    "solvers/",
    "worlds/clocks.py",
    "worlds/sim/",
    "cli/doctor.py",
)


@cache
def importers() -> dict[str, set[str]]:
    """The modules that import each name."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                found.setdefault(name, set()).add(path.relative_to(PACKAGE).as_posix())
    return found


def test_only_the_facades_import_the_native_core() -> None:
    paths = importers().get("argosy._core")
    assert paths, "the test looks for the wrong name"
    assert [path for path in paths if not path.startswith(FACADES)] == []


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
    found = {path: name for name in names for path in importers().get(name, ())}
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


#: Classes of the native core whose facade in Python has the same name.
WRAPPED = {"Cell"}


def test_every_type_name_means_one_type() -> None:
    """Classes, type aliases and classes of the native core; a type variable has none of their names."""
    homes: dict[str, set[str]] = {}
    variables: dict[str, str] = {}
    for path in (*PACKAGE.rglob("*.py"), *(PACKAGE / "_core").glob("*.pyi")):
        place = path.relative_to(PACKAGE).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name, origin in named_types(node):
                homes.setdefault(name, set()).add(origin or place)
            if (variable := type_variable(node)) is not None:
                variables[variable] = place
    assert len(homes) > 500, "the test looks in the wrong place"
    assert {"Event", "Why", "TaskArray", "Numbers"} <= set(homes), "some kind of type is not seen"
    several = {name: where for name, where in homes.items() if len(where) > 1}
    assert {name: where for name, where in several.items() if name not in WRAPPED} == {}
    assert {name: place for name, place in variables.items() if name in homes} == {}


def named_types(node: ast.stmt) -> list[tuple[str, str]]:
    """The types that a statement of a module names: a class, an alias, or an import under a new name,
    which has an origin."""
    match node:
        case ast.ClassDef(name=name):
            return [(name, "")]
        case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
            return [(name, "")]
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_type(name, value):
            return [(name, "")]
        case ast.ImportFrom(names=names, module=module):
            return [
                (str(each.asname), f"{module}.{each.name}")
                for each in names
                if each.asname not in (None, each.name) and is_capitalised(each.asname or "")
            ]
    return []


def is_type(name: str, value: ast.expr) -> bool:
    """Whether an assignment without annotation defines an alias."""
    is_variable = isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar"
    return is_capitalised(name) and not is_variable


def is_capitalised(name: str) -> bool:
    return name.lstrip("_")[:1].isupper() and not name.isupper()


def type_variable(node: ast.stmt) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="TypeVar"))):
            return name
    return None
