"""Which field of an effect does not fit, and how much of it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.engines.faults import failure, find_misfit, malformed, shown
from argosy.model.effects import Commit, Enqueue, Explain, Pace, Probe, Send, Think, WakeMe
from argosy.model.errors import ModelError
from argosy.model.explanations import Explanation
from argosy.model.resources import Resources
from argosy.model.transactions import Claims, Transaction

TWO = np.zeros(2, np.int64)
AT = np.zeros(2, np.int32)
NOWHERE: Any = None


def claims(**columns: Any) -> Commit:
    whole: dict[str, Any] = {
        "tasks": TWO,
        "machines": AT,
        "shapes": AT,
        "versions": np.zeros(2, np.uint32),
    }
    return Commit(1, Transaction("s", Claims(**(whole | columns))))


def odd(kind: Any, *values: Any, **fields: Any) -> Any:
    return kind(*values, **fields)


@pytest.mark.parametrize(
    ("effect", "problem", "expected"),
    [
        (odd(WakeMe, "soon", "x"), "at is 'soon'", "int"),
        (odd(WakeMe, 1.5, "x"), "at is 1.5", "int"),
        (odd(WakeMe, None, "x"), "at is None", "int"),
        (odd(WakeMe, 1, 2), "name is 2", "str"),
        (odd(WakeMe, 1, np.int64(2)), "name is np.int64(2)", "str"),
        (odd(Explain, TWO, None), "explanation is None", "Explanation"),
        (odd(Explain, [1, 2], None), "tasks is a list", "an array of int64"),
        (odd(Explain, None, Explanation()), "tasks is a NoneType", "an array of int64"),
        (odd(Explain, AT, Explanation()), "tasks is an array of int32", "an array of int64"),
        (
            odd(Explain, np.zeros((2, 2), np.int64), Explanation()),
            "tasks has 2 dimensions",
            "one",
        ),
        (odd(Explain, np.zeros((), np.int64), Explanation()), "tasks has 0 dimensions", "one"),
        (odd(Enqueue, TWO, AT, 7), "explanation is 7", "Explanation or None"),
        (odd(Enqueue, TWO, AT, pace=Pace("x")), "pace.first is 'x'", "int"),  # type: ignore[arg-type]
        (odd(Enqueue, TWO, AT[:1]), "2 tasks, 1 machines", "one row a task in each"),
        (odd(Think, 1, 1, 1, lane=3), "lane is 3", "str"),
        (odd(Probe, 0, AT, None), "request is None", "Resources"),
        (
            claims(gangs=np.zeros(2, np.int64)),
            "transaction.claims.gangs is an array of int64",
            "an array of int32",
        ),
        (
            claims(alternatives=AT),
            "transaction.claims.alternatives has 1 dimension",
            "two",
        ),
        (
            claims(alternatives=np.zeros((3, 2), np.int32)),
            "transaction.claims: 2 tasks, 2 machines, 2 shapes, 2 versions, 3 alternatives",
            "one row a task in each",
        ),
        (odd(Commit, 1, 5), "transaction is 5", "Transaction"),
        (
            odd(Commit, 1, Transaction("s", NOWHERE, releases=AT)),
            "transaction.releases is an array of int32",
            "an array of int64",
        ),
        (odd(Commit, 1, Transaction(7)), "transaction.scheduler is 7", "str"),  # type: ignore[arg-type]
    ],
)
def test_the_first_field_that_does_not_fit_is_named(
    effect: Any, problem: str, expected: str
) -> None:
    assert find_misfit(effect) == (problem, expected)
    fault = malformed("s (omega)", effect, ValueError("whatever"))
    assert fault.problem == f"s (omega) returned a malformed {type(effect).__name__}: {problem}"
    assert fault.expected == expected


@pytest.mark.parametrize(
    "effect",
    [
        odd(WakeMe, np.int64(5), "x"),
        odd(WakeMe, np.int32(5), ""),
        odd(Explain, TWO, Explanation()),
        odd(Enqueue, TWO, AT, None),
        odd(Enqueue, TWO, AT, Explanation(), Pace(1)),
        odd(Probe, 0, AT, Resources(1, 1)),
        odd(Send, ("a",), None),
        claims(),
        claims(gangs=AT, alternatives=np.zeros((2, 5), np.int32)),
        claims(tasks=TWO[:0], machines=AT[:0], shapes=AT[:0], versions=np.zeros(0, np.uint32)),
        odd(Commit, 1, Transaction("s")),
    ],
)
def test_what_fits_is_not_named(effect: Any) -> None:
    found = find_misfit(effect)
    assert found is None or isinstance(effect, Send)


def test_arrays_are_named_before_other_fields() -> None:
    both = odd(Enqueue, [1], AT, 7)
    assert find_misfit(both) == ("tasks is a list", "an array of int64")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a" * 58, repr("a" * 58)),
        ("a" * 59, "'" + "a" * 59 + "..."),
        ([1, 2], "[1, 2]"),
        (list(range(100)), repr(list(range(100)))[:60] + "..."),
    ],
)
def test_a_long_value_is_cut(value: object, expected: str) -> None:
    assert shown(value) == expected


@pytest.mark.parametrize(
    ("error", "said", "expected"),
    [
        (ModelError("no room", expected="more", hint="wait"), "no room", "more"),
        (IndexError("list index\nout of range"), "IndexError: list index", None),
        (KeyError(3), "KeyError: 3", None),
        (TypeError("bad\nvery"), "bad", None),
        (OverflowError(""), "", None),
    ],
)
def test_without_a_misfit_the_error_speaks_for_itself(
    error: Exception, said: str, expected: str | None
) -> None:
    fault = malformed("s", WakeMe(1, "x"), error)
    assert fault.problem == f"s returned a malformed WakeMe: {said}"
    assert fault.expected == expected


class Own:
    """An engine of this module."""


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_a_failure_says_who_when_where_and_what() -> None:
    told = str(failure("s (own)", "on Started", raised(ValueError("no")), Own))
    assert told.startswith("s (own) failed on Started, ")
    assert told.endswith(" in raised: ValueError: no")
    assert str(failure("s", "to start", ValueError(), Own)) == "s failed to start: ValueError"
    assert str(failure("s", "to start", ValueError("x"), Own)) == "s failed to start: ValueError: x"
