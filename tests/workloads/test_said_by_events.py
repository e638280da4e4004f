"""What events of traces and pods of clusters say of jobs: who says it, how often it counts, and in
which words."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_google import (
    FINISH,
    SCHEDULE,
    SUBMIT,
    collection,
    instance,
    job_event,
    life,
    task_event,
    trace_2011,
    trace_2019,
)
from test_pod_recordings import ANYWHERE, carried, near, node, only, pod, recorded
from test_pod_recordings import life as pod_life
from test_trace_parts import SCHEDULED, STOPPED, SUBMITTED, assembled, of_task

from argosy.kubernetes.objects import Node, PersistentVolume
from argosy.model.errors import TraceError
from argosy.workloads import google2011, google2019
from argosy.workloads.google_jobs import APART, Notes, What
from argosy.workloads.google_tables import lines
from argosy.workloads.pod_lives import snapshot
from argosy.worlds.kubernetes.volumes import KnownVolumes


def test_what_a_job_cannot_say_counts_once_and_only_if_something_is_said(tmp_path: Path) -> None:
    said = {
        "max_per_machine": 2,
        "max_per_switch": "3",
        "start_after_collection_ids": ["1"],
        "parent_collection_id": "9",
    }
    unsaid = {
        "max_per_machine": 0,
        "max_per_switch": "",
        "start_after_collection_ids": [],
        "parent_collection_id": "0",
    }
    collections = [
        collection(700, 1, 0, **said),
        collection(760, 1, 6, **said),
        collection(800, 2, 0, **unsaid),
    ]
    trace_2019(tmp_path, collections, [*life(1), *life(2, 800, 860)])
    notes = Notes()
    assert [made.id for made in google2019.jobs(tmp_path, notes=notes)] == ["1", "2"]
    assert notes.not_expressible == {
        "at most so many tasks on a machine": 1,
        "at most so many tasks on a switch": 1,
        "not before another job is over": 1,
        "stopped with its parent": 1,
    }


@pytest.mark.parametrize(
    ("of_task", "of_job", "owner"),
    [("bob", "", "bob"), ("", "ann", "ann"), ("bob", "ann", "bob"), ("", "", "")],
)
def test_the_first_event_of_2011_that_names_an_owner_decides(
    tmp_path: Path, of_task: str, of_job: str, owner: str
) -> None:
    """At the same time, events of tasks come before those of their jobs."""
    tasks = [
        task_event(700 + at, 1, 0, event).replace(",kim,", f",{of_task},")
        for at, event in enumerate((SUBMIT, SCHEDULE, FINISH))
    ]
    jobs = [
        job_event(at, 1, event).replace(",kim,", f",{of_job},")
        for at, event in ((700, SUBMIT), (900, FINISH))
    ]
    [made] = google2011.jobs(trace_2011(tmp_path, jobs, tasks))
    assert (made.job.owner, made.truth[0].durations) == (owner, (1_000_000,))


@pytest.mark.parametrize(
    ("said", "is_apart"),
    [(("", "", ""), False), (("0", "1", "1"), False), (("1", "", "0"), True)],
)
def test_a_job_of_2011_is_apart_if_that_was_asked_for_when_a_task_was_submitted(
    tmp_path: Path, said: tuple[str, ...], is_apart: bool
) -> None:
    events = zip((SUBMIT, SCHEDULE, FINISH), said, strict=True)
    tasks = [task_event(700, 1, 0, SUBMIT)]
    tasks += [
        task_event(701 + at, 1, 1, what, apart=flag) for at, (what, flag) in enumerate(events)
    ]
    [made] = google2011.jobs(trace_2011(tmp_path, [job_event(900, 1, FINISH)], tasks))
    assert made.job.constraints == ((APART,) if is_apart else ())


def test_the_owner_of_2019_is_that_of_the_collection(tmp_path: Path) -> None:
    tasks = [instance(700 + at, 9, 0, event, user="bob") for at, event in enumerate((0, 3, 6))]
    [made] = google2019.jobs(trace_2019(tmp_path, [collection(701, 9, 0, user="lee")], tasks))
    assert made.job.owner == "lee"
    # Without a priority of its own, a job has the lowest.
    assert (made.job.precedence, made.kind) == (0, "batch")


@pytest.mark.parametrize("cut", [1, 8])
def test_a_compressed_file_breaks_off_after_its_last_whole_line(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a\n\nb\n" * 3, mtime=0)[:-cut])
    read: list[tuple[int, str]] = []

    def take() -> None:
        for number, line in lines(path):
            read.append((number, line))

    with pytest.raises(TraceError, match="ends too early") as caught:
        take()
    assert read == [(1, "a"), (3, "b"), (4, "a"), (6, "b"), (7, "a"), (9, "b")]
    assert (caught.value.line, caught.value.expected) == (10, "a whole gzip file")


def test_only_the_end_of_a_run_ends_it() -> None:
    other = What.OTHER
    for events, durations, runs in (
        # A task that is withdrawn after its run, or updated during it, ran as long as it did.
        ([(6, SCHEDULED), (9, STOPPED), (20, STOPPED)], (3,), 1),
        ([(6, SCHEDULED), (7, other), (9, STOPPED), (20, other)], (3,), 1),
        ([(6, SCHEDULED), (7, SUBMITTED), (9, STOPPED), (20, SUBMITTED)], (3,), 1),
        ([(6, SCHEDULED), (7, other)], (), 1),
        ([(2, STOPPED), (3, other), (6, SCHEDULED), (8, STOPPED)], (2,), 1),
        ([(1, SCHEDULED), (4, SCHEDULED), (9, STOPPED)], (5,), 2),
    ):
        [found], notes = assembled(*(of_task(time, what) for time, what in events))
        assert found.truth[0].durations == durations, events
        assert notes.reruns == runs - 1
        assert notes.still_running == (not durations)
    nothing, notes = assembled(of_task(2, STOPPED), of_task(3, other))
    assert (nothing, notes.never_ran) == ([], 1)


class TestPods:
    def test_a_taint_without_a_value_is_its_effect(self) -> None:
        taints = [
            {"key": "plain", "effect": "NoSchedule"},
            {"key": "told", "value": "v", "effect": "NoExecute"},
        ]
        found = recorded([node("n", taints=taints)], pod_life(pod(**ANYWHERE), 10))
        assert found.machines[0].attributes == {
            "taint/plain": "NoSchedule",
            "taint/told": "v:NoExecute",
        }

    def test_pods_of_one_owner_with_other_rules_or_of_another_kind_are_other_jobs(self) -> None:
        def made(name: str, value: str, **more: Any) -> Any:
            rule = near("app", "zone", value)
            return pod_life(pod(name, owner="Job/w", affinity=rule, **ANYWHERE, **more), 110)

        service = {"restartPolicy": "Always"}
        found = carried(made("a", "x"), made("b", "y"), made("c", "x"), made("d", "x", **service))
        assert [(each.id, each.tasks, each.kind) for each in found.jobs] == [
            ("one.w", 2, "batch"),
            ("one.w.2", 1, "batch"),
            ("one.w.3", 1, "service"),
        ]
        first, second, third = (each.job.constraints for each in found.jobs)
        assert first == third != second

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ({"resourceClaims": [{"name": "r"}]}, "resource claims"),
            (
                {"workloadRef": {"name": "w", "podGroup": "g"}},
                "pod groups: their pods are placed one by one",
            ),
            ({"preemptionPolicy": "PreemptLowerPriority"}, None),
        ],
    )
    def test_what_jobs_cannot_say_of_a_pod_is_told(
        self, spec: dict[str, Any], said: str | None
    ) -> None:
        found = carried(pod_life(pod(**ANYWHERE, **spec), 110))
        assert only(found).tasks == 1
        assert found.left_out == (() if said is None else (f"not carried over: {said} (1 pod)",))

    def test_what_nodes_have_none_of_no_node_has(self) -> None:
        """Though each of them says so."""
        room = {"cpu": "4", "pods": "9", "gpu": "0"}
        none = msgspec.convert(
            {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": room}}, Node
        )
        asking = {"name": "c", "resources": {"requests": {"gpu": "1"}}}
        found = recorded([none], pod_life(pod(containers=[asking]), 10), pod_life(pod("q"), 11))
        assert [each.id for each in found.jobs] == ["one.q"]
        assert found.left_out == (
            "not carried over: pods that ask for gpu, which no node has (1 pod)",
        )

    def test_a_snapshot_keeps_the_nodes_and_volumes_that_it_is_given(self) -> None:
        volumes = KnownVolumes()
        volumes.volumes = {"v": msgspec.convert({"metadata": {"name": "v"}}, PersistentVolume)}
        nodes = [node("n1"), node("n0")]
        taken = snapshot(iter(nodes), iter([pod()]), volumes)
        assert (taken.nodes, taken.volumes, len(taken.lives)) == (tuple(nodes), volumes, 1)
        assert taken.changed_nodes == 0
