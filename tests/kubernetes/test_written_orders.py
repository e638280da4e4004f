"""What becomes of orders, whatever Kubernetes answers. Times are noted, not waited for."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.kubernetes import failures as failed
from argosy.kubernetes.client import PatchForm
from argosy.kubernetes.kinds import EVENTS, PODS
from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.service.kubernetes import writer as module
from argosy.service.kubernetes.writer import KubernetesWriter
from argosy.worlds.kubernetes.queue_annotations import left_queue, reached_node
from argosy.worlds.kubernetes.tracked import (
    BindOrder,
    ClusterOrder,
    CreateOrder,
    EvictOrder,
    NominateOrder,
)

AWAY = failed.KubernetesUnreachable("PUT it", "no answer", may_have_happened=True)
CRASHED = failed.ServerFailed("PUT it", "crashed")
CONFLICT = failed.ObjectConflict("PUT it", "is otherwise")
EXISTS = failed.ObjectExists("PUT it", "exists")
MISSING = failed.ObjectNotFound("PUT it", "missing")
FORBIDDEN = failed.RequestForbidden("PUT it", "forbidden")
INVALID = failed.RequestInvalid("PUT it", "invalid")
BUDGET = failed.EvictionRefused("PUT it", "a budget")


def a_pod(name: str = "p", node: str = "", uid: str = "u", **metadata: Any) -> Pod:
    named = {"name": name, "namespace": "space", "uid": uid, "resourceVersion": "5", **metadata}
    spec = {"nodeName": node} if node else {}
    return PODS.decode(msgspec.json.encode({"metadata": named, "spec": spec}))


class Client:
    """Answers as it is told, by verb; succeeds if it is told nothing."""

    def __init__(self) -> None:
        self.answers: defaultdict[str, deque[Any]] = defaultdict(deque)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append((verb, arguments, named))
            answer = self.answers[verb].popleft() if self.answers[verb] else None
            if isinstance(answer, Exception):
                raise answer
            if answer == "never":
                await asyncio.Event().wait()
            return answer

        return call

    def of(self, verb: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(arguments, named) for each, arguments, named in self.calls if each == verb]


class Right:
    def __init__(self, *, is_held: bool = True, fencing: int | None = None) -> None:
        self.is_held = is_held
        self.remaining: float | None = None if is_held else 0.0
        self.fencing = fencing


class Bench:
    """A writer, and everything that it says to anybody."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client = Client()
        self.fates: list[tuple[str, ...]] = []
        self.slept: list[float] = []
        self.logged: list[str] = []
        self.seen: list[Any] = []
        self.right = Right()
        self.now = 1_000.0
        self.options: dict[str, Any] = {}
        monkeypatch.setattr(module, "loop_time", lambda: self.now)
        monkeypatch.setattr(module, "time", SimpleNamespace(time_ns=lambda: 255))
        pause = asyncio.sleep

        async def sleep(seconds: float, result: object = None) -> None:
            if seconds:
                self.slept.append(seconds)
            await pause(0)

        monkeypatch.setattr(asyncio, "sleep", sleep)

    def bound(self, seconds: float) -> None:
        self.seen.append(seconds)

    def refused(self) -> None:
        self.seen.append("refused")

    def evicted(self, why: Why) -> None:
        self.seen.append(why)

    def do(self, *steps: ClusterOrder | Callable[[KubernetesWriter], None]) -> KubernetesWriter:
        """One step after the other, each until nothing is left to do."""

        async def carry_out() -> KubernetesWriter:
            writer = KubernetesWriter(
                self.client,  # type: ignore[arg-type]
                "argosy",
                bound=lambda uid: self.fates.append(("bound", uid)),
                failed=lambda uid: self.fates.append(("failed", uid)),
                stayed=lambda uid: self.fates.append(("stayed", uid)),
                unmade=lambda job, why: self.fates.append(("unmade", job, why)),
                log=self.logged.append,
                observer=self,
                right=self.right,
                **self.options,
            )
            writer.start()
            for step in steps:
                step(writer) if callable(step) else writer.carry_out(step)
                for _ in range(100):
                    await asyncio.sleep(0)
            await writer.close()
            return writer

        return asyncio.run(carry_out())


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_a_binding_names_pod_node_and_author_and_is_told_in_an_event(bench: Bench) -> None:
    order = BindOrder(a_pod("p" * 210), "n", {"argosy.dev/why": "room"})

    def later(writer: KubernetesWriter) -> None:
        writer.carry_out(order)
        bench.now += 3.0

    writer = bench.do(later)
    [(where, how)] = bench.client.of("bind")
    assert where == ("space", "p" * 210, "n")
    annotations = {"argosy.dev/why": "room", "argosy.dev/placed-by": "argosy"}
    assert how == {"uid": "u", "annotations": annotations}
    assert bench.fates == [("bound", "u")]
    assert bench.seen == [3.0]
    assert writer.counts == {"bound": 1}
    [((kind, event, space), _)] = bench.client.of("create")
    assert (kind, space, event["eventTime"][-1]) == (EVENTS, "space", "Z")
    del event["eventTime"]
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "p" * 200 + ".ff0", "namespace": "space"},
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": f"Successfully assigned space/{'p' * 210} to n",
        "reportingController": "argosy",
        "reportingInstance": "argosy",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "space",
            "name": "p" * 210,
            "uid": "u",
            "resourceVersion": "5",
        },
    }


