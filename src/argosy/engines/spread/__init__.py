"""Spread: Docker SwarmKit's scheduler, a baseline of the Firmament paper.

Charter: each task goes to the machine that has the fewest tasks of its job, among those to the one with
the fewest tasks in all, among those that have room.
"""

from argosy.engines.spread.engine import Spread, SpreadSettings

__all__ = ["Spread", "SpreadSettings"]
