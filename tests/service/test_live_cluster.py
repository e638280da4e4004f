"""What drives a live cluster, apart from any server."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from argosy.model.errors import CommandError, EngineFault, FleetRefused
from argosy.service import live
from argosy.service.live import LiveCluster, Unavailable
from argosy.worlds.local.store import StoreError


class FailingReporter:
    """Cannot look at processes at first."""

    has_stillborn = False

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.has_looked = asyncio.Event()

    def hear(self) -> None:
        raise AssertionError("nothing was reported")

    def sweep(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        self.has_looked.set()


def test_looks_at_processes_go_on_after_one_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SWEEP", 0.0)
    told: list[str] = []

    async def sweep() -> None:
        reporter = FailingReporter(failures=2)
        cluster = LiveCluster(lambda _: cast(Any, None), reporter, told.append)
        sweeping = asyncio.create_task(cluster._sweep())
        await asyncio.wait_for(reporter.has_looked.wait(), 30)
        sweeping.cancel()

    asyncio.run(sweep())
    assert told == ["cannot look at the tasks' processes: Too many open files"] * 2


class QuietReporter:
    def __init__(self) -> None:
        self.has_stillborn = False
        self.heard = 0

    def hear(self) -> None:
        self.heard += 1
        self.has_stillborn = False

    def sweep(self) -> None: ...


class FakeWorld:
    """Remembers what is done to it; `troubles` are raised by the next writes."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.store = self
        self.now = 0
        self.due: int | None = None

    def next_due(self) -> int | None:
        return self.due

    def settle(self) -> None:
        self._bench.did.append("settle")

    def write(self) -> None:
        if self._bench.troubles:
            raise self._bench.troubles.pop(0)
        self._bench.did.append("write")

    def act(self, seconds: float | None = None) -> bool:
        self._bench.did.append("act")
        self._bench.acted.append(seconds)
        self._bench.slices -= 1
        return self._bench.slices > 0

    def ended(self, number: int, result: object) -> None:
        self._bench.did.append(f"ended {number}")

    def change_fleet(self, fleet: object) -> None:
        self._bench.did.append(f"fleet {fleet}")


