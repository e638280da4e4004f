"""On a terminal, sentences are wrapped and nothing of them is lost; tables are cut."""

from __future__ import annotations

from typing import Any

import click
import pytest
from command_line import Call
from stand_in_client import NOON, ScriptedClient, made_up_job

from argosy import cli
from argosy.api.values import (
    FleetInfo,
    MachineInfo,
    PlannedTask,
    PlanResult,
    SchedulerInfo,
    StoryDocument,
    TaskSummary,
    WhyDocument,
)
from argosy.cli import output
from argosy.cli.live import ServerChoice
from argosy.model.answers import StoryLine, WhyAnswer

WIDTH = 50
LONG = "It waits because there is no machine that has all that it asks for at the same time."
CLIENT = ScriptedClient(
    jobs=[made_up_job("a" * 30, owner="somebody", name="a job with a long name")],
    job=made_up_job("shop.web"),
    open_tasks=[TaskSummary(job="a" * 40, index=1, state="running", machine="m" * 20, reason=LONG)],
    machines=[
        MachineInfo(
            name="m" * 20,
            capacity={"cpu": 1, "memory": 2, "gpu": 3},
            used={},
            attributes={"disk": "ssd", "zone": "a very long zone"},
        )
    ],
    fleet=FleetInfo(
        version=1, fleet=(), schedulers=(SchedulerInfo(name="s" * 30, engine="e" * 30),)
    ),
    plan=PlanResult(
        fits=True,
        tasks=(PlannedTask(job="a", index=0, state="queued", machine="m", sentence=LONG),),
    ),
    why=WhyDocument(
        text=(LONG, LONG), answer=WhyAnswer(task="a/0", state="pending", sentence=LONG)
    ),
    story=StoryDocument(
        task="a/0", origin=NOON, lines=(StoryLine(at=0, what="refused", text=LONG),)
    ),
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "width", lambda: WIDTH)
    monkeypatch.setattr(ServerChoice, "client", lambda self: CLIENT)
    monkeypatch.setattr(click, "style", lambda text, **_: text)


@pytest.mark.parametrize("line", ["jobs", "ps", "machines"])
def test_long_texts_of_tables_are_cut_on_a_terminal_alone(
    argosy: Call, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    assert "…" in argosy(line).out
    monkeypatch.setattr(output, "width", lambda: None)
    assert "…" not in argosy(line).out


@pytest.mark.parametrize(
    "line",
    ["plan -- true", "why a/0 --dir d", "story a/0 --dir d", "engines sparrow", "engines"],
)
def test_sentences_are_wrapped(argosy: Call, line: str) -> None:
    out = argosy(*line.split()).out
    assert max(map(len, out.splitlines())) <= WIDTH
    if "engines" not in line:
        # Every word of it is there, though columns of other words may stand between.
        assert all(word in out for word in LONG.split())


@pytest.mark.parametrize("line", ["why web -n shop", "story web -n shop"])
def test_answers_about_pods_are_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    from argosy.model.errors import ServerError

    def job(name: str) -> Any:
        if name != "shop.web":
            raise ServerError("no such job", status=404)
        return made_up_job(name)

    monkeypatch.setitem(CLIENT._answers, "job", job)
    with pytest.raises(SystemExit) as stop:
        cli.main(line.split(), is_plugin=True)
    out, err = capsys.readouterr()
    assert (stop.value.code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= WIDTH
    assert all(word in out for word in LONG.split())
