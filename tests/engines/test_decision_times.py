"""How long every engine decides, on two jobs that never wait for each other: all settings that say how
long something takes, and no two of them alike."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.kube.engine import looks_at
from argosy.engines.registry import ENGINES
from argosy.experiments.execute import execute
from argosy.model.scenario import ConstantLatency, Network
from argosy.testing.builders import SECOND, job, scenario

#: Microseconds.
TIMES = {"t_job": 7_000, "t_task": 300, "t_lra": 1_100, "t_container": 11_000, "t_offer": 1_100,
    "t_idle": 11_000, "t_round": 11, "t_arcs": 110, "t_sampling": 11, "t_decision": 110,
    "t_read": 1_100, "t_commit": 11_000, "t_update": 11_000, "t_failed": 1_100}  # fmt: skip
#: Two jobs, of three tasks and two.
SERIAL = 2 * 7_000 + 5 * 300
#: The service waits for the next interval, and is decided on by another part.
MEDEA = (7_000 + 3 * 300 + 1_100 + 2 * 11_000, 5 * SECOND, 5 * SECOND + 1_100 + 2 * 11_000)
#: By engine: time spent on decisions, the longest wait for one, and until all tasks of a job are placed.
EXPECTED: dict[str, tuple[int, int, int]] = {
    **dict.fromkeys(
        (
            "omega",
            "mapreduce",
            "monolithic",
            "partitioned",
            "spread",
            "sparrow",
            "murmuration",
            "yarn",
        ),
        (SERIAL, 0, 7_000 + 3 * 300),
    ),
    "mesos": (SERIAL, 1_100, 1_100 + 7_000 + 3 * 300),
    "kube": (5 * 300, 0, 3 * 300),
    **dict.fromkeys(("medea", "jkube", "jkube++", "kube-modern"), MEDEA),
    # All five containers in one batch, at ten seconds.
    "ilp-all": (2 * 1_100 + 5 * 11_000, 10 * SECOND, 10 * SECOND + 2 * 1_100 + 5 * 11_000),
    # Sampling and deciding is the scheduler's own work; reading the sample is not counted as such.
    "vela": (5 * (11 + 110), 0, 11 + 110 + 1_100),
    # Their jobs are short here, and not decided on centrally.
    **dict.fromkeys(("hawk", "eagle", "yaq-c", "yaq-d"), (0, 0, 0)),
}


@pytest.mark.parametrize("engine", EXPECTED)
def test_a_decision_takes_as_long_as_the_settings_say(engine: str) -> None:
    fields = ENGINES[engine].settings_type.__struct_fields__
    settings: dict[str, Any] = {name: TIMES[name] for name in fields if name.startswith("t_")}
    jobs = [
        job("a", 3, seconds=1),
        job("b", 2, seconds=1, kind="service", submit=5),
    ]
    network = Network(latency=ConstantLatency(delay=0))
    found = execute(scenario(engine, jobs, replicas=1, settings=settings, network=network), None)
    busy = round(found.schedulers[0].busyness * found.ended_at)
    assert (busy, found.wait_time.largest, found.placement_latency.largest) == EXPECTED[engine]
    assert found.counts.tasks_finished == 5


def test_every_engine_is_here_or_takes_longer_with_more_arcs() -> None:
    assert set(ENGINES) - set(EXPECTED) == {"firmament", "quincy"}


@pytest.mark.parametrize(
    ("machines", "looked_at"),
    [
        *((1, 1), (100, 100), (101, 100), (250, 120), (1_000, 420)),
        *((5_000, 500), (5_625, 281), (6_250, 312)),
    ],
)
def test_kubernetes_looks_at_a_smaller_share_of_larger_clusters(
    machines: int, looked_at: int
) -> None:
    assert looks_at(machines) == looked_at
