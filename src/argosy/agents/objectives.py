"""Plug-ins beyond the Vela paper: service levels, stateful tasks and batch tasks."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from argosy.agents.api import MOST, Nodes, PluginUse, Requirements
from argosy.agents.builtin import number_in
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job

#: Demands of `ServiceLevel`: the longest response in milliseconds, where users are, and how long a
#: request keeps an idle machine of speed 1, in milliseconds.
OBJECTIVE: Final = "objective"
USERS: Final = "users"
WORK: Final = "work"
#: The attribute of machines.
SPEED: Final = "speed"
#: A machine never counts as more than this much in use: what it has left is never nothing.
MOST_USED: Final = 0.95

#: Demands of `Volume`: its name, and whether its task stays on the machine or in the cluster.
VOLUME: Final = "volume"
SCOPE: Final = "volume_scope"
#: The demand of `BatchShare`: up to which share of a machine the task may fill it.
SHARE: Final = "batch_share"


class ServiceLevel:
    """For tasks with an `objective`, the longest response time in milliseconds: the more of it is left,
    the higher the score. A response takes the round trip to the `users` (a place, or several with
    weights as in "vienna=2,rome=1") and their `work`, which takes longer on machines that are slow (the
    attribute `speed`) or in use: an average of M/M/1 queues. Excludes no machine; one that would miss
    the objective scores 0, and so do all if a demand cannot be read."""

    name: ClassVar[str] = "ServiceLevel"

    def concerns(self, task: Requirements, role: PluginUse) -> bool:
        return OBJECTIVE in task.demands

    def score(self, task: Requirements, nodes: Nodes) -> NDArray[np.int64]:
        objective, work = number_in(task, OBJECTIVE, 0.0), number_in(task, WORK, 0.0)
        users = _weights(task.demands.get(USERS, ""))
        if not objective or work is None or users is None:
            return np.zeros(len(nodes), np.int64)
        response = self._trips(users, nodes) + work * self._slowness(nodes)
        left = np.clip(1 - response / objective, 0.0, 1.0)
        return np.asarray(np.floor(MOST * left), np.int64)

    def _trips(self, users: dict[str, float], nodes: Nodes) -> NDArray[np.float64]:
        """The mean round trip to users, in milliseconds; infinite where one is unknown."""
        total, known = sum(users.values()), dict[str, float]()
        for place in set(nodes.places):
            trips = 0.0
            for user, weight in users.items():
                delay = nodes.source.delay(place, user)
                trips += np.inf if delay is None else weight / total * 2 * delay / 1_000
            known[place] = trips
        return np.array([known[place] for place in nodes.each_place()], np.float64)

    def _slowness(self, nodes: Nodes) -> NDArray[np.float64]:
        """How many times longer work takes than on an idle machine of speed 1."""
        speeds = np.array([_positive(text) for text in nodes.labels(SPEED)], np.float64)
        if "cpu" not in nodes.dimensions:
            return 1 / speeds
        column = nodes.dimensions.index("cpu")
        capacity = np.maximum(nodes.capacity[:, column], 1)
        used = np.clip(1 - nodes.free[:, column] / capacity, 0.0, MOST_USED)
        return np.asarray(1 / (speeds * (1 - used)), np.float64)


def _positive(text: str) -> float:
    """1 if there is no such number."""
    try:
        number = float(text)
    except ValueError:
        return 1.0
    return number if 0 < number < np.inf else 1.0


def _weights(text: str) -> dict[str, float] | None:
    """Places with their weights, 1 if none is given; None if they cannot be read."""
    weights: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        place, _, weight = part.strip().partition("=")
        try:
            number = float(weight or 1)
        except ValueError:
            return None
        if not place or not 0 < number < np.inf:
            return None
        weights[place] = number
    return weights


class Volume:
    """For stateful tasks, which demand a `volume`: the first task that uses it may go anywhere, and its
    volume is there from then on. Later ones stay with it: on its machine, or in its cluster, if
    `volume_scope` is "cluster". Machines that come with a volume state it in the attribute `volumes`,
    separated by commas."""

    name: ClassVar[str] = "Volume"

    def concerns(self, task: Requirements, role: PluginUse) -> bool:
        return VOLUME in task.demands

    def keeps(self, task: Requirements, nodes: Nodes) -> NDArray[np.bool_]:
        homes = nodes.source.volume_homes(task.demands.get(VOLUME, ""))
        if not homes:
            return np.ones(len(nodes), np.bool_)
        if task.demands.get(SCOPE) == "cluster":
            clusters = {nodes.source.cluster_of(machine) for machine in homes}
            wanted = [nodes.source.cluster_of(each) in clusters for each in nodes.machines.tolist()]
            return np.array(wanted, np.bool_)
        return np.isin(nodes.machines, list(homes))

    def score(self, task: Requirements, nodes: Nodes) -> NDArray[np.int64]:
        """Among the machines of the cluster, that of the volume itself is best."""
        homes = nodes.source.volume_homes(task.demands.get(VOLUME, ""))
        if not homes:
            return np.full(len(nodes), MOST, np.int64)
        return np.where(np.isin(nodes.machines, list(homes)), MOST, MOST // 2).astype(np.int64)

    def conflict(self, task: Requirements, node: Nodes) -> Refusal | None:
        """Another task may have created the volume elsewhere since the sample."""
        if bool(self.keeps(task, node)[0]):
            return None
        return Refusal(Why.STALE, machine=int(node.machines[0]))


class BatchSort:
    """Services first, then batch jobs: of higher precedence first, then shorter ones by their estimate.
    Jobs without an estimate come last."""

    name: ClassVar[str] = "Batch"

    def rank(self, job: Job, submitted: int) -> tuple[int, ...]:
        if any(group.endless for group in job.groups):
            return (0, -job.precedence, 0, 0)
        estimates = [group.estimate for group in job.groups]
        known = [estimate for estimate in estimates if estimate is not None]
        is_unknown = len(known) < len(estimates)
        return (1, -job.precedence, int(is_unknown), max(known, default=0))


class BatchShare:
    """For batch tasks that demand a `batch_share`, between 0 and 1: keeps machines that are filled to at
    most that share with the task, so that services find room on every machine. If the demand cannot be
    read, no machine meets it."""

    name: ClassVar[str] = "BatchShare"

    def concerns(self, task: Requirements, role: PluginUse) -> bool:
        return SHARE in task.demands

    def keeps(self, task: Requirements, nodes: Nodes) -> NDArray[np.bool_]:
        share, amounts = number_in(task, SHARE, 1.0), nodes.amounts(task.request)
        if share is None or amounts is None:
            return np.zeros(len(nodes), np.bool_)
        over = self._over(share, amounts, nodes)
        return np.asarray((over <= 0).all(axis=1), np.bool_)

    def _over(self, share: float, amounts: NDArray[np.int64], nodes: Nodes) -> NDArray[np.float64]:
        """By how much the task would exceed the share of each resource that it asks for."""
        used = nodes.capacity - nodes.free + amounts
        return np.where(amounts > 0, used - share * nodes.capacity, 0.0)

    def conflict(self, task: Requirements, node: Nodes) -> Refusal | None:
        """Other tasks may have come since the sample."""
        if SHARE not in task.demands or bool(self.keeps(task, node)[0]):
            return None
        machine = int(node.machines[0])
        share, amounts = number_in(task, SHARE, 1.0), node.amounts(task.request)
        if share is None or amounts is None:
            return Refusal(Why.STALE, machine=machine)
        over = self._over(share, amounts, node)[0]
        first = int(np.argmax(over > 0))
        lacking = int(np.ceil(over[first]))
        return Refusal(
            Why.NO_ROOM, machine=machine, dimension=node.dimensions[first], lacking=lacking
        )
