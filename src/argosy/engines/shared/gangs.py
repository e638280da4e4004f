"""Why the tasks of a gang wait for each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import structs

from argosy.model.effects import Explain
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job
from argosy.model.transactions import TaskArray


def waits_for_gang(tasks: int, found: int) -> Explanation:
    """Of tasks that have found a machine, as `found` of the gang's `tasks` have."""
    refused = Refusal(Why.TOGETHER)
    return Explanation(refused=refused, remedy=_remedy(tasks, found), gang_room=found)


def explain_gang(
    job: Job, tasks: TaskArray, explains: Sequence[Explain], found: int
) -> list[Explain]:
    """For all tasks of a gang that waits as a whole. `explains` are about those without a machine; tasks
    of the same group share their reason, and those of other groups wait for them."""
    told = []
    for _, mine in job.tasks_by_group(tasks):
        short = next((each for each in explains if np.isin(each.tasks, mine).any()), None)
        if short is None:
            why = waits_for_gang(len(tasks), found)
        elif len(short.tasks) < len(mine):
            advice = _remedy(len(tasks), found)
            why = structs.replace(short.explanation, remedy=advice, gang_room=found)
        else:
            why = structs.replace(short.explanation, gang_room=found)
        told.append(Explain(mine, why))
    return told


def _remedy(tasks: int, found: int) -> str:
    return f"room for all {tasks} tasks at once; {found} had room"
