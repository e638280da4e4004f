"""YARN without constraints: the Medea paper's constraint-unaware baseline.

Containers go to machines in the order in which these report; constraints are ignored.
"""

from argosy.engines.yarn.engine import Yarn

__all__ = ["Yarn"]
