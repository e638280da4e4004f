"""What a job's tasks execute, and how often they are retried, in scenario files and traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_scenario import SMALL, line

from argosy.experiments.execute import execute_in_memory
from argosy.model.errors import ModelError, ScenarioError
from argosy.model.jobs import Execution
from argosy.model.scenario import Scenario
from argosy.testing.builders import job, scenario
from argosy.workloads.trace import read_trace, write_trace

Read = Callable[..., Scenario]
Refused = Callable[..., Any]


def with_keys(keys: str) -> str:
    return SMALL.replace('id = "a"', f'id = "a"\n{keys}')


def executed(read: Read, keys: str) -> Execution | None:
    [group] = read(with_keys(keys)).jobs[0].groups
    return group.execution


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"sort -u data.txt"', ("sort", "-u", "data.txt")),
        ('["sort", "-u", "my data.txt"]', ("sort", "-u", "my data.txt")),
        ('"""sort \'my data.txt\' "$HOME" *"""', ("sort", "my data.txt", "$HOME", "*")),
    ],
)
def test_a_command_is_a_list_of_words_or_text_split_like_a_shell_does(
    read: Read, text: str, words: tuple[str, ...]
) -> None:
    assert executed(read, f"command = {text}") == Execution(command=words)


def test_everything_about_the_execution_is_read(read: Read) -> None:
    keys = """\
command = "serve --port 80"
environment = { LANG = "C", DEBUG = "" }
working_directory = "/srv"
stdin = "one line\\n"
image = "registry/web:3"
timeout = "1h"
grace = "2s"
output_limit = 1000
retries = 4
backoff = "3s"
"""
    [group] = read(with_keys(keys)).jobs[0].groups
    assert (group.retries, group.backoff) == (4, 3_000_000)
    assert group.execution == Execution(
        command=("serve", "--port", "80"),
        environment={"LANG": "C", "DEBUG": ""},
        working_directory="/srv",
        stdin="one line\n",
        image="registry/web:3",
        timeout=3_600_000_000,
        grace=2_000_000,
        output_limit=1_000,
    )


def test_without_such_keys_nothing_is_executed(read: Read) -> None:
    [group] = read(SMALL).jobs[0].groups
    assert (group.execution, group.retries) == (None, 0)
    assert executed(read, 'image = "web"') == Execution(image="web")


def test_groups_have_their_own(read: Read) -> None:
    text = SMALL.replace(
        'request = { cpu = 500 }\nduration = "10s"',
        'groups = [{ request = { cpu = 500 }, command = "map", retries = 1 },\n'
        '  { request = { cpu = 500 }, command = "reduce" }]',
    )
    first, second = read(text).jobs[0].groups
    assert (first.execution, first.retries) == (Execution(command=("map",)), 1)
    assert (second.execution, second.retries) == (Execution(command=("reduce",)), 0)


@pytest.mark.parametrize(
    ("keys", "kind", "field", "says"),
    [
        ("command = 5", ScenarioError, "command", "5 is not a command; expected text such as"),
        ("command = [5]", ScenarioError, "command[0]", "5 does not fit; expected text"),
        ('command = "say \'hi"', ScenarioError, "command", "a quotation mark is not closed"),
        ('command = ""', ModelError, "command", "nothing to execute; expected a command or an"),
        ("command = []", ModelError, "command", "nothing to execute; expected a command or an"),
        ('command = ["", "x"]', ModelError, "command", "a command without a name"),
        ('stdin = "x"', ModelError, "command", "nothing to execute; expected a command or an"),
        (
            'command = "x"\nenvironment = { "A=B" = "c" }',
            ModelError,
            "environment",
            "environment variable 'A=B'; expected non-empty names without =",
        ),
        (
            'command = "x"\nenvironment = { A = 5 }',
            ScenarioError,
            "environment.A",
            "5 does not fit; expected text",
        ),
        ('command = "x"\nimage = "a\\u0000"', ModelError, "image", "a null character"),
        ("retries = -1", ModelError, "retries", "-1 retries; expected 0 to 1,000,000"),
        ("retries = true", ScenarioError, "retries", "expected a whole number"),
    ],
)
def test_a_mistake_is_found_at_its_key(
    refused: Refused, keys: str, kind: type, field: str, says: str
) -> None:
    text = with_keys(keys)
    error = refused(text, kind)
    assert error.field == f"workload.jobs[0].{field}"
    assert says in str(error)
    key = field.partition("[")[0].partition(".")[0]
    expected = line(text, f"{key} =") if f"{key} =" in keys else line(text, "[[workload.jobs]]")
    assert error.line == expected


def test_a_key_beside_groups_belongs_into_each(refused: Refused) -> None:
    text = with_keys('command = "x"').replace(
        'request = { cpu = 500 }\nduration = "10s"', "groups = [{ request = { cpu = 500 } }]"
    )
    assert "both 'command' and groups; expected command in each group" in str(refused(text))


def test_a_trace_keeps_it(tmp_path: Path) -> None:
    whole = Execution(("run", "it now"), {"A": "b"}, "/tmp", "image", "text")
    jobs = [
        job("a", 2, retries=3, execution=whole),
        job("b", 1, execution=Execution(image="web")),
        job("c", 1),
    ]
    write_trace(tmp_path / "jobs.jsonl", jobs)
    assert list(read_trace(tmp_path / "jobs.jsonl")) == jobs


def test_a_simulation_decides_the_same_with_and_without(tmp_path: Path) -> None:
    """Nothing is executed, and no task fails."""
    plain, told = (
        execute_in_memory(scenario("omega", [job("a", 3, **fields)]))
        for fields in ({}, {"retries": 3, "execution": Execution(("false",))})
    )
    assert told.summary().counts == plain.summary().counts
    assert told.summary().jct == plain.summary().jct
