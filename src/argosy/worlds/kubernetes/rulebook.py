"""Which nodes each pod may go to, kept up to date as nodes and pods come and go.

Static rules (`node_rules`) and terms (`terms`) are each a mark of nodes. `Rulebook` gives every pod the
attributes it requires, and changes marks as the cluster changes. It also has the last word: an engine
that decides on an older state, or a machine's queue that starts a task late, may break a term, and
`forbidding` says so before Kubernetes is told anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from argosy.kubernetes.objects import (
    ContainerPort,
    Node,
    NodeSelector,
    Pod,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from argosy.model.machines import MACHINE_GROUP
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.terms import (
    HOSTNAME,
    Attracted,
    Avoided,
    Avoiding,
    Brought,
    CountedPod,
    PodScope,
    PodTerm,
    Spread,
    spread_selector,
)

#: Topology keys that are node groups of the cell, so that a domain is marked at once.
GROUP_KEYS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_TRUE: Final = "true"
_ANY_IP: Final = ("", "0.0.0.0", "::")
_MUST: Final = "DoNotSchedule"


class PodNeeds(msgspec.Struct):
    """What a pod requires of a node, and what it brings there."""

    rules: NodeRules
    terms: tuple[PodTerm, ...]
    counted: CountedPod
    attributes: dict[str, str]
    #: How many of the terms that pods bring by avoiding others were looked at.
    avoiding_seen: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether other pods do not matter to it."""
        return not self.terms


class _PlacedPod(msgspec.Struct):
    needs: PodNeeds
    node: str
    counting: tuple[PodTerm, ...]


