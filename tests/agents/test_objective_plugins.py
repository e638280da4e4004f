"""Plug-ins beyond the paper: service levels, nearness to a job, stateful tasks and batch tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytest
from msgspec import structs

from argosy.agents.api import Nodes, Requirements
from argosy.agents.learned import NetworkLatency
from argosy.agents.objectives import BatchShare, BatchSort, ServiceLevel, Volume
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.resources import Resources
from argosy.model.transactions import MachineArray
from argosy.testing.builders import GIB, job

#: One way, in microseconds.
DELAYS = {("oslo", "rome"): 25_000, ("rome", "rome"): 500, ("oslo", "oslo"): 500}


class Site:
    """Even machines are in Oslo, odd ones in Rome."""

    def __init__(
        self,
        labels: Mapping[str, Sequence[str]] | None = None,
        jobs: Mapping[str, Collection[str]] | None = None,
        volumes: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        self._labels, self._jobs, self._volumes = labels or {}, jobs or {}, volumes or {}

    def labels(self, key: str, machines: MachineArray) -> Sequence[str]:
        column = self._labels.get(key)
        return [""] * len(machines) if column is None else [column[m] for m in machines]

    def delay(self, one: str, other: str) -> int | None:
        return DELAYS.get((one, other), DELAYS.get((other, one)))

    def cluster_of(self, machine: int) -> str:
        return ("oslo", "rome")[machine % 2]

    def places_of(self, job: str) -> Collection[str]:
        return self._jobs.get(job, ())

    def volume_homes(self, volume: str) -> Collection[int]:
        return self._volumes.get(volume, ())


def nodes(free: Sequence[int], site: Site) -> Nodes:
    """Machines of 4 cores with so many milli-cores free."""
    count = len(free)
    return Nodes(
        np.arange(count, dtype=np.int32),
        np.tile(np.array([4_000, 4 * GIB]), (count, 1)),
        np.array([[cpu, 4 * GIB] for cpu in free], np.int64),
        ("cpu", "memory"),
        site,
        tuple(("oslo", "rome")[m % 2] for m in range(count)),
    )


def task(**demands: str) -> Requirements:
    return Requirements(Resources(1_000, GIB), demands=demands)


def test_a_service_level_prefers_near_fast_and_idle_machines() -> None:
    site = Site(labels={"speed": ["", "", "2", "2"]})
    seen = nodes([4_000, 4_000, 4_000, 2_000], site)
    wanted = task(objective="100", users="rome", work="20")
    # Oslo is 50 ms away and Rome 1 ms; the last machine is twice as fast, and half in use.
    assert ServiceLevel().score(wanted, seen).tolist() == [30, 79, 40, 79]
    both = task(objective="100", users="oslo=3,rome=1", work="20")
    assert ServiceLevel().score(both, seen).tolist()[:2] == [66, 42]


def test_a_service_level_that_cannot_be_met_scores_nothing_but_excludes_nobody() -> None:
    seen = nodes([4_000, 4_000], Site())
    assert ServiceLevel().score(task(objective="40", users="rome"), seen).tolist() == [0, 97]
    for demands in ({"users": "mars"}, {"users": "rome=x"}, {"users": "rome", "work": "much"}):
        assert not ServiceLevel().score(task(objective="40", **demands), seen).any()
    assert not hasattr(ServiceLevel(), "keeps")


def test_nearness_to_a_job_is_nearness_to_its_nearest_task() -> None:
    near = task(near_job="web", latency="10")
    for places, expected in (
        (("rome",), [False, True]),
        (("rome", "oslo"), [True, True]),
        ((), [False, False]),
    ):
        seen = nodes([4_000, 4_000], Site(jobs={"web": places}))
        assert NetworkLatency().keeps(near, seen).tolist() == expected
    # With a place as well, both bounds count.
    seen = nodes([4_000, 4_000], Site(jobs={"web": ("rome", "oslo")}))
    both = task(near_job="web", near="rome", latency="10")
    assert NetworkLatency().keeps(both, seen).tolist() == [False, True]
    assert NetworkLatency().score(both, seen).tolist() == [0, 90]


def test_a_stateful_task_stays_with_its_volume() -> None:
    seen = nodes([4_000] * 4, Site(volumes={"orders": [2]}))
    assert Volume().keeps(task(volume="orders"), seen).tolist() == [False, False, True, False]
    in_cluster = task(volume="orders", volume_scope="cluster")
    assert Volume().keeps(in_cluster, seen).tolist() == [True, False, True, False]
    assert Volume().score(in_cluster, seen).tolist() == [50, 50, 100, 50]
    # A volume that nobody has may be created anywhere.
    assert Volume().keeps(task(volume="new"), seen).all()


def test_a_volume_created_elsewhere_meanwhile_is_a_conflict() -> None:
    seen = nodes([4_000], Site(volumes={"orders": [2]}))
    refusal = Volume().conflict(task(volume="orders"), seen)
    assert refusal is not None
    assert (refusal.why, refusal.machine) == (Why.STALE, 0)
    assert Volume().conflict(task(volume="new"), seen) is None
    assert Volume().conflict(task(), seen) is None


def test_services_come_before_batch_jobs_and_short_ones_before_long_ones() -> None:
    jobs = [
        job("unknown", seconds=1).job,
        job("long", seconds=90).job,
        job("short", seconds=5).job,
        job("urgent", seconds=900, precedence=1).job,
        job("service", seconds=None).job,
    ]
    jobs[0] = _without_estimate(jobs[0].id)
    ranked = sorted(jobs, key=lambda each: BatchSort().rank(each, 0))
    assert [each.id for each in ranked] == ["service", "urgent", "short", "long", "unknown"]


def _without_estimate(name: str) -> Job:
    plain = job(name, seconds=1).job
    group = structs.replace(plain.groups[0], estimate=None)
    return structs.replace(plain, groups=(group,))


@pytest.mark.parametrize(("share", "kept"), [("0.5", 1), ("0.75", 2), ("1", 3), ("much", 0)])
def test_batch_tasks_leave_a_share_of_each_machine_free(share: str, kept: int) -> None:
    seen = nodes([4_000, 2_000, 1_000], Site())
    assert BatchShare().keeps(task(batch_share=share), seen).sum() == kept


def test_a_batch_task_that_would_exceed_its_share_by_now_is_a_conflict() -> None:
    wanted = task(batch_share="0.5")
    assert BatchShare().conflict(wanted, nodes([3_000], Site())) is None
    refusal = BatchShare().conflict(wanted, nodes([2_500], Site()))
    assert refusal is not None
    assert (refusal.why, refusal.dimension, refusal.lacking) == (Why.NO_ROOM, "cpu", 500)
    assert BatchShare().conflict(task(), nodes([0], Site())) is None
