"""How long a fleet that fails rests, who hears of it, and what becomes of those who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from test_live_turns import MS, SECOND, Live

from argosy.model.errors import ArgosyError, EngineFault, FleetRefused
from argosy.service import live as module
from argosy.service.live import Unavailable
from argosy.worlds.local.store import StoreError


class TimedLive(Live):
    """Knows when the fleet started again."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[int] = []
        log, self.log = self.log, SimpleNamespace(append=self._say)  # type: ignore[assignment]
        self.lines = log

    def _say(self, line: str) -> None:
        self.lines.append(line)
        if line == "the fleet started again":
            self.starts.append(self.loop.micros)

    def fail(self) -> None:
        self.cluster._drop(EngineFault("broken"))


@pytest.fixture
def live() -> Iterator[TimedLive]:
    found = TimedLive()
    yield found
    found.loop.close()


def test_rests_double_until_the_fleet_has_been_calm_for_a_minute(live: TimedLive) -> None:
    faults = [1 * SECOND, 2 * SECOND, 3 * SECOND, 63 * SECOND, 123 * SECOND - MS, 150 * SECOND]
    live.run(200 * SECOND, *((at, live.fail) for at in faults))
    rests = [start - at for start, at in zip(live.starts, faults, strict=True)]
    assert rests == [100 * MS, 200 * MS, 400 * MS, 100 * MS, 200 * MS, 400 * MS]


def test_no_rest_is_longer_than_half_a_minute(live: TimedLive) -> None:
    faults = [at * 50 * SECOND for at in range(1, 12)]
    live.run(700 * SECOND, *((at, live.fail) for at in faults))
    rests = [(start - at) // (100 * MS) for start, at in zip(live.starts, faults, strict=True)]
    assert rests == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_a_fault_is_told_once_and_to_all_who_wait_and_listen(live: TimedLive) -> None:
    told: list[Any] = []

    async def ask() -> None:
        try:
            await live.cluster.do(lambda world: world.did.append("asked"))
        except ArgosyError as error:
            told.append((live.loop.micros, str(error)))

    def begin() -> None:
        live.cluster.fault_listeners += [told.append, lambda fault: told.append("second")]
        asks = [asyncio.ensure_future(ask()) for _ in range(2)]

        def fail() -> None:
            for reason in ("broken", "again"):
                live.cluster._drop(EngineFault(reason))
            # What comes while it fails is nobody's.
            live.world.ended = lambda *given: told.append(given)  # type: ignore[attr-defined]
            live.cluster.ended(7, None)
            assert live.cluster.tell(lambda world: "taken") is None

        asks[0].get_loop().call_soon(fail)

    live.run(SECOND, (MS, begin))
    fault = told[0]
    assert str(fault) == "broken"
    assert told[1:] == ["second", (MS, "broken"), (MS, "broken")]
    assert live.starts == [101 * MS]
    assert live.lines.count("the fleet failed: broken") == 1
    assert "the fleet failed: again" not in live.lines


def test_mistakes_of_callers_are_theirs_and_all_others_are_faults(live: TimedLive) -> None:
    told: list[Any] = []

    def wrong(error: Exception) -> Any:
        def action(world: Any) -> None:
            raise error

        async def ask() -> None:
            with pytest.raises(ArgosyError) as caught:
                await live.cluster.do(action)
            told.append((type(caught.value), str(caught.value), live.cluster.is_failing))

        return lambda: asyncio.ensure_future(ask())

    mine = ArgosyError("no such job")
    live.run(
        SECOND,
        (MS, wrong(mine)),
        (2 * MS, wrong(KeyError("x"))),
        (3 * MS, wrong(mine)),
    )
    internal = "an internal error: KeyError: 'x'"
    assert told == [
        (ArgosyError, "no such job", False),
        (EngineFault, internal, True),
        (Unavailable, f"the fleet fails: {internal}; try again later", True),
    ]


@pytest.mark.parametrize("is_passing", [True, False])
def test_a_fleet_that_cannot_start_is_tried_again_unless_the_database_is_broken(
    live: TimedLive, is_passing: bool
) -> None:
    errors: list[ArgosyError] = [
        EngineFault("no engine"),
        StoreError("disk", is_passing=is_passing),
    ]
    troubles: list[str] = []

    def built() -> Any:
        troubles.append(str(live.cluster.trouble))
        if errors:
            raise errors.pop(0)
        return live.world

    def begin() -> None:
        live.cluster._built = built  # type: ignore[method-assign]
        live.fail()

    if is_passing:
        live.run(2 * SECOND, (MS, begin))
        assert troubles == ["broken", "no engine", "disk"]
        assert live.starts == [701 * MS]
        assert (live.cluster.trouble, live.cluster.is_failing) == (None, False)
    else:
        with pytest.raises(StoreError, match="disk"):
            live.run(2 * SECOND, (MS, begin))
        assert troubles == ["broken", "no engine"]


@pytest.mark.parametrize("works", [True, False])
def test_another_fleet_may_do_while_one_fails(
    live: TimedLive, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    fleets: list[Any] = []

    def replace_fleet(store: Any, fleet: Any) -> str:
        fleets.append(fleet)
        return "before"

    monkeypatch.setattr(module, "replace_fleet", replace_fleet)
    live.world.store = None  # type: ignore[attr-defined]
    told: list[Any] = []

    def built() -> Any:
        if not works:
            raise EngineFault("neither")
        return live.world

    async def change() -> None:
        try:
            await live.cluster.change_fleet("other")  # type: ignore[arg-type]
        except FleetRefused as refused:
            told.append("neither" in str(refused))
        told.append((str(live.cluster.trouble), live.cluster.is_failing))

    def begin() -> None:
        usual = live.cluster._built
        live.cluster._built = built  # type: ignore[method-assign]
        live.fail()

        def go_on(_: object) -> None:
            live.cluster._built = usual  # type: ignore[method-assign]

        asyncio.ensure_future(change()).add_done_callback(go_on)

    live.run(SECOND, (MS, begin))
    assert fleets == (["other"] if works else ["other", "before"])
    assert told == ([("None", False)] if works else [True, ("broken", True)])


def test_processes_are_looked_at_again_after_a_look_that_failed(live: TimedLive) -> None:
    looks: list[int] = []

    def sweep() -> None:
        looks.append(live.loop.micros)
        if len(looks) == 1:
            raise OSError(24, "Too many open files")

    live.sweep = sweep  # type: ignore[method-assign]
    live.run(11 * SECOND)
    assert looks == [5 * SECOND, 10 * SECOND]
    assert live.lines == ["cannot look at the tasks' processes: Too many open files"]


def test_processes_are_started_slice_by_slice_and_reported_if_they_never_lived(
    live: TimedLive,
) -> None:
    acted: list[Any] = []
    more = [True, True, False]

    def act(seconds: float | None = None) -> bool:
        acted.append(seconds)
        return more.pop(0) if more else False

    live.world.act = act  # type: ignore[method-assign]
    live.has_stillborn = True
    live.hear = lambda: acted.append("heard")  # type: ignore[method-assign]
    turns: list[float] = []

    def begin() -> None:
        live.cluster.listeners.append(turns.append)
        live.cluster.tell(lambda world: None)

    live.run(SECOND, (MS, begin))
    assert [each for each in acted if each != "heard"] == [0.01] * 5 + [None]
    assert acted.count("heard") == 5
    assert turns == [0.0, 0.0, 0.0]
