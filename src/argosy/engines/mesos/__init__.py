"""Mesos: two-level scheduling by resource offers (Hindman et al., NSDI 2011).

A central allocator offers all available resources to one framework at a time, the one furthest below
its fair share by dominant resource fairness, and the framework holds them while it decides: pessimistic
locking. Modelled as section 4.2 of the Omega paper does, with its suggested repair, fair-share offers,
as a setting. Each kind of job is a framework; gang jobs hoard what they were given until all is there.
"""

from argosy.engines.mesos.engine import Mesos, MesosSettings

__all__ = ["Mesos", "MesosSettings"]
