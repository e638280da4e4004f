"""Campaigns on a played Kubernetes cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from argosy.campaign.draw import ScenarioSource
from argosy.campaign.recordings import WorldRecording
from argosy.campaign.trial import judge, run_trial
from argosy.campaign.worlds import find_world
from argosy.engines.registry import ENGINES
from argosy.kubernetes.kinds import NODES, PODS
from argosy.model.random import Random
from argosy.model.scenario import ConstantLatency, Network, Scenario, SchedulerCrash
from argosy.scenarios.toml_text import to_toml
from argosy.service.kubernetes.played.api import PlayedApi
from argosy.service.kubernetes.played.network import PlayedNetwork, PlayedWatch
from argosy.testing.builders import SECOND, job, scenario
from argosy.testing.virtual_loop import VirtualLoop

KUBERNETES = find_world("kubernetes")
#: One for each engine.
FIRST = len(ENGINES)


def killed(*times: float) -> Scenario:
    """Jobs, and schedulers that are killed at these times."""
    jobs = [job("a", 4, cpu=3_000, seconds=10), job("late", 3, seconds=5, submit=6)]
    faults = tuple(SchedulerCrash(at=int(at * SECOND), scheduler="s", down=SECOND) for at in times)
    spec = scenario("omega", jobs, replicas=1, horizon=600 * SECOND)
    return msgspec.structs.replace(spec, faults=faults)


def found(spec: Scenario, recording: WorldRecording) -> dict[str, str]:
    findings = judge(spec, ENGINES, recording, is_exact=False)
    return {finding.check: finding.kind for finding in findings}


@pytest.mark.parametrize("number", range(FIRST, 2 * FIRST))
def test_nothing_is_wrong_in_a_fixed_part(number: int, tmp_path: Path) -> None:
    source = ScenarioSource(1, ENGINES, without=KUBERNETES.lacks)
    file = tmp_path / "scenario.toml"
    file.write_text(to_toml(source.draw(number).document), "utf-8")
    assert run_trial(file, KUBERNETES).findings == []


def test_a_run_with_kills_is_right_and_the_same_again() -> None:
    spec = killed(0.5, 3, 6, 9)
    first, again = (KUBERNETES.run(spec, ENGINES) for _ in range(2))
    assert found(spec, first) == {}
    assert first.all_journals == again.all_journals
    assert first.pods is not None
    assert len(first.pods.kills) == 4
    ends = [
        r for r in first.pods.records if r.document.get("status", {}).get("phase") == "Succeeded"
    ]
    assert len({record.document["metadata"]["uid"] for record in ends}) == 7


def test_a_pod_that_its_scheduler_does_not_know_is_noticed() -> None:
    spec = scenario("omega", [job("a", 1)], replicas=1, horizon=60 * SECOND)
    spec = msgspec.structs.replace(spec, jobs=(job("a", 1, seconds=1_000),))
    recording = KUBERNETES.run(spec, ENGINES)
    assert found(spec, recording) == {}
    assert recording.pods is not None
    blind = msgspec.structs.replace(recording.pods, known=())
    told = found(spec, msgspec.structs.replace(recording, pods=blind))
    assert told == {"processes": "pod unknown"}


def test_a_node_that_has_become_too_small_before_its_pod_came_is_noticed() -> None:
    spec = killed()
    recording = KUBERNETES.run(spec, ENGINES)
    assert recording.pods is not None
    small = {"cpu": "1m", "memory": "1", "pods": "110"}
    records = tuple(
        msgspec.structs.replace(r, document={**r.document, "status": {"allocatable": small}})
        if r.kind == "node"
        else r
        for r in recording.pods.records
    )
    shrunk = msgspec.structs.replace(recording.pods, records=records)
    assert "oversubscribed" in found(spec, msgspec.structs.replace(recording, pods=shrunk))


def test_a_pod_without_a_condition_is_noticed_if_the_last_scheduler_had_time() -> None:
    jobs = [job("giant", cpu=64_000, seconds=5)]
    spec = scenario("omega", jobs, replicas=1, horizon=600 * SECOND)
    recording = KUBERNETES.run(spec, ENGINES)
    assert found(spec, recording) == {}
    assert recording.pods is not None
    silent = tuple(
        msgspec.structs.replace(r, document={**r.document, "status": {"phase": "Pending"}})
        if r.kind == "pod"
        else r
        for r in recording.pods.records
    )
    for kills, told in (((), {"unexplained": "pod"}), ((550 * SECOND,), {})):
        pods = msgspec.structs.replace(recording.pods, records=silent, kills=kills)
        assert found(spec, msgspec.structs.replace(recording, pods=pods)) == told


@pytest.mark.parametrize("late", [0, 300])
def test_news_come_in_their_order_and_none_before_those_that_are_late(late: int) -> None:
    loop = VirtualLoop()
    api = PlayedApi(loop, Random(1))
    network = PlayedNetwork(loop, api, Network(latency=ConstantLatency(delay=500)), Random(2))
    watch = PlayedWatch(network, PODS.path())
    sent = [b"%d" % number for number in range(20)]

    async def read() -> list[tuple[int, bytes]]:
        return [(loop.micros, line) async for line in watch.iter_any()]

    for line in sent:
        watch.tell(line, late if line == sent[0] else 0)
    loop.at(1_000, lambda: watch.end(is_broken=False))
    assert loop.run_until_complete(read()) == [(500 + late, line) for line in sent]
    loop.close()


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_only_a_pod_that_has_not_ended_takes_time_to_leave_its_node(phase: str) -> None:
    loop = VirtualLoop()
    api = PlayedApi(loop, Random(1))
    api.put(NODES, {"metadata": {"name": "n"}})
    spec, status = {"nodeName": "n"}, {"phase": phase}
    api.put(PODS, {"metadata": {"name": "p"}, "spec": spec, "status": status})
    api.remove(PODS, "p")
    leaving = ["deletionTimestamp" in each["metadata"] for each in api.documents(PODS)]
    assert leaving == ([True] if phase == "Running" else [])
    loop.close()
