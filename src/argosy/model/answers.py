"""Answers about one task, as people and programs get them."""

from __future__ import annotations

from typing import Any

import msgspec

from argosy.model.prices import Measure, Price


class StoryLine(msgspec.Struct, frozen=True):
    at: int
    what: str
    text: str
    detail: dict[str, Any] = {}


class WhyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Why a task is placed where it is, or why it has no machine."""

    task: str
    state: str
    sentence: str
    #: Further sentences: who holds what it lacks, how long it waited and for what.
    details: tuple[str, ...] = ()
    looked_at: int = 0
    feasible: int = 0
    ruled_out: dict[str, int] = {}
    nearest_miss: str = ""
    remedy: str = ""
    violated: tuple[str, ...] = ()
    placed_on: str = ""
    rule: str = ""
    score: int | None = None
    second: str = ""
    second_score: int | None = None
    #: What `score` and `second_score` count.
    measure: Measure = ""
    price: Price | None = None
