"""Constraint violations, fragmentation and balance over a run, for any engine.

The cell is sampled at intervals, after all events of that instant, and at the end; a sample counts
for the time since the one before. It evaluates all constraints active at that time: the operator's,
and those of every application that is not over. `argosy.model.constraints.meaning` defines them; a
`Judge`, which the tests compare with it, is fast enough to use during a run. Only tags named in
constraints are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import to_mask
from argosy.engines.families.lra.cluster import make_ledger
from argosy.measures.statistics import distribution
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import CONTAINER, container_tags, of_job, tags_of, with_name
from argosy.model.jobs import index_of
from argosy.model.machines import CLUSTER_GROUP
from argosy.model.tasks import jobs_of
from argosy.records.summary import Distribution, Placement, Use
from argosy.solvers.placement import PlacementState
from argosy.solvers.placement.violations import Judge
from argosy.worlds.sim import SimulatedWorld

#: Number of samples if the run ends at its horizon or last submission; samples become rarer after that.
LOOKS: Final = 32
_SECOND: Final = 1_000_000
#: Less room than this is useless, as in the Medea paper: a core and 2 GB.
SMALLEST: Final = {"cpu": 1_000, "memory": 2 * 2**30}

_NUMBERS: Final = ("concerned", "violating", "extent", "machines", "machines_used", "fragmented")


class Watch:
    """Samples a world; must be created before the run."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        scenario = world.scenario
        #: The tags of containers, by running job and group (by identity).
        self._tags: dict[int, dict[int, frozenset[str]]] = {}
        #: The constraints of each application that is not over.
        self._own: dict[int, tuple[Constraint, ...]] = {}
        self._ledger: PlacementState | None = None
        #: The cell's versions at the last sample, and the result.
        self._state: tuple[int, bytes] | None = None
        self._use = Use()
        self._looks = 0
        self._last = 0
        self._sums = dict.fromkeys(_NUMBERS, 0.0)
        self._imbalance: dict[str, float] = {}
        self._clusters: dict[str, dict[str, float]] = {}
        self._operator = operator_constraints(world)
        last = scenario.jobs[-1].submit if scenario.jobs else 0
        self._spacing = max(1, (scenario.horizon or last or LOOKS * _SECOND) // LOOKS)
        world.watch(self._spacing, self._look)

    def _look(self, now: int) -> int:
        self._count(self.use(), now - self._last)
        self._last = now
        self._looks += 1
        if self._looks % LOOKS == 0 and self._looks > LOOKS:
            self._spacing *= 2
        return now + self._spacing

    def _count(self, use: Use, lasted: int) -> None:
        for name in _NUMBERS:
            self._sums[name] += lasted * getattr(use, name)
        for name, value in use.imbalance.items():
            self._imbalance[name] = self._imbalance.get(name, 0.0) + lasted * value
        for cluster, shares in use.clusters.items():
            sums = self._clusters.setdefault(cluster, dict.fromkeys(shares, 0.0))
            for name, share in shares.items():
                sums[name] += lasted * share

    def placement(self) -> Placement:
        """The result, after the world has run."""
        simulator = self._world.host.runtime
        end = self.use()
        self._count(end, simulator.now - self._last)
        time = max(1, simulator.now)
        mean = Use(
            **{name: self._sums[name] / time for name in _NUMBERS},
            imbalance={name: value / time for name, value in self._imbalance.items()},
            clusters={
                cluster: {name: value / time for name, value in sums.items()}
                for cluster, sums in self._clusters.items()
            },
        )
        return Placement(looks=self._looks + 1, mean=mean, end=end, latency=self._latency())

    def _latency(self) -> Distribution:
        """Of jobs with constraints."""
        if not self._world.host.constrained:
            return Distribution()
        submit, _, all_placed, _ = self._world.host.board.job_columns()
        numbers = np.array(self._world.host.constrained, np.int64)
        waited = all_placed[numbers] - submit[numbers]
        return distribution(waited[all_placed[numbers] >= 0])

    def use(self) -> Use:
        """The current state of the cell."""
        self._world.host.retire_done()
        view = self._world.host.view
        state = (view.applications_version, view.versions().tobytes())
        if state != self._state:
            self._state, self._use = state, self._seen()
        return self._use

    def _seen(self) -> Use:
        concerned, violating, extent = self._violations()
        view = self._world.host.view
        is_up = view.takes_claims().astype(bool)
        free, capacity = view.free()[is_up], view.capacity()[is_up]
        used = capacity - free
        lacks = np.zeros(len(free), bool)
        imbalance = {}
        for d, name in enumerate(view.dimensions):
            has = capacity[:, d] > 0
            lacks |= has & (free[:, d] < SMALLEST.get(name, 0))
            shares = used[has, d] / capacity[has, d]
            mean = float(shares.mean()) if len(shares) else 0.0
            imbalance[name] = float(shares.std()) / mean if mean else 0.0
        return Use(
            concerned=concerned,
            violating=violating,
            extent=extent,
            machines=len(free),
            machines_used=int((used > 0).any(axis=1).sum()),
            fragmented=int((lacks & (free > 0).any(axis=1)).sum()),
            imbalance=imbalance,
            clusters=self._shares(is_up),
        )

    def _shares(self, is_up: NDArray[np.bool_]) -> dict[str, dict[str, float]]:
        """The used share of each resource in each cluster."""
        view, shares = self._world.host.view, {}
        for cluster in self._world.host.setup.clusters:
            here = is_up & to_mask(view.members(CLUSTER_GROUP, cluster.name), len(is_up))
            capacity = view.capacity()[here].sum(axis=0)
            used = capacity - view.free()[here].sum(axis=0)
            shares[cluster.name] = {
                name: float(used[d] / capacity[d]) if capacity[d] else 0.0
                for d, name in enumerate(view.dimensions)
            }
        return shares

    def _violations(self) -> tuple[int, int, float]:
        world = self._world
        applications = world.host.cell.applications()
        self._own = {
            number: self._own.get(number) or of_job(job.id, job.constraints)
            for number, job in applications.items()
        }
        active = [*self._operator, *(c for own in self._own.values() for c in own)]
        if not active:
            return 0, 0, 0.0
        if self._ledger is None:
            self._ledger = make_ledger(world.host.view)
        ledger = PlacementState(self._ledger.machines, self._ledger.families, self._ledger.static)
        named = frozenset().union(*(tags_of(constraint.rule) for constraint in active))
        for (tags, machine), count in self._containers(named).items():
            ledger.start(tags, machine, count)
        return _judged(ledger, active)

    def _containers(self, named: frozenset[str]) -> Mapping[tuple[frozenset[str], int], int]:
        """Running containers, by machine and by those of their tags that are named in constraints."""
        tasks, machines, *_ = self._world.host.runtime.running_columns()
        found: Counter[tuple[frozenset[str], int]] = Counter()
        order = np.argsort(tasks, kind="stable")
        tasks, machines = tasks[order], machines[order]
        numbers, starts = np.unique(jobs_of(tasks), return_index=True)
        known, self._tags = self._tags, {}
        parts = zip(np.split(tasks, starts[1:]), np.split(machines, starts[1:]), strict=True)
        names = frozenset(tag for tag in named if tag.startswith(CONTAINER))
        for number, (mine, where) in zip(numbers.tolist(), parts, strict=False):
            job = self._world.host.jobs.job(number)
            its = self._tags[number] = known.get(number) or {
                id(group): frozenset(container_tags(job, group)) for group in job.groups
            }
            for group, part in job.tasks_by_group(mine):
                shared = its[id(group)]
                tags = named & shared
                if not tags and not names:
                    continue
                # Both are ascending.
                here: NDArray[np.int32] = where[np.searchsorted(mine, part)]
                for task, machine in zip(part.tolist(), here.tolist(), strict=True):
                    if names:
                        tags = named & with_name(shared, index_of(task), names)
                    if tags:
                        found[tags, machine] += 1
        return found


def operator_constraints(world: SimulatedWorld) -> tuple[Constraint, ...]:
    """Constraints of the cell, and those in the settings of schedulers."""
    found = dict.fromkeys(world.scenario.cell.constraints)
    for scheduler in world.host.schedulers:
        found.update(dict.fromkeys(getattr(scheduler.settings, "operator", ())))
    return tuple(found)


def _judged(ledger: PlacementState, active: Iterable[Constraint]) -> tuple[int, int, float]:
    judge = Judge(ledger)
    concerned: dict[tuple[frozenset[str], int], int] = {}
    violating: dict[tuple[frozenset[str], int], int] = {}
    extent = 0.0
    for constraint in active:
        for tags, machine, count in ledger.concerned(constraint):
            concerned[tags, machine] = count
            broken = judge.extent(constraint, tags, machine)
            if broken > 0:
                violating[tags, machine] = count
                extent += constraint.weight * count * broken
    return sum(concerned.values()), sum(violating.values()), extent
