"""ILP-ALL: one scheduler, the integer program, for applications and tasks alike.

The Medea paper's argument for two schedulers: everything waits for the interval and pays for the solver.
"""

from argosy.engines.ilp_all.engine import IlpAll

__all__ = ["IlpAll"]
