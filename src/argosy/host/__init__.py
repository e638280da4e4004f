"""The host: everything between engines and a cluster that does not depend on what time and machines are.

Charter: the fleet and its routing, checking effects, committing, launching, losing, handing over,
restarting, membership of machines, the table of jobs, the journal. Pure code over `Cell` and the native
`TaskRuntime`, driven by a world through two protocols (`protocols`): `Clock` and `Machines`. Knows no
engine by name, reads no clock and starts nothing.
"""

from argosy._core import RuntimeEvent, TaskState

__all__ = ["RuntimeEvent", "TaskState"]
