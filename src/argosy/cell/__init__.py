"""The state and its one door; node groups; tag counts; audit; fit search.

Charter: `Cell` is the only mutable owner of cluster state and `commit` its only door. Everyone else
gets a `View`: the live cell to read, or a frozen `Snapshot` of it. What is kept per machine and per
claim lives in the native core; this package gives it names, checks and words. No policy: which rule
searches, and what to do about a refusal, is the engines' affair.
"""

from argosy.cell.audit import AuditFailure, Usage
from argosy.cell.bitmaps import Bitmap, to_bitmap, to_mask
from argosy.cell.cell import Cell
from argosy.cell.draft import Draft
from argosy.cell.search import Found, Rule, title_of
from argosy.cell.view import Snapshot, View

__all__ = [
    "AuditFailure",
    "Bitmap",
    "Cell",
    "Draft",
    "Found",
    "Rule",
    "Snapshot",
    "Usage",
    "View",
    "title_of",
    "to_bitmap",
    "to_mask",
]
