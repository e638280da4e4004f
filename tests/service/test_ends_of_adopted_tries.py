"""Of tries in other clusters that are over, nothing is left that could be undone or begun again."""

from __future__ import annotations

import pytest
from test_remote_parts import OTHER, PLACE, RunnerBench

from argosy.worlds.local.turn import TryResult

LOST = TryResult(1, "its commit is not known")


@pytest.mark.parametrize("is_adopted", [True, False])
@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_try_that_is_over_leaves_no_place_for_another(is_adopted: bool, is_stopped: bool) -> None:
    bench = RunnerBench()
    runner = bench.runner
    if is_adopted:
        runner.adopt_as(5, "a", 1, PLACE)
    else:
        runner.place("a", 1, PLACE)
        bench.launch(5, 1)
    runner.place("a", 0, OTHER)
    if is_stopped:
        runner.stop(5)
    else:
        runner.ended("k1", TryResult(0))
    bench.go_on()
    assert [number for number, _ in bench.ended] == [5]
    assert (runner.is_known("k1"), runner.is_known("k2"), runner.keys_in("c")) == (
        False,
        True,
        [],
    )
    bench.launch(6, 1)
    bench.go_on()
    assert bench.ended[1:] == [(6, LOST)]
    # Only the commit that no try has begun for can be taken back.
    assert runner.take_unwritten() == [OTHER]


def test_an_end_that_is_not_of_a_known_commit_is_forgotten() -> None:
    bench = RunnerBench()
    bench.runner.ended("k1", TryResult(3))
    bench.runner.place("a", 0, PLACE)
    bench.launch(7)
    bench.go_on()
    assert bench.ended == []
    assert bench.runner.is_running(7)
    assert bench.runner.keys_in("c") == ["k1"]
