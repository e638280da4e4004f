"""What is held against a Kubernetes scheduler, and what is not: each rule just at its limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from argosy.campaign.pod_rules import AGREED, NEWS, PodJudge
from argosy.campaign.recordings import ApiRecord, KnownPod, PodRecording
from argosy.campaign.recount import Recount
from argosy.campaign.waiting import PATIENCE
from argosy.engines.registry import ENGINES
from argosy.model.scenario import AgentDown, AgentSlow, AgentStale, Fault, Network, Partition
from argosy.testing.builders import SECOND, job, scenario

LONG = 10 * NEWS
SPEC = scenario("omega", [job("a")], replicas=1)
Document = dict[str, Any]


def node(at: int, name: str = "n", *, is_gone: bool = False, **fields: Any) -> ApiRecord:
    spec = {key: fields[key] for key in ("taints", "unschedulable") if key in fields}
    has = {"cpu": "4000m", "memory": "1000", "pods": "110"} | fields.get("has", {})
    document = {
        "metadata": {"name": name, "labels": fields.get("labels", {})},
        "spec": spec,
        "status": {"allocatable": has},
    }
    return ApiRecord(at, "node", is_gone, document)


def pod(
    at: int, name: str = "p", place: str = "", *, is_gone: bool = False, **fields: Any
) -> ApiRecord:
    group, namespace = fields.get("group"), fields.get("namespace", "x")
    metadata: Document = {"name": name, "uid": f"{namespace}/{name}", "namespace": namespace}
    if group is not None:
        metadata["labels"] = {"scheduling.x-k8s.io/pod-group": group}
    if fields.get("is_leaving"):
        metadata["deletionTimestamp"] = "now"
    spec: Document = {
        key: fields[key] for key in ("nodeSelector", "tolerations") if fields.get(key) is not None
    }
    requests = fields.get("requests", [{"cpu": "1000m"}])
    spec["containers"] = [{"resources": {"requests": each}} for each in requests]
    if place:
        spec["nodeName"] = place
    conditions = [{"type": kind} for kind in fields.get("conditions", ["PodScheduled"])]
    status = {"phase": fields.get("phase", "Pending"), "conditions": conditions}
    return ApiRecord(at, "pod", is_gone, {"metadata": metadata, "spec": spec, "status": status})


def pod_group(name: str, size: int, namespace: str = "x") -> ApiRecord:
    metadata = {"name": name, "namespace": namespace}
    return ApiRecord(0, "group", False, {"metadata": metadata, "spec": {"minMember": size}})


def bound(
    at: int, name: str = "p", place: str = "n", made: int = 0, **fields: Any
) -> list[ApiRecord]:
    """A pod that is made, and bound later."""
    return [pod(made, name, **fields), pod(at, name, place, **fields)]


def agreeing(records: Sequence[ApiRecord]) -> tuple[KnownPod, ...]:
    """What a scheduler knows that has heard everything."""
    last = {each.document["metadata"]["uid"]: each for each in records if each.kind == "pod"}
    return tuple(
        known(uid, each.document["spec"].get("nodeName", ""))
        for uid, each in last.items()
        if not each.is_gone and each.document["status"]["phase"] == "Pending"
    )


def known(uid: str, place: str = "", **fields: Any) -> KnownPod:
    made = KnownPod(uid=uid, node=place, is_bound=bool(place), obstacle="", job="j", index=0)
    return structs.replace(made, **fields)


def judged(
    *records: ApiRecord,
    ended_at: int = LONG,
    heard: Sequence[KnownPod] | None = None,
    kills: tuple[int, ...] = (),
    faults: tuple[Fault, ...] = (),
    loss: float = 0.0,
) -> dict[str, str]:
    """What is found; without `heard`, the scheduler knows everything in the end."""
    ordered = sorted(records, key=lambda each: each.at)
    spec = structs.replace(SPEC, faults=faults, network=Network(loss=loss))
    recount = Recount(spec, ENGINES)
    heard = agreeing(ordered) if heard is None else heard
    recording = PodRecording(records=tuple(ordered), known=tuple(heard), kills=kills)
    PodJudge(recording, recount, ended_at).judge()
    return {check: finding.kind for check, finding in recount.findings.items()}


class TestBindings:
    SSD = {"disk": "ssd"}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("at", "told"),
        [
            (9, {"requires": "selector"}),
            (10, {}),
            (20 + NEWS, {}),
            (21 + NEWS, {"requires": "selector"}),
        ],
    )
    def test_a_node_may_be_taken_for_what_it_was_a_while_ago(
        self, at: int, told: dict[str, str]
    ) -> None:
        found = judged(
            node(0),
            node(10, labels=self.SSD),
            node(20),
            node(30),
            *bound(at, nodeSelector=self.SSD),
        )
        assert found == told

    def test_a_selector_wants_all_of_its_labels(self) -> None:
        wanted = {"disk": "ssd", "zone": "a"}
        assert judged(node(0, labels=wanted), *bound(1, nodeSelector=wanted)) == {}
        told = judged(node(0, labels=self.SSD), *bound(1, nodeSelector=wanted))
        assert told == {"requires": "selector"}

    @pytest.mark.parametrize(
        ("at", "told"),
        [
            (4, {"machine-state": "node gone"}),
            (5, {}),
            (9 + NEWS, {}),
            (10 + NEWS, {"machine-state": "node gone"}),
        ],
    )
    def test_a_node_is_there_from_its_first_record_until_everybody_knows_that_it_is_gone(
        self, at: int, told: dict[str, str]
    ) -> None:
        assert judged(node(5), node(9, is_gone=True), *bound(at)) == told

    def test_a_node_that_never_was_is_gone(self) -> None:
        assert judged(node(0, "other"), *bound(1)) == {"machine-state": "node gone"}

    @pytest.mark.parametrize(
        ("tolerations", "told"),
        [
            (None, {"requires": "taint"}),
            ([{"key": "gpu", "value": "no"}], {"requires": "taint"}),
            ([{"key": "gpu"}], {"requires": "taint"}),
            ([{"key": "other"}, {"key": "gpu", "value": "yes"}], {}),
        ],
    )
    def test_a_taint_is_tolerated_with_its_value(
        self, tolerations: list[Document] | None, told: dict[str, str]
    ) -> None:
        tainted = node(0, taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
        assert judged(tainted, *bound(1, tolerations=tolerations)) == told

    def test_a_cordon_is_a_taint_without_a_value(self) -> None:
        cordoned = node(0, unschedulable=True)
        assert judged(cordoned, *bound(1)) == {"requires": "taint"}
        tolerant = [{"key": "node.kubernetes.io/unschedulable"}]
        assert judged(cordoned, *bound(1, tolerations=tolerant)) == {}
        assert judged(node(0, unschedulable=False), *bound(1)) == {}

    @pytest.mark.parametrize("place", ["m", ""])
    def test_a_pod_is_bound_once(self, place: str) -> None:
        nodes = node(0), node(0, "m")
        assert judged(*nodes, *bound(1), pod(2, place="n")) == {}
        assert judged(*nodes, *bound(1), pod(2, place=place)) == {"task-steps": "bound again"}


class TestRoom:
    TOO_MUCH = {"oversubscribed": "node"}  # noqa: RUF012

    def test_containers_of_all_pods_on_a_node_add_up(self) -> None:
        first = bound(1, "a", requests=[{"cpu": "1500m"}, {"cpu": "1500m"}])
        assert judged(node(0), *first, *bound(2, "b")) == {}
        assert judged(node(0), *first, *bound(2, "b", requests=[{"cpu": "1001m"}])) == self.TOO_MUCH
        assert judged(node(0), node(0, "m"), *first, *bound(2, "b", "m"), *bound(3, "c", "m")) == {}

    def test_pods_are_a_resource_too(self) -> None:
        few = node(0, has={"pods": "1"})
        assert judged(few, *bound(1, "a")) == {}
        assert judged(few, *bound(1, "a"), *bound(2, "b")) == self.TOO_MUCH

    def test_what_a_node_does_not_have_cannot_be_used(self) -> None:
        asked = bound(1, requests=[{"example.com/gpu": "1"}])
        assert judged(node(0), *asked) == self.TOO_MUCH
        assert judged(node(0, has={"example.com/gpu": "1"}), *asked) == {}

    @pytest.mark.parametrize(
        ("ending", "told"),
        [
            (pod(2, "a", "n", phase="Succeeded"), {}),
            (pod(2, "a", "n", phase="Failed"), {}),
            (pod(2, "a", "n", is_gone=True), {}),
            (pod(2, "a", "n", is_leaving=True), TOO_MUCH),
            (pod(2, "a", "n", phase="Running"), TOO_MUCH),
        ],
    )
    def test_only_a_pod_that_is_over_makes_room(
        self, ending: ApiRecord, told: dict[str, str]
    ) -> None:
        full = [{"cpu": "4000m"}]
        ended = structs.replace(ending, document=_asking(ending.document, full))
        records = [node(0), *bound(1, "a", requests=full), ended, *bound(3, "b")]
        assert judged(*records, ended_at=4) == told

    def test_a_node_that_has_shrunk_counts_with_what_it_had_a_while_ago(self) -> None:
        shrunk = node(10, has={"cpu": "500m"})
        assert judged(node(0), shrunk, *bound(10 + NEWS)) == {}
        assert judged(node(0), shrunk, *bound(11 + NEWS)) == self.TOO_MUCH

    def test_only_what_a_pod_asks_for_is_held_against_its_binding(self) -> None:
        hungry = bound(1, "a", requests=[{"cpu": "10m", "memory": "900"}])
        shrunk = node(2, has={"memory": "1"})
        late = 3 + NEWS
        assert judged(node(0), *hungry, shrunk, *bound(late, "b")) == {}
        more = bound(late, "b", requests=[{"memory": "1"}])
        assert judged(node(0), *hungry, shrunk, *more) == self.TOO_MUCH

    def test_a_pod_that_is_over_when_it_is_first_seen_on_a_node_takes_no_room(self) -> None:
        over = pod(1, "a", "n", phase="Succeeded", requests=[{"cpu": "9000m"}])
        assert judged(node(0), pod(0, "a"), over, *bound(2, "b")) == {}


def _asking(document: Document, requests: list[Document]) -> Document:
    containers = [{"resources": {"requests": each}} for each in requests]
    return {**document, "spec": {**document["spec"], "containers": containers}}


class TestGroups:
    APART = {"gang": "pods"}  # noqa: RUF012
    FIRST = 3 * NEWS

    def gang(self, *times: int, size: int = 2, **options: Any) -> dict[str, str]:
        """A group whose pods are bound at these times; one more waits."""
        records = [node(0), pod_group("g", size), pod(0, "waits", group="g")]
        for number, at in enumerate(times):
            records += bound(at, f"p{number}", group="g")
        return judged(*records, *options.pop("also", ()), **options)

    @pytest.mark.parametrize(("after", "told"), [(0, {}), (NEWS, {}), (NEWS + 1, APART)])
    def test_as_many_pods_as_a_group_needs_are_bound_together(
        self, after: int, told: dict[str, str]
    ) -> None:
        assert self.gang(self.FIRST, self.FIRST + after) == told

    def test_all_that_a_group_needs_counts_and_not_more(self) -> None:
        assert self.gang(self.FIRST) == self.APART
        assert self.gang(self.FIRST, size=1) == {}
        assert self.gang() == {}
        assert self.gang(self.FIRST, self.FIRST, size=3) == self.APART

    @pytest.mark.parametrize(("after", "told"), [(NEWS, {}), (NEWS + 1, APART)])
    def test_who_is_watched_for_too_short_a_time_is_not_blamed(
        self, after: int, told: dict[str, str]
    ) -> None:
        assert self.gang(self.FIRST, ended_at=self.FIRST + after) == told

    @pytest.mark.parametrize(
        ("away", "told"),
        [(-NEWS - 1, APART), (-NEWS, {}), (0, {}), (NEWS, {}), (NEWS + 1, APART)],
    )
    @pytest.mark.parametrize("what", ["kill", "node", "member"])
    def test_a_kill_and_the_loss_of_a_node_or_member_excuse_what_is_near(
        self, what: str, away: int, told: dict[str, str]
    ) -> None:
        at = self.FIRST + away
        lost = {
            "kill": {"kills": (at,)},
            "node": {"also": (node(0, "other"), node(at, "other", is_gone=True))},
            "member": {
                "also": (pod(0, "gone", group="g"), pod(at, "gone", group="g", is_gone=True))
            },
        }
        assert self.gang(self.FIRST, **lost[what]) == told

    def test_the_loss_of_another_group_excuses_nothing(self) -> None:
        also = (
            pod_group("h", 1),
            pod(0, "gone", group="h"),
            pod(self.FIRST, "gone", group="h", is_gone=True),
        )
        assert self.gang(self.FIRST, also=also) == self.APART

    @pytest.mark.parametrize(
        "noise",
        [
            {"loss": 0.01},
            {"faults": (Partition(at=0, lasts=1, isolated=("s",)),)},
            {"faults": (AgentDown(at=0),)},
            {"faults": (AgentSlow(at=0, extra=1),)},
            {"faults": (AgentStale(at=0),)},
        ],
    )
    def test_where_requests_are_lost_groups_are_not_judged(self, noise: dict[str, Any]) -> None:
        assert self.gang(self.FIRST, **noise) == {}

    def test_groups_of_two_namespaces_are_two(self) -> None:
        records = [node(0), pod_group("g", 1), pod_group("g", 2, "y")]
        one = bound(self.FIRST, "a", group="g")
        assert judged(*records, *one) == {}
        other = bound(self.FIRST, "a", group="g", namespace="y")
        assert judged(*records, *one, *other) == self.APART


class TestAgreement:
    @pytest.mark.parametrize(("ago", "told"), [(AGREED, "pod unknown"), (AGREED - 1, None)])
    def test_what_has_not_changed_for_a_while_is_known(self, ago: int, told: str | None) -> None:
        found = judged(pod(LONG - ago), heard=())
        assert found == ({} if told is None else {"processes": told})

    def test_a_pod_that_is_leaving_may_be_known_or_not(self) -> None:
        leaving = node(0), *bound(1, is_leaving=True)
        assert judged(*leaving, heard=()) == {}
        assert judged(*leaving, heard=[known("x/p", "elsewhere")]) == {}

    @pytest.mark.parametrize(
        "ending", [pod(2, place="n", is_gone=True), pod(2, place="n", phase="Failed")]
    )
    def test_a_pod_that_is_over_is_known_no_more(self, ending: ApiRecord) -> None:
        records = (node(0), *bound(1), ending)
        assert judged(*records) == {}
        assert judged(*records, heard=[known("x/p", "n")]) == {"processes": "pod gone"}

    @pytest.mark.parametrize(
        ("heard", "told"),
        [
            (known("x/p", "n"), {}),
            (known("x/p", "m"), {"processes": "pod elsewhere"}),
            (known("x/p", "n", is_bound=False), {"processes": "pod elsewhere"}),
            (known("x/p"), {"processes": "pod elsewhere"}),
        ],
    )
    def test_a_pod_is_where_its_scheduler_has_it(
        self, heard: KnownPod, told: dict[str, str]
    ) -> None:
        assert judged(node(0), *bound(1), heard=[heard]) == told

    def test_a_node_that_has_just_changed_or_is_gone_excuses_where_its_pods_are(self) -> None:
        heard = [known("x/p", "m")]
        for ago, told in ((AGREED + 1, {"processes": "pod elsewhere"}), (AGREED, {})):
            assert judged(node(0), *bound(1), node(LONG - ago), heard=heard) == told
        assert judged(node(0), *bound(1), node(5, is_gone=True), heard=heard) == {}

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"job": ""}, {"forgotten": "pod"}),
            ({"job": "", "obstacle": "no such volume"}, {}),
            ({"job": "j"}, {}),
            ({"job": "j", "obstacle": "no such volume"}, {}),
        ],
    )
    def test_a_pod_that_waits_has_a_job_or_an_obstacle(
        self, fields: dict[str, str], told: dict[str, str]
    ) -> None:
        assert judged(pod(1), heard=[known("x/p", **fields)]) == told


class TestExplanations:
    SILENT = {"unexplained": "pod"}  # noqa: RUF012

    @pytest.mark.parametrize(("waited", "told"), [(PATIENCE, SILENT), (PATIENCE - 1, {})])
    def test_a_pod_that_has_waited_for_long_says_why(
        self, waited: int, told: dict[str, str]
    ) -> None:
        silent = pod(LONG - waited, conditions=["Initialized"])
        assert judged(silent) == told
        early = pod(0, conditions=["Initialized"])
        kills = (LONG - waited, SECOND)
        assert judged(early, kills=kills) == told

    def test_one_of_several_conditions_is_enough(self) -> None:
        assert judged(pod(0, conditions=["Initialized", "PodScheduled"])) == {}
        assert judged(pod(0, conditions=[])) == self.SILENT

    def test_who_has_a_node_or_is_over_need_not_say_why_it_waits(self) -> None:
        assert judged(node(0), *bound(1, conditions=[])) == {}
        assert judged(pod(0, conditions=[]), pod(1, conditions=[], is_gone=True)) == {}
        assert judged(pod(0, conditions=[]), pod(1, conditions=[], phase="Failed")) == {}

    def test_where_requests_are_lost_silence_is_not_judged(self) -> None:
        assert judged(pod(0, conditions=[]), loss=0.1) == {}
