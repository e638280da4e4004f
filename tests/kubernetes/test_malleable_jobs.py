"""Which jobs of Kubernetes are malleable, what they ask for, and which are runs of one program."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from small_api_server import Document

from argosy.kubernetes.batch import BATCH_JOBS
from argosy.service.kubernetes import job_growth


@pytest.mark.parametrize(
    ("change", "is_malleable"),
    [
        ({}, True),
        ({"annotations": {}}, False),
        ({"annotations": {job_growth.MALLEABLE: "TRUE"}}, True),
        ({"annotations": {job_growth.MALLEABLE: "yes"}}, False),
        ({"completions": None}, False),
        ({"parallelism": None}, False),
        ({"suspend": True}, False),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, False),
        ({"conditions": [{"type": "Complete", "status": "False"}]}, True),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, True),
    ],
)
def test_which_jobs_are_malleable(change: dict[str, Any], is_malleable: bool) -> None:
    document = {
        "metadata": {"annotations": change.get("annotations", {job_growth.MALLEABLE: "true"})},
        "spec": {
            name: value
            for name, value in {"completions": 9, "parallelism": 3, **change}.items()
            if value is not None and name in ("completions", "parallelism", "suspend")
        },
        "status": {"conditions": change.get("conditions", [])},
    }
    assert job_growth.is_malleable(decoded(document)) == is_malleable


def decoded(document: Document) -> Any:
    return BATCH_JOBS.decode(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("parallelism", "asked", "given", "result"),
    [
        (5, "2", "5", 2),
        (5, "2", "4", 5),
        (5, "two", "5", 5),
        (5, None, "5", 5),
        (0, "2", "0", 2),
    ],
)
def test_a_number_that_somebody_else_wrote_is_what_a_job_asks_for(
    parallelism: int, asked: str | None, given: str, result: int
) -> None:
    notes = {job_growth.GIVEN: given, **({job_growth.ASKED: asked} if asked else {})}
    job = decoded({"metadata": {"annotations": notes}, "spec": {"parallelism": parallelism}})
    assert job_growth.asked_parallelism(job) == result


def test_runs_of_one_program_are_known_by_their_maker_or_name() -> None:
    def of(**metadata: Any) -> str:
        return job_growth.program_of(decoded({"metadata": {"namespace": "s", **metadata}}))

    owner = {"kind": "CronJob", "name": "nightly", "uid": "c"}
    assert of(name="a-1", ownerReferences=[{**owner, "controller": True}]) == "s/CronJob/nightly"
    assert of(name="a-1", ownerReferences=[owner]) == "s/a-1"
    assert of(name="a-1", generateName="a-") == "s/a-"


@pytest.mark.parametrize(("said", "found"), [("90s", 90_000_000), ("long", None), (None, None)])
def test_an_estimate_that_cannot_be_read_is_none(said: str | None, found: int | None) -> None:
    notes = {"argosy.dev/estimate": said} if said else {}
    job = decoded({"spec": {"template": {"metadata": {"annotations": notes}}}})
    assert job_growth.estimate_of_job(job) == found
