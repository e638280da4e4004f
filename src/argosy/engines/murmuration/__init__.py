"""Murmuration: decentralised scheduling for the tail (Vijayakumar et al., SoCC 2024).

Every scheduler tracks the expected wait at every machine, places each task once on the machine with the
smallest, and gossips its placements. Tasks wait in queues at the machines; there are no conflicts.

    engine      jobs in order, one attempt per task
    estimates   running times learnt from finished jobs
    peers       views for restarted schedulers, and repairs of lost messages
    settings    settings
"""

from argosy.engines.murmuration.engine import Murmuration
from argosy.engines.murmuration.settings import MurmurationSettings

__all__ = ["Murmuration", "MurmurationSettings"]
