"""Kubernetes' scheduler: one task at a time, filter and score, and a queue for tasks without room.

Modelled on kube-scheduler 1.23, as described and varied in the Murmuration paper (section 2.3).
"""

from argosy.engines.kube.engine import Kube, KubeSettings

__all__ = ["Kube", "KubeSettings"]
