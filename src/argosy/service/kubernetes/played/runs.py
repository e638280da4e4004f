"""Runs scenarios on a played Kubernetes cluster, in virtual time."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from argosy.campaign.local_runs import USUAL_ABSENCE, check_unshared
from argosy.campaign.recordings import KnownPod, PodRecording, WorldRecording
from argosy.campaign.scheduled_faults import ScheduledFaults
from argosy.campaign.stored_journals import stored_counts, stored_journals
from argosy.engines.api import Engine
from argosy.model.jobs import task_name
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import AgentDown, AgentFault, AgentSlow, Partition, Scenario
from argosy.service.kubernetes.played.api import PlayedApi
from argosy.service.kubernetes.played.network import PlayedNetwork
from argosy.service.kubernetes.played.servers import PlayedServer, as_error, owned_task
from argosy.service.kubernetes.played.workload import PlayedWorkload
from argosy.testing.virtual_loop import VirtualLoop, others_ended
from argosy.worlds.kubernetes.tracked import PLACED, PodState, TrackedPod
from argosy.worlds.local.store import LocalStore

#: When a run without a horizon ends.
USUAL_HORIZON: Final = 12 * 60_000_000
#: After that, nothing goes wrong any more for so long, before all that is known is compared.
CALM: Final = 40_000_000
#: How long decisions beside the loop take, at most; how much later than its fault a kill comes.
LONGEST_THOUGHT: Final = 2_000_000
LONGEST_DELAY: Final = 200_000
MOST_STEPS: Final = 12
#: How likely it is that a server that starts again finds nothing of the one before.
LOSING_DISK: Final = 0.3
_LOOK: Final = 1_000_000


class PlayedCluster:
    """A cluster from its first scheduler to its last."""

    def __init__(
        self,
        scenario: Scenario,
        engines: Mapping[str, type[Engine]],
        loop: VirtualLoop,
        folder: Path,
    ) -> None:
        self._scenario = scenario
        self._engines = engines
        self._loop = loop
        self._folder = folder
        seed = Random(scenario.seed)
        self._random = seed.child("kills")
        self._api = PlayedApi(loop, seed.child("grace"))
        network = seed.child("network")
        self._network = PlayedNetwork(loop, self._api, scenario.network, network)
        self._workload = PlayedWorkload(scenario, self._api, loop)
        self._over: asyncio.Future[None] = loop.create_future()
        self._server: PlayedServer | None = None
        self._servers: list[PlayedServer] = []
        self._directories: list[Path] = []
        self._kills: list[int] = []
        self._is_ending = False

    async def run(self) -> WorldRecording:
        horizon = USUAL_HORIZON if self._scenario.horizon is None else self._scenario.horizon
        self._workload.begin()
        ScheduledFaults(
            self._scenario, self, self._random, self._loop.at, lambda: self._loop.micros
        ).begin()
        self._start()
        self._loop.at(horizon, self._end)
        self._loop.at(_LOOK, self._look)
        try:
            await self._over
            server = self._server
            assert server is not None
            assert server.pods is not None
            server.write()
            known = tuple(map(_known, server.pods.pods.values()))
        finally:
            if self._server is not None:
                self._server.kill()
            await others_ended()
        return self._recorded(known)

    def _look(self) -> None:
        if self._workload.is_over:
            self._end()
        elif not self._is_ending:
            self._loop.at(self._loop.micros + _LOOK, self._look)

    def _end(self) -> None:
        """Nothing goes wrong from now on."""
        if self._is_ending:
            return
        self._is_ending = True
        self._calm_since = self._loop.micros
        self._network.heal()
        if self._server is None:
            self._start()
        self._loop.at(self._loop.micros + CALM, self._finish)

    def _finish(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def _fail(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(as_error(error))

    # Servers.

    def _start(self) -> None:
        if self._server is not None:
            return
        for former in self._servers:
            former.sender.is_succeeded = True
        if not self._directories or self._random.uniform() < LOSING_DISK:
            self._directories.append(self._folder / str(len(self._directories)))
        self._server = PlayedServer(
            self._scenario,
            self._engines,
            self._network,
            self._directories[-1],
            self._random.below(2**31),
            self._fail,
            self._give_up,
        )
        self._servers.append(self._server)
        self._server.start()

    def _give_up(self) -> None:
        """Somebody starts it again."""
        if self._server is not None:
            self._kill(self._server, USUAL_ABSENCE)

    def kill_server(self, down: int | None) -> None:
        if self._server is None or self._is_ending:
            return
        absence = max(1, USUAL_ABSENCE if down is None else down)
        strike = partial(self._strike, self._server, absence)
        moment = self._random.below(4)
        if moment == 0:
            strike()
        elif moment == 1:
            self._server.after_writing = strike
            # If nothing is written for a while.
            self._loop.at(self._loop.micros + LONGEST_DELAY, strike)
        elif moment == 2:
            self._after_steps(self._random.below(MOST_STEPS), strike)
        else:
            self._loop.at(self._loop.micros + self._random.below(LONGEST_DELAY), strike)

    def _strike(self, server: PlayedServer, absence: int) -> None:
        if not self._is_ending:
            self._kill(server, absence)

    def _after_steps(self, steps: int, strike: partial[None]) -> None:
        if steps:
            self._loop.call_soon(self._after_steps, steps - 1, strike)
        else:
            strike()

    def _kill(self, server: PlayedServer, absence: int) -> None:
        if server is not self._server:
            return
        server.kill()
        self._kills.append(self._loop.micros)
        self._server = None
        self._loop.at(self._loop.micros + absence, self._start)

    # What else goes wrong.

    def crash_machine(self, name: str, down: int | None) -> None:
        self._workload.remove_node(name, down)

    def drain_machine(self, name: str, draining: bool) -> None:
        self._workload.cordon(name, draining)

    def resize_machine(self, name: str, capacity: Resources) -> None:
        self._workload.resize(name, capacity)

    def disturb(self, fault: Partition | AgentFault) -> None:
        lasts = USUAL_ABSENCE if fault.lasts is None else fault.lasts
        match fault:
            case Partition() | AgentDown():
                self._network.cut(lasts)
            case AgentSlow(extra=extra):
                self._network.slow_down(extra, lasts)
            case _:
                self._network.silence(lasts)

    # What was recorded.

    def _recorded(self, known: tuple[KnownPod, ...]) -> WorldRecording:
        disks, counts = [], None
        for directory in self._directories:
            if not directory.exists():
                continue
            store = LocalStore(directory, is_lasting=False)
            counts = stored_counts(store)
            if journals := stored_journals(store):
                disks.append(journals)
            store.close()
        return WorldRecording(
            journal=disks[-1][0],
            later=disks[-1][1:],
            ended_at=self._loop.micros,
            counts=counts,
            processes={
                task_name(each.job, each.index): each.node
                for each in known
                if each.job and each.node
            },
            lost=tuple(disks[:-1]),
            pods=PodRecording(
                records=tuple(self._api.records),
                known=known,
                kills=tuple(self._kills),
                calm_since=self._calm_since,
            ),
        )


def _known(tracked: TrackedPod) -> KnownPod:
    return KnownPod(
        uid=tracked.uid,
        node=tracked.node,
        is_bound=tracked.state in PLACED or tracked.state is PodState.LEAVING,
        obstacle=tracked.obstacle,
        job=tracked.job,
        index=tracked.index,
    )


class PodRuns(msgspec.Struct, frozen=True):
    """Kubernetes, for campaigns."""

    is_exact: bool = False
    repeats: bool = True
    lacks: frozenset[str] = frozenset(
        {"clusters", "constraints", "decision-times", "groups", "phases"}
    )

    def check(self, scenario: Scenario) -> None:
        check_unshared(scenario)

    def run(self, scenario: Scenario, engines: Mapping[str, type[Engine]]) -> WorldRecording:
        thinking = Random(scenario.seed).child("thinking")
        loop = VirtualLoop(lambda: thinking.below(LONGEST_THOUGHT) / 1_000_000)
        loop.set_task_factory(owned_task)
        try:
            with tempfile.TemporaryDirectory(prefix="argosy-campaign-") as folder:
                return loop.run_until_complete(self._run(scenario, engines, loop, Path(folder)))
        finally:
            loop.close()

    async def _run(
        self,
        scenario: Scenario,
        engines: Mapping[str, type[Engine]],
        loop: VirtualLoop,
        folder: Path,
    ) -> WorldRecording:
        return await PlayedCluster(scenario, engines, loop, folder).run()
