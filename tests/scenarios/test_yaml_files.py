"""Mistakes in the form of YAML files."""

from __future__ import annotations

import pytest

from argosy.model.errors import ModelError
from argosy.scenarios.yaml_files import parse_yaml


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "a: 1\nb:\n  c: 1\n  c: 2\n",
            "f.yaml:4: key 'c' twice in one mapping; expected some jobs",
        ),
        ("a: 1\n2: 3\n", "f.yaml:2: key '2' is not text; expected quotation marks around it"),
        ("[1]: 3\n", "f.yaml:1: key a collection is not text; expected quotation marks around it"),
        (
            "a: &a\n  - *a\n",
            "f.yaml:1: aliases that lead to themselves, or to too many values; expected some jobs",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_yaml(text, "f.yaml", ModelError, "some jobs")
    assert str(caught.value) == says


def test_documents_come_with_the_lines_of_their_values() -> None:
    documents, places = parse_yaml("a: 1\n---\nb:\n  - 2\n  - 3\n", "f", ModelError, "")
    assert documents == [{"a": 1}, {"b": [2, 3]}]
    assert (places[(0, "a")], places[(1, "b")], places[(1, "b", 1)]) == (1, 3, 5)
