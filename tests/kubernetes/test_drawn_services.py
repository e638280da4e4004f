"""Schedulers of drawn clusters, with growing jobs, metrics, shadows, recordings and plans: what they
write, log and report is as before. Of each run a digest is kept."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from drawn_pod_service import run_service
from drawn_pods import SPACES, DrawnObjects, read
from msgspec.structs import replace
from pinned_digests import require_digests

from argosy.kubernetes.kinds import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
)
from argosy.model.errors import ArgosyError
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.agent_terms import PodTerms
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.kubernetes.planning import TEMPLATES, groups_of, pods_of
from argosy.service.kubernetes.pod_fleet import PodFleet
from argosy.service.kubernetes.queue_notes import QueueNotes
from argosy.service.kubernetes.shadow.placements import ClusterState, PlacementJudge, SeenPod
from argosy.worlds.kubernetes.pod_jobs import ESTIMATE
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.tracked import PodState
from argosy.worlds.kubernetes.volumes import KnownVolumes

PINNED = Path(__file__).parent / "pinned"
FLEETS: list[list[dict[str, Any]]] = [
    [{"name": "first", "engine": "omega", "settings": {"preempt": True}}],
    [{"name": "first", "engine": "kube"}],
    [{"name": "first", "engine": "firmament"}],
    [{"name": "first", "engine": "yaq-d"}],
]


def test_drawn_clusters_are_scheduled_as_before(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = {}
    for seed in range(16):
        fleet = FLEETS[seed % 4]
        folder = tmp_path / str(seed)
        outcomes[f"service-{seed}"] = run_service(
            seed, fleet, folder, monkeypatch, lambda service: service.run(60)
        )
    require_digests(PINNED / "services.txt", outcomes, pytestconfig)


def agent_terms(seed: int) -> str:
    dice = Random(f"terms {seed}")
    overseer = PodOverseer("argosy", serves_commits=True)
    overseer.is_leading = dice.random() < 0.8
    overseer.pods.required = {"node rules": "true"} if dice.random() < 0.7 else {}
    terms, lines = PodTerms(overseer), []
    for _ in range(8):
        extras = dice.choice(({}, {"gpu": 1}, {"pods": 3}))
        request = Resources(dice.randrange(3_000), 2**20, extras)
        demands = dice.choice(({"image": "i"}, {"image": ""}, {}))
        requires = dice.choice(({}, {"disk": "ssd"}, {"node rules": "false"}))
        group = TaskGroup(count=1, request=request, requires=requires, demands=demands)
        job = Job(id="job", groups=(group,))
        lines.append(f"{terms.request(request)!r} {terms.requires(requires)}")
        try:
            lines.append(repr(terms.job(job)))
        except ArgosyError as error:
            fields = (error.field, error.expected, error.hint)
            lines.append(f"{type(error).__name__} {error} {fields}")
    return "\n".join(lines)


def verdict(seed: int) -> str:
    """What is said of drawn placements, full or spare, allowed or not."""
    dice, draw = (
        Random(f"verdict {seed}"),
        DrawnObjects(f"verdict {seed}", (0.0, 0.1, 0.3)[seed % 3]),
    )
    volumes, nodes = KnownVolumes(), []
    for at in range(dice.randrange(1, 7)):
        document = draw.node(f"n{at}")
        document["status"]["allocatable"] |= {"cpu": draw.one(("3", "6")), "pods": "9"}
        nodes.append(read(NODES, document))
        claim = read(PERSISTENT_VOLUME_CLAIMS, draw.claim(at))
        volumes.claims[claim.namespace, claim.name] = claim
        volume = read(PERSISTENT_VOLUMES, draw.persistent_volume(at))
        volumes.volumes[volume.name] = volume
    spaces = tuple(read(NAMESPACES, draw.namespace(space)) for space in SPACES)
    seen = []
    for at in range(dice.randrange(12)):
        pod = read(PODS, draw.pod(f"p{at}"))
        request = pod_request(pod)
        seen.append(SeenPod(pod, f"n{dice.randrange(7)}", request, dice.random() < 0.7))
    state = ClusterState(tuple(nodes), spaces, volumes)
    return repr(PlacementJudge(state, seen).judge())


def planned(seed: int) -> str:
    """The pods and groups of drawn manifests, or what is wrong with them."""
    dice, draw, lines = Random(f"plan {seed}"), DrawnObjects(f"plan {seed}", 0.1), []
    for at in range(12):
        pod = draw.pod(f"p{at}")
        if dice.random() < 0.4:
            pod["spec"]["priorityClassName"] = dice.choice(("high", "low", "absent"))
        if dice.random() < 0.3 and pod["spec"]["containers"]:
            limits = {"cpu": dice.choice((2, "3")), "memory": "1Gi"}
            pod["spec"]["containers"][0]["resources"]["limits"] = limits
        if dice.random() < 0.1:
            pod["spec"] |= dice.choice(
                ({"priority": "much"}, {"containers": None}, {"nodeName": None})
            )
        kind = dice.choice((*TEMPLATES, "Pod", "Pod", "ConfigMap", "DaemonSet"))
        document = {**pod, "kind": kind, "metadata": dice.choice((pod["metadata"], {}, None))}
        if kind in TEMPLATES:
            template = dice.choice((pod, pod, pod, None, "text"))
            spec = {TEMPLATES[kind]: dice.choice((None, 0, 1, 3)), "template": template}
            document["spec"] = spec
        group = draw.pod_group(1) if dice.random() < 0.5 else draw.coscheduling_group(1)
        group["spec"] = dice.choice((group["spec"], {"minMember": "two"}, {}))
        version = dice.choice(("scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1", "v1"))
        document = dice.choice((document, document, document, document, {"kind": 3}, "text"))
        listed = [document, {**group, "kind": "PodGroup", "apiVersion": version}, None]
        documents: list[Any] = [{"kind": "List", "items": listed}] if at % 2 else listed
        try:
            lines.append(repr(pods_of(documents, "space", {"high": 9, "low": -3})))
            lines.append(repr(groups_of(documents, "space")))
        except ArgosyError as error:
            lines.append(f"{type(error).__name__} {error} {error.expected} {error.hint}")
    return "\n".join(lines)


class ToldNotes:
    """Queues that change, as far as notes look at them."""

    def __init__(self, seed: int) -> None:
        self.dice, self.lines = Random(f"notes {seed}"), list[str]()
        draw = DrawnObjects(f"notes {seed}", 0.0)
        self.now = 0
        self.queues: dict[str, list[tuple[str, int]]] = {}
        self.tries: dict[int, Any] = {}
        self.pods: dict[str, Any] = {}
        for at in range(7):
            document = draw.pod(f"p{at}")
            document["metadata"]["annotations"] = {ESTIMATE: draw.one(("20s", "90s", "soon"))}
            pod = read(PODS, document)
            self.pods[f"p{at}"] = SimpleNamespace(
                uid=f"p{at}", pod=pod, state=PodState.WAITING, number=None, request=pod_request(pod)
            )

    def of_job(self, job: str) -> Any:
        return self.pods.get(job)

    def pods_on(self, node: str) -> list[str]:
        there = (PodState.BOUND, PodState.BINDING)
        return [uid for uid, each in self.pods.items() if each.state in there and node == "n0"]

    def free_on(self, node: str) -> dict[str, int]:
        return {"cpu": 500, "memory": 2**28, "pods": 5}

    def queued(self) -> dict[str, list[tuple[str, int]]]:
        return self.queues

    def annotate(self, pod: Any, annotations: dict[str, str | None], message: str) -> None:
        self.lines.append(f"{self.now} {pod.name} {annotations} {message!r}")
        tracked = self.pods.get(pod.name)
        if tracked is not None and self.dice.random() < 0.8:
            kept = {**pod.metadata.annotations, **annotations}
            kept = {key: each for key, each in kept.items() if each is not None}
            tracked.pod = replace(pod, metadata=replace(pod.metadata, annotations=kept))

    def forget(self, uid: str) -> None:
        self.lines.append(f"forget {uid}")

    def run(self) -> str:
        dice = self.dice
        pods: Any = SimpleNamespace(
            pods=self.pods, of_job=self.of_job, free_on=self.free_on, rulebook=self
        )
        notes = QueueNotes(pods, lambda: self, self)  # type: ignore[arg-type, return-value]
        for _ in range(60):
            self.now += dice.choice((1, 4, 10, 11)) * 1_000_000
            if dice.random() < 0.3:
                names = dice.sample([*self.pods, "gone"], dice.randrange(5))
                self.queues[dice.choice(("n0", "n1"))] = [(name, 0) for name in names]
            uid = dice.choice([*self.pods])
            match dice.randrange(8):
                case 0:
                    self.pods[uid].state = dice.choice((PodState.BOUND, PodState.WAITING))
                    self.pods[uid].number = at = dice.randrange(9)
                    self.tries[at] = SimpleNamespace(since=self.now - dice.randrange(30_000_000))
                case 1 if len(self.pods) > 3:
                    del self.pods[uid]
            notes.write()
        return "\n".join(self.lines)


def test_verdicts_and_notes_are_as_before(pytestconfig: pytest.Config) -> None:
    outcomes = {f"notes-{seed}": ToldNotes(seed).run() for seed in range(30)}
    outcomes |= {f"planned-{seed}": planned(seed) for seed in range(30)}
    for seed in range(40):
        verdicts = [verdict(seed * 100 + at) for at in range(10)]
        outcomes[f"verdicts-{seed}"] = "\n".join(verdicts)
    require_digests(PINNED / "verdicts.txt", outcomes, pytestconfig)


def fleet_of(seed: int) -> str:
    dice, draw = Random(f"fleet {seed}"), DrawnObjects(f"fleet {seed}", 0.4)
    drawn: list[dict[str, Any]] = [{"name": "first", "engine": dice.choice(("omega", "kube"))}]
    drawn[0]["takes"] = {"kinds": dice.choice((["service"], ["service", "batch"], ["x"]))}
    if dice.random() < 0.7:
        takes = {"kinds": dice.choice((["batch"], ["special", "batch"]))}
        drawn.append({"name": "second", "engine": dice.choice(("medea", "yaq-d")), "takes": takes})
    entries = read_fleet(drawn, CellSpec(machines=()))
    fleet = PodFleet("argosy", entries, dice.choice(((), ("old", "batch"), ("special",))))
    lines = [repr(fleet.entries), repr(sorted(fleet.kinds)), repr(fleet.acts_on_constraints)]
    for at in range(8):
        pod = read(PODS, draw.pod(f"p{at}", draw.one(("argosy", "first", "second"))))
        kind = fleet.kind_of(pod)
        lines.append(f"{kind} {fleet.heeds_wishes(pod)} {fleet.ignoring_constraints(pod)!r}")
        lines.append(fleet.obstacle_to_groups(kind))
    return "\n".join(lines)


def test_terms_of_agents_are_as_before(pytestconfig: pytest.Config) -> None:
    outcomes = {f"terms-{seed}": agent_terms(seed) for seed in range(20)}
    outcomes |= {f"fleet-{seed}": fleet_of(seed) for seed in range(30)}
    require_digests(PINNED / "terms.txt", outcomes, pytestconfig)


def test_drawn_clusters_are_shadowed_recorded_and_planned_as_before(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = {}
    for seed in range(10):
        fleet = [
            FLEETS[seed % 2][0],
            {**FLEETS[(seed + 1) % 2][0], "name": "second"},
        ]
        folder = tmp_path / str(seed)
        outcomes[f"shadow-{seed}"] = run_service(
            seed, fleet, folder, monkeypatch, lambda service: service.shadow(40)
        )
    require_digests(PINNED / "shadows.txt", outcomes, pytestconfig)
