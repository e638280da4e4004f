"""Jobs that schedulers elsewhere commit to a cluster: each becomes a pod on the node that was chosen.

A job says what its container runs: its command, environment and requests, and as demands the `image`
and, if it is not `default`, the `namespace`. The pod's annotation names the job. A pod whose job is not
known any more, because the server was started anew or the commit was undone, is evicted: whoever
committed it decides anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.worlds.kubernetes.moves import RelocatingCluster
from argosy.worlds.kubernetes.pod_jobs import ESTIMATE, PREFIX, kind_of
from argosy.worlds.kubernetes.requests import PODS
from argosy.worlds.kubernetes.tracked import (
    CreateOrder,
    EvictOrder,
    PodState,
    PodWorld,
    TrackedPod,
)

#: The annotation of a pod with the job that it was made for.
COMMIT: Final = PREFIX + "commit"
#: Demands of a committed job.
IMAGE: Final = "image"
NAMESPACE: Final = "namespace"
_UNFIT: Final = re.compile(r"[^a-z0-9]+")


def pod_of_job(job: Job, scheduler: str) -> dict[str, Any]:
    """The pod that runs a committed job."""
    [group] = job.groups
    execution = group.execution
    assert execution is not None
    requests = {"cpu": f"{group.request.cpu}m", "memory": str(group.request.memory)}
    requests |= {name: str(each) for name, each in group.request.extras.items() if name != PODS}
    container: dict[str, Any] = {
        "name": "main",
        "image": group.demands[IMAGE],
        "command": list(execution.command),
        "env": [{"name": name, "value": each} for name, each in execution.environment.items()],
        "resources": {"requests": requests},
    }
    if execution.working_directory:
        container["workingDir"] = execution.working_directory
    annotations = {COMMIT: job.id}
    if group.estimate is not None:
        annotations[ESTIMATE] = f"{group.estimate}us"
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "restartPolicy": "Always" if group.endless else "Never",
        "containers": [container],
    }
    if execution.timeout:
        # Whole seconds, and never fewer than the job may take.
        spec["activeDeadlineSeconds"] = -(-execution.timeout // 1_000_000)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(job.id),
            "namespace": group.demands.get(NAMESPACE, "default"),
            "annotations": annotations,
        },
        "spec": spec,
    }


def pod_name(job: str) -> str:
    """Always the same for a job, so that it is not made twice."""
    readable = _UNFIT.sub("-", job.lower()).strip("-")[:200] or "job"
    return f"{readable}-{hashlib.sha256(job.encode()).hexdigest()[:10]}"


class CommittedJob(msgspec.Struct, frozen=True):
    """A job whose pod has not been seen yet."""

    node: str
    number: int


class AgentCluster(RelocatingCluster):
    """A cluster to which schedulers elsewhere commit jobs. `name` is the scheduler of their pods; if it
    is empty, there are no commits."""

    def __init__(
        self,
        world: Callable[[], PodWorld],
        is_ours: Callable[[Pod], bool],
        route: Callable[[Pod], str] = kind_of,
        obstacle_to_groups: Callable[[str], str] = lambda kind: "",
        *,
        name: str = "",
    ) -> None:
        super().__init__(world, is_ours, route, obstacle_to_groups)
        self._name = name
        self._commits: dict[str, CommittedJob] = {}
        #: Pods of commits that are not known, which have been told to go.
        self._unknown: set[str] = set()
        #: Attributes that nodes for committed jobs need to have.
        self.required: dict[str, str] = {}

    def prepare_commits(self) -> None:
        """To be called once there is a world: what a pod without wishes of its own requires of its node
        is marked from now on."""
        if not self._name or self.required:
            return
        container = {"name": "main", "resources": {"requests": {"cpu": "1m"}}}
        spec = {"schedulerName": self._name, "containers": [container]}
        metadata = {"name": "plain", "namespace": "default", "uid": "plain"}
        plain = msgspec.convert({"metadata": metadata, "spec": spec}, Pod)
        self.required = dict(self.rulebook.needs(plain, [], []).attributes)

    def commit(self, number: int, job: Job, node: str) -> bool:
        """A committed job starts: its pod is made. False if it is no such job."""
        if not self._name or IMAGE not in job.groups[0].demands or node not in self.rulebook.nodes:
            return False
        self._commits[job.id] = CommittedJob(node, number)
        self.orders.append(CreateOrder(job.id, pod_of_job(job, self._name)))
        return True

    def unmade(self, job: str, reason: str) -> None:
        """Kubernetes does not make the pod."""
        commit = self._commits.pop(job, None)
        if commit is not None:
            self._world().finish(commit.number, 1, reason)

    def pushed_off(self, job: str, why: Why, index: int = 0) -> None:
        if self._commits.pop(job, None) is None:
            super().pushed_off(job, why, index)

    def has_try(self, number: int) -> bool:
        return super().has_try(number) or any(
            commit.number == number for commit in self._commits.values()
        )

    def _submit(self, tracked: TrackedPod) -> None:
        name = tracked.pod.metadata.annotations.get(COMMIT, "")
        commit = self._commits.pop(name, None) if name else None
        if commit is None:
            if not self._name or not name:
                super()._submit(tracked)
            return
        tracked.state = PodState.WAITING
        tracked.required = dict(tracked.needs.attributes)
        self._index.give_job(tracked, name)
        if self.claimed(name, commit.node):
            self.launch(commit.number, name)
        else:
            self._index.give_try(tracked, commit.number)
            tracked.state, tracked.node = PodState.CLAIMED, commit.node
            self._world().refuse_try(commit.number, Why.FILTERED)

    def set_pod(self, pod: Pod) -> None:
        super().set_pod(pod)
        name = pod.metadata.annotations.get(COMMIT, "") if self._name else ""
        tracked = self.pods.get(pod.uid)
        if not name or tracked is None or not self._is_ours(pod):
            return
        is_known = tracked.job == name or tracked.state is PodState.LEAVING
        if not is_known and pod.uid not in self._unknown:
            self._unknown.add(pod.uid)
            self.orders.append(EvictOrder(pod, Why.CANCELLED))

    def remove_pod(self, uid: str, *, by_itself: bool = False) -> None:
        self._unknown.discard(uid)
        super().remove_pod(uid, by_itself=by_itself)

    def recover(self, known: Mapping[str, int], claims: Mapping[tuple[str, int], str]) -> None:
        self._commits = {}
        super().recover(known, claims)
