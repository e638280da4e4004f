"""Jobs that come with a machine: what an agent commits for a scheduler that is elsewhere.

The cell judges the claim before anything else knows of the job, so a job that is refused leaves no
trace. One that is accepted belongs to a scheduler of the fleet from then on, which places its task anew
if that loses its machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from argosy.agents.registry import make_binding
from argosy.host import records
from argosy.model.errors import ScenarioError
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.tasks import first_tasks
from argosy.model.transactions import Claims, Transaction

if TYPE_CHECKING:
    from argosy.host.host import Host


def place(host: Host, job: Job, machine: int, by: str, commit: str) -> Refusal | None:
    """Submits a job of one task that starts on this machine, as the scheduler `by` has decided; `commit`
    is the plug-in that writes the claim. Returns why the cell refuses it, if it does."""
    # What another system has placed is there, whatever constraints say.
    if job.tasks != 1 or (job.constraints and not host.setup.is_overruled):
        raise ScenarioError(
            f"job {job.id} cannot be placed as a whole",
            expected="one task, and no placement constraints",
        )
    now, takers = host.runtime.now, host.router.takers(job.kind)
    if not takers:
        raise ScenarioError(
            f"no scheduler takes jobs of kind {job.kind!r}",
            hint="add the kind to a fleet entry's `takes`",
        )
    # Not by the router: what is refused is not recorded, so it must not affect whose turn it is.
    owner = next((taker for taker in takers if taker.is_alive), takers[0])
    tasks, machines = first_tasks(len(host.jobs), 1), np.array([machine], np.int32)
    [(_, shape, _)] = host.groups_of(job)
    claims = Claims(tasks, machines, np.array([shape], np.int32), host.view.versions(machines))
    transaction = make_binding(commit).bind(Transaction(owner.name, claims))
    outcome = host.cell.commit(transaction)
    if not outcome.all_accepted:
        return outcome.refusal(claims, 0)
    number = host.add(job, owner, now)
    submitted = records.SubmittedRecord(now, number, job, owner.name, machine, by, commit)
    host.decisions.input(submitted)
    host.membership.evict(outcome, Why.PREEMPTED, now)
    host.runtime.launch(tasks)
    host.decisions.placed(now, tasks, outcome.machines, by, None)
    return None
