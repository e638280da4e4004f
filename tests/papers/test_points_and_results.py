"""Points, their results and what is asked of them, in every detail."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from argosy.model.errors import CommandError, TraceError, UnknownName
from argosy.papers import experiment
from argosy.papers.claims import Claim, if_done
from argosy.papers.experiment import (
    ExperimentPoint,
    Findings,
    Parameter,
    PointResult,
    Store,
    digest,
    run_points,
)
from argosy.papers.recorded import TABLES, on_google_trace
from argosy.papers.registry import PAPERS, find_paper
from argosy.papers.selection import distinct, selected
from argosy.version import __version__


def point(figure: str = "1", seed: int = 1, **parameters: Parameter) -> ExperimentPoint:
    return ExperimentPoint(
        paper="none", figure=figure, parameters=parameters, seed=seed, scale="tiny"
    )


def claim(note: str = "") -> Claim:
    return Claim(id="c", figure="1", paper="", here="", tolerance="", holds=True, note=note)


def test_a_claim_stands_if_nearly_all_of_every_experiment_was_done() -> None:
    made = claim("mind this")
    assert if_done(made, 1.0) is made
    assert if_done(made, 0.95, 1.0) is made
    told = "only 94 % of the experiment was done, so nothing follows from it"
    fallen = if_done(made, 1.0, 0.9449)
    assert (fallen.holds, fallen.note) == (False, f"mind this; {told}")
    assert if_done(claim(), 0.9449).note == told
    assert if_done(claim(), 0.9499).holds is False
    assert "only 0 %" in if_done(claim(), 0.5, 0.0).note
    not_even = if_done(Claim(**{**as_dict(made), "holds": False}), 1.0)
    assert not not_even.holds
    assert not_even.note == "mind this"


def as_dict(made: Claim) -> dict[str, object]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


def test_a_point_is_called_by_its_figure_parameters_and_seed() -> None:
    assert str(point("9a", 3, system="kube", load=0.5)) == (
        "figure 9a (system kube, load 0.5, seed 3)"
    )


def test_results_are_found_by_the_parameters_of_their_points() -> None:
    points = [
        point("1", size=2, of="a"),
        point("1", size=1, of="a"),
        point("1", size=2, of="b"),
        point("1", seed=2, size=2, of="a"),
        point("2", other=7),
        point("3", size=9),
    ]
    results = {digest(each): PointResult({"at": n}) for n, each in enumerate(points[:5])}
    found = Findings(points, results)
    assert [found.has(figure) for figure in "1234"] == [True, True, False, False]
    assert [result["at"] for _, result in found.select("1", size=2)] == [0, 2, 3]
    assert [result["at"] for _, result in found.select("1", size=2, of="a")] == [0, 3]
    assert found.select("1")[1] == (points[1], PointResult({"at": 1}))
    assert found.select("1", other=7) == found.select("3") == found.select("4") == []
    assert found.values("1", "size") == [2, 1]
    assert found.values("1", "of") == ["a", "b"]
    assert found.values("1", "other") == found.values("3", "size") == []


def test_an_experiment_is_done_as_far_as_the_least_of_its_points() -> None:
    points = [point(size=size) for size in (1, 2, 3)]
    results = {
        digest(each): PointResult(values)
        for each, values in zip(points, ({"done": 0.5}, {}, {"done": 0.75}), strict=True)
    }
    found = Findings(points, results)
    assert found.done("1") == 0.5
    assert [found.done("1", size=size) for size in (1, 2, 3, 4)] == [0.5, 1.0, 0.75, 0.0]
    assert found.done("2") == 0.0


def test_a_result_is_kept_in_a_file_of_its_own_that_says_all(tmp_path: Path) -> None:
    kept, asked = Store(tmp_path), point("9a", size=2)
    kept.write(asked, PointResult({"x": 1.5}, {"y": [1.0, 2.0]}))
    (file,) = tmp_path.iterdir()
    assert file == kept.path(asked)
    assert file.name == f"9a-{digest(asked)}.json"
    assert len(digest(asked)) == 24
    assert json.loads(file.read_text()) == {
        "argosy": __version__,
        "point": {
            "paper": "none", "figure": "9a", "parameters": {"size": 2}, "seed": 1, "scale": "tiny",
        },
        "result": {"values": {"x": 1.5}, "series": {"y": [1.0, 2.0]}},
    }  # fmt: skip
    assert file.read_bytes().endswith(b"}\n")
    assert kept.read(asked) == PointResult({"x": 1.5}, {"y": [1.0, 2.0]})
    assert kept.read(point("9a", size=3)) is None


def test_a_file_that_speaks_of_another_point_or_version_counts_as_none(tmp_path: Path) -> None:
    kept, mine, other = Store(tmp_path), point(size=1), point(size=2)
    kept.write(other, PointResult({}))
    kept.path(other).rename(kept.path(mine))
    assert kept.read(mine) is None
    kept.write(mine, PointResult({}))
    document = json.loads(kept.path(mine).read_text())
    kept.path(mine).write_text(json.dumps({**document, "argosy": "0"}))
    assert kept.read(mine) is None


def test_a_digest_depends_on_every_part_of_a_point() -> None:
    one = point("1", size=1)
    others = [
        one,
        point("2", size=1),
        point("1", size=1.0),
        point("1", size="1"),
        point("1", sizes=1),
        point("1", seed=2, size=1),
        ExperimentPoint(paper="other", figure="1", parameters={"size": 1}, seed=1, scale="tiny"),
        ExperimentPoint(paper="none", figure="1", parameters={"size": 1}, seed=1, scale="full"),
    ]
    assert len({digest(each) for each in others}) == len(others)
    assert digest(point(a=1, b=2)) == digest(point(b=2, a=1))


class Ran:
    """A runner that remembers what it ran."""

    def __init__(self) -> None:
        self.points: list[ExperimentPoint] = []

    def __call__(self, asked: ExperimentPoint) -> PointResult:
        self.points.append(asked)
        return PointResult({"run": float(len(self.points))})


def test_progress_counts_finished_points_and_those_kept_from_before(tmp_path: Path) -> None:
    points = [point(size=size) for size in (1, 2, 3, 4)]
    kept, ran, told = Store(tmp_path), Ran(), list[float]()
    kept.write(points[2], PointResult({"run": 0.0}))
    found = run_points([*points, points[0]], ran, kept, tell=told.append)
    assert ran.points == [points[0], points[1], points[3]]
    assert told == [0.25, 0.5, 0.75, 1.0]
    assert {key: result["run"] for key, result in found.items()} == {
        digest(each): run for each, run in zip(points, (1.0, 2.0, 0.0, 3.0), strict=True)
    }
    assert kept.read(points[3]) == PointResult({"run": 3.0})
    told.clear()
    assert run_points([], ran, kept, tell=told.append) == {}
    assert told == [0.0]


def test_what_is_run_again_replaces_what_was_kept(tmp_path: Path) -> None:
    kept, ran, told = Store(tmp_path), Ran(), list[float]()
    kept.write(point(), PointResult({"run": 0.0}))
    run_points([point()], ran, kept, again=True, tell=told.append)
    assert ran.points == [point()]
    assert told == [0.0, 1.0]
    assert kept.read(point()) == PointResult({"run": 1.0})


def in_which_process(asked: ExperimentPoint) -> PointResult:
    return PointResult({"pid": os.getpid()})


def test_a_single_point_needs_no_other_process() -> None:
    (result,) = run_points([point()], in_which_process, None, processes=4).values()
    assert result["pid"] == os.getpid()


def test_points_that_run_alone_are_run_in_their_order_after_the_others() -> None:
    """With one process, all are run in the order in which they were given."""
    points, ran = [point(size=size) for size in (1, 2, 3)], Ran()
    run_points(points, ran, None, alone=lambda each: each.parameters["size"] == 1)
    assert ran.points == points


def test_only_others_share_processes_and_no_more_than_there_are_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pool's processes are threads here, which count."""
    pools: list[int] = []

    def pool(processes: int) -> ThreadPoolExecutor:
        pools.append(processes)
        return ThreadPoolExecutor(1)

    monkeypatch.setattr(experiment, "worker_pool", pool)
    points = [point(size=size) for size in (1, 2, 3, 4)]
    here = threading.get_ident()

    def ran(asked: ExperimentPoint) -> PointResult:
        return PointResult({"here": float(threading.get_ident() == here)})

    def where(processes: int, *alone: int) -> list[float]:
        done = run_points(
            points, ran, None, processes=processes,
            alone=lambda each: each.parameters["size"] in alone,
        )  # fmt: skip
        return [done[digest(each)]["here"] for each in points]

    assert where(9, 2) == [0, 1, 0, 0]
    assert where(2) == [0, 0, 0, 0]
    # A single point that may share needs no other process.
    assert where(9, 1, 2, 4) == [1, 1, 1, 1]
    assert pools == [3, 2]


