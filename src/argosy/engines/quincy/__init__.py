"""Quincy: the flow scheduler that Firmament is measured against.

Charter: the same rounds and the locality policy, with the flow found from scratch every time.
"""

from argosy.engines.quincy.engine import Quincy, QuincySettings

__all__ = ["Quincy", "QuincySettings"]
