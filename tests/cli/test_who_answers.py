"""Who answers a question about a task: a live cluster, a saved run, or nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stand_in_client import ScriptedClient, made_up_job

from argosy.cli.live import ServerChoice, complete_job, complete_machine, complete_task, find_task
from argosy.cli.live_answers import answered
from argosy.model.errors import (
    ArgosyError,
    CommandError,
    RunDirectoryError,
    ServerError,
    ServerUnreachable,
)

ANYWHERE = ServerChoice(None, None, None)
UNKNOWN = ServerError("unknown job 'a'", status=404)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The answer, and what was noted."""

    def call(
        client: ScriptedClient, *, task: str = "a/1", where: ServerChoice = ANYWHERE, **more: Any
    ) -> tuple[str, str]:
        monkeypatch.setattr(ServerChoice, "client", lambda self: client)

        def live(client: Any, name: str, index: int) -> str:
            return f"live {client.why(name, index)}"

        saved = more.pop("saved", lambda: "saved")
        return answered(task, more.pop("run", None), where, live, saved), capsys.readouterr().err

    return call


def test_the_only_task_of_a_job_needs_no_index(ask: Any) -> None:
    client = ScriptedClient(why="it", job=made_up_job("a", tasks={"running": 1}))
    note = "note: answered by the live cluster at unix:/somewhere; --run for a saved run\n"
    assert ask(client, task="a") == ("live it", note)
    assert client.asked == [("job", "a"), ("why", "a", 0)]


def test_a_name_that_a_cluster_cannot_read_may_be_one_of_a_saved_run(ask: Any) -> None:
    client = ScriptedClient(job=made_up_job("a", tasks={"running": 3}))
    assert ask(client, task="a") == ("saved", "")
    assert ask(client, task="a/b/c") == ("saved", "")

    def nothing() -> str:
        raise RunDirectoryError("no run found", file="runs", expected="x", hint="run one")

    with pytest.raises(RunDirectoryError) as caught:
        ask(client, task="a", saved=nothing)
    error = caught.value
    # Only what is wrong is told of the cluster, not what it expected.
    assert error.problem == "no run found, and job a has 3 tasks"
    assert error.expected == "--run DIR for a saved run, or --server or --dir for a live cluster"
    assert (error.file, error.hint) == ("runs", "run one")


def test_a_cluster_that_is_named_is_the_only_one_asked(ask: Any) -> None:
    for where in (ServerChoice("s", None, None), ServerChoice(None, "d", None)):
        assert ask(ScriptedClient(why="it"), where=where) == ("live it", "")
        for error in (UNKNOWN, ServerUnreachable("nobody there")):
            with pytest.raises(type(error)):
                ask(ScriptedClient(why=error, job=UNKNOWN), where=where)
        with pytest.raises(CommandError, match="expected JOB/INDEX"):
            ask(ScriptedClient(), task="a/b", where=where)
        with pytest.raises(CommandError, match="both --run and a live server"):
            ask(ScriptedClient(), where=where, run=Path("r"))
    # A token names no cluster.
    assert ask(ScriptedClient(), where=ServerChoice(None, None, "t"), run=Path("r")) == (
        "saved",
        "",
    )


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_other_problems_of_a_cluster_are_told(ask: Any, status: int) -> None:
    with pytest.raises(ServerError, match="odd"):
        ask(ScriptedClient(why=ServerError("odd", status=status), job=UNKNOWN))


def test_a_job_that_a_cluster_does_not_know_is_looked_for_in_a_saved_run(ask: Any) -> None:
    client = ScriptedClient(why=UNKNOWN, job=UNKNOWN)
    told = "note: answered by a saved run; the live cluster at unix:/somewhere: unknown job 'a'\n"
    assert ask(client) == ("saved", told)
    assert client.asked[-1] == ("job", "a")
    with pytest.raises(ServerError, match="unknown job"):
        ask(ScriptedClient(why=UNKNOWN, job=made_up_job("a")))

    def broken() -> str:
        raise ArgosyError("torn")

    # What is wrong with a run that is there is told as it is.
    with pytest.raises(ArgosyError, match=r"^torn$"):
        ask(client, saved=broken)


@pytest.mark.parametrize(
    ("tasks", "told"),
    [(2, "job a has 2 tasks; expected one of a/0 to a/1"), (10, "one of a/0 to a/9")],
)
def test_one_of_several_tasks_has_to_be_named(tasks: int, told: str) -> None:
    client: Any = ScriptedClient(job=made_up_job("a", tasks={"pending": 1, "failed": tasks - 1}))
    with pytest.raises(CommandError, match=told):
        find_task(client, "a")
    # The server knows best which tasks there are.
    assert find_task(client, "a/77") == ("a", 77)


@pytest.mark.parametrize("complete", [complete_job, complete_task, complete_machine])
def test_a_shell_sees_no_problems(monkeypatch: pytest.MonkeyPatch, complete: Any) -> None:
    import click

    def nobody(*_: Any, **__: Any) -> Any:
        raise ServerUnreachable("nobody there")

    monkeypatch.setattr("argosy.client.Client", nobody)
    context = click.Context(click.Command("x"))
    for text in ("", "a/"):
        assert complete(context, None, text) == []
