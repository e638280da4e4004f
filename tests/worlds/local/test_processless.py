"""Tries for which no process is started: they take as long as their jobs estimate."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.local.simulated import SimulatedRunner
from argosy.worlds.local.turn import TryResult

ROOM = Resources(1, 1)
MACHINE = Machine("m", ROOM)
STOPPED = TryResult(-15, "stopped", was_stopped=True)


class Due:
    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self.seconds, self.action, self.is_cancelled = seconds, action, False

    def cancel(self) -> None:
        self.is_cancelled = True


class Bench:
    def __init__(self) -> None:
        self.due: list[Due] = []
        self.ends: list[tuple[int, TryResult | None]] = []
        self.runner = SimulatedRunner(self.later, lambda *end: self.ends.append(end))

    def later(self, seconds: float, action: Callable[[], None]) -> Due:
        self.due.append(Due(seconds, action))
        return self.due[-1]

    def launch(self, number: int, estimate: int | None, *, endless: bool = False) -> None:
        other = TaskGroup(1, ROOM, estimate=77)
        group = TaskGroup(2, ROOM, estimate=estimate, endless=endless)
        self.runner.launch(number, Job("a", (other, group)), 2, MACHINE)

    def pass_on(self) -> None:
        """All that is due happens, in order."""
        due, self.due = self.due, []
        for each in sorted(due, key=lambda each: each.seconds):
            if not each.is_cancelled:
                each.action()


def test_a_task_takes_as_long_as_its_own_group_estimates() -> None:
    bench = Bench()
    bench.launch(4, 2_500_000)
    assert [each.seconds for each in bench.due] == [2.5]
    assert bench.runner.is_running(4)
    assert not bench.runner.is_running(5)
    assert not bench.runner.is_idle
    bench.pass_on()
    assert bench.ends == [(4, TryResult(0))]
    assert not bench.runner.is_running(4)
    assert bench.runner.is_idle


@pytest.mark.parametrize("endless", [False, True])
def test_services_and_tasks_without_an_estimate_run_until_they_are_stopped(endless: bool) -> None:
    bench = Bench()
    bench.launch(4, None, endless=endless)
    assert bench.due == []
    bench.runner.stop(4)
    assert (bench.ends, [each.seconds for each in bench.due]) == ([], [0.0])
    bench.pass_on()
    assert bench.ends == [(4, STOPPED)]


def test_a_stop_comes_before_the_end_and_is_the_only_one() -> None:
    bench = Bench()
    bench.launch(4, 1_000_000)
    bench.runner.stop(4)
    assert [each.is_cancelled for each in bench.due] == [True, False]
    bench.runner.stop(4)
    bench.pass_on()
    assert bench.ends == [(4, STOPPED)], "the end is told once"


def test_the_end_of_a_try_that_was_never_launched_is_told_all_the_same() -> None:
    bench = Bench()
    bench.runner.stop(9)
    assert bench.runner.is_running(9)
    bench.pass_on()
    assert bench.ends == [(9, STOPPED)]


def test_nothing_outlives_the_server() -> None:
    bench = Bench()
    bench.launch(4, 1_000_000)
    bench.launch(5, None)
    bench.runner.close()
    assert [each.is_cancelled for each in bench.due] == [True]
    assert bench.runner.adopt(4) is False
    assert bench.runner.discard_after(17) == 17
    assert (bench.runner.directory_of(4), bench.runner.report_fd) == ("", None)
    assert bench.runner.has_stillborn is False
    assert "no process is started" in bench.runner.limits()
