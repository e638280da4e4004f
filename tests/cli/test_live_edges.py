"""Live commands at their edges: bytes as they are, several machines, options in the wrong place."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Call
from stand_in_client import ScriptedClient, made_up_job

from argosy.api.values import MachineInfo, TaskSummary
from argosy.cli.kubernetes_shadow import shadow_cluster
from argosy.cli.live import ServerChoice
from argosy.cli.output import OutputError
from argosy.service.kubernetes.shadow import session
from argosy.service.kubernetes.shadow.session import ShadowReport


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    def give(**answers: Any) -> ScriptedClient:
        client = ScriptedClient(**answers)
        monkeypatch.setattr(ServerChoice, "client", lambda self: client)
        return client

    return give


class TestLogs:
    class Stream(io.BytesIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    def test_output_is_written_as_the_task_wrote_it(
        self, given: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from argosy.cli.app import run

        out = self.Stream()
        stream = SimpleNamespace(buffer=out, flush=lambda: None, encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", stream)
        given(logs=b"a\xff\r\n\x00", follow_logs=[b"b", b"", b"c\n"])
        assert run(["logs", "a/0"]) == 0
        assert out.getvalue() == b"a\xff\r\n\x00"
        assert run(["logs", "a/0", "-f"]) == 0
        assert out.getvalue() == b"a\xff\r\n\x00bc\n"
        # Each piece is shown at once.
        assert out.flushed == 4

    @pytest.mark.parametrize(
        ("error", "raised"),
        [
            (OSError(28, "No space left"), OutputError),
            (BrokenPipeError(32, "gone"), BrokenPipeError),
        ],
    )
    def test_output_that_cannot_be_written_is_named(
        self, monkeypatch: pytest.MonkeyPatch, error: OSError, raised: type[Exception]
    ) -> None:
        from argosy.cli.logs import _write

        def fail(data: bytes) -> None:
            raise error

        monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=SimpleNamespace(write=fail)))
        with pytest.raises(raised, match=str(error.strerror)):
            _write(b"x")

    def test_the_options_reach_the_server(self, argosy: Call, given: Any) -> None:
        client = given(logs=b"", follow_logs=[], job=made_up_job("a", tasks={"failed": 1}))
        argosy("logs", "a", "--try", "3", "--tail", "5", "-o", "json")
        argosy("logs", "a/2", "--stderr", "-o", "json")
        asked = [call[1:] for call in client.asked if call[0] == "logs"]
        assert asked == [
            ("a", 0, {"stream": "stdout", "try_number": 3, "tail": 5}),
            ("a", 2, {"stream": "stderr", "try_number": None, "tail": None}),
        ]
        assert "0 is not in the range x>=1" in argosy("logs", "a", "--try", "0").complaint
        assert "-1 is not in the range x>=0" in argosy("logs", "a", "--tail", "-1").complaint


def test_every_machine_that_is_drained_is_shown(argosy: Call, given: Any) -> None:
    def drain(name: str, *, undo: bool) -> MachineInfo:
        return MachineInfo(name=name, capacity={"cpu": 1}, used={}, draining=not undo)

    client = given(drain=drain)
    rows = argosy("drain", "a", "b", "-o", "csv").out.splitlines()[1:]
    assert rows == ["a,true,0,0,1,0", "b,true,0,0,1,0"]
    [row] = json.loads(argosy("drain", "a", "--undo", "-o", "json").out)
    assert row["draining"] is False
    assert [call[1:] for call in client.asked] == [
        ("a", {"undo": False}),
        ("b", {"undo": False}),
        ("a", {"undo": True}),
    ]
    assert argosy("drain").code == 2


def test_a_machine_is_resized_in_what_is_named(argosy: Call, given: Any) -> None:
    now = MachineInfo(name="m", capacity={"cpu": 500, "memory": 2**30, "gpu": 1}, used={})
    client = given(machine=now, change_machine=now)
    argosy("machines", "resize", "m", "--memory", "2GiB", "--capacity", "gpu=0")
    [_, (name, machine, patch)] = client.asked
    assert (name, machine, patch.draining) == ("change_machine", "m", None)
    assert patch.capacity == {"cpu": 500, "memory": "2GiB", "gpu": 0}
    for wrong in (("--cpu", "much"), ("--memory", "-1"), ("--capacity", "gpu=1.5")):
        client.asked.clear()
        assert argosy("machines", "resize", "m", *wrong).code == 2
        assert client.asked == []


@pytest.mark.parametrize("option", [("--token-file", "t"), ("--dir", "d"), ("--server", "s")])
def test_no_option_before_a_subcommand_of_fleet_is_lost(
    argosy: Call, given: Any, option: tuple[str, str]
) -> None:
    client = given()
    told = argosy("fleet", *option, "set", "--engine", "omega").complaint
    assert told.endswith("options before the subcommand; expected them after `argosy fleet set`")
    assert client.asked == []


def test_options_of_a_server_make_its_client(
    argosy: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[Any] = []

    def client(server: Any, **options: Any) -> ScriptedClient:
        made.append((server, options["directory"], options["token_file"]))
        return ScriptedClient(open_tasks=[TaskSummary(job="a", index=0, state="pending")])

    monkeypatch.setattr("argosy.client.Client", client)
    argosy("ps", "--server", "http://h:1", "--token-file", "t")
    argosy("ps", "--dir", "d")
    argosy("ps")
    assert made == [("http://h:1", None, "t"), (None, "d", None), (None, None, None)]


@pytest.mark.parametrize("duration", ["1ms", None])
def test_a_shadow_watches_until_its_time_is_over_or_it_is_told_to_stop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], duration: str | None
) -> None:
    async def run_shadow(options: Any, stop: asyncio.Event, ready: Any, log: Any) -> ShadowReport:
        engines = [SimpleNamespace(name="a"), SimpleNamespace(name="b")]
        ready(SimpleNamespace(engines=engines, nodes=1))
        log("a line")
        assert options.fleet == ({"name": "a"},)
        if duration is None:
            signal.raise_signal(signal.SIGINT)
        await stop.wait()
        return ShadowReport(seconds=1.0, nodes=1, pods=0, pods_before=0, schedulers=())

    monkeypatch.setattr(session, "run_shadow", run_shadow)
    before = signal.getsignal(signal.SIGTERM)
    connection: Any = SimpleNamespace()
    try:
        shadow_cluster(connection, [{"name": "a"}], duration, as_json=True)
    finally:
        signal.signal(signal.SIGTERM, before)
    out, err = capsys.readouterr()
    until = "until Ctrl-C" if duration is None else "for 1ms"
    assert err.splitlines() == [
        f"argosy: watching 1 node {until}, changing nothing; in the shadow: a, b",
        "argosy: a line",
    ]
    assert json.loads(out)["pods"] == 0
