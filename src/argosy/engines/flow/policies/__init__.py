"""The policies: one a module, all of them by name."""

from __future__ import annotations

from argosy.engines.flow.cluster import Cluster
from argosy.engines.flow.policies.load_spreading import LoadSpreading
from argosy.engines.flow.policies.multi_dimensional import MultiDimensional
from argosy.engines.flow.policies.network_aware import NetworkAware
from argosy.engines.flow.policies.quincy import Quincy
from argosy.engines.flow.policy import Policy
from argosy.engines.flow.settings import FlowSettings


def make_policy(settings: FlowSettings, cluster: Cluster, dimensions: tuple[str, ...]) -> Policy:
    match settings.policy:
        case "load-spreading":
            return LoadSpreading(settings)
        case "quincy":
            return Quincy(settings, cluster)
        case "network-aware":
            return NetworkAware(settings, dimensions)
        case "multi-dimensional":
            return MultiDimensional(settings)
