"""A job that shrinks and grows again: what was removed comes back, and what is over stays over."""

from __future__ import annotations

import io

import pytest
from host_bench import Bench

from argosy.engines.registry import ENGINES
from argosy.host import TaskState
from argosy.host.journal import Journal
from argosy.host.setup import HostSetup
from argosy.model.jobs import Job
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.records.journal_file import JournalFile
from argosy.records.state import RunState
from argosy.testing.builders import GIB, SECOND, job, scenario
from argosy.worlds.local.projection import Projection
from argosy.worlds.sim import SimulatedWorld

EVERY_ENGINE = pytest.mark.parametrize("engine", ENGINES)


def web(count: int) -> SimulatedJob:
    """Its third task is over in no time, compared with the others."""
    seconds = [100, 100, 2, 100, 100, 100][:count]
    group = group_with_truth(
        count, Resources(500, GIB), tuple(each * SECOND for each in seconds), estimate=100 * SECOND
    )
    return simulated_job("web", group)


class Scaled:
    """A run in which `web` is scaled at these seconds."""

    def __init__(self, engine: str, counts: dict[int, int], horizon: int = 1_000) -> None:
        self._stream = io.BytesIO()
        self._journal = Journal(self._stream)
        spec = scenario(engine, [web(4)], horizon=horizon * SECOND)
        self.world = SimulatedWorld(spec, ENGINES, self._journal)
        self.setup = HostSetup.of(spec)
        for second, count in counts.items():
            self.world.inject(second * SECOND, lambda count=count: self._scale(count))  # type: ignore[misc]
        self.world.run()
        self._journal.flush()
        self.lines = self._stream.getvalue()

    def _scale(self, count: int) -> None:
        made = web(count)
        self.world.tell_times(0, made)
        self.world.host.scale(0, made.job)

    @property
    def counts(self) -> dict[str, int]:
        board = dict(zip(TaskState.__members__, self.world.host.board.counts(), strict=True))
        return {state.lower(): int(count) for state, count in board.items() if count}


def large(count: int) -> Job:
    """Each task fills a machine, and waits for ten seconds after it has failed."""
    return job("web", count, cpu=4_000, seconds=None, retries=5, backoff=10 * SECOND).job


@EVERY_ENGINE
def test_a_task_that_comes_back_while_it_waits_for_its_next_try_is_handed_over_once(
    engine: str,
) -> None:
    bench = Bench(engine)
    number = bench.host.submit(large(2))
    bench.go(70)
    assert bench.host.fail_task(1, bench.machines.running.pop(1)[1], 1, "no luck")
    # The other machines are taken, so that it is still pending when its wait is over.
    others = bench.host.submit(job("others", 7, cpu=4_000, seconds=None).job)
    for second, count in ((71, 1), (72, 2)):
        bench.go(second)
        bench.host.scale(number, large(count))
    bench.go(100)
    bench.host.cancel(others)
    bench.go(400)
    assert bench.host.board.state(1) is TaskState.RUNNING
    bench.replay()


@EVERY_ENGINE
def test_a_task_that_had_ended_does_not_run_again(engine: str) -> None:
    run = Scaled(engine, {70: 1, 80: 4})
    assert run.counts == {"finished": 4}


@pytest.mark.parametrize(
    ("counts", "horizon", "expected"),
    [
        ({70: 1, 80: 4}, 75, {"running": 1, "finished": 1, "cancelled": 2}),
        ({70: 1, 80: 4}, 90, {"running": 3, "finished": 1}),
        ({70: 2, 71: 1, 80: 3}, 90, {"running": 2, "finished": 1, "cancelled": 1}),
        ({70: 1, 80: 6}, 90, {"running": 5, "finished": 1}),
        ({70: 6, 80: 1, 85: 5}, 90, {"running": 4, "finished": 1, "cancelled": 1}),
    ],
)
class TestEveryReader:
    """The host, its journal read later, and the rows of a local cluster's database agree."""

    def test_the_state_read_from_the_journal_is_the_hosts(
        self, counts: dict[int, int], horizon: int, expected: dict[str, int]
    ) -> None:
        run = Scaled("omega", counts, horizon)
        assert run.counts == expected
        state = RunState.of(JournalFile(run.lines), until=horizon * SECOND)
        told = {each.name.lower(): count for each, count in state.counts.items() if count}
        assert told == expected

    def test_the_rows_of_the_database_are_the_hosts(
        self, counts: dict[int, int], horizon: int, expected: dict[str, int]
    ) -> None:
        run = Scaled("omega", counts, horizon)
        projection = Projection(1)
        projection.begin_life(run.setup.cell.machines, 1, 0)
        projection.fold(run.lines)
        row = projection.by_id["web"]
        assert {state: count for state, count in row.counts.items() if count} == expected
        by_state = [row.tasks[index].state for index in sorted(row.tasks)]
        assert {state: by_state.count(state) for state in set(by_state)} == expected
