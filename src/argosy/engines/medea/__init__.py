"""Medea: two schedulers, one of them for long-running applications (Garefalakis et al., EuroSys 2018).

Applications with placement constraints are collected per interval and placed together by an integer
program, or by one of the paper's heuristics; tasks are placed at once, through queues. The task
scheduler makes all allocations. `docs/constraints.md` describes the constraints, and design record
14 how we read the paper's program.
"""

from argosy.engines.medea.engine import Medea, MedeaSettings

__all__ = ["Medea", "MedeaSettings"]
