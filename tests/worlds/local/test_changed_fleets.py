"""What a change of the fleet leaves as it is: services that wait to start again, and noted keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_local_world import SECOND, LocalBench, sleeper

from argosy.model.errors import ArgosyError
from argosy.model.scenario import FleetEntry, Takes
from argosy.worlds.local.turn import TryResult

OTHER = (FleetEntry(name="t", engine="spread"),)
#: It takes no job of the usual kinds, so it cannot go on with those that there are.
IDLE = (FleetEntry(name="t", engine="omega", takes=Takes(kinds=("none",))),)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    bench = LocalBench(tmp_path)
    yield bench
    bench.store.close()


def change(bench: LocalBench, *, is_refused: bool) -> None:
    if not is_refused:
        bench.world.change_fleet(OTHER)
        return
    with pytest.raises(ArgosyError):
        bench.world.change_fleet(IDLE)
    bench.world.commit()


def tries(bench: LocalBench) -> list[tuple[int, int | None, str]]:
    return bench.store.rows("SELECT try, exit_status, outcome FROM tries ORDER BY try")


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_service_that_waits_to_start_again_goes_on_waiting(
    bench: LocalBench, is_refused: bool
) -> None:
    bench.world.submit(sleeper("web", endless=True))
    bench.go(1)
    for wait in (1, 2):
        bench.end(max(bench.processes.running))
        bench.world.commit()
        bench.go(wait)
    bench.end(3, 7)
    bench.world.commit()
    due = bench.world.now + 4 * SECOND
    assert bench.world.next_due() == due
    bench.go(1)
    change(bench, is_refused=is_refused)
    assert bench.world.next_due() == due
    bench.go(2.9)
    assert bench.processes.launched == [1, 2, 3]
    bench.go(0.1)
    assert bench.processes.launched == [1, 2, 3, 4]
    # It has died three times in a row.
    bench.end(4)
    bench.world.commit()
    assert bench.world.next_due() == bench.world.now + 8 * SECOND


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_service_that_is_cancelled_while_it_waits_keeps_how_it_ended(
    bench: LocalBench, is_refused: bool
) -> None:
    bench.world.submit(sleeper("web", 2, endless=True))
    bench.go(1)
    bench.world.ended(1, TryResult(5, "broken"))
    del bench.processes.running[1]
    bench.world.commit()
    change(bench, is_refused=is_refused)
    assert bench.world.cancel("web") == 2
    bench.go(9)
    assert tries(bench) == [(1, 5, "broken"), (2, None, "cancelled")]
    assert (bench.processes.launched, bench.processes.stopped) == ([1, 2], [2])
    assert bench.states() == {"web": "cancelled"}


def test_the_next_server_has_the_fleet_of_the_database_whatever_it_is_given(
    bench: LocalBench,
) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    given = bench.cluster
    change(bench, is_refused=False)
    bench.kill()
    bench.start()
    assert bench.cluster is given
    assert bench.world.cluster.fleet == OTHER
    bench.go(1)
    assert [journal.header().setup.fleet[0].engine for journal in bench.journals()] == [
        "omega",
        "spread",
        "spread",
    ]


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_key_that_was_noted_is_found_under_another_fleet(
    bench: LocalBench, is_refused: bool
) -> None:
    bench.world.submit(sleeper("a"), ("first", b"1"))
    bench.go(1)
    bench.world.note_key("second", b"2", "noted")
    change(bench, is_refused=is_refused)
    for _ in range(2):
        assert bench.world.job_of_key("first") == (b"1", "a")
        assert bench.world.job_of_key("second") == (b"2", "noted")
        bench.kill()
        bench.start()
