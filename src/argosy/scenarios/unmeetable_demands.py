"""What a scenario asks for that can never be met, found before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from argosy.model.errors import ScenarioError
from argosy.model.feasibility import Feasibility, UnmeetableDemand
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import MachineRelabel, MachineResize, Scenario
from argosy.model.wording import listed


def unmeetable_demands(scenario: Scenario) -> Iterator[UnmeetableDemand]:
    """In the order of the jobs. Whether an engine would heed a gang or a constraint does not matter."""
    machines = tuple(_largest(scenario))
    feasibility = Feasibility(machines, scenario.cell.constraints, scenario.cell.device_resource)
    return (demand for made in scenario.jobs for demand in feasibility.of(made.job))


def refuse_unmeetable(demands: Sequence[UnmeetableDemand], file: str) -> None:
    """Raises an error that names the first of them."""
    if not demands:
        return
    first, *others = demands
    names = listed(list(dict.fromkeys(demand.job for demand in others)))
    more = f"; nor can demands of {names}" if others else ""
    hint = f"what would help: {first.remedy}"
    raise ScenarioError(f"can never be met: {first}{more}", file=file, hint=hint)


def _largest(scenario: Scenario) -> Iterable[Machine]:
    """The machines, each with the largest amount of every resource that it ever has, and once more for
    all other labels that it gets."""
    sizes: dict[str, list[Resources]] = {}
    labels: dict[str, list[MachineRelabel]] = {}
    for fault in scenario.faults:
        if isinstance(fault, MachineResize):
            sizes.setdefault(fault.machine, []).append(fault.capacity)
        elif isinstance(fault, MachineRelabel):
            labels.setdefault(fault.machine, []).append(fault)
    for machine in scenario.cell.machines:
        largest = machine
        for size in sizes.get(machine.name, ()):
            largest = largest.enlarged(size)
        yield largest
        for told in labels.get(machine.name, ()):
            yield msgspec.structs.replace(largest, attributes=told.attributes, joins=told.joins)
