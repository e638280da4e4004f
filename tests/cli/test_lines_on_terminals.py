"""What commands write over on a terminal, and documents of what was just changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from command_line import Call
from stand_in_client import LATER, NOON, ScriptedClient, made_up_job
from test_command_options import RecordingClient
from test_pod_questions import Ask, ask, task

from argosy.cli import submit
from argosy.cli.live import ServerChoice

__all__ = ["ask"]


def watched(*states: dict[str, int]) -> Iterator[Any]:
    for counts in states:
        over = {"state": "finished", "ended": LATER} if "finished" in counts else {}
        yield made_up_job("j", submitted=NOON, tasks=counts, **over)


class TestProgressOfAJob:
    STATES = ({"pending": 1_200}, {"running": 2, "failed": 1}, {"finished": 3})

    def shown(self, monkeypatch: pytest.MonkeyPatch, capsys: Any, *, is_terminal: bool) -> str:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
        client: Any = ScriptedClient(watch=lambda name: watched(*self.STATES))
        job = submit._awaited(client, "j")
        assert job.tasks.finished == 3
        return str(capsys.readouterr().err)

    def test_a_line_is_written_over_and_gone_before_the_end_is_told(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        *lines, last = self.shown(monkeypatch, capsys, is_terminal=True).split("\r\x1b[K")
        assert lines[:2] == ["", "j: 1,200 pending"]
        assert sorted(lines[2].removeprefix("j: ").split(", ")) == ["1 failed", "2 running"]
        assert lines[3:] == ["j: 3 finished"]
        assert last == "j: finished after 1.5 s\n"

    def test_nothing_is_written_over_elsewhere(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told = self.shown(monkeypatch, capsys, is_terminal=False)
        assert told == "j: finished after 1.5 s\n"


def test_a_fleet_that_was_set_is_shown_in_the_form_that_is_asked_for(
    argosy: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServerChoice, "client", lambda self: RecordingClient())
    told = argosy("fleet", "set", "--engine", "omega", "-o", "json")
    assert (told.code, json.loads(told.out)["fleet"]) == (0, [{"name": "omega", "engine": "omega"}])
    assert argosy("fleet", "set", "--engine", "omega", "-o", "csv").out == (
        "name,engine,jobs,busyness,is_alive\n"
    )


def test_how_long_a_pod_has_its_node_is_a_time(ask: Ask) -> None:
    tasks = (task("shop.web", machine="n0", started=NOON), task("shop.db", state="pending"))
    code, out, _ = ask(ScriptedClient(open_tasks=tasks), "ps", "-A")
    heading, first, second = out.splitlines()
    assert (code, heading.split()) == (0, ["namespace", "pod", "state", "node", "for"])
    assert first.split()[:4] == ["shop", "web", "running", "n0"]
    assert first.split()[-1] in ("s", "min", "h", "d")
    assert second.split() == ["shop", "db", "pending"]
