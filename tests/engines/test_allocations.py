"""How the decision on a batch is committed: who is left out, and who may be pushed off."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.engines.families.lra.scheduler import _BATCH
from argosy.engines.medea import Medea
from argosy.model.effects import Commit
from argosy.model.explanations import Explanation
from argosy.testing.builders import job

WHY = Explanation(looked_at=3)


class Bench:
    """A scheduler with a decision on these applications: whether each is placed and preempts."""

    def __init__(
        self, *applications: tuple[bool, bool, int], conflict: str = "kill", moves: int = 0
    ) -> None:
        self.left_out: list[list[str]] = []
        self.promised: list[tuple[str, list[Any]]] = []
        engine: Any = object.__new__(Medea)
        self.engine = engine
        apps = tuple(
            SimpleNamespace(job=job(f"j{at}", preempts=preempts).job, tasks=np.arange(count))
            for at, (_, preempts, count) in enumerate(applications)
        )
        decision = SimpleNamespace(
            placed=[placed for placed, _, _ in applications], moves=[0] * moves, explanation=WHY
        )
        self.claims: Any = object()
        engine._plan = SimpleNamespace(
            applications=apps, decision=decision, claims=self.claims if apps else None
        )
        engine._lra = SimpleNamespace(conflict=conflict)
        engine._context = SimpleNamespace(name="s")
        engine._token, engine._is_allocating = 6, False
        engine._shares = SimpleNamespace(
            promise=lambda name, work, view: self.promised.append((name, list(work)))
        )
        engine._not_placed = self._not_placed
        engine._leave_out_broken = lambda plan, view: ["broken"]
        engine._set_timer = lambda now: [f"timer {now}"]

    def _not_placed(self, applications: Any, view: Any) -> list[Any]:
        self.left_out.append([each.job.id for each in applications])
        return ["left out"]

    def allocate(self) -> list[Any]:
        return list(self.engine._allocate(None, 9))


def test_what_found_no_place_is_left_out_unless_nothing_of_it_is_left() -> None:
    bench = Bench((True, True, 2), (False, True, 2), (False, True, 0), (False, True, 1))
    effects = bench.allocate()
    assert bench.left_out == [["j1", "j3"]]
    assert effects[:2] == ["left out", "broken"]
    bench = Bench((True, True, 1), (False, True, 0))
    assert bench.allocate()[0] == "broken"
    assert bench.left_out == []


@pytest.mark.parametrize(
    ("conflict", "preempting", "kills"),
    [
        ("kill", (True, True), True),
        ("kill", (True, False), False),
        ("kill", (False, True), False),
        ("kill", (False, False), False),
        ("relax", (True, True), False),
        ("reserve", (True, True), False),
    ],
)
def test_others_are_pushed_off_only_if_every_application_may(
    conflict: str, preempting: tuple[bool, bool], kills: bool
) -> None:
    bench = Bench(*((True, may, 1) for may in preempting), conflict=conflict)
    [_, commit] = bench.allocate()
    assert isinstance(commit, Commit)
    assert (commit.token, commit.explanation) == (-6, WHY)
    transaction = commit.transaction
    assert (transaction.scheduler, transaction.claims) == ("s", bench.claims)
    assert (transaction.preempt, transaction.move, transaction.atomic) == (kills, False, False)
    assert bench.engine._is_allocating is True
    assert bench.promised == []


@pytest.mark.parametrize("moves", [0, 1, 3])
def test_a_decision_with_moves_is_committed_as_one(moves: int) -> None:
    [_, commit] = Bench((True, True, 1), moves=moves).allocate()
    assert commit.transaction.move is bool(moves)


def test_a_decision_without_claims_ends_and_promises_nothing_any_more() -> None:
    bench = Bench((False, True, 2))
    bench.engine._plan.claims = None
    assert bench.allocate() == ["left out", "broken", "timer 9"]
    assert (bench.engine._plan, bench.engine._is_allocating) == (None, False)
    assert bench.promised == [(_BATCH, [])]
