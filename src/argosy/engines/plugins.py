"""Third-party engines: installed ones by entry point, and any class by ``package.module:Class``.

An engine is imported only when it is used, so a broken plug-in affects no other engine.

A reference is looked up like any Python module; if no such module is installed, in the current
directory. The directory of a scenario file is never searched, so reading a scenario does not run the
code beside it.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from importlib import metadata
from typing import Final

from argosy.engines.api import Capabilities, Engine, Settings
from argosy.engines.faults import locate
from argosy.model.errors import EngineFault, EngineNotFound, did_you_mean, excerpt

ENTRY_POINTS: Final = "argosy.engines"
_NAME: Final = r"[^\W\d]\w*"
_REFERENCE: Final = re.compile(rf"{_NAME}(\.{_NAME})*:{_NAME}")
_FORM: Final = '"package.module:Class"'
_CONTRACT: Final = "a class that keeps argosy.engine.Engine"
#: What an import may end with. A module that calls `sys.exit` must not end the command.
_FAILURES: Final = (Exception, SystemExit)


def entry_points() -> dict[str, list[metadata.EntryPoint]]:
    """The entry points of installed packages by name; several where packages conflict."""
    found: dict[str, list[metadata.EntryPoint]] = {}
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        found.setdefault(entry.name, []).append(entry)
    return found


def load_entry_point(name: str, entries: list[metadata.EntryPoint]) -> type[Engine]:
    """The engine that an installed package declares as `name`."""
    if len({entry.value for entry in entries}) > 1:
        raise EngineFault(
            f"engine {name!r} is declared by several packages: "
            + ", ".join(f"{_package(entry)} ({entry.value})" for entry in entries),
            expected="one of them",
            hint=f"uninstall the others, or name the class: {entries[0].value}",
        )
    entry = entries[0]
    origin = f"engine {name!r} of package {_package(entry)}"
    try:
        engine = entry.load()
    except _FAILURES as error:
        raise EngineNotFound(
            f"{origin}: {entry.value} cannot be imported: {_told(error)}",
            hint=f"repair or uninstall {_package(entry)}",
        ) from error
    checked = check(engine, f"{origin}: {entry.value}")
    if checked.name != name:
        raise EngineFault(
            f"{origin}: {entry.value} calls itself {checked.name!r}",
            expected="the same name in the entry point and in the class",
        )
    return checked


def _package(entry: metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def is_reference(name: str) -> bool:
    """Whether `name` is a reference to a class rather than the name of an engine."""
    return ":" in name


def load_reference(reference: str) -> type[Engine]:
    """The class that ``package.module:Class`` refers to."""
    if _REFERENCE.fullmatch(reference) is None:
        raise EngineNotFound(f"engine {excerpt(reference)}", expected=f"a name, or {_FORM}")
    module_name, _, class_name = reference.partition(":")
    try:
        module = _import(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _not_importable(reference, module_name, error) from error
        raise EngineNotFound(
            f"engine {reference}: there is no module {error.name!r}",
            expected="one that is installed or in the current directory",
            hint=None
            if "." in error.name
            else f"run from the directory that {error.name} is in, or put it on PYTHONPATH",
        ) from None
    except _FAILURES as error:
        raise _not_importable(reference, module_name, error) from error
    try:
        engine = getattr(module, class_name)
    except AttributeError:
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        place = getattr(module, "__file__", None) or "built into Python"
        raise EngineNotFound(
            f"engine {reference}: module {module_name} ({place}) has no {class_name!r}",
            hint=did_you_mean(class_name, classes),
        ) from None
    return check(engine, f"engine {reference}")


def _not_importable(reference: str, module: str, error: BaseException) -> EngineNotFound:
    return EngineNotFound(f"engine {reference}: module {module} cannot be imported: {_told(error)}")


def _told(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.basename(error.filename)}:{error.lineno}: {error.msg}"
    return f"{locate(error)}: {type(error).__name__}: {error}"


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        here = os.getcwd()
        if error.name != name.partition(".")[0] or here in sys.path:
            raise
        # Last, so that it hides no installed module; permanently, because the module may import its
        # neighbours later.
        sys.path.append(here)
        importlib.invalidate_caches()
        return importlib.import_module(name)


def check(engine: object, origin: str) -> type[Engine]:
    """Rejects a class that does not have the form of an engine, before a run depends on it."""
    if not isinstance(engine, type):
        raise EngineFault(f"{origin} is not a class", expected=_CONTRACT)
    for attribute, kind in (("name", str), ("summary", str), ("capabilities", Capabilities)):
        held = getattr(engine, attribute, None)
        if held is None:
            raise EngineFault(f"{origin} has no {attribute!r}", expected=_CONTRACT)
        if not isinstance(held, kind):
            raise EngineFault(
                f"{origin} has a {type(held).__name__} in {attribute!r}",
                expected=f"a value of type {kind.__name__}",
            )
    settings = getattr(engine, "settings_type", None)
    if settings is None:
        raise EngineFault(f"{origin} has no 'settings_type'", expected=_CONTRACT)
    if not (isinstance(settings, type) and issubclass(settings, Settings)):
        raise EngineFault(
            f"{origin} has {getattr(settings, '__name__', repr(settings))} in 'settings_type'",
            expected="a class derived from argosy.engine.Settings",
        )
    if not callable(getattr(engine, "handle", None)):
        raise EngineFault(f"{origin} has no method 'handle'", expected=_CONTRACT)
    return engine
