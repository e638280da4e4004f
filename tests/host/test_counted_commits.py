"""What is counted of commits, and in which order their answers come among other effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from host_bench import Bench, web
from scripted_engine import Scripted, claim, world_of

from argosy.cell import View
from argosy.host.busy_time import DAY
from argosy.model.effects import Commit, Effect, WakeMe
from argosy.model.events import Committed, Event, JobSubmitted, TimerFired
from argosy.model.transactions import Claims, Transaction
from argosy.testing.builders import SECOND, job

NONE = np.zeros(0, np.int32)


def counted(scheduler: Any) -> tuple[int, int, int]:
    return scheduler.transactions, scheduler.successes, scheduler.conflicts


def test_every_transaction_with_claims_is_counted_and_on_its_day() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [claim(view, event, 0, engine.context.name)]
        return ()

    bench = Bench(script)
    [scheduler] = bench.host.schedulers
    bench.host.submit(web(2))
    bench.go(1)
    assert counted(scheduler) == (1, 1, 0)
    bench.go(2 * DAY // SECOND)
    bench.host.submit(web(2))
    bench.go(2 * DAY // SECOND + 1)
    assert counted(scheduler) == (2, 2, 0)
    # Eight fill the machine, and the others find no room there.
    bench.host.submit(web(8))
    bench.go(2 * DAY // SECOND + 2)
    assert counted(scheduler) == (3, 2, 1)
    assert dict(scheduler.success_days) == {0: 1, 2: 1}
    assert dict(scheduler.conflict_days) == {2: 1}


def test_a_transaction_without_any_claim_succeeds_in_nothing() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            claims = Claims(NONE.astype(np.int64), NONE, NONE, NONE.astype(np.uint32))
            return [Commit(5, Transaction(engine.context.name, claims))]
        return ()

    bench = Bench(script)
    bench.host.submit(web(1))
    bench.go(1)
    assert counted(bench.host.schedulers[0]) == (1, 0, 0)
    [event] = bench.told(Committed)
    assert isinstance(event, Committed)
    assert (event.token, event.outcome.all_accepted) == (5, True)


@pytest.mark.parametrize("kind", [list, tuple])
def test_the_answer_to_one_of_several_effects_comes_after_the_others(kind: Any) -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return kind((claim(view, event, 0, engine.context.name), WakeMe(now, "now")))  # type: ignore[no-any-return]
        return ()

    world, heard = world_of(script, [job("a", 1, seconds=5)])
    assert [type(event) for _, _, event in heard][-2:] == [TimerFired, Committed]
    assert counted(world.host.schedulers[0]) == (1, 1, 0)
    assert dict(world.host.schedulers[0].success_days) == {0: 1}
