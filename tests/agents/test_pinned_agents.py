"""Agents of clusters: every plug-in on drawn machines and demands, whole samples through their
pipelines, caches with reservations, and facts about places."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from drawn_clusters import dice_of, draw_cell, draw_job
from pinned_digests import require_digests
from told_values import outcome, told

from argosy.agents import registry
from argosy.agents.api import Nodes, Requirements
from argosy.agents.builtin import number_in, positions
from argosy.agents.cache import NodesCache
from argosy.agents.committing import refused
from argosy.agents.facts import CellFacts
from argosy.agents.globe import chord_of, chords, position, sine
from argosy.agents.sampling import Sampler, merged, sample_size, score_column
from argosy.campaign.dice import Dice
from argosy.cell import Cell
from argosy.model.effects import Sample, SamplingPipeline
from argosy.model.explanations import Refusal, Why
from argosy.model.machines import Cluster
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, DrainMachine, Transaction

PINNED: Final = Path(__file__).parent / "pinned"
NAMES: Final = tuple(registry.PLUGINS)
FILTERS: Final = ("ResourcesFit", "GeoLocation", "BatteryLevel", "NetworkLatency", "Volume")
SCORES: Final = ("ResourcesFit", "GeoLocation", "BatteryLevel", "ServiceLevel", "NetworkLatency")
TEXTS: Final = ("", "x", "0", "-1", "30", "101", "1e9", "nan", "inf", " 5 ", "1,2", "3;4")
PLACES: Final = (
    "0,0",
    "48.1,11.6",
    "-90,180",
    "91,0",
    "0,181",
    "1",
    "1,2,3",
    "a,b",
    "",
    "nan,1",
    " 1 , 2 ",
)


def drawn_demands(dice: Dice) -> dict[str, str]:
    every = {
        "battery": dice.one_of(TEXTS),
        "location": dice.one_of(PLACES),
        "distance": dice.one_of((*TEXTS, "5000")),
        "near": dice.one_of(("north", "south", "nowhere", "")),
        "near_job": dice.one_of(("j0", "none")),
        "latency": dice.one_of(TEXTS),
        "objective": dice.one_of(TEXTS),
        "users": dice.one_of(("north:1", "north:1,south:2", "x", "north:-1", ":", "")),
        "work": dice.one_of(TEXTS),
        "volume": dice.one_of(("v0", "v1", "v9", "")),
        "volume_scope": dice.one_of(("cluster", "", "x")),
        "batch_share": dice.one_of(("0.5", "1", "0", "2", "x")),
    }
    return {key: value for key, value in every.items() if dice.chance(0.35)}


class DrawnAgent:
    def __init__(self, dice: Dice) -> None:
        spec, federation = draw_cell(dice.part("cell"))
        self.spec = spec
        names: dict[str, None] = {}
        for machine in spec.machines:
            names |= dict.fromkeys(machine.capacity.extras)
        groups = {group.name: group.sets for group in spec.groups}
        self.cell = Cell(("cpu", "memory", *sorted(names)), groups, devices=spec.device_resource)
        for machine in spec.machines:
            self.cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
        if dice.chance(0.3):
            self.cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0),)))
        clusters = federation.clusters if federation is not None else (Cluster("", ""),)
        self.cluster = clusters[0]
        delays = {("north", "south"): 20_000, ("south", "north"): 20_000}
        self.facts = CellFacts(
            self.cell,
            lambda one, other: 500 if one == other else delays.get((one, other)),
            {each.name: each.place for each in clusters if each.name},
            lambda job: (0, self.cell.machines - 1) if job == "j0" else (),
        )
        refresh = dice.one_of((0, 0, 600, 1_000))
        self.cache = NodesCache(self.cluster, self.cell, self.facts, refresh)


def told_plugins(agent: DrawnAgent, task: Requirements, random: Random) -> str:
    lines = []
    members = agent.cache.members()
    nodes = agent.cache.sample(members, 0, is_cut_off=False)
    one = agent.cache.fresh(0, None, None)
    for name in NAMES:
        plugin: Any = registry.PLUGINS[name]()
        if hasattr(plugin, "concerns"):
            lines += [outcome(plugin.concerns, task, use) for use in ("filter", "score")]
        if hasattr(plugin, "keeps"):
            lines.append(f"{name} keeps {outcome(plugin.keeps, task, nodes)}")
        if hasattr(plugin, "reasons"):
            lines.append(outcome(plugin.reasons, task, nodes))
        if hasattr(plugin, "score"):
            lines.append(f"{name} scores {outcome(plugin.score, task, nodes)}")
            lines.append(outcome(score_column, plugin, task, nodes))
        if hasattr(plugin, "conflict"):
            lines.append(f"{name} conflicts {outcome(plugin.conflict, task, one)}")
        if hasattr(plugin, "draw"):
            for count in (1, 3, 4, 8, 99):
                lines.append(f"{name} draws {outcome(plugin.draw, task, members, count, random)}")
                plugin.learn(task, members, np.arange(len(members)) % 2 == 0)
    return "\n".join(lines)


def told_nodes(nodes: Nodes) -> str:
    return told([nodes.machines, nodes.capacity, nodes.free, nodes.dimensions, nodes.each_place()])


@pytest.mark.parametrize("part", range(2))
def test_plugins_and_samples_are_pinned(part: int, request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(60):
        dice = dice_of("agent", part, number)
        agent = DrawnAgent(dice)
        random = Random(number)
        sampler = Sampler(agent.cache, agent.cell, random)
        lines = [told(agent.cache.members())]
        for step in range(4):
            made = draw_job(dice.part(f"job {step}"), "j0", ["machine"], agent.spec).job
            group = made.groups[0]
            task = Requirements(group.request, group.requires, drawn_demands(dice))
            lines.append(told_plugins(agent, task, random))
            pipeline = SamplingPipeline(
                strategy=dice.one_of(("Random", "Random", "RoundRobin", "Learned")),
                filters=tuple(dice.some_of(FILTERS)),
                scores=tuple(dice.some_of(SCORES)),
                share=dice.one_of((0.0, 0.1, 0.5, 1.0)),
                rounds=dice.one_of((0, 0, 1, 3)),
                free=dice.chance(0.3),
                overshoot=dice.one_of(("keep", "cut")),
                repeats=dice.one_of(("drop", "keep")),
            )
            asked = Sample(
                task.request, dice.among(0, 5), 1, task.requires, "", task.demands, pipeline
            )
            options: dict[str, Any] = {
                "most": dice.one_of((0, 0, 2)),
                "is_cut_off": dice.chance(0.2),
                "parts": dice.one_of((1, 1, 2)),
                "is_over": lambda: False,
            }
            found = outcome(sampler.sample, asked, pipeline, 600 * step, **options)
            lines.append(found)
            amounts = np.ones(len(agent.cell.dimensions), np.int64) * 500
            kept = agent.cache.reserve(step, dice.among(0, agent.cell.machines - 1), amounts)
            machine = kept.machine
            lines.append(told(agent.cache.reservations))
            lines.append(told_nodes(agent.cache.fresh(machine, step, None)))
            lines.append(told_nodes(agent.cache.fresh(machine, None, kept)))
            if dice.chance(0.5):
                agent.cache.commit(kept)
            elif dice.chance(0.5):
                agent.cache.unreserve(kept)
            members = agent.cache.members()
            lines.append(told_nodes(agent.cache.sample(members, 700 * step, is_cut_off=False)))
        drawn = [sampler.sample(asked, pipeline, 0, **options) for _ in range(2)]
        lines.append(told(merged(drawn)))
        nodes = agent.cache.sample(members, 9_000, is_cut_off=False)
        lines.append(told_nodes(Nodes.joined([nodes, nodes])))
        lines.append(told_nodes(nodes.only(np.arange(len(nodes)) % 2 == 0)))
        lines.append(told([nodes.amounts(group.request), list(nodes.labels("arch"))]))
        agent.facts.create_volume("v9", 0)
        lines.append(told([sorted(agent.facts.volume_homes(v)) for v in ("v0", "v1", "v9", "")]))
        lines.append(told([agent.facts.cluster_of(0), agent.facts.delay("north", "south")]))
        outcomes[f"{part} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"agents_{part}.txt", outcomes, request.config)


def test_small_parts_of_agents_are_pinned(request: pytest.FixtureRequest) -> None:
    task = [Requirements(Resources(), {}, {"battery": text}) for text in TEXTS]
    outcomes = {
        "places": "\n".join(outcome(position, text) for text in PLACES),
        "sines": told([sine(n / 7) for n in range(-30, 30)]),
        "chords": told([chord_of(float(n)) for n in (0, 1, 100, 5_000, 20_000, 40_000)]),
        "distances": outcome(chords, (1.0, 0.0, 0.0), list(PLACES)),
        "sizes": told([sample_size(s, n) for s in (0.0, 0.04, 0.5, 1.0) for n in (0, 1, 9, 100)]),
        "numbers": "\n".join(outcome(number_in, each, "battery", 1.0) for each in task),
        "positions": told([positions(n, k, Random(1)) for n in (0, 1, 9) for k in (0, 1, 5)]),
        "refused": outcome(refused, Refusal(Why.NO_ROOM, 3, 1, "cpu", 5), ("cpu", "memory")),
    }
    for role, make in (
        ("sort", registry.make_sorting),
        ("strategy", registry.make_strategy),
        ("commit", registry.make_binding),
    ):
        lines = [
            outcome(lambda m=make, n=name: type(m(n)).__name__) for name in (*NAMES, "", "Randm")
        ]
        outcomes[role] = "\n".join(lines)
    for role, several in (
        ("filters", registry.make_filters),
        ("scores", registry.make_scores),
        ("checks", registry.make_checks),
    ):
        lines = [
            outcome(lambda m=several, n=name: [type(each).__name__ for each in m([n])])
            for name in (*NAMES, "Volumes")
        ]
        outcomes[role] = "\n".join(lines)
    require_digests(PINNED / "small_parts.txt", outcomes, request.config)


def test_ranks_of_jobs_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(30):
        dice = dice_of("ranks", number)
        cell, _ = draw_cell(dice.part("cell"))
        job = draw_job(dice, f"j{number}", ["machine"], cell).job
        ranks = [
            registry.make_sorting(n).rank(job, 7 * number) for n in ("Priority", "Arrival", "Batch")
        ]
        outcomes[f"{number}"] = told(ranks)
    require_digests(PINNED / "ranks.txt", outcomes, request.config)
