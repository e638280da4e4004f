"""What pods would rather have: preferred affinity and anti-affinity, spread that may be broken, and
nodes without taints that they had better avoid.

Each wish is a mark of nodes, as rules are, and has a weight; a job lists its wishes, and an engine that
heeds them tries the nodes with the greatest sum first. Weights of one kind of wish are scaled so that a
node which fulfils all of them gets what kube-scheduler gives it for that kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from argosy.kubernetes.objects import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    SelectorRequirement,
    Toleration,
)
from argosy.worlds.kubernetes.node_rules import NodeRules, tolerates
from argosy.worlds.kubernetes.selectors import described_requirement, term_matches
from argosy.worlds.kubernetes.term_plans import TermPlan, spread_plan
from argosy.worlds.kubernetes.terms import Attracted, Avoided, PodScope

_Wished = TypeVar("_Wished")
SOFT: Final = "PreferNoSchedule"
_ANYWAY: Final = "ScheduleAnyway"
_KEY: Final = msgspec.json.Encoder()
#: What a node gets that fulfils all wishes of a kind.
_TAINTS: Final = 30_000
_AFFINITY: Final = 20_000
_SPREAD: Final = 20_000
#: The node that somebody has chosen for the pod comes before all others.
_NOMINATED: Final = 1_000_000
#: Pods that a domain may have to count as nearly empty: a node with fewer of those that a pod would
#: rather avoid is better.
_FEW: Final = (0, 1, 3, 7)


class NodeWish(msgspec.Struct, frozen=True):
    """Nodes that a pod prefers by a term, or that have no soft taints other than those it tolerates."""

    term: NodeSelectorTerm | None = None
    tolerations: tuple[Toleration, ...] = ()

    def key(self) -> bytes:
        return b"wish " + _KEY.encode(self)

    def admits(self, node: Node) -> bool:
        if self.term is not None:
            return term_matches(self.term, node)
        return not any(
            taint.effect == SOFT and not tolerates(self.tolerations, taint)
            for taint in node.spec.taints
        )

    def reason(self, node: Node) -> str:
        """Nobody is kept away by a wish."""
        return ""

    def describe(self) -> str:
        if self.term is None:
            return "prefers nodes without soft taints"
        parts = (*self.term.match_expressions, *self.term.match_fields)
        return "prefers " + " and ".join(map(described_requirement, parts))


class FewPods(Avoided):
    """At most `most` pods of the scope are in the domain."""

    def __init__(self, name: str, topology_key: str, scope: PodScope, most: int) -> None:
        super().__init__(name, topology_key, scope)
        self.most = most

    def is_open(self, domain: str | None) -> bool:
        return domain is None or self.counts[domain] <= self.most


def has_wishes(pod: Pod) -> bool:
    spec = pod.spec
    if pod.status.nominated_node_name:
        return True
    if spec.affinity is None and not spec.topology_spread_constraints:
        return False
    return bool(described_wishes(pod))


def described_wishes(pod: Pod) -> list[str]:
    """The fields of a pod that say what it would rather have; soft taints are the nodes'."""
    spec, wished = pod.spec, []
    affinity = spec.affinity or Affinity()
    for name, part in (
        ("nodeAffinity", affinity.node_affinity or NodeAffinity()),
        ("podAffinity", affinity.pod_affinity or PodAffinity()),
        ("podAntiAffinity", affinity.pod_anti_affinity or PodAffinity()),
    ):
        if part.preferred_during_scheduling_ignored_during_execution:
            wished.append(f"spec.affinity.{name}.preferredDuringSchedulingIgnoredDuringExecution")
    if any(each.when_unsatisfiable == _ANYWAY for each in spec.topology_spread_constraints):
        wished.append(f"spec.topologySpreadConstraints with whenUnsatisfiable {_ANYWAY}")
    return wished


def node_wishes(pod: Pod, *, has_soft_taints: bool) -> list[tuple[NodeWish, int]]:
    """With their weights. `has_soft_taints` says whether any node has one."""
    affinity = (pod.spec.affinity or Affinity()).node_affinity or NodeAffinity()
    wanted = affinity.preferred_during_scheduling_ignored_during_execution
    terms = [(NodeWish(each.preference), each.weight) for each in wanted]
    found = _scaled(terms, _AFFINITY)
    if name := pod.status.nominated_node_name:
        named = SelectorRequirement(key="metadata.name", operator="In", values=(name,))
        found.append((NodeWish(NodeSelectorTerm(match_fields=(named,))), _NOMINATED))
    if has_soft_taints:
        tolerations = tuple(each for each in pod.spec.tolerations if each.effect in ("", SOFT))
        found.append((NodeWish(None, tolerations), _TAINTS))
    return found


def pod_wishes(pod: Pod, rules: NodeRules) -> list[tuple[TermPlan, int]]:
    """Plans of terms, with their weights. `rules` are the pod's."""
    affinity = pod.spec.affinity or Affinity()
    near = affinity.pod_affinity or PodAffinity()
    apart = affinity.pod_anti_affinity or PodAffinity()
    plans: list[tuple[TermPlan, int]] = []
    for each in near.preferred_during_scheduling_ignored_during_execution:
        term = each.pod_affinity_term
        scope = PodScope.of(term, pod.metadata.namespace, pod.metadata.labels)
        make = partial(Attracted, scopes=(scope,), is_in_scopes=False)
        name = f"rather near pods {scope} by {term.topology_key}"
        plans.append((TermPlan(name, term.topology_key, make), each.weight * len(_FEW)))
    for each in apart.preferred_during_scheduling_ignored_during_execution:
        term = each.pod_affinity_term
        scope = PodScope.of(term, pod.metadata.namespace, pod.metadata.labels)
        for most in _FEW:
            name = f"at most {most} pods {scope} by {term.topology_key}"
            few = partial(FewPods, scope=scope, most=most)
            plans.append((TermPlan(name, term.topology_key, few), each.weight))
    return _scaled(plans, _AFFINITY) + _scaled(_spread(pod, rules), _SPREAD)


def _spread(pod: Pod, rules: NodeRules) -> list[tuple[TermPlan, int]]:
    wanted = [
        each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == _ANYWAY
    ]
    # Whatever the skew, the emptiest domain is best.
    tight = [msgspec.structs.replace(each, max_skew=1, min_domains=None) for each in wanted]
    return [(spread_plan(pod, each, (each.topology_key,), rules), 1) for each in tight]


def _scaled(wished: Sequence[tuple[_Wished, int]], total: int) -> list[tuple[_Wished, int]]:
    whole = sum(weight for _, weight in wished)
    return [(each, max(1, weight * total // whole)) for each, weight in wished]


def has_soft_taint(nodes: Iterable[Node]) -> bool:
    return any(taint.effect == SOFT for node in nodes for taint in node.spec.taints)
