"""Objects in what kubectl prints: lists in lists, documents, implied kinds, and their places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from argosy.model.errors import ScenarioError
from argosy.scenarios import kubernetes_files
from argosy.scenarios.kubernetes_files import EXPECTED, _objects, read_cluster
from argosy.scenarios.kubernetes_tables import KubernetesTable, bring_cluster, default_horizon
from argosy.scenarios.loader import load
from argosy.testing.builders import job
from argosy.workloads.tables import Misfit

NODE = {"kind": "Node", "metadata": {"name": "n"}}


def written(path: Path, *documents: Any) -> Path:
    """As JSON, or as documents of YAML."""
    text = json.dumps(documents[0]) if path.suffix == ".json" else yaml.safe_dump_all(documents)
    path.write_text(text)
    return path


def test_objects_of_lists_have_their_places_and_kinds(tmp_path: Path) -> None:
    unsaid: dict[str, Any] = {"kind": None, "a": 3}
    inner = {"kind": "PodList", "items": [{"a": 1}, {"kind": "Other", "a": 2}, unsaid]}
    path = written(tmp_path / "c.json", {"kind": "List", "items": [NODE, inner]})
    assert list(_objects(path)) == [
        ("items[0]", NODE, "Node"),
        ("items[1]: items[0]", {"a": 1}, "Pod"),
        ("items[1]: items[1]", {"kind": "Other", "a": 2}, "Other"),
        ("items[1]: items[2]", unsaid, "Pod"),
    ]
    assert list(_objects(written(tmp_path / "d.json", NODE))) == [("", NODE, "Node")]


def test_documents_are_counted_with_empty_ones(tmp_path: Path) -> None:
    several = written(tmp_path / "c.yaml", NODE, None, {"kind": "List", "items": [NODE]})
    assert [(place, kind) for place, _, kind in _objects(several)] == [
        ("document 1", "Node"),
        ("document 3: items[0]", "Node"),
    ]
    one = written(tmp_path / "d.YML", {"kind": "List", "items": [NODE]})
    assert [place for place, _, _ in _objects(one)] == ["items[0]"]


@pytest.mark.parametrize(
    ("document", "problem", "field"),
    [
        ([], "not an object", None),
        ({}, "an object without a kind", None),
        ({"kind": ""}, "an object without a kind", None),
        ({"kind": 3}, "an object without a kind", None),
        ({"kind": "NodeList", "items": {}}, "a NodeList without items", None),
        ({"kind": "List", "items": [NODE, 3]}, "not an object", "items[1]"),
        # A plain list implies no kind.
        ({"kind": "List", "items": [{}]}, "an object without a kind", "items[0]"),
        (
            {"kind": "List", "items": [{"kind": "PodList"}]},
            "a PodList without items",
            "items[0]",
        ),
    ],
)
def test_what_is_no_object_has_its_place(
    document: Any, problem: str, field: str | None, tmp_path: Path
) -> None:
    path = written(tmp_path / "c.json", document)
    with pytest.raises(ScenarioError) as caught:
        list(_objects(path))
    error = caught.value
    assert (error.problem, error.field, error.file) == (problem, field, str(path))
    assert error.expected == EXPECTED


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"metadata": {}}, "no metadata.name"),
        ({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4x"}}}, "4x"),
        ({"metadata": {"name": "n"}, "status": 3}, "Expected"),
    ],
)
def test_a_node_that_cannot_be_read_says_why_and_where(
    value: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "c.json", {"kind": "NodeList", "items": [NODE, value]})
    with pytest.raises(ScenarioError) as caught:
        read_cluster(path)
    assert caught.value.problem.startswith("Node that cannot be read: ")
    assert problem in caught.value.problem
    assert caught.value.field == "items[1]"


def test_a_file_that_is_nested_too_deeply_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text("[" * 100_000)
    with pytest.raises(ScenarioError, match=r"^[^;]*: not JSON: .+; expected what `kubectl get"):
        read_cluster(path)


def test_objects_of_other_kinds_are_left_out_whatever_is_in_them(tmp_path: Path) -> None:
    other = {"kind": "Service", "metadata": 3}
    path = written(tmp_path / "c.json", {"kind": "List", "items": [other, NODE, other]})
    found = read_cluster(path)
    assert found.start == found.end
    with pytest.raises(ScenarioError) as caught:
        read_cluster(written(tmp_path / "d.json", {"kind": "List", "items": [other]}))
    assert (caught.value.problem, caught.value.hint) == ("no nodes and no pods", None)


def test_a_recording_starts_so_long_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "c.json", NODE)
    made = read_cluster(path)
    later = msgspec.structs.replace(made, start=100, end=100)
    monkeypatch.setattr(kubernetes_files, "snapshot", lambda *given: later)
    assert [read_cluster(path, since).start for since in (0, 30, 100, 101)] == [100, 70, 0, 0]


@pytest.mark.parametrize(
    ("path", "problem", "expected"),
    [
        ("c.toml", "file 'c.toml'", "a name that ends in .json, .yaml, .yml"),
        (
            "gone.json",
            "no file 'gone.json'",
            "the path of a file that kubectl has printed, relative to the scenario",
        ),
        (
            "folder.json",
            "no file 'folder.json'",
            "the path of a file that kubectl has printed, relative to the scenario",
        ),
    ],
)
def test_a_cluster_is_named_by_a_file_beside_the_scenario(
    path: str, problem: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(Misfit) as caught:
        bring_cluster(tmp_path / "s.toml", KubernetesTable(path=path))
    assert caught.value.error.problem == problem
    assert caught.value.error.expected == expected
    assert caught.value.path == ("workload", "kubernetes", "path")


def test_a_cluster_without_pods_is_no_workload(tmp_path: Path) -> None:
    written(tmp_path / "c.json", NODE)
    with pytest.raises(Misfit) as caught:
        bring_cluster(tmp_path / "s.toml", KubernetesTable(path="c.json"))
    assert caught.value.error.problem == "no pods that run or wait"
    assert caught.value.error.expected == "pods that have not ended"
    assert caught.value.error.hint is None
    assert caught.value.path == ("workload", "kubernetes")


def test_a_run_until_stopped_ends_after_twice_the_time_of_the_rest() -> None:
    minute = 60_000_000
    ends = job("a", seconds=100, submit=30)
    endless = job("b", seconds=None, submit=5)
    assert default_horizon([ends]) is None
    assert default_horizon([]) is None
    assert default_horizon([ends, endless]) == 2 * 130_000_000
    assert default_horizon([endless, job("c", seconds=10)]) == 2 * minute
    assert default_horizon([job("d", seconds=None, submit=70)]) == 2 * 70_000_000


def test_a_horizon_that_a_scenario_gives_counts_before_that_of_its_cluster(tmp_path: Path) -> None:
    node = {**NODE, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}}
    pod = {"kind": "Pod", "metadata": {"name": "p", "namespace": "one"}, "spec": {}}
    written(tmp_path / "c.json", {"kind": "List", "items": [node, pod]})
    file = tmp_path / "s.toml"
    rest = 'workload = { kubernetes = "c.json" }\n[[fleet]]\nname = "s"\nengine = "kube"\n'
    for horizon, expected in (("", 120_000_000), ('horizon = "5s"\n', 5_000_000)):
        file.write_text(f'name = "s"\n{horizon}{rest}')
        made = load(file)
        assert made.horizon == expected
        assert [each.id for each in made.jobs] == ["one.p"]
        assert [machine.name for machine in made.cell.machines] == ["n"]
