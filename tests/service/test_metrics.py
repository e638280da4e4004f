"""Metrics, read by a strict parser of Prometheus' text format."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from live_bench import LiveBench, cluster, job

from argosy.api.agent_values import ClusterPlace
from argosy.service.measured_distances import MeasuredDistances
from argosy.service.metrics import Histogram, label, number

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|\+Inf|NaN)")


class Family(NamedTuple):
    kind: str
    text: str
    #: By name and labels.
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parse(text: str) -> dict[str, Family]:
    """Every family has its help, its type and then its samples, once each; histograms add up."""
    assert text.endswith("\n")
    families: dict[str, Family] = {}
    lines = iter(text.splitlines())
    name = ""
    for line in lines:
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            kind = next(lines)
            assert kind.startswith(f"# TYPE {name} "), kind
            assert name not in families
            families[name] = Family(kind.split(" ")[3], words, {})
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        labels = tuple(LABEL.findall(match[2] or ""))
        assert ",".join(f'{key}="{value}"' for key, value in labels) == (match[2] or "")
        assert re.fullmatch(rf"{name}(_bucket|_sum|_count)?", match[1]), line
        samples = families[name].samples
        assert (match[1], labels) not in samples, line
        samples[match[1], labels] = float(match[3])
    for name, family in families.items():
        assert family.kind in ("counter", "gauge", "histogram")
        assert (family.kind == "counter") == name.endswith("_total")
        if family.kind == "histogram":
            buckets = [v for (each, _), v in family.samples.items() if each.endswith("_bucket")]
            assert buckets == sorted(buckets)
            assert buckets[-1] == family.samples[f"{name}_count", ()]
    return families


def metrics(live: LiveBench) -> dict[str, Family]:
    answer = live.get("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse(answer.body.decode())


def value(live: LiveBench, name: str, **labels: str) -> float:
    return metrics(live)[f"argosy_{name}"].samples[f"argosy_{name}", tuple(labels.items())]


def test_metrics_count_what_happens_to_tasks(make_live: Callable[..., LiveBench]) -> None:
    live = make_live()
    live.over(live.submit(job(count=3)))
    live.over(live.submit(job("false")))
    running = live.submit(job("sleep 1000", count=2))
    live.submit(job(request={"cpu": "2", "memory": "1GiB"}))
    assert value(live, "scheduler_task_ends_total", state="finished") == 3
    assert value(live, "scheduler_task_ends_total", state="failed") == 1
    assert value(live, "scheduler_schedule_attempts_total", result="scheduled") == 6
    assert value(live, "scheduler_running_tasks") == 2
    assert value(live, "scheduler_pending_tasks", queue="active") == 1
    assert value(live, "scheduler_jobs_open") == 2
    assert value(live, "cluster_used", resource="cpu") == 500
    assert value(live, "cluster_capacity", resource="memory") == 4 * 2**30
    waits = metrics(live)["argosy_scheduler_task_scheduling_sli_duration_seconds"]
    assert waits.samples["argosy_scheduler_task_scheduling_sli_duration_seconds_count", ()] == 6
    live.cancel(running)
    assert value(live, "scheduler_task_ends_total", state="cancelled") == 2


def test_a_task_that_starts_out_of_a_queue_got_its_place_once(
    make_live: Callable[..., LiveBench],
) -> None:
    live = make_live(cluster("murmuration"))
    live.over(live.submit(job(count=3)))
    assert value(live, "scheduler_schedule_attempts_total", result="scheduled") == 3
    assert live.read("/v1/summary")["placed"] == 3


def test_requests_are_counted_by_method_and_status(make_live: Callable[..., LiveBench]) -> None:
    live = make_live()
    live.get("/v1/nothing")
    live.get("/v1/health")

    async def leave() -> None:
        async with live.client.get("/v1/events") as response:
            await response.content.readuntil(b"\n\n")
            response.close()
        while "499" not in live.server.metrics.text().decode():
            await live.ask("GET", "/v1/health")

    live.run(leave())
    assert value(live, "http_requests_total", method="GET", code="404") == 1
    # A watcher that leaves is no failure of the server's.
    assert value(live, "http_requests_total", method="GET", code="499") == 1
    codes = metrics(live)["argosy_http_requests_total"].samples
    assert not any(dict(labels)["code"].startswith("5") for _, labels in codes)


def test_names_of_users_are_escaped(make_live: Callable[..., LiveBench]) -> None:
    live = make_live()
    fleet = {"fleet": [{"name": 'a"b\\', "engine": "omega"}]}
    assert live.put("/v1/fleet", fleet).status == 200
    assert value(live, "scheduler_busyness_ratio", scheduler='a\\"b\\\\', engine="omega") == 0
    assert label("x", 'a"b\\\n') == 'x="a\\"b\\\\\\n"'


@pytest.mark.parametrize(
    ("given", "text"), [(0, "0"), (25_276_518_400, "25276518400"), (0.1, "0.1"), (1e-9, "1e-09")]
)
def test_numbers_are_exact(given: float, text: str) -> None:
    assert number(given) == text


def test_a_histogram_counts_a_value_at_its_bound_and_beyond_all_bounds() -> None:
    histogram = Histogram()
    for seconds in (0.001, 0.0011, 1e9):
        histogram.add(seconds)
    lines = dict(line.rsplit(" ", 1) for line in histogram.lines("h"))
    assert lines['h_bucket{le="0.001"}'] == "1"
    assert lines['h_bucket{le="0.002"}'] == "2"
    assert lines['h_bucket{le="32.768"}'] == "2"
    assert lines['h_bucket{le="+Inf"}'] == lines["h_count"] == "3"


def test_the_shortest_round_trip_to_an_agent_is_told_in_seconds(
    make_live: Callable[..., LiveBench],
) -> None:
    live = make_live()
    distances = MeasuredDistances()
    for microseconds in (2_500_000, 1_500_000):
        distances.learn("edge", ClusterPlace(place="rome"), microseconds)
    live.server.metrics._distances = distances
    assert value(live, "scheduler_agent_round_trip_seconds", cluster="edge", place="rome") == 1.5


def test_what_schedulers_elsewhere_asked_is_told_number_by_number(
    make_live: Callable[..., LiveBench],
) -> None:
    live = make_live()
    agent = live.server.metrics._agent
    assert agent is not None
    names = (
        "samples",
        "drawn",
        "eligible",
        "released",
        "expired",
        "commits",
        "conflicts",
        "repeated",
    )
    for number_of_it, name in enumerate(names, 1):
        setattr(agent.counts, name, number_of_it)
    agent.counts.sampling_time = 2_500_000_000
    found = metrics(live)
    told = {
        f"{name}{dict(labels).get('result', '')}": sample
        for family in found
        if family.startswith("argosy_agent_")
        for (name, labels), sample in found[family].samples.items()
    }
    assert told == {
        "argosy_agent_samples_total": 1,
        "argosy_agent_machines_drawn_total": 2,
        "argosy_agent_machines_eligible_total": 3,
        "argosy_agent_releases_total": 4,
        "argosy_agent_reservations_expired_total": 5,
        "argosy_agent_commits_totalsuccess": 6,
        "argosy_agent_commits_totalconflict": 7,
        "argosy_agent_commits_totalrepeated": 8,
        "argosy_agent_sampling_seconds_total": 2.5,
        "argosy_agent_reservations": 0,
    }
