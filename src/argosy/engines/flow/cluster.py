"""Where machines stand: which are there, and in which rack."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.model.errors import ModelError

#: The node group whose sets are racks; a machine in none has one of its own.
RACK: Final = "rack"


class Cluster:
    def __init__(self, view: View) -> None:
        self.machines = view.machines
        self.usable = np.zeros(self.machines, np.bool_)
        self.capacity = view.capacity()
        for machine in range(self.machines):
            self.look(machine, view)
        numbers: dict[str, int] = {}
        self.racks: NDArray[np.int64] = np.empty(self.machines, np.int64)
        try:
            names = view.sets_in(RACK)
        except ModelError:
            names = ()
        for machine in range(self.machines):
            sets = view.sets_of(machine, RACK) if names else ()
            name = sets[0] if sets else f" {machine}"
            self.racks[machine] = numbers.setdefault(name, len(numbers))
        self.rack_names = [name.strip() for name in numbers]
        #: Each machine's vertex in the network.
        self.vertices = np.empty(0, np.int32)

    def look(self, machine: int, view: View) -> None:
        """See whether the machine takes tasks."""
        if machine < self.machines:
            self.capacity[machine] = view.capacity(np.array([machine], np.int32))[0]
            self.usable[machine] = view.is_up(machine) and not view.is_draining(machine)
