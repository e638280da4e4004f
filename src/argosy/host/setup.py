"""The setup of a host: everything its decisions depend on except inputs and code."""

from __future__ import annotations

import msgspec

from argosy.model.machine_model import MachineModel
from argosy.model.machines import Cluster
from argosy.model.scenario import (
    AgentFault,
    AgentModel,
    CellSpec,
    Federation,
    FleetEntry,
    Network,
    Output,
    Partition,
    Scenario,
)


class HostSetup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    seed: int
    cell: CellSpec
    fleet: tuple[FleetEntry, ...]
    machines: MachineModel
    #: None: all parties are in one process, and nothing takes time to arrive.
    network: Network | None
    partitions: tuple[Partition, ...]
    #: How long after a scheduler stops its unplaced tasks go to its peers.
    failover: int
    audit: bool
    output: Output
    #: The time when it begins.
    began: int = 0
    #: Whether an earlier host stopped and left jobs: schedulers start with no memory of them.
    is_resumed: bool = False
    #: None: the cell is a single cluster without a name.
    federation: Federation | None = None
    #: None: agents take no time.
    agents: AgentModel | None = None
    agent_faults: tuple[AgentFault, ...] = ()
    #: Whether agents are in other processes: then every answer of theirs is an input.
    has_remote_agents: bool = False
    #: Whether another system has the last word on every claim, so that each counts as assumed until that
    #: system says otherwise (`Host.forget`). It also decides what becomes of a task that is pushed off
    #: its machine: schedulers are not told, and the world cancels it or has it placed anew.
    is_overruled: bool = False

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        return () if self.federation is None else self.federation.clusters

    @staticmethod
    def of(scenario: Scenario) -> HostSetup:
        return HostSetup(
            name=scenario.name,
            seed=scenario.seed,
            cell=scenario.cell,
            fleet=scenario.fleet,
            machines=scenario.machines,
            network=scenario.network,
            partitions=tuple(f for f in scenario.faults if isinstance(f, Partition)),
            failover=scenario.failover,
            audit=scenario.audit,
            output=scenario.output,
            federation=scenario.federation,
            agents=scenario.agents,
            agent_faults=tuple(f for f in scenario.faults if isinstance(f, AgentFault)),
        )
