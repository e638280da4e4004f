"""Murmuration: decentralised scheduling for the tail (Vijayakumar et al., SoCC 2024).

Every scheduler keeps the expected wait of every machine, places each task once on the machine with the
smallest, and gossips what it did. Tasks wait in queues at the machines; there are no conflicts.
"""

from argosy.engines.murmuration.engine import Murmuration, MurmurationSettings

__all__ = ["Murmuration", "MurmurationSettings"]
