"""What a scenario made from a journal says that the journal does not contain: one of each, and many."""

from __future__ import annotations

from collections import Counter

import pytest

from argosy.records.observed import _Observer

ONE = {
    "unended": "1 task had not ended: its estimate is taken for its running time",
    "joined": "1 machine joined later: engines know of it from the beginning",
    "relabelled": "1 machine was relabelled: here it keeps its labels",
    "cancelled": "1 task was cancelled: here it runs",
    "failed": "1 try of a task failed: here each task runs once",
}
MANY = {
    "unended": "{} tasks had not ended: their estimates are taken for their running times",
    "joined": "{} machines joined later: engines know of them from the beginning",
    "relabelled": "{} times a machine was relabelled: here all keep their labels",
    "cancelled": "{} tasks were cancelled: here they run",
    "failed": "{} tries of tasks failed: here each task runs once",
}


def sentences(**counts: int) -> tuple[str, ...]:
    observer = object.__new__(_Observer)
    observer.left_out = Counter(counts)
    return observer.sentences()


@pytest.mark.parametrize("what", ONE)
def test_each_is_told_in_its_number(what: str) -> None:
    assert sentences(**{what: 1}) == (ONE[what],)
    assert sentences(**{what: 2}) == (MANY[what].format("2"),)
    assert sentences(**{what: 12_345}) == (MANY[what].format("12,345"),)
    assert sentences(**{what: 0}) == ()


def test_all_are_told_in_one_order() -> None:
    assert sentences(**dict.fromkeys(reversed(ONE), 1)) == tuple(ONE.values())
    assert sentences(failed=1, unended=3) == (MANY["unended"].format("3"), ONE["failed"])
    assert sentences() == ()
