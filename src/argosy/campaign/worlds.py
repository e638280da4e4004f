"""Worlds that a campaign can drive. A world runs a scenario and gives back what it recorded.

Nothing else is asked of a world, so that one of real machines can be driven as well: it submits the jobs
of the scenario, causes its faults as far as it can, and ends at its horizon.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib import import_module
from typing import Final, Protocol

import msgspec

from argosy.campaign.local_runs import LocalRuns
from argosy.campaign.recordings import WorldRecording
from argosy.campaign.recount import Where
from argosy.engines.api import Engine
from argosy.host.journal import Journal
from argosy.model.errors import UnknownName
from argosy.model.scenario import Scenario
from argosy.testing.scripted_world import ScriptedWorld
from argosy.worlds.sim import SimulatedWorld


class CampaignWorld(Protocol):
    @property
    def is_exact(self) -> bool:
        """Whether tasks run just as long as the scenario says."""

    @property
    def repeats(self) -> bool:
        """Whether the same scenario gives the same journal again."""

    @property
    def lacks(self) -> frozenset[str]:
        """Features of drawn scenarios that mean nothing here, or cannot be run."""

    def check(self, scenario: Scenario) -> None:
        """Raises a `ScenarioError` if the scenario cannot be run here."""

    def run(self, scenario: Scenario, engines: Mapping[str, type[Engine]]) -> WorldRecording: ...


class HostedWorld(msgspec.Struct, frozen=True):
    """One of the worlds that run a host in this process, in virtual time."""

    kind: type[SimulatedWorld] | type[ScriptedWorld]
    is_exact: bool
    repeats: bool = True
    lacks: frozenset[str] = frozenset()

    def check(self, scenario: Scenario) -> None:
        """Every scenario can be run here."""

    def run(self, scenario: Scenario, engines: Mapping[str, type[Engine]]) -> WorldRecording:
        stream = io.BytesIO()
        journal = Journal(stream)
        world = self.kind(scenario, engines, journal)
        world.run()
        journal.flush()
        found = world.host.board.counts().tolist()
        counts = dict(zip(Where, found, strict=True))
        ended_at = world.runtime.now
        if world.runtime.open_tasks and scenario.horizon is not None:
            ended_at = max(ended_at, scenario.horizon)
        return WorldRecording(stream.getvalue(), ended_at, counts)


WORLDS: Final[dict[str, CampaignWorld]] = {
    "simulated": HostedWorld(SimulatedWorld, is_exact=True),
    #: Reports come late and twice, some are lost, and tries fail.
    "scripted": HostedWorld(ScriptedWorld, is_exact=False),
    #: Servers are killed and start again.
    "local": LocalRuns(),
}


#: Worlds that are made of the server, which is above this package and needs extras; found when they are
#: asked for.
SERVED_WORLDS: Final[dict[str, tuple[str, str]]] = {
    "kubernetes": ("argosy.service.kubernetes.played.runs", "PodRuns"),
}


def find_world(name: str) -> CampaignWorld:
    if name in SERVED_WORLDS:
        module, kind = SERVED_WORLDS[name]
        world: CampaignWorld = getattr(import_module(module), kind)()
        return world
    if name not in WORLDS:
        raise UnknownName("world", name, [*WORLDS, *SERVED_WORLDS])
    return WORLDS[name]
