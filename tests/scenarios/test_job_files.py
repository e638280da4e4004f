"""Job files in TOML and YAML, and the places of their mistakes."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from argosy.model.errors import ArgosyError, JobError, MissingExtra, ServerError
from argosy.scenarios.job_files import parse_jobs, read_job_file, read_job_stream

ONE = """\
id = "hello"
command = "echo hello"
request = { cpu = 500 }
"""
SEVERAL = """\
[[jobs]]
command = "echo a"
request = { cpu = 500 }

[[jobs]]
id = "b"
count = 3
command = "echo b"
request = { cpu = 500, memory = "1GiB" }
"""
IN_YAML = """\
id: hello
command: echo hello
request: {cpu: 500}
---
- command: [echo, a]
  request: {cpu: 500}
- command: echo b
  request:
    cpu: 500
---
jobs:
  - command: echo c
    request: {cpu: 1000}
"""


def complaint(text: str, form: str = "toml") -> str:
    with pytest.raises(ArgosyError) as caught:
        parse_jobs(text, "jobs", form)
    return str(caught.value)


def test_a_file_has_one_job_or_several() -> None:
    [one] = parse_jobs(ONE, "f", "toml").jobs
    assert one.job.id == "hello"
    assert one.document == {"id": "hello", "command": "echo hello", "request": {"cpu": 500}}
    assert [each.job.id for each in parse_jobs(SEVERAL, "f", "toml").jobs] == ["job-1", "b"]


def test_yaml_has_documents_lists_and_lists_of_jobs() -> None:
    jobs = parse_jobs(IN_YAML, "f", "yaml").jobs
    commands = [each.job.groups[0].execution for each in jobs]
    assert [c.command[-1] for c in commands if c is not None] == ["hello", "a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "form", "told"),
    [
        (SEVERAL.replace("count = 3", "cuont = 3"), "toml", "jobs:7: jobs[1].cuont: unknown key"),
        (SEVERAL.replace("1GiB", "1gib"), "toml", "jobs:9: jobs[1].request.memory: '1gib'"),
        (ONE + 'duration = "1s"\n', "toml", "jobs:4: duration: duration is only for simulated"),
        (ONE + "timeout = 5\n", "toml", "jobs:4: timeout: 5 has no unit"),
        (ONE + SEVERAL, "toml", "jobs:1: id: both jobs and id"),
        ("jobs = 3", "toml", "jobs:1: jobs: 3 is not a list"),
        ("jobs = [3]", "toml", "jobs:1: jobs[0]: 3 is not a job"),
        ("", "toml", "jobs: no jobs"),
        ("a = ", "toml", "jobs:1: not TOML: "),
        ("x = " + "[" * 9999, "toml", "jobs: nested too deeply"),
        ("[cell]\nmachines = []", "toml", "`argosy run` simulates a scenario"),
        (
            ONE.replace("[[jobs]]", "") + "groups = []",
            "toml",
            "jobs:3: request: both 'request' and",
        ),
        (
            '[[jobs]]\nid = "b"\ncommand="a"\nrequest={}\n' * 2,
            "toml",
            "jobs:6: jobs[1].id: job 'b'",
        ),
        (IN_YAML.replace("cpu: 1000", "cpu: -1"), "yaml", "jobs:13: jobs[0].request.cpu: -1 is"),
        (
            IN_YAML.replace("    cpu: 500", "    cp: x"),
            "yaml",
            "jobs:9: [1].request.cp: 'x' is not",
        ),
        ("just words", "yaml", "jobs:1: 'just words' is not a job"),
        ("a: [", "yaml", "jobs:1: not YAML: "),
        ("a: 1\na: 2", "yaml", "jobs:2: key 'a' twice"),
        ("1: 2", "yaml", "jobs:1: key '1' is not text"),
        ("[a, b]: 2", "yaml", "jobs:1: key a collection is not text"),
        ("a: &a [*a]", "yaml", "jobs:1: aliases that lead to themselves"),
        ("- " * 5000 + "x", "yaml", "jobs: nested too deeply"),
        ("a: 2001-99-99", "yaml", "jobs: not readable as YAML"),
        ("\0", "yaml", "jobs: not YAML: "),
    ],
)
def test_a_mistake_has_its_file_line_and_field(text: str, form: str, told: str) -> None:
    assert told in complaint(text, form)


def test_aliases_cannot_stand_for_a_document_of_any_size() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "too many values" in complaint("\n".join(lines), "yaml")


def test_the_ending_of_a_name_says_what_a_file_is(tmp_path: Path) -> None:
    for name, text in (("a.toml", ONE), ("b.yaml", IN_YAML), ("c.YML", IN_YAML)):
        (tmp_path / name).write_text(text)
        assert read_job_file(tmp_path / name).jobs[0].job.id == "hello"
    (tmp_path / "d.txt").write_text(ONE)
    with pytest.raises(JobError, match=r"ends in \.toml"):
        read_job_file(tmp_path / "d.txt")
    with pytest.raises(JobError, match="No such file"):
        read_job_file(tmp_path / "e.toml")


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(JobError, match=r"-:2: not UTF-8 at byte 3"):
        read_job_stream(b"#\na \xff", "toml")


def test_yaml_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "yaml":
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"argosy\[yaml\]"):
        parse_jobs(IN_YAML, "f", "yaml")


class TestServersRefusals:
    def test_a_refusal_gets_the_line_of_its_field(self) -> None:
        file = parse_jobs(SEVERAL, "jobs.toml", "toml")
        error = ServerError("request.memory: too much", status=422, field="request.memory")
        assert str(file.located(error, 1)) == "jobs.toml:9: request.memory: too much"

    def test_a_refusal_of_a_plan_names_the_job(self) -> None:
        file = parse_jobs(SEVERAL, "jobs.toml", "toml")
        error = ServerError("no", status=422, field="jobs[1].id")
        assert str(file.located(error)) == "jobs.toml:6: no"

    def test_a_refusal_without_a_field_still_names_the_file(self) -> None:
        file = parse_jobs(SEVERAL, "jobs.toml", "toml")
        assert str(file.located(ServerError("no", status=422))) == "jobs.toml: no"
