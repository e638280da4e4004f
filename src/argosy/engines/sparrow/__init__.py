"""Sparrow: batch sampling and late binding (Ousterhout et al., SOSP 2013).

A job of m tasks puts probes into the queues of d x m random machines; the first m machines that are
ready get its tasks, and the other probes are cancelled.
"""

from argosy.engines.sparrow.engine import Sparrow, SparrowSettings

__all__ = ["Sparrow", "SparrowSettings"]
