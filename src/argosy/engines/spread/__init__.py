"""Spread: Docker SwarmKit's scheduler, a baseline of the Firmament paper.

Charter: among machines with room, each task goes to the one with the fewest tasks of its job; ties go to
the one with the fewest tasks in total.
"""

from argosy.engines.spread.engine import Spread, SpreadSettings

__all__ = ["Spread", "SpreadSettings"]
