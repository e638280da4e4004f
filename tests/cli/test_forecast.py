"""A long comparison says how long it will take, once."""

from __future__ import annotations

from argosy.cli.forecast import Forecast


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_left_is_told_once_from_what_has_passed() -> None:
    clock = Clock()
    forecast = Forecast("stop it with Ctrl-C", clock)
    clock.now = 2.0
    assert forecast.line(0.01) is None
    clock.now = 10.0
    assert forecast.line(0.0) is None
    assert forecast.line(0.1) == "note: about 1.5 min left; stop it with Ctrl-C"
    clock.now = 20.0
    assert forecast.line(0.11) is None


def test_a_short_rest_is_not_worth_a_line() -> None:
    clock = Clock()
    forecast = Forecast("", clock)
    clock.now = 10.0
    assert forecast.line(0.5) is None
    assert forecast.line(1.0) is None
