"""Which pods and owners count when malleable jobs grow, and what is not a request to grow."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from test_growing_jobs import GrowthBench, batch_job

from argosy.kubernetes.batch import BATCH_JOBS
from argosy.model.resources import Resources
from argosy.service.kubernetes import job_growth
from argosy.worlds.kubernetes.tracked import PodState


def test_pods_outside_run_if_they_have_a_node_and_wait_for_nobody_if_they_have_none() -> None:
    bench = GrowthBench(2, 0)
    pods = [
        bench.add(PodState.OUTSIDE, "gated", "j", needs=""),
        bench.add(PodState.OUTSIDE, "elsewhere", "j", needs="", node="n1"),
        bench.add(PodState.BOUND, "bound", "j", needs="", node="n0"),
        bench.add(PodState.WAITING, "new", "j", needs=""),
        bench.add(PodState.WAITING, "old", "j", needs=""),
    ]
    bench.growth._waited = {"old"}
    # One more runs than is wanted, so one is about to go anyway.
    huge = [bench.add(PodState.WAITING, "huge", needs="", request=Resources(8_000, 0))]
    found = bench.growth._progress(batch_job(parallelism=1), pods, huge)
    assert (found.running, found.waiting, found.fits, found.in_the_way) == (2, 1, 2, 1)


def test_one_node_that_a_waiting_pod_may_use_is_enough_for_others_to_be_in_its_way() -> None:
    bench = GrowthBench(0, 0, 9)
    running = [
        bench.add(PodState.BOUND, f"r{at}", "j", node=f"n{at % 2}", needs="") for at in range(3)
    ]
    picky = [
        bench.add(PodState.WAITING, f"w{at}", needs=needs, key=needs.encode())
        for at, needs in enumerate(("n1", "n1", "n2", "n9"))
    ]
    assert bench.growth._in_the_way(running, picky) == 2
    assert bench.growth._in_the_way(running, picky[2:]) == 0
    assert bench.growth._in_the_way(running[:1], picky) == 0


@pytest.mark.parametrize(
    ("owners", "generated", "program"),
    [
        ([], "", "s/j"),
        ([], "run-", "s/run-"),
        ([("CronJob", "nightly", True)], "run-", "s/CronJob/nightly"),
        ([("CronJob", "nightly", False)], "run-", "s/run-"),
        ([("Flow", "f", False), ("CronJob", "nightly", True)], "", "s/CronJob/nightly"),
    ],
)
def test_the_program_of_a_job_is_what_controls_it_or_its_name(
    owners: list[tuple[str, str, bool]], generated: str, program: str
) -> None:
    references = [
        {"kind": kind, "name": name, "uid": name, "controller": controls}
        for kind, name, controls in owners
    ]
    metadata = {
        "name": "j",
        "namespace": "s",
        "uid": "j",
        "generateName": generated,
        "ownerReferences": references,
    }
    made = BATCH_JOBS.decode(msgspec.json.encode({"metadata": metadata, "spec": {}}))
    assert job_growth.program_of(made) == program


@pytest.mark.parametrize(
    ("annotations", "asked"),
    [
        ({}, 3),
        ({"given": "3", "asked": "2"}, 2),
        # Somebody else has changed it since.
        ({"given": "4", "asked": "2"}, 3),
        ({"given": "3"}, 3),
        ({"given": "3", "asked": "-2"}, 3),
        ({"given": "3", "asked": "two"}, 3),
        ({"asked": "2"}, 3),
    ],
)
def test_a_job_asked_for_what_it_has_unless_we_gave_it(
    annotations: dict[str, str], asked: int
) -> None:
    names = {"given": job_growth.GIVEN, "asked": job_growth.ASKED}
    made = batch_job()
    written = {names[key]: value for key, value in annotations.items()}
    made = replace(made, metadata=replace(made.metadata, annotations=written))
    assert job_growth.asked_parallelism(made) == asked


@pytest.mark.parametrize(
    ("says", "status", "is_it"),
    [
        ("true", {}, True),
        ("True", {}, True),
        ("yes", {}, False),
        ("", {}, False),
        ("true", {"conditions": [{"type": "Complete", "status": "True"}]}, False),
        ("true", {"conditions": [{"type": "Failed", "status": "True"}]}, False),
        ("true", {"conditions": [{"type": "Complete", "status": "False"}]}, True),
    ],
)
def test_a_job_is_malleable_if_it_says_so_and_goes_on(
    says: str, status: dict[str, Any], is_it: bool
) -> None:
    document = {
        "metadata": {"name": "j", "annotations": {job_growth.MALLEABLE: says}},
        "spec": {"completions": 4, "parallelism": 2},
        "status": status,
    }
    made = BATCH_JOBS.decode(msgspec.json.encode(document))
    assert job_growth.is_malleable(made) is is_it


@pytest.mark.parametrize(("said", "estimate"), [(None, None), ("90s", 90_000_000), ("soon", None)])
def test_an_estimate_that_cannot_be_read_is_none(said: str | None, estimate: int | None) -> None:
    annotations = {} if said is None else {job_growth.ESTIMATE: said}
    template = SimpleNamespace(metadata=SimpleNamespace(annotations=annotations))
    made: Any = SimpleNamespace(spec=SimpleNamespace(template=template))
    assert job_growth.estimate_of_job(made) == estimate


def test_a_patch_is_not_waited_for_longer_than_the_right_to_write_lasts() -> None:
    bench = GrowthBench(4)
    asked: list[str] = []

    async def patch(kind: Any, name: str, *given: Any) -> None:
        asked.append(name)
        await asyncio.Event().wait()

    bench.client.patch = patch
    bench.right = SimpleNamespace(is_held=True, remaining=0.0)  # type: ignore[assignment]

    async def set_both() -> None:
        async with asyncio.timeout(20):
            for name in ("a", "b"):
                await bench.growth._set(batch_job(name), 5)

    asyncio.run(set_both())
    assert (asked, bench.log) == (["a", "b"], [])
