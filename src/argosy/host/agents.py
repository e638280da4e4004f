"""The clusters of a federation as its agents see them: which machines each answers for."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Rule, View, to_mask
from argosy.cell.search import Found
from argosy.host.scheduler import Scheduler
from argosy.model.effects import Sample
from argosy.model.errors import EngineFault, did_you_mean
from argosy.model.machines import CLUSTER_GROUP, Cluster
from argosy.model.random import Random
from argosy.model.transactions import Claims

#: Padding in rows of alternatives.
_NO_MACHINE: Final = -1
_FEW: Final = 16


class Agents:
    """Checks and answers requests to cluster agents. A cell that is not a federation is a single
    cluster with an empty name."""

    def __init__(self, clusters: tuple[Cluster, ...], view: View, random: Random) -> None:
        self._view = view
        # Each agent has its own stream, so requests to one do not affect the answers of another.
        self._randoms = {"": random.child("agent")}
        for cluster in clusters:
            self._randoms[cluster.name] = random.child(f"agent of {cluster.name}")

    def check_known(self, scheduler: Scheduler, cluster: str, does: str) -> None:
        if cluster in self._randoms:
            return
        names = [name for name in self._randoms if name]
        raise EngineFault(
            f"{scheduler.name} {does} a cluster of another name: there is no cluster {cluster!r}",
            expected="one of " + ", ".join(names)
            if names
            else "the one cluster, which has no name",
            hint=did_you_mean(cluster, names),
        )

    def check_claims(self, scheduler: Scheduler, cluster: str, claims: Claims | None) -> None:
        """Raises a fault if a claimed machine, alternatives included, is outside the cluster."""
        self.check_known(scheduler, cluster, "commits to")
        if claims is None:
            return
        self._check_machines(scheduler, cluster, claims.machines)
        if claims.alternatives is not None:
            named = claims.alternatives[claims.alternatives != _NO_MACHINE]
            self._check_machines(scheduler, cluster, named)

    def _check_machines(
        self, scheduler: Scheduler, cluster: str, machines: NDArray[np.int32]
    ) -> None:
        count = self._view.machines
        is_machine = (machines >= 0) & (machines < count)
        # The cell refuses numbers that are not machines, as it does without clusters.
        known = machines[is_machine]
        if len(known) <= _FEW:
            # In a large federation, to look up a few machines is much cheaper than a set of all.
            sets_of = self._view.sets_of
            if all(cluster in sets_of(each, CLUSTER_GROUP) for each in known.tolist()):
                return
        is_own = to_mask(self._view.members(CLUSTER_GROUP, cluster), count)[known]
        if is_own.all():
            return
        machine = int(known[~is_own][0])
        where = ", ".join(self._view.sets_of(machine, CLUSTER_GROUP)) or "no cluster"
        raise EngineFault(
            f"{scheduler.name} commits to cluster {cluster!r} a claim of machine "
            f"{self._view.machine_name(machine)!r}, which is in {where}",
            expected=f"machines of {cluster}, or a commit without a cluster",
        )

    def sample(self, asked: Sample) -> Found:
        view = self._view
        shape = view.shape(asked.request)
        within = view.where(asked.requires) if asked.requires else None
        if asked.cluster:
            members = view.members(CLUSTER_GROUP, asked.cluster)
            within = members if within is None else within & members
        random = self._randoms[asked.cluster]
        return view.find(shape, asked.count, Rule.SAMPLE, random, within=within)
