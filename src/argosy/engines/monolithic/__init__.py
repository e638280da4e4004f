"""Monolithic: one scheduler for all jobs, one job at a time.

The baseline of the Omega paper (section 4.1). Single-path: every job takes the same decision time.
Multi-path: kinds of jobs can have a decision time of their own, but still wait for each other in one
queue, so that a slow decision blocks the jobs behind it.
"""

from argosy.engines.monolithic.engine import Monolithic, MonolithicSettings

__all__ = ["Monolithic", "MonolithicSettings"]
