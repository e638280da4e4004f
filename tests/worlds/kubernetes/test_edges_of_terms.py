"""Which pods terms count: those in every scope, in namespaces as they are labelled now."""

from __future__ import annotations

import pytest
from test_pod_cluster import node, pod

from argosy.kubernetes.objects import LabelSelector
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.shapes import PodShapes
from argosy.worlds.kubernetes.terms import Attracted, CountedPod, PodScope
from argosy.worlds.kubernetes.volumes import KnownVolumes

WEB = PodScope(LabelSelector(match_labels={"app": "web"}), ("one",))
FAST = PodScope(LabelSelector(match_labels={"tier": "fast"}), ("one", "two"))


@pytest.mark.parametrize(
    ("namespace", "labels", "counts"),
    [
        ("one", {"app": "web", "tier": "fast"}, True),
        ("one", {"app": "web"}, False),
        ("one", {"tier": "fast"}, False),
        ("two", {"app": "web", "tier": "fast"}, False),
        ("one", {}, False),
    ],
)
def test_a_pod_attracts_others_only_if_it_is_in_every_scope(
    namespace: str, labels: dict[str, str], counts: bool
) -> None:
    term = Attracted("near", "zone", scopes=(WEB, FAST), is_in_scopes=False)
    assert term.counts_pod(CountedPod(namespace, labels), lambda _: {}) is counts


def test_pods_count_by_what_their_namespace_is_labelled_now() -> None:
    rules = Rulebook(lambda *_: None)
    shapes = PodShapes(rules, KnownVolumes(), lambda _: True)
    for name in ("n0", "n1"):
        rules.set_node(node(name, zone=name))
    team = {"matchLabels": {"team": "a"}}
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": team}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    lonely = shapes.of(pod("lonely", affinity=apart)).needs
    plain = shapes.of(pod("p")).needs
    rules.put("p", plain, "n0")
    assert rules.forbidding(lonely, "n0") is None
    rules.set_namespace("one", {"team": "a"})
    assert rules.forbidding(lonely, "n0") is not None
    assert rules.forbidding(lonely, "n1") is None
    # One that comes later and is alike counts as well.
    rules.put("q", plain, "n1")
    assert rules.forbidding(lonely, "n1") is not None
    rules.set_namespace("one", {"team": "b"})
    for name in ("n0", "n1"):
        assert rules.forbidding(lonely, name) is None
    rules.leave("q")
    rules.put("q", plain, "n1")
    assert rules.forbidding(lonely, "n1") is None
