"""What a cluster of pods adds to the samples and commits of schedulers elsewhere."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from argosy.model.jobs import Job
from argosy.model.resources import Resources
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.problems import Conflict
from argosy.service.routes import UnfitDocument
from argosy.worlds.kubernetes.commits import IMAGE
from argosy.worlds.kubernetes.requests import PODS

_ONE_POD: Final = {PODS: 1}


class PodTerms:
    """Tasks are pods: each takes one of a node's places for pods, and goes only where a pod without
    tolerations may."""

    def __init__(self, overseer: PodOverseer) -> None:
        self._overseer = overseer

    def request(self, asked: Resources) -> Resources:
        return replace(asked, extras=asked.extras | _ONE_POD)

    def requires(self, asked: dict[str, str]) -> dict[str, str]:
        return asked | self._overseer.pods.required

    def job(self, job: Job) -> Job:
        """The job as it is committed."""
        [group] = job.groups
        if not self._overseer.is_leading:
            raise Conflict("this replica stands by", expected="the one that leads")
        if not group.demands.get(IMAGE):
            raise UnfitDocument(
                "no image", field="job.demands", expected='image = "registry/name:tag"'
            )
        group = replace(
            group, request=self.request(group.request), requires=self.requires(group.requires)
        )
        return replace(job, groups=(group,))
