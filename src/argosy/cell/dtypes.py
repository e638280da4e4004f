"""Says what is wrong with an array that the core rejected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from argosy.model.errors import ModelError

#: Name, given value, required element type and number of axes.
NativeColumn = tuple[str, Any, type[np.generic], int]


def misfit(columns: Iterable[NativeColumn], otherwise: Exception) -> ModelError:
    """The error for the first column with the wrong type; None is always valid."""
    for name, given, kind, axes in columns:
        if given is None:
            continue
        wanted = np.dtype(kind).name
        expected = f"an array of {wanted}" if axes == 1 else f"a table of {wanted}, row by row"
        if not isinstance(given, np.ndarray):
            return ModelError(f"{name} is a {type(given).__name__}", expected=expected)
        if given.dtype != kind:
            return ModelError(f"{name} holds {given.dtype}", expected=expected)
        if given.ndim != axes:
            return ModelError(f"{name} has {given.ndim} axes", expected=expected)
        if axes > 1 and not given.flags.c_contiguous:
            return ModelError(f"{name} is not laid out row by row", expected=expected)
    return ModelError(str(otherwise).splitlines()[0])
