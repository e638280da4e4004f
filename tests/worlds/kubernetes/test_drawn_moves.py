"""Pods that are placed, preempted and moved by drawn decisions, and small parts of such clusters.

Of each outcome a digest is kept.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from drawn_pods import DrawnObjects, read
from pinned_digests import require_digests
from told_pod_world import ToldPodWorld

from argosy.kubernetes.kinds import NODES, POD_DISRUPTION_BUDGETS, PODS
from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.resources import Resources
from argosy.service.kubernetes.messages import waiting_message
from argosy.service.kubernetes.shadow.placements import PlacementRecord, quantile
from argosy.worlds.kubernetes import moves, second_looks
from argosy.worlds.kubernetes.abandoned import AbandonedPods
from argosy.worlds.kubernetes.budgets import DisruptionBudgets
from argosy.worlds.kubernetes.malleable import GrowthSettings, JobProgress, JobScaler
from argosy.worlds.kubernetes.moves import RelocatingCluster
from argosy.worlds.kubernetes.priorities import Precedences
from argosy.worlds.kubernetes.queue_annotations import has_place, left_queue, place_annotations
from argosy.worlds.kubernetes.queue_waits import QueuePlace, expected_waits
from argosy.worlds.kubernetes.room import NodeRoom, SparedRoom, least_of
from argosy.worlds.kubernetes.tracked import PodGang, PodGroupName, PodState

PINNED = Path(__file__).parent / "pinned"


def plain(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted", enc_hook=repr).decode()


# Clusters whose decisions are drawn.


class DrawnDecisions:
    def __init__(self, seed: int) -> None:
        self.random = Random(f"decisions {seed}")
        self.draw = DrawnObjects(f"decisions {seed}", (0.0, 0.05)[seed % 2])
        self.world = ToldPodWorld()
        self.pods = self.world.cluster = RelocatingCluster(
            lambda: self.world, lambda pod: pod.spec.scheduler_name == "argosy"
        )
        self.lines: list[str] = []
        self.documents: dict[str, dict[str, Any]] = {}
        self._made = 0
        for at in range(3):
            self.node(f"n{at}")

    def node(self, name: str) -> None:
        document = self.draw.node(name)
        document["spec"]["taints"] = []
        document["status"]["allocatable"] = {
            "cpu": self.draw.one(("2", "4", "6")),
            "memory": "64Gi",
            "pods": self.draw.one(("4", "50")),
        }
        self.pods.set_node(read(NODES, document))

    def new_pod(self) -> None:
        self._made += 1
        document = self.draw.pod(f"p{self._made}", self.draw.one(("argosy",) * 5 + ("other",)))
        owner = {"kind": self.draw.one(("ReplicaSet", "ReplicaSet", "DaemonSet")), "name": "a"}
        owners = [{**owner, "uid": f"u{self.draw.below(2)}", "controller": True}]
        document["metadata"] |= {"ownerReferences": owners, "namespace": "one"}
        requests = {"cpu": self.draw.one(("1", "1", "2")), "memory": "1Gi"}
        document["spec"]["containers"] = [{"name": "c", "resources": {"requests": requests}}]
        document["spec"]["priority"] = self.draw.one((0, 0, 5, 9))
        self.set(document)

    def set(self, document: dict[str, Any]) -> None:
        pod = read(PODS, document)
        self.documents[pod.uid] = document
        self.pods.set_pod(pod)

    def on_node(self, uid: str, node: str) -> None:
        document = self.documents[uid]
        self.set({**document, "spec": {**document["spec"], "nodeName": node}})

    def remove(self, uid: str) -> None:
        self.documents.pop(uid, None)
        self.pods.remove_pod(uid)

    def step(self) -> str:
        world, pods, chance = self.world, self.pods, self.random
        nodes = sorted(world.machines)
        states: dict[PodState, list[str]] = {}
        for uid, tracked in pods.pods.items():
            states.setdefault(tracked.state, []).append(uid)
        uid = chance.choice(sorted(pods.pods)) if pods.pods else ""
        binding, leaving = states.get(PodState.BINDING, []), states.get(PodState.LEAVING, [])
        placed = sorted(job for job, (_, where) in world.placed.items() if pods.of_job(job))
        match chance.randrange(24):
            case 0 | 1 | 2 | 3:
                self.new_pod()
            case 4 | 5 | 6 | 7 if world.waiting:
                job, node = chance.choice(sorted(world.waiting)), chance.choice(nodes)
                return f"place {job} on {node}: {world.place(job, node)}"
            case 8 | 9 if placed:
                job, node = chance.choice(placed), chance.choice(nodes)
                if pods.of_job(job).state in (PodState.BINDING, PodState.BOUND):  # type: ignore[union-attr]
                    world.move(job, node)
                    return f"move {job} to {node}"
            case 10 | 11 if binding:
                bound = chance.choice(binding)
                pods.bound(bound)
                if chance.random() < 0.8:
                    self.on_node(bound, pods.pods[bound].node)
                return f"bound {bound}"
            case 12 if binding:
                failed = chance.choice(binding)
                pods.bind_failed(failed)
                return f"not bound {failed}"
            case 13 | 14 if leaving:
                gone = chance.choice(leaving)
                self.remove(gone)
                return f"gone {gone}"
            case 15 if leaving:
                stays = chance.choice(leaving)
                pods.eviction_failed(stays)
                return f"stays {stays}"
            case 16 if uid:
                self.remove(uid)
                return f"removed {uid}"
            case 17:
                self.node(f"n{chance.randrange(4)}")
            case 18 if uid:
                budget = self.draw.budget(0)
                budget["metadata"]["namespace"] = "one"
                pods.set_budget(read(POD_DISRUPTION_BUDGETS, budget))
                document = self.documents[uid]
                self.set({**document, "status": {"phase": self.draw.one(("Running", "Pending"))}})
                return f"phase {uid} and {plain(budget)}"
            case 19:
                budgets = [self.draw.budget(at) for at in range(chance.randrange(3))]
                pods.set_budgets([read(POD_DISRUPTION_BUDGETS, each) for each in budgets])
                pods.remove_budget("one", "budget-0")
            case _:
                told = [[each.uid for each in pods.waits(job)] for job in sorted(world.waiting)]
                self.lines.append(str(told))
                pods.look_again()
                pods.expire_places()
                if chance.random() < 0.3:
                    pods.forget_budgets()
        return "-"

    def run(self, steps: int) -> str:
        for _ in range(steps):
            did = self.step()
            self.pods.flush()
            self.lines += [did, *(f"  {each}" for each in self.world.told())]
            states = [(uid, each.state.value, each.node) for uid, each in self.pods.pods.items()]
            tries = [number for number in self.world.tries if self.pods.has_try(number)]
            leaving = [number for number in tries if self.pods.is_leaving(number)]
            held = (self.pods.has_places, self.pods.moved, self.pods.has_protected)
            self.lines.append(f"  {states} {tries} {leaving} {held}")
        return "\n".join(self.lines)


def test_drawn_decisions_are_carried_out_as_before(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = {}
    for seed in range(60):
        monkeypatch.setattr(moves, "KEPT_FOR", (1, 2, 60)[seed % 3])
        monkeypatch.setattr(second_looks, "MOST_PAIRS", (2, 5, 20_000)[seed // 3 % 3])
        outcomes[f"decisions-{seed}"] = DrawnDecisions(seed).run(90)
    require_digests(PINNED / "decisions.txt", outcomes, pytestconfig)


# Parts.


def drawn_refusal(dice: Random) -> Refusal:
    dimension = dice.choice(("", "cpu", "memory", "pods", "nvidia.com/gpu"))
    return Refusal(
        dice.choice(tuple(Why)),
        machine=dice.choice((-1, 0, 2)),
        dimension=dimension,
        lacking=dice.choice((1, 250, 2**30)),
    )


def drawn_message(dice: Random) -> str:
    reasons = ("filtered", "down", "pods", "cpu", "example.com/tape")
    explanation = Explanation(
        ruled_out={each: dice.randrange(4) for each in reasons if dice.random() < 0.4},
        nearest_miss=drawn_refusal(dice) if dice.random() < 0.4 else None,
        refused=drawn_refusal(dice) if dice.random() < 0.4 else None,
        remedy=dice.choice(("", "", "add machines", "x" * 990)),
        gang_room=dice.choice((None, 0, 2)),
    )
    gang = None
    if dice.random() < 0.5:
        gang = PodGang(PodGroupName("", "one", "group"))
        gang.together = dict.fromkeys(range(dice.randrange(4)))  # type: ignore[assignment]
    return waiting_message(
        explanation,
        dice.randrange(5),
        lambda number: f"n{number}",
        dice.choice(((), ("spec.a", "spec.b"))),
        dice.choice((None, {}, {"node(s) were unschedulable": 2, "other": 1})),
        gang,
    )


def drawn_resources(dice: Random) -> Resources:
    extras = {name: dice.randrange(3) for name in ("pods", "gpu") if dice.random() < 0.6}
    return Resources(dice.choice((0, 500, 1_000, 3_000)), dice.choice((0, 1, 2**30)), extras)


def told_waits(dice: Random) -> list[str]:
    free = {"cpu": dice.randrange(4_000), "memory": 2**30, "pods": dice.randrange(3)}
    if dice.random() < 0.3:
        del free["pods"]
    times = (None, 0, 5, 60, 3_600)
    running = [(dice.choice(times), drawn_resources(dice)) for _ in range(dice.randrange(5))]
    queue = [(dice.choice(times), drawn_resources(dice)) for _ in range(dice.randrange(6))]
    waits = expected_waits(free, running, queue)
    places = [
        QueuePlace(tuple(dice.sample(("a", "b", "c"), 1 + dice.randrange(2))), at, wait)
        for at, wait in enumerate(waits, 1)
    ]
    joined = [one.joined(other) for one in places for other in places]
    annotations = [place_annotations(each) for each in places]
    document = {"metadata": {"name": "p", "annotations": {}}}
    if annotations:
        said = {key: each for key, each in dice.choice(annotations).items() if each is not None}
        document["metadata"]["annotations"] = said
    pod: Pod = read(PODS, document)
    kept = [has_place(pod, each) for each in places]
    return [str(waits), plain(joined), plain(annotations), str(kept), str(left_queue())]


def told_room(dice: Random) -> list[str]:
    room, lines = NodeRoom(), []
    for node in ("a", "b"):
        room.set_capacity(node, drawn_resources(dice))
    spared = SparedRoom(room)
    for _ in range(12):
        node, request = dice.choice(("a", "b", "c")), drawn_resources(dice)
        more = dice.choice((None, {}, {"cpu": 500, "gpu": 1}))
        lines.append(
            f"{node} {room.free(node)} {room.fits(node, request)} {room.fits(node, request, more)}"
            f" {spared.fits(node, request)} {plain(least_of(request, drawn_resources(dice)))}"
        )
        match dice.randrange(6):
            case 0 | 1:
                room.take(node, request)
            case 2:
                room.give_back(node, request)
            case 3 | 4:
                spared.take(node, request)
            case _:
                room.remove(node)
    return lines


def told_growth(dice: Random) -> list[str]:
    settings = GrowthSettings(
        policy=dice.choice(("max-parallelism", "global-cap", "relative-job-size")),
        cap=dice.choice((0.3, 0.6, 1.0)),
        times=dice.choice((1.0, 2.5, 4.0)),
    )
    scaler, lines, now = JobScaler(settings), [], 0
    jobs: dict[str, JobProgress] = {}
    for _ in range(14):
        now += dice.choice((1, 5, 30)) * 1_000_000
        for uid in ("a", "b", "c"):
            known = jobs.get(uid)
            if known is not None and dice.random() < 0.1:
                del jobs[uid]
                continue
            asked = known.asked if known else 1 + dice.randrange(4)
            wanted = known.wanted if known else asked
            completions = known.completions if known else dice.choice((2, 10, 40))
            done = (known.succeeded if known else 0) + dice.randrange(3)
            jobs[uid] = JobProgress(
                uid=uid,
                program=dice.choice(("p", "q")),
                request=drawn_resources(dice),
                asked=asked,
                wanted=wanted,
                completions=completions,
                succeeded=min(done, completions),
                running=dice.choice((wanted, wanted, max(0, wanted - 1))),
                waiting=dice.choice((0, 0, 0, 1)),
                fits=dice.choice((0, 2, 9)),
                in_the_way=dice.choice((0, 0, 0, 2)),
                estimate=dice.choice((None, 8_000_000, 60_000_000)),
            )
        used = {"cpu": dice.randrange(9_000), "memory": 2**31, "pods": 4}
        capacity = {"cpu": 9_000, "memory": 2**34, "pods": 30, "gpu": 4}
        decided = scaler.decide(
            [*jobs.values()], used, capacity, now, is_crowded=dice.random() < 0.2
        )
        for uid, count in decided.items():
            jobs[uid] = msgspec.structs.replace(jobs[uid], wanted=count)
        lines.append(f"{now} {sorted(decided.items())}")
    return lines


def told_rests(dice: Random) -> list[str]:
    abandoned, lines = AbandonedPods(), []
    pods = [SimpleNamespace(uid=f"p{at}") for at in range(3)]
    for _ in range(160):
        pod: Any = dice.choice(pods)
        match dice.randrange(12):
            case 0:
                abandoned.forget(pod.uid)
            case 1 | 2:
                abandoned.add(pod)
            case _:
                woken = abandoned.wake()
                lines.append(f"{[each.uid for each in woken]} {abandoned.are_resting}")
                for each in woken:
                    if dice.random() < 0.9:
                        abandoned.add(each)
    return lines


def told_priorities(dice: Random) -> list[str]:
    known = [dice.choice((-1, 1)) * dice.randrange(10 ** dice.randrange(1, 10)) for _ in range(6)]
    precedences = Precedences(known[: dice.randrange(7)])
    asked = [*known, 0, 2_000_000_000, 2_000_001_000, 2_000_000_500, -(2**31), 2**31 - 1]
    asked += [dice.randrange(-5, 60) for _ in range(30)]
    return [f"{each} {precedences.of(each)}" for each in asked]


def told_records(dice: Random) -> list[str]:
    record, now, lines = PlacementRecord(10.0), 10.0, []
    draw = DrawnObjects(dice.randrange(10**6), 0.05)
    pods: list[Pod] = [read(PODS, draw.pod(f"p{at}")) for at in range(6)]
    for _ in range(25):
        now += dice.choice((0.0, 0.5, 3.0, -1.0))
        record.advance(now)
        pod = dice.choice(pods)
        match dice.randrange(5):
            case 0:
                record.set_capacity(dice.choice("ab"), dice.choice((None, drawn_resources(dice))))
            case 1:
                record.remove(pod.uid)
            case _:
                record.put(pod, dice.choice("ab"), since=dice.choice((None, now - 2.5)))
        used = [f"{record.utilisation(name):.6f}" for name in ("cpu", "memory")]
        waits = [record.wait(share) for share in (0.0, 0.5, 0.9, 1.0)]
        lines.append(f"{used} {waits} {sorted(record.first_nodes.items())} {sorted(record.pods)}")
    values = sorted(dice.randrange(9) for _ in range(dice.randrange(6)))
    lines.append(f"{values} {[quantile(values, share) for share in (0.0, 0.1, 0.5, 0.9, 1.0)]}")
    return lines


def told_budgets(dice: Random) -> list[str]:
    draw, budgets, lines = DrawnObjects(dice.randrange(10**6), 0.1), DisruptionBudgets(), []
    pods: list[Pod] = []
    for at in range(8):
        document = draw.pod(f"p{at}")
        document["metadata"]["namespace"] = draw.one(("one", "two"))
        document["status"] = {
            "phase": draw.one(("Running", "Running", "Running", "Pending")),
            "conditions": [
                {"type": draw.one(("Ready", "Other")), "status": draw.one(("True", "False"))}
            ],
        }
        pods.append(read(PODS, document))
    for _ in range(30):
        some = draw.some(pods, 4)
        match dice.randrange(6):
            case 0 | 1:
                document = draw.budget(dice.randrange(3))
                document["metadata"]["namespace"] = draw.one(("one", "two"))
                budgets.put(read(POD_DISRUPTION_BUDGETS, document))
            case 2:
                budgets.remove(draw.one(("one", "two")), f"budget-{dice.randrange(3)}")
            case 3:
                budgets.spend(some)
        exhausted = sorted(budgets.exhausted_by(some))
        known = [(space, f"budget-{at}") for space in ("one", "two") for at in range(3)]
        states = [budgets.is_exhausted(key) for key in known]
        lines.append(f"{[each.uid for each in some]} {exhausted} {states}")
    return lines


PARTS = (
    told_budgets,
    told_waits,
    told_room,
    told_growth,
    told_rests,
    told_priorities,
    told_records,
)


def test_parts_of_drawn_clusters_say_what_they_said(pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for part in PARTS:
        for seed in range(25):
            dice = Random(f"{part.__name__} {seed}")
            outcomes[f"{part.__name__}-{seed}"] = "\n".join(part(dice))
    for seed in range(25):
        dice = Random(f"messages {seed}")
        outcomes[f"messages-{seed}"] = "\n".join(drawn_message(dice) for _ in range(40))
    require_digests(PINNED / "parts.txt", outcomes, pytestconfig)
