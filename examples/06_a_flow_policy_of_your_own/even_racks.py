"""A flow policy of your own for `firmament`: racks get tasks in turn, whatever their size.

    task -> pool -> rack -> machine -> sink

Each further task of a rack costs `per_task` more than the one before it. The arc to a rack is only for
tasks that start or move; those that run have arcs of their own, so the first pass counts them.
"""

import numpy as np

from argosy.engines.families.flow.policy import ArcCosts, LinkTerms, Policy, Topology, grouped

MANY = 1_000_000


class EvenRacks(Policy):
    name = "even-racks"

    def topology(self) -> Topology:
        return grouped(self.cluster.racks)

    def gather(self, statistics) -> None:
        """The first pass over the network: what this round's costs depend on."""
        self.running = np.bincount(self.cluster.racks, statistics.own_tasks).astype(np.int64)

    def link_terms(self, request) -> LinkTerms:
        """The second pass: capacities and costs of the arcs to racks."""
        step = self.settings.per_task
        return LinkTerms(MANY, ArcCosts(step * self.running, step))
