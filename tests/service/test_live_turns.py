"""When a live cluster writes, rests and looks around, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from argosy.model.errors import EngineFault
from argosy.service.live import LiveCluster, Unavailable
from argosy.testing.virtual_loop import VirtualLoop
from argosy.worlds.local.store import StoreError

MS = 1_000
SECOND = 1_000_000


class World:
    """Remembers when it is written. Something is due when the test says so."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.written: list[int] = []
        self.did: list[str] = []
        self.due: list[int] = []
        self.troubles: list[Exception] = []

    @property
    def now(self) -> int:
        return self._loop.micros

    def next_due(self) -> int | None:
        return self.due[0] if self.due else None

    def settle(self) -> None:
        self.did.append("settle")

    def write(self) -> None:
        self.written.append(self.now)
        assert len(self.written) < 100, "it never rests"
        if self.troubles:
            raise self.troubles.pop(0)
        self.did.append("write")
        self.due = [at for at in self.due if at > self.now]

    def act(self, seconds: float | None = None) -> bool:
        return False


class Live:
    def __init__(self) -> None:
        self.loop = VirtualLoop(lambda: 0.25)
        self.world = World(self.loop)
        self.swept: list[int] = []
        self.log: list[str] = []
        self.has_stillborn = False
        self.cluster: LiveCluster

    def hear(self) -> None:
        raise AssertionError("nothing was reported")

    def sweep(self) -> None:
        self.swept.append(self.loop.micros)

    def run(self, until: int, *steps: tuple[int, Callable[[], object]]) -> list[int]:
        """What happens until then; returns when it was written before."""

        async def whole() -> None:
            self.cluster = LiveCluster(lambda _: self.world, self, self.log.append)  # type: ignore[arg-type,return-value]
            living = asyncio.ensure_future(self.cluster.run())
            for at, step in steps:
                self.loop.at(at, step)
            await asyncio.sleep(until / 1e6)
            self.cluster.stop()
            await living

        self.loop.run_until_complete(whole())
        # What comes last is written before it ends.
        assert self.world.written[-1] == until
        return [at for at in self.world.written if at < until]


@pytest.fixture
def live() -> Iterator[Live]:
    found = Live()
    yield found
    found.loop.close()


def test_without_anything_to_do_nothing_is_written_and_processes_are_looked_at(live: Live) -> None:
    assert live.run(60 * SECOND) == []
    assert live.swept[:3] == [5 * SECOND, 10 * SECOND, 15 * SECOND]
    assert len(live.swept) in (11, 12)
    assert live.log == []


def test_a_turn_comes_when_something_is_due(live: Live) -> None:
    live.world.due = [2_500 * MS, 2_501 * MS, 30 * SECOND]
    assert live.run(60 * SECOND) == [2_500 * MS, 2_501 * MS, 30 * SECOND]


def test_what_is_due_already_waits_for_nothing(live: Live) -> None:
    live.world.due = [-5]
    assert live.run(SECOND) == [0]


def test_what_nobody_waits_for_shares_a_turn_soon_after_the_first(live: Live) -> None:
    told: list[int] = []

    def tell() -> None:
        result = live.cluster.tell(lambda world: told.append(live.loop.micros) or "taken")
        assert result == "taken"

    steps = [(at * MS, tell) for at in (1, 5, 9, 500)]
    assert live.run(SECOND, *steps) == [11 * MS, 510 * MS]
    assert told == [MS, 5 * MS, 9 * MS, 500 * MS]
    # Schedulers act on each at once.
    assert live.world.did[:3] == ["settle"] * 3


def test_an_input_is_answered_by_the_turn_that_holds_it(live: Live) -> None:
    answers: list[tuple[Any, int]] = []

    async def ask(text: str) -> None:
        answers.append((await live.cluster.do(lambda world: text), live.loop.micros))

    def begin(text: str) -> Callable[[], object]:
        return lambda: asyncio.ensure_future(ask(text))

    assert live.run(SECOND, (MS, begin("a")), (MS, begin("b")), (7 * MS, begin("c"))) == [
        MS,
        7 * MS,
    ]
    assert answers == [("a", MS), ("b", MS), ("c", 7 * MS)]


def test_a_decision_made_beside_is_taken_in_and_written(live: Live) -> None:
    def begin() -> None:
        live.cluster.start(
            lambda: "decision",  # type: ignore[arg-type,return-value]
            lambda decision: live.world.did.append(f"{decision} at {live.loop.micros}"),
        )

    assert live.run(SECOND, (MS, begin)) == [251 * MS]
    assert live.world.did[:3] == ["settle", "decision at 251000", "write"]


def test_a_decision_that_comes_too_late_is_dropped(live: Live) -> None:
    def begin() -> None:
        live.cluster.start(
            lambda: "decision",  # type: ignore[arg-type,return-value]
            lambda decision: live.world.did.append("decided"),
        )

    assert live.run(SECOND, (900 * MS, begin)) == []
    live.loop.run_until_complete(asyncio.sleep(1))
    assert "decided" not in live.world.did


def test_a_database_that_cannot_be_written_is_tried_again_every_second(live: Live) -> None:
    full = StoreError("disk full", is_passing=True)
    live.world.troubles = [full, full]
    refused: list[str] = []

    async def ask() -> None:
        with pytest.raises(Unavailable) as caught:
            await live.cluster.do(lambda world: None)
        refused.append(str(caught.value))

    steps: list[tuple[int, Callable[[], object]]] = [
        (MS, lambda: live.cluster.tell(lambda world: None)),
        (500 * MS, lambda: asyncio.ensure_future(ask())),
    ]
    assert live.run(5 * SECOND, *steps) == [11 * MS, 1_011 * MS, 2_011 * MS]
    assert live.log == ["paused: disk full", "going on"]
    assert refused == ["the cluster is paused: disk full; try again later"]


def test_a_cluster_that_fails_or_stops_says_how_to_go_on(live: Live) -> None:
    refused: list[str] = []

    def ask() -> None:
        with pytest.raises(Unavailable) as caught:
            live.cluster._check_open()
        refused.append(str(caught.value))

    def fail() -> None:
        live.cluster._drop(EngineFault("broken"))
        ask()

    live.run(SECOND, (MS, fail))
    ask()
    assert refused == [
        "the fleet fails: broken; try again later",
        "the server is stopping; try again when it is back",
    ]
    # After a tenth of a second, it starts again.
    assert live.log[0] == "the fleet failed: broken"
    assert live.log[-1] == "the fleet started again"
