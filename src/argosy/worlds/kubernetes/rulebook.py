"""Which nodes each pod may go to, kept up to date as nodes and pods come and go.

Static rules (`node_rules`) and terms (`terms`) are each a mark of nodes. `Rulebook` gives every pod the
attributes it requires, and changes marks as the cluster changes. It also has the last word: an engine
that decides on an older state, or a machine's queue that starts a task late, may break a term, and
`forbidding` says so before Kubernetes is told anything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from argosy.kubernetes.objects import Node, NodeSelector, Pod
from argosy.model.machines import MACHINE_GROUP
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.pod_wishes import (
    NodeWish,
    has_soft_taint,
    node_wishes,
    pod_wishes,
)
from argosy.worlds.kubernetes.term_plans import (
    TermPlan,
    affinity_plans,
    anti_affinity_plans,
    claim_plans,
    port_plans,
    spread_plans,
)
from argosy.worlds.kubernetes.terms import (
    Avoiding,
    CountedPod,
    PodTerm,
    SpreadOut,
    domain_of,
)

#: Topology keys that are node groups of the cell, so that a domain is marked at once.
GROUP_KEYS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_TRUE: Final = "true"
#: Marks that nobody uses any more are kept for the next pods like the last ones, but not all of them.
MOST_UNUSED: Final = 256


class PodNeeds(msgspec.Struct):
    """What a pod requires of a node, and what it brings there."""

    rules: NodeRules
    #: Those that it must respect, and those that it brings.
    terms: tuple[PodTerm, ...]
    brings: tuple[PodTerm, ...]
    counted: CountedPod
    attributes: dict[str, str]
    #: What it would rather have, with weights; and the marks and terms for that.
    wishes: dict[str, int] = {}
    wished: tuple[PodTerm | RuleMark, ...] = ()
    #: The number of the last of the terms that pods bring by avoiding others which was looked at.
    avoiding_seen: int = 0
    #: How often the labels of namespaces had changed by then.
    namespace_changes: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether other pods do not matter to it."""
        return not self.terms and not any(isinstance(each, PodTerm) for each in self.wished)


class _PlacedPod(msgspec.Struct):
    needs: PodNeeds
    node: str
    counting: tuple[PodTerm, ...]


class RuleMark(msgspec.Struct):
    """Static rules, the name of their mark, the nodes that have it, and how many use it."""

    rules: NodeRules | NodeWish
    name: str
    admitted: set[str]
    users: int = 0
    #: How many nodes are not admitted for each reason; None if that is not up to date.
    reasons: Counter[str] | None = None


