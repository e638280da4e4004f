"""Diagnoses an engine's mistakes for its author: which line failed, which field is malformed.

Worlds call this only after something has gone wrong.
"""

from __future__ import annotations

import functools
import os
import traceback
import types
import typing
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from argosy.model.effects import Effect, Enqueue
from argosy.model.errors import LONGEST_ECHO, ArgosyError, EngineFault, ModelError
from argosy.model.transactions import Claims

#: Structs whose arrays have one row per task.
_PARALLEL: Final = (Claims, Enqueue)
#: Two-dimensional arrays, with one row per task.
_TABLES: Final = ((Claims, "alternatives"),)
#: What carrying out an effect raises if the effect makes no sense.
EFFECT_ERRORS: Final = (
    AttributeError,
    LookupError,
    ModelError,
    OverflowError,
    TypeError,
    ValueError,
)
_OWN: Final = "argosy"
_ENGINES: Final = "argosy.engines"


class FieldMisfit(NamedTuple):
    """A field with a value of the wrong type."""

    problem: str
    expected: str


def locate(error: BaseException, engine: type | None = None) -> str:
    """``file.py:123 in function``: the innermost line of the engine's own package that led to the
    error, because the libraries it calls are rarely to blame. Without such a line, or without an
    engine, the innermost line of all. Empty for an error that was never raised."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return ""
    package = "" if engine is None else engine.__module__.partition(".")[0]
    packages = {"": (), _OWN: (_ENGINES,)}.get(package, (package, _ENGINES))
    for package in packages:
        for frame, line in reversed(frames):
            module = frame.f_globals.get("__name__", "")
            if module == package or module.startswith(f"{package}."):
                return _place(frame, line)
    return _place(*frames[-1])


def _place(frame: types.FrameType, line: int) -> str:
    file = frame.f_code.co_filename
    shown = os.path.relpath(file) if os.path.isabs(file) else file
    if shown.startswith(os.pardir):
        shown = file
    return f"{shown}:{line} in {frame.f_code.co_name}"


def failure(who: str, doing: str, error: Exception, engine: type) -> EngineFault:
    """The fault of an engine that raised `error`; `doing` says when."""
    where = locate(error, engine)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return EngineFault(f"{who} failed {doing}{f', {where}' if where else ''}: {what}")


def malformed(who: str, effect: Effect, error: Exception) -> EngineFault:
    """The fault of an engine that returned an effect which cannot be carried out."""
    misfit, expected = find_misfit(effect), None
    if misfit is not None:
        problem, expected = misfit
    elif isinstance(error, ArgosyError):
        problem, expected = error.problem, error.expected
    else:
        said = str(error).partition("\n")[0]
        problem = f"{type(error).__name__}: {said}" if isinstance(error, LookupError) else said
    return EngineFault(
        f"{who} returned a malformed {type(effect).__name__}: {problem}", expected=expected
    )


def find_misfit(value: msgspec.Struct, path: str = "") -> FieldMisfit | None:
    """The first field of the wrong type, nested fields included. Arrays come first: they are most often
    wrong."""
    hints = _hints(type(value))
    for is_array in (True, False):
        for name, hint in hints.items():
            held, place = getattr(value, name), f"{path}.{name}" if path else name
            axes = 2 if (type(value), name) in _TABLES else 1
            found = (
                _array_misfit(held, hint, place, axes) if is_array else _misfit(held, hint, place)
            )
            if found is not None:
                return found
    if isinstance(value, _PARALLEL):
        return _uneven(value, path)
    return None


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _options(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    return typing.get_args(hint) if is_union else (hint,)


def _array_misfit(held: Any, hint: Any, place: str, axes: int) -> FieldMisfit | None:
    options = _options(hint)
    arrays = [option for option in options if typing.get_origin(option) is np.ndarray]
    if not arrays or (held is None and types.NoneType in options):
        return None
    scalar = typing.get_args(typing.get_args(arrays[0])[1])[0]
    expected = f"an array of {np.dtype(scalar).name}"
    if not isinstance(held, np.ndarray):
        return FieldMisfit(f"{place} is a {type(held).__name__}", expected)
    if held.dtype != scalar:
        return FieldMisfit(f"{place} is an array of {held.dtype.name}", expected)
    if held.ndim != axes:
        plural = "" if held.ndim == 1 else "s"
        return FieldMisfit(
            f"{place} has {held.ndim} dimension{plural}", "one" if axes == 1 else "two"
        )
    return None


def _misfit(held: Any, hint: Any, place: str) -> FieldMisfit | None:
    options = tuple(option for option in _options(hint) if isinstance(option, type))
    if options and len(options) == len(_options(hint)):
        # NumPy integers are accepted wherever Python integers are.
        allowed = (*options, np.integer) if int in options else options
        if not isinstance(held, allowed):
            names = " or ".join(option.__name__ for option in options)
            return FieldMisfit(f"{place} is {shown(held)}", names.replace("NoneType", "None"))
    return find_misfit(held, place) if isinstance(held, msgspec.Struct) else None


def shown(value: object) -> str:
    """The value for a message: not too much of it."""
    text = repr(value)
    return f"{text[:LONGEST_ECHO]}..." if len(text) > LONGEST_ECHO else text


def _uneven(value: msgspec.Struct, path: str) -> FieldMisfit | None:
    arrays = {name: getattr(value, name) for name in value.__struct_fields__}
    lengths = {n: len(held) for n, held in arrays.items() if isinstance(held, np.ndarray)}
    if len(set(lengths.values())) <= 1:
        return None
    told = ", ".join(f"{length} {name}" for name, length in lengths.items())
    return FieldMisfit(f"{path}: {told}" if path else told, "one row a task in each")
