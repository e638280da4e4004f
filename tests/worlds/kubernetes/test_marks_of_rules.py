"""Marks of static rules: their names, the nodes that get them, and when they are forgotten."""

from __future__ import annotations

from typing import Any

from small_pod_cluster import node

from argosy.worlds.kubernetes import rulebook as rulebooks
from argosy.worlds.kubernetes.rulebook import Rulebook


class Rules:
    """Admit some nodes; others may say the same of themselves and mean something else."""

    def __init__(self, key: str, text: str, *admitted: str) -> None:
        self._key, self._text, self._admitted = key.encode(), text, admitted

    def key(self) -> bytes:
        return self._key

    def describe(self) -> str:
        return self._text

    def admits(self, node: Any) -> bool:
        return node.name in self._admitted


def book() -> tuple[Rulebook, list[tuple[str, str, list[str], bool]]]:
    marked: list[tuple[str, str, list[str], bool]] = []
    made = Rulebook(
        lambda name, group, nodes, given: marked.append((name, group, list(nodes), given))
    )
    made.nodes = {f"n{at}": node(at) for at in range(3)}
    return made, marked


def test_rules_with_the_same_words_have_marks_of_their_own() -> None:
    made, marked = book()
    chosen: list[Any] = [
        Rules("a", "disk=ssd", "n0"),
        Rules("b", "disk=ssd", "n1", "n2"),
        Rules("c", "disk=ssd", "n2"),
        Rules("d", "zone=z", "n0"),
    ]
    names = [made._static(rules).name for rules in chosen]
    assert names == [
        "node rules: disk=ssd",
        "node rules: disk=ssd (2)",
        "node rules: disk=ssd (3)",
        "node rules: zone=z",
    ]
    assert marked == [
        ("node rules: disk=ssd", "machine", ["n0"], True),
        ("node rules: disk=ssd (2)", "machine", ["n1", "n2"], True),
        ("node rules: disk=ssd (3)", "machine", ["n2"], True),
        ("node rules: zone=z", "machine", ["n0"], True),
    ]
    # Each is known by its key from now on.
    marked.clear()
    assert [made._static(rules).name for rules in chosen] == names
    assert marked == []
    assert made.is_unused


def test_rules_that_admit_no_node_are_known_and_marked_nowhere() -> None:
    made, marked = book()
    rules: Any = Rules("a", "disk=tape")
    known = made._static(rules)
    assert (known.admitted, known.users, marked) == (set(), 0, [])
    assert made._static(rules) is known


def test_marks_change_only_where_they_differ() -> None:
    made, marked = book()
    having = {"n0"}
    made._set_mark("x", having, ["n0", "n1"], True)
    made._set_mark("x", having, ["n0", "n1"], True)
    made._set_mark("x", having, ["n2"], False)
    made._set_mark("x", having, ["n0", "n2"], False)
    assert marked == [("x", "machine", ["n1"], True), ("x", "machine", ["n0"], False)]
    assert having == {"n1"}


def test_a_name_is_free_again_when_its_mark_is_forgotten(monkeypatch: Any) -> None:
    monkeypatch.setattr(rulebooks, "MOST_UNUSED", 1)
    made, marked = book()
    first, second, third = (
        made._static(Rules(key, "disk=ssd", f"n{at}"))  # type: ignore[arg-type]
        for at, key in enumerate("abc")
    )
    made._use(second)
    marked.clear()
    made._tidy_up()
    # The longest unused goes first; what is used stays.
    assert marked == [("node rules: disk=ssd", "machine", ["n0"], False)]
    assert set(made._rules) == {b"b", b"c"}
    assert not made.is_unused
    again: Any = Rules("a", "disk=ssd", "n0")
    assert made._static(again).name == "node rules: disk=ssd"
    made._give_up(second)
    assert list(made._unused) == [b"c", b"a", b"b"]
    assert (first.users, second.users, third.users) == (0, 0, 0)
