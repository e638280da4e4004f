"""All that servers answer in drawn sessions, with all that their databases hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_sessions import DrawnSession, run_session
from memory_loop import MemoryLoop, memory_loop
from pinned_digests import require_digests

from argosy.engines.registry import ENGINES
from argosy.service.agent import AgentOptions
from argosy.service.retention import KeptJobs

PINNED = Path(__file__).parent / "pinned"
STEPS = 60
SECOND = 1_000_000
#: Servers that are not as usual.
UNUSUAL: dict[str, dict[str, Any]] = {
    "few jobs are kept": {"kept": KeptJobs(jobs=3)},
    "old jobs are forgotten": {"kept": KeptJobs(age=70 * SECOND)},
    "few and new jobs are kept": {"kept": KeptJobs(jobs=6, age=200 * SECOND)},
    "tasks only take their time": {"is_played": False, "tasks": "simulated"},
    "only a socket": {"host": None},
    "a late agent": {"agent": AgentOptions(delay=30_000, place="east", location="48.2,16.4")},
    "an agent with an old picture": {"agent": AgentOptions(refresh=2 * SECOND, place="west")},
}


@pytest.fixture
def loop() -> Iterator[MemoryLoop]:
    with memory_loop() as made:
        yield made


@pytest.mark.parametrize("engine", ENGINES)
def test_sessions_are_as_they_were(
    engine: str, loop: MemoryLoop, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    seed = 1 + list(ENGINES).index(engine)
    session = DrawnSession(loop, tmp_path, seed, engine, ENGINES, has_tokens=seed % 2 == 0)
    require_digests(PINNED / f"session-{engine}.txt", run_session(session, STEPS), pytestconfig)


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_servers_are_as_they_were(
    name: str, loop: MemoryLoop, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    seed = 101 + list(UNUSUAL).index(name)
    options = dict(UNUSUAL[name])
    engine = list(ENGINES)[seed % 7]
    session = DrawnSession(
        loop, tmp_path, seed, engine, ENGINES, has_tokens="host" not in options, **options
    )
    file = PINNED / f"{name.replace(' ', '-')}.txt"
    require_digests(file, run_session(session, STEPS), pytestconfig)
