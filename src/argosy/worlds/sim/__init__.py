"""The simulated world: virtual time, modelled machines and network, deterministic from one seed."""

from argosy._core import TaskState
from argosy.worlds.sim.world import SimulatedWorld

__all__ = ["SimulatedWorld", "TaskState"]
