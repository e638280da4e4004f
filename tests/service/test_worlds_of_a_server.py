"""How a server builds its world, forgets jobs, and stops tasks, step by step."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.service import server as module
from argosy.service.retention import KeptJobs, OldJob
from argosy.service.server import FORGET_EVERY, Server
from argosy.worlds.local.store import StoreError


@pytest.mark.parametrize("runs", ["here", "elsewhere", "in pods"])
def test_a_world_is_built_for_where_tasks_run_and_what_was_not_written_is_undone_before(
    monkeypatch: pytest.MonkeyPatch, runs: str
) -> None:
    did: list[Any] = []
    for name in ("LocalWorld", "OverruledWorld"):
        monkeypatch.setattr(
            module,
            name,
            lambda *given, _name=name, **named: did.append((_name, given, named)) or _name,
        )
    monkeypatch.setattr(module.time, "time_ns", lambda: 7_000_999)
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: 9_000_999)
    agents = SimpleNamespace(release_unwritten=lambda: did.append("released"))
    parts: Any = SimpleNamespace(
        store=SimpleNamespace(origin=5_000),
        engines="engines",
        runner="runner",
        _options=SimpleNamespace(cluster="cluster"),
        _overseer="overseer" if runs == "in pods" else None,
        _agents=agents if runs == "elsewhere" else None,
    )
    built = Server._build(parts, "deliberator")  # type: ignore[arg-type]
    *before, (name, given, named) = did
    assert before == (["released"] if runs == "elsewhere" else [])
    assert built == name == ("OverruledWorld" if runs == "in pods" else "LocalWorld")
    assert given[:3] == (parts.store, "engines", "runner")
    assert given[3]() == 9_000
    assert given[4:] == (("overseer",) if runs == "in pods" else ())
    usual = {"cluster": "cluster", "deliberator": "deliberator", "began": 2_000}
    assert named == (usual if runs == "in pods" else {**usual, "agents": parts._agents})


class Forgetting:
    """A server whose database has these old jobs, a few at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: Any) -> None:
        self.did: list[Any] = []
        answers = list(found)

        def superfluous(now: int) -> list[OldJob]:
            assert now == 77
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        async def sleep(seconds: float) -> None:
            self.did.append(seconds)
            if not answers:
                raise asyncio.CancelledError

        monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep, to_thread=self._beside))
        monkeypatch.setattr(module, "remove", lambda paths: self.did.append(("removed", paths)))
        self.parts: Any = SimpleNamespace(
            _options=SimpleNamespace(kept=KeptJobs(jobs=1)),
            cluster=SimpleNamespace(world=SimpleNamespace(now=77)),
            retention=SimpleNamespace(
                superfluous=superfluous,
                directories=lambda jobs: [each.id for each in jobs],
                forget=lambda jobs: self.did.append(("forgot", [each.seq for each in jobs])),
            ),
            _log=self.did.append,
        )

    async def _beside(self, work: Any, *given: Any) -> None:
        work(*given)


def test_jobs_are_forgotten_after_their_files_and_more_of_them_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trouble = StoreError("full", is_passing=True)
    bench = Forgetting(monkeypatch, [OldJob(1, "a"), OldJob(2, "b")], [], trouble, [OldJob(3, "c")])
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(Server._forget(bench.parts))
    assert bench.did == [
        ("removed", ["a", "b"]),
        ("forgot", [1, 2]),
        0,
        FORGET_EVERY,
        f"cannot forget jobs: {trouble}",
        FORGET_EVERY,
        ("removed", ["c"]),
        ("forgot", [3]),
        0,
    ]
    bench.parts._options.kept = KeptJobs()
    asyncio.run(Server._forget(bench.parts))


@pytest.mark.parametrize("looks", [0, 2])
def test_tasks_that_are_stopped_are_waited_for(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    did: list[Any] = []
    runner = SimpleNamespace(is_idle=not looks, sweep=lambda: did.append("sweep"))

    async def do(action: Any) -> None:
        action(SimpleNamespace(cancel=did.append))

    async def sleep(seconds: float) -> None:
        did.append(seconds)
        runner.is_idle = did.count(0.05) == looks

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep))
    jobs = SimpleNamespace(projection=SimpleNamespace(by_id={"a": 1, "b": 2}))
    parts: Any = SimpleNamespace(
        cluster=SimpleNamespace(world=jobs, do=do), runner=runner, _log=did.append
    )
    asyncio.run(Server._stop_tasks(parts))
    assert did == ["cancelling 2 jobs", "a", "b", *[0.05, "sweep"] * looks]


def test_the_socket_of_an_earlier_server_is_replaced_by_one_of_the_owner_alone(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        with module._unix_socket(tmp_path) as listening:
            assert listening.getsockname().endswith("argosy.sock")
            assert (tmp_path / "argosy.sock").stat().st_mode & 0o777 == 0o600
            assert not listening.getblocking()


def test_jobs_that_could_not_be_forgotten_are_tried_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, trouble = Forgetting(monkeypatch, [OldJob(9, "z")]), StoreError("full")

    def fail(jobs: object) -> None:
        raise trouble

    bench.parts.retention.forget = fail
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(Server._forget(bench.parts))
    assert bench.did == [("removed", ["z"]), f"cannot forget jobs: {trouble}", FORGET_EVERY]
