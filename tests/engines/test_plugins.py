"""Third-party engines: found when asked for, refused by name, and harmless to others when broken."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from outside import EXAMPLE, Install

from argosy import cli
from argosy.engines import registry
from argosy.engines.registry import ENGINES, find_engine, find_published, survey
from argosy.model.errors import (
    ArgosyError,
    EngineFault,
    EngineNotFound,
    UnknownEngine,
    UnknownForm,
)
from argosy.scenarios.loader import load
from argosy.testing.conformance import one_scheduler_alone_works

SCENARIO = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"
ROOMIEST = (EXAMPLE / "roomiest.py").read_text()
BROKEN = "import no_such_module\n"
EXITING = "import sys\nsys.exit(3)\n"


def refusal(name: str) -> str:
    with pytest.raises(ArgosyError) as caught:
        find_engine(name)
    return str(caught.value)


class TestByEntryPoint:
    def test_one_that_cannot_be_imported_is_named_when_it_is_asked_for(
        self, install: Install
    ) -> None:
        install(BROKEN)
        with pytest.raises(EngineNotFound) as caught:
            find_engine("roomiest")
        assert str(caught.value) == (
            "engine 'roomiest' of package roomiest: roomiest:Roomiest cannot be imported: "
            f"{Path(sys.path[0], 'roomiest.py')}:1 in <module>: ModuleNotFoundError: "
            "No module named 'no_such_module'; repair or uninstall roomiest"
        )

    def test_one_that_is_broken_hinders_no_other(self, install: Install) -> None:
        install(BROKEN)
        assert find_engine("omega") is ENGINES["omega"]
        assert load(SCENARIO).fleet[0].engine == "omega"
        engines, broken = survey()
        assert engines == ENGINES
        assert list(broken) == ["roomiest"]

    def test_one_that_is_not_asked_for_is_not_imported(self, install: Install) -> None:
        install(ROOMIEST)
        load(SCENARIO)
        with pytest.raises(UnknownEngine, match="roomiest"):
            find_engine("romiest")
        assert "roomiest" not in sys.modules

    def test_one_that_exits_when_imported_is_broken_like_any_other(self, install: Install) -> None:
        install(EXITING)
        assert "roomiest.py:2 in <module>: SystemExit: 3" in refusal("roomiest")
        assert "cannot be imported" in refusal("roomiest:Roomiest")
        assert list(survey()[1]) == ["roomiest"]

    def test_a_published_form_of_a_built_in_engine_imports_no_plug_in(
        self, install: Install
    ) -> None:
        install(ROOMIEST)
        assert find_published("eagle-cloudera")[0] == "eagle"
        assert find_published("sparrow")[0] == "sparrow"
        with pytest.raises(UnknownForm, match="unknown published form 'spread'"):
            find_published("spread")
        assert "roomiest" not in sys.modules

    def test_a_published_form_of_an_installed_engine_is_found(self, install: Install) -> None:
        form = "published = {'wide': engine_api.PaperPreset({}, engine_api.MachineModel(), 1)}"
        install(
            ROOMIEST.replace('    name = "roomiest"', f'    name = "roomiest"\n    {form}').replace(
                "from argosy import engine",
                "from argosy import engine\nfrom argosy.engines import api as engine_api",
            )
        )
        for name in ("wide", "roomiest"):
            assert find_published(name)[0] == "roomiest"
        assert find_published("roomiest:Roomiest")[0] == "roomiest:Roomiest"
        with pytest.raises(UnknownForm, match="did you mean 'wide'"):
            find_published("wido")

    def test_a_built_in_engine_goes_first(self, install: Install) -> None:
        install(
            ROOMIEST.replace('name = "roomiest"', 'name = "omega"'),
            entry_points={"omega": "roomiest:Roomiest"},
        )
        assert find_engine("omega") is ENGINES["omega"]
        assert "roomiest:Roomiest is installed as 'omega', the name of a built-in engine" in str(
            survey()[1]["omega"]
        )

    def test_the_entry_point_and_the_class_have_the_same_name(self, install: Install) -> None:
        install(ROOMIEST, entry_points={"widest": "roomiest:Roomiest"})
        assert "roomiest:Roomiest calls itself 'roomiest'" in refusal("widest")

    def test_two_packages_with_one_name_are_both_named(self, install: Install) -> None:
        install(ROOMIEST)
        install(ROOMIEST, package="other", entry_points={"roomiest": "roomiest:Other"})
        assert "is declared by several packages" in refusal("roomiest")
        assert "other (roomiest:Other)" in refusal("roomiest")
        assert find_engine("roomiest:Roomiest").name == "roomiest"


class TestByModule:
    @pytest.fixture(autouse=True)
    def _here(self, fresh_modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(fresh_modules)

    def test_a_class_in_the_current_directory_is_found(self) -> None:
        Path("roomiest.py").write_text(ROOMIEST)
        found = find_engine("roomiest:Roomiest")
        assert found.__module__ == "roomiest"
        one_scheduler_alone_works(found)

    def test_a_class_in_a_package_is_found(self) -> None:
        Path("roomiest").mkdir()
        Path("roomiest", "inner.py").write_text(ROOMIEST)
        assert find_engine("roomiest.inner:Roomiest").name == "roomiest"

    def test_what_is_installed_goes_before_the_current_directory(self) -> None:
        Path("queue.py").write_text(ROOMIEST)
        assert "queue.py) has no 'Roomiest'" in refusal("queue:Roomiest")

    def test_code_beside_a_scenario_is_not_run(self) -> None:
        aside = Path("aside")
        aside.mkdir()
        (aside / "roomiest.py").write_text("raise AssertionError('imported')")
        text = SCENARIO.read_text().replace('engine = "omega"', 'engine = "roomiest:Roomiest"')
        (aside / "scenario.toml").write_text(text)
        with pytest.raises(EngineNotFound) as caught:
            load(aside / "scenario.toml")
        line = text.splitlines().index('engine = "roomiest:Roomiest"') + 1
        assert str(caught.value) == (
            f"aside/scenario.toml:{line}: fleet[0].engine: engine roomiest:Roomiest: there is no "
            "module 'roomiest'; expected one that is installed or in the current directory; run "
            "from the directory that roomiest is in, or put it on PYTHONPATH"
        )

    def test_a_class_that_is_not_there_gets_a_suggestion(self) -> None:
        Path("roomiest.py").write_text(ROOMIEST)
        assert refusal("roomiest:Romiest").endswith("has no 'Romiest'; did you mean 'Roomiest'?")

    def test_a_module_that_fails_is_quoted_with_its_line(self) -> None:
        Path("roomiest.py").write_text("x = 1\nx.nothing\n")
        assert "roomiest.py:2 in <module>: AttributeError: 'int' object" in refusal("roomiest:R")
        Path("unfinished.py").write_text("def f(:\n")
        assert "cannot be imported: unfinished.py:1: invalid syntax" in refusal("unfinished:F")

    def test_a_module_that_lacks_another_is_not_said_to_be_missing(self) -> None:
        Path("roomiest.py").write_text(BROKEN)
        assert "No module named 'no_such_module'" in refusal("roomiest:Roomiest")

    @pytest.mark.parametrize("name", ["a:b:c", ":", "a:", ":A", "a b:C", "a/b.py:C", "..a:C"])
    def test_other_forms_are_refused(self, name: str) -> None:
        assert refusal(name) == f'engine {name!r}; expected a name, or "package.module:Class"'

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("Roomiest = 5", "is not a class"),
            ("class Roomiest: pass", "has no 'name'"),
            (ROOMIEST.replace("    summary =", "    about ="), "has no 'summary'"),
            (ROOMIEST.replace("    settings_type =", "    x ="), "has no 'settings_type'"),
            (
                ROOMIEST.replace("settings_type = RoomiestSettings", "settings_type = dict"),
                "has dict in 'settings_type'; expected a class derived from argosy.engine.Settings",
            ),
            (ROOMIEST.replace("    capabilities =", "    can ="), "has no 'capabilities'"),
            (
                ROOMIEST.replace("engine.Capabilities(transactions=True)", "['transactions']"),
                "has a list in 'capabilities'; expected a value of type Capabilities",
            ),
            (ROOMIEST.replace("def handle", "def react"), "has no method 'handle'"),
        ],
    )
    def test_the_error_for_a_class_that_is_not_an_engine_names_what_is_missing(
        self, text: str, says: str
    ) -> None:
        Path("roomiest.py").write_text(text)
        with pytest.raises(EngineFault) as caught:
            find_engine("roomiest:Roomiest")
        assert str(caught.value).startswith(f"engine roomiest:Roomiest {says}")


class TestOnTheCommandLine:
    @pytest.fixture(autouse=True)
    def _here(self, fresh_modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(fresh_modules)

    def call(self, *arguments: str | Path) -> int:
        with pytest.raises(SystemExit) as stop:
            cli.main([str(argument) for argument in arguments])
        assert isinstance(stop.value.code, int)
        return stop.value.code

    def test_engines_lists_a_broken_one_as_broken(
        self, install: Install, capsys: pytest.CaptureFixture[str]
    ) -> None:
        install(BROKEN)
        assert self.call("engines") == 0
        assert "broken: engine 'roomiest' of package roomiest" in capsys.readouterr().out
        assert self.call("engines", "-o", "json") == 0
        listed = {each["name"]: each["broken"] for each in json.loads(capsys.readouterr().out)}
        assert list(listed) == [*registry.ENGINES, "roomiest"]
        assert {name for name, broken in listed.items() if broken} == {"roomiest"}

    def test_one_that_is_asked_for_and_broken_is_one_line(
        self, install: Install, capsys: pytest.CaptureFixture[str]
    ) -> None:
        install(BROKEN)
        assert self.call("run", SCENARIO, "--engine", "roomiest", "--no-save") == 2
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("argosy: error[engine-not-found]: engine 'roomiest'")

    def test_one_that_exits_when_imported_ends_no_command(
        self, install: Install, capsys: pytest.CaptureFixture[str]
    ) -> None:
        install(EXITING)
        assert self.call("engines") == 0
        assert "broken: engine 'roomiest' of package roomiest" in capsys.readouterr().out
        assert self.call("run", SCENARIO, "--engine", "roomiest", "--no-save") == 2
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("argosy: error[engine-not-found]: engine 'roomiest'")

    def test_one_with_a_taken_name_is_listed_by_its_class(
        self, install: Install, capsys: pytest.CaptureFixture[str]
    ) -> None:
        install(ROOMIEST, entry_points={"omega": "roomiest:Roomiest"})
        assert self.call("engines", "-o", "json") == 0
        listed = json.loads(capsys.readouterr().out)
        assert [each["name"] for each in listed] == [*registry.ENGINES, "roomiest:Roomiest"]
        assert listed[-1]["broken"].startswith("roomiest:Roomiest is installed as 'omega'")
        assert self.call("engines") == 0
        shown = capsys.readouterr().out.splitlines()
        assert len([line for line in shown if line.startswith("omega ")]) == 1

    def test_doctor_reports_a_broken_one(
        self, install: Install, capsys: pytest.CaptureFixture[str]
    ) -> None:
        install(BROKEN)
        assert self.call("doctor") == 1
        assert "until then this engine cannot be used" in capsys.readouterr().out

    def test_a_class_takes_part_in_a_comparison_over_processes(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("roomiest.py").write_text(ROOMIEST)
        chosen = ("--engine", "roomiest:Roomiest", "--engine", "omega", "--seeds", "1")
        assert self.call("compare", SCENARIO, *chosen, "--jobs", "2", "-o", "json") == 0
        document = json.loads(capsys.readouterr().out)
        assert {run["engine"] for run in document["runs"]} == {"roomiest:Roomiest", "omega"}


def test_an_unknown_engine_gets_a_suggestion() -> None:
    with pytest.raises(UnknownEngine, match="did you mean 'omega'"):
        find_engine("omgea")
