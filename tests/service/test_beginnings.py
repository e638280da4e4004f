"""How servers and schedulers begin: which runner they have, what tasks inherit, and what changes if the
directory is known already."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_federation_parts import options

from argosy.api.agent_values import ClusterPlace
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.service import scheduling, server
from argosy.service.remote_runner import RemoteRunner
from argosy.service.server import Server, ServerOptions


class TestRunners:
    def made(self, tmp_path: Path, **parts: Any) -> tuple[Any, Any]:
        known: dict[str, Any] = {
            "_options": ServerOptions(directory=tmp_path),
            "_agents": None,
            "_overseer": None,
            "_ended": lambda number, result: None,
        }
        server_: Any = SimpleNamespace(**{**known, **parts})

        async def make() -> Any:
            return Server._make_runner(server_)

        return asyncio.run(make()), server_

    def test_tasks_are_processes_with_some_variables_of_the_server(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[Any] = []
        monkeypatch.setattr(
            server, "ProcessRunner", lambda *parts, **named: given.append((parts, named))
        )
        monkeypatch.setattr(server, "detect_isolation", lambda: "isolation")
        names = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
        passed = {name: f"of {name}" for name in names}
        monkeypatch.setattr(server.os, "environ", {**passed, "ARGOSY_TOKEN": "secret"})
        _, own = self.made(tmp_path)
        [(parts, named)] = given
        assert parts == (tmp_path, own._ended)
        assert named == {"environment": passed, "isolation": "isolation"}
        monkeypatch.setattr(server.os, "environ", {})
        self.made(tmp_path)
        assert given[1][1]["environment"] == {"PATH": server.os.defpath}

    def test_tasks_may_only_take_their_time_or_run_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "SimulatedRunner", lambda later, ended: ("simulated", ended))
        simulated = ServerOptions(directory=tmp_path, tasks="simulated")
        found, own = self.made(tmp_path, _options=simulated)
        assert found == ("simulated", own._ended)
        agents = SimpleNamespace(release=lambda where: None)
        found, _ = self.made(tmp_path, _agents=agents, _options=simulated)
        assert isinstance(found, RemoteRunner)
        assert agents.runner is found
        connected: list[Any] = []
        overseer = SimpleNamespace(connect=lambda *parts: connected.append(parts))
        found, own = self.made(tmp_path, _overseer=overseer)
        assert found is overseer
        assert connected[0][0] is own._ended


def test_a_server_says_whether_tasks_were_left_and_the_collector_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    did: list[Any] = []
    usual = gc.get_threshold()

    class Fake:
        def __init__(self, given: Any, log: Any) -> None:
            did.append((given, log))
            self.runner = SimpleNamespace(is_idle=given == "idle")

        async def run(self, ready: Any) -> None:
            ready()
            did.append(gc.get_threshold()[0])

    monkeypatch.setattr(server, "Server", Fake)
    monkeypatch.setattr(server, "raise_limits", lambda: did.append("limits"))
    served: list[Any] = []
    given: Any
    for given, were_left in (("idle", False), ("busy", True)):
        assert server.serve(given, served.append, print) is were_left
        assert gc.get_threshold() == usual
    assert did == ["limits", ("idle", print), 10_000, "limits", ("busy", print), 10_000]
    assert [type(each) for each in served] == [Fake, Fake]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_scheduler_asks_for_machines_unless_its_directory_is_known(
    monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    did: list[Any] = []
    machine = Machine("a/m", Resources(1, 1))

    async def named(links: Any) -> Any:
        did.append([str(address.endpoint) for address in links])
        return {"a": "link"}

    async def located(name: str, link: Any, distances: Any) -> None:
        distances.learn(name, ClusterPlace(place="rome"), 8)

    async def machines(name: str, link: Any, distances: Any, log: Any) -> list[Machine]:
        did.append(f"machines of {name}")
        return [machine]

    class Fake:
        def __init__(self, given: Any, log: Any, agents: Any) -> None:
            self.given, self.agents = given, agents
            made.append(self)

        async def run(self, started: Any) -> None:
            started()
            await asyncio.sleep(0)

    made: list[Any] = []
    fed: list[Any] = []

    async def feed(own: Any, jobs: Any, log: Any) -> None:
        fed.extend(jobs)

    for name, replaced in (
        ("_named", named),
        ("_located", located),
        ("_machines", machines),
        ("Server", Fake),
        ("_feed", feed),
        ("_check_clusters", lambda own, links: did.append(sorted(links))),
        ("holds_cluster", lambda directory: is_known),
        ("raise_limits", lambda: did.append("limits")),
    ):
        monkeypatch.setattr(scheduling, name, replaced)
    agents = (scheduling.AgentAddress.parse("http://h:1"),)
    jobs = iter([{"id": "j"}])
    ready: list[Any] = []
    scheduling.serve_scheduler(
        options(agents=agents, place="home", distances={"x<>y": 3}, jobs=jobs), ready.append, print
    )
    [own] = made
    assert did == ["limits", ["http://h:1"], *([] if is_known else ["machines of a"]), ["a"]]
    assert (ready, fed) == ([own], [{"id": "j"}])
    assert own.agents.distances.between("home", "rome") == 4
    assert own.agents.distances.between("y", "x") == 3
    if is_known:
        assert own.given.cluster is None
    else:
        assert own.given.cluster.cell.machines == (machine,)
        [cluster] = own.given.cluster.federation.clusters
        assert (cluster.name, cluster.place) == ("a", "rome")
