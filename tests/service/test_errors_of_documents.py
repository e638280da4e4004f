"""What documents and journals are refused with: the place, the value, and what was expected."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import msgspec
import pytest
from store_tables import Database

from argosy.service.journals import Journals
from argosy.service.problems import NotFound, RequestError
from argosy.service.routes import UnfitDocument, read_document, read_query


class Part(msgspec.Struct, frozen=True):
    size: Annotated[int, msgspec.Meta(ge=1, le=9)]
    label: str = ""


class Whole(msgspec.Struct, frozen=True):
    mode: Literal["fast", "slow"] | None = None
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    amounts: dict[str, int] = {}
    try_: int | None = msgspec.field(default=None, name="try")


def asked(document: Any) -> Any:
    async def read() -> bytes:
        return b"" if document is None else msgspec.json.encode(document)

    return SimpleNamespace(read=read, content_type="application/json")


@pytest.mark.parametrize(
    ("document", "problem", "field", "expected", "hint"),
    [
        ({"mode": "quick"}, "'quick' does not fit", "mode", "one of fast, slow", None),
        ({"mode": 3}, "3 does not fit", "mode", "text", None),
        ({"part": {}}, "missing key 'size'", "part", "size: ...", None),
        ({"parts": [{"size": 1}, {}]}, "missing key 'size'", "parts[1]", "size: ...", None),
        (
            {"parts": [{"size": 1}, {"size": 10}]},
            "10 does not fit",
            "parts[1].size",
            "a whole number of at most 9",
            None,
        ),
        (
            {"part": {"size": 0}},
            "0 does not fit",
            "part.size",
            "a whole number of at least 1",
            None,
        ),
        ({"part": {"size": 1, "label": 2}}, "2 does not fit", "part.label", "text", None),
        (
            {"modes": 1},
            "unknown key 'modes'",
            None,
            "one of mode, part, parts, amounts, try",
            "did you mean 'mode'?",
        ),
        (
            {"try_": 1},
            "unknown key 'try_'",
            None,
            "one of mode, part, parts, amounts, try",
            "did you mean 'try'?",
        ),
    ],
)
def test_a_document_is_refused_with_the_place_and_the_value(
    document: Any, problem: str, field: str | None, expected: str, hint: str | None
) -> None:
    with pytest.raises(UnfitDocument) as caught:
        asyncio.run(read_document(asked(document), Whole))
    error = caught.value
    assert (error.problem, error.field, error.expected, error.hint) == (
        problem,
        field,
        expected,
        hint,
    )


def test_of_a_mapping_the_whole_is_shown_because_nobody_knows_the_key() -> None:
    with pytest.raises(UnfitDocument) as caught:
        asyncio.run(read_document(asked({"amounts": {"a": 1, "b": "many"}}), Whole))
    assert caught.value.problem == "a table does not fit"
    assert str(caught.value.field).startswith("amounts")


@pytest.mark.parametrize("is_optional", [False, True])
def test_only_an_optional_document_may_be_left_out(is_optional: bool) -> None:
    if is_optional:
        assert asyncio.run(read_document(asked(None), Whole, is_optional=True)) == Whole()
    else:
        with pytest.raises(RequestError, match="not JSON"):
            asyncio.run(read_document(asked(None), Whole))
    # What is there and is no table is no document, optional or not.
    for document in ([], 3, "text"):
        with pytest.raises(UnfitDocument) as caught:
            asyncio.run(read_document(asked(document), Whole, is_optional=is_optional))
        assert caught.value.field is None


@pytest.mark.parametrize(
    ("pairs", "problem", "field", "expected", "hint"),
    [
        ([("try", "1"), ("try", "1")], "given twice", "try", "one value", None),
        ([("try", "x")], "'x' does not fit", "try", "a whole number", None),
        ([("mode", "quick")], "'quick' does not fit", "mode", "one of fast, slow", None),
        (
            [("try", "1"), ("moed", "fast")],
            "unknown parameter 'moed'",
            None,
            "one of mode, part, parts, amounts, try",
            "did you mean 'mode'?",
        ),
    ],
)
def test_a_query_is_refused_with_the_parameter(
    pairs: list[tuple[str, str]], problem: str, field: str | None, expected: str, hint: str | None
) -> None:
    request: Any = SimpleNamespace(query=SimpleNamespace(items=lambda: pairs))
    with pytest.raises(RequestError) as caught:
        read_query(request, Whole)
    error = caught.value
    assert (error.problem, error.field, error.expected, error.hint) == (
        problem,
        field,
        expected,
        hint,
    )


def test_texts_of_a_query_are_read_as_what_they_stand_for() -> None:
    pairs = [("try", "7"), ("mode", "slow")]
    request: Any = SimpleNamespace(query=SimpleNamespace(items=lambda: pairs))
    assert read_query(request, Whole) == Whole(mode="slow", try_=7)


@pytest.fixture
def database() -> Iterator[Database]:
    made = Database()
    for life in (1, 2, 3):
        made.rows("INSERT INTO lives VALUES (?, 0, ?)", [life, f"h{life}\n".encode()])
    for turn, life in ((1, 1), (2, 2), (3, 2), (4, 3)):
        made.rows(
            "INSERT INTO turns VALUES (?, ?, 0, ?, ?)", [turn, life, f"t{turn}\n".encode(), b"[]"]
        )
    yield made
    made.close()


def test_journals_of_lives_that_have_gaps_are_not_given_and_later_ones_are(
    database: Database,
) -> None:
    journals = Journals(database)  # type: ignore[arg-type]
    database.rows("INSERT INTO meta VALUES ('forgotten_life', '2')")
    for life in (1, 2):
        with pytest.raises(NotFound) as caught:
            journals.life(life)
        assert caught.value.problem == f"the journal of life {life} is not kept as a whole"
        assert caught.value.field == "life"
    assert list(journals.life(3)) == list(journals.life(None)) == [b"h3\n", b"t4\n"]
    database.rows("UPDATE meta SET value = '3' WHERE key = 'forgotten_life'")
    with pytest.raises(NotFound, match="the journal of life 3 is not kept"):
        journals.life(None)
    with pytest.raises(NotFound) as caught:
        journals.life(4)
    assert (caught.value.problem, caught.value.expected) == ("there is no life 4", "1 to 3")


def test_a_piece_of_a_journal_is_read_when_it_is_asked_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.service.journals._BATCH", 2)
    pieces = Journals(database).life(2)  # type: ignore[arg-type]
    assert [next(pieces), next(pieces)] == [b"h2\n", b"t2\nt3\n"]
    database.rows("INSERT INTO turns VALUES (5, 2, 0, ?, ?)", [b"t5\n", b"[]"])
    assert list(pieces) == [b"t5\n"]
