"""What an agent remembers, and for how long."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from live_bench import LiveBench
from test_agent_steps import BOB, Asked

from argosy.service import agent as agent_module


def test_the_last_answers_are_remembered_and_a_repeated_one_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_module, "MOST_REMEMBERED", 3)
    known: OrderedDict[str, int] = OrderedDict()
    for number, name in enumerate("abcad"):
        agent_module._remember(known, name, number)
    assert list(known.items()) == [("c", 2), ("a", 3), ("d", 4)]


def test_a_caller_whose_leases_are_over_may_hold_as_many_again(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, now = Asked(live), [1_000.0]
    monkeypatch.setattr(agent_module.time, "monotonic", lambda: now[0])
    before = asked.counts.expired
    for machine in ("m0", "m1"):
        asked.reserve(BOB, machine, cpu=1_000, lease=5_000_000)
    now[0] = 1_005.0
    again = asked.reserve(BOB, "m0", cpu=1_000, lease=1_000_000)
    assert [each.id for each in asked.agent.reservations(BOB)] == [again]
    assert asked.counts.expired - before == 2
    now[0] = 1_006.0
    assert asked.agent.open_reservations == 0
