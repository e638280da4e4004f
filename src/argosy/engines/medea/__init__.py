"""Medea: two schedulers, one of them for long-running applications (Garefalakis et al., EuroSys 2018).

Applications with placement constraints are collected per interval and placed together by an integer
program, or by one of the paper's heuristics; tasks go through queues at once. All allocations are made
by the task scheduler. `docs/constraints.md` describes the constraints, and design record 14 how the
program is read.
"""

from argosy.engines.medea.engine import Medea, MedeaSettings

__all__ = ["Medea", "MedeaSettings"]