class Rulebook:
    """`mark` is `Host.mark`."""

    def __init__(self, mark: Callable[[str, str, Sequence[str], bool], None]) -> None:
        self._mark = mark
        self.nodes: dict[str, Node] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        #: Static rules by key, with the name of their mark and the nodes that have it.
        self._rules: dict[bytes, tuple[NodeRules, str, set[str]]] = {}
        self._terms: dict[str, PodTerm] = {}
        self._avoiding: list[Avoiding] = []
        #: The domains that are open to each term.
        self._open: dict[str, set[str]] = {}
        #: Nodes by topology key and domain.
        self._members: dict[str, dict[str, dict[str, None]]] = defaultdict(dict)
        self._placed: dict[str, _PlacedPod] = {}
        self._on_node: dict[str, dict[str, None]] = defaultdict(dict)
        #: Which terms count pods that are alike: forgotten whenever there is a new term.
        self._counting: dict[bytes, tuple[PodTerm, ...]] = {}

    # Nodes.

    def set_node(self, node: Node) -> None:
        """A node that is new, or has changed; its machine is known."""
        before = self.nodes.get(node.name)
        if before is not None:
            self._leave_domains(before)
        self.nodes[node.name] = node
        self._enter_domains(node)
        for rules, attribute, admitted in self._rules.values():
            is_admitted = rules.admits(node)
            # A node that comes back has the marks it had when it went.
            if before is None or (node.name in admitted) != is_admitted:
                (admitted.add if is_admitted else admitted.discard)(node.name)
                self._mark(attribute, MACHINE_GROUP, [node.name], is_admitted)
        for term in self._terms.values():
            is_open = term.is_open(node.metadata.labels.get(term.topology_key))
            self._mark(term.name, MACHINE_GROUP, [node.name], is_open)

    def remove_node(self, name: str) -> None:
        """The node is gone, and so are its pods."""
        node = self.nodes.pop(name, None)
        if node is None:
            return
        self._leave_domains(node)
        for uid in list(self._on_node.pop(name, ())):
            self._placed.pop(uid, None)
        for _, _, admitted in self._rules.values():
            admitted.discard(name)

    def _enter_domains(self, node: Node) -> None:
        for key in self._members:
            domain = node.metadata.labels.get(key)
            if domain is not None:
                self._members[key].setdefault(domain, {})[node.name] = None
        for term in self._terms.values():
            self._count_node(term, node, 1)

    def _leave_domains(self, node: Node) -> None:
        for term in self._terms.values():
            self._count_node(term, node, -1)
        for key, domains in self._members.items():
            domain = node.metadata.labels.get(key)
            if domain is not None:
                domains[domain].pop(node.name, None)
                if not domains[domain]:
                    del domains[domain]

    def _count_node(self, term: PodTerm, node: Node, change: int) -> None:
        """The node's pods count for the term, and the node itself if pods spread over it."""
        domain = node.metadata.labels.get(term.topology_key)
        if domain is None or not term.counts_node(node):
            return
        is_wide = isinstance(term, Spread) and term.add_node(domain, change)
        for uid in self._on_node.get(node.name, ()):
            if term in self._placed[uid].counting:
                is_wide = term.add(domain, change) or is_wide
        self._refresh_domain(term, domain, is_wide=is_wide)

    # Marks.

    def _refresh_domain(self, term: PodTerm, domain: str, *, is_wide: bool) -> None:
        """A count has changed: the domain, or all of them, may have opened or closed."""
        open_domains = self._open[term.name]
        for each in list(self._members[term.topology_key]) if is_wide else [domain]:
            is_open = term.is_open(each)
            if (each in open_domains) != is_open:
                (open_domains.add if is_open else open_domains.discard)(each)
                self._mark_domain(term, each, is_open)

    def _mark_domain(self, term: PodTerm, domain: str, is_open: bool) -> None:
        members = self._members[term.topology_key].get(domain)
        if not members:
            return
        if term.topology_key in GROUP_KEYS:
            self._mark(term.name, term.topology_key, [domain], is_open)
        else:
            self._mark(term.name, MACHINE_GROUP, list(members), is_open)

    def _mark_term(self, term: PodTerm) -> None:
        """Makes all marks of a term that has none."""
        key = term.topology_key
        self._open[term.name] = {domain for domain in self._members[key] if term.is_open(domain)}
        if key in GROUP_KEYS:
            named = [domain for domain in self._open[term.name] if self._members[key][domain]]
            if named:
                self._mark(term.name, key, named, True)
            names: list[str] = []
        else:
            names = [
                each for domain in self._open[term.name] for each in self._members[key][domain]
            ]
        if term.is_open(None):
            names += [node.name for node in self.nodes.values() if key not in node.metadata.labels]
        if names:
            self._mark(term.name, MACHINE_GROUP, names, True)

    def mark_all(self) -> None:
        """Makes all marks anew, for a host that knows none of them."""
        for _, attribute, admitted in self._rules.values():
            if admitted:
                self._mark(attribute, MACHINE_GROUP, list(admitted), True)
        for term in self._terms.values():
            self._mark_term(term)

    # What pods need.

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        if self._namespaces.get(name) != labels:
            self._namespaces[name] = dict(labels)
            self._recount()

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        return self._namespaces.get(namespace, {})

    def needs(self, pod: Pod, volumes: Sequence[NodeSelector] = ()) -> PodNeeds:
        """What the pod requires. Until `release` it is one of the users of its terms."""
        rules = NodeRules.of(pod, volumes)
        terms: dict[str, PodTerm] = {}
        brings: list[str] = []
        self._add_affinity(pod, terms)
        self._add_anti_affinity(pod, terms, brings)
        self._add_spread(pod, rules, terms)
        self._add_ports(pod, terms, brings)
        counted = self.counted(pod, brings)
        names = [self._static(rules), *terms]
        needs = PodNeeds(rules, tuple(terms.values()), counted, dict.fromkeys(names, _TRUE))
        for term in needs.terms:
            term.users += 1
        self._add_avoiding(needs)
        return needs

    def _add_avoiding(self, needs: PodNeeds) -> None:
        """Pods that avoid this one may have come after it."""
        for term in self._avoiding[needs.avoiding_seen :]:
            if term.concerns(needs.counted, self._labels_of):
                needs.terms = (*needs.terms, term)
                needs.attributes[term.name] = _TRUE
                term.users += 1
        needs.avoiding_seen = len(self._avoiding)

    def counted(self, pod: Pod, brings: Iterable[str]) -> CountedPod:
        metadata = pod.metadata
        return CountedPod(
            metadata.namespace,
            metadata.labels,
            frozenset(brings),
            metadata.deletion_timestamp is not None,
        )

    def release(self, needs: PodNeeds) -> None:
        """The pod no longer has to respect anything."""
        for term in needs.terms:
            term.users -= 1

    def _static(self, rules: NodeRules) -> str:
        key = rules.key()
        known = self._rules.get(key)
        if known is None:
            described = f"node rules: {rules.describe()}"
            taken = {name for _, name, _ in self._rules.values()}
            name, number = described, 1
            while name in taken:
                number += 1
                name = f"{described} ({number})"
            admitted: set[str] = set()
            known = self._rules[key] = (rules, name, admitted)
            admitted.update(node.name for node in self.nodes.values() if rules.admits(node))
            if admitted:
                self._mark(name, MACHINE_GROUP, list(admitted), True)
        return known[1]

    def _add_affinity(self, pod: Pod, terms: dict[str, PodTerm]) -> None:
        affinity = pod.spec.affinity
        wanted = affinity.pod_affinity if affinity is not None else None
        required = wanted.required_during_scheduling_ignored_during_execution if wanted else ()
        if not required:
            return
        metadata = pod.metadata
        scopes = tuple(dict.fromkeys(_Hashed(self._scope(pod, each)) for each in required).keys())
        plain = tuple(each.scope for each in scopes)
        is_own = all(
            scope.has(metadata.namespace, metadata.labels, self._labels_of(metadata.namespace))
            for scope in plain
        )
        said = " and ".join(map(str, plain))
        for key in dict.fromkeys(each.topology_key for each in required):
            name = f"near pods {said} by {key}" + ("" if is_own else " (others)")
            terms[name] = self._term(
                name, key, lambda name, key: Attracted(name, key, plain, is_own)
            )

    def _add_anti_affinity(self, pod: Pod, terms: dict[str, PodTerm], brings: list[str]) -> None:
        affinity = pod.spec.affinity
        wanted = affinity.pod_anti_affinity if affinity is not None else None
        required = wanted.required_during_scheduling_ignored_during_execution if wanted else ()
        for each in required:
            scope, key = self._scope(pod, each), each.topology_key
            name = f"away from pods {scope} by {key}"
            terms[name] = self._term(name, key, partial(Avoided, scope=scope))
            guard = f"away from pods that avoid {scope} by {key}"
            self._term(guard, key, partial(Avoiding, scope=scope))
            brings.append(guard)

    def _scope(self, pod: Pod, term: PodAffinityTerm) -> PodScope:
        return PodScope.of(term, pod.metadata.namespace, pod.metadata.labels)

    def _add_spread(self, pod: Pod, rules: NodeRules, terms: dict[str, PodTerm]) -> None:
        required = [
            each
            for each in pod.spec.topology_spread_constraints
            if each.when_unsatisfiable == _MUST
        ]
        keys = tuple(sorted({each.topology_key for each in required}))
        for each in required:
            name, make = self._spread(pod, each, keys, rules)
            terms[name] = self._term(name, each.topology_key, make)

    def _spread(
        self,
        pod: Pod,
        constraint: TopologySpreadConstraint,
        keys: tuple[str, ...],
        rules: NodeRules,
    ) -> tuple[str, Callable[[str, str], PodTerm]]:
        labels = pod.metadata.labels
        selector = spread_selector(constraint.label_selector, labels, constraint.match_label_keys)
        scope = PodScope(selector, (pod.metadata.namespace,))
        follows_rules = constraint.node_affinity_policy != "Ignore"
        honours_taints = constraint.node_taints_policy == "Honor"
        kept = msgspec.structs.replace(
            rules,
            **({} if follows_rules else {"selector": {}, "affinity": None, "volumes": ()}),
            **({} if honours_taints else {"tolerations": ()}),
        )
        counts_itself = scope.has(pod.metadata.namespace, labels, {})
        limits = f"skew at most {constraint.max_skew}"
        if constraint.min_domains:
            limits += f", at least {constraint.min_domains} domains"
        name = f"pods {scope} spread over {constraint.topology_key}, {limits}"
        if not counts_itself:
            name += ", not counting itself"
        if (follows_rules and kept != NodeRules()) or honours_taints:
            name += f", among nodes with {kept.describe()}"
        if len(keys) > 1:
            name += f", with {' and '.join(keys)}"

        def make(name: str, key: str) -> PodTerm:
            return Spread(
                name,
                key,
                scope,
                max_skew=constraint.max_skew,
                min_domains=constraint.min_domains or 1,
                counts_itself=counts_itself,
                other_keys=tuple(other for other in keys if other != key),
                rules=kept if follows_rules or honours_taints else None,
                honours_taints=honours_taints,
            )

        return name, make

    def _add_ports(self, pod: Pod, terms: dict[str, PodTerm], brings: list[str]) -> None:
        """A port on every address collides with the same port on any address."""
        ports = dict.fromkeys(
            (port.protocol, port.host_port, "" if port.host_ip in _ANY_IP else port.host_ip)
            for port in _host_ports(pod)
        )
        for protocol, port, address in ports:
            everywhere = f"host port {port}/{protocol} free on every address"
            somewhere = f"host port {port}/{protocol} free on any address"
            at_address = f"host port {port}/{protocol} free on {address}"
            respects, uses = (
                ([everywhere], [everywhere, somewhere])
                if not address
                else ([somewhere, at_address], [everywhere, at_address])
            )
            for name in dict.fromkeys([*respects, *uses]):
                self._term(name, HOSTNAME, Brought)
            terms.update((name, self._terms[name]) for name in respects)
            brings += uses

    def _term(self, name: str, key: str, make: Callable[[str, str], PodTerm]) -> PodTerm:
        term = self._terms.get(name)
        if term is None:
            term = self._terms[name] = make(name, key)
            self._open[name] = set()
            if isinstance(term, Avoiding):
                self._avoiding.append(term)
            self._counting.clear()
            if key not in self._members:
                for node in self.nodes.values():
                    domain = node.metadata.labels.get(key)
                    if domain is not None:
                        self._members[key].setdefault(domain, {})[node.name] = None
            self._count_all(term)
            self._mark_term(term)
        return term

    def _count_all(self, term: PodTerm) -> None:
        for node in self.nodes.values():
            domain = node.metadata.labels.get(term.topology_key)
            if domain is not None and isinstance(term, Spread) and term.counts_node(node):
                term.add_node(domain, 1)
        for placed in self._placed.values():
            if not term.counts_pod(placed.needs.counted, self._labels_of):
                continue
            placed.counting = (*placed.counting, term)
            node = self.nodes[placed.node]
            domain = node.metadata.labels.get(term.topology_key)
            if domain is not None and term.counts_node(node):
                term.add(domain, 1)

    def _recount(self) -> None:
        """Namespaces have changed: what they select is counted anew."""
        self._counting.clear()
        for uid, placed in list(self._placed.items()):
            now = self._counting_of(placed.needs.counted)
            if now != placed.counting:
                node = placed.node
                self.leave(uid)
                self.put(uid, placed.needs, node)

    # Pods.

    def forbidding(self, needs: PodNeeds, name: str) -> PodTerm | NodeRules | None:
        """What keeps a pod from a node, as things are now."""
        node = self.nodes.get(name)
        if node is None or not needs.rules.admits(node):
            return needs.rules
        self._add_avoiding(needs)
        labels = node.metadata.labels
        for term in needs.terms:
            if not term.is_open(labels.get(term.topology_key)):
                return term
        return None

    def put(self, uid: str, needs: PodNeeds, node: str) -> None:
        """The pod is on the node, or is going there; it counts from now on."""
        counting = self._counting_of(needs.counted)
        self._placed[uid] = _PlacedPod(needs, node, counting)
        self._on_node[node][uid] = None
        self._count(counting, node, 1)

    def leave(self, uid: str) -> None:
        placed = self._placed.pop(uid, None)
        if placed is None:
            return
        self._on_node[placed.node].pop(uid, None)
        self._count(placed.counting, placed.node, -1)

    def is_counted(self, pod: CountedPod) -> bool:
        """Whether any rule about other pods looks at such a pod."""
        return bool(self._counting_of(pod))

    def _count(self, counting: Iterable[PodTerm], name: str, change: int) -> None:
        node = self.nodes.get(name)
        if node is None:
            return
        for term in counting:
            domain = node.metadata.labels.get(term.topology_key)
            if domain is not None and term.counts_node(node):
                is_wide = term.add(domain, change)
                self._refresh_domain(term, domain, is_wide=is_wide)

    def _counting_of(self, pod: CountedPod) -> tuple[PodTerm, ...]:
        if not self._terms:
            return ()
        key = _ENCODE((pod.namespace, pod.labels, sorted(pod.brings), pod.is_terminating))
        known = self._counting.get(key)
        if known is None:
            known = self._counting[key] = tuple(
                term for term in self._terms.values() if term.counts_pod(pod, self._labels_of)
            )
        return known


_ENCODE = msgspec.json.Encoder(order="sorted").encode


class _Hashed:
    """A scope that can be looked up."""

    def __init__(self, scope: PodScope) -> None:
        self.scope = scope
        self._key = _ENCODE(scope)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and other._key == self._key


def _host_ports(pod: Pod) -> Iterable[ContainerPort]:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for port in container.ports:
            if port.host_port > 0:
                yield port


def describe_obstacle(obstacle: PodTerm | NodeRules) -> str:
    """What keeps a pod from a node, in words that pods' authors know."""
    return obstacle.name if isinstance(obstacle, PodTerm) else f"node rules: {obstacle.describe()}"
