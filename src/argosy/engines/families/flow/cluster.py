"""Which machines are up, and in which racks they are."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.model.errors import ModelError

#: The node group whose sets are racks; a machine in none gets its own rack.
RACK: Final = "rack"


class MachineVertices:
    def __init__(self, view: View) -> None:
        self.machines = 0
        self.usable = np.zeros(0, np.bool_)
        self.capacity = view.capacity()[:0]
        self.racks: NDArray[np.int64] = np.empty(0, np.int64)
        self._rack_numbers: dict[str, int] = {}
        #: Each machine's vertex in the network.
        self.vertices = np.empty(0, np.int32)
        self.grow(view)

    @property
    def rack_names(self) -> list[str]:
        return [name.strip() for name in self._rack_numbers]

    def grow(self, view: View) -> None:
        """Adds new machines; their vertices are added elsewhere."""
        old, self.machines = self.machines, view.machines
        self.usable = np.append(self.usable, np.zeros(self.machines - old, np.bool_))
        self.capacity = np.concatenate([self.capacity, view.capacity()[old:]])
        try:
            has_racks = bool(view.sets_in(RACK))
        except ModelError:
            has_racks = False
        numbers, racks = self._rack_numbers, []
        for machine in range(old, self.machines):
            self.look(machine, view)
            sets = view.sets_of(machine, RACK) if has_racks else ()
            racks.append(numbers.setdefault(sets[0] if sets else f" {machine}", len(numbers)))
        self.racks = np.append(self.racks, np.array(racks, np.int64))

    def widen(self, view: View) -> None:
        """Takes resources into account that no machine had before."""
        self.capacity = view.capacity()[: self.machines].copy()

    def look(self, machine: int, view: View) -> None:
        """Updates whether the machine accepts tasks."""
        if machine < self.machines:
            self.capacity[machine] = view.capacity(np.array([machine], np.int32))[0]
            self.usable[machine] = view.is_up(machine) and not view.is_draining(machine)
