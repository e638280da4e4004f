"""Plug-ins beyond the Vela paper, from its future work: sampling that learns, and network latency."""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.agents.api import MOST, Nodes, PluginUse, Requirements
from argosy.agents.builtin import number_in, positions
from argosy.model.random import Random
from argosy.model.transactions import MachineArray

#: Demands of tasks: a place or a job, and the longest round trip to it in milliseconds.
NEAR: Final = "near"
NEAR_JOB: Final = "near_job"
LATENCY: Final = "latency"
#: Kinds of tasks that a strategy remembers; the one used longest ago is forgotten.
MOST_KINDS: Final = 256
#: One in so many draws is of machines that are not known to fit: room appears where nobody looked.
EXPLORE: Final = 4

LearnedKind: TypeAlias = tuple[tuple[tuple[str, object], ...], ...]


class LearnedStrategy:
    """Prefers machines that fitted the last task with the same requirements, and draws a quarter of the
    others at random."""

    name: ClassVar[str] = "Learned"

    def __init__(self) -> None:
        #: Per kind of task, in order of last use: which machines fitted when last drawn.
        self._fitted: dict[LearnedKind, NDArray[np.bool_]] = {}

    def draw(
        self, task: Requirements, machines: MachineArray, count: int, random: Random
    ) -> MachineArray:
        if not len(machines):
            return machines
        is_known = self._of(task, int(machines[-1]) + 1)[machines]
        known, others = machines[is_known], machines[~is_known]
        wanted = min(len(known), count - min(len(others), count // EXPLORE))
        chosen = known[positions(len(known), wanted, random)]
        left = min(len(others), count - len(chosen))
        return np.concatenate([chosen, others[positions(len(others), left, random)]])

    def learn(self, task: Requirements, drawn: MachineArray, fits: NDArray[np.bool_]) -> None:
        if len(drawn):
            self._of(task, int(drawn.max()) + 1)[drawn] = fits

    def _of(self, task: Requirements, machines: int) -> NDArray[np.bool_]:
        kind = (
            tuple(sorted(task.request.items())),
            tuple(sorted(task.requires.items())),
            tuple(sorted(task.demands.items())),
        )
        fitted = self._fitted.pop(kind, None)
        if fitted is None:
            fitted = np.zeros(machines, np.bool_)
            if len(self._fitted) >= MOST_KINDS:
                del self._fitted[next(iter(self._fitted))]
        elif len(fitted) < machines:
            fitted = np.pad(fitted, (0, machines - len(fitted)))
        self._fitted[kind] = fitted
        return fitted


class NetworkLatency:
    """For tasks that demand a `latency` (a round trip in milliseconds) to the place `near`, or to the
    job `near_job`: keeps machines of clusters that are near enough; the nearer, the higher the score. If
    the job has tasks in several clusters, the nearest counts. A cluster whose distance is unknown is not
    near enough, nor is any while the job has no machine or if the demand cannot be read."""

    name: ClassVar[str] = "NetworkLatency"

    def concerns(self, task: Requirements, role: PluginUse) -> bool:
        return NEAR in task.demands or NEAR_JOB in task.demands

    def keeps(self, task: Requirements, nodes: Nodes) -> NDArray[np.bool_]:
        if not self.concerns(task, "filter"):
            return np.ones(len(nodes), np.bool_)
        bound = number_in(task, LATENCY, 0.0)
        if bound is None:
            return np.zeros(len(nodes), np.bool_)
        return self._trips(task, nodes) <= 1_000 * bound

    def score(self, task: Requirements, nodes: Nodes) -> NDArray[np.int64]:
        bound = number_in(task, LATENCY, 0.0) if self.concerns(task, "score") else None
        if not bound:
            return np.full(len(nodes), MOST, np.int64)
        shares = np.minimum(self._trips(task, nodes) / (1_000 * bound), 1.0)
        return np.asarray(MOST - np.floor(MOST * shares), np.int64)

    def _trips(self, task: Requirements, nodes: Nodes) -> NDArray[np.float64]:
        """The round trip from each machine to the farther of what it must be near to, in microseconds;
        infinite where it is unknown."""
        demands, known = task.demands, dict[str, float]()
        targets = [[demands[NEAR]]] if NEAR in demands else []
        if NEAR_JOB in demands:
            targets.append(list(nodes.source.places_of(demands[NEAR_JOB])))
        for place in set(nodes.places):
            trips = [
                min((self._trip(nodes, place, each) for each in target), default=np.inf)
                for target in targets
            ]
            known[place] = max(trips)
        return np.array([known[place] for place in nodes.each_place()], np.float64)

    def _trip(self, nodes: Nodes, one: str, other: str) -> float:
        delay = nodes.source.delay(one, other)
        return np.inf if delay is None else 2.0 * delay