class Rulebook:
    """`mark` is `Host.mark`."""

    def __init__(self, mark: Callable[[str, str, Sequence[str], bool], None]) -> None:
        self._mark = mark
        self.nodes: dict[str, Node] = {}
        #: Whether there ever was a node that pods had better avoid.
        self.has_soft_taints = False
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._namespace_changes = 0
        #: By the key of the rules.
        self._rules: dict[bytes, RuleMark] = {}
        self._terms: dict[str, PodTerm] = {}
        #: Names of terms, by the names and details of their plans.
        self._names: dict[tuple[str, bytes], str] = {}
        #: By number, in the order in which they were made.
        self._avoiding: dict[int, Avoiding] = {}
        self._avoiding_made = 0
        #: Rules and terms without users, the longest unused first.
        self._unused: dict[bytes | str, None] = {}
        #: The nodes that have the mark of each term.
        self._open: dict[str, set[str]] = {}
        #: Nodes by topology key and domain.
        self._members: dict[str, dict[str, dict[str, None]]] = {}
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
        self.has_soft_taints = self.has_soft_taints or has_soft_taint([node])
        self._enter_domains(node)
        for mark in self._rules.values():
            mark.reasons = None
            self._set_mark(mark.name, mark.admitted, [node.name], mark.rules.admits(node))
        for term in self._terms.values():
            self._refresh(term, [node.name])

    def remove_node(self, name: str) -> None:
        """The node is gone, and so are its pods."""
        node = self.nodes.pop(name, None)
        if node is None:
            return
        self._leave_domains(node)
        for uid in list(self._on_node.pop(name, ())):
            self._placed.pop(uid, None)
        for mark in self._rules.values():
            mark.reasons = None
            mark.admitted.discard(name)
        for marked in self._open.values():
            marked.discard(name)

    def _enter_domains(self, node: Node) -> None:
        for key in self._members:
            domain = domain_of(node, key)
            if domain is not None:
                self._members[key].setdefault(domain, {})[node.name] = None
        for term in self._terms.values():
            self._count_node(term, node, 1)

    def _leave_domains(self, node: Node) -> None:
        for term in self._terms.values():
            self._count_node(term, node, -1)
        for key, domains in self._members.items():
            domain = domain_of(node, key)
            if domain is not None:
                domains[domain].pop(node.name, None)
                if not domains[domain]:
                    del domains[domain]

    def _count_node(self, term: PodTerm, node: Node, change: int) -> None:
        """The node's pods count for the term, and the node itself if pods spread over it."""
        domain = domain_of(node, term.topology_key)
        if domain is None or not term.counts_node(node):
            return
        is_wide = isinstance(term, SpreadOut) and term.add_node(domain, change)
        for uid in self._on_node.get(node.name, ()):
            if term in self._placed[uid].counting:
                is_wide = term.add(domain, change) or is_wide
        self._refresh_domain(term, domain, is_wide=is_wide)

    # Marks.

    def _set_mark(
        self, attribute: str, having: set[str], names: Iterable[str], is_given: bool
    ) -> None:
        changed = [name for name in names if (name in having) != is_given]
        if not changed:
            return
        having.symmetric_difference_update(changed)
        self._mark(attribute, MACHINE_GROUP, changed, is_given)

    def _refresh_domain(self, term: PodTerm, domain: str, *, is_wide: bool) -> None:
        """A count has changed: the domain, or all of them, may have opened or closed."""
        if is_wide:
            for sibling in term.siblings:
                self._refresh_domains(sibling, list(self._members[sibling.topology_key]))
        domains = list(self._members[term.topology_key]) if is_wide else [domain]
        self._refresh_domains(term, domains)

    def _refresh_domains(self, term: PodTerm, domains: Iterable[str]) -> None:
        for each in domains:
            is_open = term.is_open(each)
            if term.shown.get(each) is is_open:
                continue
            term.shown[each] = is_open
            members, having = self._members[term.topology_key].get(each, {}), self._open[term.name]
            changed = [name for name in members if (name in having) != is_open]
            if not changed:
                continue
            having.symmetric_difference_update(changed)
            if term.topology_key in GROUP_KEYS and len(changed) == len(members):
                self._mark(term.name, term.topology_key, [each], is_open)
            else:
                self._mark(term.name, MACHINE_GROUP, changed, is_open)

    def _refresh(self, term: PodTerm, names: Iterable[str]) -> None:
        having = self._open[term.name]
        by_openness: dict[bool, list[str]] = {True: [], False: []}
        for name in names:
            domain = domain_of(self.nodes[name], term.topology_key)
            is_open = term.is_open(domain)
            by_openness[is_open].append(name)
            if domain is not None:
                term.shown[domain] = is_open
        for is_open, group in by_openness.items():
            self._set_mark(term.name, having, group, is_open)

    def members(self, group: str, sets: Iterable[str]) -> Iterable[str]:
        """The nodes of sets that a mark was given to."""
        if group == MACHINE_GROUP:
            return sets
        return [name for each in sets for name in self._members.get(group, {}).get(each, ())]

    def mark_all(self) -> None:
        """Makes all marks anew, for a host that knows none of them."""
        for mark in self._rules.values():
            if mark.admitted:
                self._mark(mark.name, MACHINE_GROUP, list(mark.admitted), True)
        for name, having in self._open.items():
            if having:
                self._mark(name, MACHINE_GROUP, list(having), True)

    # What pods need.

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        if self._namespaces.get(name) != labels:
            self._namespaces[name] = dict(labels)
            self._namespace_changes += 1
            self._recount()

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        return self._namespaces.get(namespace, {})

    def needs(
        self,
        pod: Pod,
        volumes: Sequence[NodeSelector] = (),
        claims: Sequence[str] = (),
        *,
        heeds_wishes: bool = False,
    ) -> PodNeeds:
        """What the pod requires. Until `release` it is one of the users of its rules and terms.
        `volumes` say where its volumes can be used, and `claims` are those that it uses alone.
        `heeds_wishes` is whether its scheduler heeds what it would rather have."""
        rules = NodeRules.of(pod, volumes)
        family = self._terms_of(affinity_plans(pod, self._labels_of))
        self._relate(list(family.values()))
        avoided, avoiding = anti_affinity_plans(pod)
        respected, used = port_plans(pod)
        alone = claim_plans(pod, claims)
        terms = family | self._terms_of([*avoided, *spread_plans(pod, rules), *respected, *alone])
        brings = self._terms_of([*avoiding, *used, *alone])
        mark = self._static(rules)
        names = [mark.name, *terms]
        needs = PodNeeds(
            rules,
            tuple(terms.values()),
            tuple(brings.values()),
            self.counted(pod, brings),
            dict.fromkeys(names, _TRUE),
        )
        self._use(mark)
        for term in (*needs.terms, *needs.brings):
            self._use(term)
        if heeds_wishes:
            self._add_wishes(needs, pod)
        self._add_avoiding(needs)
        self._tidy_up()
        return needs

    def _add_wishes(self, needs: PodNeeds, pod: Pod) -> None:
        for wish, weight in node_wishes(pod, has_soft_taints=self.has_soft_taints):
            self._add_wish(needs, self._static(wish), weight)
        for plan, weight in pod_wishes(pod, needs.rules):
            self._add_wish(needs, self._term(plan), weight)

    def _add_wish(self, needs: PodNeeds, wished: PodTerm | RuleMark, weight: int) -> None:
        self._use(wished)
        needs.wished = (*needs.wished, wished)
        needs.wishes[wished.name] = needs.wishes.get(wished.name, 0) + weight

    def presence(self, pod: Pod, claims: Sequence[str] = ()) -> PodNeeds:
        """The same for a pod that is on its node and stays there: only what it brings matters."""
        avoiding, used = anti_affinity_plans(pod)[1], port_plans(pod)[1]
        brings = self._terms_of([*avoiding, *used, *claim_plans(pod, claims)])
        needs = PodNeeds(
            NodeRules(),
            (),
            tuple(brings.values()),
            self.counted(pod, brings),
            {},
        )
        for term in needs.brings:
            self._use(term)
        self._tidy_up()
        return needs

    def _add_avoiding(self, needs: PodNeeds) -> None:
        """Pods that avoid this one may have come after it."""
        if needs.namespace_changes != self._namespace_changes:
            needs.namespace_changes, needs.avoiding_seen = self._namespace_changes, 0
        if needs.avoiding_seen >= self._avoiding_made:
            return
        for number, term in self._avoiding.items():
            if number <= needs.avoiding_seen or term.name in needs.attributes:
                continue
            if term.concerns(needs.counted, self._labels_of):
                needs.terms = (*needs.terms, term)
                needs.attributes[term.name] = _TRUE
                self._use(term)
        needs.avoiding_seen = self._avoiding_made

    def _use(self, used: PodTerm | RuleMark) -> None:
        used.users += 1
        if used.users == 1:
            self._unused.pop(_key_of(used), None)

    def _give_up(self, used: PodTerm | RuleMark) -> None:
        used.users -= 1
        if not used.users:
            self._unused[_key_of(used)] = None

    def _tidy_up(self) -> None:
        """Forgets what has not been used for long."""
        while len(self._unused) > MOST_UNUSED:
            key = next(iter(self._unused))
            del self._unused[key]
            if isinstance(key, bytes):
                mark = self._rules.pop(key)
                name, having = mark.name, mark.admitted
            else:
                name, having = key, self._open.pop(key)
                self._forget_term(self._terms.pop(key))
            if having:
                self._mark(name, MACHINE_GROUP, list(having), False)

    def _forget_term(self, term: PodTerm) -> None:
        self._counting.clear()
        self._names = {plan: name for plan, name in self._names.items() if name != term.name}
        self._avoiding = {
            number: each for number, each in self._avoiding.items() if each is not term
        }
        for sibling in term.siblings:
            sibling.siblings = tuple(each for each in sibling.siblings if each is not term)
        for placed in self._placed.values():
            if term in placed.counting:
                placed.counting = tuple(each for each in placed.counting if each is not term)

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
        for used in (*needs.terms, *needs.brings, *needs.wished):
            self._give_up(used)
        mark = self._rules.get(needs.rules.key())
        if mark is not None and mark.name in needs.attributes:
            self._give_up(mark)
        self._tidy_up()

    def _static(self, rules: NodeRules | NodeWish) -> RuleMark:
        key = rules.key()
        known = self._rules.get(key)
        if known is None:
            kind = "wish" if isinstance(rules, NodeWish) else "node rules"
            described = f"{kind}: {rules.describe()}"
            taken = {mark.name for mark in self._rules.values()}
            name, number = described, 1
            while name in taken:
                number += 1
                name = f"{described} ({number})"
            known = self._rules[key] = RuleMark(rules, name, set())
            self._unused[key] = None
            allowed = [node.name for node in self.nodes.values() if rules.admits(node)]
            self._set_mark(name, known.admitted, allowed, True)
        return known

    def _terms_of(self, plans: Iterable[TermPlan]) -> dict[str, PodTerm]:
        terms = [self._term(plan) for plan in plans]
        return {term.name: term for term in terms}

    def _relate(self, family: Sequence[PodTerm]) -> None:
        """Terms of the affinity of one pod by different keys: where its first pod is, all look."""
        if len(family) < 2 or all(each.siblings for each in family):
            return
        for term in family:
            term.siblings = tuple(each for each in family if each is not term)
        for term in family:
            self._refresh(term, list(self.nodes))

    def _term(self, plan: TermPlan) -> PodTerm:
        identity = (plan.name, plan.details)
        term = self._terms.get(self._names.get(identity, ""))
        if term is None:
            key, name, number = plan.topology_key, plan.name, 1
            while name in self._terms:
                number += 1
                name = f"{plan.name} ({number})"
            self._names[identity] = name
            term = self._terms[name] = plan.make(name, key)
            self._open[name] = set()
            self._unused[name] = None
            if isinstance(term, Avoiding):
                self._avoiding_made += 1
                self._avoiding[self._avoiding_made] = term
            self._counting.clear()
            if key not in self._members:
                members = self._members[key] = {}
                for node in self.nodes.values():
                    domain = domain_of(node, key)
                    if domain is not None:
                        members.setdefault(domain, {})[node.name] = None
            self._count_all(term)
            self._refresh(term, list(self.nodes))
        return term

    def _count_all(self, term: PodTerm) -> None:
        for node in self.nodes.values():
            domain = domain_of(node, term.topology_key)
            if domain is not None and isinstance(term, SpreadOut) and term.counts_node(node):
                term.add_node(domain, 1)
        for placed in self._placed.values():
            if not term.counts_pod(placed.needs.counted, self._labels_of):
                continue
            placed.counting = (*placed.counting, term)
            node = self.nodes[placed.node]
            domain = domain_of(node, term.topology_key)
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
        for term in needs.terms:
            if not term.is_open(domain_of(node, term.topology_key)):
                return term
        return None

    def reasons(self, needs: PodNeeds) -> dict[str, int]:
        """How many nodes are not admissible for each reason, each node for the first that applies."""
        mark = self._rules.get(needs.rules.key())
        if mark is None:
            return {}
        if mark.reasons is None:
            mark.reasons = Counter(
                mark.rules.reason(node)
                for name, node in self.nodes.items()
                if name not in mark.admitted
            )
        found, left = Counter(mark.reasons), mark.admitted
        for term in needs.terms:
            still = left & self._open[term.name]
            found[term.reason] += len(left) - len(still)
            left = still
        return {reason: count for reason, count in found.items() if count}

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

    @property
    def is_unused(self) -> bool:
        """Whether no pod has to respect anything, or brings anything."""
        return len(self._unused) == len(self._rules) + len(self._terms)

    def pods_on(self, name: str) -> list[str]:
        """The uids of the pods on a node, or on their way to it."""
        return list(self._on_node.get(name, ()))

    def is_counted(self, pod: CountedPod) -> bool:
        """Whether any rule about other pods looks at such a pod."""
        return bool(self._counting_of(pod))

    def _count(self, counting: Iterable[PodTerm], name: str, change: int) -> None:
        node = self.nodes.get(name)
        if node is None:
            return
        for term in counting:
            domain = domain_of(node, term.topology_key)
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


def _key_of(used: PodTerm | RuleMark) -> bytes | str:
    return used.rules.key() if isinstance(used, RuleMark) else used.name


_ENCODE = msgspec.json.Encoder(order="sorted").encode


def describe_obstacle(obstacle: PodTerm | NodeRules) -> str:
    """What keeps a pod from a node, in words that pods' authors know."""
    return obstacle.name if isinstance(obstacle, PodTerm) else f"node rules: {obstacle.describe()}"
