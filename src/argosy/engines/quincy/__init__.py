"""Quincy: the flow scheduler that Firmament is measured against.

Charter: the same rounds, with the locality policy, and every flow solved from scratch.
"""

from argosy.engines.quincy.engine import Quincy, QuincySettings

__all__ = ["Quincy", "QuincySettings"]
