"""A scheduler over the agents of other clusters, all in one loop in virtual time, and what becomes of
its jobs while servers on both sides come and go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from drawn_documents import Documents
from drawn_sessions import drawn_scenario, split
from memory_loop import MemoryLoop
from played_server import ServerBench

from argosy.campaign.dice import Dice
from argosy.engines.registry import ENGINES
from argosy.model.errors import ArgosyError
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, GroupSpec
from argosy.service.agent import AgentOptions
from argosy.service.scheduling import AgentAddress, SchedulerOptions, _main
from argosy.service.server import Server
from argosy.worlds.local.turn import LocalCluster

GIB = 2**30
PLACES = (("vienna", "48.2,16.4"), ("", ""), ("rome", "41.9,12.5"))


class SchedulerBench(ServerBench):
    """`serve_scheduler`, again and again on one directory."""

    scheduler: SchedulerOptions

    async def _serve(self, ready: Callable[[], None]) -> None:
        def started(server: Server) -> None:
            self.server = server
            ready()

        await _main(self.scheduler, started, self.say)


def agent_cluster(dice: Dice, name: str) -> LocalCluster:
    machines = []
    for at in range(dice.among(1, 3)):
        capacity = {"cpu": dice.one_of((2_000, 4_000, 8_000)), "memory": 8 * GIB}
        if dice.chance(0.3):
            capacity["gpu"] = 2
        attributes = {"arch": dice.one_of(("x86", "arm"))} if dice.chance(0.6) else {}
        joins: dict[str, tuple[str, ...]] = {}
        if dice.chance(0.5):
            joins = {"rack": (f"rack-{at % 2}",)}
        machines.append(Machine(f"m{at}", Resources.of(capacity), attributes, joins))
    groups = (GroupSpec(name="rack", sets=("rack-0", "rack-1")),)
    fleet = (FleetEntry(name="own", engine="omega"),)
    cell = CellSpec(machines=tuple(machines), groups=groups)
    return LocalCluster(name=name, seed=3, cell=cell, fleet=fleet, audit=True)


class FederatedSession:
    def __init__(self, loop: MemoryLoop, folder: Path, seed: int, agents: int) -> None:
        self.dice = dice = Dice(Random(seed).child("federation"))
        self._folder, self._loop = folder, loop
        names = ("blue", "green/1", "red")[:agents]
        self.agents: list[ServerBench] = []
        for name, (place, location) in zip(names, PLACES, strict=False):
            options = AgentOptions(delay=dice.one_of((0, 0, 3_000)), place=place, location=location)
            bench = ServerBench(
                loop,
                folder / name.replace("/", "-"),
                seed,
                cluster=agent_cluster(dice.part(name), name),
                agent=options,
            )
            bench.directory.mkdir(parents=True)
            self.agents.append(bench)
        attributes = {"arch": ["x86", "arm"]}
        capacities = [{"cpu": 4_000, "memory": 8 * GIB}, {"cpu": 2_000, "memory": GIB}]
        groups = ["machine", "cluster", "rack"]
        self.documents = Documents(dice.part("documents"), capacities, attributes, groups)
        self.bench = SchedulerBench(loop, folder / "fed", seed, is_played=False)
        self.bench.hidden = str(folder)
        settings = drawn_scenario(folder, seed, 0, {"vela": ENGINES["vela"]})[1]["fleet"][0]
        self.bench.scheduler = SchedulerOptions(
            server=self.bench.options,
            name="fed",
            engine="vela",
            settings=settings.get("settings", {}),
            agents=tuple(
                AgentAddress.parse(("" if at else "first=") + f"unix:{each.directory}/argosy.sock")
                for at, each in enumerate(self.agents)
            ),
            timeout=2.0,
            place="home",
            distances=dice.one_of(({}, {"vienna<>rome": 9_000, "home<>vienna": 700})),
        )
        self._is_up = [True] * len(self.agents)

    def begin(self) -> None:
        for agent in self.agents:
            agent.start()
        self.bench.start()
        self.bench.wait(0.5)

    def step(self) -> None:
        steps: tuple[tuple[int, Callable[[], None]], ...] = (
            (8, self.submit), (2, self.cancel), (2, self.scale), (6, self.pass_time),
            (2, self.restart), (3, self.toggle_agent), (2, self.restart_agent), (2, self.change_machine),
            (2, self.meddle), (1, self.refuse), (1, self.commit_unknown),
        )  # fmt: skip
        self.bench.lines.append(f"-- at {self._loop.micros}")
        self.dice.one_of([action for weight, action in steps for _ in range(weight)])()

    def submit(self) -> None:
        for _ in range(self.dice.one_of((1, 1, 3))):
            document = self.documents.job()
            if self.dice.chance(0.4):
                document.pop("groups", None)
                document |= self.documents.group("batch") | {"demands": self.documents.demands()}
            document.pop("constraints", None)
            self.bench.ask("POST", "/v1/jobs", document)

    def _open_job(self) -> str:
        kept = list(self.bench.lines)
        _, _, body = self.bench.ask("GET", "/v1/jobs?open=true&limit=8")
        self.bench.lines[:] = kept
        found = [item["id"] for item in msgspec.json.decode(body)["items"]]
        return quote(self.dice.one_of(found or ["nobody"]), safe="")

    def cancel(self) -> None:
        body: Any = self.dice.one_of(({}, {}, {"tasks": [0]}))
        self.bench.ask("POST", f"/v1/jobs/{self._open_job()}/cancel", body)

    def scale(self) -> None:
        body = {"tasks": self.dice.among(1, 5)}
        self.bench.ask("PATCH", f"/v1/jobs/{self._open_job()}", body)

    def pass_time(self) -> None:
        self.bench.wait(self.dice.one_of((0.01, 0.3, 1.0, 4.0, 15.0)))

    def restart(self) -> None:
        how = self.dice.one_of(("kill", "write", "act", "stop"))
        self.bench.lines.append(f"-- {how}")
        if how == "stop":
            self.bench.stop()
        else:
            self.bench.kill("" if how == "kill" else how)
        if self.dice.chance(0.5):
            self.bench.wait(self.dice.one_of((0.5, 6.0)))
        try:
            self.bench.start()
        except ArgosyError as error:
            # It does not know the name of one that is away.
            self.bench.say(str(error))
            for at in range(len(self.agents)):
                if not self._is_up[at]:
                    self._toggle(at)
            self.bench.start()

    def toggle_agent(self) -> None:
        """An agent is away for some steps."""
        self._toggle(self.dice.among(0, len(self.agents) - 1))

    def _toggle(self, at: int) -> None:
        self.bench.lines.append(f"-- agent {at} {'goes' if self._is_up[at] else 'comes'}")
        if self._is_up[at]:
            self.agents[at].kill(self.dice.one_of(("", "write", "act")))
        else:
            self.agents[at].start()
        self._is_up[at] = not self._is_up[at]

    def restart_agent(self) -> None:
        at = self.dice.among(0, len(self.agents) - 1)
        if self._is_up[at]:
            self.agents[at].kill()
            self.agents[at].start()

    def change_machine(self) -> None:
        agent = self._some_agent()
        name = f"m{self.dice.among(0, 4)}"
        document = self.documents.machine() | {"name": name, "joins": {}}
        requests: tuple[tuple[str, str, Any], ...] = (
            ("PATCH", f"/v1/machines/{name}", {"draining": self.dice.chance(0.5)}),
            ("DELETE", f"/v1/machines/{name}", None),
            ("POST", "/v1/machines", document),
            ("POST", "/v1/machines", document),
            ("PATCH", f"/v1/machines/{name}", {"capacity": {"cpu": 1_000, "memory": GIB}}),
        )
        agent.ask(*self.dice.one_of(requests))

    def _some_agent(self) -> ServerBench:
        return self.agents[self.dice.among(0, len(self.agents) - 1)]

    def meddle(self) -> None:
        """Somebody else cancels what the fleet runs there, or takes the room."""
        agent = self._some_agent()
        _, _, body = agent.ask("GET", "/v1/jobs?open=true&limit=5")
        found = msgspec.json.decode(body)["items"] if body.startswith(b"{") else []
        if found and self.dice.chance(0.6):
            name = quote(self.dice.one_of([item["id"] for item in found]), safe="")
            agent.ask("POST", f"/v1/jobs/{name}/cancel")
        else:
            agent.ask("POST", "/v1/jobs", self.documents.job(has_id=0) | {"precedence": 10})

    def refuse(self) -> None:
        """What a server without machines of its own does not do."""
        for method, target, body in (
            ("POST", "/v1/plan", {"jobs": [self.documents.job()]}),
            ("POST", "/v1/machines", self.documents.machine()),
            ("PUT", "/v1/fleet", {"fleet": []}),
            ("POST", "/v1/sample", self.documents.sample()),
            ("GET", "/v1/place", None),
            ("GET", "/v1/openapi.json", None),
        ):
            self.bench.ask(method, target, body)

    def commit_unknown(self) -> None:
        """A commit in the fleet's name that the fleet knows nothing of, as after a crash."""
        order = self.documents.order(["m0", "m1"])
        order["job"]["id"] = key = f"fed.vela.77.{self._loop.micros}"
        self._some_agent().ask("POST", "/v1/commits", order, {"Idempotency-Key": key})

    def look(self) -> None:
        bench = self.bench
        for target in (
            "/v1/jobs", "/v1/tasks", "/v1/machines", "/v1/fleet", "/v1/summary", "/v1/health", "/metrics"
        ):  # fmt: skip
            bench.ask("GET", target)
        name = self._open_job()
        for target in ("", "/tasks/0", "/tasks/0/why", "/tasks/0/story", "/tasks/0/logs"):
            bench.ask("GET", f"/v1/jobs/{name}{target}")
        for agent in self.agents:
            for target in ("/v1/commits", "/v1/jobs?limit=9"):
                agent.ask("GET", target)


def run_federation(session: FederatedSession, steps: int) -> dict[str, str]:
    session.begin()
    for _ in range(steps):
        session.step()
        session.look()
    bench = session.bench
    bench.lines.append("-- at the end")
    for at, agent in enumerate(session.agents):
        if not session._is_up[at]:
            agent.start()
    bench.wait(300.0)
    session.look()
    bench.ask("GET", "/v1/journal")
    bench.ask("GET", "/v1/recording")
    bench.ask("GET", "/v1/events?after=0", seconds=0.01)
    found = {"tables": bench.tables()}
    bench.close()
    for at, agent in enumerate(session.agents):
        found[f"tables of agent {at}"] = agent.tables()
        agent.close()
        found[f"agent {at}"] = "\n".join(agent.lines)
    parts = split(bench.lines, "-- at ", 10)
    return found | {f"part {at}": text for at, text in enumerate(parts)}
