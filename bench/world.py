"""How many events a second the simulated world carries through Python engines. Run by hand:

    python bench/world.py

`relay` measures the world itself: schedulers that pass messages on and do nothing else. `omega` and
`murmuration` measure real engines on 12,500 machines, with the decision log on; an event is one call of
an engine's `handle`, whatever it costs. Tasks that start and end without an engine being woken are
counted apart. Python's own `heapq` with the same message pattern and no world around it is the peer:
the ratio says what the world costs over a bare event loop.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
import time
from collections.abc import Sequence
from typing import ClassVar

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, Engine, Settings
from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.model.effects import Effect, Send
from argosy.model.events import Event, MessageReceived, Started
from argosy.model.messages import Note
from argosy.model.random import Random
from argosy.model.scenario import FleetEntry, Scenario
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, cell, job
from argosy.worlds.sim import SimulatedWorld

TARGET = 200_000
SCHEDULERS = 10


class RelaySettings(Settings):
    messages: int = 40_000


class Relay:
    """Passes each message on to the next scheduler until its number is used up."""

    name: ClassVar[str] = "relay"
    summary: ClassVar[str] = "Passes messages on."
    settings_type: ClassVar[type[Settings]] = RelaySettings
    capabilities: ClassVar[Capabilities] = Capabilities(gossip=True)

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, RelaySettings)
        self._left = settings.messages
        self._next = (context.peers[0],)

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case Started():
                return (Send(self._next, Note("hello")),)
            case MessageReceived(_, message):
                self._left -= 1
                return (Send(self._next, message),) if self._left > 0 else ()
        return ()


def run(
    engine: type[Engine], jobs: list[SimulatedJob], machines: int, horizon: int | None
) -> tuple[float, int, int]:
    fleet = (FleetEntry(name="s", engine=engine.name, replicas=SCHEDULERS),)
    scenario = Scenario(
        name="bench",
        seed=1,
        cell=cell(machines, cpu=16_000, memory=64 * GIB),
        jobs=tuple(jobs),
        fleet=fleet,
        horizon=horizon,
    )
    world = SimulatedWorld(scenario, {engine.name: engine}, Journal())
    begin = time.perf_counter()
    world.run()
    seconds = time.perf_counter() - begin
    return seconds, world.host.events, int(world.host.board.counts()[3])


def small_jobs(count: int) -> list[SimulatedJob]:
    random = Random(1)
    return [
        job(f"j{i}", 1 + random.below(4), seconds=1 + random.below(60), submit=i * 0.001)
        for i in range(count)
    ]


def bare_event_loop(messages: int) -> float:
    heap: list[tuple[int, int, int]] = []
    for n in range(SCHEDULERS):
        heapq.heappush(heap, (0, n, n))
    sequence = SCHEDULERS
    begin = time.perf_counter()
    for _ in range(messages):
        at, _, receiver = heapq.heappop(heap)
        heapq.heappush(heap, (at + 500, sequence, (receiver + 1) % SCHEDULERS))
        sequence += 1
    return messages / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    bare = statistics.median(bare_event_loop(400_000) for _ in range(runs))
    # A job that never ends keeps the relays going until they have used up their messages.
    forever = [job("forever", 1, seconds=None)]
    cases = [
        ("relay", Relay, forever, 100, 10**12),
        ("omega", ENGINES["omega"], small_jobs(20_000), 12_500, None),
        ("murmuration", ENGINES["murmuration"], small_jobs(4_000), 12_500, None),
    ]
    print(f"{'engine':<14}{'events/s':>12}{'tasks/s':>12}{'bare heapq loop':>18}   target")
    for name, engine, jobs, machines, horizon in cases:
        rates, tasks = [], []
        for _ in range(runs):
            seconds, events, finished = run(engine, jobs, machines, horizon)
            rates.append(events / seconds)
            tasks.append(finished / seconds)
        rate = statistics.median(rates)
        verdict = "" if name != "relay" else f"{TARGET:,} {'met' if rate >= TARGET else 'MISSED'}"
        print(
            f"{name:<14}{rate:>12,.0f}{statistics.median(tasks):>12,.0f}{bare / rate:>16.1f}x"
            f"   {verdict}"
        )


if __name__ == "__main__":
    main()
