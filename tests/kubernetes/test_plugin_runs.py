"""How a credential plug-in is run, with processes of the test's own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from kube_cases import asynchronous

from argosy.kubernetes import credentials
from argosy.kubernetes.credentials import (
    ConnectionSettingsError,
    Login,
    PluginCommand,
    PluginCredentials,
    Secret,
)

ANSWER = json.dumps(
    {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "t", "expirationTimestamp": "1970-01-01T00:20:00Z"},
    }
).encode()


class Process:
    def __init__(self, output: bytes | None, code: int) -> None:
        self.output, self.code = output, code
        self.returncode: int | None = None
        self.told: list[str] = []

    async def communicate(self) -> tuple[bytes, None]:
        if self.output is None:
            await asyncio.get_running_loop().create_future()
        self.returncode = self.code
        return self.output or b"", None

    def kill(self) -> None:
        self.told.append("kill")

    async def wait(self) -> None:
        self.told.append("wait")


class Runs:
    def __init__(self) -> None:
        self.output: bytes | None = ANSWER
        self.code = 0
        self.error: OSError | None = None
        self.asked: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        self.processes: list[Process] = []

    async def start(self, *command: str, **how: Any) -> Process:
        self.asked.append((command, how))
        if self.error is not None:
            raise self.error
        self.processes.append(Process(self.output, self.code))
        return self.processes[-1]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(credentials.asyncio, "create_subprocess_exec", made.start)
    monkeypatch.setenv("A", "outer")
    monkeypatch.setenv("B", "outer")
    return made


def plugin(has_terminal: Callable[[], bool] = lambda: False, **more: Any) -> PluginCredentials:
    usual = {"command": "p", "arguments": ("a", "b"), "environment": {"A": Secret("own")}}
    made = PluginCommand(**{**usual, **more})
    return PluginCredentials(made, has_terminal=has_terminal, clock=lambda: 1_000.0)


@pytest.mark.parametrize("interactive", [False, True])
def test_a_plug_in_gets_its_environment_and_is_told_about_itself(
    runs: Runs, interactive: bool
) -> None:
    @asynchronous
    async def go() -> None:
        made = plugin(lambda: interactive, cluster={"server": "https://h"})
        assert await made.login() == Login(Secret("Bearer t"), None)

    go()
    [(command, how)] = runs.asked
    assert command == ("p", "a", "b")
    about = json.loads(how["env"].pop("KUBERNETES_EXEC_INFO"))
    assert about == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": interactive, "cluster": {"server": "https://h"}},
    }
    assert how["env"] == {**os.environ, "A": "own"}
    del how["env"]
    assert how == {
        "stdin": None if interactive else subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
    }
    assert runs.processes[0].told == []


def test_a_plug_in_that_does_not_ask_is_not_told_of_the_cluster(runs: Runs) -> None:
    @asynchronous
    async def go() -> None:
        await plugin().login()

    go()
    about = json.loads(runs.asked[0][1]["env"]["KUBERNETES_EXEC_INFO"])
    assert about["spec"] == {"interactive": False}


def test_what_was_issued_is_used_until_it_expires_or_is_refused(runs: Runs) -> None:
    now = 1_199.0

    @asynchronous
    async def go() -> None:
        nonlocal now
        made = PluginCredentials(
            PluginCommand(command="p"), has_terminal=lambda: False, clock=lambda: now
        )
        first, second = await asyncio.gather(made.login(), made.login())
        assert first is second
        assert len(runs.asked) == 1, "one at a time"
        made.refused()
        await made.login()
        await made.login()
        assert len(runs.asked) == 2
        now = 1_200.0
        await made.login()
        assert len(runs.asked) == 3

    go()


def failure(made: PluginCredentials) -> str:
    found: list[str] = []

    @asynchronous
    async def go() -> None:
        with pytest.raises(ConnectionSettingsError) as caught:
            await made.login()
        found.append(str(caught.value))

    go()
    return found[0]


def test_a_plug_in_that_cannot_be_run_or_fails_is_told(runs: Runs) -> None:
    runs.code = 7
    said = "the credential plug-in 'p' failed with exit code 7"
    assert failure(plugin(file="/config", field="exec")) == f"/config: exec: {said}"
    assert failure(plugin()) == said
    runs.error = FileNotFoundError(2, "No such file or directory")
    said = "cannot run the credential plug-in 'p': no such file or directory"
    assert failure(plugin(install_hint="get it")) == f"{said}; get it"
    assert failure(plugin()) == said


def test_a_plug_in_that_must_ask_and_cannot_is_told_how_to_help_oneself(runs: Runs) -> None:
    assert failure(plugin(interactive_mode="Always")) == (
        "the credential plug-in must ask the user, and there is no terminal; run it once in a"
        " terminal, or use another user of the kubeconfig"
    )
    assert runs.asked == []


def test_a_plug_in_that_does_not_answer_is_killed(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "PLUGIN_SECONDS", 0.01)
    runs.output = None
    assert failure(plugin()) == "the credential plug-in 'p' did not answer in 0 s"
    assert runs.processes[0].told == ["kill", "wait"]


def test_nobody_hurries_a_plug_in_that_asks_the_user(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "PLUGIN_SECONDS", 0.0)
    runs.output = None

    @asynchronous
    async def go() -> None:
        asking = asyncio.create_task(plugin(lambda: True).login())
        await asyncio.sleep(0.02)
        assert not asking.done()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    go()
    assert runs.processes[0].told == ["kill", "wait"], "it does not outlive who asked"


def test_an_interactive_plug_in_needs_a_terminal_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = PluginCredentials(PluginCommand(command="p", interactive_mode="IfAvailable"))

    class Terminal:
        def isatty(self) -> bool:
            return True

    for stdin, expected in ((None, False), (Terminal(), True)):
        monkeypatch.setattr(credentials.sys, "stdin", stdin)
        assert made._is_interactive() is expected