def test_results_of_another_version_are_other_results(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(point())
    monkeypatch.setattr(experiment, "__version__", "0.0.0")
    assert digest(point()) != before


POINTS = [
    point("1", size=1, load=0.5, of="a"),
    point("1", size=2, load=0.5, of="a"),
    point("1", size=2, load=1.0, of="b"),
    point("2", size=3),
]


@pytest.mark.parametrize(
    ("where", "places"),
    [
        ({}, [0, 1, 2, 3]),
        ({"size": ["2"]}, [1, 2]),
        ({"size": ["3", "1"]}, [0, 3]),
        ({"load": ["1"]}, [2]),
        ({"load": ["0.50"], "size": ["2"]}, [1]),
        ({"size": ["2", "2"]}, [1, 2]),
    ],
)
def test_a_part_of_the_points_has_each_of_the_parameters(
    where: dict[str, list[str]], places: list[int]
) -> None:
    assert selected(POINTS, where, {}) == [POINTS[place] for place in places]


@pytest.mark.parametrize(
    ("where", "changed", "says", "expected"),
    [
        (
            {"sizes": ["2"]},
            {},
            "unknown parameter of these points: 'sizes'",
            "one of load, of, size",
        ),
        ({}, {"lod": "2"}, "unknown parameter of these points: 'lod'", "one of load, of, size"),
        ({"size": ["4"]}, {}, "unknown value of size here: '4'", "one of 1, 2, 3"),
        ({"size": ["2.0"]}, {}, "unknown value of size here: '2.0'", "one of 1, 2, 3"),
        # Among those that have the values before.
        ({"of": ["a"], "load": ["1"]}, {}, "unknown value of load here: '1'", "one of 0.5"),
        ({}, {"size": "1.5"}, "size=1.5", "a number such as 1"),
        ({}, {"load": "full"}, "load=full", "a number such as 0.5"),
    ],
)
def test_what_no_point_has_is_told_with_what_they_have(
    where: dict[str, list[str]], changed: dict[str, str], says: str, expected: str
) -> None:
    with pytest.raises((UnknownName, CommandError)) as caught:
        selected(POINTS, where, changed)
    assert caught.value.problem == says
    assert caught.value.expected == expected


def test_points_are_changed_after_they_were_chosen_and_each_is_kept_once() -> None:
    changed = selected(POINTS, {"size": ["2"]}, {"size": "7", "load": "2", "of": "c"})
    assert changed == [point("1", size=7, load=2.0, of="c")]
    both = selected(POINTS, {}, {"load": "3"})
    assert [each.parameters.get("load") for each in both] == [3.0, 3.0, 3.0, None]
    assert distinct([POINTS[1], POINTS[0], POINTS[1], POINTS[3], POINTS[0]]) == [
        POINTS[1],
        POINTS[0],
        POINTS[3],
    ]


def test_a_usual_parameter_is_changed_only_if_no_point_names_it() -> None:
    usual: dict[str, Parameter] = {"size": 5, "seats": 4}
    changed = selected(POINTS, {}, {"seats": "6", "size": "8"}, usual)
    assert [each.parameters["seats"] for each in changed] == [6] * len(changed)
    assert changed[-1].parameters == {"size": 8, "seats": 6}
    nameless = selected([point("1"), point("2", size=1)], {}, {"size": "8"}, usual)
    assert [each.parameters for each in nameless] == [{}, {"size": 8}]


def test_papers_are_found_by_name() -> None:
    assert list(PAPERS) == ["firmament", "medea", "murmuration", "omega", "vela"]
    assert find_paper("medea") is PAPERS["medea"]
    with pytest.raises(UnknownName, match="unknown paper 'omgea'"):
        find_paper("omgea")


def test_a_trace_without_some_tables_is_told_with_those_that_are_missing(tmp_path: Path) -> None:
    for table in (*TABLES, "unrelated"):
        (tmp_path / table).mkdir()
    (tmp_path / "job_events" / "part-00000").write_text("1\n")
    with pytest.raises(TraceError) as caught:
        on_google_trace(point("12"), tmp_path, ("12",))
    assert caught.value.problem == ("no tables of a trace: machine_events, task_events not found")
    assert caught.value.file == str(tmp_path)
    assert caught.value.expected == (
        "a directory with machine_events, job_events, task_events of clusterdata-2011-2"
    )


def test_a_trace_is_known_by_the_sizes_of_its_files_in_whatever_order_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in TABLES:
        (tmp_path / table).mkdir()
        (tmp_path / table / "part-00000").write_text("1\n")
    first = on_google_trace(point("12"), tmp_path, ("12",))
    glob = Path.glob
    with monkeypatch.context() as patch:
        patch.setattr(Path, "glob", lambda self, what: iter(sorted(glob(self, what), reverse=True)))
        assert on_google_trace(point("12"), tmp_path, ("12",)) == first
        patch.setattr(Path, "glob", lambda self, what: sorted(glob(self, what)))
        assert on_google_trace(point("12"), tmp_path, ("12",)) == first
    (tmp_path / TABLES[1] / "part-00000").write_text("1")
    assert on_google_trace(point("12"), tmp_path, ("12",)) != first


def test_a_point_on_a_trace_says_where_it_is_and_what_it_has(tmp_path: Path) -> None:
    for table in TABLES:
        (tmp_path / table).mkdir()
        (tmp_path / table / "part-00000").write_text("1\n")
    plain = point("12", size=1)
    told = on_google_trace(plain, tmp_path, ("11", "12"))
    assert told.parameters == {
        "size": 1, "trace": str(tmp_path), "digest": told.parameters["digest"],
    }  # fmt: skip
    assert len(str(told.parameters["digest"])) == 16
    assert on_google_trace(plain, tmp_path, ("11",)) is plain
    # What is no part of a table, or no file, does not matter.
    (tmp_path / "job_events" / "README").write_text("other")
    (tmp_path / "job_events" / "part-00001").mkdir()
    assert on_google_trace(plain, tmp_path, ("12",)) == told
    (tmp_path / "job_events" / "part-00002").write_text("")
    assert on_google_trace(plain, tmp_path, ("12",)) != told
    # A table of another name is another one.
    digests = []
    for name in ("u", "v"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part-00000").write_text("1\n")
        digests.append(on_google_trace(plain, tmp_path, ("12",)).parameters["digest"])
        (tmp_path / name / "part-00000").unlink()
    assert digests[0] != digests[1]
