"""Kubernetes' algorithm for constrained applications, as the Medea paper measures it.

One container at a time, by a score of constraints, room and balance. `jkube` supports affinity and
anti-affinity, `jkube++` also cardinality, and `kube-modern` what today's Kubernetes supports: hard upper
limits.
"""

from argosy.engines.jkube.engine import JKube, JKubePlus, KubeModern

__all__ = ["JKube", "JKubePlus", "KubeModern"]
