"""Loads scenarios, and changes their seed or engine.

The jobs of a synthetic workload are drawn when its file is read. A loaded scenario therefore remembers
its file, and another seed redraws the jobs, as on the command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from argosy.engines.api import Engine
from argosy.engines.plugins import check
from argosy.engines.registry import ENGINES
from argosy.library.arguments import PathLike, check_path, check_seed, is_path, unusable
from argosy.model.errors import CommandError, ScenarioError
from argosy.model.scenario import Scenario
from argosy.scenarios import loader

#: An engine's name, ``package.module:Class``, or the class itself.
EngineChoice: TypeAlias = str | type[Engine]


class LoadedScenario(Scenario, frozen=True, kw_only=True):
    """A scenario with the file that it was read from."""

    path: str
    #: Whether it was loaded to run engines in their published configurations.
    published: bool = False


def load(path: PathLike, *, seed: int | None = None, published: bool = False) -> Scenario:
    """Read a scenario from a TOML file.

    `seed` replaces the file's own. With `published`, engines run in the form in which they were
    published, as with ``argosy run --as-published``. Every mistake in the file is an `ArgosyError` that
    names the line, the field, what was expected and, where possible, a remedy.
    """
    check_path("scenario", path)
    if seed is not None:
        check_seed(seed)
    scenario = loader.load(Path(path), seed=seed, published=published)
    return LoadedScenario(**_fields(scenario), path=os.path.abspath(path), published=published)


def _fields(scenario: Scenario) -> dict[str, Any]:
    return {name: getattr(scenario, name) for name in Scenario.__struct_fields__}


def resolve(scenario: Scenario | PathLike) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    if not is_path(scenario):
        raise unusable("scenario", scenario, "a path, or a Scenario")
    return load(scenario)


def plain(scenario: Scenario) -> Scenario:
    """The scenario as a plain `Scenario`, as it is run and saved."""
    return Scenario(**_fields(scenario)) if type(scenario) is not Scenario else scenario


def with_seed(scenario: Scenario, seed: int | None) -> Scenario:
    """The scenario for another seed; if it comes from a file, its jobs are drawn again. A scenario built
    in Python keeps its jobs."""
    if seed is None:
        return scenario
    check_seed(seed)
    if seed == scenario.seed:
        return scenario
    if isinstance(scenario, LoadedScenario):
        check_unchanged(scenario, seed)
        return load(scenario.path, seed=seed, published=scenario.published)
    return msgspec.structs.replace(scenario, seed=seed)


def check_unchanged(scenario: LoadedScenario, seed: int) -> None:
    """Raise an error if drawing the jobs again would undo changes made after loading."""
    again = load(scenario.path, seed=scenario.seed, published=scenario.published)
    if again != scenario:
        raise ScenarioError(
            f"it was changed after loading, so its jobs cannot be drawn for seed {seed}",
            file=scenario.path,
            hint="change the file, or load it with that seed and change the scenario again",
        )


def under(
    scenario: Scenario, engine: EngineChoice | None
) -> tuple[Scenario, dict[str, type[Engine]]]:
    """The scenario to execute, and the engines given as classes, by the names it uses for them."""
    name, also = named(engine) if engine is not None else (None, {})
    changed = plain(scenario)
    if name is not None:
        changed = loader.with_engine(changed, name, also)
    elif isinstance(scenario, LoadedScenario) and scenario.published:
        changed = loader.as_published(changed)
    return changed, also


def named(engine: EngineChoice) -> tuple[str, dict[str, type[Engine]]]:
    """An engine's name in a scenario, and the class under this name if one was given.

    A class is named like a reference to it, ``package.module:Class``, so that it is not mistaken for
    another engine with the same `name`, such as the one it derives from, and can be found again if it
    can be imported."""
    if isinstance(engine, str):
        return engine, {}
    if not isinstance(engine, type):
        raise unusable("engine", engine, 'a name, "package.module:Class", or a class')
    checked = check(engine, f"engine {engine.__qualname__}")
    if ENGINES.get(checked.name) is checked:
        return checked.name, {}
    name = f"{checked.__module__}:{checked.__qualname__}"
    return name, {name: checked}


def several(
    engines: Iterable[EngineChoice] | EngineChoice,
) -> tuple[list[str], dict[str, type[Engine]]]:
    """The names of one or more engines, each once, and the classes among them."""
    if isinstance(engines, str | type):
        engines = [engines]
    elif not isinstance(engines, Iterable):
        raise unusable("engines", engines, "names or classes")
    names: list[str] = []
    also: dict[str, type[Engine]] = {}
    for name, given in map(named, engines):
        names.append(name)
        for key, engine in given.items():
            if also.setdefault(key, engine) is not engine:
                raise CommandError(f"two classes called {key}", expected="one name for each")
    if not names:
        raise CommandError("no engines to compare", expected="at least one")
    return list(dict.fromkeys(names)), also
