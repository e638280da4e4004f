"""Firmament: min-cost max-flow over the whole workload, from the last flow and prices.

Charter: events update one network, every round finds the new optimum from the last one, and one
transaction places, migrates and preempts. The policy is a setting.
"""

from argosy.engines.firmament.engine import Firmament, FirmamentSettings

__all__ = ["Firmament", "FirmamentSettings"]
