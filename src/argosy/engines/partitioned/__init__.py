"""Partitioned: every scheduler has its own fixed part of the machines.

The statically partitioned baseline of the Omega paper (section 3.2): no interference, because
no two schedulers share a machine; but one part may be full while another is idle.
"""

from argosy.engines.partitioned.engine import Partitioned, PartitionedSettings

__all__ = ["Partitioned", "PartitionedSettings"]
