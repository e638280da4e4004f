"""The native core, as the facades see it: one stub per folder; all names are in `_core`."""

from argosy._core.cell import AuditFailure, Cell, CellSnapshot, CellView, MachineDraw, Rule, Why
from argosy._core.clock import Budget, ClockBudget, WorkBudget, seconds_until, spent_share
from argosy._core.flow import (
    FlowAlgorithm,
    FlowRooms,
    FlowRoster,
    FlowSolver,
    FlowStatus,
    FlowStop,
    RosterState,
)
from argosy._core.host import (
    NEVER,
    Board,
    JournalReader,
    LineBuffer,
    PlacementNews,
    ProbeTerms,
    QueueOrder,
    QueueRules,
    RuntimeEvent,
    TaskRuntime,
    TaskState,
    first_tasks,
)
from argosy._core.place import PlacementOrder, PlacementRule, Placer
from argosy._core.random import Random, exact_exp, exact_log, philox_block
from argosy._core.waits import WaitState, WaitView

__all__ = [
    "NEVER",
    "AuditFailure",
    "Board",
    "Budget",
    "Cell",
    "CellSnapshot",
    "CellView",
    "ClockBudget",
    "FlowAlgorithm",
    "FlowRooms",
    "FlowRoster",
    "FlowSolver",
    "FlowStatus",
    "FlowStop",
    "JournalReader",
    "LineBuffer",
    "MachineDraw",
    "PlacementNews",
    "PlacementOrder",
    "PlacementRule",
    "Placer",
    "ProbeTerms",
    "QueueOrder",
    "QueueRules",
    "Random",
    "RosterState",
    "Rule",
    "RuntimeEvent",
    "TaskRuntime",
    "TaskState",
    "WaitState",
    "WaitView",
    "Why",
    "WorkBudget",
    "exact_exp",
    "exact_log",
    "first_tasks",
    "philox_block",
    "seconds_until",
    "spent_share",
]
