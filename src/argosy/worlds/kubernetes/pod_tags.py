"""The labels of pods as tags, which placement constraints name."""

from __future__ import annotations

from typing import Final

from argosy.kubernetes.objects import Pod
from argosy.model.constraints import NAME, RESERVED
from argosy.model.constraints.kubernetes import tag_of

#: The tag of all pods of a namespace begins with this.
NAMESPACE: Final = "namespace:"
#: Labels that controllers write for themselves: each pod, or each version, has its own.
GENERATED: Final = frozenset(
    {
        "pod-template-hash",
        "pod-template-generation",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    }
)


def label_tags(pod: Pod) -> dict[str, str]:
    """The tags of labels that constraints can name, and the label's key of each: `app=web` is `app:web`,
    and `canary=true` is `canary`."""
    tags = {}
    for key, value in pod.metadata.labels.items():
        tag = tag_of(key, value)
        if value and ":" not in key and tag not in RESERVED and NAME.fullmatch(tag):
            tags[tag] = key
    return tags
