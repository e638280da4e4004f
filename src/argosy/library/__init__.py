"""Argosy from Python: what `import argosy` offers, in addition to the errors and the version.

Charter: a few functions over `experiments`, `records` and `report` that take paths or values and return
typed values. No policy and no printing: the layers below do the work.
"""

from argosy.library.comparisons import Comparison, compare, replay_with
from argosy.library.results import Result, open_run, replay, run, story, why
from argosy.library.sources import load

__all__ = [
    "Comparison",
    "Result",
    "compare",
    "load",
    "open_run",
    "replay",
    "replay_with",
    "run",
    "story",
    "why",
]
