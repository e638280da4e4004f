"""Murmuration: decentralised scheduling for the tail (Vijayakumar et al., SoCC 2024).

Every scheduler keeps the expected wait of every machine, places each task once on the machine with the
smallest, and gossips what it did. Tasks wait in queues at the machines; there are no conflicts.

    engine      jobs in order, one attempt per task
    estimates   running times learnt from jobs that ended
    peers       views for schedulers that start again, and repairs of lost messages
    settings    what a scheduler can be told
"""

from argosy.engines.murmuration.engine import Murmuration
from argosy.engines.murmuration.settings import MurmurationSettings

__all__ = ["Murmuration", "MurmurationSettings"]
