"""What agents say to drawn requests: samples, reservations and commits on machines with all that
plug-ins look at; and plug-ins by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drawn_documents import GIB, PLACES, Documents
from drawn_sessions import split
from memory_loop import memory_loop
from pinned_digests import require_digests
from played_server import ServerBench

from argosy.agents import globe
from argosy.agents.registry import PLUGINS, ROLES, check, make, names
from argosy.campaign.dice import Dice
from argosy.model.errors import ArgosyError
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry
from argosy.service.agent import AgentOptions
from argosy.worlds.local.turn import LocalCluster

PINNED = Path(__file__).parent / "pinned"
REQUESTS = 400
AGENTS = {
    "plain": AgentOptions(),
    "at a place": AgentOptions(place="east", location="48.2,16.4"),
    "with an old picture": AgentOptions(refresh=500_000, place="west"),
}


def drawn_machine(dice: Dice, at: int) -> Machine:
    capacity = {"cpu": dice.one_of((2_000, 4_000, 8_000, 0)), "memory": dice.among(1, 8) * GIB}
    if dice.chance(0.3):
        capacity["gpu"] = dice.among(0, 4)
    options = {
        "arch": ("x86", "arm"),
        "location": PLACES,
        "battery": ("10", "55", "100", "250", "-3", "x"),
        "speed": ("1", "0.5", "2", "0", "x"),
        "volumes": ("v1", "v2", "v1,v2"),
    }
    attributes = {name: dice.one_of(some) for name, some in options.items() if dice.chance(0.5)}
    return Machine(f"m{at}", Resources.of(capacity), attributes)


class AgentBench:
    def __init__(self, server: ServerBench, dice: Dice, machines: tuple[Machine, ...]) -> None:
        self.server, self.dice = server, dice
        capacities = [dict(machine.capacity.items()) for machine in machines]
        attributes = {"arch": ["x86", "arm"], "pool": ["a"]}
        self.documents = Documents(dice.part("documents"), capacities, attributes, ["machine"])
        self.names = [machine.name for machine in machines]
        self.commits = 0

    def sample(self) -> None:
        """The same several times: strategies learn, and go on where they were."""
        body = self.documents.sample()
        for _ in range(self.dice.one_of((1, 2, 3))):
            self.server.ask("POST", "/v1/sample", body)

    def commit(self) -> None:
        self.commits += 1
        order = self.documents.order(self.names)
        order["job"]["command"] = ["play", self.dice.one_of(("-", "-", "2:0", "9:0"))]
        if self.dice.chance(0.6):
            order["job"]["demands"] = self.documents.demands()
            order["checks"] = ["ResourcesFit", *self.dice.some_of(("Volume", "BatchShare"), 0)]
        key = {"Idempotency-Key": f"c{self.commits}"}
        self.server.ask("POST", "/v1/commits", order, key)
        if self.dice.chance(0.3):
            self.server.ask("DELETE", f"/v1/commits/c{self.dice.among(1, self.commits)}")

    def reserve(self) -> None:
        body: dict[str, Any] = {
            "machine": self.dice.one_of(self.names),
            "request": self.documents.amounts(),
            "lease": self.dice.one_of((200_000, 5_000_000, 60_000_000)),
        }
        self.server.ask("POST", "/v1/reservations", body)

    def change(self) -> None:
        name = self.dice.one_of(self.names)
        self.server.ask("PATCH", f"/v1/machines/{name}", self.documents.patch())

    def step(self) -> None:
        self.server.lines.append(f"-- at {self.server.loop.micros}")
        steps = [self.sample] * 6 + [self.commit] * 3 + [self.reserve, self.change]
        self.dice.one_of(steps)()
        if self.dice.chance(0.2):
            self.server.wait(self.dice.one_of((0.1, 0.6, 3.0)))
            self.server.ask("GET", "/v1/reservations")
            self.server.ask("GET", "/v1/commits")


@pytest.mark.parametrize("name", AGENTS)
def test_agents_answer_as_they_did(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    seed = 1 + list(AGENTS).index(name)
    dice = Dice(Random(seed).child("agent"))
    machines = tuple(drawn_machine(dice, at) for at in range((9, 30, 1)[seed - 1]))
    fleet = (FleetEntry(name="omega", engine="omega"),)
    cluster = LocalCluster(cell=CellSpec(machines=machines), fleet=fleet, audit=True)
    with memory_loop() as loop:
        server = ServerBench(loop, tmp_path / "s", seed, cluster=cluster, agent=AGENTS[name])
        bench = AgentBench(server.start(), dice, machines)
        for _ in range(REQUESTS):
            bench.step()
        server.ask("GET", "/metrics")
        server.close()
    parts = split(server.lines, "-- at ", 20)
    found = {f"part {at}": text for at, text in enumerate(parts)}
    require_digests(PINNED / f"agent-{name.replace(' ', '-')}.txt", found, pytestconfig)


def test_plugins_are_found_by_name(pytestconfig: pytest.Config) -> None:
    found = {}
    for role, text in ROLES.items():
        lines = [f"{names(role)}"]
        for name in (*PLUGINS, "Bnd", "resourcesfit", "", "x.y:Z"):
            try:
                lines.append(f"{name} {type(make(name, role)).__name__}")
            except ArgosyError as error:
                lines.append(f"{name} {type(error).__name__} {error} {error.expected} {error.hint}")
            lines.append(str(check(["Random", name], role)))
        lines.append(str(check([], role)))
        found[text] = "\n".join(lines)
    require_digests(PINNED / "plugins.txt", found, pytestconfig)


def test_distances_on_the_earth(pytestconfig: pytest.Config) -> None:
    dice, lines = Dice(Random(5).child("globe")), []
    texts = [
        *PLACES, "", ",", "1", "1,2,3", "-90,180", "90.1,0", "0,-180.5", "nan,0", "1e1,2", " 3 , 4 ",
        *(f"{dice.among(-90, 90)}.{dice.among(0, 99)},{dice.among(-180, 180)}" for _ in range(60)),
    ]  # fmt: skip
    for text in texts:
        point = globe.position(text)
        lines.append(f"{text} {point}")
        if point is not None:
            lines.append(f"{globe.chords(point, texts).tolist()}")
    lines += [f"{km} {globe.chord_of(km)}" for km in (0.0, 0.5, 100.0, 7_000.0, 20_000.0, 20_100.0)]
    lines += [f"{at} {globe.sine(at / 10)}" for at in range(-31, 32)]
    require_digests(PINNED / "globe.txt", {"all": "\n".join(lines)}, pytestconfig)
