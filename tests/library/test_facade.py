"""What `import argosy` and `argosy.engine` promise: the names, their types, and that they are lazy."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

import argosy
import argosy.engine
from argosy.cell import cell, view
from argosy.engines import api
from argosy.model import errors, scenario
from argosy.model.effects import Effect
from argosy.model.errors import ArgosyError, error_tree
from argosy.model.events import Event
from argosy.records import answers

FUNCTIONS = ["compare", "load", "open_run", "replay", "replay_with", "run", "story", "why"]
VALUES = [
    "AsyncClient",
    "Client",
    "Comparison",
    "ReplaySummary",
    "Result",
    "Scenario",
    "StoryLine",
    "Summary",
    "WhyAnswer",
]
#: What belongs to commands alone.
ELSEWHERE = {"OutputError", "AuditFailure", "Misfit"}


def errors_to_catch() -> list[str]:
    return [kind.__name__ for kind in error_tree() if kind.__module__ == errors.__name__]


def test_the_names_are_these() -> None:
    expected = {*FUNCTIONS, *VALUES, *errors_to_catch(), "engine", "__version__"}
    assert set(argosy.__all__) == expected
    assert list(argosy.__all__) == sorted(argosy.__all__)


def test_every_name_can_be_used_and_is_documented() -> None:
    for name in argosy.__all__:
        value = getattr(argosy, name)
        assert name == "__version__" or inspect.getdoc(value), name
    assert argosy.Scenario is scenario.Scenario
    assert argosy.WhyAnswer is answers.WhyAnswer
    assert set(dir(argosy)) == set(argosy.__all__)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(argosy.__file__).read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {name.name for node in ast.walk(block) for name in getattr(node, "names", ())}
    assert seen | {"__version__"} == set(argosy.__all__)


def test_the_error_tree_in_the_documentation_is_the_real_one() -> None:
    text = argosy.__doc__ or ""
    shown = [
        (len(line) - len(line.lstrip()), line.split()[0])
        for line in text.partition("`hint`.\n\n")[2].partition("\n\n")[0].splitlines()
    ]
    parents: dict[int, str] = {}
    for indent, name in shown:
        parents[indent] = name
        kind = getattr(argosy, name)
        if kind is not ArgosyError:
            assert kind.__bases__[0].__name__ == parents[indent - 2], name
    assert sorted(name for _, name in shown) == sorted(errors_to_catch())


def test_error_codes_are_their_own() -> None:
    for module in pkgutil.walk_packages(argosy.__path__, "argosy."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    codes = Counter(kind.code for kind in error_tree())
    assert [code for code, count in codes.items() if count > 1] == []


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        argosy.nothing  # noqa: B018


def test_nothing_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, argosy\n"
        "print(sorted(m for m in sys.modules if m.startswith(('argosy', 'numpy', 'msgspec'))))\n"
        "argosy.ScenarioError\n"
        "print('numpy' in sys.modules)\n"
        "argosy.run\n"
        "print([m for m in ('rich', 'pandas', 'polars') if m in sys.modules])\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == ["['argosy', 'argosy.version']", "False", "[]"]


class TestEngine:
    def test_every_event_and_effect_is_there(self) -> None:
        needed = {kind.__name__ for kind in (*get_args(Event), *get_args(Effect))}
        assert needed <= set(argosy.engine.__all__)

    def test_what_the_contract_mentions_is_there(self) -> None:
        """Everything public that the contract's and the view's annotations name."""
        mentioned = {
            node.id
            for module in (api, view)
            for annotation in annotations(module)
            for node in ast.walk(annotation)
            if isinstance(node, ast.Name) and hasattr(module, node.id)
        }
        # What a world gives to views, and the protocol for published forms, are not for authors.
        inner = {
            "CellSnapshot",
            "DrawnMachines",
            "MachineDraw",
            "CellView",
            "Known",
            "Names",
            "NativeCell",
            "PaperPreset",
            "MachineModel",
        }
        outside = {"Any", "ClassVar", "Literal", "Mapping", "NDArray", "Sequence", "Protocol", "np"}
        assert mentioned - inner - outside <= set(argosy.engine.__all__)

    def test_names_are_sorted_and_real(self) -> None:
        names = argosy.engine.__all__
        assert all(hasattr(argosy.engine, name) for name in names)
        assert len(names) == len(set(names))

    def test_an_engine_gets_no_door_to_the_cell(self) -> None:
        assert cell.Cell not in vars(argosy.engine).values()


def annotations(module: object) -> list[ast.expr]:
    tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            found.append(node.returns)
    return found
