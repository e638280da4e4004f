"""Partitioned: every scheduler has a fixed part of the machines for itself.

The statically partitioned baseline of the Omega paper (section 3.2): no interference, because no
machine is ever chosen by two schedulers, at the price of parts that are full while others stand idle.
"""

from argosy.engines.partitioned.engine import Partitioned, PartitionedSettings

__all__ = ["Partitioned", "PartitionedSettings"]
