"""Any value as text that is the same in every process: all fields, in a fixed order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec
import numpy as np

from argosy.model.errors import ArgosyError

_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
#: Of larger arrays and lists, all entries are told too: only digests are kept.
_PLAIN: Final = (bool, int, float, str, bytes, type(None))


def told(value: Any) -> str:
    """The value with everything in it. Sets and keys are sorted, errors told with all that they say."""
    match value:
        case float():
            return repr(_rounded(value))
        case np.ndarray() if value.dtype.kind == "f":
            return f"float{list(value.shape)}{told(value.tolist())}"
        case np.ndarray():
            return f"{value.dtype}{list(value.shape)}{value.tolist()}"
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case np.generic():
            return f"{value.dtype}:{told(value.item())}"
        case ArgosyError():
            return told_error(value)
        case BaseException():
            return f"{type(value).__name__}: {_ADDRESS.sub('', str(value))}"
        case msgspec.Struct():
            fields = ", ".join(f"{n}={told(getattr(value, n))}" for n in value.__struct_fields__)
            return f"{type(value).__name__}({fields})"
        case Mapping():
            # Some are made of sets.
            pairs = sorted(f"{told(key)}: {told(each)}" for key, each in value.items())
            return "{" + ", ".join(pairs) + "}"
        case set() | frozenset():
            return "{" + ", ".join(sorted(map(told, value))) + "}"
        case list() | tuple():
            inside = ", ".join(map(told, value))
            return f"[{inside}]" if isinstance(value, list) else f"({inside})"
        case _ if isinstance(value, _PLAIN):
            return repr(value)
    if hasattr(value, "_asdict"):
        return f"{type(value).__name__}{told(value._asdict())}"
    if hasattr(value, "__next__"):
        return told(list(value))
    if hasattr(value, "__dict__") and not callable(value):
        return f"{type(value).__name__}{told(vars(value))}"
    return _ADDRESS.sub("", repr(value))


def _rounded(value: float) -> float:
    """Without what depends on the order in which a processor adds."""
    return value if value != value or abs(value) == float("inf") else round(value, 9) + 0.0


def told_error(error: ArgosyError) -> str:
    """Everything that a user is told, and what programs read."""
    return f"{type(error).__name__}: {told(vars(error)) if vars(error) else ''} {error}"


def outcome(call: Callable[..., Any], *args: Any, **options: Any) -> str:
    """What the call gives, or how it fails. A mistake in Argosy is an outcome as well."""
    try:
        return told(call(*args, **options))
    except Exception as error:
        return told(error)
