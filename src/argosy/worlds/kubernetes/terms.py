"""Rules about nodes that depend on the pods there: affinity, anti-affinity, spread, host ports.

A *term* counts pods per domain, which is a value of a topology key, and so knows which domains are open
to those that have to respect it. Each term is a mark of the nodes that are open. Pods with the same rule
share a term, and a pod respects several by requiring several attributes.

Anti-affinity works in both directions: a pod must not come near those it avoids (`Avoided`), nor near
those that avoid it (`Avoiding`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Final

import msgspec

from argosy.kubernetes.objects import (
    LabelSelector,
    Node,
    PodAffinityTerm,
    SelectorRequirement,
)
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.selectors import described, selects

#: Topology keys in which every node is a domain, and all nodes are one, whatever their labels.
NODE_NAME: Final = "every node"
CLUSTER: Final = "the cluster"


def domain_of(node: Node, topology_key: str) -> str | None:
    """None for nodes without the key."""
    if topology_key == NODE_NAME:
        return node.name
    return CLUSTER if topology_key == CLUSTER else node.metadata.labels.get(topology_key)


class PodScope(msgspec.Struct, frozen=True):
    """Pods with these labels in these namespaces, or in namespaces with these labels."""

    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None

    @staticmethod
    def of(term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> PodScope:
        """`namespace` and `labels` are those of the pod that has the term."""
        namespaces = tuple(sorted(term.namespaces))
        if not namespaces and term.namespace_selector is None:
            namespaces = (namespace,)
        selector = _with_keys(
            term.label_selector, labels, term.match_label_keys, term.mismatch_label_keys
        )
        return PodScope(selector, namespaces, term.namespace_selector)

    def has(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        is_within = namespace in self.namespaces or (
            self.namespace_selector is not None
            and selects(self.namespace_selector, namespace_labels)
        )
        return is_within and selects(self.selector, labels)

    def __str__(self) -> str:
        places = list(self.namespaces)
        if self.namespace_selector is not None:
            places.append(f"namespaces with {described(self.namespace_selector)}")
        return f"{described(self.selector)} in {' and '.join(places)}"


def _with_keys(
    selector: LabelSelector | None,
    labels: Mapping[str, str],
    equal: Iterable[str],
    different: Iterable[str],
) -> LabelSelector | None:
    """The selector as the server completes it: pods whose values of these labels are the same as, or
    other than, those of the pod itself."""
    more = [
        SelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for operator, keys in (("In", equal), ("NotIn", different))
        for key in keys
        if key in labels
    ]
    if selector is None or not more:
        return selector
    known = {(each.key, each.operator, each.values) for each in selector.match_expressions}
    fresh = [each for each in more if (each.key, each.operator, each.values) not in known]
    return LabelSelector(
        match_labels=selector.match_labels,
        match_expressions=(*selector.match_expressions, *fresh),
    )


def spread_selector(
    selector: LabelSelector | None, labels: Mapping[str, str], keys: Iterable[str]
) -> LabelSelector | None:
    return _with_keys(selector, labels, keys, ())


class CountedPod(msgspec.Struct, frozen=True):
    """What terms look at: pods that are alike in this are counted alike."""

    namespace: str
    labels: dict[str, str]
    #: Names of the terms of others that it brings with it: those it avoids, and ports it uses.
    brings: frozenset[str] = frozenset()
    is_terminating: bool = False


#: Labels of a namespace.
NamespaceLabels = Callable[[str], Mapping[str, str]]


class PodTerm(ABC):
    """`name` tells people what it demands, and is the attribute of the nodes that are open to it.
    `reason` says why nodes are not, as kube-scheduler does."""

    reason: ClassVar[str]

    def __init__(self, name: str, topology_key: str) -> None:
        self.name = name
        self.topology_key = topology_key
        #: Counted pods per domain.
        self.counts: Counter[str] = Counter()
        #: How many shapes of pods must respect it, or bring it with them.
        self.users = 0
        #: Whether the nodes of each domain are marked as open.
        self.shown: dict[str, bool] = {}
        #: Terms that may open or close when this one says that other domains may.
        self.siblings: tuple[PodTerm, ...] = ()

    @abstractmethod
    def counts_pod(self, pod: CountedPod, namespace_labels: NamespaceLabels) -> bool: ...

    @abstractmethod
    def is_open(self, domain: str | None) -> bool:
        """`domain` is None for nodes without the topology key."""

    def counts_node(self, node: Node) -> bool:
        """Whether pods on that node count."""
        return True

    def add(self, domain: str, change: int) -> bool:
        """Counts a pod, or no longer counts it. Returns whether other domains may open or close too."""
        self.counts[domain] += change
        if not self.counts[domain]:
            del self.counts[domain]
        return False


class Avoided(PodTerm):
    """No pod of the scope is in the domain."""

    reason = "node(s) didn't match pod anti-affinity rules"

    def __init__(self, name: str, topology_key: str, scope: PodScope) -> None:
        super().__init__(name, topology_key)
        self.scope = scope

    def counts_pod(self, pod: CountedPod, namespace_labels: NamespaceLabels) -> bool:
        return self.scope.has(pod.namespace, pod.labels, namespace_labels(pod.namespace))

    def is_open(self, domain: str | None) -> bool:
        return domain is None or not self.counts[domain]


class Brought(PodTerm):
    """No pod that brings this term with it is in the domain: one that avoids a scope, or uses a port."""

    reason = "node(s) didn't have free ports for the requested pod ports"

    def counts_pod(self, pod: CountedPod, namespace_labels: NamespaceLabels) -> bool:
        return self.name in pod.brings

    def is_open(self, domain: str | None) -> bool:
        return domain is None or not self.counts[domain]


class InUse(Brought):
    """No pod uses the claim."""

    reason = "node(s) were out because a claim is in use by another pod"


class Avoiding(Brought):
    """No pod in the domain avoids pods of the scope."""

    reason = "node(s) didn't satisfy existing pods anti-affinity rules"

    def __init__(self, name: str, topology_key: str, scope: PodScope) -> None:
        super().__init__(name, topology_key)
        self.scope = scope

    def concerns(self, pod: CountedPod, namespace_labels: NamespaceLabels) -> bool:
        """Whether the pod has to respect it."""
        return self.scope.has(pod.namespace, pod.labels, namespace_labels(pod.namespace))


class Attracted(PodTerm):
    """A pod that is in every scope is in the domain. Until there is one anywhere, by any of the keys of
    the same pod (`siblings`), the first pod that is itself in every scope may go to any domain."""

    reason = "node(s) didn't match pod affinity rules"

    def __init__(
        self, name: str, topology_key: str, scopes: tuple[PodScope, ...], is_in_scopes: bool
    ) -> None:
        super().__init__(name, topology_key)
        self.scopes = scopes
        self.is_in_scopes = is_in_scopes

    def counts_pod(self, pod: CountedPod, namespace_labels: NamespaceLabels) -> bool:
        of_namespace = namespace_labels(pod.namespace)
        return all(scope.has(pod.namespace, pod.labels, of_namespace) for scope in self.scopes)

    def is_open(self, domain: str | None) -> bool:
        if domain is None:
            return False
        return self.counts[domain] > 0 or (self.is_in_scopes and self._is_first)

    @property
    def _is_first(self) -> bool:
        return not self.counts and not any(each.counts for each in self.siblings)

    def add(self, domain: str, change: int) -> bool:
        was_first = self._is_first
        super().add(domain, change)
        return self.is_in_scopes and was_first != self._is_first


class SpreadOut(PodTerm):
    """The domain does not get more than `max_skew` ahead of the emptiest one."""

    reason = "node(s) didn't match pod topology spread constraints"

    def __init__(
        self,
        name: str,
        topology_key: str,
        scope: PodScope,
        *,
        max_skew: int,
        min_domains: int,
        counts_itself: bool,
        other_keys: tuple[str, ...] = (),
        rules: NodeRules | None = None,
        honours_taints: bool = False,
    ) -> None:
        super().__init__(name, topology_key)
        self.scope = scope
        self.max_skew = max_skew
        self.min_domains = min_domains
        self.itself = int(counts_itself)
        self.other_keys = other_keys
        #: Only nodes that these rules select count as places to spread over.
        self.rules = rules
        self.honours_taints = honours_taints
        #: Nodes per domain; and domains by the number of pods in them, so that the least is known.
        self.domains: Counter[str] = Counter()
        self._levels: Counter[int] = Counter()
        self._lowest = 0

    def counts_pod(self, pod: CountedPod, namespace_labels: NamespaceLabels) -> bool:
        return (
            not pod.is_terminating
            and pod.namespace in self.scope.namespaces
            and selects(self.scope.selector, pod.labels)
        )

    def counts_node(self, node: Node) -> bool:
        labels = node.metadata.labels
        if not all(key in labels for key in (self.topology_key, *self.other_keys)):
            return False
        if self.rules is None:
            return True
        is_repelled = self.honours_taints and self.rules.tainted_by(node) is not None
        return self.rules.selects(node) and not is_repelled

    @property
    def least(self) -> int:
        """Pods in the emptiest domain; 0 if there are fewer domains than there must be."""
        return self._lowest if len(self.domains) >= self.min_domains else 0

    def is_open(self, domain: str | None) -> bool:
        if domain is None or domain not in self.domains:
            return False
        return self.counts[domain] + self.itself - self.least <= self.max_skew

    def add(self, domain: str, change: int) -> bool:
        before = self.least
        if domain in self.domains:
            self._move(self.counts[domain], -1)
        super().add(domain, change)
        if domain in self.domains:
            self._move(self.counts[domain], 1)
        self._find_lowest()
        return self.least != before

    def add_node(self, domain: str, change: int) -> bool:
        """A node that counts has come to the domain, or has left it."""
        before = self.least, domain in self.domains
        self.domains[domain] += change
        if not self.domains[domain]:
            del self.domains[domain]
        if before[1] != (domain in self.domains):
            self._move(self.counts[domain], change)
            self._find_lowest()
        return (self.least, domain in self.domains) != before

    def _move(self, level: int, change: int) -> None:
        self._levels[level] += change
        if not self._levels[level]:
            del self._levels[level]
        elif change > 0:
            self._lowest = min(self._lowest, level)

    def _find_lowest(self) -> None:
        if self._lowest not in self._levels:
            self._lowest = min(self._levels, default=0)
