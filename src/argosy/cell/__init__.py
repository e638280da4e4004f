"""The state of the cluster: machines, claims, node groups, tag counts; commits, fit search and audit.

Charter: only `Cell` holds mutable cluster state, and only `commit` changes it. Everything else
reads a `View`: the live cell, or a frozen `Snapshot` of it. Data per machine and per claim is in
the native core; this package adds names, checks and sentences. No policy: engines decide which rule
to search by, and what to do about a refusal.
"""

from argosy._core import MachineDraw
from argosy.cell.audit import AuditFailure, Usage
from argosy.cell.bitmaps import Bitmap, to_bitmap, to_mask
from argosy.cell.cell import Cell
from argosy.cell.draft import Draft
from argosy.cell.search import Found, Rule, title_of
from argosy.cell.view import DrawnMachines, Snapshot, View

__all__ = [
    "AuditFailure",
    "Bitmap",
    "Cell",
    "Draft",
    "DrawnMachines",
    "Found",
    "MachineDraw",
    "Rule",
    "Snapshot",
    "Usage",
    "View",
    "title_of",
    "to_bitmap",
    "to_mask",
]
