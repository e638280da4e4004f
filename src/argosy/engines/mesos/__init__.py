"""Mesos: two-level scheduling by resource offers (Hindman et al., NSDI 2011).

A central allocator offers all available resources to one framework at a time, the one furthest below
its fair share by dominant resource fairness, and the framework holds them while it decides: pessimistic
locking. Modelled as in section 4.2 of the Omega paper, with its suggested fix, fair-share offers, as a
setting. Each kind of job is a framework; gang jobs hoard resources until they have all they need.
"""

from argosy.engines.mesos.engine import Mesos, MesosSettings

__all__ = ["Mesos", "MesosSettings"]
