"""Which terms a pod has to respect, and which it brings with it.

A *plan* names a term and says how it is made, should there be none like it yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import msgspec

from argosy.kubernetes.objects import (
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.terms import (
    CLUSTER,
    NODE_NAME,
    Attracted,
    Avoided,
    Avoiding,
    Brought,
    InUse,
    NamespaceLabels,
    PodScope,
    PodTerm,
    SpreadOut,
    spread_selector,
)

#: `::` is one address among others to Kubernetes.
_ANY_IP: Final = ("", "0.0.0.0")
_SIDECAR: Final = "Always"
_MUST: Final = "DoNotSchedule"


class TermPlan(msgspec.Struct, frozen=True):
    """`name` is for people. Where it leaves something out, `details` tell terms apart."""

    name: str
    topology_key: str
    make: Callable[[str, str], PodTerm]
    details: bytes = b""


def _required(wanted: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    return wanted.required_during_scheduling_ignored_during_execution if wanted else ()


def _scope(pod: Pod, term: PodAffinityTerm) -> PodScope:
    return PodScope.of(term, pod.metadata.namespace, pod.metadata.labels)


def affinity_plans(pod: Pod, namespace_labels: NamespaceLabels) -> list[TermPlan]:
    """One for each topology key."""
    affinity, metadata = pod.spec.affinity, pod.metadata
    required = _required(affinity.pod_affinity if affinity is not None else None)
    scopes = tuple(
        {str(scope): scope for scope in (_scope(pod, each) for each in required)}.values()
    )
    of_namespace = namespace_labels(metadata.namespace)
    is_own = all(scope.has(metadata.namespace, metadata.labels, of_namespace) for scope in scopes)
    keys = tuple(dict.fromkeys(each.topology_key for each in required))
    said = " and ".join(map(str, scopes)) + " by {}" + ("" if is_own else " (others)")
    if len(keys) > 1:
        said += f", with {' and '.join(keys)}"
    make = partial(Attracted, scopes=scopes, is_in_scopes=is_own)
    return [TermPlan("near pods " + said.format(key), key, make) for key in keys]


def anti_affinity_plans(pod: Pod) -> tuple[list[TermPlan], list[TermPlan]]:
    """What the pod avoids, and what keeps those away that it avoids."""
    affinity = pod.spec.affinity
    respected, brought = [], []
    for each in _required(affinity.pod_anti_affinity if affinity is not None else None):
        scope, key = _scope(pod, each), each.topology_key
        avoided = f"away from pods {scope} by {key}"
        avoiding = f"away from pods that avoid {scope} by {key}"
        respected.append(TermPlan(avoided, key, partial(Avoided, scope=scope)))
        brought.append(TermPlan(avoiding, key, partial(Avoiding, scope=scope)))
    return respected, brought


def spread_plans(pod: Pod, rules: NodeRules) -> list[TermPlan]:
    """`rules` are the pod's."""
    required = [
        each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == _MUST
    ]
    keys = tuple(sorted({each.topology_key for each in required}))
    return [spread_plan(pod, each, keys, rules) for each in required]


def spread_plan(
    pod: Pod, constraint: TopologySpreadConstraint, keys: tuple[str, ...], rules: NodeRules
) -> TermPlan:
    labels, key = pod.metadata.labels, constraint.topology_key
    selector = spread_selector(constraint.label_selector, labels, constraint.match_label_keys)
    scope = PodScope(selector, (pod.metadata.namespace,))
    follows_rules = constraint.node_affinity_policy != "Ignore"
    honours_taints = constraint.node_taints_policy == "Honor"
    kept = NodeRules(
        selector=rules.selector if follows_rules else {},
        affinity=rules.affinity if follows_rules else None,
        tolerations=rules.tolerations if honours_taints else (),
    )
    counts_itself = scope.has(pod.metadata.namespace, labels, {})
    name = f"pods {scope} spread over {key}, skew at most {constraint.max_skew}"
    if constraint.min_domains:
        name += f", at least {constraint.min_domains} domains"
    if not counts_itself:
        name += ", not counting itself"
    if (follows_rules and kept != NodeRules()) or honours_taints:
        name += f", among nodes with {kept.describe()}"
    if honours_taints:
        name += " and no other taints"
    if len(keys) > 1:
        name += f", with {' and '.join(keys)}"
    make = partial(
        SpreadOut,
        scope=scope,
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains or 1,
        counts_itself=counts_itself,
        other_keys=tuple(other for other in keys if other != key),
        rules=kept if follows_rules or honours_taints else None,
        honours_taints=honours_taints,
    )
    return TermPlan(name, key, make, kept.key())


def claim_plans(pod: Pod, claims: Iterable[str]) -> list[TermPlan]:
    """Claims that one pod at a time may use: the pod respects and brings the same terms."""
    return [TermPlan(f"claim {pod.namespace}/{name} not in use", CLUSTER, InUse) for name in claims]


def port_plans(pod: Pod) -> tuple[list[TermPlan], list[TermPlan]]:
    """What must be free, and what the pod takes. A port on every address collides with the same port on
    any address."""
    ports = dict.fromkeys(
        (port.protocol, port.host_port, "" if port.host_ip in _ANY_IP else port.host_ip)
        for port in _host_ports(pod)
    )
    respected: dict[str, TermPlan] = {}
    brought: dict[str, TermPlan] = {}
    for protocol, port, address in ports:
        everywhere = f"host port {port}/{protocol} free on every address"
        somewhere = f"host port {port}/{protocol} free on any address"
        at_address = f"host port {port}/{protocol} free on {address}"
        respects, uses = (
            ([everywhere], [everywhere, somewhere])
            if not address
            else ([somewhere, at_address], [everywhere, at_address])
        )
        respected.update((name, TermPlan(name, NODE_NAME, Brought)) for name in respects)
        brought.update((name, TermPlan(name, NODE_NAME, Brought)) for name in uses)
    return list(respected.values()), list(brought.values())


def _host_ports(pod: Pod) -> Iterable[ContainerPort]:
    # Init containers other than sidecars are gone before long.
    sidecars = [each for each in pod.spec.init_containers if each.restart_policy == _SIDECAR]
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port > 0:
                yield port
