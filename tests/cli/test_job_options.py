"""A job given by options: what becomes of each, and which option a mistake is in."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Call
from stand_in_client import ScriptedClient, made_up_job

from argosy.cli.job_arguments import GivenJobs
from argosy.cli.live import ServerChoice
from argosy.model.errors import CommandError, ServerError


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> ScriptedClient:
    client = ScriptedClient(submit=made_up_job())
    monkeypatch.setattr(ServerChoice, "client", lambda self: client)
    return client


def submitted(argosy: Call, client: ScriptedClient, *options: str | Path) -> dict[str, Any]:
    client.asked.clear()
    told = argosy("submit", *options)
    assert (told.code, told.err) == (0, "")
    [(_, document, _)] = client.asked
    read: dict[str, Any] = document
    return read


def test_a_command_alone_has_defaults_and_nothing_else(
    argosy: Call, client: ScriptedClient, tmp_path: Path
) -> None:
    assert submitted(argosy, client, "--", "echo", "--", "-x") == {
        "command": ["echo", "--", "-x"],
        "request": {"cpu": "1", "memory": "512MiB"},
        "working_directory": str(tmp_path),
    }


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ("--id x", "id", "x"),
        ("--name x", "name", "x"),
        ("--kind x", "kind", "x"),
        ("--owner x", "owner", "x"),
        ("--count 2", "count", 2),
        ("--precedence -3", "precedence", -3),
        ("--precedence 0", "precedence", 0),
        ("--estimate 1s", "estimate", "1s"),
        ("--timeout 2s", "timeout", "2s"),
        ("--retries 0", "retries", 0),
        ("--retries 4", "retries", 4),
        ("--tag b --tag a", "tags", ["b", "a"]),
        ("--requires a=1 --requires b=2", "requires", {"a": "1", "b": "2"}),
        ("--env A= --env B=x=y", "environment", {"A": "", "B": "x=y"}),
        ("--env A=1 --env A=2", "environment", {"A": "2"}),
        ("--gang --count 2", "gang", True),
        ("--request gpu=2 --request cpu=3", "request", {"cpu": 3, "memory": "512MiB", "gpu": 2}),
        ("--cpu 500m --memory 1GiB", "request", {"cpu": "500m", "memory": "1GiB"}),
    ],
)
def test_an_option_becomes_the_key_of_a_job_file(
    argosy: Call, client: ScriptedClient, options: str, key: str, value: object
) -> None:
    document = submitted(argosy, client, *options.split(), "--", "true")
    assert document[key] == value
    usual = {"command", "request", "working_directory", "count"}
    assert set(document) - usual == {key} - usual


def test_a_service_is_endless_and_of_its_own_kind(argosy: Call, client: ScriptedClient) -> None:
    document = submitted(argosy, client, "--service", "--", "true")
    assert (document["endless"], document["kind"]) == (True, "service")
    document = submitted(argosy, client, "--service", "--kind", "web", "--", "true")
    assert (document["endless"], document["kind"]) == (True, "web")
    assert "endless" not in submitted(argosy, client, "--", "true")


def test_tasks_run_where_they_are_told_to(
    argosy: Call, client: ScriptedClient, tmp_path: Path
) -> None:
    document = submitted(argosy, client, "--cwd", "some/../where", "--", "true")
    assert document["working_directory"] == str(tmp_path / "where")
    document = submitted(argosy, client, "--cwd", "/else", "--", "true")
    assert document["working_directory"] == "/else"


def test_constraints_are_about_tags(argosy: Call, client: ScriptedClient) -> None:
    text = "web -> {web, 0, 9} in machine"
    document = submitted(argosy, client, "--tag", "web", "--constraint", text, "--", "true")
    assert document["constraints"] == [text]


class TestStandardInput:
    def feed(self, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    def test_a_file_or_mine_is_that_of_the_tasks(
        self, argosy: Call, client: ScriptedClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "in").write_bytes("ü\r\n".encode())
        assert submitted(argosy, client, "--stdin", "in", "--", "cat")["stdin"] == "ü\r\n"
        self.feed(monkeypatch, "mine ü\n".encode())
        assert submitted(argosy, client, "--stdin", "-", "--", "cat")["stdin"] == "mine ü\n"
        (tmp_path / "in").write_bytes(b"")
        assert submitted(argosy, client, "--stdin", "in", "--", "cat")["stdin"] == ""

    def test_bytes_that_are_no_text_are_refused(
        self, argosy: Call, client: ScriptedClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "in").write_bytes(b"\xff")
        hint = "not UTF-8; let the command read the file itself"
        assert f"--stdin in: {hint}" in argosy("submit", "--stdin", "in", "--", "cat").complaint
        self.feed(monkeypatch, b"\xff")
        assert f"--stdin -: {hint}" in argosy("submit", "--stdin", "-", "--", "cat").complaint

    @pytest.mark.parametrize(
        ("form", "text"),
        [
            ((), 'command = "true"\nrequest = {cpu = 1}\n'),
            (("--format", "toml"), 'command = "true"\nrequest = {cpu = 1}\n'),
            (("--format", "yaml"), "command: 'true'\nrequest: {cpu: 1}\n"),
        ],
    )
    def test_a_job_file_may_come_from_there(
        self,
        argosy: Call,
        client: ScriptedClient,
        monkeypatch: pytest.MonkeyPatch,
        form: tuple[str, ...],
        text: str,
    ) -> None:
        self.feed(monkeypatch, text.encode())
        assert submitted(argosy, client, "-", *form)["command"] == "true"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--cpu much", "--cpu: "),
        ("--memory much", "--memory: "),
        ("--request gpu=much", "--request: "),
        ("--estimate soon", "--estimate: "),
        ("--timeout soon", "--timeout: "),
        ("--backoff soon --retries 1", "--backoff: "),
        ("--retries -1", "--retries: "),
        ("--count 0", "--count: "),
        ("--tag a,b", "--tag: "),
        ("--constraint odd", "--constraint: "),
        ("--env A=x --env =y", "--env: "),
        ("--service --estimate 1s", "--service: "),
        ("--id a/b", "--id: "),
        ("--request =1", "--request '=1'; expected NAME=VALUE such as gpu=1"),
        ("--requires disk", "--requires 'disk'; expected NAME=VALUE such as disk=ssd"),
    ],
)
def test_a_mistake_is_told_with_its_option(
    argosy: Call, client: ScriptedClient, options: str, told: str
) -> None:
    complaint = argosy("submit", *options.split(), "--", "true").complaint
    assert complaint.partition("]: ")[2].startswith(told)
    assert client.asked == []


def test_the_present_environment_is_read_when_it_is_asked_for(
    argosy: Call, client: ScriptedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "HERE", "a=b")
    document = submitted(argosy, client, "--env", "HERE", "--", "true")
    assert document["environment"] == {"HERE": "a=b"}


def test_only_what_a_server_refuses_has_a_place_in_a_file() -> None:
    located: list[Any] = []

    def locate(error: Exception, at: int | None) -> Exception:
        located.append((error, at))
        return KeyError()

    file: Any = SimpleNamespace(located=locate)
    refused, mistake = ServerError("no", status=400), CommandError("no")
    assert GivenJobs((), None).located(refused, 3) is refused
    assert GivenJobs((), file).located(mistake, 3) is mistake
    assert located == []
    assert isinstance(GivenJobs((), file).located(refused, 3), KeyError)
    GivenJobs((), file).located(refused)
    assert located == [(refused, 3), (refused, None)]
