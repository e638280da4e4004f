"""A Kubernetes control plane that is thrown away: real programs on loopback, for tests and for trying.

Charter: starts etcd, kube-apiserver and, where wanted, kube-controller-manager, kube-scheduler and kwok,
kills and restarts them, and leaves nothing behind, however its user ends. It needs the standard library
and msgspec alone, and no root. It decides nothing and knows nothing of Argosy's own client.
"""

from argosy.kubernetes.control_plane.admin import RequestRefused
from argosy.kubernetes.control_plane.failures import ControlPlaneError
from argosy.kubernetes.control_plane.plane import ControlPlane
from argosy.kubernetes.control_plane.programs import KubeProgram
from argosy.kubernetes.control_plane.tools import KubeTools, KubeToolsMissing, find_tools

__all__ = [
    "ControlPlane",
    "ControlPlaneError",
    "KubeProgram",
    "KubeTools",
    "KubeToolsMissing",
    "RequestRefused",
    "find_tools",
]
