"""Yaq-d: queues at machines under several schedulers (Rasley et al., EuroSys 2016).

Machines say in heartbeats how long they are expected to be busy; schedulers place by the last.
"""

from argosy.engines.yaq_d.engine import YaqD, YaqDSettings

__all__ = ["YaqD", "YaqDSettings"]
