"""One life of a played scheduler: what it reads before it begins, and what its world is made of."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry
from argosy.service.kubernetes.played import servers


class Parts:
    """Stands for all that a server is made of, and notes in which order it was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.did: list[Any] = []
        self.store: tuple[Any, ...] = ()
        self.cluster = SimpleNamespace(
            ended="ended", fault_listeners=[], listeners=[], run=self._live
        )
        self.overseer = Mock()
        self.overseer.pods.machine_of = lambda node: Machine(node, Resources(1, 1))
        self.overseer.connect = lambda ended, soon: self.did.append(("connect", ended))
        self.driven: list[Any] = []
        self.build: Any = None
        self.watches = SimpleNamespace(nodes=SimpleNamespace(objects={1: "n1", 2: "n2"}))
        replaced = {
            "KubernetesClient": lambda connection, *, sender: Context(sender, "client"),
            "ClusterWatches": lambda client: Context(self, "watches"),
            "PodOverseer": self._oversee,
            "prepare": lambda pods, watches: self.did.append("prepare"),
            "LocalStore": self._open,
            "LiveCluster": self._make,
            "KubernetesDriver": self._drive,
        }
        for name, part in replaced.items():
            monkeypatch.setattr(servers, name, part)

    async def complete(self) -> None:
        self.did.append("complete")

    @property
    def nodes(self) -> Any:
        return self.watches.nodes

    async def _live(self) -> None:
        self.did.append("live")

    def _oversee(self, name: str) -> Any:
        self.did.append(("oversee", name))
        return self.overseer

    def _open(self, directory: Any, *, is_lasting: bool) -> Any:
        self.store = (directory, is_lasting)
        return SimpleNamespace(close=lambda: self.did.append("close"))

    def _make(self, build: Any, overseer: Any) -> Any:
        assert overseer is self.overseer
        self.build = build
        return self.cluster

    def _drive(self, *parts: Any, log: Any) -> Any:
        self.driven = list(parts)
        log("a line")
        return SimpleNamespace(start=lambda: self.did.append("drive"))


class Context:
    def __init__(self, inside: Any, name: str) -> None:
        self._inside, self.name = inside, name

    async def __aenter__(self) -> Any:
        return self._inside

    async def __aexit__(self, *error: object) -> None:
        pass


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    return Parts(monkeypatch)


def a_server(parts: Parts, directory: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    seeds: list[int] = []

    def sender(network: Any, settings: Any, seed: int) -> Any:
        seeds.append(seed)
        assert settings.longest_delay == 2.0
        return SimpleNamespace(connection="played")

    monkeypatch.setattr(servers, "PlayedSender", sender)
    loop: Any = Mock(micros=7_000)
    loop.create_task = asyncio.ensure_future
    scenario: Any = SimpleNamespace(
        seed=5, fleet=(FleetEntry(name="s", engine="omega"),), machines=MachineModel()
    )
    found = servers.PlayedServer(
        scenario,
        {"omega": "engine"},  # type: ignore[dict-item]
        SimpleNamespace(loop=loop),  # type: ignore[arg-type]
        directory,
        11,
        parts.did.append,
        lambda: None,
    )
    assert seeds == [11]
    return found


def test_a_life_begins_when_all_is_read_and_hears_of_faults_and_turns(
    parts: Parts, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = a_server(parts, tmp_path, monkeypatch)
    asyncio.run(server._run())
    assert parts.did == [
        "complete",
        ("oversee", servers.ANY),
        "prepare",
        ("connect", "ended"),
        "drive",
        "live",
    ]
    assert parts.store == (tmp_path, False)
    assert parts.cluster.fault_listeners == [server._failed]
    assert parts.cluster.listeners == [server._turn_written]
    assert server.pods is parts.overseer.pods
    assert parts.driven[1:] == [parts, parts.overseer, parts.cluster, servers.ANY]
    server.close_store()
    assert parts.did[-1] == "close"


def test_its_world_checks_itself_and_has_the_nodes_and_the_fleet(
    parts: Parts, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = a_server(parts, tmp_path, monkeypatch)
    asyncio.run(server._run())
    made: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    monkeypatch.setattr(
        servers, "OverruledWorld", lambda *given, **named: made.append((given, named))
    )
    parts.build("deliberator")
    [(given, named)] = made
    assert given[0] is server._store
    assert given[1] == {"omega": "engine"}
    assert (given[2], given[4]) == (parts.overseer, parts.overseer)
    assert given[3]() == 7_000
    assert (named["began"], named["deliberator"]) == (7_000, "deliberator")
    cluster = named["cluster"]
    assert (cluster.name, cluster.seed, cluster.audit) == ("kubernetes", 5, True)
    assert [machine.name for machine in cluster.cell.machines] == ["n1", "n2"]
    assert cluster.fleet == server._scenario.fleet
    assert cluster.machines == server._scenario.machines


def test_writing_commits_what_was_decided(
    parts: Parts, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = a_server(parts, tmp_path, monkeypatch)
    server.close_store()
    asyncio.run(server._run())
    world = Mock()
    parts.cluster.world = world
    server.write()
    assert world.commit.call_count == 1
    # A new life is not dead, and nothing keeps it from going on after a turn.
    assert server.is_dead is False
    server._turn_written(1.0)
