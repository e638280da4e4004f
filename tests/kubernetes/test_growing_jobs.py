"""When malleable jobs of Kubernetes grow and give way, told from pods and nodes alone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest
from tracked_pods import tracked

from argosy.kubernetes import failures
from argosy.kubernetes.batch import BATCH_JOBS
from argosy.model.resources import Resources
from argosy.service.kubernetes import job_growth
from argosy.service.kubernetes.job_growth import JobGrowth
from argosy.service.kubernetes.rights import LastingRight
from argosy.worlds.kubernetes.malleable import GrowthSettings
from argosy.worlds.kubernetes.tracked import PodState


def batch_job(name: str = "j", **spec: Any) -> Any:
    annotations = {job_growth.MALLEABLE: "true"}
    document = {
        "metadata": {
            "name": name,
            "namespace": "s",
            "uid": name,
            "resourceVersion": "5",
            "annotations": annotations,
        },
        "spec": {"completions": 20, "parallelism": 3, **spec},
        "status": {"succeeded": 2},
    }
    return BATCH_JOBS.decode(msgspec.json.encode(document))


class GrowthBench:
    """Nodes n0 to n2 with so many cores free; a pod whose needs are `n1` is admitted there alone."""

    def __init__(self, *free: int, capacity: int = 8) -> None:
        rows = np.array([[1_000 * cores, 0] for cores in free], np.int64)
        view = SimpleNamespace(
            dimensions=("cpu", "memory"),
            free=lambda: rows,
            capacity=lambda: np.full_like(rows, 1_000 * capacity),
            machine_name=lambda number: f"n{number}",
            used_total=lambda: Resources(0, 0),
            capacity_total=lambda: Resources(1, 0),
        )

        def forbidding(needs: str, name: str) -> str | None:
            return "no" if needs.startswith("n") and needs != name else None

        rulebook = SimpleNamespace(
            nodes={f"n{at}": None for at in range(len(free))}, forbidding=forbidding
        )
        self.pods: dict[str, Any] = {}
        self.client = Mock()
        self.log: list[str] = []
        self.right = LastingRight()
        self.jobs = SimpleNamespace(objects={})
        self.growth = JobGrowth(
            self.client,
            self.jobs,  # type: ignore[arg-type]
            SimpleNamespace(pods=self.pods, rulebook=rulebook),  # type: ignore[arg-type]
            GrowthSettings(),
            view=lambda: view,  # type: ignore[arg-type,return-value]
            now=lambda: 77,
            right=lambda: self.right,
            log=self.log.append,
        )

    def add(self, state: PodState, name: str, owner: str = "", **fields: Any) -> Any:
        owners = [SimpleNamespace(uid="other", controller=False)]
        if owner:
            owners.append(SimpleNamespace(uid=owner, controller=True))
        self.pods[name] = made = tracked(state, name, owners=owners, **fields)
        return made


class TestGrowth:
    def test_places_are_counted_on_nodes_that_admit_a_pod(self) -> None:
        bench = GrowthBench(5, 2, 0)
        places, free = bench.growth._places, bench.growth._view().free()
        ask = Resources(2_000, 0)
        assert places(tracked(PodState.WAITING, needs="", request=ask), free) == 3
        assert places(tracked(PodState.WAITING, needs="n1", request=ask), free) == 1
        assert places(tracked(PodState.WAITING, needs="n2", request=ask), free) == 0
        assert places(tracked(PodState.WAITING, needs="", request=Resources(0, 0)), free) == 0
        both = Resources(1_000, 1)
        assert places(tracked(PodState.WAITING, needs="", request=both), free) == 0
        del bench.growth._pods.rulebook.nodes["n0"]  # type: ignore[attr-defined]
        assert places(tracked(PodState.WAITING, needs="", request=ask), free) == 1

    def test_pods_are_sorted_by_their_controller_and_others_count_if_they_waited(self) -> None:
        bench = GrowthBench(1, 1)
        mine = bench.add(PodState.WAITING, "mine", "j")
        waits = bench.add(PodState.WAITING, "waits")
        bench.add(PodState.WAITING, "new")
        bench.add(PodState.BOUND, "bound")
        bench.add(PodState.WAITING, "huge", request=Resources(9_000, 0))
        fits = bench.add(PodState.WAITING, "fits", request=Resources(8_000, 0))
        bench.growth._waited = {"mine", "waits", "bound", "huge", "fits"}
        own, others = bench.growth._sorted({"j": batch_job()})
        assert own == {"j": [mine]}
        assert others == [waits, fits]

    def test_progress_counts_what_runs_waits_fits_and_is_in_the_way(self) -> None:
        bench = GrowthBench(2, 0)
        pods = [
            bench.add(PodState.BOUND, "a", "j", node="n0"),
            bench.add(PodState.BINDING, "b", "j", node="n0"),
            bench.add(PodState.BOUND, "c", "j", node="n1", is_leaving=True),
            bench.add(PodState.LEAVING, "d", "j", node="n1"),
            bench.add(PodState.WAITING, "e", "j"),
            bench.add(PodState.HELD, "f", "j", node="n0"),
        ]
        bench.growth._waited = {"e"}
        bench.growth._pods.pods = bench.pods  # type: ignore[misc]
        for each in pods:
            each.needs = ""
        progress = bench.growth._progress(batch_job(), pods, [])
        assert (progress.uid, progress.program) == ("j", "s/j")
        assert (progress.asked, progress.wanted) == (3, 3)
        assert (progress.completions, progress.succeeded) == (20, 2)
        assert (progress.running, progress.waiting, progress.fits) == (2, 1, 2)
        assert (progress.in_the_way, progress.estimate) == (0, None)
        assert progress.request == Resources(1_000, 0)

    @pytest.mark.parametrize(
        ("others", "wanted", "in_the_way"),
        [
            ([(3_000, "")], 4, 3),
            ([(3_500, "")], 4, 4),
            ([(9_000, "")], 4, 4),
            ([(2_500, ""), (2_500, "")], 9, 4),
            # Those that have to go make room already.
            ([(3_000, "")], 3, 2),
            ([(3_000, "")], 1, 0),
            # One that has room is placed soon; one that may not go there does not want it.
            ([(1_000, "")], 4, 0),
            ([(3_000, "n9")], 4, 0),
        ],
    )
    def test_pods_that_others_wait_for_are_in_the_way(
        self, others: list[tuple[int, str]], wanted: int, in_the_way: int
    ) -> None:
        bench = GrowthBench(0, 2)
        running = [bench.add(PodState.BOUND, f"r{n}", "j", node="n0", needs="") for n in range(4)]
        waiting = [
            bench.add(PodState.WAITING, f"w{n}", needs=needs, request=Resources(cpu, 0))
            for n, (cpu, needs) in enumerate(others)
        ]
        found = bench.growth._progress(batch_job(parallelism=wanted), running, waiting)
        assert found.in_the_way == in_the_way
        assert bench.growth._in_the_way([], waiting) == 0

    @pytest.mark.parametrize("leaving", [0, 1, 2])
    def test_pods_that_leave_make_room_already(self, leaving: int) -> None:
        bench = GrowthBench(0, 2)
        pods = [
            bench.add(PodState.BOUND, f"r{n}", "j", node="n0", needs="", is_leaving=n >= 4)
            for n in range(4 + leaving)
        ]
        waiting = [bench.add(PodState.WAITING, "w", needs="", request=Resources(3_000, 0))]
        found = bench.growth._progress(batch_job(parallelism=4), pods, waiting)
        assert (found.running, found.in_the_way) == (4, 3 - leaving)

    @pytest.mark.parametrize(
        ("lacking", "request_", "pods"),
        [
            ({}, Resources(1_000, 5), 0),
            ({"cpu": 1}, Resources(1_000, 5), 1),
            ({"cpu": 1_000}, Resources(1_000, 5), 1),
            ({"cpu": 1_001, "memory": 4}, Resources(1_000, 5), 2),
            ({"cpu": 1, "memory": 16}, Resources(1_000, 5), 4),
            ({"memory": 16}, Resources(1_000, 0), 0),
        ],
    )
    def test_so_many_pods_make_up_for_what_is_lacking(
        self, lacking: dict[str, int], request_: Resources, pods: int
    ) -> None:
        assert job_growth._pods_for(lacking, request_) == pods

    def test_a_job_is_patched_as_it_was_seen(self) -> None:
        bench = GrowthBench(4)
        answers: list[Any] = [
            None,
            failures.ObjectConflict("PATCH it", "changed"),
            failures.ServerFailed("PATCH it", "crashed"),
        ]
        asked: list[Any] = []

        async def patch(*given: Any) -> None:
            asked.append(given)
            answer = answers.pop(0)
            if answer is not None:
                raise answer

        bench.client.patch = patch
        for _ in range(3):
            asyncio.run(bench.growth._set(batch_job(), 5))
        document = {
            "metadata": {
                "uid": "j",
                "resourceVersion": "5",
                "annotations": {job_growth.ASKED: "3", job_growth.GIVEN: "5"},
            },
            "spec": {"parallelism": 5},
        }
        assert asked == [(BATCH_JOBS, "j", document, "s")] * 3
        crashed = str(failures.ServerFailed("PATCH it", "crashed"))
        assert bench.log == ["job s/j has 5 pods in parallel, and asked for 3", crashed]

    def test_a_look_remembers_who_waited_and_decides_on_malleable_jobs_alone(self) -> None:
        bench = GrowthBench(4)
        bench.jobs.objects = {"a": batch_job("a"), "b": batch_job("b", suspend=True)}
        bench.add(PodState.BOUND, "a1", "a", node="n0", needs="")
        for name, state in (("w", PodState.WAITING), ("c", PodState.CLAIMED), ("h", PodState.HELD)):
            bench.add(state, name, needs="")
        bench.add(PodState.OUTSIDE, "o")
        decided: list[Any] = []

        def decide(progress: Any, used: Any, capacity: Any, now: int, *, is_crowded: bool) -> Any:
            decided.append(([each.uid for each in progress], used, capacity, now, is_crowded))
            return {"a": 4}

        bench.growth._scaler = SimpleNamespace(decide=decide)  # type: ignore[assignment]
        patched: list[Any] = []

        async def patch(kind: Any, name: str, document: Any, namespace: str) -> None:
            patched.append((name, document["spec"]))

        bench.client.patch = patch
        for _ in range(2):
            asyncio.run(bench.growth._look())
        assert bench.growth._waited == {"w", "c", "h"}
        room = (Resources(0, 0), Resources(1, 0), 77)
        assert decided == [(["a"], *room, False), (["a"], *room, True)]
        assert patched == [("a", {"parallelism": 4})] * 2


@pytest.mark.parametrize(
    ("lacking", "request_", "pods"),
    [
        ({}, Resources(1_000, 0), 0),
        ({"cpu": 1}, Resources(1_000, 0), 1),
        ({"cpu": 1_000}, Resources(1_000, 0), 1),
        ({"cpu": 1_001}, Resources(1_000, 0), 2),
        # As many as make up for what is lacking most.
        ({"cpu": 1_500, "memory": 5}, Resources(1_000, 2), 3),
        # What a pod does not hold, it cannot make up for.
        ({"gpu": 4, "memory": 1}, Resources(1_000, 0), 0),
        ({"gpu": 4, "cpu": 1}, Resources(1_000, 0, {"gpu": 1}), 4),
        ({"cpu": 9}, Resources(0, 0), 0),
    ],
)
def test_as_many_pods_go_as_make_up_for_what_is_lacking(
    lacking: dict[str, int], request_: Resources, pods: int
) -> None:
    assert job_growth._pods_for(lacking, request_) == pods
