"""What schedulers held, and who stood in whose way, counted again the slow way."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.host.journal import Journal
from argosy.host.records import (
    AttemptRecord,
    LostRecord,
    PlacedRecord,
    RefusedRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, SchedulerLimits
from argosy.model.tasks import task_numbers
from argosy.records.audit import Audit, SchedulerAudit, audit
from argosy.records.holdings import GroupRequests, Holdings, vector
from argosy.records.journal_run import open_recording
from argosy.testing.builders import GIB, job, scenario

#: Scheduler, job, begin, duration (it may be lost at once), amount.
Claim = tuple[int, int, int, int, int]
claims = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 3),
        st.integers(0, 6),
        st.integers(0, 4),
        st.integers(1, 9),
    ),
    max_size=40,
)


def held(made: list[Claim]) -> Holdings:
    columns = np.array(made, np.int64).reshape(-1, 5)
    return Holdings(
        names=["p", "q"],
        schedulers=columns[:, 0],
        tasks=task_numbers(columns[:, 1], np.zeros(len(columns), np.int64)),
        amounts=columns[:, 4:],
        begin=columns[:, 2],
        end=columns[:, 2] + columns[:, 3],
        was_preempted=columns[:, 4] == 9,
    )


@given(claims)
def test_a_holding_is_what_a_look_at_every_instant_finds(made: list[Claim]) -> None:
    for number, name in enumerate(("p", "q")):
        mine = [claim for claim in made if claim[0] == number]
        open_at = [
            [claim for claim in mine if claim[2] <= at < claim[2] + claim[3]] for at in range(12)
        ]
        found = held(made).of(name)
        assert found.time == [sum(duration * amount for *_, duration, amount in mine)]
        assert found.claims == len(mine)
        assert found.jobs == len({claim[1] for claim in mine})
        assert found.preempted == sum(claim[4] == 9 for claim in mine)
        assert found.peak == [max(sum(claim[4] for claim in each) for each in open_at)]
        assert found.peak_jobs == max(len({claim[1] for claim in each}) for each in open_at)


def test_who_is_not_there_holds_nothing() -> None:
    found = held([(0, 0, 0, 5, 3)]).of("nobody")
    assert (found.time, found.peak, found.claims, found.jobs, found.peak_jobs) == (
        [0],
        [0],
        0,
        0,
        0,
    )


def written(tmp_path: Path, *facts: Any, fleet: tuple[FleetEntry, ...]) -> Audit:
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(scenario("omega", [], fleet=fleet)))
    for number, name in enumerate("ab"):
        journal.write(SubmittedRecord(0, number, job(name, 9).job, "p"))
    for fact in facts:
        journal.write(fact)
    journal.flush()
    (tmp_path / "journal.jsonl").write_bytes(stream.getvalue())
    return audit(open_recording(tmp_path / "journal.jsonl"))


PAIR = (
    FleetEntry(
        name="p",
        engine="omega",
        limits=SchedulerLimits(resources=Resources(3_000, 0), precedence=4),
    ),
    FleetEntry(name="q", engine="omega"),
)


def refused(at: int, job: str, scheduler: str, *claims: tuple[int, Why]) -> RefusedRecord:
    count = len(claims)
    machines, whys = [machine for machine, _ in claims], [int(why) for _, why in claims]
    return RefusedRecord(
        at, job, list(range(count)), machines, scheduler, whys, [0] * count, [1] * count
    )


def quarrel(tmp_path: Path, *facts: Any) -> tuple[dict[str, SchedulerAudit], int]:
    found = written(tmp_path, *facts, fleet=PAIR)
    return {each.name: each for each in found.schedulers}, found.claims_lost_to_nobody


class TestQuarrels:
    def test_a_claim_is_lost_to_who_took_its_machine_since_the_decision_began(
        self, tmp_path: Path
    ) -> None:
        found, nobody = quarrel(
            tmp_path,
            AttemptRecord(1, "a", "p", 10),
            AttemptRecord(2, "b", "p", 10),
            PlacedRecord(3, "b", [0, 1, 2], [0, 1, 5], "q"),
            AttemptRecord(4, "b", "p", 10),
            # One transaction, two lines. For job b the decision began after the machines were taken.
            refused(12, "a", "p", (0, Why.NO_ROOM), (1, Why.STALE), (2, Why.NO_ROOM)),
            refused(12, "b", "p", (5, Why.MACHINE_GONE), (6, Why.MACHINE_DRAINING)),
            # Another transaction.
            refused(13, "a", "p", (5, Why.NO_ROOM)),
        )
        assert nobody == 3
        assert (found["p"].conflicts_lost, found["p"].claims_lost) == (2, 6)
        assert (found["q"].conflicts_caused, found["q"].claims_caused) == (2, 3)
        assert (found["q"].conflicts_lost, found["p"].conflicts_caused) == (0, 0)

    def test_losers_at_one_instant_are_counted_each(self, tmp_path: Path) -> None:
        found, nobody = quarrel(
            tmp_path,
            PlacedRecord(3, "b", [0], [0], "p"),
            PlacedRecord(3, "b", [1], [1], "q"),
            refused(5, "a", "p", (1, Why.NO_ROOM)),
            refused(5, "a", "q", (0, Why.NO_ROOM), (1, Why.NO_ROOM)),
        )
        assert nobody == 0
        assert (found["p"].conflicts_lost, found["q"].conflicts_lost) == (1, 1)
        assert (found["p"].conflicts_caused, found["p"].claims_caused) == (1, 1)
        assert (found["q"].conflicts_caused, found["q"].claims_caused) == (2, 2)

    def test_limits_are_no_conflicts(self, tmp_path: Path) -> None:
        found, nobody = quarrel(
            tmp_path,
            refused(5, "a", "p", (0, Why.RESOURCE_LIMIT), (0, Why.RESOURCE_LIMIT)),
            refused(6, "a", "p", (0, Why.JOB_LIMIT), (0, Why.TOGETHER)),
        )
        assert found["p"].limit_refusals == {"resource_limit": 2, "job_limit": 1}
        assert (found["p"].conflicts_lost, found["p"].claims_lost, nobody) == (0, 0, 0)
        assert found["q"].limit_refusals == {}

    def test_a_preemption_is_made_by_who_takes_the_machine_at_that_instant(
        self, tmp_path: Path
    ) -> None:
        found, _ = quarrel(
            tmp_path,
            PlacedRecord(1, "a", [0, 1, 2, 3], [0, 0, 1, 2], "q"),
            LostRecord(5, "a", [0, 1], [0, 0], "preempted"),
            LostRecord(5, "a", [3], [2], "machine_gone"),
            PlacedRecord(5, "b", [0], [1], "q"),
            PlacedRecord(5, "b", [1, 2], [0, 0], "p"),
            PlacedRecord(5, "b", [3], [0], "q"),
            LostRecord(6, "a", [2], [1], "preempted"),
            PlacedRecord(7, "a", [2], [1], "q"),
        )
        assert (found["p"].preemptions_made, found["q"].preemptions_made) == (2, 0)
        assert (found["p"].preemptions_suffered, found["q"].preemptions_suffered) == (0, 3)

    def test_a_preempted_worker_beyond_the_jobs_own_counts_too(self, tmp_path: Path) -> None:
        found, _ = quarrel(
            tmp_path,
            PlacedRecord(1, "a", [9], [0], "q"),
            LostRecord(5, "a", [9], [0], "preempted"),
        )
        assert (found["q"].preemptions_suffered, found["q"].claims) == (1, 1)


def test_limits_and_shares_are_of_each_resource_by_itself(tmp_path: Path) -> None:
    hour = 3_600_000_000
    found, _ = quarrel(
        tmp_path,
        PlacedRecord(0, "a", [0, 1], [0, 1], "p"),
        PlacedRecord(hour, "b", [0], [2], "q"),
        PlacedRecord(hour + hour // 2, "b", [1], [2], "q"),
        AttemptRecord(2 * hour, "a", "p", 1),
    )
    cpu, memory = found["p"].resources["cpu"], found["p"].resources["memory"]
    assert (cpu.hours, cpu.share, cpu.peak, cpu.peak_share) == (4, 2 / 32, 2_000, 2 / 32)
    assert (cpu.limit, cpu.peak_of_limit) == (3_000, 2 / 3)
    assert (memory.hours, memory.peak) == (4, 2 * GIB)
    assert (memory.limit, memory.peak_of_limit) == (None, None)
    other = found["q"].resources["cpu"]
    assert (other.hours, other.share, other.peak) == (1.5, 1.5 / 64, 2_000)
    assert other.limit is None
    assert (found["p"].job_limit, found["p"].engine) == (None, "omega")


def test_what_a_task_does_not_ask_for_it_does_not_hold() -> None:
    asked = Resources(5, 6, {"gpu": 2, "tape": 9})
    assert vector(asked, ("cpu", "memory", "gpu", "disk")) == (5, 6, 2, 0)
    requests = GroupRequests([job("a", 2).job, job("b", 1, request=asked).job], ("gpu", "cpu"))
    tasks = task_numbers(np.array([0, 1, 1]), [1, 0, 7])
    assert requests.of(tasks).tolist() == [[0, 1_000], [2, 5], [2, 5]]


@pytest.mark.parametrize("at", [0, 7])
def test_an_audit_of_nothing_has_shares_of_nothing(tmp_path: Path, at: int) -> None:
    found, _ = quarrel(tmp_path, AttemptRecord(at, "a", "p", 1))
    assert found["p"].resources["cpu"].share == 0