class Bench:
    """A cluster over worlds that only remember, run by the steps of a test."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.log: list[str] = []
        self.troubles: list[Exception] = []
        self.refusals: list[Exception] = []
        self.slices = 0
        #: For how long each time at most; None: to the end.
        self.acted: list[float | None] = []
        self.reporter = QuietReporter()
        self.cluster: LiveCluster

    def build(self, deliberator: object) -> Any:
        if self.refusals:
            raise self.refusals.pop(0)
        self.did.append("build")
        return FakeWorld(self)

    def run(self, test: Callable[[LiveCluster], Awaitable[None]]) -> None:
        async def whole() -> None:
            self.cluster = LiveCluster(self.build, self.reporter, self.log.append)
            living = asyncio.ensure_future(self.cluster.run())
            try:
                await asyncio.wait_for(test(self.cluster), 20)
            finally:
                self.cluster.stop()
                await asyncio.gather(living, return_exceptions=True)

        asyncio.run(whole())


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name in ("PAUSE", "FIRST_REST", "SOON"):
        monkeypatch.setattr(live, name, 0.0)
    return Bench()


def test_an_input_is_answered_when_it_is_written(bench: Bench) -> None:
    async def test(cluster: LiveCluster) -> None:
        seconds: list[float] = []
        cluster.listeners.append(seconds.append)
        assert await cluster.do(lambda world: bench.did.append("input") or 7) == 7  # type: ignore[func-returns-value]
        assert bench.did == ["build", "input", "write", "act"]
        assert len(seconds) == 1
        assert 0 <= seconds[0] < 10

    bench.run(test)
    # The last turn is written at the end, and everything is done that it says.
    assert bench.did[-3:] == ["write", "act", "act"]
    *slices, last = bench.acted
    assert (set(slices), last) == ({live.SLICE}, None)


def test_inputs_at_one_time_share_a_turn(bench: Bench) -> None:
    async def test(cluster: LiveCluster) -> None:
        await asyncio.gather(*(cluster.do(lambda world: None) for _ in range(5)))
        assert bench.did.count("write") == 1

    bench.run(test)


def test_actions_go_on_slice_by_slice_and_the_stillborn_are_heard_of(bench: Bench) -> None:
    bench.slices, bench.reporter.has_stillborn = 3, True

    async def test(cluster: LiveCluster) -> None:
        await cluster.do(lambda world: None)
        while bench.did.count("act") < 3:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert bench.reporter.heard

    bench.run(test)


def test_mistakes_of_a_caller_leave_the_world_as_it_was(bench: Bench) -> None:
    def wrong(world: object) -> None:
        raise CommandError("wrong")

    async def test(cluster: LiveCluster) -> None:
        with pytest.raises(CommandError):
            await cluster.do(wrong)
        assert (cluster.trouble, cluster.is_failing, bench.log) == (None, False, [])
        assert bench.did == ["build"]

    bench.run(test)


def test_a_world_that_breaks_is_built_anew_and_everyone_is_told(bench: Bench) -> None:
    def breaks(world: object) -> None:
        raise KeyError("x")

    async def test(cluster: LiveCluster) -> None:
        waiting = asyncio.ensure_future(cluster.do(lambda world: None))
        await asyncio.sleep(0)
        with pytest.raises(EngineFault, match="an internal error: KeyError: 'x'"):
            await cluster.do(breaks)
        with pytest.raises(EngineFault, match="internal error"):
            await waiting
        assert cluster.is_failing
        with pytest.raises(Unavailable, match="the fleet fails: an internal error"):
            await cluster.do(lambda world: None)
        # Nothing is given to it meanwhile.
        cluster.ended(3, None)
        assert cluster.tell(lambda world: bench.did.append("told")) is None
        while cluster.is_failing:
            await asyncio.sleep(0)
        assert (cluster.trouble, bench.did) == (None, ["build", "build"])
        await cluster.do(lambda world: None)

    bench.run(test)
    assert bench.log[0] == "the fleet failed: an internal error: KeyError: 'x'"
    assert "Traceback" in bench.log[1]
    assert bench.log[2:] == ["the fleet started again"]


def test_a_turn_that_breaks_is_told_to_those_who_wait_for_it(bench: Bench) -> None:
    bench.troubles = [EngineFault("broken")]

    async def test(cluster: LiveCluster) -> None:
        with pytest.raises(EngineFault, match="broken"):
            await cluster.do(lambda world: None)
        while cluster.is_failing:
            await asyncio.sleep(0)
        assert bench.did == ["build", "build"]

    bench.run(test)


def test_a_database_that_cannot_be_written_for_now_pauses_the_cluster(bench: Bench) -> None:
    bench.troubles = [StoreError("full", is_passing=True), StoreError("full", is_passing=True)]

    async def test(cluster: LiveCluster) -> None:
        first = asyncio.ensure_future(cluster.do(lambda world: bench.did.append("input")))
        while cluster.trouble is None:
            await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="the cluster is paused: full"):
            await cluster.do(lambda world: None)
        assert not cluster.is_failing
        await first
        assert cluster.trouble is None
        assert bench.did == ["build", "input", "write", "act"]

    bench.run(test)
    assert bench.log == ["paused: full", "going on"]


@pytest.mark.parametrize("fails", [False, True])
def test_processes_of_a_world_that_failed_are_neither_started_nor_stopped(
    bench: Bench, fails: bool
) -> None:
    bench.slices = 2

    async def test() -> None:
        cluster = LiveCluster(bench.build, bench.reporter, bench.log.append)
        cluster._act()
        if fails:
            cluster._drop(EngineFault("broken"))
        # The second slice is due.
        await asyncio.sleep(0)

    asyncio.run(test())
    assert bench.did.count("act") == (1 if fails else 2)


def test_a_database_that_is_lost_ends_the_cluster(bench: Bench) -> None:
    bench.troubles = [StoreError("gone", is_passing=False)]

    async def test() -> None:
        cluster = LiveCluster(bench.build, bench.reporter, bench.log.append)
        living = asyncio.ensure_future(cluster.run())
        with pytest.raises(Unavailable, match="the server is stopping"):
            await cluster.do(lambda world: None)
        with pytest.raises(StoreError, match="gone"):
            await living

    asyncio.run(test())


def test_a_server_that_stops_does_not_wait_for_a_database_that_cannot_be_written(
    bench: Bench,
) -> None:
    async def test() -> None:
        cluster = LiveCluster(bench.build, bench.reporter, bench.log.append)
        living = asyncio.ensure_future(cluster.run())
        await cluster.do(lambda world: None)
        bench.troubles = [StoreError("full", is_passing=True)]
        asked = asyncio.ensure_future(cluster.do(lambda world: None))
        await asyncio.sleep(0)
        cluster.stop()
        with pytest.raises(StoreError, match="full"):
            await living
        with pytest.raises(Unavailable, match="the server is stopping"):
            await asked

    asyncio.run(test())


def test_what_nobody_waits_for_is_acted_on_at_once_and_written_soon(bench: Bench) -> None:
    async def test(cluster: LiveCluster) -> None:
        written = asyncio.Event()
        cluster.listeners.append(lambda seconds: written.set())
        assert cluster.tell(lambda world: bench.did.append("told") or 4) == 4  # type: ignore[func-returns-value]
        assert cluster.tell(lambda world: 5) == 5
        assert bench.did[1:4] == ["settle", "told", "settle"]
        await written.wait()
        assert bench.did.count("write") == 1
        cluster.ended(8, None)
        written.clear()
        await written.wait()
        assert bench.did[-3:] == ["ended 8", "write", "act"]

    bench.run(test)


def test_something_due_is_waited_for_no_longer(bench: Bench) -> None:
    async def test(cluster: LiveCluster) -> None:
        await cluster.do(lambda world: None)
        world = cast(Any, cluster.world)
        world.now, world.due = 500, 400
        before = bench.did.count("write")
        # The rest that is under way knows nothing of it; the next does.
        await cluster.do(lambda world: None)
        while bench.did.count("write") < before + 2:
            await asyncio.sleep(0)
        world.due = None

    bench.run(test)


def test_a_stopping_server_takes_nothing_more(bench: Bench) -> None:
    async def test(cluster: LiveCluster) -> None:
        cluster.stop()
        assert cluster.is_stopping
        with pytest.raises(Unavailable, match="the server is stopping") as caught:
            await cluster.do(lambda world: None)
        assert caught.value.hint == "try again when it is back"
        assert cluster.tell(lambda world: 1) is None

    bench.run(test)


def test_a_decision_of_an_earlier_world_is_dropped(bench: Bench) -> None:
    async def test(cluster: LiveCluster) -> None:
        done: list[Any] = []
        loop = asyncio.get_running_loop()
        for generation, outcome in ((cluster._generation, "now"), (cluster._generation - 1, "old")):
            future = loop.create_future()
            future.set_result(outcome)
            cluster._decided(generation, done.append, cast(Any, future))
        assert done == ["now"]
        failed = loop.create_future()
        failed.set_exception(ValueError("bad"))
        cluster._decided(cluster._generation, done.append, cast(Any, failed))
        assert cluster.is_failing
        assert "an internal error: ValueError: bad" in bench.log[0]

    bench.run(test)


def test_a_fleet_that_fails_again_and_again_rests_twice_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[float] = []

    async def sleep(seconds: float) -> None:
        rests.append(seconds)

    async def test() -> None:
        bench = Bench()
        cluster = LiveCluster(bench.build, bench.reporter, bench.log.append)
        monkeypatch.setattr(live.asyncio, "sleep", sleep)
        clock = [1_000.0]
        cluster._loop = cast(Any, type("Loop", (), {"time": lambda self: clock[0]})())
        for later in (0, 59, 59, 1, 60, *([30] * 1_100)):
            clock[0] += later
            cluster.is_failing = True
            await cluster._start_again()
            assert not cluster.is_failing

    asyncio.run(test())
    assert rests[:5] == [0.1, 0.2, 0.4, 0.8, 0.1]
    assert rests[5:13] == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6])
    assert rests[13:] == [30.0] * (1_100 - 8)


def test_a_failing_fleet_can_be_replaced_by_one_that_works(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[Any] = ["bad"]

    def replace(store: object, fleet: Any) -> Any:
        stored.append(fleet)
        return stored[-2]

    monkeypatch.setattr(live, "replace_fleet", replace)

    async def test(cluster: LiveCluster) -> None:
        await cluster.change_fleet(cast(Any, "first"))
        assert bench.did[1:] == ["fleet first", "write", "act"]
        cluster.trouble, cluster.is_failing = EngineFault("bad"), True
        bench.refusals = [EngineFault("worse")]
        with pytest.raises(FleetRefused, match="worse"):
            await cluster.change_fleet(cast(Any, "second"))
        assert (str(cluster.trouble), cluster.is_failing) == ("bad", True)
        await cluster.change_fleet(cast(Any, "third"))
        assert (cluster.trouble, cluster.is_failing) == (None, False)

    bench.run(test)
    assert stored == ["bad", "second", "bad", "third"]
    assert bench.log == ["the fleet started again"]
