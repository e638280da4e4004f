"""When an answer speaks of a lack of room, of which time, and what it makes of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from argosy.model.answers import WhyAnswer
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.prices import Price
from argosy.records import answers
from argosy.records.answers import TaskAnswers
from argosy.records.shortages import Shortage
from argosy.testing.builders import job

NOW, THEN = 900, 100
LACK = Shortage("no room", ("d",), "wait")
#: There is room.
NONE = Shortage("room", (), "")
PRICE = Price(9, 12, 0)


class Asked:
    """Answers about a task of which the cell says what it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **found: Shortage | None) -> None:
        self.asked: list[tuple[Any, str, bool]] = []
        self.found = {NOW: found["now"], THEN: found["then"]}
        self.cells = {NOW: NOW, THEN: THEN}
        monkeypatch.setattr(answers, "shortage", self._shortage)
        told = self.answers = object.__new__(TaskAnswers)
        group = job("a").job.groups[0]
        self.history: Any = SimpleNamespace(
            spec=job("a", gang=True).job, group=group, decisive=SimpleNamespace(scheduler="s-1")
        )
        told._history, told._run = self.history, SimpleNamespace(reached=NOW)  # type: ignore[assignment]
        told._cell_at = lambda at: self.cells.get(at)  # type: ignore[assignment,method-assign]

    def _shortage(
        self, job: Any, group: Any, cell: int, by: str, *, is_gang: bool
    ) -> Shortage | None:
        assert (job, group) == (self.history.spec, self.history.group)
        self.asked.append((cell, by, is_gang))
        return self.found[cell]

    def lack(self, *, heeds_gangs: bool = True, **explained: Any) -> Shortage | None:
        self.asked.clear()
        return self.answers._shortage(Explanation(**explained), THEN, heeds_gangs)


@pytest.mark.parametrize(
    ("now", "then", "found", "looks"),
    [
        (LACK, NONE, LACK, [NOW]),
        (NONE, LACK, LACK, [NOW, THEN]),
        (None, LACK, None, [NOW]),
        (NONE, None, None, [NOW, THEN]),
    ],
)
def test_what_is_true_by_now_comes_before_what_was_true_then(
    monkeypatch: pytest.MonkeyPatch,
    now: Shortage | None,
    then: Shortage | None,
    found: Shortage | None,
    looks: list[int],
) -> None:
    asked = Asked(monkeypatch, now=now, then=then)
    assert asked.lack() is found
    assert asked.asked == [(at, "s-1", True) for at in looks]


@pytest.mark.parametrize(
    ("explained", "tells"),
    [
        ({}, False),
        ({"looked_at": 5}, True),
        ({"looked_at": 5, "feasible": 1}, False),
        ({"looked_at": 0, "feasible": 0}, False),
        ({"looked_at": 5, "price": PRICE}, False),
        ({"price": PRICE}, False),
    ],
)
def test_a_scheduler_that_saw_room_or_has_a_price_has_a_reason_of_its_own(
    monkeypatch: pytest.MonkeyPatch, explained: dict[str, Any], tells: bool
) -> None:
    asked = Asked(monkeypatch, now=NONE, then=NONE)
    assert asked.lack(**explained) is (NONE if tells else None)


@pytest.mark.parametrize("why", list(Why))
def test_only_refusals_for_want_of_room_are_a_lack_of_it(
    monkeypatch: pytest.MonkeyPatch, why: Why
) -> None:
    asked = Asked(monkeypatch, now=LACK, then=LACK)
    is_lack = why in (Why.TOGETHER, Why.NO_ROOM, Why.ATTEMPTS)
    assert asked.lack(refused=Refusal(why)) is (LACK if is_lack else None)
    assert bool(asked.asked) is is_lack


@pytest.mark.parametrize(
    "explained",
    [{"forbidden": ("'a -> {a, 0, 0} in rack hard'",)}, {"ruled_out": {"cpu": 3, "queue full": 1}}],
)
def test_what_constraints_and_queues_forbid_is_no_lack_of_room(
    monkeypatch: pytest.MonkeyPatch, explained: dict[str, Any]
) -> None:
    asked = Asked(monkeypatch, now=LACK, then=LACK)
    assert asked.lack(**explained) is None
    assert asked.lack(ruled_out={"cpu": 3}) is LACK


def test_a_gang_counts_as_one_only_for_schedulers_that_heed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch, now=LACK, then=LACK)
    asked.lack(heeds_gangs=False)
    asked.history.spec = job("a").job
    asked.answers._shortage(Explanation(), THEN, True)
    assert asked.asked == [(NOW, "s-1", False)] * 2


def test_without_a_picture_of_the_cell_or_a_group_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch, now=NONE, then=LACK)
    asked.cells = {NOW: NOW}
    assert asked.lack() is None
    asked.cells = {}
    assert (asked.lack(), asked.asked) == (None, [])
    asked.cells, asked.history.group = {NOW: NOW, THEN: THEN}, None
    assert (asked.lack(), asked.asked) == (None, [])


def test_who_is_not_named_is_called_its_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, now=LACK, then=LACK)
    asked.history.decisive = SimpleNamespace()
    asked.lack()
    assert asked.asked == [(NOW, "its scheduler", True)]


@pytest.mark.parametrize(
    ("price", "remedies", "details", "remedy"),
    [
        (None, ("more", "wait"), ("d",), "wait"),
        (PRICE, ("more", "wait"), ("d", "Costs 9."), "more, or wait"),
        (PRICE, ("more", ""), ("d", "Costs 9."), "more"),
        (PRICE, ("", "wait"), ("d", "Costs 9."), "wait"),
    ],
)
def test_a_price_is_told_beside_the_lack(
    monkeypatch: pytest.MonkeyPatch,
    price: Price | None,
    remedies: tuple[str, str],
    details: tuple[str, ...],
    remedy: str,
) -> None:
    asked = Asked(monkeypatch, now=LACK, then=LACK)
    monkeypatch.setattr(answers, "price_text", lambda price, history: f"costs {price.waiting}")
    asked.answers.task = "a/0"
    known = WhyAnswer(
        task="a/0",
        state="pending",
        sentence="?",
        remedy=remedies[0],
        nearest_miss="m1",
        price=price,
    )
    lack = Shortage("no room", ("d",), remedies[1])
    told = asked.answers._with_shortage(known, lack, "given up; ")
    assert told.sentence == "a/0 has no machine: given up; no room."
    assert (told.details, told.remedy, told.nearest_miss) == (details, remedy, "m1")
    nearer = Shortage("no room", (), "", "m2")
    assert asked.answers._with_shortage(known, nearer, "").nearest_miss == "m2"
