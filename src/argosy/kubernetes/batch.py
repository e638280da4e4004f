"""Jobs of Kubernetes' batch API."""

from __future__ import annotations

from typing import Final

from argosy.kubernetes.kinds import ResourceKind
from argosy.kubernetes.meta import KubernetesObject, ObjectMeta, Served


class BatchPodTemplate(Served, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class BatchCondition(Served, frozen=True):
    type: str = ""
    status: str = ""


class BatchJobSpec(Served, frozen=True):
    """Without `completions`, pods decide among themselves when the work is done."""

    parallelism: int | None = None
    completions: int | None = None
    suspend: bool = False
    template: BatchPodTemplate = BatchPodTemplate()


class BatchJobStatus(Served, frozen=True):
    active: int = 0
    succeeded: int = 0
    conditions: tuple[BatchCondition, ...] = ()


class BatchJob(KubernetesObject, frozen=True):
    spec: BatchJobSpec = BatchJobSpec()
    status: BatchJobStatus = BatchJobStatus()

    @property
    def is_over(self) -> bool:
        return any(
            each.type in ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
            and each.status == "True"
            for each in self.status.conditions
        )


BATCH_JOBS: Final = ResourceKind(BatchJob, "jobs", group="batch", name="Job")
