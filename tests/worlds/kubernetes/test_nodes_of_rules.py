"""A rulebook whose nodes go and come: what it marks then, and what it has forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from test_pod_parts import node, pod, taint

from argosy.kubernetes.objects import Pod
from argosy.worlds.kubernetes import rulebook as rulebooks
from argosy.worlds.kubernetes.rulebook import PodNeeds, Rulebook

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Book:
    """A rulebook, and what it has marked since the last look."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, str, tuple[str, ...], bool]] = []
        self.rules = Rulebook(
            lambda attribute, group, sets, is_given: self.marks.append(
                (attribute, group, tuple(sorted(sets)), is_given)
            )
        )

    def take(self) -> list[tuple[str, str, tuple[str, ...], bool]]:
        marks, self.marks[:] = list(self.marks), []
        return marks


def apart(app: str, key: str = "disk", **metadata: Any) -> Pod:
    """A pod that is not to be with those of an app."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return pod(
        {"labels": {"app": app}, **metadata}, affinity={"podAntiAffinity": {REQUIRED: [term]}}
    )


def needs_of(book: Book, made: Pod) -> PodNeeds:
    return book.rules.needs(made)


def test_a_node_that_comes_back_is_marked_as_a_new_one_is() -> None:
    book = Book()
    book.rules.set_node(node("a", {"disk": "1"}))
    needs = needs_of(book, apart("web"))
    first = book.take()
    assert {(names, is_given) for _, _, names, is_given in first} == {(("a",), True)}
    assert {attribute for attribute, *_ in first} >= set(needs.attributes)
    for _ in range(2):
        book.rules.remove_node("a")
        assert book.take() == []
        book.rules.set_node(node("a", {"disk": "1"}))
        assert sorted(book.take()) == sorted(first)
    book.rules.set_node(node("a", {"disk": "1"}))
    assert book.take() == []


def test_pods_are_gone_with_their_node_whatever_is_asked_later() -> None:
    book = Book()
    for name in "ab":
        book.rules.set_node(node(name, {"disk": name}))
    there = needs_of(book, pod({"labels": {"app": "web"}}))
    book.rules.put("p", there, "a")
    book.rules.put("q", there, "b")
    book.rules.remove_node("a")
    assert (book.rules.pods_on("a"), book.rules.pods_on("b")) == ([], ["q"])
    needs = needs_of(book, apart("web"))
    book.rules.set_node(node("a", {"disk": "a"}))
    assert book.rules.forbidding(needs, "a") is None
    assert book.rules.forbidding(needs, "b") is not None
    book.rules.leave("p")
    book.rules.leave("q")
    assert book.rules.forbidding(needs, "b") is None


def test_nodes_once_avoided_are_remembered_when_none_is_left() -> None:
    book = Book()
    assert not book.rules.has_soft_taints
    book.rules.set_node(node("a", {}, taints=[taint("k", "NoSchedule")]))
    assert not book.rules.has_soft_taints
    book.rules.set_node(node("a", {}, taints=[taint("k", "PreferNoSchedule")]))
    for change in (lambda: book.rules.set_node(node("b", {})), lambda: book.rules.remove_node("a")):
        assert book.rules.has_soft_taints
        change()
    assert book.rules.has_soft_taints


def test_a_zone_is_marked_at_once_only_if_all_of_its_nodes_change() -> None:
    book = Book()
    for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
        book.rules.set_node(node(name, {ZONE: zone}))
    there = needs_of(book, pod({"labels": {"app": "web"}}))
    needs_of(book, apart("web", ZONE))
    book.take()
    book.rules.put("p", there, "a")
    [closed] = book.take()
    assert closed[1:] == (ZONE, ("x",), False)
    # A node that comes meanwhile is closed from the start, and opens with the others.
    book.rules.set_node(node("d", {ZONE: "x"}))
    assert closed[0] not in {attribute for attribute, *_ in book.take()}
    book.rules.leave("p")
    assert book.take() == [(closed[0], ZONE, ("x",), True)]
    assert list(book.rules.members(ZONE, ["x", "nowhere", "y"])) == ["a", "b", "d", "c"]
    # A new host is told of nodes one by one.
    book.rules.mark_all()
    assert {names for _, _, names, is_given in book.take() if is_given} == {("a", "b", "c", "d")}


PORT: dict[str, Any] = {
    "containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
}


@pytest.mark.parametrize("most_unused", [0, 256])
@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("what", ["port", "claim", "avoided"])
def test_what_a_pod_brings_to_its_node_keeps_others_away(
    what: str, stays: bool, most_unused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if nothing that is unused is kept, and if the pod has nothing to choose any more."""
    monkeypatch.setattr(rulebooks, "MOST_UNUSED", most_unused)
    book = Book()
    for name in "ab":
        book.rules.set_node(node(name, {"disk": name}))
    claims = ["one/c"] if what == "claim" else []
    spec: dict[str, Any] = PORT if what == "port" else {}
    term = {"topologyKey": "disk", "labelSelector": {"matchLabels": {"app": "other"}}}
    if what == "avoided":
        spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    first = pod({"uid": "first"}, **spec)
    brought = (
        book.rules.presence(first, claims) if stays else book.rules.needs(first, claims=claims)
    )
    book.rules.put("first", brought, "a")
    other = pod({"uid": "other", "labels": {"app": "other"}}, **(PORT if what == "port" else {}))
    needs = book.rules.needs(other, claims=claims)
    assert book.rules.forbidding(needs, "a") is not None
    assert (book.rules.forbidding(needs, "b") is not None) is (what == "claim")
    # Both are told to schedulers at once: the rules of nodes, and what is in the way.
    assert len(needs.attributes) == len({*needs.attributes}) == 2
    plain = book.rules.needs(pod({"uid": "plain"}))
    assert book.rules.forbidding(plain, "a") is None
    book.rules.leave("first")
    assert book.rules.forbidding(needs, "a") is book.rules.forbidding(needs, "b") is None
    for each in (brought, needs, plain):
        assert not book.rules.is_unused
        book.rules.release(each)
    assert book.rules.is_unused


