"""How many items lists of the clients give."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from argosy.client import AsyncClient, Client, flows


def limited_lists(kind: Any) -> list[str]:
    """Methods that can be told how many items are wanted at most."""
    return [
        name
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and "limit" in inspect.signature(method).parameters
    ]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_no_list_has_more_items_than_wanted(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    limits: list[int | None] = []

    def all_pages(page: Any, limit: int | None, patience: Any) -> None:
        limits.append(limit)

    monkeypatch.setattr(flows, "all_pages", all_pages)
    monkeypatch.setattr(kind, "_drive", lambda self, flow: flow)
    names = limited_lists(kind)
    assert names == ["jobs", "open_tasks", "tasks"]
    for name in names:
        given = ("a",) if name == "tasks" else ()
        getattr(kind("http://h:1"), name)(*given, limit=7)
    assert limits == [7, 7, 7]
