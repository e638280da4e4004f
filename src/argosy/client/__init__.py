"""The client of a live cluster's API, synchronous and asynchronous.

Charter: requests are made and responses read in one place (`calls`, `streams`, `retrying`), which does
no input or output; `Client` and `AsyncClient` only send and wait. `Client` needs the standard library
alone, so that commands start quickly; `AsyncClient` needs the extra `serve`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy.client.asynchronous import AsyncClient
    from argosy.client.synchronous import Client

__all__ = ["AsyncClient", "Client"]

_HOMES = {"AsyncClient": "asynchronous", "Client": "synchronous"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"argosy.client.{_HOMES[name]}"), name)
