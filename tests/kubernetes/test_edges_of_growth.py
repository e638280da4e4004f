"""Jobs that are not malleable, and connections whose answers nobody waits for any more."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Self

import pytest
from kube_cases import asynchronous
from msgspec.structs import replace
from test_growing_jobs import GrowthBench, batch_job
from test_request_steps import GET, Logins

from argosy.kubernetes.connection import Connection
from argosy.kubernetes.requests import RequestSender
from argosy.worlds.kubernetes.tracked import PodState


@pytest.mark.parametrize(
    "change", [{"suspend": True}, {"completions": None}, {"parallelism": None}]
)
def test_pods_of_jobs_that_are_not_malleable_are_pods_of_others(change: dict[str, Any]) -> None:
    bench = GrowthBench(4)
    spec = {name: value for name, value in change.items() if value is not None}
    rigid = batch_job("b", **spec)
    if None in change.values():
        rigid = _without(rigid, *change)
    bench.jobs.objects = {"a": batch_job("a"), "b": rigid}
    bench.add(PodState.BOUND, "a1", "a", node="n0", needs="")
    bench.add(PodState.WAITING, "b1", "b", needs="")
    bench.growth._waited = {"b1"}
    decided: list[Any] = []

    def decide(progress: Any, *room: Any, is_crowded: bool) -> dict[str, int]:
        decided.append(([each.uid for each in progress], is_crowded))
        return {}

    bench.growth._scaler = SimpleNamespace(decide=decide)  # type: ignore[assignment]
    asyncio.run(bench.growth._look())
    assert decided == [(["a"], True)]


def _without(job: Any, *names: str) -> Any:
    return replace(job, spec=replace(job.spec, **dict.fromkeys(names)))


class Answer:
    """Of which so much has come."""

    def __init__(self, *, is_whole: bool) -> None:
        self.status, self.told = 200, list[str]()
        self.content = SimpleNamespace(at_eof=lambda: is_whole)
        transport = SimpleNamespace(abort=lambda: self.told.append("abort"))
        self.connection: Any = SimpleNamespace(transport=transport)

    def close(self) -> None:
        self.told.append("close")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()


@pytest.mark.parametrize(("is_whole", "told"), [(True, ["close"]), (False, ["abort", "close"])])
@asynchronous
async def test_who_leaves_a_stream_does_not_wait_for_its_server(
    is_whole: bool, told: list[str]
) -> None:
    answer = Answer(is_whole=is_whole)
    sender = RequestSender(Connection("http://h", Logins()))

    async def request(call: Any) -> Any:
        return answer

    sender._request = request  # type: ignore[method-assign]
    async with sender.stream(GET) as content:
        assert content is answer.content
        assert answer.told == []
    assert answer.told == told
    answer.told.clear()
    answer.connection = None
    async with sender.stream(GET):
        pass
    assert answer.told == ["close"]
