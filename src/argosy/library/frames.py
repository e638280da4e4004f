"""Columns as data frames, if pandas or polars is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from argosy.model.errors import MissingLibrary
from argosy.records.record import Columns

#: The first one installed is used. Argosy depends on none of them.
LIBRARIES: Final = ("pandas", "polars")


def frame(columns: Columns) -> Any:
    """A ``pandas.DataFrame``; without pandas, a ``polars.DataFrame``."""
    for name in LIBRARIES:
        try:
            library = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
        else:
            return library.DataFrame(columns)
    raise MissingLibrary(
        "a data frame needs pandas or polars, and neither is installed",
        hint="pip install pandas, or use the columns, which are NumPy arrays",
    )


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """A column for every key of any row, in order of appearance; NaN if a row has no number."""
    names: Iterable[str] = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> np.ndarray[Any, Any]:
    if None in values:
        is_text = any(isinstance(value, str) for value in values)
        return np.array([("" if is_text else np.nan) if v is None else v for v in values])
    return np.array(values)
