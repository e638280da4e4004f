"""The library just where an argument begins to be refused, and what it does before it fails."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.library import comparisons
from argosy.library.arguments import (
    LARGEST_SEED,
    check_processes,
    check_seed,
    is_whole,
    unusable,
)
from argosy.library.comparisons import MOST_SEEDS, compare, replay_with
from argosy.library.frames import columns_of
from argosy.library.results import run
from argosy.library.sources import load, several, with_seed
from argosy.model.errors import LONGEST_ECHO, CommandError, UnknownEngine
from argosy.testing.builders import job, scenario

SPEC = scenario("omega", [job("a")], replicas=1)


def test_a_value_is_echoed_up_to_a_length() -> None:
    for extra, ending in ((0, "'"), (1, "...")):
        told = unusable("seed", "x" * (LONGEST_ECHO - 2 + extra), "a number").problem
        assert told.endswith(ending)
        assert len(told) == len("seed ") + LONGEST_ECHO + (3 if extra else 0)
    assert unusable("engine", list, "a name").problem == "engine list"


@pytest.mark.parametrize(
    ("seed", "is_good"),
    [(0, True), (-1, False), (LARGEST_SEED, True), (LARGEST_SEED + 1, False), (True, False)],
)
def test_seeds_are_those_of_scenario_files(seed: Any, is_good: bool) -> None:
    if is_good:
        check_seed(seed)
    else:
        with pytest.raises(CommandError, match="seed"):
            check_seed(seed)


def test_whole_numbers_are_no_truth_values() -> None:
    assert [is_whole(each) for each in (0, True, False, 1.0, "1", None)] == [True] + [False] * 5
    check_processes(1)
    for wrong in (0, True, 1.5):
        with pytest.raises(CommandError, match="processes"):
            check_processes(wrong)


def test_only_several_processes_need_classes_that_can_be_imported() -> None:
    class Local(ENGINES["omega"]):  # type: ignore[misc, valid-type]
        pass

    assert len(compare(SPEC, [Local], seeds=1).runs) == 1
    with pytest.raises(CommandError, match="several processes"):
        compare(SPEC, [Local], seeds=1, processes=2)


def test_an_engine_that_is_unknown_is_refused_before_any_runs() -> None:
    recorded, told = run(SPEC), list[float]()
    with pytest.raises(UnknownEngine, match="omgea"):
        replay_with(recorded, ["omega", "omgea"], progress=told.append)
    assert told == []
    found = replay_with(recorded, ["omega", "kube"], progress=told.append)
    assert list(found.runs) == ["recorded", "omega", "kube"]
    assert told == sorted(told)
    assert (0.5 in told, told[-1]) == (True, 1.0)


def test_seeds_count_up_from_that_of_the_scenario_or_are_given() -> None:
    assert comparisons._seeds(SPEC, 3) == [1, 2, 3]
    assert comparisons._seeds(SPEC, MOST_SEEDS)[-1] == MOST_SEEDS
    assert comparisons._seeds(SPEC, [5, 2, 5]) == [5, 2]
    assert comparisons._seeds(SPEC, range(2)) == [0, 1]
    for wrong in (MOST_SEEDS + 1, 0, -1, [], "12", 1.5, [1, -1], True):
        with pytest.raises(CommandError):
            comparisons._seeds(SPEC, wrong)  # type: ignore[arg-type]
    last = scenario("omega", [], seed=LARGEST_SEED)
    assert comparisons._seeds(last, 1) == [LARGEST_SEED]
    with pytest.raises(CommandError, match="seed"):
        comparisons._seeds(last, 2)


def test_a_scenario_built_here_keeps_its_jobs_with_another_seed() -> None:
    other = with_seed(SPEC, 7)
    assert (other.seed, other.jobs) == (7, SPEC.jobs)
    assert with_seed(SPEC, None) is SPEC
    assert with_seed(SPEC, SPEC.seed) is SPEC
    with pytest.raises(CommandError, match="seed"):
        with_seed(SPEC, -1)


def test_a_file_is_remembered_wherever_one_is(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        '[[cell.machines]]\nname = "m"\ncapacity = { cpu = 1 }\n'
        '[[workload.jobs]]\nid = "a"\nduration = "1s"\nrequest = { cpu = 1 }\n'
        '[[fleet]]\nname = "s"\nengine = "omega"\n'
    )
    (tmp_path / "x.toml").write_text('name = "x"\n' + text)
    monkeypatch.chdir(tmp_path)
    loaded = load("x.toml")
    monkeypatch.chdir("/")
    assert with_seed(loaded, 3).seed == 3


def test_engines_are_named_once_in_their_order() -> None:
    class Local(ENGINES["omega"]):  # type: ignore[misc, valid-type]
        pass

    names, also = several(["kube", Local, "omega", ENGINES["kube"], Local])
    mine = f"{__name__}:{Local.__qualname__}"
    assert names == ["kube", mine, "omega"]
    assert also == {mine: Local}
    assert several("omega") == (["omega"], {})


def test_columns_of_rows_that_lack_something_are_filled() -> None:
    found = columns_of([{"a": 1, "b": "x"}, {"a": 2, "c": 0.5}, {"a": None, "b": "y", "c": 1}])
    assert list(found) == ["a", "b", "c"]
    assert found["a"].tolist()[:2] == [1.0, 2.0]
    assert found["b"].tolist() == ["x", "", "y"]
    assert found["c"].tolist()[1:] == [0.5, 1.0]
    assert [bool(column[row] != column[row]) for column, row in ((found["a"], 2), (found["c"], 0))]