def test_labels_of_a_namespace_are_those_it_was_last_told_with() -> None:
    book, labels = Book(), {"team": "x"}
    book.rules.set_node(node("a", {"disk": "a"}))
    book.rules.set_namespace("two", labels)
    term = {
        "topologyKey": "disk",
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"team": "y"}},
    }
    away = needs_of(book, pod(affinity={"podAntiAffinity": {REQUIRED: [term]}}))
    there = needs_of(book, pod({"namespace": "two", "uid": "there"}))
    book.rules.put("there", there, "a")
    for team, is_open in (("y", False), ("x", True), ("y", False)):
        labels["team"] = team
        book.rules.set_namespace("two", labels)
        assert (book.rules.forbidding(away, "a") is None) is is_open


def test_a_new_host_is_told_of_no_mark_that_no_node_has() -> None:
    book = Book()
    book.rules.set_node(node("a"))
    needs_of(book, pod(nodeSelector={"disk": "tape"}))
    needs_of(book, apart("web"))
    there = needs_of(book, pod({"labels": {"app": "web"}}))
    book.rules.put("there", there, "a")
    book.take()
    book.rules.mark_all()
    assert all(names == ("a",) for _, _, names, _ in book.take())


@pytest.mark.parametrize("most_unused", [0, 256])
def test_the_weights_of_equal_wishes_are_added_and_their_marks_kept(
    most_unused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rulebooks, "MOST_UNUSED", most_unused)
    book = Book()
    book.rules.set_node(node("a", {"disk": "ssd"}))
    expression = {"key": "disk", "operator": "In", "values": ["ssd"]}
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [expression]}} for weight in (3, 4)
    ]
    wishing = pod(
        affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    )
    needs = book.rules.needs(wishing, heeds_wishes=True)
    [(name, weight)] = needs.wishes.items()
    marked = [(each, is_given) for each, _, _, is_given in book.take() if each == name]
    # Each is a share of what a node gets that fulfils all.
    assert (weight, marked) == (8_571 + 11_428, [(name, True)])
    plain = book.rules.needs(wishing)
    assert plain.wishes == {}
    for each in (needs, plain):
        book.rules.release(each)
    assert book.rules.is_unused


def test_a_rule_that_was_forgotten_is_as_new_when_it_is_needed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rulebooks, "MOST_UNUSED", 0)
    book = Book()
    book.rules.set_node(node("a", {"disk": "a"}))
    there = needs_of(book, pod({"uid": "there", "labels": {"app": "web"}}))
    book.rules.put("there", there, "a")
    names = []
    for _ in range(3):
        needs = needs_of(book, apart("web"))
        names.append(list(needs.attributes))
        obstacle = book.rules.forbidding(needs, "a")
        assert obstacle is needs.terms[0]
        # What avoids it is in its way, too, as long as it is there.
        after = needs_of(book, pod({"uid": "after", "labels": {"app": "web"}}))
        assert len(after.terms) == 1
        for each in (needs, after):
            book.rules.release(each)
        last = needs_of(book, pod({"uid": "last", "labels": {"app": "web"}}))
        assert last.terms == ()
        book.rules.release(last)
        book.rules.leave("there")
        book.rules.put("there", there, "a")
    assert names == [names[0]] * 3
