"""Engines by name and by class, word for word: what is said of those that cannot be had, and what the
others support."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
from outside import EXAMPLE, Install

from argosy.cell.waits import WaitRules
from argosy.engines import plugins, registry
from argosy.engines.api import (
    Capabilities,
    Finishes,
    PaperPreset,
    Settings,
    supports_constraint,
    supports_some_constraints,
    wait_view_for,
)
from argosy.engines.faults import locate
from argosy.engines.registry import ENGINES, find_engine, find_engines, find_published
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ArgosyError, UnknownForm
from argosy.model.machine_model import MachineModel

ROOMIEST = (EXAMPLE / "roomiest.py").read_text()


def refusal(name: str) -> str:
    with pytest.raises(ArgosyError) as caught:
        find_engine(name)
    return str(caught.value)


class TestReferences:
    @pytest.fixture(autouse=True)
    def _here(self, fresh_modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(fresh_modules)

    def test_a_module_missing_in_a_package_is_named_without_advice_about_directories(self) -> None:
        Path("roomiest").mkdir()
        Path("roomiest", "__init__.py").write_text("")
        assert refusal("roomiest.inner:Roomiest") == (
            "engine roomiest.inner:Roomiest: there is no module 'roomiest.inner'; "
            "expected one that is installed or in the current directory"
        )

    def test_a_module_is_not_missing_because_its_name_begins_like_one_that_is(self) -> None:
        Path("roomiest.py").write_text("import room\n")
        said = refusal("roomiest:Roomiest")
        assert said.startswith("engine roomiest:Roomiest: module roomiest cannot be imported: ")
        assert said.endswith(":1 in <module>: ModuleNotFoundError: No module named 'room'")

    def test_only_classes_are_suggested(self) -> None:
        Path("roomiest.py").write_text("Rooms = 5\n")
        place = Path("roomiest.py").resolve()
        assert refusal("roomiest:Room") == (
            f"engine roomiest:Room: module roomiest ({place}) has no 'Room'"
        )
        assert refusal("sys:Zzzzzzzzzz") == (
            "engine sys:Zzzzzzzzzz: module sys (built into Python) has no 'Zzzzzzzzzz'"
        )

    def test_a_syntax_error_that_a_module_raises_itself_is_told_with_its_line(self) -> None:
        Path("roomiest.py").write_text("x = 1\nraise SyntaxError('odd')\n")
        assert refusal("roomiest:Roomiest") == (
            "engine roomiest:Roomiest: module roomiest cannot be imported: "
            "roomiest.py:2 in <module>: SyntaxError: odd"
        )

    @pytest.mark.parametrize(
        ("before", "after", "says"),
        [
            (
                "settings_type = RoomiestSettings",
                "settings_type = 5",
                "has 5 in 'settings_type'; expected a class derived from argosy.engine.Settings",
            ),
            ('name = "roomiest"', "name = 7", "has a int in 'name'; expected a value of type str"),
            ("    def handle", "    handle = 3\n    def react", "has no method 'handle'"),
        ],
    )
    def test_a_part_of_the_wrong_kind_is_named(self, before: str, after: str, says: str) -> None:
        assert before in ROOMIEST
        Path("roomiest.py").write_text(ROOMIEST.replace(before, after))
        assert refusal("roomiest:Roomiest").startswith(f"engine roomiest:Roomiest {says}")


class TestInstalled:
    def test_two_packages_may_declare_the_same_class(self, install: Install) -> None:
        install(ROOMIEST)
        install(ROOMIEST, package="other")
        assert find_engine("roomiest").name == "roomiest"

    def test_two_packages_with_different_classes_are_told_apart(self, install: Install) -> None:
        entries = [
            EntryPoint("roomy", value, "argosy.engines") for value in ("one:Roomy", "two:Roomy")
        ]
        with pytest.raises(ArgosyError) as caught:
            plugins.load_entry_point("roomy", entries)
        assert str(caught.value) == (
            "engine 'roomy' is declared by several packages: unknown (one:Roomy), "
            "unknown (two:Roomy); expected one of them; "
            "uninstall the others, or name the class: one:Roomy"
        )

    def test_one_without_a_known_package_is_of_an_unknown_one(self, install: Install) -> None:
        install("Roomiest = 5\n", entry_points={"other": "roomiest:Roomiest"})
        entry = EntryPoint("roomiest", "roomiest:Roomiest", "argosy.engines")
        with pytest.raises(ArgosyError) as caught:
            plugins.load_entry_point("roomiest", [entry])
        assert str(caught.value) == (
            "engine 'roomiest' of package unknown: roomiest:Roomiest is not a class; "
            "expected a class that keeps argosy.engine.Engine"
        )

    def test_one_that_calls_itself_otherwise_is_refused(self, install: Install) -> None:
        install(ROOMIEST, entry_points={"widest": "roomiest:Roomiest"})
        assert refusal("widest") == (
            "engine 'widest' of package roomiest: roomiest:Roomiest calls itself 'roomiest'; "
            "expected the same name in the entry point and in the class"
        )


def an_engine(name: str, **fields: Any) -> Any:
    return type(name, (), {"name": name, "capabilities": Capabilities(), **fields})


def preset(*, is_compared: bool = True) -> PaperPreset:
    return PaperPreset({}, MachineModel(), is_compared=is_compared)


class TestNames:
    def test_engines_of_the_caller_go_before_those_built_in(self) -> None:
        own, other = an_engine("omega"), an_engine("own")
        also = {"omega": own, "own": other}
        assert find_engine("omega", also) is own
        assert find_engine("omega") is ENGINES["omega"]
        found = find_engines(["own", "sparrow", "omega"], also)
        assert list(found.items()) == [
            ("own", other),
            ("sparrow", ENGINES["sparrow"]),
            ("omega", own),
        ]
        assert find_engines([]) == {}

    def test_published_forms_of_the_callers_engines_are_found_by_either_name(self) -> None:
        first, second = preset(), preset(is_compared=False)
        also = {
            "own": an_engine("own", published={"small": first, "large": second}),
            "none": an_engine("none", published={}),
        }
        assert find_published("small", also) == ("own", first)
        assert find_published("large", also)[1] is second
        name, found = find_published("own", also)
        assert (name, found is first) == ("own", True)
        for unknown in ("none", "larg"):
            with pytest.raises(UnknownForm):
                find_published(unknown, also)
        with pytest.raises(UnknownForm, match="did you mean 'large'"):
            find_published("larg", {**also, "larg": an_engine("larg")})

    def test_forms_are_listed_in_the_order_of_their_engines(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engines = {
            "b": an_engine("b", published={"b2": preset(), "b1": preset(is_compared=False)}),
            "none": an_engine("none"),
            "a": an_engine("a", published={"a1": preset()}),
        }
        more = {**engines, "c": an_engine("c", published={"c1": preset()})}
        monkeypatch.setattr(registry, "ENGINES", engines)
        monkeypatch.setattr(registry, "all_engines", lambda: more)
        assert registry.built_in_forms() == ["b2", "b1", "a1"]
        assert registry.forms_named() == ["b2", "b1", "a1", "c1"]
        assert registry.forms_compared() == ["b2", "a1", "c1"]


class TestPlaceOfAMistake:
    def caught(self, call: Any) -> Exception:
        try:
            call()
        except Exception as error:
            return error
        raise AssertionError("nothing was raised")

    def test_an_engine_that_is_not_on_the_way_leaves_the_innermost_engine_that_is(self) -> None:
        error = self.caught(lambda: plugins._import("no_such_module_anywhere"))
        elsewhere: Any = type("Elsewhere", (), {"__module__": "elsewhere.engine"})
        assert locate(error, elsewhere).endswith(" in _import")
        assert "plugins.py:" in locate(error, elsewhere)
        assert locate(error, ENGINES["omega"]) == locate(error, elsewhere)
        assert "importlib" in locate(error)

    def test_a_package_is_not_on_the_way_because_its_name_begins_alike(self) -> None:
        error = self.caught(lambda: json.loads("no"))
        innermost = locate(error)
        # A file that is not below the current directory is named in full.
        assert innermost.startswith(f"{json.decoder.__file__}:")
        assert innermost.endswith(" in raw_decode")
        alike: Any = type("Alike", (), {"__module__": __name__[:4]})
        assert locate(error, alike) == innermost
        own: Any = type("Own", (), {"__module__": __name__})
        assert locate(error, own).endswith(" in <lambda>")


class Told:
    """An engine whose waits are computed by a rule of its own."""

    capabilities: ClassVar[Capabilities] = Capabilities(finishes=Finishes.WAITS)
    asked: ClassVar[list[Settings]] = []

    @classmethod
    def wait_rules(cls, settings: Settings) -> WaitRules:
        cls.asked.append(settings)
        return WaitRules(lag=7)


def test_only_engines_that_ask_for_waits_have_a_view_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[WaitRules] = []
    monkeypatch.setattr("argosy.engines.api.new_wait_view", lambda rules: made.append(rules) or 5)
    told: Any = Told
    settings = Settings()
    for finishes in (Finishes.NONE, Finishes.OWN, Finishes.ALL):
        engine = an_engine("x", capabilities=Capabilities(finishes=finishes))
        assert wait_view_for(engine, settings) is None
    assert made == []
    plain = an_engine("plain", capabilities=Capabilities(finishes=Finishes.WAITS))
    assert wait_view_for(plain, settings) == 5
    assert wait_view_for(told, settings) == 5
    assert made == [WaitRules(), WaitRules(lag=7)]
    assert Told.asked == [settings]


def test_an_engine_supports_what_it_says_or_all_constraints_or_none() -> None:
    rule = parse_constraint("a -> {a, 0, 0} in machine")
    other = parse_constraint("b -> {b, 0, 0} in machine")
    picky = an_engine("picky", supports=classmethod(lambda cls, asked: asked is rule))
    assert supports_constraint(picky, rule)
    assert not supports_constraint(picky, other)
    assert supports_some_constraints(picky)
    for has in (True, False):
        engine = an_engine("x", capabilities=Capabilities(constraints=has))
        assert supports_constraint(engine, rule) is has
        assert supports_some_constraints(engine) is has
