"""Firmament: min-cost max-flow over the whole workload, from the last flow and prices.

Charter: events edit one network, every round finds the optimum again from what is known, and one
transaction places, migrates and preempts. Policies are settings.
"""

from argosy.engines.firmament.engine import Firmament, FirmamentSettings

__all__ = ["Firmament", "FirmamentSettings"]
