"""ILP-ALL: one scheduler, with one integer program for both applications and tasks.

The Medea paper's argument for two schedulers: here every task waits for the interval and the solver.
"""

from argosy.engines.ilp_all.engine import IlpAll

__all__ = ["IlpAll"]