@pytest.mark.parametrize(
    ("answers", "found", "fate", "refused", "slept"),
    [
        ([MISSING], [], "failed", False, []),
        ([CONFLICT], [a_pod(node="other")], "failed", True, []),
        ([CONFLICT], [a_pod(node="n", uid="another")], "failed", True, []),
        ([CONFLICT], [MISSING], "failed", True, []),
        ([CONFLICT], [AWAY, AWAY, AWAY, AWAY, a_pod(node="n")], "bound", False, [0.5, 1, 2, 2]),
        ([FORBIDDEN], [], "failed", True, [1]),
        ([INVALID], [], "failed", True, [1]),
        ([AWAY, CRASHED, AWAY, AWAY, None], [], "bound", False, [0.5, 1, 2, 2]),
        ([AWAY, CONFLICT], [a_pod(node="n")], "bound", False, [0.5]),
    ],
)
def test_every_answer_to_a_binding_has_its_fate(
    bench: Bench, answers: list[Any], found: list[Any], fate: str, refused: bool, slept: list[float]
) -> None:
    bench.client.answers["bind"].extend(answers)
    bench.client.answers["get"].extend(found)
    writer = bench.do(BindOrder(a_pod(), "n"))
    assert bench.fates == [(fate, "u")]
    assert bench.slept == slept
    assert ("refused" in bench.seen) == refused == bool(writer.counts["refused"])
    assert all(arguments == (PODS, "p", "space") for arguments, _ in bench.client.of("get"))
    assert len(bench.client.of("create")) == (fate == "bound")
    # What a user can do something about is told; that a pod is gone is not.
    told = [each for each in (*answers, *found) if isinstance(each, Exception) and each != MISSING]
    assert len(bench.logged) == len([e for e in told if e != CONFLICT or refused])


def test_a_pod_that_may_not_be_bound_rests_longer_each_time_until_it_is(bench: Bench) -> None:
    order = BindOrder(a_pod(), "n")
    bench.client.answers["bind"].extend([FORBIDDEN] * 8 + [None, FORBIDDEN])
    bench.do(*[order] * 10)
    assert bench.slept == [1, 2, 4, 8, 16, 32, 60, 60, 1]


