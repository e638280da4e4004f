"""What the loader is made of: texts, their places and digests, and job files."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import msgspec
import pytest

from argosy.model.errors import JobError, ScenarioError, ServerError
from argosy.model.scenario import (
    Scenario,
)
from argosy.scenarios.job_files import _path_of, parse_jobs, read_job_file, read_job_stream
from argosy.scenarios.kubernetes_tables import document_of, is_cluster_file, written_out
from argosy.scenarios.scenario_json import scenario_digest, write_scenario
from argosy.scenarios.toml_files import decode_utf8, parse_toml, read_utf8
from argosy.scenarios.toml_places import line_of
from argosy.scenarios.yaml_files import parse_yaml
from argosy.testing.builders import job, scenario


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 130])
def test_a_scenario_is_written_job_by_job_as_if_it_were_as_a_whole(count: int) -> None:
    made = scenario("omega", [job(f"j{number}") for number in range(count)])
    file = io.BytesIO()
    digest = write_scenario(made, file)
    assert file.getvalue() == msgspec.json.encode(made)
    assert msgspec.json.decode(file.getvalue(), type=Scenario) == made
    canonical = msgspec.json.encode(made, order="deterministic")
    assert digest == scenario_digest(made) == hashlib.sha256(canonical).hexdigest()


def test_other_scenarios_have_other_digests() -> None:
    made = scenario("omega", [job("a")])
    others = [
        made,
        msgspec.structs.replace(made, seed=made.seed + 1),
        msgspec.structs.replace(made, jobs=(job("b"),)),
        msgspec.structs.replace(made, horizon=1),
    ]
    assert len({scenario_digest(each) for each in others}) == len(others)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"\xef\xbb\xbfa", "a"),
        (b"a\xef\xbb\xbf", "a\ufeff"),
        (b"a\r\nb\rc\n\r\n", "a\nb\nc\n\n"),
        ("ä\n".encode(), "ä\n"),
    ],
)
def test_texts_have_one_kind_of_line_end_and_no_mark(data: bytes, text: str) -> None:
    assert decode_utf8(data, "f", ScenarioError, "x") == text


@pytest.mark.parametrize(
    ("data", "line", "byte"),
    [
        (b"\xff", 1, 1),
        (b"ab\n\xc3\xa4\xff", 2, 3),
        (b"\n\n\xff\n", 3, 1),
        (b"\xef\xbb\xbf\xff", 1, 1),
    ],
)
def test_what_is_no_text_is_told_with_its_line_and_byte(data: bytes, line: int, byte: int) -> None:
    with pytest.raises(JobError) as caught:
        decode_utf8(data, "the file", JobError, "a job")
    error = caught.value
    assert (error.file, error.line) == ("the file", line)
    assert error.problem == f"not UTF-8 at byte {byte} of the line"
    assert error.expected == "a job, in UTF-8"


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\r\n")
    assert read_utf8(tmp_path / "f", ScenarioError, "x") == "a\n"
    with pytest.raises(ScenarioError) as caught:
        read_utf8(tmp_path / "g", ScenarioError, "a scenario")
    assert caught.value.problem == "cannot be read: No such file or directory"
    assert (caught.value.file, caught.value.expected) == (str(tmp_path / "g"), "a scenario")


@pytest.mark.parametrize(
    ("text", "line", "end"),
    [
        ("a = 1\nb = = 2\n", 2, " at column 5"),
        ('a = 1\nb = "\n\n', 2, " at column 6"),
        # The parser gives no line where the text ends.
        ("a = [1,\n2,\n\n", 2, ""),
        ("a = [", 1, ""),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(text: str, line: int, end: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_toml(text, "f.toml", ScenarioError, "toml")
    error = caught.value
    assert error.problem.startswith("not TOML: ")
    assert "(at line" not in error.problem
    assert error.problem.endswith(end)
    assert (error.file, error.line, error.expected) == ("f.toml", line, "toml")


def test_the_line_of_what_is_not_there_is_that_of_what_it_would_be_in() -> None:
    places = {("a",): 1, ("a", "b"): 2}
    assert line_of(places, ("a", "b")) == 2
    assert line_of(places, ("a", "b", "c", 0)) == 2
    assert line_of(places, ("a", "c")) == 1
    assert line_of(places, ("c", "b")) is None
    assert line_of({(): 9, **places}, ()) is None


def test_yaml_documents_have_lines_by_path() -> None:
    text = "a: 1\nb:\n  - x\n  - {c: 2}\n---\n- 7\n---\n"
    documents, places = parse_yaml(text, "f", ScenarioError, "x")
    assert documents == [{"a": 1, "b": ["x", {"c": 2}]}, [7], None]
    assert places == {
        (0,): 1, (0, "a"): 1, (0, "b"): 2, (0, "b", 0): 3, (0, "b", 1): 4, (0, "b", 1, "c"): 4,
        (1,): 6, (1, 0): 6, (2,): 8,
    }  # fmt: skip
    assert parse_yaml("", "f", ScenarioError, "x") == ([], {})


@pytest.mark.parametrize(
    ("text", "problem", "expected", "line"),
    [
        ("a: 1\n2: 3\n", "key '2' is not text", "quotation marks around it", 2),
        ("? [a]\n: 1\n", "key a collection is not text", "quotation marks around it", 1),
        ("a: 1\nb: 2\na: 3\n", "key 'a' twice in one mapping", "yaml", 3),
        (
            "a: &x\n  b: *x\n",
            "aliases that lead to themselves, or to too many values",
            "yaml",
            2,
        ),
        ("a: 1\n b: 2\n", None, "yaml", 2),
    ],
)
def test_yaml_that_json_could_not_say_is_refused(
    text: str, problem: str | None, expected: str, line: int
) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_yaml(text, "f.yaml", ScenarioError, "yaml")
    error = caught.value
    assert (error.file, error.line, error.expected) == ("f.yaml", line, expected)
    if problem is not None:
        assert error.problem == problem
    else:
        assert error.problem.startswith("not YAML: ")


def test_a_value_may_be_used_again_and_merged() -> None:
    text = "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n"
    (document,), places = parse_yaml(text, "f", ScenarioError, "x")
    assert document == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}
    assert places[(0, "d", "e")] == 5
    assert places[(0, "c")] == 2


def test_values_are_counted_up_to_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.scenarios.yaml_files._MOST_VALUES", 4)
    assert parse_yaml("[1, 2, 3]", "f", ScenarioError, "x")[0] == [[1, 2, 3]]
    with pytest.raises(ScenarioError, match="too many values"):
        parse_yaml("[1, 2, 3, 4]", "f", ScenarioError, "x")
    # Over all documents.
    with pytest.raises(ScenarioError, match="too many values"):
        parse_yaml("[1, 2]\n---\n[3]", "f", ScenarioError, "x")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cluster.json", "cluster"),
        ("my cluster (2).yaml", "my-cluster-2"),
        ("-.x.-.yml", "x"),
        ("äöü.json", "kubernetes"),
        ("x" * 150 + ".json", "x" * 100),
        ("a.b_c-D.json", "a.b_c-D"),
    ],
)
def test_a_cluster_s_file_gives_its_scenario_a_name(name: str, expected: str) -> None:
    assert document_of(Path("where") / name) == {
        "name": expected,
        "workload": {"kubernetes": {"path": name}},
        "fleet": [{"name": "scheduler", "engine": "kube"}],
    }


def test_clusters_are_in_json_or_yaml() -> None:
    names = ("a.json", "a.JSON", "a.yaml", "a.yml", "a.toml", "json", "a.json.gz")
    assert [is_cluster_file(Path(name)) for name in names] == [True] * 4 + [False] * 3


def test_the_short_form_of_a_cluster_is_written_out() -> None:
    short = {"name": "a", "workload": {"kubernetes": "c.json", "x": 1}}
    assert written_out(short) == {
        "name": "a", "workload": {"kubernetes": {"path": "c.json"}, "x": 1},
    }  # fmt: skip
    for other in ({}, {"workload": 3}, {"workload": {"kubernetes": {"path": "c"}}}):
        assert written_out(other) is other


def test_paths_are_read_as_they_are_written() -> None:
    assert _path_of("") == ()
    assert _path_of("jobs[2].request.cpu") == ("jobs", 2, "request", "cpu")
    assert _path_of("[0][1].a b") == (0, 1, "a b")


JOBS = """\
[[jobs]]
command = "true"
request = { cpu = 1 }
[[jobs]]
id = "b"
command = "true"
[jobs.request]
cpu = 1
"""


@pytest.mark.parametrize(
    ("field", "at", "line"),
    [
        ("request.cpu", 1, 8),
        ("request.memory", 1, 7),
        ("command", 0, 2),
        ("none", 0, 1),
        (None, 1, 4),
        ("jobs[1].command", None, 6),
        ("jobs[0]", None, 1),
        ("jobs[2].command", None, None),
        ("command", 2, None),
        ("jobs", None, None),
        ("seed", None, None),
        (None, None, None),
    ],
)
def test_a_refusal_of_a_server_has_the_line_of_what_it_is_about(
    field: str | None, at: int | None, line: int | None
) -> None:
    file = parse_jobs(JOBS, "jobs.toml", "toml")
    error = file.located(ServerError("no", status=400, field=field), at)
    assert (error.file, error.line) == ("jobs.toml", line)


def test_jobs_without_an_id_are_numbered_in_the_whole_file(tmp_path: Path) -> None:
    assert [each.job.id for each in parse_jobs(JOBS, "f", "toml").jobs] == ["job-1", "b"]
    text = "command: x\nrequest: {}\n---\n- {command: y, request: {}}\n"
    text += "- {id: a, command: z, request: {}}\n---\n"
    (tmp_path / "one.YML").write_text(text)
    file = read_job_file(tmp_path / "one.YML")
    assert [each.job.id for each in file.jobs] == ["job-1", "job-2", "a"]
    assert [each.path for each in file.jobs] == [(0,), (1, 0), (1, 1)]
    assert file.jobs[2].document == {"id": "a", "command": "z", "request": {}}
    assert read_job_stream(b"command = 'x'\nrequest = {}", "toml").name == "-"


@pytest.mark.parametrize(
    ("text", "form", "problem", "line", "field"),
    [
        ("", "toml", "no jobs", None, None),
        ("jobs = []", "toml", "no jobs", None, None),
        ("", "yaml", "no jobs", None, None),
        ("jobs = 3", "toml", "3 is not a list", 1, "jobs"),
        ("\n[jobs]\nx = 1", "toml", None, 2, "jobs"),
        ("jobs = []\nid = 'a'", "toml", "both jobs and id", 2, "id"),
        ("jobs = [\n3]", "toml", "3 is not a job", 2, "jobs[0]"),
        ("- 3", "yaml", "3 is not a job", 1, "[0]"),
        ("x", "yaml", "'x' is not a job", 1, None),
        (
            "- {command: a, request: {}}\n- fleet: 3",
            "yaml",
            "fleet is a key of scenarios, not of jobs",
            2,
            None,
        ),
        (
            "[[jobs]]\nid='a'\ncommand='x'\nrequest={}\n[[jobs]]\nid='a'\ncommand='x'\nrequest={}",
            "toml",
            "job 'a' again",
            6,
            "jobs[1].id",
        ),
    ],
)
def test_mistakes_in_job_files(
    text: str, form: str, problem: str | None, line: int | None, field: str | None
) -> None:
    with pytest.raises(JobError) as caught:
        parse_jobs(text, "f", form)
    if problem is not None:
        assert caught.value.problem == problem
    assert (caught.value.file, caught.value.line) == ("f", line)
    if field is not None:
        assert caught.value.field == field


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    for name, said in (("a.txt", "'.txt' does not"), ("a", "a name does not")):
        (tmp_path / name).write_text("")
        with pytest.raises(JobError) as caught:
            read_job_file(tmp_path / name)
        assert caught.value.problem == f"{said} say what the file is"
        assert caught.value.expected == "a name that ends in .toml, .yaml or .yml"
