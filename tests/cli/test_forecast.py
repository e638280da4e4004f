"""A long comparison says how long it will take, once."""

from __future__ import annotations

from argosy.cli.forecast import Forecast


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_left_is_told_once_from_the_first_results_on() -> None:
    clock = Clock()
    forecast = Forecast("stop it with Ctrl-C", clock)
    clock.now = 100.0
    assert forecast.line(0.0) is None
    assert forecast.line(0.1) is None
    clock.now = 102.0
    assert forecast.line(0.11) is None
    clock.now = 110.0
    assert forecast.line(0.2) == "note: about 1.33 min left; stop it with Ctrl-C"
    clock.now = 120.0
    assert forecast.line(0.21) is None


def test_a_short_rest_is_not_worth_a_line() -> None:
    clock = Clock()
    forecast = Forecast("", clock)
    assert forecast.line(0.1) is None
    clock.now = 10.0
    assert forecast.line(0.5) is None
    assert forecast.line(1.0) is None
