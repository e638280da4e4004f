"""Random streams: counter-based, handed in by the run, the same on every machine."""

from argosy._core import Random, exact_exp, exact_log

__all__ = ["Random", "exact_exp", "exact_log"]
