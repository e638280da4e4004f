"""Readers and makers of workloads: what they pass on, add up and tell apart."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_alibaba import SECOND, pod, trace
from test_google import collection, instance, life, trace_2019

from argosy.model.random import Random
from argosy.model.units import LARGEST
from argosy.workloads import alibaba2023, clusters, google2019, mapreduce
from argosy.workloads.google_jobs import Notes

DAY = 86_400 * SECOND


@pytest.mark.parametrize("sharing", ["devices", "pooled", "none"])
def test_a_pod_without_gpus_has_none_whatever_becomes_of_shares(
    tmp_path: Path, sharing: alibaba2023.Sharing
) -> None:
    pods = [pod("none", (0, 0, 9), gpus="0,0"), pod("half", (0, 0, 9), gpus="1,500")]
    notes = Notes(jobs=3, tasks=5)
    directory = trace(tmp_path, *pods, pod("two", (0, 0, 9), gpus="2,1000"))
    found = list(alibaba2023.jobs(directory, sharing=sharing, notes=notes))
    extras = {made.id: made.groups[0].request.extras for made in found}
    half = 1_000 if sharing == "none" else 500
    assert extras == {"none": {}, "half": {"gpu": half}, "two": {"gpu": 2_000}}
    # Notes add up over several traces.
    assert (notes.jobs, notes.tasks) == (6, 8)
    said = {"a share of a GPU is a share of one device": 1} if sharing == "pooled" else {}
    assert notes.not_expressible == said


def test_instances_of_2019_are_told_apart_by_their_index_and_the_first_may_go_without(
    tmp_path: Path,
) -> None:
    first = life(1, 700, 760)
    for event in first:
        event.pop("instance_index", None)
    second = [instance(700 + at, 1, 4, event) for at, event in ((0, 0), (10, 3), (25, 6))]
    directory = trace_2019(tmp_path, [collection(700, 1, 0)], [*first, *second])
    [made] = google2019.jobs(directory, in_order=False)
    assert made.tasks == 2
    assert len({duration for truth in made.truth for duration in truth.durations}) == 2


def test_only_events_of_2019_that_say_something_new_of_a_job_count(tmp_path: Path) -> None:
    """A job that was queued, enabled or changed is the one that was submitted."""
    events = [
        collection(650, 1, 1, priority=9, user="early"),
        collection(700, 1, 0, priority=200, user="ann"),
        collection(720, 1, 2, priority=300, user="bob"),
        collection(730, 1, 10, priority=300, user="bob"),
    ]
    [made] = google2019.jobs(trace_2019(tmp_path, events, life(1, 700, 760)))
    assert (made.job.precedence, made.job.owner, made.submit) == (200, "ann", 100 * SECOND)


def test_jobs_beside_mapreduce_arrive_as_they_would_by_themselves() -> None:
    spec = clusters.cluster("D")
    share = 1 - spec.kinds["batch"].interarrival / mapreduce.shape().interarrival(spec)
    how: dict[str, Any] = {"scale": 0.5, "burstiness": 4.0}
    for rate, rates in (
        ({"mapreduce": 0.0}, {"batch": share}),
        ({"mapreduce": 0.0, "batch": 2.0}, {"batch": 2 * share}),
        ({"mapreduce": 0.0, "service": 3.0}, {"batch": share, "service": 3.0}),
    ):
        beside = list(mapreduce.jobs(spec, DAY // 8, Random(1), rate=rate, **how))
        alone = list(clusters.jobs(spec, DAY // 8, Random(1), rate=rates, **how))
        assert len(beside) > 20
        assert beside == alone


def test_mapreduce_jobs_go_before_others_as_batch_jobs_do() -> None:
    plain = clusters.cluster("D")
    batch = msgspec.structs.replace(plain.kinds["batch"], precedence=7)
    spec = msgspec.structs.replace(plain, kinds={**plain.kinds, "batch": batch})
    found = [each for each in mapreduce.jobs(spec, DAY // 4, Random(1)) if each.job.activities]
    assert {(each.kind, each.job.precedence) for each in found} == {("mapreduce", 7)}


def test_tasks_of_a_fill_that_hardly_ever_turns_over_run_as_long_as_times_go() -> None:
    made = clusters.fill(clusters.cluster("D"), Random(1), scale=0.1, turnover=LARGEST)
    durations = [truth.durations[0] for each in islice(made, 20) for truth in each.truth]
    assert max(durations) == LARGEST > min(durations)
