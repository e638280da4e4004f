"""Monolithic: one scheduler for all jobs, one job at a time.

The baseline of the Omega paper (section 4.1). Single-path: every job takes the same decision time.
Multi-path: each kind of job may have its own decision time, but all still share one queue, so a slow
decision blocks the jobs behind it.
"""

from argosy.engines.monolithic.engine import Monolithic, MonolithicSettings

__all__ = ["Monolithic", "MonolithicSettings"]
