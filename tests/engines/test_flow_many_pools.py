"""Flow schedulers with more kinds of requests than they keep networks for."""

from __future__ import annotations

import pytest

from argosy.engines.families.flow.pools import _KEPT
from argosy.engines.registry import ENGINES
from argosy.host.records import EndedRecord
from argosy.records.journal_file import JournalFile
from argosy.testing import conformance
from argosy.testing.builders import cell, job, scenario


@pytest.mark.parametrize("engine", ["firmament", "quincy"])
def test_kinds_of_requests_come_and_go_while_others_stay(engine: str) -> None:
    """Some go for good, since only so many that nobody asks for are kept."""
    kinds = 2 * _KEPT
    jobs = [job(f"j{i}", 1, cpu=100 + i, seconds=0.5, submit=0.05 * i) for i in range(kinds)]
    jobs.append(job("always", 2, cpu=1_500, seconds=30, submit=0.1))
    spec = scenario(engine, jobs, cell=cell(6, per_rack=2), replicas=1)
    run = conformance.ConformanceRun(ENGINES[engine], spec)
    ends = [fact for fact in JournalFile(run.log).facts() if isinstance(fact, EndedRecord)]
    assert sum(len(fact.tasks) for fact in ends) == kinds + 2
