"""A scheduler over agents, all real servers in this process, with a proxy before each agent.

Proxies pass on bytes, and can be told to cut connections, to hold requests up, or to be away. Everything
lives on one event loop, which runs only while a test waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from argosy.api.sockets import SOCKET
from argosy.client.agent_connection import AgentLink
from argosy.client.endpoints import Endpoint, parse_endpoint
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, Federation, FleetEntry, GroupSpec
from argosy.service.agent import AgentOptions
from argosy.service.remote_agents import FederatedAgents, read_machines
from argosy.service.server import Server, ServerOptions
from argosy.worlds.local.turn import LocalCluster

T = TypeVar("T")

PATIENCE = 60.0
CAPACITY = Resources(1000, 2**30)
UP_TO_DATE = AgentOptions()


class CuttingProxy:
    """Between a scheduler and an agent."""

    def __init__(self, target: Endpoint) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        #: Answers to requests that begin with one of these are cut, so many times.
        self.cuts: dict[bytes, int] = {}
        self.was_cut = 0
        #: While this is not set, requests are not passed on.
        self.passes = asyncio.Event()
        self.passes.set()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("127.0.0.1", self.port)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def go_away(self) -> None:
        """Refuses connections, and breaks those there are."""
        assert self._server is not None
        self._server.close()
        for writer in [*self._open]:
            writer.transport.abort()
        await self._server.wait_closed()

    async def close(self) -> None:
        await self.go_away()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            there, back = await asyncio.open_connection(self._target.host, self._target.port)
            self._open.add(back)
            doomed = asyncio.Event()
            await asyncio.gather(
                self._requests(reader, back, doomed), self._answers(there, writer, doomed)
            )
        for each in (writer, *([back] if "back" in locals() else [])):
            self._open.discard(each)
            each.transport.abort()
        self._tasks.discard(task)

    async def _requests(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 16):
            await self.passes.wait()
            for begin, left in self.cuts.items():
                if left and data.startswith(begin):
                    self.cuts[begin] -= 1
                    doomed.set()
            back.write(data)
        raise ConnectionAbortedError

    async def _answers(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while data := await there.read(1 << 16):
            if doomed.is_set():
                # The agent has done what it was asked to: only the answer is lost.
                self.was_cut += 1
                raise ConnectionAbortedError
            writer.write(data)
        raise ConnectionAbortedError


class FederationBench:
    """`agents` clusters of a few machines each, and a scheduler with the engine `vela`."""

    def __init__(
        self,
        directory: Path,
        agents: int = 3,
        machines: int = 4,
        *,
        capacity: Resources = CAPACITY,
        timeout: float = 20.0,
        agent_options: AgentOptions = UP_TO_DATE,
        settings: Mapping[str, Any] = {},
    ) -> None:
        self._directory = directory
        self._machines = machines
        self._capacity = capacity
        self._timeout = timeout
        self._agent_options = agent_options
        self._settings = {"clusters": 1.0, "machines": 1.0, "backoff": 20_000} | settings
        self.log: list[str] = []
        self.agents: dict[str, Server] = {}
        self.proxies: dict[str, CuttingProxy] = {}
        self._serving: dict[str, asyncio.Task[None]] = {}
        #: Set after every turn of every server.
        self._changed = asyncio.Event()
        self._runner = asyncio.Runner()
        self._names = [f"c{number}" for number in range(agents)]
        self.run(self._start())

    async def _start(self) -> None:
        for name in self._names:
            await self.start_agent(name)
        await self.start_scheduler()

    async def start_agent(self, name: str) -> None:
        machines = tuple(Machine(f"m{n}", self._capacity) for n in range(self._machines))
        made_of = LocalCluster(
            name=name,
            cell=CellSpec(machines=machines),
            fleet=(FleetEntry(name="omega", engine="omega"),),
        )
        options = ServerOptions(
            directory=self._directory / name,
            cluster=made_of,
            port=0,
            agent=self._agent_options,
            tasks="simulated",
        )
        server = Server(options, self.log.append)
        await self._serve(name, server)
        self.agents[name] = server
        if name not in self.proxies:
            self.proxies[name] = CuttingProxy(parse_endpoint(server.url, "the agent"))
            await self.proxies[name].start()

    async def start_scheduler(self) -> None:
        links = {
            name: AgentLink(self.proxies[name].endpoint, timeout=self._timeout)
            for name in self._names
        }
        machines = [m for name in links for m in await read_machines(links[name], name)]
        group = GroupSpec(name=CLUSTER_GROUP, sets=tuple(self._names))
        made_of = LocalCluster(
            name="scheduler",
            cell=CellSpec(machines=tuple(machines), groups=(group,)),
            fleet=(FleetEntry(name="vela", engine="vela", settings=self._settings),),
            federation=Federation(clusters=tuple(Cluster(name, "") for name in self._names)),
        )
        options = ServerOptions(directory=self._directory / "scheduler", cluster=made_of, host=None)
        self.federated = FederatedAgents("bench", links, self.log.append)
        self.scheduler = Server(options, self.log.append, self.federated)
        await self._serve("scheduler", self.scheduler)
        self._client = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(self._directory / "scheduler" / SOCKET)),
            base_url="http://argosy",
        )

    async def _serve(self, name: str, server: Server) -> None:
        server.cluster.listeners.append(lambda seconds: self._changed.set())
        ready = asyncio.Event()
        self._serving[name] = serving = asyncio.create_task(server.run(ready.set))
        waits = asyncio.create_task(ready.wait())
        await asyncio.wait({waits, serving}, return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()
        if serving.done():
            serving.result()

    async def stop(self, name: str) -> None:
        if name == "scheduler":
            await self._client.close()
            self.scheduler.stop()
        else:
            self.agents[name].stop()
        await self._serving.pop(name)

    def close(self) -> None:
        async def close() -> None:
            for name in [name for name in ("scheduler", *self._names) if name in self._serving]:
                await self.stop(name)
            for proxy in self.proxies.values():
                await proxy.close()

        try:
            self.run(close())
        finally:
            self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE):
                return await work

        return self._runner.run(bounded())

    # What a user does.

    async def ask(self, method: str, path: str, document: Any = None) -> Any:
        async with self._client.request(method, path, json=document) as response:
            return await response.json()

    def submit(self, name: str, **keys: Any) -> None:
        document = {
            "id": name,
            "command": "true",
            "request": {"cpu": "500m", "memory": "64MiB"},
            **keys,
        }
        answer = self.run(self.ask("POST", "/v1/jobs", document))
        assert answer.get("id") == name, answer

    def read(self, path: str) -> Any:
        return self.run(self.ask("GET", path))

    def until(self, is_so: Callable[[], bool]) -> None:
        """Until something is so, looking whenever some server has done something."""

        async def wait() -> None:
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

        self.run(wait())

    def state(self, name: str) -> str:
        row = self.scheduler.cluster.world.projection.by_id.get(name)
        return self.read(f"/v1/jobs/{name}")["state"] if row is None else row.state

    def running(self, name: str, tasks: int = 1) -> None:
        rows = self.scheduler.cluster.world.projection.by_id
        self.until(lambda: name in rows and rows[name].counts["running"] == tasks)

    def over(self, name: str) -> str:
        rows = self.scheduler.cluster.world.projection.by_id
        self.until(lambda: name not in rows)
        return self.state(name)

    def machines(self, name: str) -> list[str]:
        tasks = self.read(f"/v1/jobs/{name}/tasks")["items"]
        return [task["machine"] for task in tasks]

    def committed(self) -> dict[str, int]:
        """How many jobs run in each cluster."""
        return {
            name: sum(
                row.counts["running"] for row in server.cluster.world.projection.by_id.values()
            )
            for name, server in self.agents.items()
        }

    def reservations(self) -> int:
        found = (server.agent for server in self.agents.values())
        return sum(agent.open_reservations for agent in found if agent is not None)
