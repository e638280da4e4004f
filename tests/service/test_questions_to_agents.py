"""What agents are asked if a task has no demands, and tasks that end without a word."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from test_remote_parts import SAMPLE, AgentsBench, Link

from argosy.api.agent_values import SampleRequest
from argosy.service.remote_agents import _sample_request


@pytest.mark.parametrize(("count", "asked"), [(0, 1), (1, 1), (5, 5)])
def test_a_request_without_demands_says_nothing_of_other_places(count: int, asked: int) -> None:
    request = msgspec.json.decode(
        _sample_request(replace(SAMPLE, count=count, demands={})), type=SampleRequest
    )
    assert request == SampleRequest(
        request={"cpu": 500, "gpu": 1},
        requires={"disk": "ssd"},
        count=asked,
        share=0.5,
        strategy="Walk",
        filters=("F",),
        scores=("S", "T"),
        rounds=2,
        limit=9,
        free=True,
        overshoot="cut",
        repeats="keep",
    )
    near = _sample_request(SAMPLE, {"rome": 7}, {"web": ("rome",)})
    told = msgspec.json.decode(near, type=SampleRequest)
    assert (told.distances, told.jobs) == ({"rome": 7}, {"web": ("rome",)})


def test_a_task_that_is_cancelled_is_no_failure() -> None:
    bench = AgentsBench(Link())
    bench.agents._links = {}
    wrong: list[Any] = []

    async def fail() -> None:
        raise ValueError("why")

    async def go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, told: wrong.append(told))
        bench.agents._spawn(asyncio.sleep(60))
        bench.agents._spawn(fail())
        await asyncio.sleep(0)
        await bench.agents.close()
        await asyncio.sleep(0)

    asyncio.run(go())
    assert wrong == []
    assert bench.log == ["an internal error: ValueError: why"]
    assert bench.agents._tasks == set()


def test_a_cluster_that_is_back_may_be_away_again_and_is_told_each_time_once() -> None:
    bench = AgentsBench(Link())
    for error in ("gone", "gone", "still gone"):
        bench.agents._note_away("c", ValueError(error))
    bench.agents._note_away("d", ValueError("too"))
    bench.agents._away.discard("c")
    bench.agents._note_away("c", ValueError("again"))
    assert bench.log == ["c is away: gone", "d is away: too", "c is away: again"]
    for text in ("one", "one", "other", "one"):
        bench.agents._complain(text)
    assert bench.log[3:] == ["one", "other", "one"]
