"""Omega: shared-state scheduling with optimistic transactions (Schwarzkopf et al., EuroSys 2013).

Each scheduler decides on the cell as it is when the decision begins, thinks for a while, and commits;
the cell judges the transaction as it is then. Conflicts are retried with what is left of the job.
"""

from argosy.engines.omega.engine import Omega, OmegaSettings

__all__ = ["Omega", "OmegaSettings"]
