"""The policies, one per module, and their names."""

from __future__ import annotations

from argosy.engines.api import RunFacts, SettingMismatch
from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.policies.load_spreading import LoadSpreading
from argosy.engines.families.flow.policies.multi_dimensional import MultiDimensional
from argosy.engines.families.flow.policies.network_aware import NetworkAware
from argosy.engines.families.flow.policies.quincy import QuincyPolicy
from argosy.engines.families.flow.policy import Policy
from argosy.engines.families.flow.settings import FlowSettings


def policy_mismatch(settings: FlowSettings, facts: RunFacts) -> SettingMismatch | None:
    """What the policy needs and the run has not."""
    if settings.policy != "network-aware" or settings.bandwidth in facts.dimensions:
        return None
    return SettingMismatch(
        ("policy",),
        f"the policy network-aware needs the resource {settings.bandwidth!r}, which no machine has",
        expected="machines that have it, or the setting bandwidth to be one of "
        + ", ".join(facts.dimensions),
        hint=f"add {settings.bandwidth} to the capacity of machines, or choose another policy",
    )


def make_policy(
    settings: FlowSettings, cluster: MachineVertices, dimensions: tuple[str, ...]
) -> Policy:
    match settings.policy:
        case "load-spreading":
            return LoadSpreading(settings)
        case "quincy":
            return QuincyPolicy(settings, cluster)
        case "network-aware":
            return NetworkAware(settings, dimensions)
        case "multi-dimensional":
            return MultiDimensional(settings)
