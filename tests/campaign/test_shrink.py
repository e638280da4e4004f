"""Scenarios that fail, made smaller."""

from collections.abc import Callable
from typing import Any

import pytest

from argosy.campaign.draw import ScenarioSource
from argosy.campaign.shrink import Shrinker, _simpler, mended
from argosy.engines.registry import ENGINES
from argosy.model.errors import ArgosyError
from argosy.model.random import Random
from argosy.scenarios.loader import load
from argosy.scenarios.toml_text import to_toml

Document = dict[str, Any]


@pytest.fixture
def loads(tmp_path) -> Callable[[Document], bool]:
    file = tmp_path / "scenario.toml"

    def is_scenario(document: Document) -> bool:
        file.write_text(to_toml(document))
        try:
            load(file)
        except ArgosyError:
            return False
        return True

    return is_scenario


def first_with(wanted: Callable[[Document], bool]) -> Document:
    source = ScenarioSource(5, ENGINES)
    drawn = (source.draw(number).document for number in range(500))
    return next(document for document in drawn if wanted(document))


def test_only_what_the_failure_needs_is_left(loads) -> None:
    def has_gang_and_crash(document: Document) -> bool:
        jobs, faults = document["workload"]["jobs"], document.get("faults", ())
        return any(job.get("gang") for job in jobs) and any(
            fault["kind"] == "machine-crash" for fault in faults
        )

    document = first_with(lambda d: has_gang_and_crash(d) and len(d["workload"]["jobs"]) > 5)
    small = Shrinker(document, lambda d: loads(d) and has_gang_and_crash(d)).run()
    assert len(small["workload"]["jobs"]) == len(small["fleet"]) == len(small["faults"]) == 1
    assert set(small["workload"]["jobs"][0]) <= {"id", "kind", "gang", "request", "groups"}
    assert {"network", "machines", "clusters"}.isdisjoint(small)
    assert sum(len(part.get("machines", ())) for part in [small["cell"]]) == 1


def test_counts_and_times_become_small(loads) -> None:
    def is_long(document: Document) -> bool:
        return any(job.get("count", 1) >= 3 for job in document["workload"]["jobs"])

    small = Shrinker(first_with(is_long), lambda d: loads(d) and is_long(d)).run()
    [job] = small["workload"]["jobs"]
    assert 3 <= job["count"] < 6
    assert "submit" not in job


def test_the_work_is_bounded(loads) -> None:
    document = first_with(lambda d: len(d["workload"]["jobs"]) > 5)
    asked = []

    def fails(candidate: Document) -> bool:
        asked.append(candidate)
        return True

    assert Shrinker(document, fails, most=7).run() != document
    assert len(asked) == 7
    assert Shrinker(document, fails, is_over=lambda: True).run() == document
    assert len(asked) == 7


def test_nothing_smaller_that_fails_leaves_the_scenario_as_it_is() -> None:
    document = first_with(lambda d: True)
    assert Shrinker(document, lambda d: False, most=10_000).run() == document


def test_the_original_is_not_changed() -> None:
    document = first_with(lambda d: len(d["workload"]["jobs"]) > 5)
    before = to_toml(document)
    Shrinker(document, lambda d: True, most=50).run()
    assert to_toml(document) == before


def test_names_of_machines_and_schedulers_follow_their_counts() -> None:
    document = {
        "cell": {"machines": [{"name": "m", "capacity": {"cpu": 1}}]},
        "fleet": [{"name": "s", "engine": "omega", "takes": {"kinds": ["service"]}}],
        "workload": {"jobs": [{"id": "j", "kind": "batch", "request": {"cpu": 1}}]},
        "network": {"latency": {"model": "per-pair", "delays": {"s-1>cell": "1s", "s>cell": "1s"}}},
        "faults": [
            {"kind": "machine-crash", "at": "0s", "machine": "m-1"},
            {"kind": "machine-crash", "at": "0s", "machine": "gone-1"},
            {"kind": "scheduler-crash", "at": "0s", "scheduler": "s-1"},
            {"kind": "partition", "at": "0s", "lasts": "1s", "isolated": ["s-1", "s-2"]},
        ],
    }
    small = mended(document)
    assert [fault.get("machine") for fault in small["faults"]] == ["m", None, None]
    assert small["faults"][1]["scheduler"] == "s"
    assert small["faults"][2]["isolated"] == ["s"]
    assert list(small["network"]["latency"]["delays"]) == ["s>cell"]
    assert "takes" not in small["fleet"][0]


