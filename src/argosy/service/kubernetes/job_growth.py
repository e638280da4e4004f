"""Grows and shrinks malleable Jobs of Kubernetes by patching their parallelism.

A Job is malleable if its annotation says so and it has a fixed number of completions. What it asked for
is written beside what it was given: if anybody else changes its parallelism, that is what it asks for.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.kubernetes.batch import BATCH_JOBS, BatchJob
from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.failures import KubernetesError, ObjectConflict, ObjectNotFound
from argosy.kubernetes.watching import ObjectWatch
from argosy.model.errors import ArgosyError
from argosy.model.resources import Resources
from argosy.model.units import parse_duration
from argosy.service.kubernetes.rights import WriteRight
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.malleable import GrowthSettings, JobProgress, JobScaler
from argosy.worlds.kubernetes.pod_jobs import ESTIMATE, PREFIX
from argosy.worlds.kubernetes.tracked import PodState, TrackedPod

#: Whether a Job may have more pods in parallel than it asks for.
MALLEABLE: Final = PREFIX + "malleable"
#: How many pods a Job asked for, and how many it was given.
ASKED: Final = PREFIX + "asked-parallelism"
GIVEN: Final = PREFIX + "given-parallelism"
_WITHOUT: Final = (PodState.WAITING, PodState.CLAIMED, PodState.HELD)


def is_malleable(job: BatchJob) -> bool:
    says_so = job.metadata.annotations.get(MALLEABLE, "").lower() == "true"
    fixed = job.spec.completions is not None and job.spec.parallelism is not None
    return says_so and fixed and not job.spec.suspend and not job.is_over


def asked_parallelism(job: BatchJob) -> int:
    wanted = job.spec.parallelism or 0
    said = job.metadata.annotations
    if said.get(GIVEN) == str(wanted) and said.get(ASKED, "").isdecimal():
        return int(said[ASKED])
    return wanted


class JobGrowth:
    """`view` and `now` are the world's."""

    def __init__(
        self,
        client: KubernetesClient,
        jobs: ObjectWatch[BatchJob],
        pods: PodCluster,
        settings: GrowthSettings,
        *,
        view: Callable[[], View],
        now: Callable[[], int],
        right: Callable[[], WriteRight],
        log: Callable[[str], None],
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = pods
        self._scaler = JobScaler(settings)
        self._view = view
        self._now = now
        self._right = right
        self._log = log
        self._interval = settings.interval
        #: Pods that waited at the last look: what has just come is about to be placed.
        self._waited: set[str] = set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._look_on())

    async def _follow(self) -> None:
        async for _ in self._jobs:
            pass

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            if self._right().is_held:
                await self._look()

    async def _look(self) -> None:
        jobs = {job.uid: job for job in self._jobs.objects.values() if is_malleable(job)}
        view = self._view()
        own, others = self._sorted(jobs)
        progress = [self._progress(jobs[uid], pods, others) for uid, pods in own.items()]
        self._waited = {each.uid for each in self._pods.pods.values() if each.state in _WITHOUT}
        decided = self._scaler.decide(
            progress,
            view.used_total(),
            view.capacity_total(),
            self._now(),
            is_crowded=bool(others),
        )
        for uid, count in decided.items():
            await self._set(jobs[uid], count)

    async def _set(self, job: BatchJob, count: int) -> None:
        asked = asked_parallelism(job)
        patch: dict[str, Any] = {
            "metadata": {
                "uid": job.uid,
                "resourceVersion": job.metadata.resource_version,
                "annotations": {ASKED: str(asked), GIVEN: str(count)},
            },
            "spec": {"parallelism": count},
        }
        right = self._right()
        try:
            async with asyncio.timeout(right.remaining):
                await self._client.patch(BATCH_JOBS, job.name, patch, job.namespace)
        except (ObjectConflict, ObjectNotFound, TimeoutError):
            # It has changed meanwhile: the next look decides on what it is then.
            return
        except KubernetesError as error:
            self._log(str(error))
            return
        self._log(
            f"job {job.namespace}/{job.name} has {count} pods in parallel, and asked for {asked}"
        )

    def _sorted(
        self, jobs: Mapping[str, BatchJob]
    ) -> tuple[dict[str, list[TrackedPod]], list[TrackedPod]]:
        """The pods of each job, and the pods of others that wait for room."""
        own: defaultdict[str, list[TrackedPod]] = defaultdict(list)
        others = []
        #: By what a pod needs: many are alike.
        is_possible: dict[bytes, bool] = {}
        for tracked in self._pods.pods.values():
            maker = next(
                (each.uid for each in tracked.pod.metadata.owner_references if each.controller), ""
            )
            if maker in jobs:
                own[maker].append(tracked)
            elif tracked.state is PodState.WAITING and tracked.uid in self._waited:
                key = tracked.shape.key
                if key not in is_possible:
                    is_possible[key] = self._places(tracked, self._view().capacity()) > 0
                if is_possible[key]:
                    others.append(tracked)
        return own, others

    def _progress(
        self, job: BatchJob, pods: list[TrackedPod], others: list[TrackedPod]
    ) -> JobProgress:
        wanted = job.spec.parallelism or 0
        there = [each for each in pods if each.state not in _WITHOUT and each.node]
        running = [each for each in there if not _is_leaving(each)]
        # Those that are told to go make room already.
        in_the_way = self._in_the_way(running, others) - max(0, len(there) - wanted)
        return JobProgress(
            uid=job.uid,
            program=program_of(job),
            request=pods[0].request,
            asked=asked_parallelism(job),
            wanted=wanted,
            completions=job.spec.completions or 0,
            succeeded=job.status.succeeded,
            running=len(running),
            waiting=sum(each.state in _WITHOUT and each.uid in self._waited for each in pods),
            fits=self._places(pods[0], self._view().free()),
            in_the_way=max(0, in_the_way),
            estimate=estimate_of_job(job),
        )

    def _places(self, like: TrackedPod, room: NDArray[np.int64]) -> int:
        """For how many pods like this one there is this room, on nodes that admit it."""
        view, rulebook = self._view(), self._pods.rulebook
        asked = np.array(like.request.vector(view.dimensions), np.int64)
        some = asked > 0
        if not some.any():
            return 0
        fits = (room[:, some] // asked[some]).min(axis=1)
        names = (
            (number, view.machine_name(number)) for number in np.flatnonzero(fits > 0).tolist()
        )
        return sum(
            int(fits[number])
            for number, name in names
            if name in rulebook.nodes and rulebook.forbidding(like.needs, name) is None
        )

    def _in_the_way(self, running: list[TrackedPod], others: list[TrackedPod]) -> int:
        """How many of a job's running pods hold what pods of others wait for."""
        if not running:
            return 0
        nodes, rulebook = {each.node for each in running}, self._pods.rulebook
        lacking: defaultdict[str, int] = defaultdict(int)
        alike: dict[bytes, bool] = {}
        free = self._view().free()
        for waiting in others:
            key = waiting.shape.key
            if key not in alike:
                # What has room is about to be placed.
                alike[key] = not self._places(waiting, free) and any(
                    rulebook.forbidding(waiting.needs, node) is None for node in nodes
                )
            if alike[key]:
                for name, amount in waiting.request.items():
                    lacking[name] += amount
        return min(len(running), _pods_for(lacking, running[0].request))


def _is_leaving(tracked: TrackedPod) -> bool:
    return tracked.state is PodState.LEAVING or tracked.pod.metadata.deletion_timestamp is not None


def _pods_for(lacking: dict[str, int], request: Resources) -> int:
    """How many pods have to go to make up for what is lacking."""
    return max(
        (-(-lacking.get(name, 0) // amount) for name, amount in request.items() if amount),
        default=0,
    )


def program_of(job: BatchJob) -> str:
    """Jobs of one CronJob, or with one generated name, are runs of the same program."""
    for owner in job.metadata.owner_references:
        if owner.controller:
            return f"{job.namespace}/{owner.kind}/{owner.name}"
    return f"{job.namespace}/{job.metadata.generate_name or job.name}"


def estimate_of_job(job: BatchJob) -> int | None:
    said = job.spec.template.metadata.annotations.get(ESTIMATE)
    try:
        return parse_duration(said) if said is not None else None
    except ArgosyError:
        return None
