"""Kubernetes' scheduler: one task at a time, filter and score, and a queue for what found no room.

Modelled after kube-scheduler 1.23 as the Murmuration paper (section 2.3) describes and varies it.
"""

from argosy.engines.kube.engine import Kube, KubeSettings

__all__ = ["Kube", "KubeSettings"]
