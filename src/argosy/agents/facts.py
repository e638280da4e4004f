"""What plug-ins may ask about a cell besides what is free."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.agents.builtin import LOCATION
from argosy.cell import View, to_mask
from argosy.model.machines import CLUSTER_GROUP
from argosy.model.transactions import MachineArray

#: The attribute of machines that come with volumes: their names, separated by commas.
VOLUMES: Final = "volumes"


class CellFacts:
    """Attributes of all machines, read once per key and change of labels; distances between places;
    and where jobs and volumes are."""

    def __init__(
        self,
        view: View,
        delay: Callable[[str, str], int | None] = lambda one, other: None,
        places: Mapping[str, str] = MappingProxyType({}),
        machines_of: Callable[[str], Collection[int]] = lambda job: (),
    ) -> None:
        """`places` has the place of each cluster; `machines_of` the machines of a job's tasks."""
        self._view = view
        self._delay = delay
        self._places = places
        self._machines_of = machines_of
        #: Machines on which tasks created volumes, by volume.
        self._volumes: dict[str, set[int]] = {}
        self._state = (-1, -1)
        self._columns: dict[str, NDArray[np.object_]] = {}

    def labels(self, key: str, machines: MachineArray) -> Sequence[str]:
        state = self._view.machines, self._view.labels_version
        if state != self._state:
            self._state = state
            self._columns.clear()
        if (column := self._columns.get(key)) is None:
            column = self._columns[key] = self._read(key)
        found: list[str] = column[machines].tolist()
        return found

    def delay(self, one: str, other: str) -> int | None:
        return self._delay(one, other)

    def cluster_of(self, machine: int) -> str:
        return next(iter(self._view.sets_of(machine, CLUSTER_GROUP)), "") if self._places else ""

    def places_of(self, job: str) -> Collection[str]:
        clusters = {self.cluster_of(machine) for machine in self._machines_of(job)}
        return {self._places[cluster] for cluster in clusters if cluster in self._places}

    def volume_homes(self, volume: str) -> Collection[int]:
        homes = set(self._volumes.get(volume, ()))
        for name, value in self._view.attributes:
            if name == VOLUMES and volume in value.split(","):
                listed = to_mask(self._view.where({name: value}), self._view.machines)
                homes.update(np.flatnonzero(listed).tolist())
        return homes

    def create_volume(self, volume: str, machine: int) -> None:
        """Unless there is one of this name: a task that needs it is on the machine now."""
        if not self.volume_homes(volume):
            self._volumes[volume] = {machine}

    def _read(self, key: str) -> NDArray[np.object_]:
        count = self._view.machines
        column = np.full(count, "", np.object_)
        for name, value in self._view.attributes:
            if name == key:
                column[to_mask(self._view.where({key: value}), count)] = value
        return column


class ToldFacts(CellFacts):
    """Those of one cluster whose scheduler is elsewhere. Distances, and the places of jobs, are what the
    scheduler says with its question; machines are at the cluster's `location`, unless they state
    another."""

    def __init__(self, view: View, place: str, location: str) -> None:
        super().__init__(view)
        self._place = place
        self._location = location
        self._distances: Mapping[str, int] = {}
        self._places_of_jobs: Mapping[str, Collection[str]] = {}

    def hear(self, distances: Mapping[str, int], jobs: Mapping[str, Collection[str]]) -> None:
        """What the next question is to be answered by: microseconds to other places, and where the tasks
        of jobs are."""
        self._distances = distances
        self._places_of_jobs = jobs

    def delay(self, one: str, other: str) -> int | None:
        return self._distances.get(other) if one == self._place else None

    def places_of(self, job: str) -> Collection[str]:
        return self._places_of_jobs.get(job, ())

    def _read(self, key: str) -> NDArray[np.object_]:
        column = super()._read(key)
        if key == LOCATION and self._location:
            column[column == ""] = self._location
        return column
