"""The plug-ins of the Vela paper. It names them but gives no formulas: see record 25."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from argosy.agents.api import MOST, Nodes, PluginUse, Requirements
from argosy.agents.globe import chord_of, chords, position
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.transactions import MachineArray, Transaction

#: The attribute of machines and the demand of tasks, for each plug-in.
BATTERY: Final = "battery"
LOCATION: Final = "location"
DISTANCE: Final = "distance"
#: How far a machine may be from the location demanded, in kilometres, unless the task says.
NEAR: Final = 100.0


class PrioritySort:
    """Jobs of higher precedence first."""

    name: ClassVar[str] = "Priority"

    def rank(self, job: Job, submitted: int) -> tuple[int, ...]:
        return (-job.precedence,)


class ArrivalSort:
    """First come, first served."""

    name: ClassVar[str] = "Arrival"

    def rank(self, job: Job, submitted: int) -> tuple[int, ...]:
        return ()


class RandomStrategy:
    """Machines at random, each at most once a round."""

    name: ClassVar[str] = "Random"

    def draw(
        self, task: Requirements, machines: MachineArray, count: int, random: Random
    ) -> MachineArray:
        return machines[positions(len(machines), count, random)]

    def learn(self, task: Requirements, drawn: MachineArray, fits: NDArray[np.bool_]) -> None:
        pass


def positions(total: int, count: int, random: Random) -> NDArray[np.int64]:
    """`count` different numbers below `total` at random, or all of them."""
    if 3 * count >= total:
        return np.argsort(random.integers(total, 2**62), kind="stable")[:count]
    # Few of many: repetitions are rare, and cheaper to draw again than all are to shuffle.
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        chosen.update(dict.fromkeys(random.integers(count + 8, total).tolist()))
    return np.fromiter(chosen, np.int64, len(chosen))[:count]


class RoundRobinStrategy:
    """Machines in turn, over all requests to the agent."""

    name: ClassVar[str] = "RoundRobin"

    def __init__(self) -> None:
        self._next = 0

    def draw(
        self, task: Requirements, machines: MachineArray, count: int, random: Random
    ) -> MachineArray:
        if not len(machines):
            return machines
        start = int(np.searchsorted(machines, self._next))
        turn = (start + np.arange(min(count, len(machines)))) % len(machines)
        drawn = machines[turn]
        self._next = int(drawn[-1]) + 1
        return drawn

    def learn(self, task: Requirements, drawn: MachineArray, fits: NDArray[np.bool_]) -> None:
        pass


class ResourcesFit:
    """Keeps machines with room. Scores the mean share that stays free of what the task asks for, so an
    empty machine scores higher than a loaded one."""

    name: ClassVar[str] = "ResourcesFit"

    def keeps(self, task: Requirements, nodes: Nodes) -> NDArray[np.bool_]:
        amounts = nodes.amounts(task.request)
        if amounts is None:
            return np.zeros(len(nodes), np.bool_)
        return np.asarray((nodes.free >= amounts).all(axis=1), np.bool_)

    def reasons(self, task: Requirements, dropped: Nodes) -> dict[str, int]:
        """The first resource that each lacks."""
        amounts = dropped.amounts(task.request)
        if amounts is None:
            return {_unknown_resource(task, dropped): len(dropped)}
        first = np.argmax(dropped.free < amounts, axis=1)
        counts = np.bincount(first, minlength=len(amounts)).tolist()
        return {
            name: count for name, count in zip(dropped.dimensions, counts, strict=True) if count
        }

    def score(self, task: Requirements, nodes: Nodes) -> NDArray[np.int64]:
        amounts = nodes.amounts(task.request)
        if amounts is None or not amounts.any():
            return np.full(len(nodes), MOST, np.int64)
        asked = np.flatnonzero(amounts)
        left = np.maximum(nodes.free[:, asked] - amounts[asked], 0)
        shares = MOST * left // np.maximum(nodes.capacity[:, asked], 1)
        scores: NDArray[np.int64] = shares.sum(axis=1) // len(asked)
        return np.minimum(scores, MOST)

    def conflict(self, task: Requirements, node: Nodes) -> Refusal | None:
        machine = int(node.machines[0])
        amounts = node.amounts(task.request)
        if amounts is None:
            name = _unknown_resource(task, node)
            lacking = dict(task.request.items())[name]
            return Refusal(Why.NO_ROOM, machine=machine, dimension=name, lacking=lacking)
        lacks = amounts - node.free[0]
        short = np.flatnonzero(lacks > 0)
        if not len(short):
            return None
        first = int(short[0])
        return Refusal(
            Why.NO_ROOM,
            machine=machine,
            dimension=node.dimensions[first],
            lacking=int(lacks[first]),
        )


def _unknown_resource(task: Requirements, nodes: Nodes) -> str:
    wanted = (name for name, amount in task.request.items() if amount)
    return next(name for name in wanted if name not in nodes.dimensions)


class GeoLocation:
    """For tasks that demand a `location` ("latitude,longitude" in degrees): keeps machines at most
    `distance` kilometres away, 100 by default. The nearer a machine is, the higher it scores. Machines
    state theirs as the attribute `location`; one that does not is dropped. If the demand itself cannot
    be read, no machine meets it."""

    name: ClassVar[str] = "GeoLocation"

    def concerns(self, task: Requirements, role: PluginUse) -> bool:
        return LOCATION in task.demands

    def keeps(self, task: Requirements, nodes: Nodes) -> NDArray[np.bool_]:
        if LOCATION not in task.demands:
            return np.ones(len(nodes), np.bool_)
        far, limit = self._away(task, nodes)
        return far <= limit

    def score(self, task: Requirements, nodes: Nodes) -> NDArray[np.int64]:
        if LOCATION not in task.demands:
            return np.full(len(nodes), MOST, np.int64)
        far, limit = self._away(task, nodes)
        shares = np.minimum(far / limit, 1.0) if limit > 0 else np.isfinite(far) * 0.0
        return np.asarray(MOST - np.floor(MOST * shares), np.int64)

    def _away(self, task: Requirements, nodes: Nodes) -> tuple[NDArray[np.float64], float]:
        """How far each machine is from the location demanded, and how far it may be."""
        place, reach = position(task.demands[LOCATION]), number_in(task, DISTANCE, NEAR)
        if place is None or reach is None:
            return np.full(len(nodes), np.inf), 0.0
        return chords(place, nodes.labels(LOCATION)), chord_of(reach)


class BatteryLevel:
    """For tasks that demand a `battery` level in percent: keeps machines whose attribute `battery` is
    at least that, and those without a battery. If the demand cannot be read, no machine meets it."""

    name: ClassVar[str] = "BatteryLevel"

    def concerns(self, task: Requirements, role: PluginUse) -> bool:
        return role == "score" or BATTERY in task.demands

    def keeps(self, task: Requirements, nodes: Nodes) -> NDArray[np.bool_]:
        if BATTERY not in task.demands:
            return np.ones(len(nodes), np.bool_)
        least = number_in(task, BATTERY, 0.0)
        if least is None:
            return np.zeros(len(nodes), np.bool_)
        levels = (_level(text) for text in nodes.labels(BATTERY))
        return np.fromiter((level >= least for level in levels), np.bool_, len(nodes))

    def score(self, task: Requirements, nodes: Nodes) -> NDArray[np.int64]:
        """The level itself; machines without a battery have the highest."""
        levels = (_level(text) for text in nodes.labels(BATTERY))
        scores = (max(0, min(MOST, int(level))) for level in levels)
        return np.fromiter(scores, np.int64, len(nodes))


def _level(text: str) -> float:
    """A level that cannot be read counts as empty."""
    if not text:
        return float(MOST)
    try:
        return float(text)
    except ValueError:
        return 0.0


class Bind:
    """Writes the claim as it is."""

    name: ClassVar[str] = "Bind"

    def bind(self, transaction: Transaction) -> Transaction:
        return transaction


def number_in(task: Requirements, key: str, default: float) -> float | None:
    """The number demanded; None if it cannot be read."""
    text = task.demands.get(key)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
