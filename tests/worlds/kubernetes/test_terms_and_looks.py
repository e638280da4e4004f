"""Terms about other pods, and who gets a second look, each by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import test_pod_cluster as small
from recorded_pod_world import RecordedPodWorld
from test_pod_parts import REQUIRED, WEB, node, pod

from argosy.kubernetes.objects import LabelSelector, Pod, PodAffinityTerm
from argosy.model.resources import Resources
from argosy.worlds.kubernetes import rulebook as rulebooks
from argosy.worlds.kubernetes import second_looks
from argosy.worlds.kubernetes.commits import COMMIT, AgentCluster
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.room import NodeRoom
from argosy.worlds.kubernetes.rulebook import PodNeeds, Rulebook
from argosy.worlds.kubernetes.second_looks import SecondLooks
from argosy.worlds.kubernetes.terms import Attracted, CountedPod, PodScope, SpreadOut
from argosy.worlds.kubernetes.tracked import EvictOrder, PodShape, PodState, TrackedPod

SCOPE = PodScope(LabelSelector(), ("one",))


class TestSpreads:
    @staticmethod
    def spread(**settings: Any) -> SpreadOut:
        """Over two zones, with a pod in the first."""
        usual: dict[str, Any] = {"max_skew": 1, "min_domains": 1, "counts_itself": True}
        term = SpreadOut("s", "zone", SCOPE, **(usual | settings))
        for zone in ("a", "b"):
            term.add_node(zone, 1)
        term.add("a", 1)
        return term

    @pytest.mark.parametrize(
        ("settings", "is_open"),
        [
            ({}, (False, True)),
            # A pod that is not of the kind that is spread does not make it worse.
            ({"counts_itself": False}, (True, True)),
            ({"max_skew": 2}, (True, True)),
            ({"min_domains": 2}, (False, True)),
        ],
    )
    def test_which_zones_are_open(
        self, settings: dict[str, Any], is_open: tuple[bool, bool]
    ) -> None:
        term = self.spread(**settings)
        assert (term.is_open("a"), term.is_open("b")) == is_open
        assert not term.is_open("c")
        assert not term.is_open(None)

    def test_too_few_zones_count_as_if_one_were_empty(self) -> None:
        for least, expected in ((2, 1), (3, 0)):
            term = self.spread(min_domains=least)
            term.add("b", 1)
            assert term.least == expected

    def test_only_nodes_with_all_keys_count(self) -> None:
        term = self.spread(other_keys=("rack",))
        assert term.counts_node(node(labels={"zone": "a", "rack": "r"}))
        assert not term.counts_node(node(labels={"zone": "a"}))
        assert not term.counts_node(node(labels={"rack": "r"}))


def test_the_first_of_a_kind_is_the_first_by_any_of_its_keys() -> None:
    zone, rack = (Attracted(key, key, (SCOPE,), is_in_scopes=True) for key in ("zone", "rack"))
    zone.siblings, rack.siblings = (rack,), (zone,)
    assert zone.is_open("a")
    assert rack.add("r", 1), "other domains close"
    assert not zone.is_open("a")
    assert (rack.is_open("r"), rack.is_open("q")) == (True, False)


@pytest.mark.parametrize(
    ("term", "namespaces"),
    [
        ({}, ("here",)),
        ({"namespaces": ["b", "a"]}, ("a", "b")),
        ({"namespaceSelector": {}}, ()),
        ({"namespaces": ["a"], "namespaceSelector": {}}, ("a",)),
    ],
)
def test_a_term_is_about_its_own_namespace_unless_it_says_otherwise(
    term: dict[str, Any], namespaces: tuple[str, ...]
) -> None:
    read = msgspec.convert({"topologyKey": "zone", **term}, PodAffinityTerm)
    assert PodScope.of(read, "here", {}).namespaces == namespaces


def test_who_is_avoided_may_change_with_the_labels_of_a_namespace() -> None:
    rulebook = Rulebook(lambda *mark: None)
    rulebook.set_node(node("n", {"zone": "a"}))
    teams = {**WEB, "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "x"}}}
    loner = pod(affinity={"podAntiAffinity": {REQUIRED: [teams]}})
    rulebook.put("loner", rulebook.needs(loner), "n")
    other = rulebook.needs(pod({"namespace": "two", "uid": "v"}))
    assert rulebook.forbidding(other, "n") is None
    rulebook.set_namespace("two", {"team": "x"})
    assert rulebook.forbidding(other, "n") is not None


class TestLooks:
    """Pods that wait for a core each."""

    @staticmethod
    def waiting(name: str, priority: int = 0) -> TrackedPod:
        needs = PodNeeds(NodeRules(), (), (), CountedPod("one", {}), {})
        shape = PodShape(name.encode(), needs, Resources(1_000, 0))
        spec = {"priority": priority}
        return TrackedPod(pod({"uid": name}, **spec), shape, PodState.WAITING, job=name)

    def looks(self, *nodes: str, promised: tuple[str, ...] = ()) -> SecondLooks:
        rulebook, room = Rulebook(lambda *mark: None), NodeRoom()
        for name in nodes:
            rulebook.set_node(node(name))
            room.set_capacity(name, Resources(1_000, 0))
        looks = SecondLooks(rulebook, room, promised.__contains__)
        looks.note(nodes)
        return looks

    def found(self, looks: SecondLooks, queues: dict[str, str] | None = None) -> list[str]:
        return [each.uid for each in looks.take(queues or {})]

    def test_as_many_as_fit_and_the_important_first(self) -> None:
        looks = self.looks("n0", "n1")
        for name, priority in (("a", 0), ("b", 5), ("c", 5)):
            looks.add(self.waiting(name, priority))
        assert self.found(looks) == ["b", "c"]
        assert self.found(looks) == []
        looks.note(["n0"])
        assert self.found(looks) == ["a"]

    def test_a_node_that_is_promised_is_nobodys_room(self) -> None:
        looks = self.looks("n0", "n1", promised=("n0",))
        for name in ("a", "b"):
            looks.add(self.waiting(name))
        assert self.found(looks) == ["a"]

    def test_a_pod_in_the_queue_of_the_node_waits_there(self) -> None:
        looks = self.looks("n0")
        for name in ("a", "b"):
            looks.add(self.waiting(name))
        assert self.found(looks, {"a": "n0"}) == ["b"]

    def test_a_look_ends_after_so_many_pairs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(second_looks, "MOST_PAIRS", 2)
        looks = self.looks("n0", "n1", "n2", "n3")
        for name in ("a", "b", "c"):
            looks.add(self.waiting(name))
        assert (self.found(looks), looks.are_due) == (["a"], True)
        assert (self.found(looks), looks.are_due) == (["b"], True)
        assert (self.found(looks), looks.are_due) == (["c"], False)


def test_only_a_mark_that_is_given_is_worth_a_look() -> None:
    pods, _ = small.cluster()
    for is_given in (False, True):
        pods._mark("open", "machine", ["n0"], is_given)
        assert pods.second_looks.are_due is is_given


def test_a_pod_that_others_look_at_is_decided_on_before_the_next() -> None:
    pods, world = small.cluster()
    web = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    pods.set_pod(small.pod("picky", affinity={"podAntiAffinity": {REQUIRED: [web]}}))
    pods.flush()

    def labelled(uid: str, app: str) -> Pod:
        plain = small.pod(uid)
        return msgspec.structs.replace(
            plain, metadata=msgspec.structs.replace(plain.metadata, labels={"app": app})
        )

    pods.set_pod(labelled("db", "db"))
    assert list(world.waiting) == ["one.picky"]
    pods.set_pod(labelled("web", "web"))
    assert list(world.waiting) == ["one.picky", "one.db", "one.web"]


def test_a_pod_of_an_unknown_commit_is_told_to_go_once() -> None:
    world = RecordedPodWorld()
    pods = AgentCluster(lambda: world, lambda pod: True, name="argosy")
    world.cluster = pods
    stray = pod({"annotations": {COMMIT: "lost"}})
    for _ in range(2):
        pods.set_pod(stray)
        pods.set_pod(stray)
        assert [type(order) for order in pods.orders] == [EvictOrder]
        pods.orders.clear()
        pods.remove_pod("u")


def test_a_term_that_was_forgotten_is_related_anew_to_those_that_were_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rulebooks, "MOST_UNUSED", 3)
    rulebook = Rulebook(lambda *mark: None)
    rulebook.set_node(node("hostless", {"zone": "a"}))
    rulebook.set_node(node("n", {"zone": "a", "host": "h", "rack": "r"}))
    near = [{**WEB, "topologyKey": key} for key in ("zone", "host", "rack")]
    web = pod({"labels": {"app": "web"}}, affinity={"podAffinity": {REQUIRED: near}})
    first = rulebook.needs(web)
    rulebook.release(first)
    needs = rulebook.needs(web)
    assert [now is then for now, then in zip(needs.terms, first.terms, strict=True)] == [
        False,
        True,
        True,
    ]
    rulebook.put("web", needs, "hostless")
    # It is not the first of its kind any more, and there is none on this host.
    assert rulebook.forbidding(needs, "n") is needs.terms[1]
