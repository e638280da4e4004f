"""Plans beside jobs that run: new jobs have numbers of their own, and what runs stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from live_bench import LiveBench, cluster, job, shell

from argosy.service import planning
from argosy.service.planning import copy_cluster, plan


def test_planned_jobs_are_stored_apart_from_those_that_run(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Kept(planning.Projection):
        def __init__(self, next_seq: int) -> None:
            super().__init__(next_seq)
            made.append((next_seq, self))

    monkeypatch.setattr(planning, "Projection", Kept)
    backend = live.server.backend
    names = [live.submit(shell("sleep 1000", id=f"runs-{at}")) for at in range(3)]
    for name in names:
        live.running(name)
    new = [
        backend.submissions.read(backend.world, job(id=f"new-{at}", count=2), "") for at in range(4)
    ]
    found = plan(copy_cluster(backend.world), backend.engines, new)
    assert found.fits
    assert [(task.job, task.index) for task in found.tasks] == [
        (f"new-{at}", index) for at in range(4) for index in (0, 1)
    ]
    assert found.displaced == ()
    [(first, projection)] = made
    taken = {backend.world.projection.by_id[name].seq for name in names}
    assert first == max(taken) + 1
    seqs = [row.seq for row in projection.by_id.values()]
    assert len(set(seqs)) == len(seqs)
    for name in names:
        live.cancel(name)
        live.over(name)
    # Nothing has come of the plan.
    assert not {"new-0", "new-1"} & set(backend.world.projection.by_id)


def test_a_plan_of_an_empty_cluster_begins_at_one(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    usual = planning.Projection
    monkeypatch.setattr(planning, "Projection", lambda seq: begun.append(seq) or usual(seq))
    backend = live.server.backend
    assert not list(backend.world.open_rows())
    new = backend.submissions.read(backend.world, job(id="new"), "")
    assert plan(copy_cluster(backend.world), backend.engines, [new]).fits
    assert begun == [1]


def test_a_plan_goes_on_until_all_of_its_jobs_have_been_decided_on(
    make_live: Callable[..., LiveBench],
) -> None:
    """Mesos offers to one framework after another, and a millisecond passes for each."""
    backend = make_live(cluster("mesos")).server.backend
    new = [
        backend.submissions.read(backend.world, job(id=f"new-{at}", kind=kind), "")
        for at, kind in enumerate(("batch", "service"))
    ]
    found = plan(copy_cluster(backend.world), backend.engines, new)
    assert [task.state for task in found.tasks] == ["running", "running"]
    assert found.fits
