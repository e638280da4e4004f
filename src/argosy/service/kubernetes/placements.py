"""What a pod is told of the decision that put it on its node, in the words of `argosy why`.

Kubernetes copies the annotations of a binding to the pod, so they cost no request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from argosy.host.records import ProbedRecord
from argosy.model.explanations import Explanation
from argosy.model.jobs import task_name
from argosy.model.units import format_duration
from argosy.records.choices import decision_text, probes_text, taken_text
from argosy.worlds.kubernetes.pod_jobs import ENGINE, SCHEDULER, WAITED, WHY
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.projection import ChoiceRecord

#: All annotations of an object share 256 KiB.
_LONGEST: Final = 1_000
_NOTHING: Final = Explanation()


def placement_annotations(
    world: OverruledWorld,
    engines: Mapping[str, str],
    choice: ChoiceRecord,
    told: Explanation | None,
    index: int,
    node: str,
) -> dict[str, str]:
    """Of a task that goes to `node`. `engines` are the fleet's, by scheduler; `told` is an explanation
    that came separately."""
    names, scheduler = world.projection.machines, choice.scheduler
    if isinstance(choice, ProbedRecord):
        why = probes_text(scheduler, [names[number].name for number in choice.machines], node)
    else:
        explanation = choice.explanation or told or _NOTHING
        second = "" if explanation.second is None else names[explanation.second].name
        sent_to = names[choice.machines[choice.indices.index(index)]].name
        # An explanation is shared by tasks placed together; its numbers are of the first.
        is_first = choice.explanation is None or choice.indices[0] == index
        first = "" if is_first else task_name(choice.job, choice.indices[0])
        dimensions = world.host.view.dimensions
        why = decision_text(explanation, dimensions, scheduler, sent_to, second, first)
        why += taken_text(sent_to, node)
    annotations = {
        SCHEDULER: scheduler,
        ENGINE: engines.get(scheduler.partition(":")[0], ""),
        WHY: why[:_LONGEST],
    }
    row = world.projection.by_id.get(choice.job)
    if row is not None:
        annotations[WAITED] = format_duration(max(0, world.now - row.submitted))
    return annotations