@pytest.mark.parametrize("seed", range(12))
def test_any_jobs_that_a_failure_needs_are_all_that_is_left_of_a_list(seed: int) -> None:
    random = Random(seed)
    names = [f"j{i}" for i in range(2 + random.below(12))]
    needed = {name for name in names if random.below(4) == 0} or {names[-1]}
    document = {
        "name": "x",
        "cell": {"machines": [{"name": "m"}]},
        "workload": {"jobs": [{"id": name} for name in names]},
        "fleet": [{"name": "s", "engine": "omega"}],
    }

    def fails(candidate: Document) -> bool:
        jobs = candidate.get("workload", {}).get("jobs", ())
        return needed <= {job["id"] for job in jobs}

    shrinker = Shrinker(document, fails)
    left = [job["id"] for job in shrinker.run()["workload"]["jobs"]]
    assert left == [name for name in names if name in needed]


def test_machines_of_one_cell_join_no_sets_of_their_clusters() -> None:
    machines = [{"name": "m", "capacity": {"cpu": 1}, "joins": {"zone": ["z0"]}}]
    groups = {"zone": {"sets": ["z0"]}}
    clusters = [{"name": name, "machines": machines, "groups": groups} for name in ("a", "b")]
    document = {
        "clusters": clusters,
        "fleet": [{"name": "s", "engine": "omega", "place": "a"}],
        "network": {"places": {"default": "1s"}, "loss": 0.5},
    }
    tried: list[Document] = []
    Shrinker(document, lambda d: bool(tried.append(d))).run()
    [small] = [candidate for candidate in tried if "cell" in candidate]
    named = [{"name": f"{cluster}/m", "capacity": {"cpu": 1}} for cluster in ("a", "b")]
    assert small == {
        "cell": {"machines": named},
        "fleet": [{"name": "s", "engine": "omega"}],
        "network": {"loss": 0.5},
    }


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [
        (100, "count", [0, 1, 50]),
        (11, "count", [0, 1, 5]),
        (10, "count", [0, 1, 5, 9]),
        (2, "count", [0, 1]),
        (1, "count", [0]),
        (0, "count", []),
        (-3, "precedence", [0, 1, -2]),
        (True, "gang", []),
        ("5min", "submit", ["0s", "1s", "10s", "1min"]),
        ("10s", "submit", ["0s", "1s"]),
        ("0s", "submit", []),
        ("text", "owner", []),
        ("1min", "horizon", []),
        (["1s", "2s"], "durations", [["1s", "1s"]]),
        (["1s", "1s"], "durations", []),
    ],
)
def test_plainer_values_are_tried_the_plainest_first(value, key, expected) -> None:
    assert _simpler(value, ("x", key)) == expected


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [(7, "cpu", [1, 1000]), (1000, "cpu", [1]), ("4GiB", "memory", [1, 1000, "1GiB"])],
)
def test_amounts_have_plain_values_of_their_own(value, key, expected) -> None:
    assert _simpler(value, ("request", key)) == expected


def test_a_failure_that_needs_the_crash_of_a_scheduler_is_shrunk(loads) -> None:
    def fails(document: Document) -> bool:
        kinds = {fault["kind"] for fault in document.get("faults", ()) if "kind" in fault}
        return "scheduler-crash" in kinds and loads(document)

    found = Shrinker(first_with(fails), fails).run()
    assert [fault["kind"] for fault in found["faults"]] == ["scheduler-crash"]
    assert found["faults"][0]["scheduler"] == found["fleet"][0]["name"]
