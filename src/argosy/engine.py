"""Everything that the author of an engine imports.

    from argosy import engine

An engine is a class that keeps the `Engine` protocol. It answers each event with effects, reads the
cluster through a `View`, and collects the claims of one decision in a `Draft`. `docs/engines.md`
describes the contract and shows a whole engine; `argosy.testing.conformance` checks one.
"""

from argosy.cell import Bitmap, Draft, Found, Rule, Snapshot, View, to_bitmap, to_mask
from argosy.cell.waits import WaitState, WaitView
from argosy.engines.api import (
    Capabilities,
    Context,
    Engine,
    Finishes,
    MissingExtra,
    NeedsExtra,
    ReportsMetrics,
    Settings,
    WaitKeeper,
)
from argosy.model.constraints import Constraint
from argosy.model.effects import (
    Abandon,
    AnswerProbe,
    AskQueues,
    Commit,
    Effect,
    Enqueue,
    Explain,
    Probe,
    Sample,
    Send,
    Think,
    WakeMe,
)
from argosy.model.events import (
    Committed,
    DecisionDue,
    Event,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    MessageReceived,
    PhaseFinished,
    ProbeReady,
    QueuesReported,
    SampleReturned,
    Started,
    TaskFinished,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import CONFLICTS, Explanation, Price, Refusal, Why
from argosy.model.gossip import WaitUpdate
from argosy.model.jobs import Job, Phase, TaskGroup, index_of, job_of, task_name, task_number
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import by_job, first_tasks, indices_of, jobs_of, task_numbers
from argosy.model.transactions import (
    Claims,
    MachineArray,
    Outcome,
    ShapeArray,
    TaskArray,
    Transaction,
    VersionArray,
    Wants,
)
from argosy.model.units import Micros

__all__ = [
    "CONFLICTS",
    "Abandon",
    "AnswerProbe",
    "AskQueues",
    "Bitmap",
    "Capabilities",
    "Claims",
    "Commit",
    "Committed",
    "Constraint",
    "Context",
    "DecisionDue",
    "Draft",
    "Effect",
    "Engine",
    "Enqueue",
    "Event",
    "Explain",
    "Explanation",
    "Finishes",
    "Found",
    "Job",
    "JobSubmitted",
    "MachineArray",
    "MachineChanged",
    "MachineJoined",
    "MachineLost",
    "MessageReceived",
    "Micros",
    "MissingExtra",
    "NeedsExtra",
    "Outcome",
    "Phase",
    "PhaseFinished",
    "Price",
    "Probe",
    "ProbeReady",
    "QueuesReported",
    "Random",
    "Refusal",
    "ReportsMetrics",
    "Resources",
    "Rule",
    "Sample",
    "SampleReturned",
    "Send",
    "Settings",
    "ShapeArray",
    "Snapshot",
    "Started",
    "TaskArray",
    "TaskFinished",
    "TaskGroup",
    "TasksLost",
    "Think",
    "TimerFired",
    "Transaction",
    "VersionArray",
    "View",
    "WaitKeeper",
    "WaitState",
    "WaitUpdate",
    "WaitView",
    "WakeMe",
    "Wants",
    "Why",
    "by_job",
    "first_tasks",
    "index_of",
    "indices_of",
    "job_of",
    "jobs_of",
    "task_name",
    "task_number",
    "task_numbers",
    "to_bitmap",
    "to_mask",
]
