"""Yaq-d: queues at machines under several schedulers (Rasley et al., EuroSys 2016).

Machines report in heartbeats how long they expect to be busy; schedulers use the last report.
"""

from argosy.engines.yaq_d.engine import YaqD, YaqDSettings

__all__ = ["YaqD", "YaqDSettings"]