def test_a_pod_that_is_refused_for_a_day_is_tried_again(bench: Bench) -> None:
    pod, times = a_pod(), 24 * 60
    bench.client.answers["bind"].extend([FORBIDDEN] * times)
    bench.do(*(BindOrder(pod, "n") for _ in range(times)))
    assert bench.slept[6:] == [60] * (times - 6)
    assert bench.fates == [("failed", "u")] * times


def test_of_too_many_refused_pods_the_one_refused_longest_ago_is_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_REFUSED", 2)
    pods = ["a", "b", "a", "c", "b", "c"]
    bench.client.answers["bind"].extend([FORBIDDEN] * len(pods))
    bench.do(*(BindOrder(a_pod(uid, uid=uid), "n") for uid in pods))
    assert bench.slept == [1.0, 1.0, 2.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("writes", [True, False])
def test_events_of_bindings_are_an_option(bench: Bench, writes: bool) -> None:
    bench.options["writes_events"] = writes
    bench.do(BindOrder(a_pod(), "n"))
    assert len(bench.client.of("create")) == writes


def test_who_has_a_right_with_a_number_writes_it_down(bench: Bench) -> None:
    bench.right.fencing = 7
    bench.do(BindOrder(a_pod(), "n"))
    [(_, how)] = bench.client.of("bind")
    assert how["annotations"] == {"argosy.dev/placed-by": "argosy", "argosy.dev/fencing": "7"}


def test_without_the_right_nothing_is_asked_of_the_server(bench: Bench) -> None:
    bench.right = Right(is_held=False)
    writer = bench.do(
        BindOrder(a_pod(), "n"),
        EvictOrder(a_pod(uid="e"), Why.PREEMPTED),
        CreateOrder("job", {}),
        NominateOrder(a_pod(), "n"),
        lambda writer: writer.note_waiting(a_pod(), "why"),
    )
    assert bench.client.calls == []
    # Another leader decides on the pod; who was to go is asked again later; the job is told.
    assert bench.fates == [("stayed", "e"), ("unmade", "job", "this server may not write any more")]
    assert bench.slept == [60.0]
    assert writer.counts == {"left": 3}


@pytest.mark.parametrize("verb", ["bind", "evict", "create"])
def test_a_right_that_ends_before_the_answer_and_is_renewed_is_used_again(
    bench: Bench, verb: str
) -> None:
    orders = {
        "bind": BindOrder(a_pod(), "n"),
        "evict": EvictOrder(a_pod(), Why.PREEMPTED),
        "create": CreateOrder("job", {}),
    }
    bench.client.answers[verb].append("never")
    bench.right.remaining = 0.0

    def renew(writer: KubernetesWriter) -> None:
        bench.right.remaining = None

    writer = bench.do(orders[verb], renew)
    assert len(bench.client.of(verb)) >= 2
    assert writer.counts == {{"bind": "bound", "evict": "evicted", "create": "made"}[verb]: 1}


OWNED = {"ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]}


@pytest.mark.parametrize(
    ("answers", "fates", "counted", "slept"),
    [
        ([None], [], "evicted", []),
        ([MISSING], [], "", []),
        ([CONFLICT], [], "", []),
        ([BUDGET], [("stayed", "u")], "stayed", []),
        ([AWAY, CRASHED, AWAY, AWAY, None], [], "evicted", [0.5, 1, 2, 2]),
    ],
)
@pytest.mark.parametrize("why", [Why.PREEMPTED, Why.MOVED])
def test_every_answer_to_an_eviction_has_its_fate(
    bench: Bench,
    why: Why,
    answers: list[Any],
    fates: list[Any],
    counted: str,
    slept: list[float],
) -> None:
    bench.client.answers["evict"].extend(answers)
    writer = bench.do(EvictOrder(a_pod(**OWNED), why))
    assert bench.fates == fates
    assert bench.slept == slept
    assert writer.counts == ({counted: 1} if counted else {})
    assert set(map(str, bench.client.of("evict"))) == {str((("space", "p"), {"uid": "u"}))}
    assert bench.seen == ([why] if counted == "evicted" else [])
    word = why.name.lower()
    told = [(each[1]["reason"], each[1]["note"]) for each, _ in bench.client.of("create")]
    done = [(word.capitalize(), f"Evicted by argosy: {word}")] if counted == "evicted" else []
    assert told == done
    assert len(bench.logged) == len(slept)


@pytest.mark.parametrize("why", [Why.PREEMPTED, Why.MOVED])
def test_a_pod_that_nobody_would_make_anew_is_evicted_and_never_moved(
    bench: Bench, why: Why
) -> None:
    bench.do(EvictOrder(a_pod(), why))
    is_moved = why is Why.MOVED
    assert bench.fates == ([("stayed", "u")] if is_moved else [])
    assert len(bench.client.of("evict")) == (not is_moved)


@pytest.mark.parametrize(
    ("answers", "why", "counted", "slept"),
    [
        ([None], "", 1, []),
        ([EXISTS], "", 0, []),
        ([CONFLICT], str(CONFLICT), 0, []),
        ([FORBIDDEN], str(FORBIDDEN), 0, []),
        ([INVALID], str(INVALID), 0, []),
        ([MISSING], str(MISSING), 0, []),
        ([AWAY, CRASHED, AWAY, AWAY, None], "", 1, [0.5, 1, 2, 2]),
    ],
)
def test_every_answer_to_the_making_of_a_pod_has_its_fate(
    bench: Bench, answers: list[Any], why: str, counted: int, slept: list[float]
) -> None:
    bench.client.answers["create"].extend(answers)
    writer = bench.do(CreateOrder("job", {"kind": "Pod"}))
    assert bench.fates == ([("unmade", "job", why)] if why else [])
    assert bench.client.of("create") == [((PODS, {"kind": "Pod"}), {})] * len(answers)
    assert writer.counts["made"] == counted
    assert bench.slept == slept
    assert len(bench.logged) == len(slept) + bool(why)


def condition(patch: dict[str, Any]) -> dict[str, str]:
    [found] = patch["status"]["conditions"]
    assert found.pop("lastTransitionTime")[-1] == "Z"
    return found


def test_a_pod_that_others_make_room_for_is_nominated(bench: Bench) -> None:
    bench.do(NominateOrder(a_pod(), "n"))
    [((kind, name, patch, space), how)] = bench.client.of("patch")
    assert (kind, name, space) == (PODS, "p", "space")
    assert how == {"form": PatchForm.STRATEGIC, "subresource": "status"}
    assert condition(patch) == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "n was chosen: waits until others have left it",
    }
    assert patch["metadata"] == {"uid": "u"}
    assert patch["status"]["nominatedNodeName"] == "n"
    assert bench.client.of("create") == []


def test_why_a_pod_waits_is_written_if_it_is_new_and_not_too_often(bench: Bench) -> None:
    def note(message: str, after: float = 0.0) -> Callable[[KubernetesWriter], None]:
        def write(writer: KubernetesWriter) -> None:
            bench.now += after
            writer.note_waiting(a_pod(), message, "SchedulingGated")

        return write

    long = "x" * 2_000
    bench.do(
        note("no room"),
        note("no room", 100.0),
        note("no GPU"),
        note("sooner than", 9.9),
        note(long, 0.1),
        BindOrder(a_pod(), "n"),
        note(long),
    )
    written = [condition(arguments[2]) for arguments, _ in bench.client.of("patch")]
    assert [each["message"] for each in written] == ["no room", "no GPU", long, long]
    assert {each["reason"] for each in written} == {"SchedulingGated"}
    events = [arguments[1] for arguments, _ in bench.client.of("create")]
    waits = [each for each in events if each["type"] == "Warning"]
    assert [each["note"] for each in waits] == ["no room", "no GPU", "x" * 1_000, "x" * 1_000]
    assert {(each["reason"], each["action"]) for each in waits} == {
        ("FailedScheduling", "Scheduling")
    }
    assert len({each["metadata"]["name"] for each in events}) == len(events)


def test_of_too_many_notes_the_oldest_is_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_NOTES", 2)

    def note(uid: str) -> Callable[[KubernetesWriter], None]:
        return lambda writer: writer.note_waiting(a_pod(uid, uid=uid), "why")

    bench.do(*map(note, ["a", "b", "a", "c", "b", "a"]))
    assert [arguments[1] for arguments, _ in bench.client.of("patch")] == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("error", "is_told"), [(MISSING, False), (CONFLICT, False), (CRASHED, True), (AWAY, True)]
)
def test_what_is_for_people_only_is_written_once_or_not_at_all(
    bench: Bench, error: Exception, is_told: bool
) -> None:
    bench.client.answers["patch"].append(error)
    writer = bench.do(lambda writer: writer.note_waiting(a_pod(), "why"))
    assert writer.counts == {"unwritten": 1}
    assert bench.logged == ([str(error)] if is_told else [])
    assert len(bench.client.calls) == 1


