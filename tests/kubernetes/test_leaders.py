"""Several replicas of a scheduler, of which one leads."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kube_schedulers import (
    FENCING,
    PodLoad,
    PodWitness,
    SchedulerProcess,
    bound_twice,
    create_pod,
    metric_value,
    overcommitted,
    pod_document,
)

from argosy.kubernetes.control_plane import ControlPlane

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


class Replicas:
    """Replicas of a scheduler called as the namespace is."""

    def __init__(self, plane: ControlPlane, namespace: str, stack: ExitStack) -> None:
        self._plane, self._namespace, self._stack = plane, namespace, stack

    def start(self, identity: str) -> SchedulerProcess:
        process = SchedulerProcess(
            self._plane.kubeconfig,
            *("--name", self._namespace),
            *("--leader-elect", "--lease-namespace", self._namespace),
            *("--lease-duration", "5", "--identity", identity),
        )
        self._stack.enter_context(process)
        return process.wait_until_up()

    def lease(self) -> dict[str, Any]:
        path = f"{LEASES.format(self._namespace)}/{self._namespace}"
        found: dict[str, Any] = self._plane.request("GET", path)["spec"]
        return found


@pytest.fixture
def replicas(control_plane: ControlPlane, namespace: str) -> Iterator[Replicas]:
    with ExitStack() as stack:
        yield Replicas(control_plane, namespace, stack)


@pytest.fixture
def witness(control_plane: ControlPlane, namespace: str) -> Iterator[PodWitness]:
    with PodWitness(control_plane, namespace) as watching:
        yield watching


def fencing_of(pod: dict[str, Any]) -> int:
    return int(pod["metadata"]["annotations"][FENCING])


def leads(process: SchedulerProcess) -> bool:
    _, text = process.get("/metrics")
    return metric_value(text, "argosy_leader_election_master_status") == 1


def test_a_standby_is_ready_and_takes_over_when_the_leader_is_killed(
    control_plane: ControlPlane,
    namespace: str,
    nodes: Any,
    replicas: Replicas,
    witness: PodWitness,
) -> None:
    nodes(4, cpu="16")
    first = replicas.start("first")
    documents = (pod_document(f"p{at}", namespace, cpu="100m") for at in itertools.count())
    load = PodLoad(control_plane, namespace, documents, rate=40)
    load.start()
    witness.until(lambda w: len(w.bound) >= 10, "the leader binds pods")
    second = replicas.start("second")
    assert second.get("/readyz") == (200, "ok")
    assert (leads(first), leads(second)) == (True, False)
    first.kill()
    killed_at = len(witness.bound)
    witness.until(lambda w: len(w.bound) >= killed_at + 20, "the standby has taken over")
    load.finish()
    witness.until(lambda w: len(w.bound) == load.made, "nothing is lost")
    assert leads(second)
    assert {fencing_of(pod) for pod in witness.bound} == {0, 1}
    assert replicas.lease()["holderIdentity"] == "second"
    assert bound_twice(witness) == []
    assert overcommitted(control_plane) == []


def test_a_leader_that_stops_gives_the_lease_up_and_ends_well(
    control_plane: ControlPlane,
    namespace: str,
    nodes: Any,
    replicas: Replicas,
    witness: PodWitness,
) -> None:
    nodes(2, cpu="16")
    first = replicas.start("first")
    create_pod(control_plane, namespace, pod_document("a", namespace))
    witness.until(lambda w: len(w.bound) == 1, "the first is bound")
    assert first.terminate() == 0
    lease = replicas.lease()
    assert lease["holderIdentity"] == ""
    replicas.start("second")
    create_pod(control_plane, namespace, pod_document("b", namespace))
    witness.until(lambda w: len(w.bound) == 2, "the second is bound")
    assert sorted(fencing_of(pod) for pod in witness.bound) == [0, 1]


def test_a_leader_that_was_frozen_writes_nothing_and_ends(
    control_plane: ControlPlane,
    namespace: str,
    nodes: Any,
    replicas: Replicas,
    witness: PodWitness,
) -> None:
    nodes(2, cpu="16")
    first = replicas.start("first")
    create_pod(control_plane, namespace, pod_document("a", namespace))
    witness.until(lambda w: len(w.bound) == 1, "the first is bound")
    second = replicas.start("second")
    first.signal(signal.SIGSTOP)
    # While the first is frozen, pods wait in its sockets.
    for at in range(20):
        create_pod(control_plane, namespace, pod_document(f"b{at}", namespace))
    witness.until(lambda w: not w.waiting, "the second has taken over")
    first.signal(signal.SIGCONT)
    assert first.wait() == 2
    assert "error[leadership-lost]" in first.said
    assert leads(second)
    assert bound_twice(witness) == []
    later = [pod for pod in witness.bound if pod["metadata"]["name"] != "a"]
    assert {fencing_of(pod) for pod in later} == {1}


def test_a_scheduler_that_may_not_have_the_lease_says_so(
    control_plane: ControlPlane, namespace: str
) -> None:
    process = SchedulerProcess(
        control_plane.kubeconfig, "--leader-elect", "--lease-namespace", f"no-{namespace}"
    )
    with process:
        assert process.wait() == 2
        assert f'namespaces "no-{namespace}" not found' in process.said
