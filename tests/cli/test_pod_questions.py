"""`kubectl argosy` and its names for pods, without a cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stand_in_client import LATER, NOON, ScriptedClient, made_up_job

from argosy import cli
from argosy.api.values import StoryDocument, TaskSummary, WhyDocument
from argosy.cli.kubectl import _job_of, _own_namespace
from argosy.cli.live import ServerChoice
from argosy.model.answers import StoryLine, WhyAnswer
from argosy.model.errors import CommandError, ServerError

Ask = Callable[..., tuple[int, str, str]]

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u, namespace: shop}}]
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


@pytest.fixture
def ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Ask]:
    """Calls the plug-in, two hours east of Greenwich and without a kubeconfig."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()

    def call(client: ScriptedClient, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(ServerChoice, "client", lambda self: client)
        with pytest.raises(SystemExit) as stop:
            cli.main(list(arguments), is_plugin=True)
        assert isinstance(stop.value.code, int)
        return stop.value.code, *capsys.readouterr()

    yield call
    monkeypatch.undo()
    time.tzset()


def knowing(*names: str, **answers: Any) -> ScriptedClient:
    """A server with jobs of these names."""

    def job(name: str) -> Any:
        return made_up_job(name) if name in names else ServerError("no such job", status=404)

    return ScriptedClient(job=job, **answers)


def task(job: str, index: int = 0, **fields: Any) -> TaskSummary:
    return TaskSummary(**{"job": job, "index": index, "state": "running", **fields})


class TestNames:
    def test_the_latest_pod_of_a_name_is_meant(self) -> None:
        names = [f"shop.web{again}" for again in ("", "~2", "~3", "~5")]
        for count, latest in ((1, "shop.web"), (2, "shop.web~2"), (4, "shop.web~3")):
            client: Any = knowing(*names[:count])
            assert _job_of(client, "shop", "web") == latest

    def test_a_pod_that_nobody_knows_is_told_with_its_namespace(self) -> None:
        client: Any = knowing("shop.web")
        with pytest.raises(CommandError, match="Argosy knows no pod other/web; it knows pods with"):
            _job_of(client, "other", "web")

    def test_another_problem_is_the_server_s(self) -> None:
        client: Any = ScriptedClient(job=ServerError("broken", status=500))
        with pytest.raises(ServerError, match="broken"):
            _job_of(client, "shop", "web")

    def test_the_namespace_is_that_of_the_context_or_the_default(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "config"
        monkeypatch.setenv("KUBECONFIG", str(path))
        monkeypatch.setenv("HOME", str(tmp_path))
        assert _own_namespace() == "default"
        path.write_text(KUBECONFIG)
        assert _own_namespace() == "shop"
        path.write_text(KUBECONFIG.replace(", namespace: shop", ""))
        assert _own_namespace() == "default"


class TestAnswers:
    WHY = WhyDocument(
        text=("It waits.", "More helps."),
        answer=WhyAnswer(task="shop.web/0", state="pending", sentence="It waits."),
    )

    def test_why_is_about_the_pod(self, ask: Ask) -> None:
        client = knowing("shop.web", "shop.web~2", why=self.WHY)
        code, out, err = ask(client, "why", "web", "-n", "shop")
        assert (code, out, err) == (0, "shop/web: pending\nIt waits.\nMore helps.\n", "")
        assert client.asked[-1] == ("why", "shop.web~2", 0)
        _, out, _ = ask(client, "why", "web", "-n", "shop", "-o", "csv")
        assert out == "namespace,pod,text\nshop,web,It waits. More helps.\n"
        document = json.loads(ask(client, "why", "web", "-n", "shop", "-o", "json")[1])
        assert list(document)[:3] == ["namespace", "pod", "task"]
        assert (document["namespace"], document["pod"], document["state"]) == (
            "shop",
            "web",
            "pending",
        )
        client = knowing("default.web", why=self.WHY)
        assert ask(client, "why", "web")[1].startswith("default/web: pending\n")

    def test_a_story_has_dates(self, ask: Ask) -> None:
        lines = (
            StoryLine(at=0, what="submitted", text="as a pod", detail={"by": "me"}),
            StoryLine(at=61_500_000, what="placed", text="on m", detail={}),
        )
        told = StoryDocument(task="shop.web/0", origin=NOON, lines=lines)
        client = knowing("shop.web", story=told)
        code, out, _ = ask(client, "story", "web", "-n", "shop")
        assert (code, client.asked[-1]) == (0, ("story", "shop.web", 0))
        assert [line.split() for line in out.splitlines()] == [
            ["shop/web"],
            ["at", "what"],
            ["2026-05-01", "14:00:00.000", "submitted", "as", "a", "pod"],
            ["2026-05-01", "14:01:01.500", "placed", "on", "m"],
        ]
        assert ask(client, "story", "web", "-n", "shop", "-o", "csv")[1].splitlines()[:2] == [
            "at,what,text",
            "2026-05-01 14:00:00.000,submitted,as a pod",
        ]
        document = json.loads(ask(client, "story", "web", "-n", "shop", "-o", "json")[1])
        assert [(each["at"], each["detail"]) for each in document] == [
            (0, {"by": "me"}),
            (61_500_000, {}),
        ]


class TestPods:
    TASKS = (
        task("shop.web", machine="n0", started=NOON, ended=LATER),
        task("shop.web~2", state="pending"),
        task("other.db", machine="n1"),
        task("shop.group:g", 1, state="queued"),
        task("shop.a.b"),
    )
    ROWS = (
        "shop,web,running,n0",
        "shop,web,pending,",
        "other,db,running,n1",
        "shop,group:g/1,queued,",
        "shop,a.b,running,",
    )

    def listed(self, ask: Ask, *options: str) -> tuple[list[str], str]:
        code, out, err = ask(ScriptedClient(open_tasks=self.TASKS), "ps", *options, "-o", "csv")
        assert code == 0
        heading, *rows = out.splitlines()
        assert heading == "namespace,pod,state,node,for"
        return [row.rpartition(",")[0] for row in rows], err

    def test_pods_have_the_names_that_kubectl_has(self, ask: Ask) -> None:
        assert self.listed(ask, "-A") == (list(self.ROWS), "")
        of_shop = [row for row in self.ROWS if row.startswith("shop")]
        assert self.listed(ask, "-n", "shop") == (of_shop, "")
        assert self.listed(ask) == ([], "")

    def test_only_pods_of_the_namespace_count_towards_the_limit(self, ask: Ask) -> None:
        told = "note: there are more than {} pods; --all lists them\n"
        assert self.listed(ask, "-n", "shop", "--limit", "4")[1] == ""
        rows, err = self.listed(ask, "-n", "shop", "--limit", "3")
        assert (rows[-1], len(rows), err) == (self.ROWS[3], 3, told.format(3))
        rows, err = self.listed(ask, "-A", "--limit", "1")
        assert (rows, err) == ([self.ROWS[0]], told.format(1))
        assert len(self.listed(ask, "-A", "--all")[0]) == 5

    def test_a_pod_that_has_a_node_has_it_for_some_time(self, ask: Ask) -> None:
        client = ScriptedClient(open_tasks=self.TASKS)
        document = json.loads(ask(client, "ps", "-A", "-o", "json")[1])
        assert document[0]["for"] > 0
        assert document[1]["for"] is None

    def test_one_namespace_or_all_of_them(self, ask: Ask) -> None:
        code, _, err = ask(ScriptedClient(open_tasks=()), "ps", "-A", "-n", "shop")
        assert code == 2
        assert "both --namespace and --all-namespaces; expected one of them" in err

    def test_without_arguments_it_helps(self, ask: Ask) -> None:
        code, out, _ = ask(ScriptedClient())
        assert (code, out.splitlines()[0].strip()) == (
            2,
            "Usage: kubectl argosy [OPTIONS] COMMAND [ARGS]...",
        )
