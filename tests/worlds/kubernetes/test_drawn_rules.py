"""What is asked of nodes by drawn pods, and which nodes they may go to as nodes and pods come and go. Of
each outcome a digest is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from drawn_pods import SPACES, DrawnObjects, read
from pinned_digests import require_digests

from argosy.kubernetes.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from argosy.kubernetes.objects import Node, Pod
from argosy.worlds.kubernetes import rulebook as rulebooks
from argosy.worlds.kubernetes.annotated_constraints import (
    AnnotatedConstraints,
    constraint_tags,
    read_annotation,
)
from argosy.worlds.kubernetes.budgets import DisruptionBudgets
from argosy.worlds.kubernetes.gangs import group_of
from argosy.worlds.kubernetes.moves import may_move
from argosy.worlds.kubernetes.node_machines import AccountedResources, rules_of_node
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.pod_jobs import controller_of, job_of_pod, kind_of
from argosy.worlds.kubernetes.pod_tags import label_tags
from argosy.worlds.kubernetes.pod_wishes import described_wishes, has_wishes
from argosy.worlds.kubernetes.priorities import Precedences
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.rulebook import PodNeeds, Rulebook, describe_obstacle
from argosy.worlds.kubernetes.shapes import has_changed
from argosy.worlds.kubernetes.unsupported import obstacles_to_scheduling
from argosy.worlds.kubernetes.volumes import KnownVolumes

PINNED = Path(__file__).parent / "pinned"


def plain(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def text_of(request: Any) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in request.items())


def try_to(action: Any) -> str:
    try:
        return str(action())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def volumes_of(draw: DrawnObjects) -> KnownVolumes:
    known = KnownVolumes()
    for number in range(3):
        volume = read(PERSISTENT_VOLUMES, draw.persistent_volume(number))
        known.volumes[volume.name] = volume
    for number in range(4):
        for space in draw.some(SPACES):
            claim = read(PERSISTENT_VOLUME_CLAIMS, draw.claim(number, space))
            known.claims[claim.namespace, claim.name] = claim
    return known


def told_of(pod: Pod, before: Pod, known: KnownVolumes, draw: DrawnObjects) -> list[str]:
    """All that can be said of one pod by itself."""
    annotated = AnnotatedConstraints(
        lambda each: "omega" if each.spec.priority else "", lambda: not pod.spec.priority
    )
    precedences = Precedences([5, 100, 1_000, -10])
    request = pod_request(pod)
    job = job_of_pod(pod, "job", kind_of(pod), request, {"a": "true"}, precedences, {"wish": 3})
    accounted = AccountedResources()
    node = read(NODES, draw.node("n0"))
    rules = NodeRules.of(pod, known.node_rules(pod))
    group = group_of(pod)
    return [
        f"request {text_of(request)}",
        f"new {accounted.learn(request)}, machine {plain(accounted.machine_of(node))}",
        f"job {plain(job)}",
        f"applied {try_to(lambda: plain(annotated.applied(job, pod)))}",
        f"obstacles {obstacles_to_scheduling(pod, known)!r} {annotated.obstacle(pod)!r}",
        f"read {try_to(lambda: plain(read_annotation(pod)))}",
        f"tags {constraint_tags(pod)} {label_tags(pod)}",
        f"wishes {has_wishes(pod)} {described_wishes(pod)}",
        f"controller {controller_of(pod)}, moves {may_move(pod)}",
        f"group {group and plain(group)}",
        f"claims {known.for_one_pod(pod)}",
        f"rules {rules.describe()}",
        f"node {rules.admits(node)} {rules.selects(node)} {rules.tainted_by(node)}"
        f" {rules.repelled_by(node)} {rules.reason(node)}",
        f"of node {plain(rules_of_node(node))}",
        f"changed {has_changed(before, pod)}",
    ]


def changed(draw: DrawnObjects, document: dict[str, Any]) -> dict[str, Any]:
    """The pod in a later state."""
    document = msgspec.json.decode(msgspec.json.encode(document))
    spec, metadata = document["spec"], document["metadata"]
    match draw.below(9):
        case 0:
            metadata["labels"] = draw.labels()
        case 1:
            metadata["annotations"] = draw.annotations()
        case 2:
            spec["tolerations"] = [*spec.get("tolerations", ()), draw.toleration()]
        case 3:
            document = draw.resized(document)
        case 4:
            spec["schedulingGates"] = []
        case 5:
            spec["affinity"] = draw.affinity()
        case 6:
            spec["containers"] = [draw.container("c0")]
        case 7:
            document["status"]["nominatedNodeName"] = draw.one(("", "n1", "n2"))
        case _:
            spec["nodeSelector"] = {"disk": draw.one(("ssd", "hdd"))}
    return document


@pytest.mark.parametrize("first", [0, 1])
def test_what_drawn_pods_ask_for_is_as_before(first: int, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for seed in range(first * 40, (first + 1) * 40):
        draw, lines = DrawnObjects(f"asked {seed}"), []
        known = volumes_of(draw)
        budgets = DisruptionBudgets()
        for at in range(10):
            document = draw.pod(f"p{at}")
            if draw.maybe(0.2):
                document = draw.in_group(document)
            later = changed(draw, document)
            pod, before = read(PODS, later), read(PODS, document)
            lines += told_of(pod, before, known, draw)
            lines.append(f"budgets {[*budgets.of(pod)]}")
        outcomes[f"pods-{seed}"] = "\n".join(lines)
    require_digests(PINNED / f"asked-{first}.txt", outcomes, pytestconfig)


class DrawnRules:
    """A rulebook, and nodes and pods that come and go."""

    def __init__(self, seed: int) -> None:
        self.draw = DrawnObjects(f"rules {seed}")
        self.random = Random(f"rules {seed}")
        self.lines: list[str] = []
        self.book = Rulebook(self._mark)
        self.known = volumes_of(self.draw)
        self.needs: dict[str, PodNeeds] = {}
        self.placed: set[str] = set()
        self.pods: dict[str, Pod] = {}
        self.made = 0
        for space in SPACES:
            self.set_namespace(space)
        for at in range(4):
            self.set_node(f"n{at}")

    def _mark(self, attribute: str, group: str, sets: Sequence[str], is_given: bool) -> None:
        verb = "mark" if is_given else "unmark"
        self.lines.append(f"{verb} {group} {' '.join(sorted(sets))}: {attribute}")

    def set_namespace(self, space: str) -> None:
        document = self.draw.namespace(space)
        self.lines.append(f"namespace {plain(document)}")
        self.book.set_namespace(space, document["metadata"]["labels"])

    def set_node(self, name: str) -> None:
        node: Node = read(NODES, self.draw.node(name))
        self.lines.append(f"node {plain(node)}")
        self.book.set_node(node)

    def add_pod(self) -> None:
        self.made += 1
        name = f"p{self.made}"
        document = self.draw.pod(name)
        if self.draw.maybe(0.05):
            document["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:00Z"
        pod = self.pods[name] = read(PODS, document)
        if self.draw.maybe(0.2):
            needs = self.book.presence(pod, self.known.for_one_pod(pod))
        else:
            needs = self.book.needs(
                pod,
                self.known.node_rules(pod),
                self.known.for_one_pod(pod),
                heeds_wishes=self.draw.maybe(0.5),
            )
        self.needs[name] = needs
        self.lines.append(
            f"{name} requires {sorted(needs.attributes)}, wishes {needs.wishes},"
            f" brings {[each.name for each in needs.brings]}, plain {needs.is_plain}"
        )

    def step(self) -> None:
        unplaced = sorted(set(self.needs) - self.placed)
        match self.random.randrange(12):
            case 0 | 1 | 2:
                self.add_pod()
            case 3 | 4 | 5 if unplaced and self.book.nodes:
                name = self.random.choice(unplaced)
                allowed = [n for n in self.book.nodes if not self.obstacle(name, n)]
                node = self.random.choice(allowed or sorted(self.book.nodes))
                self.book.put(name, self.needs[name], node)
                self.placed.add(name)
                self.lines.append(f"{name} is on {node}, among {allowed}")
            case 6 | 7 if self.placed:
                name = self.random.choice(sorted(self.placed))
                self.lines.append(f"{name} leaves")
                self.book.leave(name)
                self.placed.discard(name)
            case 8 if unplaced:
                name = self.random.choice(unplaced)
                self.lines.append(f"{name} is forgotten")
                self.book.release(self.needs.pop(name))
            case 9:
                self.set_node(f"n{self.random.randrange(5)}")
            case 10 if len(self.book.nodes) > 1:
                name = self.random.choice(sorted(self.book.nodes))
                self.lines.append(f"{name} is gone")
                self.placed -= set(self.book.pods_on(name))
                self.book.remove_node(name)
            case 11:
                self.set_namespace(self.random.choice(SPACES))

    def obstacle(self, name: str, node: str) -> str:
        found = self.book.forbidding(self.needs[name], node)
        return "" if found is None else describe_obstacle(found)

    def look(self) -> None:
        for name, needs in self.needs.items():
            obstacles = [self.obstacle(name, node) for node in [*self.book.nodes, "n9"]]
            self.lines.append(
                f"{name}: {obstacles} {self.book.reasons(needs)}"
                f" counted {self.book.is_counted(needs.counted)} {sorted(needs.attributes)}"
            )
        there = {node: self.book.pods_on(node) for node in self.book.nodes}
        self.lines.append(f"{there} unused {self.book.is_unused} soft {self.book.has_soft_taints}")


def test_rules_of_drawn_pods_open_and_close_nodes_as_before(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = {}
    for seed in range(90):
        monkeypatch.setattr(rulebooks, "MOST_UNUSED", (0, 3, 256)[seed % 3])
        rules = DrawnRules(seed)
        for at in range(40):
            rules.step()
            if at % 4 == 3:
                rules.look()
        rules.lines.append("anew")
        rules.book.mark_all()
        for name in sorted(rules.needs):
            if name not in rules.placed:
                rules.book.release(rules.needs.pop(name))
        rules.look()
        outcomes[f"rules-{seed}"] = "\n".join(rules.lines)
    require_digests(PINNED / "rules.txt", outcomes, pytestconfig)
