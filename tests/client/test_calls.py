"""Requests as values, before anybody sends them."""

from __future__ import annotations

import json

import pytest

from argosy.client import calls


@pytest.mark.parametrize(
    ("tasks", "asked"), [(None, {}), ((), {"tasks": []}), ([2, 0], {"tasks": [2, 0]})]
)
def test_cancelling_no_task_is_not_cancelling_all(
    tasks: list[int] | None, asked: dict[str, list[int]]
) -> None:
    assert json.loads(calls.cancel("a", tasks).body or b"") == asked
