"""Kubernetes' algorithm for constrained applications, as the Medea paper measures it.

One container at a time, by a score of constraints, room and balance. `jkube` sees affinity and
anti-affinity, `jkube++` cardinality too, and `kube-modern` what today's Kubernetes can say: limits, as
hard ones.
"""

from argosy.engines.jkube.engine import JKube, JKubePlus, KubeModern

__all__ = ["JKube", "JKubePlus", "KubeModern"]
