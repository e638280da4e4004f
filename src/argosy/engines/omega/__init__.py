"""Omega: shared-state scheduling with optimistic transactions (Schwarzkopf et al., EuroSys 2013).

Each scheduler decides on the cell as it is when the decision begins, and commits when the decision time
has passed; the cell then checks the transaction. After a conflict, the remaining tasks are tried again.
"""

from argosy.engines.omega.engine import Omega, OmegaSettings

__all__ = ["Omega", "OmegaSettings"]
