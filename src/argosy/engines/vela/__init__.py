"""Vela: sampling, decision and commit over the agents of many clusters (Pusztai et al., 2023).

A scheduler holds no state of any cluster. For each task it asks the agents of some clusters for machines
that fit, chooses the best of them, and has one agent after another try to commit the task until one
succeeds (MultiBind). Otherwise the task is rescheduled. Record 25 says how the paper is read.
"""

from argosy.engines.vela.engine import Vela
from argosy.engines.vela.settings import VelaSettings

__all__ = ["Vela", "VelaSettings"]