PLACE = {"argosy.dev/queue": "n,m", "argosy.dev/queue-position": "2"}


@pytest.mark.parametrize("message", ["", "second in the queue of n"])
def test_a_place_in_a_queue_is_written_to_the_pod_as_it_was_seen(
    bench: Bench, message: str
) -> None:
    bench.do(lambda writer: writer.annotate(a_pod(), dict(PLACE), message))
    [((kind, name, patch, space), how)] = bench.client.of("patch")
    assert (kind, name, space) == (PODS, "p", "space")
    assert how == {"form": PatchForm.STRATEGIC, "subresource": "status"}
    assert patch["metadata"] == {"uid": "u", "resourceVersion": "5", "annotations": PLACE}
    if message:
        assert condition(patch)["message"] == message
        assert patch["status"]["conditions"][0]["reason"] == "Unschedulable"
    else:
        assert patch["status"] == {}


@pytest.mark.parametrize(
    ("before", "had", "is_told"),
    [
        ((), {}, False),
        ((), {"argosy.dev/queue": "m"}, True),
        ((lambda writer: writer.annotate(a_pod(), dict(PLACE), ""),), {}, True),
        (
            (
                lambda writer: writer.annotate(a_pod(), dict(PLACE), ""),
                lambda writer: writer.annotate(a_pod(), left_queue(), ""),
            ),
            {},
            False,
        ),
        (
            (
                lambda writer: writer.annotate(a_pod(), dict(PLACE), ""),
                lambda writer: writer.forget("u"),
            ),
            {},
            False,
        ),
        (
            (
                lambda writer: writer.annotate(a_pod(), dict(PLACE), ""),
                BindOrder(a_pod(), "n"),
            ),
            {},
            False,
        ),
    ],
)
def test_a_pod_that_stood_in_a_queue_is_told_that_it_has_left_it(
    bench: Bench, before: tuple[Any, ...], had: dict[str, str], is_told: bool
) -> None:
    bench.do(*before, BindOrder(a_pod(annotations=had), "n"))
    written = bench.client.of("bind")[-1][1]["annotations"]
    assert (written.items() >= reached_node("n").items()) == is_told


def test_after_closing_no_binding_is_begun(bench: Bench) -> None:
    async def late() -> None:
        writer = KubernetesWriter(
            bench.client,  # type: ignore[arg-type]
            "argosy",
            bound=bench.fates.append,  # type: ignore[arg-type]
            failed=bench.fates.append,  # type: ignore[arg-type]
            stayed=bench.fates.append,  # type: ignore[arg-type]
        )
        writer.start()
        await asyncio.sleep(0)
        await writer.close()
        writer.carry_out(BindOrder(a_pod(), "n"))
        await asyncio.sleep(0)

    asyncio.run(late())
    assert bench.client.calls == []
    assert bench.fates == []
