"""A played cluster from its first scheduler to its last: kills, absences, disks that are lost, and what
is recorded. Servers are stand-ins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs
from told_dice import ToldDice

from argosy.campaign.recordings import KnownPod, WorldRecording
from argosy.kubernetes.failures import KubernetesUnreachable
from argosy.model.errors import ArgosyError, EngineFault
from argosy.model.scenario import AgentDown, AgentSlow, AgentStale, Partition, Scenario
from argosy.service.kubernetes.played import runs
from argosy.service.kubernetes.played.network import PlayedNetwork
from argosy.service.kubernetes.played.runs import PlayedCluster, PodRuns
from argosy.service.kubernetes.played.servers import PlayedServer, ServerKilled, as_error
from argosy.testing.builders import SECOND, job, scenario
from argosy.testing.virtual_loop import VirtualLoop
from argosy.worlds.kubernetes.tracked import PodState

CALM = 40 * SECOND
#: Its pods get no node from stand-ins.
OPEN = scenario("omega", [job("a")], horizon=100 * SECOND)


def pod(state: PodState, uid: str, **fields: Any) -> Any:
    usual = {"node": "", "obstacle": "", "job": "", "index": 0}
    return SimpleNamespace(uid=uid, state=state, **{**usual, **fields})


class StandIn:
    """Instead of `PlayedServer`."""

    def __init__(
        self,
        scenario: Scenario,
        engines: Any,
        network: PlayedNetwork,
        directory: Path,
        seed: int,
        failed: Callable[[BaseException], None],
        gave_up: Callable[[], None],
    ) -> None:
        self.directory, self.seed, self.failed, self.gave_up = directory, seed, failed, gave_up
        self.network = network
        self.sender = SimpleNamespace(is_succeeded=False)
        self.pods = SimpleNamespace(pods={})
        self.did: list[tuple[str, int]] = []
        self.after_writing: Callable[[], None] = lambda: None

    def _note(self, what: str) -> None:
        self.did.append((what, self.network.loop.micros))

    def start(self) -> None:
        self._note("started")
        self.directory.mkdir(exist_ok=True)

    def write(self) -> None:
        self._note("written")

    def kill(self) -> None:
        self._note("killed")


class Play:
    def __init__(self, loop: VirtualLoop, folder: Path, spec: Scenario, dice: ToldDice) -> None:
        self.loop = loop
        self.cluster = PlayedCluster(spec, {}, loop, folder)
        self.cluster._random = dice  # type: ignore[assignment]
        self.network = self.cluster._network

    @property
    def servers(self) -> list[Any]:
        return self.cluster._servers

    def run(self, *steps: tuple[int, Callable[[], object]]) -> WorldRecording:
        for at, step in steps:
            self.loop.at(at, step)
        return self.loop.run_until_complete(self.cluster.run())

    def until(self, micros: int) -> None:
        self.loop.run_until_complete(asyncio.sleep((micros - self.loop.micros) / 1e6))
        self.loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Play]]:
    """The journals of a disk are its name and a number for each life."""
    loop = VirtualLoop()
    opened = []

    def store(directory: Path, is_lasting: bool) -> Any:
        opened.append(directory.name)
        assert not is_lasting
        return SimpleNamespace(name=directory.name, close=lambda: opened.remove(directory.name))

    monkeypatch.setattr(runs, "PlayedServer", StandIn)
    monkeypatch.setattr(runs, "LocalStore", store)
    monkeypatch.setattr(runs, "stored_counts", lambda store: {"disk": store.name})
    monkeypatch.setattr(
        runs,
        "stored_journals",
        lambda store: (f"{store.name}-1".encode(), f"{store.name}-2".encode()),
    )

    def make(
        spec: Scenario = OPEN, *, uniform: Any = (), below: Any = (), otherwise: float = 0.999
    ) -> Play:
        return Play(loop, tmp_path, spec, ToldDice(uniform, below, otherwise=otherwise))

    yield make
    assert opened == []
    loop.close()


class TestEnds:
    @pytest.mark.parametrize(
        ("horizon", "end"), [(100 * SECOND, 100 * SECOND), (None, 12 * 60 * SECOND)]
    )
    def test_a_run_ends_a_calm_while_after_its_horizon(
        self, play: Callable[..., Play], horizon: int | None, end: int
    ) -> None:
        found = play(structs.replace(OPEN, horizon=horizon))
        recording = found.run((end - 1, lambda: found.network.slow_down(5, 10**9)))
        assert recording.ended_at == end + CALM
        assert recording.pods is not None
        assert (recording.pods.calm_since, recording.pods.kills) == (end, ())
        assert found.network.is_healed
        (server,) = found.servers
        assert server.did == [("started", 0), ("written", end + CALM), ("killed", end + CALM)]

    def test_a_run_ends_when_all_jobs_are_over(self, play: Callable[..., Play]) -> None:
        found = play()
        over = 5 * SECOND // 2
        recording = found.run((over, lambda: setattr(found.cluster._workload, "_open", 0)))
        # It is looked at every second.
        assert recording.ended_at == 3 * SECOND + CALM
        assert recording.pods is not None
        assert recording.pods.calm_since == 3 * SECOND

    @pytest.mark.parametrize(
        ("failure", "kind", "text"),
        [
            (ValueError("bad"), ValueError, "bad"),
            (ArgosyError("worse"), ArgosyError, "worse"),
            (SystemExit(3), EngineFault, r"SystemExit\(3\)"),
        ],
    )
    def test_what_must_not_happen_ends_the_run(
        self, play: Callable[..., Play], failure: BaseException, kind: type[Exception], text: str
    ) -> None:
        found = play()
        with pytest.raises(kind, match=text):
            found.run(
                (SECOND, lambda: found.servers[0].failed(failure)),
                (SECOND, lambda: found.servers[0].failed(KeyError())),
            )
        assert found.loop.micros == SECOND
        assert found.servers[0].did == [("started", 0), ("killed", SECOND)]

    def test_a_failure_is_raised_as_it_is_if_it_is_an_error(self) -> None:
        error = KeyError("x")
        assert as_error(error) is error
        assert isinstance(as_error(GeneratorExit()), EngineFault)


class TestKills:
    @pytest.mark.parametrize(
        ("drawn", "struck"),
        [
            ([0], 1_000),
            # Before what was written is done, or a while later if nothing is.
            ([1], 201_000),
            ([2, 7], 1_000),
            ([2, 0], 1_000),
            ([3, 150], 1_150),
        ],
    )
    def test_a_kill_strikes_at_one_of_several_moments(
        self, play: Callable[..., Play], drawn: list[int], struck: int
    ) -> None:
        found = play(below=[5, *drawn, 6])
        found.cluster._start()
        found.loop.at(1_000, lambda: found.cluster.kill_server(3_000))
        found.until(1_000_000)
        first, second = found.servers
        assert first.did == [("started", 0), ("killed", struck)]
        assert second.did == [("started", struck + 3_000)]
        assert (first.seed, second.seed) == (5, 6)
        assert found.cluster._kills == [struck]
        dice: Any = found.cluster._random
        bounds = {1: [], 0: [], 2: [12], 3: [200_000]}[drawn[0]]
        assert dice.bounds == [2**31, 4, *bounds, 2**31]

    def test_a_server_that_writes_is_killed_before_anything_is_done(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(below=[0, 1])
        found.cluster._start()
        found.cluster.kill_server(10)
        found.loop.at(70, lambda: found.servers[0].after_writing())
        found.until(1_000_000)
        # The strike that would have come later meets another server.
        assert [each.did for each in found.servers] == [
            [("started", 0), ("killed", 70)],
            [("started", 80)],
        ]

    @pytest.mark.parametrize(("down", "absence"), [(None, SECOND), (0, 1), (1, 1), (50, 50)])
    def test_a_server_is_away_for_as_long_as_the_fault_says(
        self, play: Callable[..., Play], down: int | None, absence: int
    ) -> None:
        found = play()
        found.cluster._start()
        found.cluster.kill_server(down)
        # Nobody is there to be killed.
        found.cluster.kill_server(1)
        found.until(2 * SECOND)
        assert [each.did[0][1] for each in found.servers] == [0, absence]
        assert found.cluster._kills == [0]

    def test_a_server_that_gives_up_is_started_again(self, play: Callable[..., Play]) -> None:
        found = play()
        found.cluster._start()
        found.servers[0].gave_up()
        found.servers[0].gave_up()
        found.until(3 * SECOND)
        assert [each.did[0][1] for each in found.servers] == [0, SECOND]
        assert found.cluster._kills == [0]

    def test_nobody_is_killed_in_the_end_and_whoever_is_away_comes_back(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(below=[0, 3, 150])
        end = 100 * SECOND
        found.run(
            # This strike would come after the end.
            (end - 100, lambda: found.cluster.kill_server(10)),
            (end + 5, lambda: found.cluster.kill_server(10)),
        )
        assert [each.did[0] for each in found.servers] == [("started", 0)]
        assert found.cluster._kills == []

    def test_a_server_that_is_away_at_the_end_is_there_at_once(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(below=[0, 0])
        end = 100 * SECOND
        found.run((end - 100, lambda: found.cluster.kill_server(10_000)))
        assert [each.did[0] for each in found.servers] == [("started", 0), ("started", end)]

    def test_what_former_servers_have_sent_no_longer_arrives(
        self, play: Callable[..., Play]
    ) -> None:
        found = play()
        found.cluster._start()
        found.cluster.kill_server(10)
        assert not found.servers[0].sender.is_succeeded
        found.until(20)
        assert [each.sender.is_succeeded for each in found.servers] == [True, False]
        # One that is there is not started a second time.
        found.cluster._start()
        assert len(found.servers) == 2

    def test_a_server_may_find_nothing_of_the_one_before(self, play: Callable[..., Play]) -> None:
        found = play(uniform=[0.3, 0.29, 0.9])
        for _ in range(4):
            found.cluster._start()
            found.cluster._kill(found.cluster._server, 10**9)  # type: ignore[arg-type]
        names = [each.directory.name for each in found.servers]
        assert names == ["0", "0", "1", "1"]


class TestDisturbances:
    @pytest.mark.parametrize(
        ("fault", "told"),
        [
            (Partition(at=0, lasts=7, isolated=()), ("cut", 7)),
            (AgentDown(at=0, lasts=8), ("cut", 8)),
            (AgentDown(at=0), ("cut", SECOND)),
            (AgentSlow(at=0, extra=3, lasts=9), ("slow_down", 3, 9)),
            (AgentSlow(at=0, extra=3), ("slow_down", 3, SECOND)),
            (AgentStale(at=0, lasts=5), ("silence", 5)),
            (AgentStale(at=0), ("silence", SECOND)),
        ],
    )
    def test_each_fault_of_the_network_has_its_way(
        self, play: Callable[..., Play], fault: Any, told: tuple[Any, ...]
    ) -> None:
        found, did = play(), []
        for name in ("cut", "slow_down", "silence"):
            setattr(found.network, name, partial(lambda *given: did.append(given), name))
        found.cluster.disturb(fault)
        assert did == [told]

    def test_each_fault_of_a_machine_has_its_way(self, play: Callable[..., Play]) -> None:
        found, did = play(), []
        for name in ("remove_node", "cordon", "resize"):
            note = partial(lambda *given: did.append(given), name)
            setattr(found.cluster._workload, name, note)
        found.cluster.crash_machine("m", 5)
        found.cluster.drain_machine("m", True)
        found.cluster.resize_machine("m", "capacity")  # type: ignore[arg-type]
        assert did == [("remove_node", "m", 5), ("cordon", "m", True), ("resize", "m", "capacity")]


def test_a_recording_has_what_is_known_in_the_end_and_the_journals_of_all_disks(
    play: Callable[..., Play],
) -> None:
    found = play(uniform=[0.0, 0.9], below=[0, 0, 0, 0, 0])
    known = [
        pod(PodState.BOUND, "u0", node="m0", job="a", index=3),
        pod(PodState.BINDING, "u1", node="m1", job="a", index=4),
        pod(PodState.LEAVING, "u2", node="m1"),
        pod(PodState.WAITING, "u3", job="b"),
        pod(PodState.HELD, "u4", node="m1", job="b", index=1),
        pod(PodState.OUTSIDE, "u5", obstacle="too strange"),
    ]
    last: dict[str, Any] = {each.uid: each for each in known}
    recording = found.run(
        (SECOND, lambda: found.cluster.kill_server(10)),
        (2 * SECOND, lambda: found.cluster.kill_server(10)),
        (3 * SECOND, lambda: found.servers[-1].pods.pods.update(last)),
    )
    assert [each.directory.name for each in found.servers] == ["0", "1", "1"]
    assert (recording.journal, recording.later) == (b"1-1", (b"1-2",))
    assert recording.lost == ((b"0-1", b"0-2"),)
    assert recording.counts == {"disk": "1"}
    assert recording.processes == {"a/3": "m0", "a/4": "m1", "b/1": "m1"}
    assert recording.pods is not None
    assert recording.pods.kills == (SECOND, 2 * SECOND)
    assert [(each.uid, each.is_bound) for each in recording.pods.known] == [
        ("u0", True),
        ("u1", True),
        ("u2", True),
        ("u3", False),
        ("u4", False),
        ("u5", False),
    ]
    assert recording.pods.known[0] == KnownPod(
        uid="u0", node="m0", is_bound=True, obstacle="", job="a", index=3
    )
    assert recording.pods.known[5].obstacle == "too strange"
    kinds = [(each.at, each.kind) for each in recording.pods.records]
    assert kinds == [(0, "node")] * 8 + [(0, "pod")]


def test_a_disk_that_nothing_was_written_to_has_no_journals(
    play: Callable[..., Play], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = play(uniform=[0.0])
    monkeypatch.setattr(runs, "stored_journals", lambda store: (b"j",) if store.name == "1" else ())
    recording = found.run((SECOND, lambda: found.cluster.kill_server(10)))
    assert (recording.journal, recording.later, recording.lost) == (b"j", (), ())


def test_kubernetes_is_played_for_scenarios_without_what_it_lacks() -> None:
    found = PodRuns()
    assert (found.is_exact, found.repeats) == (False, True)
    assert found.lacks == {"clusters", "constraints", "decision-times", "groups", "phases"}


class TestServers:
    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[Any]:
        """A real one, which is not started, with all that it tells."""
        loop = VirtualLoop()
        told: list[Any] = []
        network: Any = SimpleNamespace(loop=loop)
        found = PlayedServer(
            OPEN, {}, network, tmp_path, 1, told.append, lambda: told.append("gave up")
        )
        yield SimpleNamespace(loop=loop, it=found, told=told)
        loop.close()

    @staticmethod
    async def fail(error: BaseException) -> None:
        raise error

    @pytest.mark.parametrize(
        ("is_reading", "error", "told"),
        [
            (True, KubernetesUnreachable("r", "p", may_have_happened=False), "gave up"),
            (True, ValueError("x"), "x"),
            (False, KubernetesUnreachable("r", "p", may_have_happened=False), "error"),
        ],
    )
    def test_a_server_gives_up_if_it_cannot_read_what_there_is(
        self, server: Any, is_reading: bool, error: Exception, told: str
    ) -> None:
        server.it.pods = None if is_reading else object()

        async def run() -> None:
            server.it.adds(asyncio.ensure_future(self.fail(error)))
            for _ in range(3):
                await asyncio.sleep(0)

        server.loop.run_until_complete(run())
        assert server.told == (["gave up"] if told == "gave up" else [error])

    def test_work_that_ends_well_is_no_failure(self, server: Any) -> None:
        async def run() -> None:
            server.it.adds(asyncio.ensure_future(asyncio.sleep(0)))
            for _ in range(3):
                await asyncio.sleep(0)

        server.loop.run_until_complete(run())
        assert server.told == []
        assert server.it._tasks == {}

    def test_a_server_that_is_killed_says_nothing_more(self, server: Any) -> None:
        ended = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        async def run() -> None:
            closed = []
            server.it._store = SimpleNamespace(close=lambda: closed.append(True))
            server.it.adds(asyncio.ensure_future(work()))
            server.it.adds(asyncio.ensure_future(self.fail(ValueError())))
            await asyncio.sleep(0)
            server.it.kill()
            server.it.kill()
            assert closed == [True]
            # What begins after its end ends at once.
            late = asyncio.ensure_future(work())
            server.it.adds(late)
            for _ in range(5):
                await asyncio.sleep(0)
            assert late.cancelled()

        server.loop.run_until_complete(run())
        assert server.told == []
        assert ended == [True]

    def test_a_server_that_wrote_may_be_killed_by_whoever_waited_for_that(
        self, server: Any
    ) -> None:
        server.it._turn_written(0.5)
        server.it.after_writing = server.it.kill
        with pytest.raises(ServerKilled):
            server.it._turn_written(0.5)
        assert server.it.is_dead
