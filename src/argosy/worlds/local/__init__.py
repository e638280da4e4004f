"""The local world: tasks are real processes on this computer.

Each try of a task has a supervisor of its own, a small native program that runs the command, keeps
its outputs, cleans up after it and records its end in the directory of the try. It outlives the
server, and another server can adopt it. `docs/design/0023-task-supervisors.md` describes the
files.

    world       drives a host in turns: write, then act
    store       the database
    projection  the state of jobs and tasks, from the journal
    runner      runs tries, each under a supervisor
    simulated   runs tries without processes: they take as long as their jobs estimate
    spec        what to run
    launcher    starts supervisors
    supervised  a try: its status, stop, kill; adopted from its directory
    reports     hears of changes
    outputs     reads what a command wrote
    isolation   which limits this computer can enforce
"""

from argosy.worlds.local.isolation import CONTROLLERS, CgroupParent, Isolation, detect_isolation
from argosy.worlds.local.launcher import Launcher
from argosy.worlds.local.outputs import OutputPart, read_output
from argosy.worlds.local.records import (
    CommandStart,
    EndCause,
    Enforcement,
    StartFailure,
    StreamEnd,
    SupervisorIdentity,
    TryEnd,
    TryOutcome,
)
from argosy.worlds.local.reports import ReportSocket, TryReport
from argosy.worlds.local.spec import CaptureLimits, ProcessLimits, SupervisorError, TrySpec
from argosy.worlds.local.supervised import SupervisedTry, TryState, TryStatus

__all__ = [
    "CONTROLLERS",
    "CaptureLimits",
    "CgroupParent",
    "CommandStart",
    "EndCause",
    "Enforcement",
    "Isolation",
    "Launcher",
    "OutputPart",
    "ProcessLimits",
    "ReportSocket",
    "StartFailure",
    "StreamEnd",
    "SupervisedTry",
    "SupervisorError",
    "SupervisorIdentity",
    "TryEnd",
    "TryOutcome",
    "TryReport",
    "TrySpec",
    "TryState",
    "TryStatus",
    "detect_isolation",
    "read_output",
]
