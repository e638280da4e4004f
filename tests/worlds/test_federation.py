"""Several clusters in one world: agents that answer for their machines, distances, ranked candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import pytest

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.host.records import PlacedRecord, RefusedRecord
from argosy.host.setup import HostSetup
from argosy.model.effects import Commit, Effect, Sample, Send
from argosy.model.errors import EngineFault
from argosy.model.events import (
    Committed,
    Event,
    JobSubmitted,
    MessageReceived,
    SampleReturned,
)
from argosy.model.explanations import Why
from argosy.model.machines import Cluster
from argosy.model.messages import Note
from argosy.model.resources import Resources
from argosy.model.scenario import (
    ConstantLatency,
    Federation,
    FleetEntry,
    Network,
    Places,
    Scenario,
    UniformLatency,
)
from argosy.model.transactions import Claims, Transaction
from argosy.model.truth import SimulatedJob
from argosy.records.journal_file import JournalFile
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND, federated_cell, job, scenario
from argosy.worlds.sim import SimulatedWorld
from argosy.worlds.sim.network import SimulatedNetwork

R = TypeVar("R", bound=Event)
MS = 1_000
#: Machines 0 and 1 are in the north, 2 and 3 in the south, 4 and 5 in the east, which is at the place
#: of the north.
PLACES = {"north": "oslo", "south": "rome", "east": "oslo"}
DISTANCES = Places(default=40 * MS, within=1 * MS, delays={"rome<>oslo": 25 * MS})
Script = Callable[["Scripted", Event, View, int], Sequence[Effect]]


class Scripted:
    """An engine that does what a test says and remembers what it heard."""

    name: ClassVar[str] = "scripted"
    summary: ClassVar[str] = "For tests."
    settings_type: ClassVar[type[Settings]] = Settings
    capabilities: ClassVar[Capabilities] = Capabilities(transactions=True)
    script: ClassVar[Script]
    heard: ClassVar[list[tuple[int, str, Event]]]

    def __init__(self, settings: Settings, context: Context) -> None:
        self.context = context

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        type(self).heard.append((now, self.context.name, event))
        return type(self).script(self, event, view, now)


def scripted(script: Script) -> type[Scripted]:
    return type("Scripted", (Scripted,), {"script": staticmethod(script), "heard": []})


def federated(
    engine: str,
    jobs: list[SimulatedJob],
    *,
    schedulers: dict[str, str] | None = None,
    places: Places | None = DISTANCES,
    **fields: Any,
) -> Scenario:
    """One scheduler in Oslo for jobs of kind `o`, one in Rome for kind `r`, and one for kind `n` that is
    nowhere."""
    where = {"o": "oslo", "r": "rome"} if schedulers is None else schedulers
    fleet = tuple(
        FleetEntry(name=name, engine=engine, takes={"kinds": (name,)})  # type: ignore[arg-type]
        for name in ("o", "r", "n")
    )
    clusters = tuple(Cluster(name, place) for name, place in PLACES.items())
    return scenario(
        engine,
        jobs,
        **{
            "cell": federated_cell(PLACES, 2),
            "fleet": fleet,
            "federation": Federation(clusters=clusters, places=places, schedulers=where),
            "network": Network(latency=ConstantLatency(delay=7 * MS)),
            **fields,
        },
    )
